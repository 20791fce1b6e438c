//! What a ledger says about the calls of a response that waits (rules L1 to L5).

use super::SuspendedRun;
use super::child::prefix;
use super::journal::{POLICY, ask_of, expired, failed, withdrawn};
use super::slot::{Slot, State};
use super::suspended::SuspendedTurn;
use crate::call::RunInfo;
use crate::deferred::{Answer, DeferredToolResults};
use crate::error::ErrorKind;
use crate::gate::MAY_HAVE_RUN;
use crate::ledger::{AskState, Ledger, Record};
use crate::outcome::{DeferralKind, Outcome};

/// A call of a response, or of an agent behind one of its calls.
struct Kept {
    /// Its id in the batch of the whole response.
    id: String,
    /// Its ask, if it has one.
    ask: Option<String>,
    /// What it waits for, if it does.
    waits: Option<DeferralKind>,
    /// It belongs to the response itself.
    own: bool,
}

/// The calls of a response that have no results, and those of the agents behind them.
fn open(suspended: &SuspendedTurn) -> Vec<Kept> {
    let mut found = Vec::new();
    let mut turns = vec![(String::new(), suspended.clone())];
    while let Some((before, turn)) = turns.pop() {
        let info = RunInfo {
            run_id: turn.run_id().to_owned(),
            response: turn.response(),
            path: turn.path().to_vec(),
            ..RunInfo::default()
        };
        for slot in turn.slots() {
            let id = format!("{before}{}", slot.call.id());
            let behind = slot.child.run.as_deref().and_then(SuspendedRun::turn);
            turns.extend(behind.map(|child| (prefix(&id), child.clone())));
            if !matches!(slot.state, State::Settled(_)) {
                let (ask, waits) =
                    (ask_id(&info, &slot), slot.pending().map(|pending| pending.kind));
                found.push(Kept { id, ask, waits, own: before.is_empty() });
            }
        }
    }
    found
}

fn ask_id(info: &RunInfo, slot: &Slot) -> Option<String> {
    match slot.pending() {
        Some(pending) => Some(ask_of(info, slot, pending, false).id().to_owned()),
        None => slot.ask.clone(),
    }
}

/// The asks of the calls that wait, and of those of the agents behind them, by the ids of the calls.
pub(super) async fn asks(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<Vec<(String, Record)>, ErrorKind> {
    let mut found = Vec::new();
    for Kept { id, ask, .. } in open(suspended).into_iter().filter(|kept| kept.waits.is_some()) {
        let Some(ask) = ask else { continue };
        let record = ledger.get_now(&ask).await.map_err(failed)?;
        found.extend(record.map(|record| (id, record)));
    }
    Ok(found)
}

/// What was decided about the calls that wait, and those of the agents behind them; the others are left.
pub(super) async fn decisions(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<DeferredToolResults, ErrorKind> {
    let requests = suspended.requests();
    let mut answers = requests.answer().unchecked();
    for Kept { id, ask, waits, .. } in open(suspended) {
        let (Some(ask), Some(kind)) = (ask, waits) else { continue };
        if let Some(record) = ledger.get_now(&ask).await.map_err(failed)? {
            decided(&mut answers, (&id, kind), &record);
        }
    }
    let rest = requests.remaining(&answers).unwrap_or_default();
    Ok(rest.iter().fold(answers, |answers, call| answers.leave(call.id())))
}

/// Makes answers decisions, and applies none of them: other calls of the response still wait (rule L3).
#[cfg(feature = "ai-sdk")]
pub(super) async fn decide(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
    mut answers: DeferredToolResults,
) -> Result<(), ErrorKind> {
    let requests = suspended.requests();
    for Kept { id, ask, waits, .. } in open(suspended) {
        if let (Some(ask), Some(kind), Some(fingerprint)) = (ask, waits, requests.fingerprint(&id))
        {
            super::journal::decide(ledger, (&ask, fingerprint), (&id, kind), &mut answers).await?;
        }
    }
    Ok(())
}

/// What is decided about an ask, as an answer to the call; nothing while it waits.
fn decided(answers: &mut DeferredToolResults, (id, kind): (&str, DeferralKind), record: &Record) {
    let mut set = |answer: &Answer, by: &str| answers.set_answer(id, kind, answer, by);
    match (&record.decision, record.state) {
        // One that was decided has expired at its claim, which says so again: it is asked about anew (rule A8).
        (None, AskState::Expired) => set(&expired(), POLICY),
        (_, AskState::Cancelled) => set(&withdrawn(), POLICY),
        // Another worker executes it: it is the one to say what came of it.
        (_, AskState::Claimed) => {}
        (Some(decision), _) => set(&decision.answer, &decision.by.join(", ")),
        (None, AskState::Closed) => set(&closed(), POLICY),
        (None, _) => {}
    }
}

/// Its call has got its result in another account of the run.
fn closed() -> Answer {
    Answer::deny("The request was closed before anybody decided.")
}

/// A response that is given up, with what the ledger knows of executions, and all the asks that are to be closed.
pub(crate) async fn recorded(
    ledger: &Ledger,
    mut suspended: SuspendedTurn,
) -> Result<(SuspendedTurn, Vec<String>), ErrorKind> {
    let mut asks = Vec::new();
    for Kept { id, ask, own, .. } in open(&suspended) {
        let Some(ask) = ask else { continue };
        let record = ledger.get_now(&ask).await.map_err(failed)?;
        if let Some(outcome) = record.as_ref().and_then(came_of).filter(|_| own) {
            suspended.settle(&id, outcome);
        }
        asks.push(ask);
    }
    asks.sort_unstable();
    asks.dedup();
    Ok((suspended, asks))
}

/// What is known of the execution of an ask, if it was started.
fn came_of(record: &Record) -> Option<Outcome> {
    let unknown = || Outcome::unknown(MAY_HAVE_RUN);
    match record.state {
        AskState::Executed => {
            let outcome = record.outcome.clone().map(serde_json::from_value);
            Some(outcome.and_then(Result::ok).unwrap_or_else(unknown))
        }
        AskState::Claimed | AskState::Unknown => Some(unknown()),
        _ => None,
    }
}
