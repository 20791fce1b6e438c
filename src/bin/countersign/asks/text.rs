//! Asks as text, for people.
//!
//! An ask begins at the first column, what the ledger says about it in the third one, and the call in the fifth, as
//! [`show`] draws it: no text of a call can begin a line that looks like a line of the ledger.

use countersign::deferred::Answer;
use countersign::ledger::{AskState, LedgerDecision, Listed, Millis, Record, date_and_time};
use countersign::show::{self, CallView, Limits};
use countersign::{Args, ToolCall};
use serde_json::Value;

use crate::output::WIDTH;
use crate::used_store::UsedStore;

/// The end of what is listed: how one decides.
fn deciding(store: &UsedStore) -> String {
    let words = "asks decide ASK --fingerprint FINGERPRINT --as NAME --approve";
    format!("To decide: `{}`, or `--deny MESSAGE`.", store.command(words))
}

pub(super) fn list(listed: &Listed<Record>, now: Millis, store: &UsedStore) -> String {
    let shown = |record| one(record, now, (Limits::default(), store));
    let mut blocks: Vec<_> = listed.records.iter().map(shown).collect();
    for row in &listed.refused {
        let problem = format!("{}: {}", row.id, row.error);
        blocks.push(show::wrap("refused ", &show::escape(&problem), WIDTH).join("\n"));
    }
    if blocks.is_empty() {
        return format!("There are no asks in the store `{}`.", store.name());
    }
    if listed.records.iter().any(|record| record.state == AskState::Pending) {
        blocks.push(deciding(store));
    }
    blocks.join("\n\n")
}

/// One ask with nothing left out.
pub(super) fn shown(record: &Record, now: Millis, store: &UsedStore) -> String {
    let mut text = one(record, now, (Limits::none(), store));
    if record.state == AskState::Pending {
        text += &format!("\n\n{}", deciding(store));
    }
    text
}

fn one(record: &Record, now: Millis, (limits, store): (Limits, &UsedStore)) -> String {
    let mut out = AskText {
        lines: vec![format!("ask {}", record.ask.id())],
        is_cut: false,
        is_masked: false,
    };
    out.line("state", &state(record));
    out.line("requester", &record.ask.principal().map_or("unknown".to_owned(), show::escape_name));
    out.line("fingerprint", &record.fingerprint);
    let views = CallView::all(&record.ask.requests(), limits);
    for view in &views {
        out.view("call", view);
    }
    out.quorum(record, now);
    if let Some(decision) = &record.decision {
        out.decision(decision, limits);
    }
    if let Some(claim) = &record.claim {
        let worker = show::escape_name(&claim.worker);
        out.line("claimed", &format!("by {worker}, until {}", time(claim.until)));
    }
    if let Some(outcome) = &record.outcome {
        out.value("outcome", outcome, limits);
    }
    if out.is_cut {
        let show = store.command(&format!("asks show {}", record.ask.id()));
        // A command that is broken into lines is not one that can be copied.
        out.lines.push(format!("  left out: see `{show}`"));
    }
    if out.is_masked {
        out.line("masked", "what looks like a secret; `--json` prints it");
    }
    out.lines.join("\n")
}

fn state(record: &Record) -> String {
    let parked = format!("parked {}", time(record.parked_at));
    let unapproved = record.ran_unapproved().map(|_| ": it ran without approval");
    let mut text = format!("{}{}, {parked}", record.state.as_str(), unapproved.unwrap_or_default());
    match record.expires_at {
        Some(at) if record.state == AskState::Pending => text += &format!(", expires {}", time(at)),
        None if record.state == AskState::Pending => text += ", without a deadline",
        _ => text += &format!(", changed {}", time(record.changed_at)),
    }
    if let Some(by) = &record.cancelled_by {
        text += &format!(", cancelled by {}", show::escape_name(by));
    }
    text
}

fn time(at: Millis) -> String {
    match date_and_time(at) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => format!("{at} ms after 1970"),
    }
}

struct AskText {
    lines: Vec<String>,
    is_cut: bool,
    is_masked: bool,
}

impl AskText {
    /// A line of the ledger. The value is on one line, without characters that are not shown.
    fn line(&mut self, label: &str, value: &str) {
        self.lines.extend(show::wrap(&format!("  {label}: "), value, WIDTH));
    }

    fn view(&mut self, label: &str, view: &CallView) {
        self.is_cut |= view.left_out || view.cut;
        self.is_masked |= view.masked;
        self.lines.push(format!("  {label}:"));
        self.lines.extend(view.text(WIDTH - 4).lines().map(|line| format!("    {line}")));
    }

    /// A value in JSON, as a view of its fields.
    fn value(&mut self, label: &str, value: &Value, limits: Limits) {
        let view = CallView::of_call(
            &ToolCall::new("", label, Args::new().with("value", value.clone()).to_value()),
            limits,
        );
        self.view(label, &view);
    }

    fn quorum(&mut self, record: &Record, now: Millis) {
        let quorum = record.ask.quorum();
        if quorum.approvals > 1 || quorum.not_the_requester {
            let not = if quorum.not_the_requester { ", none of them the requester's" } else { "" };
            self.line(
                "needs",
                &format!("{}{not}", show::counted(quorum.approvals as usize, "approval")),
            );
        }
        if record.decision.is_none() {
            for vote in record.counting_votes(now) {
                let (who, word) = (show::escape_name(&vote.by), vote.answer.word());
                self.line("so far", &format!("{word} by {who}, {}", time(vote.at)));
            }
        }
    }

    fn decision(&mut self, decision: &LedgerDecision, limits: Limits) {
        let who: Vec<_> = decision.by_lines().iter().map(|name| show::escape(name)).collect();
        let word = decision.answer.word();
        self.line("decision", &format!("{word}, {}, {}", who.join(" and "), time(decision.at)));
        match &decision.answer {
            Answer::Approve { args: Some(args) } => {
                let view = CallView::of_call(&ToolCall::new("", "edited", args.to_value()), limits);
                self.view("runs with", &view);
            }
            Answer::Deny { message } => self.line("message", &show::escape(message)),
            Answer::Result { value } => self.value("answer", value, limits),
            _ => {}
        }
    }
}
