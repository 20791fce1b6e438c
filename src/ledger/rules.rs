//! What may become of an ask: the whole of the ledger's logic, without a store (rules L1 to L4).
//!
//! Each function is given the record and the store's time, and says what becomes of it. A store runs it within a
//! transaction, so that of any number of processes one wins, and each loser is told.

use serde_json::Value;

use super::ask::Millis;
use super::record::{AskState, ClaimRecord, LedgerDecision, Record, Verdict, Vote};
use super::results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};

/// What somebody decides.
#[derive(Debug, Clone)]
pub(super) struct Deciding {
    pub(super) fingerprint: String,
    pub(super) by: String,
    pub(super) verdict: Verdict,
}

/// What time has made of an ask.
pub(super) fn pass_time(record: &mut Record, now: Millis) -> Option<&'static str> {
    if record.due_at().is_none_or(|due| now < due) {
        return None;
    }
    let (state, event) = match record.state {
        AskState::Pending => (AskState::Expired, "expired"),
        // An idempotent call is taken over by the next claim.
        AskState::Claimed if !record.ask.idempotent => (AskState::Unknown, "lost"),
        _ => return None,
    };
    record.state = state;
    record.changed_at = now;
    Some(event)
}

pub(super) fn decide(record: &mut Record, deciding: &Deciding, now: Millis) -> Decided {
    match record.state {
        AskState::Expired => return Decided::Expired,
        AskState::Cancelled => return Decided::Cancelled,
        AskState::Closed if record.decision.is_none() => return Decided::Cancelled,
        _ => {}
    }
    let proposed = match &deciding.verdict {
        Verdict::Approve { args: Some(args) } => record.ask.fingerprint_with(args),
        _ => record.fingerprint.clone(),
    };
    if deciding.fingerprint != record.fingerprint {
        return Decided::Mismatch { fingerprint: record.fingerprint.clone() };
    }
    if let Some(decision) = &record.decision {
        let same = decision.verdict == deciding.verdict;
        if same && decision.by.contains(&deciding.by) {
            return Decided::Won { again: true };
        }
        let vetoes = matches!(deciding.verdict, Verdict::Deny { .. })
            && !matches!(decision.verdict, Verdict::Deny { .. })
            && record.state == AskState::Decided
            && record.ask.quorum.has_veto();
        if !vetoes {
            return Decided::Lost(Winner::of(decision));
        }
    }
    if let Verdict::Approve { .. } = deciding.verdict {
        if record.ask.quorum.not_the_requester
            && record.ask.principal.as_deref() == Some(&*deciding.by)
        {
            return Decided::NotAllowed;
        }
        let agreed = vote(record, deciding, proposed, now);
        if agreed.len() < usize::try_from(record.ask.quorum.approvals.max(1)).unwrap_or(usize::MAX)
        {
            let needed = record.ask.quorum.approvals;
            return Decided::Recorded {
                approvals: u32::try_from(agreed.len()).unwrap_or(u32::MAX),
                needed,
            };
        }
        let verdict = deciding.verdict.clone();
        record.decision = Some(LedgerDecision { verdict, by: agreed, at: now });
    } else {
        let (verdict, by) = (deciding.verdict.clone(), vec![deciding.by.clone()]);
        record.decision = Some(LedgerDecision { verdict, by, at: now });
    }
    record.state = AskState::Decided;
    record.changed_at = now;
    Decided::Won { again: false }
}

/// Counts an approval, once for each person and proposal. Gives everybody who has approved the same.
fn vote(record: &mut Record, deciding: &Deciding, proposed: String, now: Millis) -> Vec<String> {
    let known = |vote: &Vote| vote.by == deciding.by;
    record.votes.retain(|vote| !known(vote) || vote.fingerprint == proposed);
    if !record.votes.iter().any(known) {
        let (by, verdict) = (deciding.by.clone(), deciding.verdict.clone());
        record.votes.push(Vote { by, fingerprint: proposed.clone(), verdict, at: now });
        record.changed_at = now;
    }
    let same = record.votes.iter().filter(|vote| vote.fingerprint == proposed);
    same.map(|vote| vote.by.clone()).collect()
}

pub(super) fn claim(record: &mut Record, worker: &str, lease: Millis, now: Millis) -> Claimed {
    match record.state {
        AskState::Pending => return Claimed::NotDecided,
        AskState::Expired | AskState::Cancelled | AskState::Closed => {
            return Claimed::Denied { state: record.state };
        }
        AskState::Executed | AskState::Released => {
            return Claimed::Settled { outcome: record.outcome.clone().unwrap_or(Value::Null) };
        }
        AskState::Unknown if !record.ask.idempotent => return Claimed::Unknown,
        AskState::Claimed => {
            if let Some(claim) = record.claim.as_ref().filter(|claim| now < claim.until) {
                return Claimed::Held { by: claim.worker.clone(), until: claim.until };
            }
        }
        AskState::Decided | AskState::Unknown => {}
    }
    match record.decision.as_ref().map(|decision| &decision.verdict) {
        Some(Verdict::Approve { .. }) => {}
        Some(Verdict::Answer { value }) => return Claimed::Settled { outcome: value.clone() },
        Some(Verdict::Deny { .. }) | None => return Claimed::Denied { state: record.state },
    }
    record.token += 1;
    record.claim =
        Some(ClaimRecord { worker: worker.to_owned(), until: now.saturating_add(lease) });
    record.state = AskState::Claimed;
    record.changed_at = now;
    Claimed::Claimed { token: record.token }
}

pub(super) fn renew(record: &mut Record, token: u64, lease: Millis, now: Millis) -> Renewed {
    let latest = token != 0 && token == record.token;
    match (&mut record.claim, record.state) {
        (Some(claim), AskState::Claimed | AskState::Unknown) if latest => {
            claim.until = now.saturating_add(lease);
            record.state = AskState::Claimed;
            Renewed::Renewed { until: claim.until }
        }
        _ => Renewed::StaleToken,
    }
}

/// The latest claim settles, also late; only a superseded one is stale (rule L2).
pub(super) fn settle(
    record: &mut Record,
    token: u64,
    outcome: &Value,
    released: bool,
    now: Millis,
) -> Settled {
    if token == 0 || token != record.token {
        return Settled::StaleToken;
    }
    match record.state {
        AskState::Claimed | AskState::Unknown => {
            record.state = if released { AskState::Released } else { AskState::Executed };
            record.outcome = Some(outcome.clone());
            record.changed_at = now;
            Settled::Settled { outcome: outcome.clone(), again: false }
        }
        _ => match &record.outcome {
            Some(outcome) => Settled::Settled { outcome: outcome.clone(), again: true },
            None => Settled::StaleToken,
        },
    }
}

pub(super) fn cancel(record: &mut Record, by: &str, now: Millis) -> Cancelled {
    match record.state {
        AskState::Pending | AskState::Decided => {
            record.state = AskState::Cancelled;
            record.changed_at = now;
            let message = "It was withdrawn.".to_owned();
            let (verdict, by) = (Verdict::Deny { message }, vec![by.to_owned()]);
            record.decision = Some(LedgerDecision { verdict, by, at: now });
            Cancelled::Cancelled
        }
        AskState::Cancelled => Cancelled::Cancelled,
        state => Cancelled::TooLate { state },
    }
}

/// The call has got its result without running.
pub(super) fn close(record: &mut Record, now: Millis) -> bool {
    let open = matches!(record.state, AskState::Pending | AskState::Decided);
    if open {
        record.state = AskState::Closed;
        record.changed_at = now;
    }
    open
}
