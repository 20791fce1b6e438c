//! What happens in a run, as it happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::JOINT;
use super::report::TurnReport;
use crate::call::ToolCall;
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::message::{RequestPart, ResponsePart};

/// What happens in a run, as it happens. The JSON of the tool events is PydanticAI's (`event_kind`).
///
/// Of one call the order is: [`FunctionToolCall`](Self::FunctionToolCall); if it waits,
/// [`DeferredToolRequests`](Self::DeferredToolRequests) and, once it is answered inline,
/// [`DeferredToolResults`](Self::DeferredToolResults); then [`FunctionToolResult`](Self::FunctionToolResult). Calls of
/// one response interleave.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event_kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// More of the text of a response that is being made.
    TextDelta {
        /// The text that was added to the response.
        text: String,
    },
    /// The model is asked again: what was heard of the response so far is void.
    ResponseRestarted,
    /// The model has responded.
    Response {
        /// Text and calls, in the model's order.
        parts: Vec<ResponsePart>,
    },
    /// A call is taken up: it is new, or was answered and the run resumed.
    FunctionToolCall {
        /// The call as the model made it.
        part: ToolCall,
        /// Whether its arguments fit the tool; unknown where nobody looked, as for a call that is executed elsewhere
        /// or was denied.
        args_valid: Option<bool>,
    },
    /// Calls wait, and now somebody is asked about them.
    DeferredToolRequests {
        /// The batch of pending calls that is asked about.
        requests: DeferredToolRequests,
    },
    /// A handler has answered.
    DeferredToolResults {
        /// Its answers. They are checked after this.
        results: DeferredToolResults,
    },
    /// A call has its result.
    FunctionToolResult {
        /// What the model is told.
        part: RequestPart,
    },
    /// The calls of the response have come as far as they can now.
    ToolCallsDone {
        /// All that is known about them, in model order; not part of the JSON.
        #[serde(skip)]
        report: Arc<TurnReport>,
    },
    /// Something happened in a sub-agent.
    SubAgent {
        /// The agent behind its parents: `root/cleaner`.
        path: String,
        /// The call of the parent's that the agent works on, with the ids of the calls above it: as in the requests.
        tool_call_id: String,
        /// What happened. Never itself of this kind.
        event: Box<Self>,
    },
}

type Watch = dyn Fn(&RunEvent) + Send + Sync;

/// Whoever watches a run.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Vec<Arc<Watch>>);

impl Watchers {
    pub(crate) fn add(&mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) {
        self.0.push(Arc::new(watch));
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Tells of what happens in an agent that works on a call.
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

    /// Whether anybody watches.
    pub(crate) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Tells everybody. Whoever watches has no say: its panic does not end a run whose tools have run.
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
