//! The call record: one private record of one pass, made by the turn and shared by every clone of the call.
//!
//! It only grows. A layer may clone, rebuild, restore or retry a call: a question stays asked, a denial stays denied,
//! and what was started stays started.
//!
//! # What the stack cannot do to it
//!
//! | a layer … | and the record … |
//! |---|---|
//! | clones the call, or sends a clone later | is shared by all clones |
//! | replaces a denied outcome by another one | still has the denial: the turn reports it |
//! | swallows the deferral of an ASK | still has the question: the call stays pending |
//! | retries the call | gives the second attempt the first result, unless it may be repeated |
//! | answers without calling the tool | has no execution: the answer counts only if no question is open (rule A1) |
//! | drops the call in the middle | records that it may have run |
//! | keeps the call and sends it after the pass | is closed: nothing runs (rule T6) |
//!
//! # How it finds changed arguments (rule D3)
//!
//! `passed_on` holds the arguments that the first middleware passed on. If each later one and the gate see the same
//! ones, all have decided on what runs, and we took no lock. As soon as one sees others, we set `mixed`, and the gate
//! sends the turn back with the arguments it has got (`again`). "Same" is the same object in memory in the fast path,
//! and the same canonical text otherwise. For example, a layer that rebuilds equal arguments has changed nothing.
//!
//! We list the middleware that changed arguments by name, for the message of a denial. A tower layer has no name, so we
//! name the first middleware *inside* of it, which saw the change.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::cell::{ExecutionCell, ExecutionState};
use super::execution::Ended;
use super::{Approval, Execution, Inherited, RunContext, SharedError, ToolCall, ToolDefinition};
use crate::args::{Args, ArgsError};
use crate::decision::{Decision, Denial, LayerName, Question, Verdict};
use crate::error::UserError;
use crate::outcome::Deferral;

pub(crate) struct CallRecord {
    cx: RunContext,
    definition: Arc<ToolDefinition>,
    /// `true` if there is a sub-agent behind the tool. Each layer asks, and the definition is three pointers away.
    inherited: bool,
    /// The arguments that the turn has validated against the tool's schema before the pass.
    valid: Args,
    /// The arguments that the first middleware passed on. All others, and the gate, must see the same ones (rule D3).
    passed_on: OnceLock<Args>,
    /// Set when an attempt skipped a middleware on its way to the gate: every later attempt is refused too (rule D9).
    skipped: OnceLock<Box<UserError>>,
    state: Mutex<State>,
    pub(super) cell: ExecutionCell<Ended, SharedError>,
}

#[derive(Default)]
struct State {
    questions: Vec<Question>,
    denied: Option<Denial>,
    deferred: Option<Deferral>,
    /// `true` if the gate has handed the call to the agent behind its tool.
    delegated: bool,
    /// The layers that the call has passed, if there is an agent behind its tool.
    inherited: Vec<Inherited>,
    /// The arguments with which the latest attempt reached the gate.
    at_gate: Option<Args>,
    /// The latest arguments that a middleware passed on, if they were not those of the first.
    passed_on_last: Option<Args>,
    /// The middleware that changed the arguments. A change by any other tower layer is not seen directly.
    rewriters: Vec<Cow<'static, str>>,
    /// The first middleware to see arguments that a layer outside of it, which is no middleware, has changed.
    changed_outside_of: Option<Cow<'static, str>>,
    /// `true` if a middleware passed on other arguments than the first one, so that not all decided on the same.
    mixed: bool,
    /// The arguments to repeat the pass with, if it has to be repeated (rule D3).
    again: Option<Args>,
}

/// The result of a pass, when its outcome is taken.
pub(crate) struct Closed {
    pub(crate) questions: Vec<Question>,
    pub(crate) denied: Option<Denial>,
    pub(crate) deferred: Option<Deferral>,
    pub(crate) delegated: bool,
    pub(crate) inherited: Vec<Inherited>,
    pub(crate) again: Option<Args>,
    pub(crate) rewriters: Vec<Cow<'static, str>>,
    pub(crate) changed_outside_of: Option<Cow<'static, str>>,
    /// The error of an attempt that skipped a layer.
    pub(crate) skipped: Option<UserError>,
    /// The arguments that ran or would run, as far as the pass got.
    pub(crate) args: Args,
    pub(crate) execution: Execution,
    /// The error that the execution has ended with, if it is not for the model.
    pub(crate) fatal: Option<SharedError>,
    /// The error of the tool body whose text the model gets, kept for the host.
    pub(crate) error: Option<SharedError>,
}

