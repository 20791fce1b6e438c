//! A tool call, the definition of its tool, and the record of the decisions about it.
//!
//! ```
//! use countersign::ToolCall;
//! use serde_json::json;
//!
//! let call = ToolCall::new("call_1", "delete_file", json!({"path": "a.log"}));
//! assert_eq!((call.id(), call.name(), call.args().str("path")), ("call_1", "delete_file", Some("a.log")));
//! // Outside of a turn the context is empty; in one it has the run, the agent, the tool and the dependencies.
//! assert!(call.context().tool_definition().is_none());
//! ```

mod ancestor;
mod approval;
mod ask_history;
mod cell;
mod claim;
mod context;
mod definition;
mod execution;
mod execution_journal;
mod extensions;
mod level;
mod parts;
mod record;
mod repeated;
mod source;
mod sync;
mod usage;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::depth::{MAX_ARGS, is_deeper};
use crate::args::{Args, ArgsError, IntoArgs, unique};
use crate::error::UserError;
pub(crate) use ancestor::{Decider, Inherited};
pub(crate) use approval::Approval;
pub use ask_history::{AskHistory, DeniedBefore};
pub(crate) use ask_history::{Denied, call_key};
pub(crate) use cell::{Claim, ExecutionGuard};
pub(crate) use claim::{BodyToken, Rerun};
pub(crate) use context::{CallInfo, RunInfo};
pub use context::{Phase, RunContext, Said};
pub(crate) use definition::{Behind, Leaf, Validate, tool_layer};
pub use definition::{ToolDefinition, ToolKind};
pub use execution::Execution;
pub(crate) use execution::SharedError;
pub(crate) use execution_journal::{
    ExecutionJournal, JournalClaim, JournalToken, JournaledCall, ask_anew, ask_to_repeat,
    is_about_repeating, keeping, repeated,
};
pub use extensions::Extensions;
pub(crate) use level::{Applied, Level, Place, Progress, SetId, Standing, stands};
pub use parts::Parts;
pub(crate) use record::{CallRecord, Closed, name_rewriters};
pub use repeated::RepeatedRequest;
pub use source::ToolSource;
pub(crate) use usage::Meter;
pub use usage::{Usage, UsageLimits};

/// One call the model asks for: id, tool name, arguments, extensions, and (privately) its record.
///
/// Cheap to clone. A layer may replace the arguments with [`with_args`](Self::with_args) and add extensions. Id, name
/// and record have no setter, so that no layer can lose a question, a denial or an execution.
///
/// The JSON is PydanticAI's `ToolCallPart`.
///
/// ```
/// use countersign::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::new("call_1", "delete_file", json!({"path": "a.log"}));
/// assert_eq!(call.args()["path"], "a.log");
/// let text = ToolCall::new("call_2", "delete_file", json!("{\"path\": \"a.log\"}")); // text, as providers send it
/// assert_eq!(text.args(), call.args());
/// ```
///
/// # What travels with a call
///
/// | part | who sets it | visible to |
/// |---|---|---|
/// | id, name | the model; wrappers rename for the levels inside | everyone |
/// | arguments | the model; layers, for the layers inside | everyone; the gate requires that all have decided on the final ones |
/// | extensions | layers | layers inside and the body; neither stored nor approved |
/// | the record | the turn | the library only |
/// | the progress through the levels | our layers | the gate (rule D9) |
///
/// A call that a layer builds with [`new`](Self::new) has no record, and the gate refuses it with
/// [`UserError::NoPass`]. Change the call that you were given instead.
#[derive(Clone)]
pub struct ToolCall {
    inner: Arc<Inner>,
    progress: Progress,
}

/// Everything about a call but its progress, behind one pointer: every layer moves and clones calls, and few change one.
#[derive(Clone)]
struct Inner {
    id: Arc<str>,
    name: Arc<str>,
    args: Args,
    extensions: Extensions,
    /// The value that the model sent in place of arguments, if it cannot be read as such, and why.
    unreadable: Option<(Value, ArgsError)>,
    record: Option<Arc<CallRecord>>,
    /// Replaces the context of the record where a composite asks its members again.
    cx: Option<RunContext>,
}

