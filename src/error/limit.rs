//! The error of a run that has reached a usage limit.

/// The run has reached a limit of its [`UsageLimits`](crate::call::UsageLimits).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run may {what} {max} times and no more: raise the limit (`UsageLimits`) to resume it, or close it"
)]
pub struct UsageLimitExceeded {
    pub(crate) what: &'static str,
    pub(crate) max: u32,
}
