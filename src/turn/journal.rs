//! A turn with a ledger: what waits is written down before anybody is asked, answers are decisions, and executions are
//! claimed and settled (rules L2, L3).

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::resolve::Resolving;
use super::slot::{Slot, State, Waiting};
use super::suspended::SuspendedTurn;
use super::together::call_path;
use crate::call::{Journal, JournalClaim, JournalToken, Journaled, RunInfo};
use crate::deferred::{DeferredToolResults, ToolApproval, ToolApproved};
use crate::error::{BoxError, ErrorKind, UserError};
use crate::ledger::{
    Ask, AskState, AskedCall, Claimed, Decided, Ledger, LedgerDecision, LedgerError, Record,
    Renewed, Settled, Verdict,
};
use crate::outcome::{DeferralKind, Outcome, ToolDenied};

/// Who decides, where a stack allows a call that is written down.
const POLICY: &str = "policy";

/// Who decided, where answers do not say.
const NOBODY: &str = "unnamed";

/// The ask of a call that waits. Its id is the same in every process.
fn ask_of(info: &RunInfo, slot: &Slot, it: &Waiting, idempotent: bool) -> Ask {
    Ask::of_call(AskedCall {
        run: &info.run_id,
        response: info.response,
        path: call_path(&info.path, slot.call.id()),
        deferrals: it.deferrals,
        tool: slot.call.name(),
        identity: &it.tool,
        args: &it.shown,
        questions: &it.deferral.questions,
        kind: it.deferral.kind,
        metadata: &it.deferral.metadata,
        changed: it.deferral.changed(),
        idempotent,
    })
}

/// Makes the answer to a call a decision. Where somebody else has decided before, that decision takes its place.
async fn decide(
    ledger: &Ledger,
    (ask, fingerprint): (&str, &str),
    id: &str,
    answers: &mut DeferredToolResults,
) -> Result<(), ErrorKind> {
    let Some(verdict) = verdict(id, answers) else { return Ok(()) };
    let by = answers.answered_by.get(id).map_or(NOBODY, String::as_str).to_owned();
    match ledger.decide(ask, fingerprint, &by, verdict).await.map_err(failed)? {
        Decided::Won { .. } => {}
        Decided::Lost(winner) => {
            let by = winner.by.join(", ");
            tracing::info!(target: "countersign::answer", call = id, by, "somebody else has decided before");
            put(answers, id, &winner.decision, &by);
        }
        Decided::Recorded { .. } | Decided::NotAllowed => leave(answers, id),
        Decided::Expired => put(answers, id, &expired(), POLICY),
        Decided::Cancelled => put(answers, id, &withdrawn(), POLICY),
        Decided::Mismatch { .. } | Decided::UnknownAsk => {
            return Err(UserError::AnswersForOtherBatch { ids: vec![id.to_owned()] }.into());
        }
    }
    Ok(())
}

/// What is decided about an ask, as an answer to the call; nothing while it waits.
fn recorded(
    answers: &mut DeferredToolResults,
    id: &str,
    decision: Option<&LedgerDecision>,
    state: AskState,
) {
    match (decision, state) {
        (_, AskState::Expired) => put(answers, id, &expired(), POLICY),
        (_, AskState::Cancelled) => put(answers, id, &withdrawn(), POLICY),
        (Some(decision), _) => put(answers, id, &decision.verdict, &decision.by.join(", ")),
        (None, _) => {}
    }
}

fn expired() -> Verdict {
    Verdict::Deny { message: "Nobody decided in time.".to_owned() }
}

fn withdrawn() -> Verdict {
    Verdict::Deny { message: "The request was withdrawn.".to_owned() }
}

fn verdict(id: &str, answers: &DeferredToolResults) -> Option<Verdict> {
    if let Some(approval) = answers.approvals.get(id) {
        return Some(match approval {
            ToolApproval::Approved(approved) => {
                Verdict::Approve { args: approved.override_args.clone() }
            }
            ToolApproval::Denied(ToolDenied { message }) => {
                Verdict::Deny { message: message.clone() }
            }
        });
    }
    let value = serde_json::to_value(answers.calls.get(id)?).unwrap_or_default();
    Some(Verdict::Answer { value })
}

