//! A service that checks tower's contract: `poll_ready` returns ready before every `call`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tower::{Layer, Service};

/// A [`tower::Layer`] that finds layers around it which call their inner service without polling its readiness first.
///
/// Put the probe directly inside the layer under test, in the same `ServiceBuilder`: between two `layered` calls there
/// is a `Tools`, which always polls. The probe **panics**, by design, when it is called before `poll_ready` returned
/// ready; every call, and every clone, has to poll anew. That finds the classic mistake of tower layers: `let mut inner
/// = self.inner.clone(); inner.call(request)` calls a clone that was never polled.
///
/// A turn catches the panic of a layer and fails only that call, so call [`check`](Self::check) after the turn.
///
/// ```
/// use countersign::testing::ReadyProbe;
/// use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolsExt, Turn, from_fn, schemars, tool_fn};
/// use serde_json::json;
/// use tower::ServiceBuilder;
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Nothing {}
/// # async fn list(_: Nothing) -> Result<u32, ToolError> { Ok(1) }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let mine = from_fn(async |_: RunContext, _: ToolCall| Decision::allow());
/// let probe = ReadyProbe::new();
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("list", "Lists", list))
///     .layered(ServiceBuilder::new().layer(mine).layer(probe.clone()));
/// Turn::new(tools).run(vec![ToolCall::new("c1", "list", json!({}))]).await?;
/// assert_eq!(probe.check(), Ok(1)); // one call came through, and it had asked
/// # Ok::<(), countersign::turn::TurnError>(()) }).unwrap();
/// ```
///
/// The probe works with services of any kind, not only with tool calls:
///
/// ```should_panic
/// use countersign::testing::ReadyProbe;
/// use tower::{Layer, Service, service_fn};
///
/// let mut service = ReadyProbe::new().layer(service_fn(|n: u32| std::future::ready(Ok::<_, ()>(n))));
/// let _ = service.call(1); // panics: it was not polled
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadyProbe {
    counts: Arc<Counts>,
    pending_first: bool,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicUsize,
    unready: AtomicUsize,
}

impl ReadyProbe {
    /// Creates a probe. Its clones, and all services that they make, share one count.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every service return `Poll::Pending` once before it becomes ready: this finds layers that poll without
    /// waiting for readiness.
    #[must_use]
    pub fn pending_first(mut self) -> Self {
        self.pending_first = true;
        self
    }

    /// The number of calls that reached the inner service.
    ///
    /// # Errors
    /// Says how many calls came before `poll_ready` returned ready.
    ///
    /// ```
    /// use countersign::testing::ReadyProbe;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let probe = ReadyProbe::new().pending_first();
    /// let service = probe.layer(service_fn(|n: u32| std::future::ready(Ok::<_, ()>(n + 1))));
    /// assert_eq!(service.oneshot(1).await, Ok(2)); // `oneshot` waits until it is ready
    /// assert_eq!(probe.check(), Ok(1));
    /// # });
    /// ```
    pub fn check(&self) -> Result<usize, String> {
        match self.counts.unready.load(Ordering::Relaxed) {
            0 => Ok(self.counts.calls.load(Ordering::Relaxed)),
            unready => Err(format!("{unready} calls came without `poll_ready`")),
        }
    }
}

impl<S> Layer<S> for ReadyProbe {
    type Service = ReadyProbeService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadyProbeService { inner, probe: self.clone(), state: State::Unready }
    }
}

/// The service of a [`ReadyProbe`]. A clone always starts unready.
pub struct ReadyProbeService<S> {
    inner: S,
    probe: ReadyProbe,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Unready,
    /// Has returned `Poll::Pending` once, for [`ReadyProbe::pending_first`].
    Polled,
    Ready,
}

impl<S: Clone> Clone for ReadyProbeService<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), probe: self.probe.clone(), state: State::Unready }
    }
}

impl<S: Service<R>, R> Service<R> for ReadyProbeService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.probe.pending_first && self.state == State::Unready {
            self.state = State::Polled;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.inner.poll_ready(cx))?;
        self.state = State::Ready;
        Poll::Ready(Ok(()))
    }

    /// # Panics
    /// By design, when `poll_ready` has not returned ready since the last call.
    #[allow(clippy::panic, reason = "a probe fails loudly")]
    fn call(&mut self, request: R) -> S::Future {
        if std::mem::replace(&mut self.state, State::Unready) != State::Ready {
            self.probe.counts.unready.fetch_add(1, Ordering::Relaxed);
            panic!(
                "ReadyProbe: a layer called this service without `poll_ready`; a clone has to be polled again"
            );
        }
        self.probe.counts.calls.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}

impl<S: fmt::Debug> fmt::Debug for ReadyProbeService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadyProbe({:?}) > {:?}", self.state, self.inner)
    }
}
