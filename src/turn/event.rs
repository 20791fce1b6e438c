//! The events of a run, and the watchers that get them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{JOINT, prefix};
use super::report::TurnReport;
use crate::call::ToolCall;
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::message::{RequestPart, ResponsePart};

/// An event of a run. The JSON of the tool events is PydanticAI's (`event_kind`).
///
/// The events of one call come in this order: [`FunctionToolCall`](Self::FunctionToolCall); if the call is deferred,
/// [`DeferredToolRequests`](Self::DeferredToolRequests) and, once a handler has answered,
/// [`DeferredToolResults`](Self::DeferredToolResults); then [`FunctionToolResult`](Self::FunctionToolResult). The
/// events of the calls of one response interleave.
///
/// ```
/// use countersign::turn::RunEvent;
///
/// let event = RunEvent::TextDelta { text: "I look".into() };
/// assert_eq!(serde_json::to_value(&event)?, serde_json::json!({"event_kind": "text_delta", "text": "I look"}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event_kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// A part of the text of a response, while the model is streaming it.
    TextDelta {
        /// The text that was added to the response.
        text: String,
    },
    /// The model request is repeated: discard the text that was streamed of the response so far.
    ResponseRestarted,
    /// The model has responded.
    Response {
        /// The parts of the response, in the model's order.
        parts: Vec<ResponsePart>,
    },
    /// The turn takes up a call: it is new, or was answered and the run resumed.
    FunctionToolCall {
        /// The call as the model made it.
        part: ToolCall,
        /// `true` if the arguments fit the tool; `None` where they were not validated, as for a call that is executed
        /// elsewhere or was denied.
        args_valid: Option<bool>,
    },
    /// Calls are pending, and the handler is about to be asked, if there is one.
    DeferredToolRequests {
        /// The batch of pending calls that is asked about.
        requests: DeferredToolRequests,
    },
    /// A handler has answered.
    DeferredToolResults {
        /// The answers of the handler, before they are checked.
        results: DeferredToolResults,
    },
    /// A call has its result.
    FunctionToolResult {
        /// The result of the call, as the model gets it.
        part: RequestPart,
    },
    /// The turn has ended, with pending calls, with results for all calls, or with an error.
    ToolCallsDone {
        /// The report of the turn; not part of the JSON.
        #[serde(skip)]
        report: Arc<TurnReport>,
    },
    /// An event of a sub-agent.
    SubAgent {
        /// The path of the agent, from the root of the run: `root/cleaner`.
        path: String,
        /// The id of the parent's call that the agent works on, prefixed with the ids of the calls above it, as in a
        /// batch.
        tool_call_id: String,
        /// The event of the agent. Never itself of this kind.
        event: Box<Self>,
    },
}

impl RunEvent {
    /// The id that a call of this event has in the batch: the call's own id, and for a call of a sub-agent that id
    /// behind the ids of the calls above it.
    ///
    /// ```
    /// use countersign::turn::RunEvent;
    ///
    /// let event = RunEvent::TextDelta { text: "Hi".into() };
    /// assert_eq!(event.call_id("call_1"), "call_1");
    /// let event = RunEvent::SubAgent { path: "root/cleaner".into(), tool_call_id: "call_1".into(), event: Box::new(event) };
    /// assert_eq!(event.call_id("call_2"), "call_1/call_2");
    /// ```
    #[must_use]
    pub fn call_id(&self, id: &str) -> String {
        match self {
            Self::SubAgent { tool_call_id, .. } => format!("{}{id}", prefix(tool_call_id)),
            _ => id.to_owned(),
        }
    }
}

type Watch = dyn Fn(&RunEvent) + Send + Sync;

/// The watchers of a run, which get its events.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Vec<Arc<Watch>>);

impl Watchers {
    pub(crate) fn add(&mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) {
        self.0.push(Arc::new(watch));
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Watchers for an agent that works on a call: each event is passed to these watchers as [`RunEvent::SubAgent`].
    ///
    /// We do not wrap an event of an agent two levels down twice. We put the id of the outer call in front of the inner
    /// one (`call_1/call_2`), and keep the path of the inner agent, so a reader needs no recursion.
    pub(crate) fn of_agent(&self, path: String, call: &str) -> Self {
        if self.0.is_empty() {
            return Self::default();
        }
        let (above, call) = (self.clone(), call.to_owned());
        let mut watchers = Self::default();
        watchers.add(move |event| {
            above.tell(|| match event.clone() {
                RunEvent::SubAgent { path, tool_call_id, event } => {
                    let tool_call_id = format!("{call}{JOINT}{tool_call_id}");
                    RunEvent::SubAgent { path, tool_call_id, event }
                }
                event => {
                    let event = Box::new(event);
                    RunEvent::SubAgent { path: path.clone(), tool_call_id: call.clone(), event }
                }
            });
        });
        watchers
    }

    /// Returns `true` if there is any watcher.
    pub(crate) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Passes an event to every watcher. A panic of a watcher is caught: it must not end a run whose tools have run.
    pub(crate) fn tell(&self, event: impl FnOnce() -> RunEvent) {
        if self.0.is_empty() {
            return;
        }
        let event = event();
        for watch in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| watch(&event))).is_err() {
                tracing::error!("the watcher of a run panicked");
            }
        }
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchers({})", self.0.len())
    }
}
