//! A turn with a ledger: what waits is written down before anybody is asked, answers are decisions, and executions are
//! claimed and settled (rules L2, L3).

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::asks::Requesters;
use super::resolve::Resolving;
use super::slot::{Slot, Waiting};
use super::together::call_path;
use crate::args::Args;
use crate::call::{
    AskHistory, Journal, JournalClaim, JournalToken, Journaled, RunInfo, ask_anew, ask_to_repeat,
};
use crate::decision::Question;
use crate::deferred::{DeferredToolResults, ToolApproval, ToolApproved};
use crate::error::{BoxError, ErrorKind, UserError};
use crate::gate::MAY_HAVE_RUN;
use crate::handler::is_policy;
use crate::ledger::{
    Ask, AskState, AskedCall, Claimed, Decided, Ledger, LedgerError, Millis, Renewed, Settled,
    Verdict,
};
use crate::outcome::{DeferralKind, Outcome, ToolDenied, ToolFailed};

/// Who decides, where a stack allows a call that is written down.
pub(super) const POLICY: &str = crate::handler::POLICY;

/// Who decided, where answers do not say.
const NOBODY: &str = "unnamed";

/// Why a call is asked about again whose end was not seen.
const MAY_HAVE_RUN_ALREADY: &str = "it may have run already";

/// What the model is told of a call that was answered where somebody had to approve it.
const NO_APPROVAL: &str = "It was answered, but what was asked for is an approval: it did not run.";

/// The ask of a call that waits. Its id is the same in every process.
pub(super) fn ask_of(info: &RunInfo, slot: &Slot, it: &Waiting, idempotent: bool) -> Ask {
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
        denied_before: it.denied_before.as_ref(),
    })
}

/// Makes the answer to a call a decision. Where somebody else has decided before, that decision takes its place.
pub(super) async fn decide(
    ledger: &Ledger,
    (ask, fingerprint): (&str, &str),
    call: (&str, DeferralKind),
    answers: &mut DeferredToolResults,
) -> Result<(), ErrorKind> {
    let id = call.0;
    let Some(verdict) = verdict(id, answers) else { return Ok(()) };
    let by = answers.answered_by.get(id).map_or(NOBODY, String::as_str).to_owned();
    let decided = match is_policy(Some(&by)) {
        true => ledger.decide_by_policy(ask, fingerprint, &by, verdict).await,
        false => ledger.decide(ask, fingerprint, &by, verdict).await,
    };
    match decided.map_err(failed)? {
        Decided::Won { .. } => {}
        Decided::Lost(winner) => {
            let by = winner.by.join(", ");
            tracing::info!(target: "countersign::answer", call = id, by, "somebody else has decided before");
            put(answers, call, &winner.decision, &by);
        }
        Decided::Recorded { .. } | Decided::NotAllowed | Decided::BlankName => leave(answers, id),
        Decided::Expired => put(answers, call, &expired(), POLICY),
        Decided::Cancelled => put(answers, call, &withdrawn(), POLICY),
        Decided::Mismatch { .. } | Decided::UnknownAsk => {
            return Err(UserError::AnswersForOtherBatch { ids: vec![id.to_owned()] }.into());
        }
    }
    Ok(())
}

pub(super) fn expired() -> Verdict {
    Verdict::Deny { message: "Nobody decided in time.".to_owned() }
}

