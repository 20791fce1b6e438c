//! Asks and outcomes as JSON, for the classes of Python.

use countersign::Outcome;
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, Claimed, LedgerDecision};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::parking;

/// An ask, with what a program reads of it.
pub(crate) fn ask(record: &AskRecord) -> Value {
    let ask = &record.ask;
    let (agent, call) = ask.path().rsplit_once('/').unwrap_or(("", ask.path()));
    let reasons: Vec<_> = ask.questions().iter().map(|it| it.reason()).collect();
    let quorum = ask.quorum();
    json!({
        "id": ask.id(),
        "fingerprint": record.fingerprint,
        "run": ask.run(),
        "agent": agent,
        "call": parking::call_of(call),
        "tool": ask.tool(),
        "args": ask.args().to_value(),
        "args_to_run": record.args_to_run().to_value(),
        "state": record.state.as_str(),
        "reasons": reasons,
        "requester": ask.principal(),
        "approvals_needed": quorum.approvals,
        "votes": record.votes.iter().map(|vote| vote.by.clone()).collect::<Vec<_>>(),
        "decision": record.decision.as_ref().map(decision),
        "cancelled_by": record.cancelled_by,
        "claimed_by": record.claim.as_ref().map(|claim| claim.worker.clone()),
        "outcome": record.outcome.as_ref().map(outcome),
        "parked_at": record.parked_at,
        "changed_at": record.changed_at,
        "expires_at": record.expires_at,
    })
}

fn decision(decision: &LedgerDecision) -> Value {
    let (answer, args, message) = match &decision.answer {
        Answer::Approve { args } => ("approve", args.as_ref().map(|args| args.to_value()), None),
        Answer::Deny { message } => ("deny", None, Some(message.clone())),
        Answer::Result { value } => ("result", Some(outcome(value)), None),
    };
    json!({
        "answer": answer,
        "args": args,
        "message": message,
        "by": decision.by,
        "at": decision.at,
        "grant": decision.grant.as_ref().map(|grant| grant.id.clone()),
    })
}

/// An outcome by its word. What another program has stored in another form is a value that was returned.
pub(crate) fn outcome(stored: &Value) -> Value {
    let Ok(outcome) = Outcome::deserialize(stored) else {
        return json!({"kind": "returned", "value": stored, "metadata": null});
    };
    let metadata = match &outcome {
        Outcome::Returned(returned) => returned.metadata.clone(),
        _ => None,
    };
    json!({"kind": outcome.word(), "value": outcome.content(), "metadata": metadata})
}

/// The result of a claim, with the ask after it, and with the outcome of one that was settled before.
pub(crate) fn claimed(
    claimed: &Claimed,
    record: Option<&AskRecord>,
) -> Result<Value, serde_json::Error> {
    let mut shown = serde_json::to_value(claimed)?;
    if let Value::Object(map) = &mut shown {
        map.insert("ask".to_owned(), record.map_or(Value::Null, ask));
        if let Claimed::Settled { outcome: stored } = claimed {
            map.insert("outcome".to_owned(), outcome(stored));
        }
    }
    Ok(shown)
}
