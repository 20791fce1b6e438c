//! The metadata keys that ready-made handlers and pages understand.
//!
//! Metadata of a request does not reach the tool (rule A5), unless the handler copies it:
//! [`copy_metadata`](crate::DeferredToolResults::copy_metadata).
//!
//! ```
//! use countersign::{Decision, metadata};
//! let never = Decision::ask("production is frozen").with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED);
//! # let _ = never;
//! ```

/// A description of the action for people.
pub const APPROVAL_DESCRIPTION: &str = "approval_description";
/// Why an approval is needed.
pub const APPROVAL_REASON: &str = "approval_reason";
/// How to treat the request: [`BLOCKED`] or [`NEEDS_APPROVAL`].
pub const APPROVAL_POLICY: &str = "approval_policy";
/// The id of the toolset that has the tool.
pub const TOOLSET_ID: &str = "toolset_id";
/// The name of the agent that makes the call, where several work together.
pub const WORKER: &str = "worker";

/// A value of [`APPROVAL_POLICY`]: every ready-made handler denies without asking, the approve-all one too (rule A5).
pub const BLOCKED: &str = "blocked";
/// A value of [`APPROVAL_POLICY`]: ask as usual.
pub const NEEDS_APPROVAL: &str = "needs_approval";
