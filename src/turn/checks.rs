//! Checks of a whole response, before anything of it runs.

use std::collections::HashSet;

use crate::call::ToolCall;
use crate::error::ErrorKind;

/// Two calls of one response with one id cannot be told apart: neither runs.
pub(super) fn unique_ids(calls: &[ToolCall]) -> Result<(), ErrorKind> {
    let mut seen = HashSet::new();
    let mut ids: Vec<String> = Vec::new();
    for call in calls {
        if !seen.insert(call.id()) && !ids.iter().any(|id| id == call.id()) {
            ids.push(call.id().to_owned());
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    Err(ErrorKind::ModelBehavior { problem: "calls of one response share an id".into(), ids })
}