impl ToolCall {
    /// A call as the model made it. `args` may be an object of at most 64 levels, the text of one, or nothing (`null`,
    /// empty text). Any other value is kept as it was sent (a value with more levels as text), and the turn tells the
    /// model to try again (rule T5).
    ///
    /// ```
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "delete_file", json!({"path": "a.log"}));
    /// assert_eq!((call.id(), call.name(), call.args().str("path")), ("c1", "delete_file", Some("a.log")));
    /// ```
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, args: impl Into<Value>) -> Self {
        let sent = args.into();
        let (args, unreadable) = match Args::try_from(sent.clone()) {
            Ok(args) => (args, None),
            Err(error) => (Args::new(), Some((storable(sent), error))),
        };
        let inner = Inner {
            id: id.into(),
            name: name.into(),
            args,
            extensions: Extensions::default(),
            unreadable,
            record: None,
            cx: None,
        };
        Self { inner: Arc::new(inner), progress: Progress::default() }
    }

    /// A call read from storage. Unlike [`new`](Self::new) it takes objects of more than 64 levels, which earlier
    /// versions accepted and stored.
    ///
    /// Such a call may still be pending. If we refused to read it, no one could answer it, and its run would be
    /// blocked.
    fn stored(id: Arc<str>, name: Arc<str>, args: Value) -> Self {
        match args {
            Value::Object(map) => Self::new(id, name, Value::Null).with_args(map),
            args => Self::new(id, name, args),
        }
    }

    /// The id that the model, or the library in its place, gave the call. Unique in its response.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    pub(crate) fn shared_id(&self) -> &Arc<str> {
        &self.inner.id
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// The name of the tool, as it is called at this level of the stack.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The arguments, as the layers outside of this one have left them.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.inner.args
    }

    /// The same call with other arguments. Layers inside see them; layers outside decide again (rule D3).
    ///
    /// ```
    /// use countersign::{Args, ToolCall};
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "search", json!({"text": "cats"}));
    /// let limited = call.clone().with_args(call.args().clone().with("limit", 10));
    /// assert_eq!(limited.args()["limit"], 10);
    /// assert_eq!(call.args()["limit"], json!(null), "a clone is another value");
    /// assert_eq!(call.with_args(Args::new()).args(), &Args::new());
    /// ```
    #[must_use]
    pub fn with_args(mut self, args: impl IntoArgs) -> Self {
        self.replace_args(args.into_args());
        self
    }

    pub(crate) fn replace_args(&mut self, args: Args) {
        if !self.inner.args.same(&args) {
            self.change(|inner| inner.args = args);
        }
    }

    /// Changes this call, and no clone of it.
    fn change(&mut self, change: impl FnOnce(&mut Inner)) {
        change(Arc::make_mut(&mut self.inner));
    }

    /// The values that layers have attached to the call.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.inner.extensions
    }

    /// The values that layers have attached, for a layer to add its own. Layers inside see them; they are neither
    /// stored nor part of an approval.
    ///
    /// ```
    /// use countersign::ToolCall;
    ///
    /// struct Priority(u8);
    ///
    /// let mut call = ToolCall::new("c1", "search", serde_json::json!({}));
    /// call.extensions_mut().insert(Priority(3));
    /// assert_eq!(call.extensions().get::<Priority>().map(|it| it.0), Some(3));
    /// ```
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut Arc::make_mut(&mut self.inner).extensions
    }

    /// The run, the pass and the approval of this call; an empty context outside a turn.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        match (&self.inner.cx, &self.inner.record) {
            (Some(cx), _) => cx,
            (None, Some(record)) => record.context(),
            (None, None) => RunContext::empty(),
        }
    }

    /// The reason why the arguments that the model sent cannot be read; `None` if they can.
    pub(crate) fn unreadable(&self) -> Option<&ArgsError> {
        self.inner.unreadable.as_ref().map(|(_, error)| error)
    }

    /// The record of this pass, or an error. A call that a layer has built instead of received has none. A tool body
    /// may not send the call it was given through the stack: it would wait for its own end.
    #[inline]
    pub(crate) fn record(&self) -> Result<&Arc<CallRecord>, UserError> {
        self.known_record().ok_or_else(|| self.without_pass())
    }

    /// The record of this pass, where it does not matter why there is none.
    #[inline]
    pub(crate) fn known_record(&self) -> Option<&Arc<CallRecord>> {
        self.inner.record.as_ref().filter(|_| self.progress != Progress::AT_BODY)
    }

    #[cold]
    fn without_pass(&self) -> UserError {
        let (id, tool) = (self.id().into(), self.name().into());
        match self.progress {
            Progress::AT_BODY => UserError::CallFromBody { id, tool },
            _ => UserError::NoPass { id, tool },
        }
    }

    /// The progress of the call through the levels of its stack (rule D9).
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// The call, as it enters the level of a `layered`.
    #[inline]
    pub(crate) fn entering(mut self, level: &Level) -> Self {
        if !level.is_empty()
            && let Some(record) = self.known_record()
            && let Some(progress) = record.definition().way().entering(level, self.progress)
        {
            self.progress = progress;
        }
        self
    }

    /// Records that the middleware at this place has passed the call on.
    #[inline]
    pub(crate) fn passes(&mut self, place: &Place) {
        self.progress.pass(place);
    }

    /// The call as the tool body gets it: it cannot be sent through the stack any more.
    pub(crate) fn at_body(mut self) -> Self {
        self.progress = Progress::AT_BODY;
        self
    }

    /// The call as it enters the stack, with the record of the pass.
    pub(crate) fn entering_stack(&self, args: Args, record: Arc<CallRecord>) -> Self {
        let inner =
            Inner { args, record: Some(record), unreadable: None, ..Inner::clone(&self.inner) };
        Self { inner: Arc::new(inner), progress: Progress::default() }
    }

    /// The same call, with a context that is marked as a repeat, for a member of a composite that is asked again.
    pub(crate) fn repeated(&self) -> Self {
        let cx = self.context().repeated();
        self.changed(|inner| inner.cx = Some(cx))
    }

    /// The call under the name that the tool has inside of a wrapper.
    pub(crate) fn renamed(&self, name: Arc<str>) -> Self {
        self.changed(|inner| inner.name = name)
    }

    /// The same call under another id, as it enters from a response.
    pub(crate) fn with_id(&self, id: impl Into<Arc<str>>) -> Self {
        self.changed(|inner| inner.id = id.into())
    }

    /// A changed copy.
    fn changed(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut call = self.clone();
        call.change(change);
        call
    }
}

