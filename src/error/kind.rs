//! The kind of an error, without its details.

/// The kind of an [`Error`](super::Error): see [`Error::kind`](super::Error::kind).
///
/// ```
/// use countersign::error::{Error, ErrorKind};
/// fn status(error: &Error) -> u16 {
///     match error.kind() {
///         ErrorKind::Answers => 422,
///         ErrorKind::RunTaken | ErrorKind::RunGoneOn => 409,
///         _ => 500,
///     }
/// }
/// assert_eq!(status(&Error::Stopped), 500);
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A mistake in the host program.
    User,
    /// Answers that do not fit the pending calls.
    Answers,
    /// A response of the model that cannot be used.
    ModelBehavior,
    /// A request to the model that failed.
    Model,
    /// A tool, or a layer around it, that failed.
    Tool,
    /// A deferred tool handler that failed.
    Handler,
    /// A person stopped the run.
    Stopped,
    /// The agent behind a tool failed.
    Agent,
    /// Agents would be nested too deeply.
    AgentsTooDeep,
    /// Another worker is resuming the run.
    RunTaken,
    /// The snapshot of the run is out of date.
    RunGoneOn,
    /// The ledger could not answer.
    Ledger,
    /// The run has reached a usage limit.
    UsageLimit,
    /// The tools could not be listed.
    Tools,
}