impl CallRecord {
    /// A new record. `questions` are those that an earlier run of the same pass has left open.
    pub(crate) fn new(
        cx: RunContext,
        definition: Arc<ToolDefinition>,
        valid: Args,
        questions: Vec<Question>,
    ) -> Self {
        let state = State { questions, ..State::default() };
        let inherited = definition.leaf().is_some_and(|leaf| leaf.behind.is_some());
        Self {
            cx,
            definition,
            inherited,
            valid,
            passed_on: OnceLock::new(),
            skipped: OnceLock::new(),
            state: Mutex::new(state),
            cell: ExecutionCell::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn context(&self) -> &RunContext {
        &self.cx
    }

    pub(crate) fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    pub(crate) fn approval(&self) -> Option<&Approval> {
        self.cx.approval()
    }

    /// Records that a middleware neither asks, denies nor changes the arguments. This is the common case, and takes no
    /// lock when the arguments are the ones that the first middleware passed on.
    #[inline]
    pub(crate) fn allowed(&self, seen: &Args, layer: LayerName<'_>) {
        if !self.passed_on.get().is_some_and(|first| first.same(seen)) {
            self.passes_on(seen, false, layer);
        }
    }

    /// Records the decision of a middleware. Returns the changed arguments to pass on, if any, or the denial that
    /// counts.
    pub(crate) fn decided(
        &self,
        decision: Decision,
        seen: &Args,
        layer: LayerName<'_>,
    ) -> Result<Option<Args>, Denial> {
        let decision = match &decision.args {
            Some(args) if args.are_too_deep() => Decision::failed(ArgsError::too_deep()),
            _ => decision,
        };
        let decision = decision.named(layer);
        match decision.verdict {
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => self.ask(questions),
            Verdict::Deny(denial) => return Err(self.deny(*denial)),
        }
        let changed = decision.args.filter(|args| !args.equal(seen));
        self.passes_on(changed.as_ref().unwrap_or(seen), changed.is_some(), layer);
        Ok(changed)
    }

    fn passes_on(&self, args: &Args, changed: bool, layer: LayerName<'_>) {
        let first = self.passed_on.get_or_init(|| args.clone());
        if !changed && first.same(args) {
            return;
        }
        let mixed = !first.equal(args);
        let mut state = self.lock();
        state.mixed |= mixed;
        state.passed_on_last = Some(args.clone());
        if changed {
            state.rewriters.push(layer());
        } else if mixed && state.rewriters.is_empty() {
            state.changed_outside_of.get_or_insert_with(layer);
        }
    }

    /// Adds questions that the pass does not have yet.
    pub(crate) fn ask(&self, questions: impl IntoIterator<Item = Question>) {
        let mut state = self.lock();
        for question in questions {
            if !state.questions.iter().any(|asked| asked.id() == question.id()) {
                state.questions.push(question);
            }
        }
    }

    /// Records a denial, and returns the first one of the pass, which counts.
    fn deny(&self, denial: Denial) -> Denial {
        self.lock().denied.get_or_insert(denial).clone()
    }

    /// Records a denial by the gate itself.
    pub(crate) fn deny_at_gate(&self, reason: String, detail: Option<String>) -> Denial {
        self.deny(Denial { layer: Cow::Borrowed("gate"), reason, detail, key: String::new() })
    }

    pub(crate) fn denied(&self) -> Option<Denial> {
        self.lock().denied.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.cell.is_closed()
    }

    pub(crate) fn close(&self) {
        self.cell.close();
    }

    /// Closes the record, and waits until no attempt is executing.
    pub(crate) async fn settled(&self) {
        self.cell.close();
        self.cell.settled().await;
    }

    pub(crate) fn started(&self) -> bool {
        self.cell.started()
    }

    /// Refuses an attempt that has not passed every middleware on its way to the gate, and every later attempt (rule
    /// D9).
    pub(crate) fn refuse_skipped(&self, call: &ToolCall) -> Result<(), UserError> {
        let refused = match (self.skipped.get(), self.definition.way().skipped(call.progress())) {
            (None, None) => return Ok(()),
            (Some(refused), _) => refused,
            (None, Some(layer)) => self.skipped.get_or_init(|| {
                let tool = self.definition.name().to_owned();
                tracing::error!(tool, %layer, "a call skipped a layer, and is refused");
                let layer = layer.into_owned();
                Box::new(UserError::LayerSkipped { id: call.id().into(), tool, layer })
            }),
        };
        Err(UserError::clone(refused))
    }

    /// Records an attempt at the gate. `Err` if a middleware has decided on other arguments than these: the turn then
    /// repeats the pass (rule D3).
    ///
    /// We write the state in any case: if a layer answers for the tool later, it does so with the arguments of the
    /// latest attempt.
    pub(crate) fn arrives(&self, args: &Args) -> Result<(), ()> {
        self.cx.arrives();
        let settled = self.passed_on.get().is_none_or(|first| first.equal(args));
        let mut state = self.lock();
        if state.at_gate.as_ref().is_none_or(|at_gate| !at_gate.same(args)) {
            state.at_gate = Some(args.clone());
        }
        if settled && !state.mixed {
            return Ok(());
        }
        state.again = Some(args.clone());
        Err(())
    }

    /// The arguments with which the latest attempt has reached the gate.
    pub(crate) fn args_at_gate(&self) -> Option<Args> {
        self.lock().at_gate.clone()
    }

    /// Returns `true` if these arguments were validated before the pass. Compared by identity: equal ones may be
    /// validated twice.
    pub(crate) fn knows(&self, args: &Args) -> bool {
        self.valid.same(args)
    }

    /// A copy of all questions of the pass.
    pub(crate) fn questions(&self) -> Arc<[Question]> {
        self.with_questions(|all| all.into())
    }

    /// Calls the function with all questions of the pass.
    pub(crate) fn with_questions<R>(&self, read: impl FnOnce(&[Question]) -> R) -> R {
        read(&self.lock().questions)
    }

    /// Records that the gate defers the call.
    pub(crate) fn defer(&self, deferral: Deferral) -> Deferral {
        self.lock().deferred = Some(deferral.clone());
        deferral
    }

    /// Returns `true` if there is a sub-agent behind the tool, so that the layers which the call passes have to be
    /// recorded.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// Records a layer that the call has passed, once for all attempts.
    pub(crate) fn inherit(&self, layer: Inherited) {
        let mut state = self.lock();
        if !state.inherited.iter().any(|known| known.is(&layer)) {
            state.inherited.push(layer);
        }
    }

    /// Records that the gate hands the call to the agent behind its tool.
    pub(crate) fn delegate(&self) {
        self.lock().delegated = true;
    }

    /// The names of the layers that changed the arguments, as text for a message.
    pub(crate) fn rewriters(&self) -> String {
        let state = self.lock();
        name_rewriters(&state.rewriters, state.changed_outside_of.as_deref())
    }

    /// Closes the record and returns the result of the pass.
    ///
    /// We close the cell first: an attempt that a layer has detached finds a closed record from here on, and the
    /// result that we take is final. The arguments are those at the gate. If the pass did not get there, they are the
    /// latest that a middleware has passed on, or else those it began with. So the layers that the call has passed
    /// have decided on what an approver is shown.
    pub(crate) fn take(&self) -> Closed {
        self.cell.close();
        let mut state = self.lock();
        let args = state.at_gate.take().or_else(|| state.passed_on_last.take());
        let args = args.or_else(|| self.passed_on.get().cloned());
        // The gate does not take such arguments, and no stored state has them (rule T5).
        let args = args.filter(|args| args.same(&self.valid) || !args.are_too_deep());
        let cell = self.cell.lock();
        Closed {
            questions: std::mem::take(&mut state.questions),
            denied: state.denied.take(),
            deferred: state.deferred.take(),
            delegated: state.delegated,
            inherited: std::mem::take(&mut state.inherited),
            again: state.again.take(),
            rewriters: std::mem::take(&mut state.rewriters),
            changed_outside_of: state.changed_outside_of.take(),
            skipped: self.skipped.get().map(|error| UserError::clone(error)),
            args: args.unwrap_or_else(|| self.valid.clone()),
            execution: execution(&cell.state),
            fatal: match &cell.state {
                ExecutionState::Finished(Err(error)) => Some(error.clone()),
                _ => None,
            },
            error: cell.error.clone(),
        }
    }

    /// Records the error of a tool body whose text the model gets.
    pub(crate) fn failed(&self, error: SharedError) {
        self.cell.lock().error = Some(error);
    }

    pub(crate) fn execution(&self) -> Execution {
        execution(&self.cell.lock().state)
    }

    /// Waits until no tool body of this pass runs any more.
    pub(crate) async fn idle(&self) {
        self.cell.idle().await;
    }
}

fn execution(state: &ExecutionState<Ended>) -> Execution {
    match state {
        ExecutionState::NotStarted => Execution::NotStarted,
        ExecutionState::Running | ExecutionState::Unknown => Execution::Unknown,
        ExecutionState::Finished(Ok(outcome)) => Execution::Finished(outcome.clone()),
        ExecutionState::Finished(Err(_)) => Execution::FinishedWithError,
    }
}

/// Names the middleware that changed the arguments, or says where the layer is that did and has no name.
pub(crate) fn name_rewriters(rewriters: &[Cow<'static, str>], outside_of: Option<&str>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in rewriters {
        let name = format!("`{name}`");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match outside_of {
        _ if !names.is_empty() => names.join(", "),
        Some(name) => format!("a layer that is no middleware, outside of `{name}`,"),
        None => "a layer that is no middleware".to_owned(),
    }
}

impl fmt::Debug for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRecord").field("cx", &self.cx).finish_non_exhaustive()
    }
}