fn leave(answers: &mut DeferredToolResults, id: &str) {
    answers.approvals.remove(id);
    answers.calls.remove(id);
    answers.answered_by.remove(id);
}

fn put(answers: &mut DeferredToolResults, id: &str, verdict: &Verdict, by: &str) {
    let external = answers.calls.remove(id).is_some();
    answers.approvals.remove(id);
    answers.answered_by.insert(id.to_owned(), by.to_owned());
    match verdict {
        Verdict::Approve { args } => {
            let approved = ToolApproved { override_args: args.clone() };
            answers.approvals.insert(id.to_owned(), approved.into());
        }
        Verdict::Deny { message } if external => {
            let failed = crate::outcome::ToolFailed::new(message.clone());
            answers.calls.insert(id.to_owned(), failed.into());
        }
        Verdict::Deny { message } => {
            answers.approvals.insert(id.to_owned(), ToolDenied::new(message.clone()).into());
        }
        Verdict::Answer { value } => {
            if let Ok(result) = serde_json::from_value(value.clone()) {
                answers.calls.insert(id.to_owned(), result);
            }
        }
    }
}

/// The ledger could not answer.
fn failed(error: LedgerError) -> ErrorKind {
    ErrorKind::Ledger(error.into())
}

impl Resolving<'_> {
    /// Writes down what waits, before anybody is asked (rule L3), and notes which ask each call is.
    pub(super) async fn park(&mut self) -> Result<(), ErrorKind> {
        let Some(ledger) = &self.turn.ledger else { return Ok(()) };
        let cx = self.turn.context();
        for slot in &mut self.slots {
            let leaf = self.together.definition(slot).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            let Some(waiting) = slot.waiting() else { continue };
            let ask = ask_of(&self.turn.info, slot, waiting, idempotent);
            let ask = ledger.park(ledger.with_policy(&cx, ask)).await.map_err(failed)?.ask;
            slot.ask = Some(ask.id().to_owned());
        }
        Ok(())
    }

    /// Makes every answer a decision, and every decision that somebody else has made before the answer.
    pub(super) async fn decide(&self, answers: &mut DeferredToolResults) -> Result<(), ErrorKind> {
        let Some(ledger) = &self.turn.ledger else { return Ok(()) };
        for slot in &self.slots {
            if let (Some(ask), Some(waiting)) = (&slot.ask, slot.waiting()) {
                decide(ledger, (ask, &waiting.fingerprint), slot.call.id(), answers).await?;
            }
        }
        Ok(())
    }

    /// Closes the asks of calls that have got their result without running.
    pub(super) async fn close_asks(&self) -> Result<(), ErrorKind> {
        let Some(ledger) = &self.turn.ledger else { return Ok(()) };
        for slot in &self.slots {
            let settled = matches!(slot.state, State::Settled(_)) && !slot.execution.started();
            if let Some(ask) = slot.ask.as_ref().filter(|_| settled) {
                ledger.close(ask).await.map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// What the ledger says about the calls that wait; what is not decided is left.
pub(super) async fn decisions(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<DeferredToolResults, ErrorKind> {
    let requests = suspended.requests();
    let mut answers = requests.answer().unchecked();
    for (id, record) in asks(ledger, suspended).await? {
        recorded(&mut answers, &id, record.decision.as_ref(), record.state);
    }
    let rest = requests.remaining(&answers).unwrap_or_default();
    Ok(rest.iter().fold(answers, |answers, call| answers.leave(call.id())))
}

/// The asks of the calls that wait, and of those of the agents behind them, by the ids of the calls.
pub(super) async fn asks(
    ledger: &Ledger,
    suspended: &SuspendedTurn,
) -> Result<Vec<(String, Record)>, ErrorKind> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), suspended.clone())];
    while let Some((prefix, turn)) = open.pop() {
        let info = RunInfo {
            run_id: turn.run_id().to_owned(),
            response: turn.response(),
            path: turn.path().to_vec(),
            ..RunInfo::default()
        };
        for slot in turn.slots() {
            let id = format!("{prefix}{}", slot.call.id());
            if let Some(child) = slot.child.run.as_ref().and_then(|run| run.turn()) {
                open.push((super::child::prefix(&id), child.clone()));
            }
            let Some(waiting) = slot.waiting() else { continue };
            let ask = ask_of(&info, &slot, waiting, false);
            let record = ledger.get(ask.id()).await.map_err(failed)?;
            found.extend(record.map(|record| (id, record)));
        }
    }
    Ok(found)
}

