//! Where a turn keeps its pending calls, the answers to them and the executions, so that other processes find them, and
//! this one after a crash (rules L1 to L5). A turn without it has only its own call records.

use std::any::Any;
use std::collections::BTreeMap;

use futures::future::BoxFuture;

use super::ids::prefix;
use super::snapshot::{StoredState, SuspendedRun, SuspendedTurn};
use crate::args::Args;
use crate::call::{Journal, RunContext};
use crate::deferred::{Answer, CallAddress, DeferredToolResults, PendingCall};
use crate::error::{BoxError, ErrorKind, UserError};
use crate::outcome::DeferralKind;

/// Keeps pending calls and the answers to them, each as an ask with an id of its own. Executions are its part as a
/// [`Journal`], which is all that a gate sees of it.
pub(crate) trait Durability: Journal + Any {
    /// The id of the ask of a call that is deferred for the n-th time: the same in every process.
    fn ask_id(&self, address: CallAddress<'_>, deferrals: u32) -> String;

    /// Writes a pending call down, before people are asked (rule L3).
    fn park<'a>(
        &'a self,
        call: Parking<'a>,
        shares: &'a mut Shares,
    ) -> BoxFuture<'a, Result<ParkResult, BoxError>>;

    /// Records an answer to what was shown under this fingerprint, and gives what counts.
    fn record<'a>(
        &'a self,
        ask: &'a str,
        fingerprint: &'a str,
        answer: Answer,
        by: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Recorded, BoxError>>;

    /// The arguments that a call runs with, once it is decided.
    fn decided_args<'a>(&'a self, ask: &'a str) -> BoxFuture<'a, Result<Option<Args>, BoxError>>;

    /// Closes the asks of calls that have got their results, all or none (rule L5).
    fn close<'a>(&'a self, asks: &'a [String]) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Whether both write to the same store.
    fn is_beside(&self, other: &dyn Durability) -> bool;
}

/// A pending call that is to be written down.
pub(crate) struct Parking<'a> {
    pub(crate) cx: &'a RunContext,
    pub(crate) address: CallAddress<'a>,
    /// The tool, by the name that people know.
    pub(crate) tool: &'a str,
    pub(crate) pending: &'a PendingCall,
    pub(crate) idempotent: bool,
    /// Nobody was asked about it yet: it counts for the share of its requester.
    pub(crate) is_new: bool,
}

/// Whether a pending call was written down.
pub(crate) enum ParkResult {
    /// It stands under this id.
    Same(String),
    /// Something else stands under this id, from before a worker died.
    Other(String),
    /// Its requester has as many pending calls as one may have.
    Full,
}

/// How many calls of each requester are pending, as far as a batch has counted them.
pub(crate) struct Shares {
    pub(crate) max: u32,
    pub(crate) pending: BTreeMap<String, usize>,
}

/// What counts, after an answer was recorded.
pub(crate) enum Recorded {
    /// The answer.
    Given,
    /// Another one, by these people.
    Other { answer: Answer, by: String },
    /// None yet: others have to agree, or this person may not decide.
    Pending,
    /// None: the answer is to something else than what is asked.
    Mismatch,
}

/// Makes the answer to a call a decision. Where another one counts, that one takes its place.
pub(crate) async fn record_answer(
    durability: &dyn Durability,
    (ask, fingerprint): (&str, &str),
    (id, kind): (&str, DeferralKind),
    answers: &mut DeferredToolResults,
) -> Result<(), ErrorKind> {
    let Some(answer) = answers.answer_to(id) else { return Ok(()) };
    let by = answers.answered_by.get(id).map(String::as_str);
    match durability.record(ask, fingerprint, answer, by).await.map_err(ErrorKind::Ledger)? {
        Recorded::Given => {}
        Recorded::Other { answer, by } => answers.set_answer(id, kind, &answer, &by),
        Recorded::Pending => answers.remove_answer(id),
        Recorded::Mismatch => {
            return Err(UserError::AnswersForOtherBatch { ids: vec![id.to_owned()] }.into());
        }
    }
    Ok(())
}

/// The ask of a call of a response, or of an agent behind one of its calls.
pub(crate) struct OpenAsk {
    /// The id of the call in the batch of the whole response.
    pub(crate) id: String,
    pub(crate) ask: Option<String>,
    /// What the call is pending for, if it is.
    pub(crate) kind: Option<DeferralKind>,
    /// It is a call of the response itself.
    pub(crate) own: bool,
}

impl SuspendedTurn {
    /// The calls without outcomes, those of the agents behind them too, each with its ask.
    pub(crate) fn open_asks(&self, durability: &dyn Durability) -> Vec<OpenAsk> {
        let mut found = Vec::new();
        let mut turns = vec![(String::new(), self)];
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
}
