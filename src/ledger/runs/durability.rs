//! A turn with a ledger: pending calls are parked before people are asked, answers are recorded as decisions, and
//! executions are claimed and settled (rules L2, L3).
//!
//! # A claim, and what becomes of the call
//!
//! | [`Claimed`] | the gate |
//! |---|---|
//! | claimed | runs the body under the token |
//! | settled | returns the recorded outcome |
//! | held by another worker | "may have run": that worker executes it now |
//! | unknown, [`Ledger::ask_before_repeating`] | asks a person whether to run it again |
//! | unknown, otherwise | "may have run" |
//! | aged, outvoted, void | asks anew, saying why (rules A8, L1, G2) |
//! | not decided, denied | "did not run", saying why |
//!
//! # Calls that no person was asked about
//!
//! We record the calls of a tool that is declared journaled, too. We park the ask of such a call and approve it in the
//! name of the policy, in one transaction, so that no surface shows it as pending. Then it is claimed like any other.
//! Its approval does not age, as the stack allows the call anew in each pass. If the same call was recorded before with
//! other arguments, it does not run: two different executions would share one address.
//!
//! # Who is named
//!
//! An answer without a name is recorded as `unnamed`, which is a name like any other: it counts as one person, so that
//! two unnamed answers never make a quorum of two.

use std::any::Any;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::args::Args;
use crate::call::{
    ExecutionJournal, JournalClaim, JournalToken, JournaledCall, ask_anew, ask_to_repeat,
};
use crate::decision::Question;
use crate::deferred::{Answer, CallAddress, PendingCall};
use crate::error::BoxError;
use crate::gate::MAY_HAVE_RUN;
use crate::handler::{POLICY, is_policy};
use crate::ledger::asks::ask::{Ask, Millis, utc};
use crate::ledger::asks::record::AskState;
use crate::ledger::asks::results::{Claimed, Decided, Renewed, Settled};
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::outcome::{Deferral, Outcome};
use crate::turn::{Durability, Granted, ParkResult, Parking, Recorded, Shares};

/// The name that is recorded for an answer that does not say whose it is.
const UNNAMED: &str = "unnamed";

/// The reason why a call is asked about again whose earlier execution has an unknown end.
const MAY_HAVE_RUN_ALREADY: &str = "it may have run already";

impl Durability for Ledger {
    fn ask_id(&self, address: CallAddress<'_>, deferrals: u32) -> String {
        crate::ledger::asks::ask::id(address.run_id, address.response, &address.path, deferrals)
    }

    fn park<'a>(
        &'a self,
        call: Parking<'a>,
        shares: &'a mut Shares,
    ) -> BoxFuture<'a, Result<ParkResult, BoxError>> {
        Box::pin(async move {
            let Parking { cx, address, tool, pending, idempotent, is_new } = call;
            let ask = Ask::of_call(address, tool, pending, idempotent);
            let ask = match self.with_policy(cx, ask.clone()) {
                Ok(ask) => ask,
                // Parking it again changes nothing: the ask in the store has its policy.
                Err(_) if self.get(ask.id()).await?.is_some() => ask,
                Err(_) => return Ok(ParkResult::NoPolicy),
            };
            if is_new && is_full(self, &ask, shares).await? {
                return Ok(ParkResult::Full);
            }
            let fingerprint = ask.fingerprint();
            let parked = self.park(ask).await?;
            let id = parked.ask.id().to_owned();
            let same = parked.fingerprint == fingerprint;
            Ok(if same { ParkResult::Same(id) } else { ParkResult::Other(id) })
        })
    }

    fn grant<'a>(&'a self, call: Parking<'a>) -> BoxFuture<'a, Result<Option<Granted>, BoxError>> {
        Box::pin(async move {
            let Parking { cx, address, tool, pending, idempotent, .. } = call;
            let agent = cx.agent_path();
            let ask = Ask::of_call(address, tool, pending, idempotent);
            // The call is denied when it is parked.
            let Ok(ask) = self.with_policy(cx, ask) else { return Ok(None) };
            let record = self.answer_in_scope(&ask, &agent).await?;
            Ok(record.and_then(|record| {
                let by = record.decision.as_ref()?.by_line();
                Some(Granted { ask: record.ask.id().to_owned(), by })
            }))
        })
    }

    fn record<'a>(
        &'a self,
        ask: &'a str,
        fingerprint: &'a str,
        answer: Answer,
        by: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Recorded, BoxError>> {
        Box::pin(async move {
            let by_policy = |answer| Recorded::Other { answer, by: POLICY.to_owned() };
            let by = by.unwrap_or(UNNAMED);
            let decided = match is_policy(by) {
                true => self.decide_by_policy(ask, fingerprint, by, answer).await,
                false => self.decide(ask, fingerprint, by, answer).await,
            };
            Ok(match decided? {
                Decided::Won { .. } => Recorded::Given,
                Decided::Lost(winner) => {
                    let by = winner.by.join(", ");
                    tracing::info!(target: "countersign::answer", ask, by, "another decision was recorded before");
                    Recorded::Other { answer: winner.decision, by }
                }
                Decided::Recorded { .. }
                | Decided::NotAllowed
                | Decided::BlankName
                | Decided::OthersDecide
                | Decided::Unapprovable(_) => Recorded::Pending,
                Decided::Expired => by_policy(expired()),
                Decided::Cancelled => by_policy(withdrawn()),
                Decided::Mismatch { .. } | Decided::UnknownAsk => Recorded::Mismatch,
            })
        })
    }

    fn decided_args<'a>(&'a self, ask: &'a str) -> BoxFuture<'a, Result<Option<Args>, BoxError>> {
        Box::pin(async move {
            let record = self.get(ask).await?.filter(|record| record.decision.is_some());
            Ok(record.map(|record| record.args_to_run().clone()))
        })
    }

    fn close<'a>(&'a self, asks: &'a [String]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.close_all(asks).await?) })
    }

    fn shares_store_with(&self, other: &dyn Durability) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref().is_some_and(|other| Self::shares_store_with(self, other))
    }
}

