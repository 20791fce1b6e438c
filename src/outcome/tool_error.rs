//! The errors of tool bodies.

use std::any::Any;
use std::error::Error;
use std::fmt;

use serde_json::{Map, Value};

use super::{DeferralKind, ModelRetry, ToolFailed, ToolUnknown};
use crate::error::{AnswerError, BoxError, UserError};

/// The error of a tool body. `?` converts into it from every error that converts into a [`BoxError`]: any
/// [`std::error::Error`], `anyhow::Error`, a `BoxError`, a `String` or a `&'static str`.
///
/// - [`ModelRetry`], [`ToolFailed`], [`ApprovalRequired`], [`CallDeferred`] and [`FatalError`] keep their meaning. They
///   are recognised by type, also inside of an `anyhow::Error` or a `BoxError`.
/// - A [`UserError`] and an [`AnswerError`] are fatal: they are mistakes that the model cannot correct.
/// - Every other error fails the call, and the run continues. The model gets only the error's `Display`; the host gets
///   the error with its sources from [`CallReport::error`](crate::turn::CallReport::error).
///
/// ```
/// use countersign::outcome::ModelRetry;
/// use countersign::ToolError;
///
/// fn parse(text: &str) -> Result<u32, ToolError> {
///     let number: u32 = text.parse()?; // the call fails: "invalid digit found in string"
///     if number > 9 {
///         return Err(ModelRetry::new("one digit, please").into()); // the model tries again
///     }
///     let squares = [0, 1, 4].get(number as usize).ok_or("no square that large")?; // the call fails
///     if *squares == 4 {
///         return Err(ToolError::fatal("the table is broken")); // the run ends
///     }
///     Ok(*squares)
/// }
/// assert!(matches!(parse("x"), Err(ToolError::Other(_))));
/// assert!(matches!(parse("42"), Err(ToolError::Retry(_))));
/// assert!(matches!(parse("3"), Err(ToolError::Other(_))));
/// assert!(matches!(parse("2"), Err(ToolError::Fatal(_))));
/// ```
///
/// A tool may as well return `anyhow::Result<T>`, `Result<T, BoxError>` or `Result<T, String>`; see
/// [`tool_fn`](crate::tool_fn).
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// The model should try again.
    Retry(ModelRetry),
    /// The call failed, with a text for the model; the run continues.
    Failed(ToolFailed),
    /// The call needs an approval first.
    ApprovalRequired(ApprovalRequired),
    /// The call is executed elsewhere, and its result comes as an answer.
    CallDeferred(CallDeferred),
    /// The tool was started and its end was not seen, as when the server that runs it has died: the model is told that
    /// it may have run, and it is not run again by itself.
    Unknown(ToolUnknown),
    /// An error that is not for the model: the other calls of the response finish, then the run ends with it.
    Fatal(BoxError),
    /// An ordinary error: the call failed, the model gets the error's `Display`, and the run continues. With
    /// [`Turn::tool_errors_end_run`](crate::Turn::tool_errors_end_run) it is fatal.
    Other(BoxError),
}

impl<E: Into<BoxError> + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::of(boxed(error))
    }
}

impl ToolError {
    /// Creates an error that ends the run: the other calls of the response finish first, and the model does not get the
    /// error.
    #[must_use]
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        Self::Fatal(error.into())
    }

    /// Creates an error that reports the call as one that may have run. The message says what is known.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(ToolUnknown { message: message.into() })
    }

    /// The error itself, without its meaning for a call.
    pub(crate) fn into_box(self) -> BoxError {
        match self {
            Self::Retry(error) => error.into(),
            Self::Failed(error) => error.into(),
            Self::ApprovalRequired(error) => error.into(),
            Self::CallDeferred(error) => error.into(),
            Self::Unknown(error) => error.message.into(),
            Self::Fatal(error) | Self::Other(error) => error,
        }
    }

    /// Classifies an error by its own type, or by the type of one of its sources.
    fn of(error: BoxError) -> Self {
        let error = match error.downcast::<FatalError>() {
            Ok(fatal) => return Self::Fatal(fatal.0),
            Err(error) => error,
        };
        let first: &(dyn Error + 'static) = &*error;
        match std::iter::successors(Some(first), |&error| error.source()).find_map(control) {
            Some(Control::Says(error)) => error,
            Some(Control::Fatal) => Self::Fatal(error),
            None => Self::Other(error),
        }
    }
}

/// Boxes an error so that it can be downcast: `From<anyhow::Error>` for [`BoxError`] gives a box that hides the type of
/// the error inside.
///
/// The order of the attempts does not matter, as a chain holds at most one error of these types that was given as a
/// context. But none may be missing: an error whose type is hidden would fail the call instead of deferring it, and
/// the approver would never be asked.
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    let mut error = Some(error);
    let held = (&mut error as &mut dyn Any).downcast_mut::<Option<anyhow::Error>>();
    match held.and_then(Option::take) {
        // A value given to `anyhow`'s `context` is found by `downcast`, but is not among the sources.
        Some(held) => (held.downcast::<FatalError>().map(BoxError::from))
            .or_else(|held| held.downcast::<ModelRetry>().map(BoxError::from))
            .or_else(|held| held.downcast::<ToolFailed>().map(BoxError::from))
            .or_else(|held| held.downcast::<ApprovalRequired>().map(BoxError::from))
            .or_else(|held| held.downcast::<CallDeferred>().map(BoxError::from))
            .unwrap_or_else(anyhow::Error::reallocate_into_boxed_dyn_error_without_backtrace),
        None => error.map_or_else(|| "the tool failed".into(), Into::into),
    }
}

