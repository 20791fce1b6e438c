//! The recorded decisions and executions of the pending calls of a suspended turn (rules L1 to L5).
//!
//! The ledger has decisions by ask, and a turn needs answers by call. When a process resumes a run, we translate:
//!
//! | ask | answer |
//! |---|---|
//! | decided | the decision, by the people who gave it |
//! | pending | none: the call stays pending |
//! | expired, no decision | a denial by the policy "no one decided in time" |
//! | expired, with a decision | the approval, which the next claim finds too old (rule A8) |
//! | cancelled, or closed without a decision | a denial by the policy |
//! | claimed | none: another worker executes the call and settles it |
//! | executed, unknown | the decision: the claim of the approved pass returns the outcome |
//!
//! Denials by expiry carry the name of the policy, so that they never count as a person's no (rule D11).

use std::any::Any;
use std::sync::Arc;

use super::durability::{expired, withdrawn};
use crate::deferred::{Answer, DeferredToolResults};
use crate::error::Error;
use crate::gate::MAY_HAVE_RUN;
use crate::handler::POLICY;
use crate::ledger::asks::record::{AskRecord, AskState};
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::outcome::{DeferralKind, Outcome};
use crate::turn::{OpenAsk, SuspendedTurn, Turn, open_asks, record_answer};

impl Turn {
    /// Makes the turn durable: every ask is parked before a person is asked, every answer is recorded as a decision
    /// that counts once, and every execution is claimed and settled, across processes and crashes (rules L1 to L3). See
    /// [`ledger`](crate::ledger).
    ///
    /// The first answer to a call is its decision; an answer that comes later is replaced by the recorded one. A call
    /// that has been executed gives its recorded outcome, and one whose execution has an unknown end is reported as
    /// *may have run*. While a tool body runs, the lease of its claim is renewed, at intervals of tokio's clock.
    pub fn ledger(self, ledger: Ledger) -> Self {
        self.durable(Arc::new(ledger))
    }

    pub(crate) fn configured_ledger(&self) -> Option<&Ledger> {
        let durability: &dyn Any = &**self.durability()?;
        durability.downcast_ref()
    }

    /// The decisions that the ledger has recorded on the pending calls of a suspended turn, by this process or another,
    /// as answers to [resume](Self::resume) it with. Calls without a decision are left pending; without a ledger all
    /// calls are.
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger cannot be read.
    pub async fn decisions(&self, suspended: &SuspendedTurn) -> Result<DeferredToolResults, Error> {
        match self.configured_ledger() {
            Some(ledger) => decisions(ledger, suspended).await,
            None => Ok(suspended.requests().answer().leave_rest().unchecked()),
        }
    }

    /// Records answers as decisions in the ledger, without resuming the turn, so that they count before every call has
    /// its answer (rule L3). Answers that come after a recorded decision change nothing; [`decisions`](Self::decisions)
    /// tells what counts. Without a ledger nothing is recorded.
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails; some of the answers may be recorded. Answers to calls that are not
    /// pending are ignored.
    pub async fn decide(
        &self,
        suspended: &SuspendedTurn,
        answers: DeferredToolResults,
    ) -> Result<(), Error> {
        match self.configured_ledger() {
            Some(ledger) => decide(ledger, suspended, answers).await,
            None => Ok(()),
        }
    }

    /// The ledger's records of the pending calls, those of sub-agents too, each with the id of the call in
    /// [`requests`](SuspendedTurn::requests). Empty without a ledger.
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger cannot be read.
    pub async fn asks(&self, suspended: &SuspendedTurn) -> Result<Vec<(String, AskRecord)>, Error> {
        match self.configured_ledger() {
            Some(ledger) => asks(ledger, suspended).await,
            None => Ok(Vec::new()),
        }
    }
}

