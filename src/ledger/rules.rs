//! What may become of an ask: the whole of the ledger's logic, without a store (rules L1 to L4).
//!
//! Each function is given the record and the store's time, and says what becomes of it. A store runs it within a
//! transaction, so that of any number of processes one wins, and each loser is told.

use serde_json::{Value, json};

use super::ask::Millis;
use super::names::Names;
use super::record::{AskState, ClaimRecord, LedgerDecision, Record, Verdict, Vote};
use super::results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};

/// What somebody decides.
#[derive(Debug, Clone)]
pub(super) struct Deciding {
    pub(super) fingerprint: String,
    pub(super) by: String,
    pub(super) verdict: Verdict,
    /// A rule decides, and no person.
    pub(super) is_policy: bool,
}

/// What time has made of an ask.
pub(super) fn pass_time(record: &mut Record, now: Millis) -> Option<&'static str> {
    if record.due_at().is_none_or(|due| now < due) {
        return None;
    }
    let (state, event) = match record.state {
        AskState::Pending => (AskState::Expired, "expired"),
        // The next claim takes an idempotent call over.
        AskState::Claimed => (AskState::Unknown, "lost"),
        _ => return None,
    };
    record.state = state;
    record.changed_at = now;
    Some(event)
}

pub(super) fn decide(
    record: &mut Record,
    deciding: &Deciding,
    names: &Names,
    now: Millis,
) -> Decided {
    if !deciding.is_policy && names.is_blank(&deciding.by) {
        return Decided::BlankName;
    }
    match record.state {
        AskState::Expired if record.decision.is_none() => return Decided::Expired,
        AskState::Cancelled => return Decided::Cancelled,
        AskState::Closed if record.decision.is_none() => return Decided::Cancelled,
        _ => {}
    }
    if deciding.fingerprint != record.fingerprint {
        return Decided::Mismatch { fingerprint: record.fingerprint.clone() };
    }
    let proposal = proposal(record, &deciding.verdict);
    if let Some(decision) = &record.decision {
        let same = match proposal {
            Some(_) => proposal == self::proposal(record, &decision.verdict),
            None => decision.verdict == deciding.verdict,
        };
        if same && decision.by.iter().any(|by| names.are_one(by, &deciding.by)) {
            return Decided::Won { again: true };
        }
        let vetoes = proposal.is_none()
            && !matches!(decision.verdict, Verdict::Deny { .. })
            && record.state == AskState::Decided
            && record.ask.quorum.has_veto();
        if !vetoes {
            return Decided::Lost(Winner::of(decision));
        }
    }
    let mut by = vec![deciding.by.clone()];
    if let Some(proposal) = proposal {
        if record.ask.quorum.refuses(record.ask.get_principal(), &deciding.by, names) {
            return Decided::NotAllowed;
        }
        let again = !vote(record, deciding, &proposal, names, now);
        let same = record.votes.iter().filter(|vote| vote.fingerprint == proposal);
        by = same.map(|vote| vote.by.clone()).collect();
        let (approvals, needed) = (count(&by), record.ask.quorum.approvals);
        if approvals < needed {
            return Decided::Recorded { approvals, needed, again };
        }
    }
    record.decision = Some(LedgerDecision { verdict: deciding.verdict.clone(), by, at: now });
    record.state = AskState::Decided;
    record.changed_at = now;
    Decided::Won { again: false }
}

/// What somebody wants the ask to become, so that votes for the same can be counted; `None` for a no, which needs no
/// second.
fn proposal(record: &Record, verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Approve { args: None } => Some(record.fingerprint.clone()),
        Verdict::Approve { args: Some(args) } => Some(record.ask.fingerprint_with(args)),
        Verdict::Answer { value } => {
            Some(crate::args::digest(&json!(["answer", record.fingerprint, value])))
        }
        Verdict::Deny { .. } => None,
    }
}

/// Counts a vote, once for each person: a person who proposes something else takes the earlier one back, and a vote that
/// is too old to be claimed with no longer counts. Says whether it is a new one.
fn vote(
    record: &mut Record,
    deciding: &Deciding,
    proposal: &str,
    names: &Names,
    now: Millis,
) -> bool {
    record.votes = record.counting_votes(now).cloned().collect();
    let own = |vote: &Vote| names.are_one(&vote.by, &deciding.by);
    if record.votes.iter().any(|vote| own(vote) && vote.fingerprint == proposal) {
        return false;
    }
    record.votes.retain(|vote| !own(vote));
    let (by, verdict) = (deciding.by.clone(), deciding.verdict.clone());
    record.votes.push(Vote { by, fingerprint: proposal.to_owned(), verdict, at: now });
    record.changed_at = now;
    true
}

