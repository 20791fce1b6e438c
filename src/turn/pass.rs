//! One pass of one call through the stack, and its result.
//!
//! # What the stack returned, and what the record says
//!
//! A stack may contain any layer, so its result is read together with the call record. The first row that applies
//! counts:
//!
//! | record | the stack returned | outcome |
//! |---|---|---|
//! | a layer was skipped | anything | an error for the host (rule D9) |
//! | delegated to an agent | anything | the agent runs, outside of the stack |
//! | not started, denied | anything | the denial (rule D1) |
//! | not started, deferred by the gate | anything | the deferral |
//! | not started | a deferral | failed: it is that of another call |
//! | not started, a question is open | a value | deferred: an answer of a layer needs the approval, too (rule A1) |
//! | not started | any other outcome | that outcome |
//! | started, the body has deferred | anything | the deferral |
//! | started | a denial, a deferral | the recorded outcome, or "may have run" |
//! | started | any other outcome | that outcome: a layer may change what the model is told |
//! | either | an error | mapped by [`ErrorOutcome`], with what the record knows |
//!
//! # Why a pass is at most two traversals
//!
//! If the gate finds arguments on which not every layer has decided, the same call passes the stack again with
//! these arguments (rule D3). A third time would be a loop with a layer that changes them each time, so the call is
//! denied instead, by the names of the layers that changed them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use tower::ServiceExt as _;
use tracing::Instrument as _;

use crate::args::Args;
use crate::call::{
    Approval, CallInfo, CallRecord, Closed, Execution, Inherited, Phase, RunContext, RunInfo, Said,
    SharedError, ToolCall, ToolDefinition, ToolKind, is_about_repeating, name_rewriters,
};
use crate::decision::Question;
use crate::error::{BoxError, UserError};
use crate::gate::not_covered;
use crate::middleware::ToolCallError;
use crate::outcome::{Deferral, Outcome};
use crate::telemetry::{self, Stopwatch};
use crate::tools::Tools;

use super::errors::ErrorOutcome;
use super::heap::boxed;

/// Runs passes with the tools and settings of a turn.
pub(super) struct PassRunner {
    pub(super) tools: Tools,
    pub(super) info: Arc<RunInfo>,
    pub(super) error_outcome: ErrorOutcome,
    pub(super) trace_args: bool,
}

/// The input of a pass: the call, and the arguments with which it enters the stack.
pub(super) struct Start {
    pub(super) call: ToolCall,
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) args: Args,
    pub(super) approval: Option<Arc<Approval>>,
    /// `true` if an agent behind the call has begun its work.
    pub(super) begun: bool,
}

/// The result of a pass.
pub(super) struct PassResult {
    pub(super) end: Result<Outcome, BoxError>,
    pub(super) questions: Vec<Question>,
    pub(super) said: Vec<Said>,
    /// The final arguments, as far as the pass got.
    pub(super) args: Args,
    pub(super) execution: Execution,
    pub(super) denied_by: Option<String>,
    /// The error of the tool body, if the model gets its text.
    pub(super) error: Option<SharedError>,
    /// The layers that the agent behind the tool inherits, if the call goes to one.
    pub(super) delegated: Option<Vec<Inherited>>,
    /// The trace context of the pass, if it is exported.
    pub(super) trace_parent: Option<String>,
    /// The record of the pass, to wait for tool bodies that are still running.
    pub(super) record: Arc<CallRecord>,
}

