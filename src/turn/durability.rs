//! The durable store of a turn: pending calls, answers and executions, for other processes, and for this one after a
//! crash (rules L1 to L5). A turn without such a store has only its call records.
//!
//! The turn knows this trait and no store; the ledger, which stands above the turn, implements it. Every method may be
//! called again with the same input after a crash, and then has the same result:
//!
//! | method | called | a second time |
//! |---|---|---|
//! | `park` | before anyone is asked | finds the ask |
//! | `grant` | before a new call is parked | finds the decision |
//! | `record` | before an answer takes effect | says which answer counts |
//! | `close` | when the results are saved | changes nothing |
//!
//! A store that fails here ends the response with [`Error::Ledger`]: what could not be recorded has not happened, and
//! the state in the error can be resumed.

use std::any::Any;
use std::collections::BTreeMap;

use futures::future::BoxFuture;

use super::ids::prefix;
use super::snapshot::{StoredState, SuspendedRun, SuspendedTurn};
use crate::args::Args;
use crate::call::{ExecutionJournal, RunContext};
use crate::deferred::{Answer, CallAddress, DeferredToolResults, PendingCall};
use crate::error::{AnswerError, BoxError, Error};
use crate::outcome::DeferralKind;

/// Stores pending calls and their answers, each as an ask with an id. Executions are stored through the supertrait
/// [`ExecutionJournal`], the only part that a gate uses.
pub(crate) trait Durability: ExecutionJournal + Any {
    /// The id of the ask of a call that is deferred for the n-th time: the same in every process.
    fn ask_id(&self, address: CallAddress<'_>, deferrals: u32) -> String;

    /// Stores a pending call, before people are asked (rule L3).
    fn park<'a>(
        &'a self,
        call: Parking<'a>,
        shares: &'a mut Shares,
    ) -> BoxFuture<'a, Result<ParkResult, BoxError>>;

    /// Answers a new call by an answer that a person gave in advance, if there is one for it: the call is stored as an
    /// ask that is decided already, so that it is never pending (rule G2).
    fn grant<'a>(&'a self, call: Parking<'a>) -> BoxFuture<'a, Result<Option<Granted>, BoxError>>;

    /// Records an answer to the call that was shown under this fingerprint. The result says which answer counts, as
    /// another one may have been recorded before.
    fn record<'a>(
        &'a self,
        ask: &'a str,
        fingerprint: &'a str,
        answer: Answer,
        by: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Recorded, BoxError>>;

    /// The arguments that a decided call runs with; `None` while there is no decision.
    fn decided_args<'a>(&'a self, ask: &'a str) -> BoxFuture<'a, Result<Option<Args>, BoxError>>;

    /// Closes the asks of calls that have got their results, all or none (rule L5).
    fn close<'a>(&'a self, asks: &'a [String]) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Returns `true` if both write to the same store, so that one transaction can close the asks of both.
    fn shares_store_with(&self, other: &dyn Durability) -> bool;
}

/// A pending call that is to be stored.
pub(crate) struct Parking<'a> {
    pub(crate) cx: &'a RunContext,
    pub(crate) address: CallAddress<'a>,
    /// The name of the tool as the model and people know it.
    pub(crate) tool: &'a str,
    pub(crate) pending: &'a PendingCall,
    pub(crate) idempotent: bool,
    /// `true` if the call was deferred just now. Only a new call can be refused because its requester has too many.
    pub(crate) is_new: bool,
}

/// A call that an answer in advance has approved.
pub(crate) struct Granted {
    /// The id of the ask.
    pub(crate) ask: String,
    /// The grant and its makers, as they are shown: `by grant G of ann, 2026-11-20`.
    pub(crate) by: String,
}

