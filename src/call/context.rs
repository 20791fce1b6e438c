//! What hooks, predicates, handlers and tool bodies know about the run and their call.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AskHistory, Extensions, Journal, Meter, ToolDefinition};
use crate::args::{Args, canonical};
use crate::decision::{Decision, Question, ToolDecision};
use crate::error::UserError;
use crate::outcome::ApprovalRequired;

/// Which pass through the stack a call is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The first pass, on the call as the model made it. It is made again, and is still the first, when a layer inside
    /// has changed the arguments (rule D3): [`RunContext::is_repeat`] tells.
    First,
    /// The pass after an approval. Every middleware runs again (rule A1).
    Approved,
}

/// The run, and the call of it that is being decided or executed. Cheap to clone.
///
/// Every middleware hook, predicate, handler and tool body gets one. In a handler there is no single call, so that
/// the accessors about a call give `None` or `false`.
#[derive(Clone, Default)]
pub struct RunContext {
    run: Arc<RunInfo>,
    call: Option<Arc<CallInfo>>,
    /// A composite asks its members again, within one pass.
    repeat: bool,
}

#[derive(Clone, Default)]
pub(crate) struct RunInfo {
    pub(crate) run_id: String,
    /// The number of the response in its run, from 0.
    pub(crate) response: u32,
    /// The agent and its parents, outermost first.
    pub(crate) path: Vec<String>,
    pub(crate) deps: Extensions,
    pub(crate) explain: bool,
    /// Every error of a tool ends the run.
    pub(crate) tool_errors_end_run: bool,
    pub(crate) usage: Arc<Meter>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// What the run has asked people, once it has begun.
    pub(crate) asks: Option<AskHistory>,
}

pub(crate) struct CallInfo {
    pub(crate) id: Arc<str>,
    /// The name the model used.
    pub(crate) name: Arc<str>,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) phase: Phase,
    pub(crate) walk: u32,
    /// Whether an agent behind the call has begun its work: the call was let through before.
    pub(crate) begun: bool,
    pub(crate) approval: Option<Approval>,
    pub(crate) attempts: AtomicU32,
    pub(crate) said: Mutex<Vec<Said>>,
}

/// What was approved: the call may run for exactly this.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// The tool's identity at its gate.
    pub(crate) tool: String,
    pub(crate) args: Args,
    pub(crate) questions: Vec<Question>,
    /// What came with the answer, for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The ask that was approved, where asks are written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<String>,
}

impl Approval {
    /// Whether all of these questions were shown when the call was approved.
    pub(crate) fn answers(&self, questions: &[Question]) -> bool {
        questions
            .iter()
            .all(|question| self.questions.iter().any(|shown| shown.id() == question.id()))
    }
}

/// What one layer said about a call, kept when the turn is asked to [explain](crate::Turn::explain).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The layer.
    pub layer: String,
    /// The pass it was on.
    pub phase: Phase,
    /// The walk of that pass, from 1; a second one is made when a layer inside has changed the arguments.
    pub walk: u32,
    /// Its decision.
    pub decision: ToolDecision,
    /// Its reasons; empty for an ALLOW.
    pub reason: String,
    /// Whether it changed the arguments.
    pub changed_args: bool,
}

impl RunContext {
    pub(crate) fn of_run(run: Arc<RunInfo>) -> Self {
        Self { run, call: None, repeat: false }
    }

    pub(crate) fn of_call(run: Arc<RunInfo>, call: CallInfo) -> Self {
        Self { run, call: Some(Arc::new(call)), repeat: false }
    }

    /// The context for a member of a composite that is asked about the call again.
    pub(crate) fn repeated(&self) -> Self {
        Self { repeat: true, ..self.clone() }
    }