pub(super) fn withdrawn() -> Verdict {
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

/// Puts a decision into the place of an answer. One that does not fit what was asked is a denial (rule D4): it stands,
/// and nobody can decide otherwise any more.
pub(super) fn put(
    answers: &mut DeferredToolResults,
    (id, kind): (&str, DeferralKind),
    verdict: &Verdict,
    by: &str,
) {
    leave(answers, id);
    answers.answered_by.insert(id.to_owned(), by.to_owned());
    if kind == DeferralKind::Approval {
        let approval = match verdict {
            Verdict::Approve { args } => ToolApproved { override_args: args.clone() }.into(),
            Verdict::Deny { message } => ToolDenied::new(message.clone()).into(),
            Verdict::Answer { .. } => ToolDenied::new(NO_APPROVAL).into(),
        };
        answers.approvals.insert(id.to_owned(), approval);
        return;
    }
    let unfit = |problem: &str| ToolFailed::new(problem).into();
    let result = match verdict {
        Verdict::Answer { value } => serde_json::from_value(value.clone())
            .unwrap_or_else(|_| unfit("The answer could not be read.")),
        Verdict::Deny { message } => unfit(message),
        Verdict::Approve { .. } => unfit("It was approved, but what was asked for is an answer."),
    };
    answers.calls.insert(id.to_owned(), result);
}

/// The ledger could not answer.
pub(super) fn failed(error: LedgerError) -> ErrorKind {
    ErrorKind::Ledger(error.into())
}

impl Resolving<'_> {
    /// Writes down what waits, before anybody is asked (rule L3), and notes which ask each call is. Where something else
    /// was written down for the call before a worker died, what waits now is asked under the next number (rule A1).
    pub(super) async fn park(&mut self) -> Result<(), ErrorKind> {
        let Some(ledger) = &self.turn.ledger else { return Ok(()) };
        let cx = self.turn.context();
        let mut requesters = Requesters::new(ledger, self.turn.ask_limits.max_pending);
        for slot in &mut self.slots {
            let newly_pending = std::mem::take(&mut slot.newly_pending);
            let leaf = self.together.definition(slot).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            while let Some(waiting) = slot.waiting() {
                let ask = ask_of(&self.turn.info, slot, waiting, idempotent);
                let ask = ledger.with_policy(&cx, ask);
                if newly_pending && let Some(full) = requesters.full(&ask).await.map_err(failed)? {
                    slot.deny_unasked("max_pending", full);
                    self.turn.info.asks.iter().for_each(AskHistory::answered);
                    slot.tell_result(&self.turn.watchers);
                    break;
                }
                let fingerprint = ask.fingerprint();
                let parked = ledger.park(ask).await.map_err(failed)?;
                let followed = slot.ask.replace(parked.ask.id().to_owned());
                slot.followed.extend(followed.filter(|before| before != parked.ask.id()));
                if parked.fingerprint == fingerprint {
                    break;
                }
                slot.next_deferral();
            }
        }
        Ok(())
    }

    /// Whether somebody has decided in the ledger that a call runs with these arguments.
    pub(super) async fn is_decided(&self, slot: &Slot, args: &Args) -> Result<bool, ErrorKind> {
        let (Some(ledger), Some(waiting)) = (&self.turn.ledger, slot.waiting()) else {
            return Ok(false);
        };
        let ask = ask_of(&self.turn.info, slot, waiting, false);
        let record = ledger.get(ask.id()).await.map_err(failed)?;
        Ok(record.is_some_and(|it| it.decision.is_some() && it.args_to_run() == args))
    }

    /// Makes every answer a decision, and every decision that somebody else has made before the answer.
    pub(super) async fn decide(&self, answers: &mut DeferredToolResults) -> Result<(), ErrorKind> {
        let Some(ledger) = &self.turn.ledger else { return Ok(()) };
        for slot in &self.slots {
            if let (Some(ask), Some(waiting)) = (&slot.ask, slot.waiting()) {
                let call = (slot.call.id(), waiting.deferral.kind);
                decide(ledger, (ask, &waiting.fingerprint), call, answers).await?;
            }
        }
        Ok(())
    }
}

/// Executions in a ledger.
pub(super) struct LedgerJournal(pub(super) Ledger);