/// Closes the record when the pass is over or dropped: a late or detached attempt gets no permit (rule T6).
struct CloseOnDrop(Arc<CallRecord>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl PassRunner {
    /// Passes the call through the stack, and a second time with the arguments at the gate if a middleware has
    /// decided on other ones (rule D3). If the arguments change again, the call is denied.
    pub(super) async fn run(&self, start: Start) -> PassResult {
        let (span, stopwatch) = (self.span(&start), Stopwatch::start());
        let passes = async {
            // An approved question whether to repeat the call is part of the approved pass, too: if the approval does
            // not cover the call any more, the next batch asks it again.
            let repeating = start.approval.iter().flat_map(|approval| approval.questions.iter());
            let repeating = repeating.filter(|question| is_about_repeating(question)).cloned();
            // A block, so that the future has no room for the first traversal during the second, which is rare.
            let (again, questions, said) = {
                let first = self.once(&start, 1, start.args.clone(), repeating.collect()).await;
                let closed = &first.closed;
                let Some(again) = closed
                    .again
                    .clone()
                    .filter(|_| closed.denied.is_none() && !closed.execution.started())
                    .filter(|_| closed.skipped.is_none())
                else {
                    return self.conclude(&start.call, first);
                };
                (again, first.closed.questions, first.said)
            };
            let mut second = boxed(|| self.once(&start, 2, again, questions)).await;
            second.said.splice(0..0, said);
            if second.closed.again.is_some()
                && second.closed.denied.is_none()
                && !second.closed.execution.started()
            {
                let outside_of = second.closed.changed_outside_of.as_deref();
                let names = name_rewriters(&second.closed.rewriters, outside_of);
                let text = format!(
                    "Not executed: {names} changed the arguments again after they had been decided on."
                );
                second.closed.denied = Some(second.record.deny_at_gate(text, None));
            }
            self.conclude(&start.call, second)
        };
        let mut passed = passes.instrument(span.clone()).await;
        let outcome = record_outcome(&span, &passed.end);
        stopwatch.measure_call(start.call.name(), outcome);
        if outcome == DEFERRED {
            passed.trace_parent = telemetry::trace_parent(&span);
        }
        passed
    }

    /// The record is closed by a guard, so that it is closed also when the pass is dropped in the middle: an attempt
    /// that a layer has detached must not run after the run is over (rule T6).
    ///
    /// A deferral is awaited until no attempt is executing. A hedging layer may return the deferral of one attempt
    /// while another one runs the body; the call would be listed as pending and run at the same time.
    async fn once(
        &self,
        start: &Start,
        pass: u32,
        args: Args,
        questions: Vec<Question>,
    ) -> Traversal {
        let info = CallInfo {
            id: Arc::clone(start.call.shared_id()),
            name: Arc::clone(start.call.shared_name()),
            definition: Arc::clone(&start.definition),
            phase: if start.approval.is_some() { Phase::Approved } else { Phase::First },
            pass,
            begun: start.begun,
            approval: start.approval.clone(),
            attempts: AtomicU32::new(0),
            said: Mutex::default(),
        };
        let cx = RunContext::of_call(Arc::clone(&self.info), info);
        let record =
            CallRecord::new(cx, Arc::clone(&start.definition), start.args.clone(), questions);
        let record = Arc::new(record);
        let _close = CloseOnDrop(Arc::clone(&record));
        let call = start.call.entering_stack(args, Arc::clone(&record));
        let sent = AssertUnwindSafe(self.tools.clone().oneshot(call)).catch_unwind().await;
        if let Ok(Ok(Outcome::Deferred(_))) = &sent {
            // The deferral may be that of another call, which a layer has returned while this call is still executing.
            record.settled().await;
        }
        let closed = record.take();
        let said = record.context().said();
        Traversal { result: sent.unwrap_or(Err(Box::new(LayerPanicked))), record, closed, said }
    }

    /// The result of the pass. Where the outcome that comes out of the layers differs from the record, the record
    /// counts.
    fn conclude(&self, call: &ToolCall, traversal: Traversal) -> PassResult {
        let Traversal { result, record, mut closed, said } = traversal;
        let denied_by = closed.denied.as_ref().map(|denial| denial.layer().to_owned());
        let handed_on = closed.delegated && closed.denied.is_none() && closed.again.is_none();
        let args = closed.args.clone();
        let mapped = |error, execution| {
            let call = call.clone().with_args(args);
            mapped(record.context(), &call, ToolCallError { error, execution }, &self.error_outcome)
        };
        let end = match (&closed.skipped, &closed.execution) {
            // A skipped layer is an error for the host, no matter what the layers returned (rule D9).
            (Some(skipped), _) => Err(skipped.clone().into()),
            (None, _) if handed_on => Ok(Outcome::Deferred(Deferral::of_agent())),
            (None, Execution::NotStarted) => not_started(result, &record, &mut closed, mapped),
            (None, _) => started(result, &closed, mapped),
        };
        let denied_by = denied_by.filter(|_| matches!(end, Ok(Outcome::Denied(_))));
        PassResult {
            end,
            questions: closed.questions,
            said,
            args: closed.args,
            execution: closed.execution,
            denied_by,
            error: closed.error,
            delegated: handed_on.then_some(closed.inherited),
            trace_parent: None,
            record,
        }
    }

    /// A span for the call, with the names of OpenTelemetry's semantic conventions for generative AI.
    fn span(&self, start: &Start) -> tracing::Span {
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = tracing::field::Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = start.call.name(),
            gen_ai.tool.call.id = start.call.id(),
            gen_ai.tool.type = if start.definition.kind() == ToolKind::External { "extension" } else { "function" },
            gen_ai.tool.call.arguments = tracing::field::Empty,
            countersign.approved = start.approval.is_some(),
            countersign.outcome = tracing::field::Empty,
            error.type = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("execute_tool {}", start.call.name()));
            if self.trace_args {
                span.record("gen_ai.tool.call.arguments", start.args.to_string());
            }
            let approval = start.approval.as_ref();
            telemetry::link(&span, approval.and_then(|it| it.asked_in.as_deref()));
        }
        span
    }
}

