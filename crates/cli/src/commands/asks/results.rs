//! The output and the exit status of each result.
//!
//! Every result has an exit status of its own, so a shell script can tell "another person has decided" from "the store
//! is gone" without reading JSON. A result that this build does not know (the enums may grow) is an error and never a
//! success.

use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::ledger::{
    AskRecord, Cancelled, Claimed, Decided, RefusedRow, Renewed, Settled, Winner,
};
use serde_json::{Value, json};

use crate::output::{CommandError, CommandOutput};

pub(crate) fn unknown() -> CommandOutput {
    CommandOutput::new(7, json!({"result": "unknown"}))
}

/// The error for a result that this build does not know, as the enums are non-exhaustive.
fn odd(result: &impl serde::Serialize) -> CommandError {
    CommandError::Store(format!("the ledger gave {}", json!(result)))
}

pub(crate) fn decided(made: &Decided) -> Result<CommandOutput, CommandError> {
    let result = |status, result: &str| CommandOutput::new(status, json!({"result": result}));
    Ok(match made {
        Decided::Won { again } => CommandOutput::new(0, json!({"result": "won", "again": again})),
        Decided::Recorded { approvals, needed, again } => {
            let line = json!({"result": "recorded", "approvals": approvals, "needed": needed, "again": again});
            CommandOutput::new(0, line)
        }
        Decided::Lost(winner) => {
            CommandOutput::new(3, json!({"result": "lost", "winner": self::winner(winner)}))
        }
        Decided::Expired => result(4, "expired"),
        Decided::Cancelled => result(5, "cancelled"),
        Decided::Mismatch { fingerprint } => {
            CommandOutput::new(6, json!({"result": "mismatch", "fingerprint": fingerprint}))
        }
        Decided::NotAllowed => result(10, "not_allowed"),
        Decided::BlankName => result(2, "blank_name"),
        Decided::Unapprovable(_) => CommandOutput::new(10, json!(made)),
        Decided::UnknownAsk => unknown(),
        other => return Err(odd(other)),
    })
}

pub(crate) fn claimed(made: &Claimed) -> Result<CommandOutput, CommandError> {
    let status = match made {
        Claimed::Claimed { .. } => 0,
        Claimed::Held { .. } => 3,
        Claimed::Settled { .. } => 8,
        Claimed::NotDecided => 9,
        Claimed::Denied { .. } | Claimed::Aged { .. } | Claimed::Void { .. } => 10,
        Claimed::Outvoted { .. } => 10,
        Claimed::Unknown => 11,
        Claimed::UnknownAsk => return Ok(unknown()),
        other => return Err(odd(other)),
    };
    Ok(CommandOutput::new(status, json!(made)))
}

pub(crate) fn renewed(made: &Renewed) -> Result<CommandOutput, CommandError> {
    match made {
        Renewed::Renewed { .. } => Ok(CommandOutput::new(0, json!(made))),
        Renewed::StaleToken => Ok(CommandOutput::new(3, json!(made))),
        Renewed::UnknownAsk => Ok(unknown()),
        other => Err(odd(other)),
    }
}

pub(crate) fn settled(made: &Settled) -> Result<CommandOutput, CommandError> {
    match made {
        Settled::Settled { .. } => Ok(CommandOutput::new(0, json!(made))),
        Settled::StaleToken => Ok(CommandOutput::new(3, json!(made))),
        Settled::UnknownAsk => Ok(unknown()),
        other => Err(odd(other)),
    }
}

pub(crate) fn cancelled(made: &Cancelled) -> Result<CommandOutput, CommandError> {
    match made {
        Cancelled::Cancelled { .. } => Ok(CommandOutput::new(0, json!(made))),
        Cancelled::TooLate { .. } => Ok(CommandOutput::new(3, json!(made))),
        Cancelled::UnknownAsk => Ok(unknown()),
        other => Err(odd(other)),
    }
}

/// One name as a string, several as a list.
fn people(by: &[String]) -> Value {
    match by {
        [one] => json!(one),
        several => json!(several),
    }
}

fn winner(winner: &Winner) -> Value {
    let mut line = decision(&winner.decision);
    line["by"] = people(&winner.by);
    line["at"] = json!(winner.at);
    line
}

/// `decision`, one word, and what belongs to it.
fn decision(answer: &Answer) -> Value {
    match answer {
        Answer::Approve { args: None } => json!({"decision": "approve"}),
        Answer::Approve { args: Some(args) } => json!({"decision": "approve", "args": args}),
        Answer::Deny { message } => json!({"decision": "deny", "message": message}),
        Answer::Result { value } => json!({"decision": "answer", "answer": value}),
    }
}

/// Adds the refused rows, each on a line of its own: not everything could be read.
pub(crate) fn refused(mut lines: Vec<Value>, rows: &[RefusedRow]) -> CommandOutput {
    let status = u8::from(!rows.is_empty());
    let problem = |row: &RefusedRow| json!({"id": row.id, "refused": row.error.to_string()});
    lines.extend(rows.iter().map(problem));
    CommandOutput::of(status, lines)
}

/// The question as it was parked: a plain text where it has nothing but a reason.
fn question(question: &Question) -> Value {
    let bare = question.layer().is_empty()
        && question.key() == question.reason()
        && question.pins().is_empty()
        && question.metadata().is_empty();
    if bare { json!(question.reason()) } else { json!(question) }
}

pub(crate) fn ask(record: &AskRecord) -> Value {
    let decision = record.decision.as_ref();
    let told = decision.map_or(Value::Null, |it| self::decision(&it.answer));
    json!({
        "id": record.ask.id(),
        "fingerprint": record.fingerprint,
        "tool": record.ask.tool(),
        "args": record.ask.args(),
        "args_to_run": record.args_to_run(),
        "questions": record.ask.questions().iter().map(question).collect::<Vec<_>>(),
        "principal": record.ask.principal(),
        "denied_before": record.ask.denied_before().map(ToString::to_string),
        "state": record.state,
        "decision": told["decision"],
        "decided_by": decision.map(|it| people(&it.by_lines())),
        "decided_at": decision.map(|it| it.at),
        "message": told["message"],
        "answer": told["answer"],
        "votes": record.votes,
        "cancelled_by": record.cancelled_by,
        "claim": record.claim,
        "token": record.token,
        "outcome": record.outcome,
        "parked_at": record.parked_at,
        "expires_at": record.expires_at,
        "changed_at": record.changed_at,
    })
}