/// The value that a model sent in place of arguments, in a form that can be stored: as text, if it is nested too deep.
fn storable(sent: Value) -> Value {
    if is_deeper(&sent, MAX_ARGS) { Value::String(sent.to_string()) } else { sent }
}

impl PartialEq for ToolCall {
    /// Same id, name and arguments.
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id() && self.name() == other.name() && self.sent() == other.sent()
    }
}

impl ToolCall {
    pub(crate) fn sent(&self) -> Value {
        match &self.inner.unreadable {
            Some((sent, _)) => sent.clone(),
            None => self.inner.args.to_value(),
        }
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ToolCall");
        out.field("id", &self.id()).field("name", &self.name()).field("args", self.args());
        if self.inner.unreadable.is_some() {
            out.field("readable", &false);
        }
        out.finish_non_exhaustive()
    }
}

/// PydanticAI's shape of a call.
#[derive(Serialize, Deserialize)]
struct ToolCallPart {
    tool_name: Arc<str>,
    #[serde(default, deserialize_with = "unique::value")]
    args: Value,
    tool_call_id: Arc<str>,
    #[serde(default, skip_deserializing)]
    tool_kind: Option<()>,
    #[serde(default, skip_deserializing)]
    id: Option<()>,
    #[serde(default, skip_deserializing)]
    provider_name: Option<()>,
    #[serde(default, skip_deserializing)]
    provider_details: Option<()>,
    #[serde(default)]
    part_kind: PartKind,
}

#[derive(Default, Serialize, Deserialize)]
enum PartKind {
    #[default]
    #[serde(rename = "tool-call")]
    ToolCall,
}

impl Serialize for ToolCall {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ToolCallPart {
            tool_name: Arc::clone(&self.inner.name),
            args: self.sent(),
            tool_call_id: Arc::clone(&self.inner.id),
            tool_kind: None,
            id: None,
            provider_name: None,
            provider_details: None,
            part_kind: PartKind::ToolCall,
        }
        .serialize(serializer)
    }
}

impl JsonSchema for ToolCall {
    fn schema_name() -> Cow<'static, str> {
        "ToolCall".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One call that the model made.",
            "type": "object",
            "properties": {
                "tool_name": {"type": "string"},
                "args": {
                    "description": "The arguments: an object, or what the model sent in place of one."
                },
                "tool_call_id": {"type": "string"},
                "part_kind": {"const": "tool-call"}
            },
            "required": ["tool_name", "tool_call_id"]
        })
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = ToolCallPart::deserialize(deserializer)?;
        Ok(Self::stored(part.tool_call_id, part.tool_name, part.args))
    }
}
