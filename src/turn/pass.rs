//! One pass of one call through the stack, and its result.

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
use crate::tools::Tools;

use super::errors::ErrorOutcome;

/// What a pass needs of its turn.
pub(super) struct PassRunner {
    pub(super) tools: Tools,
    pub(super) info: Arc<RunInfo>,
    pub(super) error_outcome: ErrorOutcome,
    pub(super) trace_args: bool,
}

/// A call, and where it enters the stack.
pub(super) struct Start {
    pub(super) call: ToolCall,
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) args: Args,
    pub(super) approval: Option<Approval>,
    /// Whether an agent behind the call has begun its work.
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
    /// The error of its body, where the model is told of it.
    pub(super) error: Option<SharedError>,
    /// The call goes to an agent, which inherits these layers.
    pub(super) delegated: Option<Vec<Inherited>>,
    /// To wait for bodies that run on.
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
    /// Passes the call through the stack, and once more from the changed arguments when a layer decided on others
    /// (rule D3).
    pub(super) async fn run(&self, start: Start) -> PassResult {
        let span = self.span(&start);
        let passes = async {
            // Whether to run it again is asked as long as nobody has said so about what runs now.
            let repeating = start.approval.iter().flat_map(|approval| &approval.questions);
            let repeating = repeating.filter(|question| is_about_repeating(question)).cloned();
            let first = self.once(&start, 1, start.args.clone(), repeating.collect()).await;
            let Traversal { result, record, closed, said } = first;
            let Some(again) = closed
                .again
                .clone()
                .filter(|_| closed.denied.is_none() && !closed.execution.started())
                .filter(|_| closed.skipped.is_none())
            else {
                return self.conclude(result, record, closed, said);
            };
            let mut second = self.once(&start, 2, again, closed.questions).await;
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
            self.conclude(second.result, second.record, second.closed, second.said)
        };
        passes.instrument(span).await
    }

    async fn once(
        &self,
        start: &Start,
        pass: u32,
        args: Args,
        questions: Vec<Question>,
    ) -> Traversal {
        let info = CallInfo {
            id: start.call.id().into(),
            name: start.call.name().into(),
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
            // It may be the deferral of another call, in whose pass a layer runs this one.
            record.settled().await;
        }
        let closed = record.take();
        let said = record.context().said();
        Traversal { result: sent.unwrap_or(Err(Box::new(LayerPanicked))), record, closed, said }
    }

    /// The result of the pass: the record counts, where it and the layers do not say the same.
    fn conclude(
        &self,
        result: Result<Outcome, BoxError>,
        record: Arc<CallRecord>,
        closed: Closed,
        said: Vec<Said>,
    ) -> PassResult {
        let denied_by = closed.denied.as_ref().map(|denial| denial.layer().to_owned());
        let handed_on = closed.delegated && closed.denied.is_none() && closed.again.is_none();
        let end = match (&closed.skipped, &closed.execution) {
            // For the host, whatever the layers made of it (rule D9).
            (Some(skipped), _) => Err(skipped.clone().into()),
            (None, _) if handed_on => Ok(Outcome::Deferred(Deferral::of_agent())),
            (None, Execution::NotStarted) => {
                not_started(result, &record, &closed, &self.error_outcome)
            }
            (None, execution) => started(result, execution.clone(), &closed, &self.error_outcome),
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
            record,
        }
    }

    /// A span per call, after the conventions for generative AI.
    fn span(&self, start: &Start) -> tracing::Span {
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = tracing::field::Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = start.call.name(),
            gen_ai.tool.call.id = start.call.id(),
            gen_ai.tool.type = if start.definition.get_kind() == ToolKind::External { "extension" } else { "function" },
            gen_ai.tool.call.arguments = tracing::field::Empty,
            countersign.approved = start.approval.is_some(),
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("execute_tool {}", start.call.name()));
            if self.trace_args {
                span.record("gen_ai.tool.call.arguments", start.args.to_string());
            }
        }
        span
    }
}

/// A pass, once more or not: one way through the stack.
struct Traversal {
    result: Result<Outcome, BoxError>,
    record: Arc<CallRecord>,
    closed: Closed,
    said: Vec<Said>,
}

/// A layer that is not ours panicked; ours are caught where they run.
#[derive(Debug, thiserror::Error)]
#[error("a layer panicked")]
struct LayerPanicked;

fn not_started(
    result: Result<Outcome, BoxError>,
    record: &CallRecord,
    closed: &Closed,
    error_outcome: &ErrorOutcome,
) -> Result<Outcome, BoxError> {
    if let Some(denial) = &closed.denied {
        return Ok(Outcome::denied(denial.reason()));
    }
    if let Some(deferral) = &closed.deferred {
        return Ok(Outcome::Deferred(deferral.clone()));
    }
    match result {
        Ok(Outcome::Deferred(_)) => {
            tracing::error!(
                tool = record.context().tool_name(),
                "a layer answered with the deferral of another call"
            );
            Ok(Outcome::failed("The tool did not run: a layer answered for it."))
        }
        // A layer answered in the tool's place: an open question is still to be answered (rule A1).
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
        Err(error) => mapped(error, Execution::NotStarted, error_outcome),
    }
}

/// The deferral when a layer answered in the tool's place and no approval covers the call, as the gate would have
/// checked it. Arguments that no layer has changed on the way are the ones that the approved pass began with: a layer
/// that answers outside of those which rewrite them never sees what was approved.
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

/// Whether a gate refused a call of another pass, which a layer has sent in this one. What a gate refuses of a pass's
/// own call is in its record.
fn is_of_another_call(error: &BoxError) -> bool {
    let refused = error.downcast_ref::<UserError>();
    matches!(refused, Some(UserError::PassClosed { .. } | UserError::LayerSkipped { .. }))
}

fn started(
    result: Result<Outcome, BoxError>,
    execution: Execution,
    closed: &Closed,
    error_outcome: &ErrorOutcome,
) -> Result<Outcome, BoxError> {
    let recorded = || match &closed.ended {
        Some(ended) => ended.clone().map_err(Into::into),
        None => Ok(Outcome::unknown(crate::gate::MAY_HAVE_RUN)),
    };
    match (result, &closed.ended) {
        (_, Some(Ok(outcome @ Outcome::Deferred(_)))) => Ok(outcome.clone()),
        // It was started: nobody can say now that it was denied or waits.
        (Ok(Outcome::Denied(_) | Outcome::Deferred(_)), _) => recorded(),
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), _) if error.is::<LayerPanicked>() || is_of_another_call(&error) => recorded(),
        (Err(error), _) => mapped(error, execution, error_outcome),
    }
}

fn mapped(
    error: BoxError,
    execution: Execution,
    error_outcome: &ErrorOutcome,
) -> Result<Outcome, BoxError> {
    let failed = ToolCallError { error, execution };
    // A mapping that panics maps nothing.
    match catch_unwind(AssertUnwindSafe(|| error_outcome(&failed))) {
        Ok(Some(outcome)) if !outcome.is_deferred() => Ok(outcome),
        Ok(_) | Err(_) => Err(failed.error),
    }
}
