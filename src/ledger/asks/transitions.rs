//! The state transitions of an ask: the whole of the ledger's logic, without a store (rules L1 to L4).
//!
//! Each function takes the record and the store's time, changes the record, and returns the result. The ledger calls it
//! within a store transaction, so that of any number of processes one wins, and each of the others gets the winner.
//!
//! # Deciding
//!
//! | state | answer | result |
//! |---|---|---|
//! | pending | a denial | decided: one no is enough |
//! | pending | an approval, quorum of one | decided |
//! | pending | an approval, more needed | a vote |
//! | decided | the same by the same person | won, again |
//! | decided | anything else | lost, with the decision |
//! | decided by several, not claimed | a denial | decided anew: a veto |
//! | expired, cancelled, closed | any | expired, or cancelled |
//!
//! Votes count together if they propose the *same*: the same arguments, or the same result. Each person has one vote,
//! and a second one for another proposal replaces the first. Votes that are too old for a claim are removed when the
//! next one comes (rule A8).
//!
//! # Tokens
//!
//! A token is raised by each claim and by each supersession, and never falls. 0 is no token: an ask that was never
//! claimed cannot be settled.

use serde_json::{Value, json};

use super::ask::Millis;
use super::names::Names;
use super::record::{AskRecord, AskState, ClaimRecord, LedgerDecision, RAN_UNAPPROVED, Vote};
use super::results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
use crate::deferred::Answer;

/// An answer to an ask, with the name and the fingerprint that it was given under.
#[derive(Debug, Clone)]
pub(in crate::ledger) struct Deciding {
    pub(in crate::ledger) fingerprint: String,
    pub(in crate::ledger) by: String,
    pub(in crate::ledger) answer: Answer,
    /// The answer is given by a policy of the library and not by a person, so its name is not checked for being blank.
    pub(in crate::ledger) is_policy: bool,
}

/// Applies expiry: a pending ask whose deadline has passed expires, and a claimed one whose lease is over becomes
/// unknown. Returns the event to log, if there was a change.
///
/// We date the change at the deadline, not at the moment when we notice it. So every reader sees the same record,
/// before and after a transaction has stored the change.
pub(in crate::ledger) fn pass_time(record: &mut AskRecord, now: Millis) -> Option<&'static str> {
    let due = record.due_at().filter(|due| *due <= now)?;
    let (state, event) = match record.state {
        AskState::Pending => (AskState::Expired, "expired"),
        // Not executed again by itself: only an idempotent call can be claimed in this state.
        AskState::Claimed => (AskState::Unknown, "lost"),
        _ => return None,
    };
    record.state = state;
    record.changed_at = due;
    Some(event)
}

/// Decides an ask, or adds a vote where the quorum needs more. The first decision counts, with one exception: where
/// several people have to agree, a denial overrides their approval or result until the call is claimed.
pub(in crate::ledger) fn decide(
    record: &mut AskRecord,
    deciding: &Deciding,
    names: &Names,
    now: Millis,
) -> Decided {
    if !deciding.is_policy && names.is_no_person(&deciding.by) {
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
    let proposal = proposal(record, &deciding.answer);
    if let Some(decision) = &record.decision {
        let same = match proposal {
            Some(_) => proposal == self::proposal(record, &decision.answer),
            None => decision.answer == deciding.answer,
        };
        if same && decision.by.iter().any(|by| names.are_one(by, &deciding.by)) {
            return Decided::Won { again: true };
        }
        let vetoes = proposal.is_none()
            && !matches!(decision.answer, Answer::Deny { .. })
            && record.state == AskState::Decided
            && record.ask.quorum().has_veto();
        if !vetoes {
            return Decided::Lost(Winner::of(decision));
        }
    }
    let mut by = vec![deciding.by.clone()];
    if let Some(proposal) = proposal {
        // A policy of the library is no person.
        let of_people = deciding.is_policy && !record.ask.people().is_empty();
        if of_people || !record.ask.may_be_approved_by(&deciding.by, names) {
            return Decided::NotAllowed;
        }
        let again = !vote(record, deciding, &proposal, names, now);
        let same = record.votes.iter().filter(|vote| vote.fingerprint == proposal);
        by = same.map(|vote| vote.by.clone()).collect();
        // A vote of one who has left a group in the meantime does not count any more.
        by.retain(|who| record.ask.may_be_approved_by(who, names));
        let missing = record.ask.missing(&by, names);
        if missing > 0 {
            let approvals = count(&by);
            return Decided::Recorded { approvals, needed: approvals + missing, again };
        }
    }
    record.decision =
        Some(LedgerDecision { answer: deciding.answer.clone(), by, at: now, grant: None });
    record.state = AskState::Decided;
    record.changed_at = now;
    Decided::Won { again: false }
}

/// A digest of what an answer proposes, by which equal votes are counted. `None` for a denial, as one denial is enough.
fn proposal(record: &AskRecord, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Approve { args: None } => Some(record.fingerprint.clone()),
        Answer::Approve { args: Some(args) } => Some(record.ask.fingerprint_with(args)),
        Answer::Result { value } => {
            Some(crate::args::digest(&json!(["answer", record.fingerprint, value])))
        }
        Answer::Deny { .. } => None,
    }
}

