//! The handlers that answer: the terminal, a file of answers, or one answer for all calls.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use countersign::deferred::{ToolApproval, ToolApproved};
use countersign::handler::{DenyAll, HandlerChain, danger_approve_all};
use countersign::ledger::Ledger;
use countersign::outcome::ToolDenied;
use countersign::{
    Args, BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext,
    ToolCall,
};
use countersign_terminal::TerminalHandler;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::Cli;

/// The handler for the command line's options, and a note for the user if there is one. With a ledger, a person at the
/// terminal can also answer later calls, for the session.
pub(crate) fn handler(
    cli: &Cli,
    ledger: Option<&Ledger>,
) -> Result<(HandlerChain, Option<&'static str>), String> {
    let chain = HandlerChain::new();
    if cli.approve_all {
        return Ok((chain.with(danger_approve_all()), None));
    }
    if cli.deny_all {
        return Ok((chain.with(DenyAll::new("Denied by the user.")), None));
    }
    if let Some(file) = &cli.answers {
        let chain = chain.with(Answers::read(file)?);
        return match cli.suspend {
            Some(_) => Ok((chain, None)),
            None => Ok((chain.with(DenyAll::new("Denied: no answer fits it.")), None)),
        };
    }
    if !std::io::stdin().is_terminal() {
        let denied = DenyAll::new("Denied: there is no terminal to ask in.");
        let note = "There is no terminal to ask in: calls that need an answer are denied. See --help for other ways to answer.";
        return Ok((chain.with(denied), Some(note)));
    }
    let rest = DenyAll::new("Denied: it was not answered.");
    let person = TerminalHandler::new().answered_by("you");
    let person = match ledger {
        Some(ledger) => person.grants(ledger.clone()),
        None => person,
    };
    Ok((chain.with(person).with(rest), None))
}

/// One line of `--answers`, which `--help` explains.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    tool: Option<String>,
    path: Option<String>,
    call: Option<usize>,
    answer: Answer,
    message: Option<String>,
    args: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Approve,
    Deny,
    Edit,
}

/// A handler that answers by the lines of a file, and leaves calls that no line fits.
struct Answers {
    lines: Vec<Line>,
    asked: Mutex<Asked>,
}

/// The memory of the handler over the batches of a run.
#[derive(Default)]
struct Asked {
    /// The ids of the calls that were asked about, each once, in order. Lines refer to their numbers.
    calls: Vec<String>,
    /// The lines, by index, that have edited a call, with its id: each edits a call once.
    edited: BTreeSet<(usize, String)>,
}

impl Answers {
    fn read(file: &Path) -> Result<Self, String> {
        let unusable = |problem: String| format!("the answers in {}: {problem}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        let lines = Self::parse(&text).map_err(unusable)?;
        Ok(Self { lines, asked: Mutex::default() })
    }

    fn parse(text: &str) -> Result<Vec<Line>, String> {
        let lines: Vec<Line> = match text.trim_start().starts_with('[') {
            true => serde_json::from_str(text).map_err(|error| error.to_string())?,
            false => text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(at, line)| {
                    serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
                })
                .collect::<Result<_, _>>()?,
        };
        let fits = |line: &Line| (line.answer == Answer::Edit) == line.args.is_some();
        match lines.iter().position(|line| !fits(line)) {
            Some(at) => {
                Err(format!("answer {}: an edit needs `args`, and nothing else has them", at + 1))
            }
            None => Ok(lines),
        }
    }

    fn answer(&self, call: &ToolCall) -> Option<ToolApproval> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.calls.iter().any(|id| id == call.id()) {
            asked.calls.push(call.id().to_owned());
        }
        let number = asked.calls.iter().position(|id| id == call.id())? + 1;
        let fits = self.lines.iter().enumerate().filter(|(_, line)| line.fits(call, number));
        for (index, line) in fits {
            match line.answer {
                Answer::Approve => return Some(true.into()),
                Answer::Deny => {
                    return Some(ToolDenied::new(line.message.clone().unwrap_or_default()).into());
                }
                Answer::Edit if !asked.edited.insert((index, call.id().into())) => {}
                Answer::Edit => return Some(ToolApproved::with_args(line.edited(call)).into()),
            }
        }
        None
    }
}

impl Line {
    fn fits(&self, call: &ToolCall, number: usize) -> bool {
        let path = call.args().str("path").or(call.args().str("from")).unwrap_or_default();
        self.tool.as_ref().is_none_or(|tool| tool == call.name())
            && self.path.as_ref().is_none_or(|pattern| matches(pattern, path))
            && self.call.is_none_or(|wanted| wanted == number)
    }

    fn edited(&self, call: &ToolCall) -> Args {
        let changed = self.args.iter().flatten();
        changed.fold(call.args().clone(), |args, (name, value)| args.with(name, value.clone()))
    }
}

impl DeferredToolHandler for Answers {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = requests.answer();
        for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
            if let Some(answer) = self.answer(call) {
                answers = answers.approval(call.id(), answer);
            }
        }
        Ok(answers.answered_by("answers").leave_rest().build()?)
    }
}

/// Returns `true` if a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| matches(rest, &text[at..]))
}