impl LedgerJournal {
    /// The ask of a call that nobody was asked about, decided by the stack that has allowed it.
    async fn allowed(
        &self,
        call: &Journaled<'_>,
    ) -> Result<Result<String, JournalClaim>, LedgerError> {
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
            denied_before: None,
        });
        // The stack allows it anew each time that it is walked.
        let ask = ask.valid_for(None);
        let fingerprint = ask.fingerprint();
        let record = self.0.park(ask).await?;
        if record.fingerprint != fingerprint && record.state != AskState::Executed {
            let started = matches!(record.state, AskState::Claimed | AskState::Unknown);
            let why = "it was written down with other arguments before.";
            return Ok(Err(match started {
                true => {
                    JournalClaim::Unknown(format!("{MAY_HAVE_RUN} It was not run again: {why}"))
                }
                false => JournalClaim::Denied(why.to_owned()),
            }));
        }
        let id = record.ask.id().to_owned();
        let yes = Verdict::Approve { args: None };
        match self.0.decide_by_policy(&id, &record.fingerprint, POLICY, yes).await? {
            // Whatever came of it, claiming says so.
            Decided::Won { .. } | Decided::Lost(_) | Decided::Expired | Decided::Cancelled => {}
            other => {
                let decided = format!("{other:?}");
                tracing::warn!(target: "countersign::ledger", ask = id, decided, "that the stack allows a call was not recorded");
                let why = "that the stack allows it could not be recorded.";
                return Ok(Err(JournalClaim::Denied(why.to_owned())));
            }
        }
        Ok(Ok(id))
    }

    /// The question whether to run a call again whose end was not seen.
    async fn question(&self, ask: &str) -> Result<Question, LedgerError> {
        let claim = self.0.get(ask).await?.and_then(|record| record.claim);
        let claimed = claim.map_or_else(String::new, |claim| {
            let at = claim.at.map(|at| format!(" at {}", utc(at))).unwrap_or_default();
            format!(" Worker `{}` claimed it{at}.", claim.worker.escape_debug())
        });
        let reason = format!("{MAY_HAVE_RUN}{claimed} Run it again?");
        Ok(ask_to_repeat(ask, reason))
    }

    /// The question whether an approval still holds that was given then.
    async fn aged(&self, ask: &str, since: Millis, ran: bool) -> Result<Question, LedgerError> {
        let approved = format!("It was approved at {}, which is too long ago.", utc(since));
        if ran {
            let question = self.question(ask).await?;
            let reason = format!("{approved} {}", question.reason);
            return Ok(Question { reason, ..question });
        }
        Ok(ask_anew(ask, format!("{approved} Run it now?")))
    }

    async fn claim_it(&self, call: Journaled<'_>) -> Result<JournalClaim, LedgerError> {
        let asked = call.cx.approval().and_then(|approval| approval.ask.clone());
        let id = match asked {
            Some(id) => id,
            None => match self.allowed(&call).await? {
                Ok(id) => id,
                Err(refused) => return Ok(refused),
            },
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
            Claimed::Held { by, .. } if by == worker => JournalClaim::Unknown(
                "This call is being executed already, and its end was not seen: it may have run."
                    .to_owned(),
            ),
            Claimed::Held { by, .. } => JournalClaim::Unknown(format!(
                "Another worker (`{by}`) executes this call: it may have run."
            )),
            Claimed::Unknown if self.0.asks_before_repeating() => {
                JournalClaim::AskAgain(self.question(&id).await?, MAY_HAVE_RUN_ALREADY)
            }
            Claimed::Aged { since, may_have_run } => {
                let why =
                    if may_have_run { MAY_HAVE_RUN_ALREADY } else { "its approval is too old" };
                JournalClaim::AskAgain(self.aged(&id, since, may_have_run).await?, why)
            }
            Claimed::Unknown => JournalClaim::Unknown(MAY_HAVE_RUN.to_owned()),
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

/// A point of the store's time, for people.
fn utc(at: Millis) -> String {
    let (days, time) = (at.div_euclid(86_400_000), at.rem_euclid(86_400_000) / 1_000);
    // Years that begin in March, in eras of 400 years.
    let (era, day) = ((days + 719_468).div_euclid(146_097), (days + 719_468).rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_told_as_people_read_them() {
        for (at, says) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199_999, "2024-02-29 23:59:59 UTC"),
            (1_735_689_600_000, "2025-01-01 00:00:00 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(at), says);
        }
        assert!(utc(i64::MAX).ends_with("UTC") && utc(i64::MIN).ends_with("UTC"));
    }
}
