//! What a ledger says about the calls of a response that is suspended (rules L1 to L5).

use super::durability::{expired, withdrawn};
use super::record::{AskState, Record};
use super::{Ledger, LedgerError};
use crate::deferred::{Answer, DeferredToolResults};
use crate::error::ErrorKind;
use crate::gate::MAY_HAVE_RUN;
use crate::handler::POLICY;
use crate::outcome::{DeferralKind, Outcome};
#[cfg(feature = "ai-sdk")]
use crate::turn::record_answer;
use crate::turn::{OpenAsk, SuspendedTurn, Turn};

impl Turn {
    /// What the ledger says about a response that waits, as answers to [resume](Self::resume) it with: what was decided
    /// since, here or elsewhere. What nobody has decided about is left. Without a ledger everything is left.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`].
    pub async fn decisions(
        &self,
        suspended: &SuspendedTurn,
    ) -> Result<DeferredToolResults, ErrorKind> {
        match self.get_ledger() {
            Some(ledger) => decisions(ledger, suspended).await,
            None => Ok(suspended.requests().answer().leave_rest().unchecked()),
        }
    }

    /// Makes answers decisions, and applies none of them.
    #[cfg(feature = "ai-sdk")]
    pub(crate) async fn decide(
        &self,
        suspended: &SuspendedTurn,
        answers: DeferredToolResults,
    ) -> Result<(), ErrorKind> {
        match self.get_ledger() {
            Some(ledger) => decide(ledger, suspended, answers).await,
            None => Ok(()),
        }
    }

    /// The asks in the ledger of the calls that wait, those of sub-agents too, by the ids of the calls in
    /// [`requests`](SuspendedTurn::requests). None without a ledger.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`].
    pub async fn asks(
        &self,
        suspended: &SuspendedTurn,
    ) -> Result<Vec<(String, Record)>, ErrorKind> {
        match self.get_ledger() {
            Some(ledger) => asks(ledger, suspended).await,
            None => Ok(Vec::new()),
        }
    }
}

/// The asks of the calls that wait, and of those of the agents behind them, by the ids of the calls.
async fn asks(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<Vec<(String, Record)>, ErrorKind> {
    let mut found = Vec::new();
    let open = suspended.open_asks(ledger).into_iter();
    for OpenAsk { id, ask, .. } in open.filter(|open| open.kind.is_some()) {
        let Some(ask) = ask else { continue };
        let record = ledger.get_now(&ask).await.map_err(failed)?;
        found.extend(record.map(|record| (id, record)));
    }
    Ok(found)
}

/// What was decided about the calls that wait, and those of the agents behind them; the others are left.
async fn decisions(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<DeferredToolResults, ErrorKind> {
    let requests = suspended.requests();
    let mut answers = requests.answer().unchecked();
    for OpenAsk { id, ask, kind, .. } in suspended.open_asks(ledger) {
        let (Some(ask), Some(kind)) = (ask, kind) else { continue };
        if let Some(record) = ledger.get_now(&ask).await.map_err(failed)? {
            decided(&mut answers, (&id, kind), &record);
        }
    }
    let rest = requests.remaining(&answers).unwrap_or_default();
    Ok(rest.iter().fold(answers, |answers, call| answers.leave(call.id())))
}

/// Makes answers decisions, and applies none of them: other calls of the response still wait (rule L3).
#[cfg(feature = "ai-sdk")]
async fn decide(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
    mut answers: DeferredToolResults,
) -> Result<(), ErrorKind> {
    let requests = suspended.requests();
    for OpenAsk { id, ask, kind, .. } in suspended.open_asks(ledger) {
        if let (Some(ask), Some(kind), Some(fingerprint)) = (ask, kind, requests.fingerprint(&id)) {
            record_answer(ledger, (&ask, fingerprint), (&id, kind), &mut answers).await?;
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
    for OpenAsk { id, ask, own, .. } in suspended.open_asks(ledger) {
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

/// The ledger could not answer.
fn failed(error: LedgerError) -> ErrorKind {
    ErrorKind::Ledger(error.into())
}
