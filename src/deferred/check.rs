//! Whether answers fit what was asked: strict and total (rules A4, A6).

use super::{DeferredToolRequests, DeferredToolResults};
use crate::error::UserError;

/// Answers for exactly the requests, made for exactly what was shown.
pub(crate) fn check(
    requests: &DeferredToolRequests,
    results: &DeferredToolResults,
    require_bound: bool,
) -> Result<(), UserError> {
    if !results.is_bound() {
        if require_bound && !results.is_empty() {
            return Err(UserError::AnswersNotBound);
        }
    } else if results.batch() != requests.batch() {
        let ids = requests.iter().map(|call| call.id().to_owned()).collect();
        return Err(UserError::AnswersForOtherBatch { ids });
    }
    check_answers(requests, results)?;
    if results.is_bound() {
        let differs = |id: &&str| results.fingerprint(id) != requests.fingerprint(id);
        let ids = answered(results).filter(differs).map(str::to_owned).collect();
        return none(ids, |ids| UserError::AnswersForOtherBatch { ids });
    }
    Ok(())
}

/// One answer per call, in the right category, and none for anything else.
pub(super) fn check_answers(
    requests: &DeferredToolRequests,
    results: &DeferredToolResults,
) -> Result<(), UserError> {
    let approval = |id: &str| requests.approvals.iter().any(|call| call.id() == id);
    let external = |id: &str| requests.calls.iter().any(|call| call.id() == id);

    let mut unknown: Vec<String> = Vec::new();
    for id in answered(results).chain(results.left()) {
        if !approval(id) && !external(id) && !unknown.iter().any(|known| known == id) {
            unknown.push(id.to_owned());
        }
    }
    none(unknown, |ids| UserError::AnswersUnknown { ids })?;

    let contradicts = |id: &str| {
        let ways = [
            results.approvals.contains_key(id),
            results.calls.contains_key(id),
            results.is_left(id),
        ];
        ways.into_iter().filter(|way| *way).count() > 1
    };
    none(ids(requests, contradicts), |ids| UserError::AnswersContradict { ids })?;

    let wrong = |id: &str| {
        results.approvals.contains_key(id) && !approval(id)
            || results.calls.contains_key(id) && !external(id)
    };
    none(ids(requests, wrong), |ids| UserError::AnswersOfWrongKind { ids })?;

    let missing = requests.remaining(results).map(|rest| ids(&rest, |_| true)).unwrap_or_default();
    none(missing, |ids| UserError::AnswersMissing { ids })
}

fn answered(results: &DeferredToolResults) -> impl Iterator<Item = &str> {
    results.approvals.keys().chain(results.calls.keys()).map(String::as_str)
}

fn ids(requests: &DeferredToolRequests, mut pick: impl FnMut(&str) -> bool) -> Vec<String> {
    requests
        .iter()
        .map(crate::call::ToolCall::id)
        .filter(|id| pick(id))
        .map(str::to_owned)
        .collect()
}

fn none(ids: Vec<String>, error: impl FnOnce(Vec<String>) -> UserError) -> Result<(), UserError> {
    if ids.is_empty() { Ok(()) } else { Err(error(ids)) }
}
