//! Layers that do what layers should not: rebuild, clear, replay, duplicate, retry, hedge, detach, drop, rewrite, go
//! round others, exchange calls.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use countersign::{BoxError, Outcome, ToolCall, Tools};
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mischief {
    /// Sends a call that it built itself.
    Rebuild,
    /// Takes off what other layers attached.
    Clear,
    /// Sends the call before this one in its place.
    Replay,
    /// Sends the call before this one as well.
    ReplayToo,
    /// Sends the call twice at once.
    Duplicate,
    /// Sends the call again until it returns a value, four times at most.
    Retry,
    /// Sends the call again when it takes a while, and takes what comes first.
    Hedge,
    /// Sends the call from another task.
    Detach,
    /// Sends the call from another task and does not wait for it.
    DetachAndLeave,
    /// Gives up after polling once.
    GiveUp,
    /// Sends the call to the gate, round all layers inside.
    GoRound,
    /// Sends the call to the gate, and then inward.
    TryRound,
    /// Keeps a clone of the call for a layer of another level, and sends it inward after a while.
    Keep,
    /// Sends a call that another layer has kept, in place of its own.
    SendKept,
    /// Changes the arguments.
    Rewrite(u8),
    /// Changes the arguments otherwise each time.
    RewriteDifferently,
    /// Says that all went well, whatever happened.
    Swallow,
    /// Answers in the tool's place for some calls.
    Cache,
    /// Panics for some calls.
    Panic,
}

#[derive(Clone)]
pub(crate) struct Foreign {
    mischief: Mischief,
    last: Arc<Mutex<Option<ToolCall>>>,
    count: Arc<Mutex<u8>>,
    reach: Reach,
}

/// What the layers of a stack reach beside the service they wrap.
#[derive(Clone)]
pub(crate) struct Reach {
    pub(crate) gate: Tools,
    pub(crate) kept: Arc<Mutex<Option<ToolCall>>>,
}

impl Foreign {
    pub(crate) fn new(mischief: Mischief) -> Self {
        let reach = Reach { gate: Tools::none(), kept: Arc::default() };
        Self { mischief, last: Arc::default(), count: Arc::default(), reach }
    }

    pub(crate) fn reaching(self, reach: &Reach) -> Self {
        Self { reach: reach.clone(), ..self }
    }
}

impl Layer<Tools> for Foreign {
    type Service = ForeignService;

    fn layer(&self, inner: Tools) -> ForeignService {
        ForeignService { foreign: self.clone(), inner }
    }
}

#[derive(Clone)]
pub(crate) struct ForeignService {
    foreign: Foreign,
    inner: Tools,
}

type Sent = Result<Outcome, BoxError>;

impl Service<ToolCall> for ForeignService {
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Sent>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Self { foreign, inner } = self.clone();
        let send = move |call: ToolCall| inner.clone().oneshot(call);
        Box::pin(async move {
            match foreign.mischief {
                Mischief::Rebuild => {
                    send(ToolCall::new(call.id(), call.name(), call.args().to_value())).await
                }
                Mischief::Clear => {
                    let mut call = call;
                    *call.extensions_mut() = countersign::call::Extensions::default();
                    send(call).await
                }
                Mischief::Replay => {
                    let before = foreign.last.lock().unwrap().replace(call.clone());
                    send(before.unwrap_or(call)).await
                }
                Mischief::ReplayToo => {
                    let before = foreign.last.lock().unwrap().replace(call.clone());
                    let sent = send(call).await;
                    if let Some(before) = before {
                        let _ = send(before).await;
                    }
                    sent
                }
                Mischief::Duplicate => {
                    futures::future::join(send(call.clone()), send(call)).await.1
                }
                Mischief::Retry => {
                    let mut sent = send(call.clone()).await;
                    for _ in 0..3 {
                        if matches!(sent, Ok(Outcome::Returned(_))) {
                            break;
                        }
                        sent = send(call.clone()).await;
                    }
                    sent
                }
                Mischief::Hedge => {
                    let late = async {
                        tokio::task::yield_now().await;
                        send(call.clone()).await
                    };
                    let (first, late) = (Box::pin(send(call.clone())), Box::pin(late));
                    futures::future::select(first, late).await.factor_first().0
                }
                Mischief::Detach => tokio::spawn(send(call)).await?,
                Mischief::DetachAndLeave => {
                    drop(tokio::spawn(send(call)));
                    tokio::task::yield_now().await;
                    Err(tower::timeout::error::Elapsed::new().into())
                }
                Mischief::GiveUp => {
                    let mut sending = Box::pin(send(call));
                    match futures::poll!(&mut sending) {
                        Poll::Ready(sent) => sent,
                        Poll::Pending => Err(tower::timeout::error::Elapsed::new().into()),
                    }
                }
                Mischief::GoRound => foreign.reach.gate.oneshot(call).await,
                Mischief::TryRound => {
                    let _ = foreign.reach.gate.oneshot(call.clone()).await;
                    send(call).await
                }
                Mischief::Keep => {
                    foreign.reach.kept.lock().unwrap().replace(call.clone());
                    tokio::task::yield_now().await;
                    tokio::task::yield_now().await;
                    send(call).await
                }
                Mischief::SendKept => {
                    tokio::task::yield_now().await;
                    let kept = foreign.reach.kept.lock().unwrap().take();
                    send(kept.unwrap_or(call)).await
                }
                Mischief::Rewrite(n) => {
                    let args = call.args().clone().with("n", n);
                    send(call.with_args(args)).await
                }
                Mischief::RewriteDifferently => {
                    let n = {
                        let mut count = foreign.count.lock().unwrap();
                        *count = (*count + 1) % 6;
                        *count
                    };
                    let args = call.args().clone().with("n", n);
                    send(call.with_args(args)).await
                }
                Mischief::Swallow => {
                    let _ = send(call).await;
                    Ok(Outcome::returned("all is well"))
                }
                Mischief::Cache if call.args()["n"] == 2 => Ok(Outcome::returned("from the cache")),
                Mischief::Panic if call.args()["n"] == 3 => panic!("a foreign layer"),
                Mischief::Cache | Mischief::Panic => send(call).await,
            }
        })
    }
}
