//! The error of a run that has used what it may.

/// The run would use more than it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run may {what} {max} times and no more: raise the limit (`UsageLimits`) to resume it, or close it"
)]
pub struct UsageLimitExceeded {
    pub(crate) what: &'static str,
    pub(crate) max: u32,
}
