//! The service of [`decide_fn`](crate::decide_fn): statically dispatched, without allocation, as ready as the service
//! inside.
//!
//! # Why it is not a [`MiddlewareService`](super::MiddlewareService)
//!
//! A sync closure needs no future of its own, so its service has none to box: we poll the inner future in place. Most
//! layers allow most calls, and then only three things remain: the record's fast path (no lock, when the arguments are
//! the ones that the first middleware passed on), the number of the layer in its level (rule D9), and one branch for
//! the logging. Everything else is in functions that are `#[cold]`, so that it does not fill the caches of a plain
//! ALLOW.
//!
//! # Order of the steps
//!
//! 1. The record is taken from the call. A call without one ends here with an error, before the closure sees it.
//! 2. Around an agent the layer is inherited, *before* the closure decides: also a layer that denies this attempt
//!    decides about the calls of an agent that another attempt of the same call has started (rule T7).
//! 3. The closure decides. A panic is a DENY that names the layer (rule D4).
//! 4. The decision is recorded, then the call passes the layer's number, and only then the inner service is called.
//!
//! If we returned a DENY without recording it, a layer outside that turns outcomes into others would lose it. So
//! we make the outcome from the record's answer, which is the *first* denial of the pass, and not necessarily
//! this one.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::Service;
use tracing::level_filters::LevelFilter;

use crate::call::{CallRecord, Inherited, RunContext, Standing as _, ToolCall, stands};
use crate::decision::{Decision, Denial, IntoDecision, LayerName, Question, ToolDecision};
use crate::error::BoxError;
use crate::middleware::DecideFn;
use crate::outcome::Outcome;
use crate::telemetry;

/// Decides with a closure, then calls the inner service unless the decision is a DENY.
///
/// It is ready when the inner service is, as the closure takes no time: a layer of this kind may stand between `buffer`
/// and a limit without changing what either of them measures.
pub struct DecideService<F, S> {
    decide: Arc<DecideFn<F>>,
    inner: S,
}

impl<F, S: Clone> Clone for DecideService<F, S> {
    fn clone(&self) -> Self {
        Self { decide: Arc::clone(&self.decide), inner: self.inner.clone() }
    }
}

impl<F, S> DecideService<F, S> {
    pub(super) fn new(decide: DecideFn<F>, inner: S) -> Self
    where
        F: Send + Sync + 'static,
    {
        let decide = Arc::new(decide);
        stands(&decide);
        Self { decide, inner }
    }
}

impl<F, D, S> Service<ToolCall> for DecideService<F, S>
where
    F: Fn(&RunContext, &ToolCall) -> D + Send + Sync + 'static,
    D: IntoDecision + 'static,
    S: Service<ToolCall, Response = Outcome>,
    S::Error: Into<BoxError>,
{
    type Response = Outcome;
    type Error = BoxError;
    type Future = DecideFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let state = match decide(&self.decide, &mut call) {
            Ok(()) => {
                call.passes(self.decide.place());
                State::Inner { future: self.inner.call(call) }
            }
            Err(result) => State::Done { result: Some(result) },
        };
        DecideFuture { state }
    }
}

/// Prepares the call for the inner service. `Err` is the result that ends the pass here.
fn decide<F, D>(
    decide: &Arc<DecideFn<F>>,
    call: &mut ToolCall,
) -> Result<(), Box<Result<Outcome, BoxError>>>
where
    F: Fn(&RunContext, &ToolCall) -> D + Send + Sync + 'static,
    D: IntoDecision,
{
    let record = call.record().map_err(|error| Box::new(Err(error.into())))?;
    if record.is_inherited() {
        let layer: Arc<DecideFn<F>> = Arc::clone(decide);
        record.inherit(Inherited::new(layer));
    }
    let decision =
        match catch_unwind(AssertUnwindSafe(|| decide.decide(call.context(), call).unless_plain()))
        {
            Ok(None) if !is_heard(record) => {
                allowed(record, call, &|| decide.layer_name());
                return Ok(());
            }
            Ok(decision) => decision,
            Err(_) => Some(Box::new(Decision::failed("panicked"))),
        };
    note(call, decision, &|| decide.layer_name()).map_err(|denied| Box::new(Ok(*denied)))
}

/// Records the decision of a layer, `None` for a plain ALLOW, and sets the arguments that it passes on. `Err` is the
/// denied outcome.
#[inline]
pub(super) fn recorded(
    call: &mut ToolCall,
    decision: Option<Box<Decision>>,
    layer: LayerName<'_>,
) -> Result<(), Box<Outcome>> {
    if decision.is_none()
        && let Some(record) = call.known_record()
        && !is_heard(record)
    {
        allowed(record, call, layer);
        return Ok(());
    }
    note(call, decision, layer)
}

/// Records a plain ALLOW that needs no report.
#[inline]
fn allowed(record: &CallRecord, call: &ToolCall, layer: LayerName<'_>) {
    telemetry::count_decision(|| layer().into_owned(), "allow", "");
    record.allowed(call.args(), layer);
}