/// Since when an ask is approved: since the oldest vote that counted. `None` when it is not approved.
fn approved_since(record: &Record) -> Option<Millis> {
    let decision = record.decision.as_ref()?;
    let proposal = match &decision.verdict {
        Verdict::Approve { .. } => proposal(record, &decision.verdict)?,
        Verdict::Deny { .. } | Verdict::Answer { .. } => return None,
    };
    let counted = record.votes.iter().filter(|vote| vote.fingerprint == proposal);
    counted.map(|vote| vote.at).chain([decision.at]).min()
}

/// When an approval may still be claimed.
pub(super) fn approved_until(record: &Record) -> Option<Millis> {
    Some(approved_since(record)?.saturating_add(record.valid_for?).saturating_sub(1))
}

fn count(people: &[String]) -> u32 {
    u32::try_from(people.len()).unwrap_or(u32::MAX)
}

pub(super) fn claim(record: &mut Record, worker: &str, lease: Millis, now: Millis) -> Claimed {
    match record.state {
        AskState::Pending => return Claimed::NotDecided,
        AskState::Expired | AskState::Cancelled | AskState::Closed | AskState::Released => {
            // An approval that was found to be too old is what a decided ask expires by.
            return match approved_since(record).filter(|_| record.state == AskState::Expired) {
                Some(since) => Claimed::Aged { since, may_have_run: false },
                None => Claimed::Denied { state: record.state },
            };
        }
        AskState::Executed => {
            return Claimed::Settled { outcome: record.outcome.clone().unwrap_or(Value::Null) };
        }
        AskState::Unknown if !record.ask.idempotent => return Claimed::Unknown,
        AskState::Claimed => {
            // Time has passed before: a claim that is over is unknown.
            if let Some(claim) = record.claim.clone() {
                return Claimed::Held { by: claim.worker, until: claim.until };
            }
        }
        AskState::Decided | AskState::Unknown => {}
    }
    match record.decision.as_ref().map(|decision| &decision.verdict) {
        Some(Verdict::Approve { .. }) => {}
        Some(Verdict::Answer { value }) => return Claimed::Settled { outcome: value.clone() },
        Some(Verdict::Deny { .. }) | None => return Claimed::Denied { state: record.state },
    }
    if let Some(since) = approved_since(record).filter(|at| record.is_over(*at, now)) {
        let may_have_run = record.state == AskState::Unknown;
        if !may_have_run {
            record.state = AskState::Expired;
            record.changed_at = now;
        }
        return Claimed::Aged { since, may_have_run };
    }
    record.token += 1;
    record.claim = Some(ClaimRecord {
        worker: worker.to_owned(),
        at: Some(now),
        until: now.saturating_add(lease),
    });
    record.state = AskState::Claimed;
    record.changed_at = now;
    Claimed::Claimed { token: record.token }
}

/// The latest claim goes on, also late. Says whether the ask was given up before.
pub(super) fn renew(
    record: &mut Record,
    token: u64,
    lease: Millis,
    now: Millis,
) -> (Renewed, bool) {
    let lost = record.state == AskState::Unknown;
    match (&mut record.claim, record.state) {
        (Some(claim), AskState::Claimed | AskState::Unknown)
            if token != 0 && token == record.token =>
        {
            claim.until = now.saturating_add(lease);
            let until = claim.until;
            if lost {
                record.state = AskState::Claimed;
                record.changed_at = now;
            }
            (Renewed::Renewed { until }, lost)
        }
        _ => (Renewed::StaleToken, false),
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

/// Another ask of the call is claimed: nothing of this one counts any more (rule L2).
pub(super) fn supersede(record: &mut Record, now: Millis) -> bool {
    if record.state != AskState::Unknown {
        return false;
    }
    record.token += 1;
    record.changed_at = now;
    true
}

/// What somebody has decided stays on record; a no and an answer are final, so that there is nothing to withdraw.
pub(super) fn cancel(record: &mut Record, by: &str, now: Millis) -> Cancelled {
    let verdict = record.decision.as_ref().map(|decision| &decision.verdict);
    match (record.state, verdict) {
        (AskState::Pending, _) | (AskState::Decided, Some(Verdict::Approve { .. })) => {
            record.state = AskState::Cancelled;
            record.changed_at = now;
            record.cancelled_by = Some(by.to_owned());
            Cancelled::Cancelled { again: false }
        }
        (AskState::Cancelled, _) => Cancelled::Cancelled { again: true },
        (state, _) => Cancelled::TooLate { state },
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