/// The answer to a call whose ask has expired.
pub(in crate::ledger) fn expired() -> Answer {
    Answer::deny("No decision was made in time.")
}

pub(super) fn withdrawn() -> Answer {
    Answer::deny("The request was withdrawn.")
}

/// Parks the ask of a call that the stack has allowed without asking a person, approves it as a policy, and returns
/// its id. The inner error is the claim's result where the call must not run.
async fn allowed(
    ledger: &Ledger,
    call: &JournaledCall<'_>,
) -> Result<Result<String, JournalClaim>, LedgerError> {
    let address = CallAddress::new(call.run_id, call.response, call.path, call.call_id);
    let (identity, args) = (call.identity.to_owned(), call.args.clone());
    let nothing = Deferral::approval(Vec::new());
    let pending = PendingCall::new(&address, identity, nothing, (args.clone(), args), 0);
    let ask = Ask::of_call(address, call.tool, &pending, call.idempotent);
    // An approval by the stack does not age: each pass allows the call anew.
    let ask = ask.with_valid_for(None);
    let fingerprint = ask.fingerprint();
    let (record, decided) = ledger.park_allowed(ask).await?;
    let id = record.ask.id().to_owned();
    if record.fingerprint != fingerprint {
        if record.state == AskState::Executed {
            return Ok(Ok(id));
        }
        let started = matches!(record.state, AskState::Claimed | AskState::Unknown);
        let why = "it was recorded with other arguments before.";
        return Ok(Err(match started {
            true => JournalClaim::Unknown(format!("{MAY_HAVE_RUN} It was not run again: {why}")),
            false => JournalClaim::Denied(why.to_owned()),
        }));
    }
    match decided {
        // The ask has a decision or is over already: the claim that follows finds out whether the call may run.
        Decided::Won { .. } | Decided::Lost(_) | Decided::Expired | Decided::Cancelled => {}
        other => {
            let decided = format!("{other:?}");
            tracing::warn!(target: "countersign::ledger", ask = id, decided, "the approval of an allowed call was not recorded");
            let why = "its approval by the stack could not be recorded.";
            return Ok(Err(JournalClaim::Denied(why.to_owned())));
        }
    }
    Ok(Ok(id))
}

/// The question whether to run a call again whose earlier execution has an unknown end.
async fn question(ledger: &Ledger, ask: &str) -> Result<Question, LedgerError> {
    let claim = ledger.get(ask).await?.and_then(|record| record.claim);
    let claimed = claim.map_or_else(String::new, |claim| {
        let at = claim.at.map(|at| format!(" at {}", utc(at))).unwrap_or_default();
        format!(" Worker `{}` claimed it{at}.", claim.worker.escape_debug())
    });
    let reason = format!("{MAY_HAVE_RUN}{claimed} Run it again?");
    Ok(ask_to_repeat(ask, reason))
}

/// The question whether to run a call now whose approval, given at `since`, is too old. `ran` says whether an
/// earlier execution was started.
async fn aged(
    ledger: &Ledger,
    ask: &str,
    since: Millis,
    ran: bool,
) -> Result<Question, LedgerError> {
    let approved = format!("It was approved at {}, which is too long ago.", utc(since));
    if ran {
        let question = question(ledger, ask).await?;
        let reason = format!("{approved} {}", question.reason());
        return Ok(question.with_reason(reason));
    }
    Ok(ask_anew(ask, format!("{approved} Run it now?")))
}

/// The question whether to run a call now whose grant does not hold any more.
async fn void(ledger: &Ledger, ask: &str, grant: &str, ran: bool) -> Result<Question, LedgerError> {
    let void = format!("It was approved by grant {grant}, which does not hold any more.");
    if ran {
        let question = question(ledger, ask).await?;
        let reason = format!("{void} {}", question.reason());
        return Ok(question.with_reason(reason));
    }
    Ok(ask_anew(ask, format!("{void} Run it now?")))
}