/// The result of storing a pending call.
pub(crate) enum ParkResult {
    /// The call is stored as the ask with this id.
    Same(String),
    /// The ask with this id has another fingerprint: a worker stored it and died before it saved the run.
    Other(String),
    /// The call is not stored: the requester has the maximum of pending calls.
    Full,
    /// The call is not stored: the host's policy for asks has panicked, and who may decide is not known.
    NoPolicy,
}

/// The number of pending calls of each requester: counted once per batch, and incremented for each call of the batch.
pub(crate) struct Shares {
    pub(crate) max: u32,
    pub(crate) pending: BTreeMap<String, usize>,
}

/// The decision that counts after an answer was recorded.
pub(crate) enum Recorded {
    /// The given answer counts.
    Given,
    /// Another answer was recorded before, by these people, and counts.
    Other { answer: Answer, by: String },
    /// There is no decision yet: more people have to agree, or this person may not decide.
    Pending,
    /// The answer is for another fingerprint than that of the ask, and was not recorded.
    Mismatch,
}

/// Records the answer to a call as a decision. If another decision counts, it replaces the answer.
///
/// | the store says | the answer at hand |
/// |---|---|
/// | given | counts |
/// | another was recorded before | is replaced by that one, with its name |
/// | pending: more people have to agree | is removed: the call stays pending |
/// | mismatch | is an error: it was given to something else |
pub(crate) async fn record_answer(
    durability: &dyn Durability,
    (ask, fingerprint): (&str, &str),
    (id, kind): (&str, DeferralKind),
    answers: &mut DeferredToolResults,
) -> Result<(), Error> {
    let Some(answer) = answers.answer_to(id) else { return Ok(()) };
    let by = answers.answered_by.get(id).map(String::as_str);
    match durability.record(ask, fingerprint, answer, by).await.map_err(Error::Ledger)? {
        Recorded::Given => {}
        Recorded::Other { answer, by } => answers.set_answer(id, kind, &answer, &by),
        Recorded::Pending => answers.remove_answer(id),
        Recorded::Mismatch => {
            return Err(AnswerError::OtherBatch { ids: vec![id.to_owned()] }.into());
        }
    }
    Ok(())
}

/// A call without an outcome, of a response or of an agent behind one of its calls, and the ask of that call.
pub(crate) struct OpenAsk {
    /// The id of the call in the batch of the whole response.
    pub(crate) id: String,
    pub(crate) ask: Option<String>,
    /// The kind of answer that the call is pending for, if it is pending.
    pub(crate) kind: Option<DeferralKind>,
    /// `true` if it is a call of the response itself, and not of an agent.
    pub(crate) own: bool,
}

/// The calls without outcomes, with those of the agents behind them, each with its ask.
///
/// We walk the agents with a list instead of recursion, as agents nest, and a stored state may come from a run
/// with a higher limit.
pub(crate) fn open_asks(suspended: &SuspendedTurn, durability: &dyn Durability) -> Vec<OpenAsk> {
    let mut found = Vec::new();
    let mut turns = vec![(String::new(), suspended)];
    while let Some((before, turn)) = turns.pop() {
        for stored in &turn.0.calls {
            let own_id = stored.call.id();
            let id = format!("{before}{own_id}");
            let behind = stored.agent.as_deref().and_then(SuspendedRun::turn);
            turns.extend(behind.map(|behind| (prefix(&id), behind)));
            let (ask, kind) = match &stored.state {
                StoredState::Settled(_) => continue,
                StoredState::Pending(pending) => {
                    let (run_id, response) = (turn.run_id(), turn.response());
                    let address = CallAddress::new(run_id, response, turn.path(), own_id);
                    let ask = durability.ask_id(address, pending.deferrals);
                    (Some(ask), Some(pending.kind))
                }
                StoredState::Delegated(plan) | StoredState::Planned(plan) => {
                    (plan.approval.as_ref().and_then(|approval| approval.ask.clone()), None)
                }
            };
            found.push(OpenAsk { id, ask, kind, own: before.is_empty() });
        }
    }
    found
}
