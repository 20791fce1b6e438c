//! Checks that answers fit the batch they are for: every call, and no others (rules A4, A6).
//!
//! We check all answers before any takes effect. If we applied a batch up to the first error, some calls would have
//! run, and the approver, who sees an error, would send the batch again.
//!
//! Every problem of a batch is reported at once, each call with one of them:
//!
//! | problem | means |
//! |---|---|
//! | unknown | the answer is for a call that is not in the batch |
//! | contradictory | one call is approved, has a result and is left, or two of these |
//! | wrong kind | an approval for a call that needs a result, or the reverse |
//! | missing | the call is neither answered nor left |
//! | another batch | bound answers, made for something else that was shown |
//!
//! Answers are bound to the batch *and*, for each call, to its fingerprint. The batch id alone would not do: for
//! example, answers are joined from several people, and one of them was shown an earlier state of one call.

use std::collections::BTreeSet;

use super::{DeferredToolRequests, DeferredToolResults};
use crate::call::ToolCall;
use crate::error::AnswerError;

/// Checks that the answers are for exactly these requests, and that bound ones were made for what was shown.
pub(crate) fn check(
    requests: &DeferredToolRequests,
    results: &DeferredToolResults,
    require_bound: bool,
) -> Result<(), AnswerError> {
    if !results.is_bound() {
        if require_bound && !results.is_empty() {
            return Err(AnswerError::NotBound);
        }
    } else if results.batch() != requests.batch() {
        let ids = requests.iter().map(|call| call.id().to_owned()).collect();
        return Err(AnswerError::OtherBatch { ids });
    }
    check_answers(requests, results)?;
    if results.is_bound() {
        let differs = |id: &&str| results.fingerprint(id) != requests.fingerprint(id);
        let ids: Vec<_> = answered(results).filter(differs).map(str::to_owned).collect();
        if !ids.is_empty() {
            return Err(AnswerError::OtherBatch { ids });
        }
    }
    Ok(())
}

/// Checks that there is one answer per call, in the right category, and none for a call that is not in the batch.
pub(super) fn check_answers(
    requests: &DeferredToolRequests,
    results: &DeferredToolResults,
) -> Result<(), AnswerError> {
    let approvals: BTreeSet<_> = requests.approvals.iter().map(ToolCall::id).collect();
    let externals: BTreeSet<_> = requests.calls.iter().map(ToolCall::id).collect();
    let approval = |id: &str| approvals.contains(id);
    let external = |id: &str| externals.contains(id);

    let contradicts = |id: &str| {
        let ways = [
            results.approvals.contains_key(id),
            results.calls.contains_key(id),
            results.is_left(id),
        ];
        ways.into_iter().filter(|way| *way).count() > 1
    };
    let wrong = |id: &str| {
        results.approvals.contains_key(id) && !approval(id)
            || results.calls.contains_key(id) && !external(id)
    };
    let given = answered(results).chain(results.left());
    let mut unknown: Vec<_> =
        given.filter(|id| !approval(id) && !external(id)).map(str::to_owned).collect();
    unknown.sort();
    unknown.dedup();
    let missing = requests.open(results).map(|call| call.id().to_owned()).collect();
    let mut found: Vec<AnswerError> = Vec::new();
    for (mut ids, error) in [
        (unknown, (|ids| AnswerError::Unknown { ids }) as fn(_) -> _),
        (ids(requests, contradicts), |ids| AnswerError::Contradictory { ids }),
        (ids(requests, wrong), |ids| AnswerError::WrongKind { ids }),
        (missing, |ids| AnswerError::Missing { ids }),
    ] {
        // A call with two problems is named once, with the first of them.
        ids.retain(|id| !found.iter().any(|error| error.ids().contains(id)));
        if !ids.is_empty() {
            found.push(error(ids));
        }
    }
    match found.len() {
        0 => Ok(()),
        1 => found.pop().map_or(Ok(()), Err),
        _ => Err(AnswerError::Several { problems: found }),
    }
}

fn answered(results: &DeferredToolResults) -> impl Iterator<Item = &str> {
    results.approvals.keys().chain(results.calls.keys()).map(String::as_str)
}

fn ids(requests: &DeferredToolRequests, mut pick: impl FnMut(&str) -> bool) -> Vec<String> {
    requests.iter().map(ToolCall::id).filter(|id| pick(id)).map(str::to_owned).collect()
}