/// The records of the pending calls, and of those of the agents behind them, each with the id of its call.
async fn asks(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<Vec<(String, AskRecord)>, Error> {
    let mut found = Vec::new();
    let open = open_asks(suspended, ledger).into_iter();
    for OpenAsk { id, ask, .. } in open.filter(|open| open.kind.is_some()) {
        let Some(ask) = ask else { continue };
        let record = ledger.load_current(&ask).await.map_err(failed)?;
        found.extend(record.map(|record| (id, record)));
    }
    Ok(found)
}

/// The recorded decisions on the pending calls, and on those of the agents behind them; the other calls are left
/// pending.
async fn decisions(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<DeferredToolResults, Error> {
    let requests = suspended.requests();
    let mut answers = requests.answer().unchecked();
    for OpenAsk { id, ask, kind, .. } in open_asks(suspended, ledger) {
        let (Some(ask), Some(kind)) = (ask, kind) else { continue };
        if let Some(record) = ledger.load_current(&ask).await.map_err(failed)? {
            decided(&mut answers, (&id, kind), &record);
        }
    }
    let rest = requests.remaining(&answers).unwrap_or_default();
    Ok(rest.iter().fold(answers, |answers, call| answers.leave(call.id())))
}

/// Records answers as decisions without resuming the turn, as other calls of the response are still pending (rule L3).
async fn decide(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
    mut answers: DeferredToolResults,
) -> Result<(), Error> {
    let requests = suspended.requests();
    for OpenAsk { id, ask, kind, .. } in open_asks(suspended, ledger) {
        if let (Some(ask), Some(kind), Some(fingerprint)) = (ask, kind, requests.fingerprint(&id)) {
            record_answer(ledger, (&ask, fingerprint), (&id, kind), &mut answers).await?;
        }
    }
    Ok(())
}

/// Sets the answer of a call to the decision on its ask; a call without a decision gets none.
fn decided(
    answers: &mut DeferredToolResults,
    (id, kind): (&str, DeferralKind),
    record: &AskRecord,
) {
    let mut set = |answer: &Answer, by: &str| answers.set_answer(id, kind, answer, by);
    match (&record.decision, record.state) {
        // The deadline has passed. An expired ask with a decision is another case: its approval was too old when it was
        // claimed. That approval is given below, so that the next claim asks about the call anew (rule A8).
        (None, AskState::Expired) => set(&expired(), POLICY),
        (_, AskState::Cancelled) => set(&withdrawn(), POLICY),
        // Another worker executes the call, and settles it.
        (_, AskState::Claimed) => {}
        (Some(decision), _) => set(&decision.answer, &decision.by_line()),
        (None, AskState::Closed) => set(&closed(), POLICY),
        (None, _) => {}
    }
}

/// The denial of a call that got its result from another copy of the run's snapshot.
fn closed() -> Answer {
    Answer::deny("The request was closed before a decision was made.")
}

/// A suspended turn that is given up: its calls with an execution in the ledger are settled with what the ledger knows
/// of it. Also returns the ids of all asks to close.
pub(crate) async fn recorded(
    ledger: &Ledger,
    mut suspended: SuspendedTurn,
) -> Result<(SuspendedTurn, Vec<String>), Error> {
    let mut asks = Vec::new();
    for OpenAsk { id, ask, own, .. } in open_asks(&suspended, ledger) {
        let Some(ask) = ask else { continue };
        let record = ledger.load_current(&ask).await.map_err(failed)?;
        if let Some(outcome) = record.as_ref().and_then(came_of).filter(|_| own) {
            suspended.settle(&id, &outcome);
        }
        asks.push(ask);
    }
    asks.sort_unstable();
    asks.dedup();
    Ok((suspended, asks))
}

/// The outcome of an execution that was started, which is unknown where none is recorded; `None` when none was started.
///
/// For a run that is given up: what was started has an outcome or an unknown end, and the model must be told which.
fn came_of(record: &AskRecord) -> Option<Outcome> {
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

/// Makes an error of the ledger an error of the turn.
fn failed(error: LedgerError) -> Error {
    Error::Ledger(error.into())
}
