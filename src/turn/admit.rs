//! New ids for calls that cannot enter a history with the ids they have.
//!
//! Ids come from providers, and from models that imitate them. An id is the address of a call: in the history, in a
//! batch, in a fingerprint, in a path of agents. If an id comes twice, a result is ambiguous. An id with a `/` looks
//! like the call of an agent, and one with a bidirectional character is shown as another one. We replace such ids where
//! a response enters, before anything refers to them. Later the history already has the old id, so `Turn::run` only
//! refuses.
//!
//! A new id is a UUID of version 7 with the prefix `cs_`, so that it cannot collide with the ids of a provider and
//! shows where it comes from.

use std::collections::HashSet;

use super::ids::JOINT;
use crate::call::ToolCall;

/// The length in bytes of the longest id that is not replaced.
const MAX_ID: usize = 256;

/// Gives new ids to the calls of a response whose id was used before in this history or is unusable (rule T5): empty,
/// longer than 256 bytes, with a control or bidirectional formatting character, or with a `/`, which joins the ids of a
/// call and of the calls of a sub-agent. Put the returned calls into the history, so that results match their calls.
///
/// Ids that come twice within one response are left as they are; [`Turn::run`](crate::Turn::run) refuses them, as it
/// refuses unusable ids.
///
/// ```
/// use countersign::turn::admit;
/// use countersign::ToolCall;
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
        replaced.push(if !is_usable(id) || used.contains(id) {
            call.with_id(format!("cs_{}", uuid::Uuid::now_v7().simple()))
        } else {
            call
        });
    }
    replaced
}

/// Returns `true` if an id can be stored, shown and told apart from the ids of an agent's calls.
pub(super) fn is_usable(id: &str) -> bool {
    let acts = |c: char| c.is_control() || c == JOINT || is_bidi(c);
    !id.is_empty() && id.len() <= MAX_ID && !id.contains(acts)
}

/// The characters that change the direction of text (Unicode's `Bidi_Control`), and the separators of lines and
/// paragraphs.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
