//! The checks before an approval, the same on every surface (rules A5, S4, S7).
//!
//! An approval counts only if the call needs one, if no layer blocks it, and if the person was shown all of it. None of this
//! depends on a store or a screen.

use serde::{Deserialize, Serialize};

/// The part of a call that a person was shown when they answered (rules S4, S7).
///
/// Exhaustive on purpose: what was shown in a new way must not pass for the whole call.
///
/// ```
/// use countersign::deferred::{Extent, Unapprovable};
/// use countersign::{DeferredToolRequests, ToolCall};
/// use serde_json::json;
///
/// let requests = DeferredToolRequests::new([ToolCall::new("c1", "deploy", json!({}))], []);
/// assert!(requests.check_approval("c1", Extent::Whole).is_ok());
/// assert_eq!(requests.check_approval("c1", Extent::Part), Err(Unapprovable::NotShown));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of the call, by itself.
    Whole,
    /// All that is stored of the call, together with others that have the same answer.
    Together,
    /// Something was left out ([`CallView::left_out`](crate::show::CallView::left_out)).
    Part,
}

/// The reason why an approval of a call, or a result in its place, does not count. A surface shows it to the person
/// who approved; nothing is decided.
///
/// ```
/// use countersign::deferred::{Extent, Unapprovable};
/// use countersign::{DeferredToolRequests, ToolCall};
/// use serde_json::json;
///
/// let requests = DeferredToolRequests::new([], [ToolCall::new("c1", "locate", json!({}))]);
/// let why = requests.check_approval("c1", Extent::Whole).unwrap_err();
/// assert_eq!(why, Unapprovable::NotAnApproval);
/// assert_eq!(why.to_string(), "the call is executed elsewhere: it needs a result, not an approval");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unapprovable {
    /// The batch has no such call.
    #[error("there is no such call")]
    UnknownCall,
    /// The call is executed elsewhere, or is a question.
    #[error("the call is executed elsewhere: it needs a result, not an approval")]
    NotAnApproval,
    /// The answer is a result, and the call runs here once it is approved.
    #[error(
        "the call runs here once it is approved: it needs an approval or a denial, not a result"
    )]
    NeedsApproval,
    /// A layer blocks the call (rule A5).
    #[error("a layer blocks the call: it must not be approved")]
    Blocked,
    /// Something was left out of what the person was shown (rule S4).
    #[error("something was left out of the view of the call: show all of it, then approve it")]
    NotShown,
    /// A preview of the call is too long to be stored in full, and the person approved it together with others (rule S7).
    #[error("a preview of the call is too long to be stored in full: approve it by itself")]
    Cut,
    /// The tool does not take the edited arguments.
    #[error("the tool does not take these arguments: {problem}")]
    BadArgs {
        /// The fault in them, for the person.
        problem: String,
    },
}