/// Adds a vote and returns whether it is new. Each person has one vote: a vote for another proposal replaces the
/// earlier one. Votes that are too old for a claim are removed.
fn vote(
    record: &mut AskRecord,
    deciding: &Deciding,
    proposal: &str,
    names: &Names,
    now: Millis,
) -> bool {
    record.votes = record.counting_votes(now).cloned().collect();
    // A vote under a name that cannot be compared any more may be of the same person.
    let own = |vote: &Vote| names.are_one(&vote.by, &deciding.by) || names.is_no_person(&vote.by);
    if record.votes.iter().any(|vote| own(vote) && vote.fingerprint == proposal) {
        return false;
    }
    record.votes.retain(|vote| !own(vote));
    let (by, answer) = (deciding.by.clone(), deciding.answer.clone());
    record.votes.push(Vote { by, fingerprint: proposal.to_owned(), answer, at: now });
    record.changed_at = now;
    true
}

/// The time of the oldest vote for the approval, from which its age is counted. `None` when the ask is not approved.
fn approved_since(record: &AskRecord) -> Option<Millis> {
    let decision = record.decision.as_ref()?;
    let proposal = match &decision.answer {
        Answer::Approve { .. } => proposal(record, &decision.answer)?,
        Answer::Deny { .. } | Answer::Result { .. } => return None,
    };
    let counted = record.votes.iter().filter(|vote| vote.fingerprint == proposal);
    counted.map(|vote| vote.at).chain([decision.at]).min()
}

/// The last time at which an approval may be claimed; `None` when the ask is not approved, or the approval does not
/// age.
pub(in crate::ledger) fn approved_until(record: &AskRecord) -> Option<Millis> {
    Some(approved_since(record)?.saturating_add(record.valid_for?).saturating_sub(1))
}

/// Tells whether those who approved the ask may not approve it any more, or are too few.
fn has_left(record: &AskRecord, names: &Names) -> bool {
    let by = record.decision.as_ref().map(|decision| &*decision.by);
    !record.ask.is_approved_by(by.unwrap_or_default(), names)
}

fn count(people: &[String]) -> u32 {
    u32::try_from(people.len()).unwrap_or(u32::MAX)
}