    /// The same context with a dependency more, for tests of middleware and handlers; a run gets its dependencies from
    /// its [turn](crate::Turn::deps) or [agent](crate::Agent::deps).
    #[must_use]
    pub fn with_deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.run).deps.insert(value);
        self
    }

    /// The context of a call outside a turn.
    pub(crate) fn empty() -> &'static Self {
        static EMPTY: LazyLock<RunContext> = LazyLock::new(RunContext::default);
        &EMPTY
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run.run_id
    }

    /// The number of the model's response in its run, from 0.
    #[must_use]
    pub fn response(&self) -> u32 {
        self.run.response
    }

    /// The agent, behind its parents: `root/cleaner`.
    #[must_use]
    pub fn agent_path(&self) -> String {
        self.run.path.join("/")
    }

    /// A dependency of the run, looked up by its type.
    ///
    /// # Errors
    /// [`UserError::MissingDeps`] when the run was not given one. With `?` in a tool body the other calls of the response
    /// finish, and the run ends with [`ErrorKind::Tool`](crate::ErrorKind::Tool), which names the call and has this error's
    /// text as its source; the model is told of an internal error. With `?` in a middleware its call is denied, and the
    /// others go on (rule D4).
    pub fn deps<T: Send + Sync + 'static>(&self) -> Result<&T, UserError> {
        self.run.deps.get().ok_or(UserError::MissingDeps { type_name: std::any::type_name::<T>() })
    }

    /// The id of the call.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.id)
    }

    /// The name of the tool, as the model called it.
    #[must_use]
    pub fn tool_name(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.name)
    }

    /// What is known about the tool, with what the toolset and the wrappers have added for predicates, under the name
    /// that the model used.
    #[must_use]
    pub fn tool_definition(&self) -> Option<&ToolDefinition> {
        self.call.as_ref().map(|call| &*call.definition)
    }

    /// Which pass the call is on.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.call.as_ref().map_or(Phase::First, |call| call.phase)
    }

    /// Whether the call has been through the stack before, so that the middleware that is asked has decided it (rule D3).
    /// What is counted once for each call (a rate limit, a budget, a metric) is counted where this is `false`.
    ///
    /// It is `true` for every middleware
    /// - on the approved pass ([`Phase::Approved`]), also in another process or after a restart, and also with edited
    ///   arguments: what was counted in memory may be gone by then, and is not counted anew;
    /// - when the call is walked again because a layer inside has changed its arguments; for a member of a
    ///   [`Chain`](crate::Chain) also when another member has;
    /// - when the [agent](crate::Agent::as_tool) behind the call has begun, and goes on after an answer.
    ///
    /// It is `false` on the first walk of the first pass, as often as a layer outside (a tower `retry` or `hedge`) sends the
    /// call there, as each of these attempts may run the tool; on the walks above such attempts are repeats like the first
    /// one. It says nothing about other calls: a call that the model makes again, with the same arguments, is a new one. It
    /// goes by the call and not by the layer: one that was put into the stack while the call waited, or that a layer outside
    /// of it kept from being asked (as a cache does that answers itself), is told `true` where it decides for the first time.
    ///
    /// ```
    /// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// struct Budget(AtomicU32);
    ///
    /// impl ToolMiddleware for Budget {
    ///     async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
    ///         let take = |left: u32| left.checked_sub(1);
    ///         if cx.is_repeat() || self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
    ///             return Decision::allow();
    ///         }
    ///         Decision::deny("the budget is used up")
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn is_repeat(&self) -> bool {
        let again =
            |call: &Arc<CallInfo>| call.begun || call.walk > 1 || call.phase == Phase::Approved;
        self.repeat || self.call.as_ref().is_some_and(again)
    }

    /// How often the call has reached its gate in this pass, counting this time; more than 1 only below a layer that
    /// sends calls again, and 0 before the gate.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call.as_ref().map_or(0, |call| call.attempts.load(Ordering::Relaxed))
    }

    /// Whether this call was approved. A tool body that has a question of its own asks it with
    /// [`approved_for`](Self::approved_for), as this only says that *something* was approved.
    #[must_use]
    pub fn tool_call_approved(&self) -> bool {
        self.approval().is_some()
    }

    /// What the answer said for the tool: `DeferredToolResults.metadata` of this call, and nothing else (rule A5).
    #[must_use]
    pub fn tool_call_metadata(&self) -> Option<&Map<String, Value>> {
        self.approval()?.metadata.as_ref()
    }

    /// Defers the call until exactly this was shown to somebody and approved (rule A7). In a tool body:
    ///
    /// ```
    /// # use countersign::{RunContext, ToolError};
    /// async fn update_file(cx: RunContext, path: String) -> Result<String, ToolError> {
    ///     if path == ".env" {
    ///         cx.approved_for("protected file")?;
    ///     }
    ///     Ok(format!("updated {path}"))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ApprovalRequired`] while it was not approved for this; return it, as `?` does.
    pub fn approved_for(&self, reason: impl Into<String>) -> Result<(), ApprovalRequired> {
        let required = ApprovalRequired::because(reason);
        let shown = |call: &Arc<CallInfo>| {
            let layer = call.definition.leaf().map(|leaf| tool_layer(&leaf.name));
            let questions = call.approval.as_ref().map_or(&[][..], |approval| &approval.questions);
            questions.iter().any(|question| {
                Some(&question.layer) == layer.as_ref() && question.key == required.key
            })
        };
        if self.call.as_ref().is_some_and(shown) { Ok(()) } else { Err(required) }
    }

    /// The same text whenever the same call is executed again, for a tool declared idempotent to hand on. `None`
    /// outside a call.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        let call = self.call.as_ref()?;
        let parts =
            [&self.run.run_id, &self.run.response.to_string(), &self.agent_path(), &*call.id]
                .map(Value::from);
        Some(canonical(&Value::from(parts.to_vec())))
    }

    pub(crate) fn approval(&self) -> Option<&Approval> {
        self.call.as_ref()?.approval.as_ref()
    }

    /// Whether the turn is to explain.
    #[inline]
    pub(crate) fn explains(&self) -> bool {
        self.run.explain
    }

    /// Notes what a layer said, if the turn is to explain.
    pub(crate) fn note(
        &self,
        layer: impl FnOnce() -> Cow<'static, str>,
        decision: &Decision,
        seen: &Args,
    ) {
        let Some(call) = self.call.as_ref().filter(|_| self.explains()) else { return };
        call.said.lock().unwrap_or_else(PoisonError::into_inner).push(Said {
            layer: layer().into_owned(),
            phase: call.phase,
            walk: call.walk,
            decision: decision.decision(),
            reason: decision.reason(),
            changed_args: decision.changes(seen),
        });
    }

    pub(crate) fn said(&self) -> Vec<Said> {
        self.call.as_ref().map_or_else(Vec::new, |call| {
            std::mem::take(&mut *call.said.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// What is known about the run, for a sub-agent to start from.
    pub(crate) fn run(&self) -> &RunInfo {
        &self.run
    }

    pub(crate) fn arrives(&self) {
        if let Some(call) = &self.call {
            call.attempts.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Who asks, when it is the tool itself.
pub(crate) fn tool_layer(name: &str) -> String {
    format!("tool `{name}`")
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("run_id", &self.run_id())
            .field("agent", &self.agent_path())
            .field("call", &self.tool_call_id())
            .field("tool", &self.tool_name())
            .field("phase", &self.phase())
            .field("approved", &self.tool_call_approved())
            .finish_non_exhaustive()
    }
}
