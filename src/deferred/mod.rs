//! The calls of one response that wait for somebody, and the answers to them.
//!
//! [`DeferredToolRequests`] is one batch: the calls that need an approval and the calls that are executed elsewhere.
//! [`DeferredToolResults`] answers it. Both are plain data in PydanticAI's JSON shape, so that a Python service and a
//! Rust one can hold the two ends of one approval. What PydanticAI has no field for (fingerprints, questions,
//! explicitly left calls) is under one key of its own, `_countersign`, which PydanticAI ignores.

mod answers;
mod check;
mod fingerprint;
pub mod metadata;
mod requests;
mod results;
mod unique;

pub use answers::Answers;
pub(crate) use check::check;
pub(crate) use fingerprint::{Asked, batch_id, fingerprint};
pub use requests::DeferredToolRequests;
pub(crate) use requests::Pending;
pub use results::{CallResult, DeferredToolResults, ToolApproval, ToolApproved};