/// The outcome of a pass that leaves its call pending.
const DEFERRED: &str = "deferred";

/// Records the outcome of a pass in its span, and returns it as a word. A denial is not an error; a failed tool, an
/// execution whose end was not seen, and an error of a layer are.
fn record_outcome(span: &tracing::Span, end: &Result<Outcome, BoxError>) -> &'static str {
    let (outcome, error) = match end {
        Ok(Outcome::Returned(_)) => ("returned", None),
        Ok(Outcome::Denied(_)) => ("denied", None),
        Ok(Outcome::Retry(_)) => ("retry", None),
        Ok(Outcome::Deferred(_)) => (DEFERRED, None),
        Ok(Outcome::Failed(_)) => ("failed", Some("tool_failed")),
        Ok(Outcome::Unknown(_)) => ("unknown", Some("may_have_run")),
        Err(_) => ("error", Some("layer_error")),
    };
    span.record("countersign.outcome", outcome);
    if let Some(error) = error {
        span.record("error.type", error);
        span.record("otel.status_code", "ERROR");
    }
    outcome
}

/// The result of one traversal of the stack; a pass that is repeated has two.
struct Traversal {
    result: Result<Outcome, BoxError>,
    record: Arc<CallRecord>,
    closed: Closed,
    said: Vec<Said>,
}

/// A tower layer panicked. Panics in middleware are caught closer to their cause.
#[derive(Debug, thiserror::Error)]
#[error("a layer panicked")]
struct LayerPanicked;

