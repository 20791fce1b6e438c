//! The pending calls of one response, and the answers to them.
//!
//! [`DeferredToolRequests`] is one batch: the calls that need an approval and the calls that are executed elsewhere.
//! [`DeferredToolResults`] answers it. Both are plain data in PydanticAI's JSON shape, so that a Python service and a
//! Rust one can be the two ends of one approval. Data that PydanticAI has no field for (fingerprints, questions,
//! explicitly left calls) is under one extra key, `_countersign`, which PydanticAI ignores.
//!
//! Reading answers is strict: `true` and `false` are the only plain approvals, a result that claims a kind and does not
//! have its shape is an error, no key may be repeated, and an approval may have no unknown key. Elsewhere an unknown
//! key is ignored, as a newer version may write more keys. If such a key was an answer, the answer is missing, which is
//! an error too (rule A4).
//!
//! ```
//! use countersign::{DeferredToolRequests, ToolCall};
//! use serde_json::json;
//!
//! let call = ToolCall::new("c1", "delete_file", json!({"path": "a.log"}));
//! let requests = DeferredToolRequests::new([call], []);
//! assert!(requests.answer().build().is_err(), "c1 has no answer");
//!
//! let answers = requests.answer().deny("c1", "keep the log").answered_by("ann").build()?;
//! let text = serde_json::to_string(&answers)?;
//! assert!(text.contains("keep the log"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod answers;
mod approvable;
mod approval;
mod call_result;
mod check;
mod fingerprint;
pub mod metadata;
mod pending;
mod requests;
mod results;

pub use answer::{Answer, Answered};
pub use answers::Answers;
pub(crate) use answers::POLICY;
pub use approvable::{Extent, Unapprovable};
pub use approval::{ToolApproval, ToolApproved};
pub use call_result::CallResult;
pub(crate) use check::check;
pub(crate) use fingerprint::{CallAddress, batch_id, fingerprint};
pub(crate) use pending::{BatchEntry, PendingCall};
pub use requests::DeferredToolRequests;
pub use results::DeferredToolResults;
