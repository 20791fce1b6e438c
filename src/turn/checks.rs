//! Checks of the ids of a whole response, before any of its calls runs.

use std::collections::HashSet;

use super::admit::is_usable;
use super::call_state::CallState;
use super::ids::JOINT;
use crate::call::ToolCall;
use crate::error::Error;

/// Refuses a response in which two calls share an id: results and answers could not be matched to them.
pub(crate) fn unique_ids<'a>(calls: impl IntoIterator<Item = &'a ToolCall>) -> Result<(), Error> {
    let calls = calls.into_iter();
    let mut seen = HashSet::with_capacity(calls.size_hint().0);
    let mut ids: Vec<String> = Vec::new();
    for call in calls {
        if !seen.insert(call.id()) && !ids.iter().any(|id| id == call.id()) {
            ids.push(call.id().to_owned());
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    Err(Error::ModelBehavior { problem: "calls of one response share an id".into(), ids })
}

/// Refuses ids that `admit` would replace: results could not be matched, or would look like those of another call.
pub(super) fn usable_ids<'a>(calls: impl IntoIterator<Item = &'a ToolCall>) -> Result<(), Error> {
    let unusable = calls.into_iter().map(ToolCall::id).filter(|id| !is_usable(id));
    let ids: Vec<_> = unusable.map(str::to_owned).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let problem = "ids are unusable (empty, longer than 256 bytes, with a `/`, or with a control or bidirectional character): give such calls other ids with `admit`";
    Err(Error::ModelBehavior { problem: problem.into(), ids })
}

/// Refuses ids with a `/`, for a response whose tools have agents behind them: the id would look like one of the
/// agent's calls.
pub(super) fn ids_of_agents(calls: &[CallState]) -> Result<(), Error> {
    let ids: Vec<_> =
        calls.iter().map(|call| call.call.id()).filter(|id| id.contains(JOINT)).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let problem = "`/` in an id joins a call and the calls of the agent behind it: give such calls other ids before they enter the history";
    let ids = ids.into_iter().map(str::to_owned).collect();
    Err(Error::ModelBehavior { problem: problem.into(), ids })
}