/// Executions in a ledger.
pub(super) struct LedgerJournal(pub(super) Ledger);

impl LedgerJournal {
    /// The ask of a call that nobody was asked about, decided by the stack that has allowed it.
    async fn allowed(&self, call: &Journaled<'_>) -> Result<String, LedgerError> {
        let (cx, empty) = (call.cx, Map::<String, Value>::new());
        let info = cx.run();
        let ask = Ask::of_call(AskedCall {
            run: &info.run_id,
            response: info.response,
            path: call_path(&info.path, cx.tool_call_id().unwrap_or_default()),
            deferrals: 0,
            tool: cx.tool_name().unwrap_or_default(),
            identity: call.identity,
            args: call.args,
            questions: &[],
            kind: DeferralKind::Approval,
            metadata: &empty,
            changed: None,
            idempotent: call.idempotent,
        });
        let record = self.0.park(ask).await?;
        let id = record.ask.id().to_owned();
        let yes = Verdict::Approve { args: None };
        self.0.decide(&id, &record.fingerprint, POLICY, yes).await?;
        Ok(id)
    }

    async fn claim_it(&self, call: Journaled<'_>) -> Result<JournalClaim, LedgerError> {
        let asked = call.cx.approval().and_then(|approval| approval.ask.clone());
        let id = match asked {
            Some(id) => id,
            None => self.allowed(&call).await?,
        };
        let (worker, lease) = (self.0.get_worker(), self.0.get_lease());
        Ok(match self.0.claim(&id, worker, lease).await? {
            Claimed::Claimed { token } => JournalClaim::Go(JournalToken { id, token }),
            Claimed::Settled { outcome } => match serde_json::from_value(outcome) {
                Ok(outcome) => JournalClaim::Recorded(outcome),
                Err(_) => JournalClaim::Unknown(
                    "The tool has run, and what came of it cannot be read.".into(),
                ),
            },
            Claimed::Held { by, .. } => JournalClaim::Unknown(format!(
                "Another worker (`{by}`) executes this call: it may have run."
            )),
            Claimed::Unknown => JournalClaim::Unknown(crate::gate::MAY_HAVE_RUN.to_owned()),
            Claimed::NotDecided | Claimed::UnknownAsk => {
                JournalClaim::Denied("nobody has decided about it.".to_owned())
            }
            Claimed::Denied { state } => JournalClaim::Denied(format!(
                "its approval does not hold any more ({}).",
                state.as_str()
            )),
        })
    }
}

impl Journal for LedgerJournal {
    fn claim<'a>(&'a self, call: Journaled<'a>) -> BoxFuture<'a, Result<JournalClaim, BoxError>> {
        Box::pin(async move { self.claim_it(call).await.map_err(Into::into) })
    }

    fn renew<'a>(&'a self, claimed: &'a JournalToken) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            match self.0.renew(&claimed.id, claimed.token, self.0.get_lease()).await? {
                Renewed::Renewed { .. } => Ok(()),
                Renewed::StaleToken | Renewed::UnknownAsk => {
                    Err("the claim is no longer ours".into())
                }
            }
        })
    }

    fn settle<'a>(
        &'a self,
        claimed: &'a JournalToken,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Outcome, BoxError>> {
        Box::pin(async move {
            let settled = if outcome.is_deferred() {
                self.0.release(&claimed.id, claimed.token).await?
            } else {
                let recorded = serde_json::to_value(outcome)?;
                self.0.settle(&claimed.id, claimed.token, recorded).await?
            };
            match settled {
                Settled::Settled { outcome: recorded, .. } if !outcome.is_deferred() => {
                    Ok(serde_json::from_value(recorded)?)
                }
                Settled::Settled { .. } => Ok(outcome.clone()),
                Settled::StaleToken | Settled::UnknownAsk => Ok(Outcome::unknown(
                    "The tool ran, and another worker had taken the call over by then.",
                )),
            }
        })
    }

    fn lease(&self) -> Duration {
        self.0.get_lease()
    }
}
