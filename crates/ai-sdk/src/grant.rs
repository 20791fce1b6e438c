//! The grant that a request chooses, and the session in which it holds (rules G1, G3).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::principal::Principal;
use countersign::args::digest;

/// The grant that a request wants with an approval: one of those that were offered with the ask.
///
/// ```
/// use countersign_ai_sdk::ChatRequest;
///
/// let body = br#"{"id":"c1","messages":[],"approvalGrants":{"ask-1":{"fingerprint":"f1","pattern":0,"seconds":3600}}}"#;
/// let request = ChatRequest::read(body)?;
/// assert_eq!(request.approval_grants["ask-1"].seconds, Some(3600));
/// # Ok::<(), countersign_ai_sdk::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChosenGrant {
    /// The fingerprint of the call, as the offer has it.
    pub fingerprint: String,
    /// The number of the offer; 0 is for exactly such calls.
    pub pattern: usize,
    /// The time for which the grant is valid, in seconds, as the offer has it; 12 hours if it is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl ChosenGrant {
    /// The time for which the grant is valid.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(12 * 3600)
    }
}

/// The session of a chat. It is of one principal: no grant reaches the calls of another principal in a chat of the same
/// id.
///
/// A session that the host has named for its ledger does not count here: it would be that of all chats and principals.
pub(super) fn session(principal: &Principal, chat: &str) -> String {
    format!("chat-{}", digest(&json!(["ai-sdk session", 1, principal.as_str(), chat])))
}