/// The meaning of an error for the call, by its type.
enum Control {
    Says(ToolError),
    Fatal,
}

fn control(error: &(dyn Error + 'static)) -> Option<Control> {
    fn is<T: Error + Clone + 'static>(error: &(dyn Error + 'static)) -> Option<T> {
        error.downcast_ref::<T>().cloned()
    }
    let says = is(error)
        .map(ToolError::Retry)
        .or_else(|| is(error).map(ToolError::Failed))
        .or_else(|| is(error).map(ToolError::ApprovalRequired))
        .or_else(|| is(error).map(ToolError::CallDeferred))
        .or_else(|| is::<UserError>(error).map(|error| ToolError::Fatal(error.into())))
        .or_else(|| is::<AnswerError>(error).map(|error| ToolError::Fatal(error.into())));
    let fatal = || error.is::<FatalError>().then_some(Control::Fatal);
    says.map(Control::Says).or_else(fatal)
}

/// An error of a tool that ends the run, for functions whose error type is not [`ToolError`]; the others use
/// [`ToolError::fatal`].
///
/// ```
/// use countersign::outcome::FatalError;
/// use countersign::{BoxError, ToolError};
///
/// fn balance(account: u32) -> Result<i64, BoxError> {
///     match account {
///         0 => Err(FatalError::new("the books are closed").into()), // the run ends
///         1 => Err("no such account".into()), // the call fails
///         _ => Ok(100),
///     }
/// }
/// assert!(matches!(balance(0).map_err(ToolError::from), Err(ToolError::Fatal(_))));
/// assert!(matches!(balance(1).map_err(ToolError::from), Err(ToolError::Other(_))));
/// ```
#[derive(Debug)]
pub struct FatalError(BoxError);

impl FatalError {
    /// Creates an error that ends the run with `error`.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for FatalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The error with which a tool body asks for an approval of its own call. Return it, or use
/// [`RunContext::approved_for`](crate::RunContext::approved_for), which makes it.
///
/// ```
/// use countersign::outcome::ApprovalRequired;
/// use countersign::{FunctionToolset, RunContext, ToolCall, ToolError, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn write(cx: RunContext, file: File) -> Result<String, ToolError> {
///     if file.path == ".env" && cx.approved_for("protected file").is_err() {
///         return Err(ApprovalRequired::because("protected file").with_metadata("line", 3).into());
///     }
///     Ok(format!("wrote {}", file.path))
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("write", "Writes a file", write)));
/// let report = turn.run(vec![ToolCall::new("c1", "write", json!({"path": ".env"}))]).await?;
/// let suspended = report.into_suspended().unwrap();
/// assert_eq!(suspended.requests().metadata["c1"]["line"], 3);
/// let answers = suspended.requests().answer().approve("c1").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "wrote .env");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, Default, PartialEq, thiserror::Error)]
#[error("this call needs an approval")]
pub struct ApprovalRequired {
    pub(crate) key: String,
    pub(crate) reason: String,
    pub(crate) metadata: Map<String, Value>,
}

impl ApprovalRequired {
    /// Asks for an approval without giving a reason.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for an approval for this reason, which the approver sees, and which is the key of the question.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { key: reason.clone(), reason, metadata: Map::new() }
    }

    /// Adds a value to the request's metadata, for handlers and surfaces.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

/// The error with which a tool body defers its own call: the result comes from elsewhere, as an answer.
///
/// ```
/// use countersign::outcome::CallDeferred;
/// use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Render { scene: String }
/// async fn render(_: Render) -> Result<String, ToolError> {
///     let task = "task-7"; // of a queue, which calls back when it is done
///     Err(CallDeferred::new().with_metadata("task", task).into())
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("render", "Renders a scene", render)));
/// let report = turn.run(vec![ToolCall::new("c1", "render", json!({"scene": "sea"}))]).await?;
/// let suspended = report.into_suspended().unwrap();
/// assert_eq!(suspended.requests().metadata["c1"]["task"], "task-7");
/// let answers = suspended.requests().answer().result("c1", "sea.png").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "sea.png");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("this call is executed elsewhere")]
pub struct CallDeferred {
    pub(crate) kind: DeferralKind,
    pub(crate) metadata: Map<String, Value>,
}

impl CallDeferred {
    /// The call is executed elsewhere, outside of the stack.
    #[must_use]
    pub fn new() -> Self {
        Self { kind: DeferralKind::External, metadata: Map::new() }
    }

    /// The call's result is the answer of a person.
    #[must_use]
    pub fn question() -> Self {
        Self { kind: DeferralKind::Question, metadata: Map::new() }
    }

    /// Adds a value to the request's metadata, for example the id of the task that was started.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

impl Default for CallDeferred {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ApprovalRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalRequired(key: {:?}, metadata: {:?})", self.key, self.metadata.keys())
    }
}

impl fmt::Debug for CallDeferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallDeferred({:?}, metadata: {:?})", self.kind, self.metadata.keys())
    }
}
