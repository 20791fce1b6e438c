//! Retry policies and layers such as a host may put into its stack.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use countersign::{BoxError, Decision, Outcome, RunContext, ToolCall};
use futures::future::BoxFuture;
use tower::retry::Policy;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service};

/// A retry policy that repeats a call a fixed number of times: when it failed or ended with an error, or always.
#[derive(Clone)]
pub(crate) struct Retries {
    left: usize,
    always: bool,
}

impl Retries {
    pub(crate) fn of_failures(times: usize) -> Self {
        Self { left: times, always: false }
    }

    pub(crate) fn always(times: usize) -> Self {
        Self { left: times, always: true }
    }
}

impl Policy<ToolCall, Outcome, BoxError> for Retries {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut ToolCall,
        result: &mut Result<Outcome, BoxError>,
    ) -> Option<Ready<()>> {
        let failed = matches!(result, Err(_) | Ok(Outcome::Failed(_) | Outcome::Retry(_)));
        if !failed && !self.always {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}

/// Asks about the tool `ask`, denies the tool `deny`, and allows all others.
pub(crate) fn by_name(_: &RunContext, call: &ToolCall) -> Decision {
    match call.name() {
        "ask" => Decision::ask("sure?"),
        "deny" => Decision::deny("no"),
        _ => Decision::allow(),
    }
}

/// The inner service of a [`relay`], type-erased.
pub(crate) type Inside = BoxCloneSyncService<ToolCall, Outcome, BoxError>;

type Sent = BoxFuture<'static, Result<Outcome, BoxError>>;

/// A layer made of a function, which receives each call and the inner service.
pub(crate) fn relay<F, Fut>(send: F) -> Relay<impl Fn(ToolCall, Inside) -> Sent + Clone>
where
    F: Fn(ToolCall, Inside) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, BoxError>> + Send + 'static,
{
    Relay(move |call, inside| -> Sent { Box::pin(send(call, inside)) })
}

#[derive(Clone)]
pub(crate) struct Relay<F>(F);

#[derive(Clone)]
pub(crate) struct Relaying<F> {
    send: F,
    inside: Inside,
}

impl<F, S> Layer<S> for Relay<F>
where
    F: Clone,
    S: Service<ToolCall, Response = Outcome, Error = BoxError> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    type Service = Relaying<F>;

    fn layer(&self, inner: S) -> Relaying<F> {
        Relaying { send: self.0.clone(), inside: Inside::new(inner) }
    }
}

impl<F: Fn(ToolCall, Inside) -> Sent> Service<ToolCall> for Relaying<F> {
    type Response = Outcome;
    type Error = BoxError;
    type Future = Sent;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Sent {
        (self.send)(call, self.inside.clone())
    }
}