/// Returns `true` if a plain ALLOW has to be reported, to trace logging or to an explanation.
///
/// We ask this before we make any text: the name of a layer may have to be allocated, and few programs read the report
/// of an ALLOW. We count the metrics in any case, under a name that is made lazily.
#[inline]
fn is_heard(record: &CallRecord) -> bool {
    LevelFilter::current() == LevelFilter::TRACE || record.context().explains()
}

/// Records a decision. Only a plain ALLOW that needs no report takes the fast path around this `#[cold]` function.
#[cold]
fn note(
    call: &mut ToolCall,
    decision: Option<Box<Decision>>,
    layer: LayerName<'_>,
) -> Result<(), Box<Outcome>> {
    let denied = |reason| Box::new(Outcome::denied(reason));
    let record = call.record().map_err(|error| denied(error.to_string()))?;
    let decision = decision.map_or_else(Decision::allow, |decision| *decision);
    let decision = distinct(record, decision, layer);
    report(record, call, &decision, layer);
    match record.decided(decision, call.args(), layer) {
        Ok(None) => Ok(()),
        Ok(Some(args)) => {
            call.replace_args(args);
            Ok(())
        }
        Err(denial) => Err(denied(denial.reason)),
    }
}

/// Denies a call instead of asking when a second middleware on its path has the same name: an answer to one question
/// would cover the other one (rule D10). A layer that asks in the name of a member has to list that member, because
/// only listed names are known to be unique.
///
/// | questions of | listed under that name on the call's way | result |
/// |---|---|---|
/// | the layer itself | once (itself) | asked |
/// | the layer itself | twice | denied: the two would share an answer |
/// | a member, under the member's name | once | asked |
/// | a member, under the member's name | never | denied: nothing shows that the name is the only one |
///
/// We check this at the time of the ASK, and not only when the tools are listed: a layer that never asks may share a
/// name with any other, and only here we know that one asks.
fn distinct(record: &CallRecord, decision: Decision, layer: LayerName<'_>) -> Decision {
    let decision = decision.named(layer);
    let problem = decision.questions().iter().map(Question::layer).find_map(|name| {
        match record.definition().way().askers(name) {
            0 if name != layer() => Some((name.to_owned(), unlisted(name, &layer()))),
            0 | 1 => None,
            _ => Some((name.to_owned(), shared(name))),
        }
    });
    match problem {
        None => decision,
        Some((name, problem)) => Decision::failed(problem).named(&|| name.clone().into()),
    }
}

fn shared(name: &str) -> String {
    format!(
        "two middleware around the tool are called `{name}`, so that an answer to one would cover the other's question: give them names of their own with `named`"
    )
}

fn unlisted(name: &str, layer: &str) -> String {
    format!(
        "`{layer}` asks in the name of `{name}`, which it does not list, so that another middleware could ask under the same name: list the members in its `ToolMiddleware::parts`"
    )
}

/// Reports a decision to the tracing subscriber and to the explanation.
fn report(record: &CallRecord, call: &ToolCall, decision: &Decision, layer: LayerName<'_>) {
    let cx = record.context();
    cx.note(layer, decision, call.args());
    let changed = || decision.changes(call.args());
    if let Some(detail) = decision.denied().and_then(|denial| denial.detail()) {
        tracing::error!(layer = %layer(), tool = call.name(), detail, "a layer failed to decide, the call is denied");
    }
    let asked = decision.questions().first().map(Question::own_key);
    let key = decision.denied().map(Denial::key).or(asked).filter(|key| !key.is_empty());
    match decision.decision() {
        ToolDecision::Allow => {
            telemetry::count_decision(|| layer().into_owned(), "allow", "");
            tracing::trace!(target: "countersign::decision", layer = %layer(), decision = "allow", changed_args = changed());
        }
        ToolDecision::Ask => {
            for question in decision.questions() {
                telemetry::count_decision(
                    || question.layer().to_owned(),
                    "ask",
                    question.own_key(),
                );
            }
            tracing::info!(target: "countersign::decision", layer = %layer(), decision = "ask", key, reason = decision.reason(), changed_args = changed());
        }
        ToolDecision::Deny => {
            telemetry::count_decision(|| layer().into_owned(), "deny", key.unwrap_or_default());
            tracing::info!(target: "countersign::decision", layer = %layer(), decision = "deny", key, reason = decision.reason());
        }
    }
}

pin_project! {
    /// The future of [`DecideService`].
    pub struct DecideFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        // The call was passed to the inner service.
        Inner { #[pin] future: F },
        // The pass ended here; `None` once the result was returned.
        Done { result: Option<Box<Result<Outcome, BoxError>>> },
    }
}

impl<F, E> Future for DecideFuture<F>
where
    F: Future<Output = Result<Outcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Outcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Inner { future } => Poll::Ready(ready!(future.poll(cx)).map_err(Into::into)),
            StateProj::Done { result } => {
                let result = result.take().map(|result| *result);
                Poll::Ready(result.unwrap_or_else(|| Err("polled after it was done".into())))
            }
        }
    }
}

impl<F, S: fmt::Debug> fmt::Debug for DecideService<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {:?}", self.decide.layer_name(), self.inner)
    }
}

impl<F> fmt::Debug for DecideFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecideFuture")
    }
}