fn not_started(
    result: Result<Outcome, BoxError>,
    record: &CallRecord,
    closed: &mut Closed,
    mapped: impl FnOnce(BoxError, Execution) -> Result<Outcome, BoxError>,
) -> Result<Outcome, BoxError> {
    if let Some(denial) = &closed.denied {
        return Ok(Outcome::denied(denial.reason()));
    }
    if let Some(deferral) = closed.deferred.take() {
        return Ok(Outcome::Deferred(deferral));
    }
    match result {
        Ok(Outcome::Deferred(_)) => {
            tracing::error!(
                tool = record.context().tool_name(),
                "a layer answered with the deferral of another call"
            );
            Ok(Outcome::failed("The tool did not run: a layer answered for it."))
        }
        // A layer returned a value without calling the tool. That does not answer an open question (rule A1).
        Ok(outcome @ Outcome::Returned(_)) => match open_question(record, closed) {
            None => Ok(outcome),
            Some(deferral) => Ok(Outcome::Deferred(deferral)),
        },
        Ok(outcome) => Ok(outcome),
        Err(error) if is_of_another_call(&error) => {
            tracing::error!(tool = record.context().tool_name(), %error, "a layer sent another call in place of this one");
            Ok(Outcome::failed("The tool did not run: a layer sent another call in its place."))
        }
        Err(error) if error.is::<LayerPanicked>() => {
            Ok(Outcome::failed("The tool did not run: a layer around it stopped working."))
        }
        Err(error) => mapped(error, Execution::NotStarted),
    }
}

/// The deferral of a call that a layer has answered in the tool's place, if no approval covers the call by the gate's
/// rules. If no layer has changed the arguments so far, they count as the approved ones: a layer that answers outside
/// of the layers that rewrite arguments never sees the arguments which were shown.
///
/// The arguments of such an answer are those that the answering layer has seen. If it stands outside of a layer that
/// changes them, it has never seen the ones that were shown, and comparing them would ask about every cached answer
/// again.
fn open_question(record: &CallRecord, closed: &Closed) -> Option<Deferral> {
    let mut questions = closed.questions.clone();
    let declared = record.definition().declared_question();
    questions.extend(declared.filter(|it| questions.iter().all(|asked| asked.id() != it.id())));
    let changed = match (record.approval(), record.definition().leaf()) {
        (None, _) if questions.is_empty() => return None,
        (None, _) | (_, None) => None,
        (Some(approval), Some(leaf)) => {
            let args = if record.knows(&closed.args) { &approval.args } else { &closed.args };
            Some(not_covered(approval, leaf, args, &questions)?)
        }
    };
    Some(Deferral { changed, ..Deferral::approval(questions) })
}

/// Returns `true` if a gate refused a call of another pass, which a layer has sent in place of this one. When a gate
/// refuses the call of this pass, that is in the record, and handled before.
fn is_of_another_call(error: &BoxError) -> bool {
    let refused = error.downcast_ref::<UserError>();
    matches!(refused, Some(UserError::PassClosed { .. } | UserError::LayerSkipped { .. }))
}

fn started(
    result: Result<Outcome, BoxError>,
    closed: &Closed,
    mapped: impl FnOnce(BoxError, Execution) -> Result<Outcome, BoxError>,
) -> Result<Outcome, BoxError> {
    let recorded = || match (&closed.execution, &closed.fatal) {
        (Execution::Finished(outcome), _) => Ok(outcome.clone()),
        (_, Some(error)) => Err(error.clone().into()),
        (_, None) => Ok(Outcome::unknown(crate::gate::MAY_HAVE_RUN)),
    };
    match (result, &closed.execution) {
        (_, Execution::Finished(outcome @ Outcome::Deferred(_))) => Ok(outcome.clone()),
        // The tool was started, so a denial or deferral made by a layer would be wrong.
        (Ok(Outcome::Denied(_) | Outcome::Deferred(_)), _) => recorded(),
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), _) if error.is::<LayerPanicked>() || is_of_another_call(&error) => recorded(),
        (Err(error), execution) => mapped(error, execution.clone()),
    }
}

fn mapped(
    cx: &RunContext,
    call: &ToolCall,
    failed: ToolCallError,
    error_outcome: &ErrorOutcome,
) -> Result<Outcome, BoxError> {
    // If the host's mapping panics, the error is not mapped.
    match catch_unwind(AssertUnwindSafe(|| error_outcome(cx, call, &failed))) {
        Ok(Some(outcome)) if !outcome.is_deferred() => Ok(outcome),
        Ok(_) | Err(_) => Err(failed.error),
    }
}
