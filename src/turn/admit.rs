//! Where the calls of a response enter.

use std::collections::HashSet;

use super::child::JOINT;
use crate::call::ToolCall;

/// The longest id that is kept.
const MAX_ID: usize = 256;

/// Gives new ids to the calls of a response whose id is empty, longer than 256 bytes, holds a `/` (which joins the ids of
/// a call and of the calls of a sub-agent), or was used before in this history (rule T5). Put what it gives into the history, so that results match their calls.
///
/// Ids that come twice within one response are left as they are: [`Turn::run`](crate::Turn::run) refuses them.
///
/// ```
/// use countersign::{ToolCall, admit};
/// use serde_json::json;
///
/// let calls = admit(vec![ToolCall::new("", "list", json!({})), ToolCall::new("c1", "list", json!({}))], &["c1"]);
/// assert!(!calls[0].id().is_empty());
/// assert_ne!(calls[1].id(), "c1");
/// ```
#[must_use]
pub fn admit(calls: Vec<ToolCall>, used: &[&str]) -> Vec<ToolCall> {
    let used: HashSet<&str> = used.iter().copied().collect();
    let mut replaced = Vec::with_capacity(calls.len());
    for call in calls {
        let id = call.id();
        let bad = id.is_empty() || id.len() > MAX_ID || id.contains(JOINT) || used.contains(id);
        replaced.push(if bad {
            call.with_id(format!("cs_{}", uuid::Uuid::now_v7().simple()))
        } else {
            call
        });
    }
    replaced
}
