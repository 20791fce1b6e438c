//! The output of a run: events as they happen, and the table at the end.

mod table;
mod text;

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign::call::{Execution, Said};
use countersign::decision::ToolDecision;
use countersign::deferred::Answered;
use countersign::message::ResponsePart;
use countersign::turn::{CallReport, RunEvent};
use countersign::{Args, Outcome};
use countersign_rules::{RuleCall, Rules};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use text::{Paint, plain};

/// Prints a line. A closed pipe (`| head`) is ignored, as it must not stop a run in the middle.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// One row of the report, about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) call: String,
    /// The layers that asked, each with its reason.
    pub(crate) asked: Vec<String>,
    pub(crate) answer: String,
    pub(crate) ran: String,
    pub(crate) told: String,
    /// `true` if all layers allowed the call and it returned a value.
    pub(crate) smooth: bool,
    /// `true` if the call has its final outcome.
    pub(crate) settled: bool,
}

/// Prints the events of a run, and collects its rows.
pub(crate) struct Report {
    /// With `--explain`, the rules to explain.
    explained: Option<Rules>,
    paint: Paint,
    rows: Mutex<Vec<Row>>,
}

impl Report {
    /// Continues with the rows of an earlier process.
    pub(crate) fn new(explained: Option<Rules>, rows: Vec<Row>) -> Self {
        Self { explained, paint: Paint::for_stdout(), rows: Mutex::new(rows) }
    }

    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.lock().clone()
    }

    /// Handles an event of the run.
    pub(crate) fn event(&self, event: &RunEvent) {
        match event {
            // The final answer is printed with the result of the run.
            RunEvent::Response { parts }
                if parts.iter().any(|part| matches!(part, ResponsePart::ToolCall(_))) =>
            {
                let text = parts.iter().filter_map(|part| match part {
                    ResponsePart::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                self.says(&text.collect::<String>());
            }
            RunEvent::ToolCallsDone { report } => self.turn(report.calls()),
            _ => {}
        }
    }

    /// Prints a text of the model.
    pub(crate) fn says(&self, text: &str) {
        let text = plain(text).replace('\n', "\n           ");
        say(&format!("\n{} {text}", self.paint.bold("assistant:")));
    }

    fn turn(&self, calls: &[CallReport]) {
        let mut rows = self.lock();
        let mut news = Vec::new();
        for call in calls {
            let row = Row::of(call);
            match rows.iter_mut().find(|known| known.id == row.id) {
                // A resumed turn reports its settled calls again.
                Some(known) if known.settled => continue,
                Some(known) => *known = row.clone(),
                None => rows.push(row.clone()),
            }
            news.push((call, row));
        }
        let width = news.iter().map(|(_, row)| row.call.chars().count()).max().unwrap_or_default();
        for (call, row) in news {
            say(&self.line(call, &row, width));
            if let Some(rules) = &self.explained {
                let lines = said(call.said(), &why(rules, call));
                lines.iter().for_each(|line| say(&format!("      {}", self.paint.dim(line))));
            }
        }
    }

    fn line(&self, call: &CallReport, row: &Row, width: usize) -> String {
        let (sign, what) = match call.outcome() {
            Outcome::Deferred(_) => {
                (self.paint.yellow("?"), format!("waits: {}", row.asked.join("; ")))
            }
            outcome => {
                let sign = if outcome.is_returned() {
                    self.paint.green("✓")
                } else {
                    self.paint.red("✗")
                };
                let answer =
                    if row.answer.is_empty() { String::new() } else { format!("{}: ", row.answer) };
                (sign, format!("{answer}{}", row.told))
            }
        };
        format!("  {sign} {:<width$}  {}", row.call, self.paint.dim(&what))
    }

    /// The table of all calls that were not simply allowed, and a line about the others.
    pub(crate) fn table(&self) -> String {
        let rows = self.lock();
        let (smooth, shown): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.smooth);
        let mut text = String::new();
        if !shown.is_empty() {
            let cells = |row: &&Row| {
                [
                    row.call.clone(),
                    row.asked.join("\n"),
                    row.answer.clone(),
                    row.ran.clone(),
                    row.told.clone(),
                ]
            };
            let heads = ["call", "asked (layer: why)", "answer", "ran", "the model was told"];
            text += &table::table(heads, &shown.iter().map(cells).collect::<Vec<_>>());
        }
        text + &format!(
            "\nEvery layer allowed the other {} calls without a question, and they ran.",
            smooth.len()
        )
    }
}

