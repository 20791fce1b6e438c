//! One walk of one call through the stack, and what it came to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use tower::ServiceExt as _;
use tracing::Instrument as _;

use crate::args::Args;
use crate::call::{
    Approval, CallInfo, Closed, Execution, Inherited, Pass, Phase, RunContext, RunInfo, Said,
    SharedError, ToolCall, ToolDefinition, ToolKind, is_about_repeating, name_rewriters,
};
use crate::decision::Question;
use crate::error::{BoxError, UserError};
use crate::gate::not_covered;
use crate::middleware::ToolCallError;
use crate::outcome::{Deferral, Outcome};
use crate::tools::Tools;

use super::ErrorOutcome;

/// What a walk needs of its turn.
pub(super) struct Walker {
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

/// What became of a walk.
pub(super) struct Walked {
    pub(super) end: Result<Outcome, BoxError>,
    pub(super) questions: Vec<Question>,
    pub(super) said: Vec<Said>,
    /// The final arguments, as far as the walk got.
    pub(super) args: Args,
    pub(super) execution: Execution,
    pub(super) denied_by: Option<String>,
    /// The error of its body, where the model is told of it.
    pub(super) error: Option<SharedError>,
    /// The call goes to an agent, which inherits these layers.
    pub(super) delegated: Option<Vec<Inherited>>,
    /// To wait for bodies that run on.
    pub(super) pass: Arc<Pass>,
}

/// Closes the pass when the walk is over or dropped: a late or detached attempt gets no permit (rule T6).
struct CloseOnDrop(Arc<Pass>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Walker {
    /// Walks, and once more from the changed arguments when somebody decided on others (rule D3).
    pub(super) async fn walk(&self, start: Start) -> Walked {
        let span = self.span(&start);
        let walk = async {
            // Whether to run it again is asked as long as nobody has said so about what runs now.
            let repeating = start.approval.iter().flat_map(|approval| &approval.questions);
            let repeating = repeating.filter(|question| is_about_repeating(question)).cloned();
            let first = self.once(&start, 1, start.args.clone(), repeating.collect()).await;
            let Walk { result, pass, closed, said } = first;
            let Some(again) = closed
                .again
                .clone()
                .filter(|_| closed.denied.is_none() && !closed.execution.started())
                .filter(|_| closed.skipped.is_none())
            else {
                return self.conclude(result, pass, closed, said);
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
                second.closed.denied = Some(second.pass.deny_at_gate(text, None));
            }
            self.conclude(second.result, second.pass, second.closed, second.said)
        };
        walk.instrument(span).await
    }

    async fn once(&self, start: &Start, walk: u32, args: Args, questions: Vec<Question>) -> Walk {
        let info = CallInfo {
            id: start.call.id().into(),
            name: start.call.name().into(),
            definition: Arc::clone(&start.definition),
            phase: if start.approval.is_some() { Phase::Approved } else { Phase::First },
            walk,
            begun: start.begun,
            approval: start.approval.clone(),
            attempts: AtomicU32::new(0),
            said: Mutex::default(),
        };
        let cx = RunContext::of_call(Arc::clone(&self.info), info);
        let pass = Pass::new(cx, Arc::clone(&start.definition), start.args.clone(), questions);
        let pass = Arc::new(pass);
        let _close = CloseOnDrop(Arc::clone(&pass));
        let call = start.call.walking(args, Arc::clone(&pass));
        let sent = AssertUnwindSafe(self.tools.clone().oneshot(call)).catch_unwind().await;
        if let Ok(Ok(Outcome::Deferred(_))) = &sent {
            // It may be the deferral of another call, in whose walk a layer runs this one.
            pass.settled().await;
        }
        let closed = pass.take();
        let said = pass.context().said();
        Walk { result: sent.unwrap_or(Err(Box::new(LayerPanicked))), pass, closed, said }
    }

    /// What the walk came to: the record counts, where it and the layers do not say the same.
    fn conclude(
        &self,
        result: Result<Outcome, BoxError>,
        pass: Arc<Pass>,
        closed: Closed,
        said: Vec<Said>,
    ) -> Walked {
        let denied_by = closed.denied.as_ref().map(|denial| denial.layer().to_owned());
        let handed_on = closed.delegated && closed.denied.is_none() && closed.again.is_none();
        let end = match (&closed.skipped, &closed.execution) {
            // For the host, whatever the layers made of it (rule D9).
            (Some(skipped), _) => Err(skipped.clone().into()),
            (None, _) if handed_on => Ok(Outcome::Deferred(Deferral::of_agent())),
            (None, Execution::NotStarted) => {
                not_started(result, &pass, &closed, &self.error_outcome)
            }
            (None, execution) => started(result, execution.clone(), &closed, &self.error_outcome),
        };
        let denied_by = denied_by.filter(|_| matches!(end, Ok(Outcome::Denied(_))));
        Walked {
            end,
            questions: closed.questions,
            said,
            args: closed.args,
            execution: closed.execution,
            denied_by,
            error: closed.error,
            delegated: handed_on.then_some(closed.inherited),
            pass,
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

/// One pass through the stack.
struct Walk {
    result: Result<Outcome, BoxError>,
    pass: Arc<Pass>,
    closed: Closed,
    said: Vec<Said>,
}

/// A layer that is not ours panicked; ours are caught where they run.
#[derive(Debug, thiserror::Error)]
#[error("a layer panicked")]
struct LayerPanicked;

fn not_started(
    result: Result<Outcome, BoxError>,
    pass: &Pass,
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
                tool = pass.context().tool_name(),
                "a layer answered with the deferral of another call"
            );
            Ok(Outcome::failed("The tool did not run: a layer answered for it."))
        }
        // A layer answered in the tool's place: an open question is still to be answered (rule A1).
        Ok(outcome @ Outcome::Returned(_)) => match open_question(pass, closed) {
            None => Ok(outcome),
            Some(deferral) => Ok(Outcome::Deferred(deferral)),
        },
        Ok(outcome) => Ok(outcome),
        Err(error) if is_of_another_call(&error) => {
            tracing::error!(tool = pass.context().tool_name(), %error, "a layer sent another call in place of this one");
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
fn open_question(pass: &Pass, closed: &Closed) -> Option<Deferral> {
    let mut questions = closed.questions.clone();
    let declared = pass.definition().declared_question();
    questions.extend(declared.filter(|it| questions.iter().all(|asked| asked.id() != it.id())));
    let changed = match (pass.approval(), pass.definition().leaf()) {
        (None, _) if questions.is_empty() => return None,
        (None, _) | (_, None) => None,
        (Some(approval), Some(leaf)) => {
            let args = if pass.knows(&closed.args) { &approval.args } else { &closed.args };
            Some(not_covered(approval, leaf, args, &questions)?)
        }
    };
    Some(Deferral { changed, ..Deferral::approval(questions) })
}

/// Whether a gate refused a call of another walk, which a layer has sent in this one. What a gate refuses of a walk's
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