/// Claims the execution of an approved ask, or of an unknown one that is idempotent. An approval that is too old is not
/// used: a decided ask expires by that, and an unknown one stays unknown, as its call may have run. The same holds for one
/// by people who are not enough any more, as one has left a group.
pub(in crate::ledger) fn claim(
    record: &mut AskRecord,
    (worker, lease): (&str, Millis),
    names: &Names,
    now: Millis,
) -> Claimed {
    match record.state {
        AskState::Pending => return Claimed::NotDecided,
        AskState::Expired | AskState::Cancelled | AskState::Closed | AskState::Released => {
            // A decided ask expires only because a claim did not use its approval; later claims get the same result.
            return match approved_since(record).filter(|_| record.state == AskState::Expired) {
                Some(_) if has_left(record, names) => Claimed::Outvoted { may_have_run: false },
                Some(since) => Claimed::Aged { since, may_have_run: false },
                None => Claimed::Denied { state: record.state },
            };
        }
        AskState::Executed => {
            return Claimed::Settled { outcome: record.outcome.clone().unwrap_or(Value::Null) };
        }
        AskState::Unknown if !record.ask.idempotent => return Claimed::Unknown,
        AskState::Claimed => {
            // Expiry was applied before, so the lease of this claim is not over.
            if let Some(claim) = record.claim.clone() {
                return Claimed::Held { by: claim.worker, until: claim.until };
            }
        }
        AskState::Decided | AskState::Unknown => {}
    }
    match record.decision.as_ref().map(|decision| &decision.answer) {
        Some(Answer::Approve { .. }) => {}
        Some(Answer::Result { value }) => return Claimed::Settled { outcome: value.clone() },
        Some(Answer::Deny { .. }) | None => return Claimed::Denied { state: record.state },
    }
    let may_have_run = record.state == AskState::Unknown;
    let is_of_future =
        record.decision.as_ref().is_some_and(|it| AskRecord::is_of_future(it.at, now));
    let aged = approved_since(record).filter(|at| is_of_future || record.is_over(*at, now));
    if aged.is_some() || has_left(record, names) {
        if !may_have_run {
            record.state = AskState::Expired;
            record.changed_at = now;
        }
        return match aged {
            Some(since) => Claimed::Aged { since, may_have_run },
            None => Claimed::Outvoted { may_have_run },
        };
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

/// Renews the lease of the latest claim, also after the lease was over. The flag says whether the ask was unknown
/// before and is claimed again.
///
/// A worker can renew a lease that is over, as long as there is no other claim: the worker was slow, and nothing else
/// has happened. The state goes back from unknown to claimed, and we log that, since people may have been shown the
/// call as unknown.
pub(in crate::ledger) fn renew(
    record: &mut AskRecord,
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

/// Settles the latest claim, also after its lease was over; only a superseded claim is stale (rule L2).
///
/// A result that comes after the lease is still the truth about what ran, so the latest claim may settle at any time.
/// If another claim has superseded this one, we refuse it: two workers may have run the call, and the record can hold
/// one outcome.
pub(in crate::ledger) fn settle(
    record: &mut AskRecord,
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

/// Makes the latest claim of an unknown ask stale, as another ask of the same call is claimed (rule L2).
pub(in crate::ledger) fn supersede(record: &mut AskRecord, now: Millis) -> bool {
    if record.state != AskState::Unknown {
        return false;
    }
    record.token += 1;
    record.changed_at = now;
    true
}

/// Cancels an ask that is pending, or approved and not claimed. A denial or a result is final: its call will not run,
/// so there is nothing to cancel. A recorded decision stays in the record.
pub(in crate::ledger) fn cancel(record: &mut AskRecord, by: &str, now: Millis) -> Cancelled {
    let answer = record.decision.as_ref().map(|decision| &decision.answer);
    match (record.state, answer) {
        (AskState::Pending, _) | (AskState::Decided, Some(Answer::Approve { .. })) => {
            record.state = AskState::Cancelled;
            record.changed_at = now;
            record.cancelled_by = Some(by.to_owned());
            Cancelled::Cancelled { again: false }
        }
        (AskState::Cancelled, _) => Cancelled::Cancelled { again: true },
        (state, _) => Cancelled::TooLate { state },
    }
}

/// Closes a pending or decided ask whose call got its result without running. Returns whether the state has changed.
pub(in crate::ledger) fn close(record: &mut AskRecord, now: Millis) -> bool {
    let open = matches!(record.state, AskState::Pending | AskState::Decided);
    if open {
        record.state = AskState::Closed;
        record.changed_at = now;
    }
    open
}

/// Closes a pending or decided ask whose call has run without a claim, and records what is known of that. Returns whether
/// the state has changed.
///
/// An approval that was not claimed is void with it: its call has run already.
pub(in crate::ledger) fn ran_unapproved(
    record: &mut AskRecord,
    about: &Value,
    now: Millis,
) -> bool {
    let open = close(record, now);
    if open {
        record.outcome = Some(json!({ RAN_UNAPPROVED: about }));
    }
    open
}