impl Row {
    fn of(call: &CallReport) -> Self {
        // Without the questions that only carry the previews of tools.
        let asked = call.asked().iter().filter(|it| !it.layer().ends_with(", preview"));
        let asked: Vec<_> =
            asked.map(|it| plain(&format!("{}: {}", it.layer(), it.reason()))).collect();
        let ran = match call.execution() {
            Execution::NotStarted => "no",
            Execution::Unknown => "perhaps",
            _ => "yes",
        };
        let smooth = asked.is_empty() && matches!(call.outcome(), Outcome::Returned(_));
        Self {
            id: call.call().id().to_owned(),
            call: plain(&described(call.call().name(), call.args())),
            asked,
            answer: answer(call),
            ran: ran.into(),
            told: plain(&told(call)),
            smooth,
            settled: !call.outcome().is_deferred(),
        }
    }
}

/// The answer to a call, and who gave it.
fn answer(call: &CallReport) -> String {
    let by = |answered: &Answered| answered.by().unwrap_or("a person").to_owned();
    match (call.answered(), call.denied_by()) {
        (_, Some(layer)) => format!("denied by {layer}"),
        (Some(answered), None) => format!("{} ({})", answered.word(), by(answered)),
        (None, None) if call.outcome().is_deferred() => "waits".into(),
        (None, None) => String::new(),
    }
}

fn described(tool: &str, args: &Args) -> String {
    match (args.str("path"), args.str("from"), args.str("to")) {
        (Some(path), ..) => format!("{tool} {path}"),
        (None, Some(from), Some(to)) => format!("{tool} {from} → {to}"),
        _ => tool.to_owned(),
    }
}

/// The result that the model received, abbreviated: without the contents of files.
fn told(call: &CallReport) -> String {
    let content = call.outcome().content();
    match content {
        None => String::new(),
        Some(Value::String(text))
            if call.outcome().is_returned() && call.call().name() == "read_file" =>
        {
            format!("{} bytes of text", text.len())
        }
        Some(Value::String(text)) => text,
        Some(other) => match other["entries"].as_array() {
            Some(entries) if entries.len() == 1 => "1 entry".into(),
            Some(entries) => format!("{} entries", entries.len()),
            None => "a value".into(),
        },
    }
}

/// The rules that decide about a call, each with its file and line, and which nearly spoke.
fn why(rules: &Rules, call: &CallReport) -> String {
    let seen = RuleCall::new(call.call().name(), call.args().as_map());
    let seen = match seen.tool().starts_with("mcp_") {
        true => seen.server("mcp"),
        false => seen,
    };
    rules.explain(&seen).to_string()
}

/// One line per layer and pass, and the lines that explain the decision of the rules.
fn said(said: &[Said], why: &str) -> Vec<String> {
    let (mut lines, mut told) = (Vec::new(), false);
    for (at, it) in said.iter().enumerate() {
        // The outermost layer again: this is the next pass, after an approval.
        if at > 0 && it.layer == said[0].layer {
            lines.push("approved, and through the stack again:".to_owned());
        }
        if it.layer == "rules" {
            let mut explained = why.lines();
            let first = explained.next().unwrap_or_default();
            lines.push(plain(&format!("{:<20} {first}", it.layer)));
            let rest = explained.filter(|_| !told);
            lines.extend(rest.map(|line| format!("{:<23}{}", "", plain(line.trim_start()))));
            told = true;
            continue;
        }
        let decision = match it.decision {
            ToolDecision::Allow => "allow",
            ToolDecision::Ask => "ask",
            ToolDecision::Deny => "deny",
        };
        let changed = if it.changed_args { ", with other arguments" } else { "" };
        let reason = if it.reason.is_empty() { String::new() } else { format!(": {}", it.reason) };
        lines.push(plain(&format!("{:<20} {decision}{changed}{reason}", it.layer)));
    }
    lines
}
