//! The subjects of both benches: a leaf, stacks of layers around it, and a call that may be sent through them.

use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};

use countersign::handler::danger_approve_all;
use countersign::middleware::Chain;
use countersign::outcome::{ModelRetry, ToolReturn};
use countersign::turn::TurnError;
use countersign::{
    BoxError, Decision, Outcome, Permit, RunContext, ToolCall, ToolDefinition, ToolError,
    ToolMiddleware, ToolMiddlewareExt as _, Tools, ToolsExt as _, Toolset, Turn, TurnReport,
    decide_fn,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tower::layer::layer_fn;
use tower::layer::util::{Identity, Stack};
use tower::{Layer, Service};

/// The numbers of layers that are measured.
pub(crate) const DEPTHS: [usize; 4] = [1, 4, 16, 32];

/// A turn in which the calls of `delete_file` are asked about, and approved inline.
pub(crate) fn asking_turn() -> Turn {
    let ask = decide_fn(|_, call: &ToolCall| match call.name() {
        "delete_file" => Decision::ask("delete a file?"),
        _ => Decision::allow(),
    });
    Turn::new(Leaf.layered(ask)).deferred_tool_handler(danger_approve_all())
}

/// A response of calls of these tools in turn.
pub(crate) fn calls_of(tools: &[&'static str], size: usize) -> Vec<ToolCall> {
    let call =
        |n: usize| ToolCall::new(format!("c{n}"), tools[n % tools.len()], json!({"path": "a.log"}));
    (0..size).map(call).collect()
}

/// Two tools that do nothing.
pub(crate) struct Leaf;

impl Toolset for Leaf {
    fn id(&self) -> &str {
        "leaf"
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let tool = |name| ToolDefinition::new(name, json!({"type": "object"}));
        Ok(vec![tool("read_file"), tool("delete_file")])
    }

    /// `read_file` ends as a call that a retry layer may send again: the way to execute one call many times in one
    /// pass. Its text is on the heap, so that copies of outcomes count. `delete_file` returns, as an approved call must not run again.
    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        match permit.tool() {
            "read_file" => Err(ToolError::Retry(ModelRetry::new("again"))),
            _ => Ok(ToolReturn::new(true)),
        }
    }
}

/// A call that was let into the stack by a turn, and stays in it. Only a turn makes a pass, so an outermost layer
/// takes the call it is given, and never ends; as a retry layer does, the bench then sends the call as often as it
/// likes.
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// Dropped, it closes the pass.
    _turn: Pin<Box<dyn Future<Output = Result<TurnReport, TurnError>>>>,
}

impl OpenCall {
    pub(crate) fn new(tools: &Tools) -> Self {
        let (sender, receiver) = channel();
        let turn = Turn::new(tools.clone().layered(layer_fn(move |_| Taker(sender.clone()))));
        let calls = vec![ToolCall::new("c1", "read_file", json!({"path": "a.log"}))];
        let mut turn: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(async move { turn.run(calls).await });
        assert!(turn.as_mut().now_or_never().is_none(), "the turn waits for the call");
        Self { call: receiver.recv().expect("the call reached the layer"), _turn: turn }
    }

    /// Sends the call once. No future here is pending, so that no executor is measured.
    pub(crate) fn send(&self, stack: &mut Tools) -> Outcome {
        let sent = stack.call(self.call.clone()).now_or_never();
        sent.expect("nothing waits").expect("nothing fails")
    }
}

/// Hands out the call it is given.
#[derive(Clone)]
struct Taker(Sender<ToolCall>);

impl Service<ToolCall> for Taker {
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outcome, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        self.0.send(call).expect("the turn still runs");
        Box::pin(std::future::pending())
    }
}

/// The stacks that are compared, each around the same gate.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Subject {
    /// The gate and the leaf.
    Gate,
    /// `layered` without a layer, to which the layers are added.
    NoLayer,
    /// A hand-written `match`.
    Match,
    /// Tower layers that do nothing, written the usual way.
    PassThrough,
    DecideFn,
    Async,
    Chain,
}

/// The tools inside this many of these layers, as one static type.
macro_rules! stacked {
    ($tools:expr, $layers:expr, $layer:expr) => {{
        let layer = $layer;
        match $layers {
            1 => $tools.layered(layer),
            4 => $tools.layered(four(layer)),
            16 => $tools.layered(four(four(layer))),
            32 => $tools.layered(twice(four(four(layer)))),
            layers => unreachable!("{layers} layers are not measured"),
        }
    }};
}

impl Subject {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate alone",
            Self::NoLayer => "layered, no layer",
            Self::Match => "hand-written match",
            Self::PassThrough => "pass-through tower layers",
            Self::DecideFn => "decide_fn layers",
            Self::Async => "async middleware, separate layers",
            Self::Chain => "async middleware, one chain",
        }
    }

    pub(crate) fn build(self, tools: &Tools, layers: usize) -> Tools {
        let tools = tools.clone();
        match self {
            Self::Gate => tools,
            Self::NoLayer => tools.layered(Identity::new()),
            Self::Match => tools.layered(layer_fn(Matching)),
            Self::PassThrough => stacked!(tools, layers, PassThroughLayer),
            Self::DecideFn => stacked!(tools, layers, decide_fn(decide)),
            Self::Async => stacked!(tools, layers, Policy.into_layer()),
            Self::Chain => {
                let chain = (0..layers).fold(Chain::new(), |chain, _| chain.with(Policy));
                tools.layered(chain.into_layer())
            }
        }
    }
}

fn twice<L: Clone>(layer: L) -> Stack<L, L> {
    Stack::new(layer.clone(), layer)
}

fn four<L: Clone>(layer: L) -> Stack<Stack<L, L>, Stack<L, L>> {
    twice(twice(layer))
}

/// The policy that each of our layers, and the `match`, applies.
fn decide(_: &RunContext, call: &ToolCall) -> Decision {
    match call.name() {
        "format_disk" => Decision::deny("never"),
        _ => Decision::allow(),
    }
}

struct Policy;

impl ToolMiddleware for Policy {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        decide(cx, call)
    }
}

/// The same policy by hand.
#[derive(Clone)]
struct Matching(Tools);

impl Service<ToolCall> for Matching {
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outcome, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        match call.name() {
            "format_disk" => Box::pin(async { Ok(Outcome::denied("never")) }),
            _ => self.0.call(call),
        }
    }
}

/// A tower layer that does nothing, written the usual way.
#[derive(Clone)]
struct PassThroughLayer;

impl<S> Layer<S> for PassThroughLayer {
    type Service = PassThrough<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PassThrough(inner)
    }
}

#[derive(Clone)]
struct PassThrough<S>(S);

impl<S> Service<ToolCall> for PassThrough<S>
where
    S: Service<ToolCall, Response = Outcome> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Outcome;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Outcome, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let clone = self.0.clone();
        let mut inner = std::mem::replace(&mut self.0, clone);
        Box::pin(async move { inner.call(call).await })
    }
}