/// The question whether to run a call now which people have approved who may not approve it any more.
async fn outvoted(ledger: &Ledger, ask: &str, ran: bool) -> Result<Question, LedgerError> {
    let left = "It was approved by people of whom one may not approve it any more.";
    if ran {
        let question = question(ledger, ask).await?;
        let reason = format!("{left} {}", question.reason());
        return Ok(question.with_reason(reason));
    }
    Ok(ask_anew(ask, format!("{left} Run it now?")))
}

async fn claim_it(ledger: &Ledger, call: JournaledCall<'_>) -> Result<JournalClaim, LedgerError> {
    let asked = call.approval.and_then(|approval| approval.ask.clone());
    let id = match asked {
        Some(id) => id,
        None => match allowed(ledger, &call).await? {
            Ok(id) => id,
            Err(refused) => return Ok(refused),
        },
    };
    let (worker, lease) = (ledger.worker_name(), ledger.configured_lease());
    Ok(match ledger.claim(&id, worker, lease).await? {
        Claimed::Claimed { token } => JournalClaim::Go(JournalToken { id, token }),
        Claimed::Settled { outcome } => match serde_json::from_value(outcome) {
            Ok(outcome) => JournalClaim::Recorded(outcome),
            Err(_) => {
                JournalClaim::Unknown("The tool has run, and its outcome cannot be read.".into())
            }
        },
        Claimed::Held { by, .. } if by == worker => JournalClaim::Unknown(
            "This call is being executed already, and its end was not seen: it may have run."
                .to_owned(),
        ),
        Claimed::Held { by, .. } => JournalClaim::Unknown(format!(
            "Another worker (`{by}`) executes this call: it may have run."
        )),
        Claimed::Unknown if ledger.asks_before_repeating() => {
            JournalClaim::AskAgain(question(ledger, &id).await?, MAY_HAVE_RUN_ALREADY)
        }
        Claimed::Aged { since, may_have_run } => {
            let why = if may_have_run { MAY_HAVE_RUN_ALREADY } else { "its approval is too old" };
            JournalClaim::AskAgain(aged(ledger, &id, since, may_have_run).await?, why)
        }
        Claimed::Outvoted { may_have_run } => {
            let why = if may_have_run {
                MAY_HAVE_RUN_ALREADY
            } else {
                "those who approved it may not any more"
            };
            JournalClaim::AskAgain(outvoted(ledger, &id, may_have_run).await?, why)
        }
        Claimed::Void { grant, may_have_run } => {
            let why = if may_have_run {
                MAY_HAVE_RUN_ALREADY
            } else {
                "its grant does not hold any more"
            };
            JournalClaim::AskAgain(void(ledger, &id, &grant, may_have_run).await?, why)
        }
        Claimed::Unknown => JournalClaim::Unknown(MAY_HAVE_RUN.to_owned()),
        Claimed::NotDecided | Claimed::UnknownAsk => {
            JournalClaim::Denied("it has no decision.".to_owned())
        }
        Claimed::Denied { state } => JournalClaim::Denied(format!(
            "its approval does not hold any more ({}).",
            state.as_str()
        )),
    })
}

/// Returns whether the requester of a new ask has too many pending ones already; if not, the ask is counted. An ask
/// that another worker has parked already is not new.
///
/// We read the number once per batch and increment it here: a batch of a thousand calls would otherwise count the
/// pending asks a thousand times. Another worker may park at the same moment, and then the size of one batch may
/// exceed the limit. The limit is there against floods, and not an exact bound.
async fn is_full(ledger: &Ledger, ask: &Ask, shares: &mut Shares) -> Result<bool, LedgerError> {
    let Some(requester) = ask.principal() else { return Ok(false) };
    let pending = match shares.pending.get(requester) {
        Some(pending) => *pending,
        None => ledger.pending_of(requester).await?,
    };
    if crate::ledger::share::is_over(ledger, ask, pending, shares.max).await? {
        return Ok(true);
    }
    shares.pending.insert(requester.to_owned(), pending.saturating_add(1));
    Ok(false)
}

impl ExecutionJournal for Ledger {
    fn claim<'a>(
        &'a self,
        call: JournaledCall<'a>,
    ) -> BoxFuture<'a, Result<JournalClaim, BoxError>> {
        Box::pin(async move { claim_it(self, call).await.map_err(Into::into) })
    }

    fn renew<'a>(&'a self, claimed: &'a JournalToken) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            match self.renew(&claimed.id, claimed.token, self.configured_lease()).await? {
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
                self.release(&claimed.id, claimed.token).await?
            } else {
                let recorded = serde_json::to_value(outcome.bounded())?;
                self.settle(&claimed.id, claimed.token, recorded).await?
            };
            match settled {
                Settled::Settled { outcome: recorded, again: true } if !outcome.is_deferred() => {
                    Ok(serde_json::from_value(recorded)?)
                }
                Settled::Settled { .. } => Ok(outcome.clone()),
                Settled::StaleToken | Settled::UnknownAsk => Ok(Outcome::unknown(
                    "The tool ran, but another worker had taken the call over.",
                )),
            }
        })
    }

    fn lease(&self) -> Duration {
        self.configured_lease()
    }
}
