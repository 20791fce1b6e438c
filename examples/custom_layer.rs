//! A layer of your own: a cache of reads, written by hand as a `tower::Layer` and a `tower::Service`.
//!
//! ```text
//! cargo run --example custom_layer
//! ```
//!
//! For most purposes a [`ToolMiddleware`](countersign::ToolMiddleware) is enough: it decides before a call and sees the
//! outcome. A cache has to answer *in place of the tool*, so it is a service around a service, like everything in
//! tower:
//!
//! ```text
//!  Policy ─► tower's retry ─► tower's concurrency limit ─► tower's timeout ─► ReadCache ─► the tool
//! ```
//!
//! The cache knows nothing of questions and approvals, and need not, as four scenes show:
//!
//! 1. A page that was read before is not read again: the cache answers, and the tool does not run.
//! 2. The cache has the answer to a call that needs an approval. It returns it at once, and the call is deferred
//!    nevertheless: the question is recorded, and no layer can answer in a person's place.
//! 3. A call fails, and the retry layer repeats it. It needed no approval, so its tool may run again.
//! 4. An approved call fails, and the retry layer repeats it. The approval was for one execution: the second attempt
//!    gets the outcome of the first, and the tool does not run.
//!
//! Put a cache *inside* the layers that decide, as here. Outside of them, it would answer before any layer has decided.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use countersign::call::Execution;
use countersign::outcome::ToolFailed;
use countersign::{
    BoxError, Decision, FunctionToolset, Outcome, RunContext, ToolCall, ToolError, Tools,
    ToolsExt as _, Turn, TurnReport, decide_fn, schemars, tool_fn,
};
use futures::future::{BoxFuture, Ready, ready};
use serde_json::json;
use tower::retry::{Policy, RetryLayer};
use tower::{Layer, Service, ServiceBuilder};

/// A cache of what tools with these names returned, by their arguments.
#[derive(Clone)]
struct ReadCache {
    tools: &'static [&'static str],
    known: Arc<Mutex<HashMap<String, Outcome>>>,
}

/// The service that the layer wraps around the inner one.
#[derive(Clone)]
struct Cached<S> {
    cache: ReadCache,
    inner: S,
}

impl ReadCache {
    fn of(tools: &'static [&'static str]) -> Self {
        Self { tools, known: Arc::default() }
    }

    fn get(&self, key: &str) -> Option<Outcome> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: String, outcome: Outcome) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, outcome);
    }
}

impl<S> Layer<S> for ReadCache {
    type Service = Cached<S>;

    fn layer(&self, inner: S) -> Cached<S> {
        Cached { cache: self.clone(), inner }
    }
}

impl<S> Service<ToolCall> for Cached<S>
where
    S: Service<ToolCall, Response = Outcome>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outcome, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        if !self.cache.tools.contains(&call.name()) {
            let sent = self.inner.call(call);
            return Box::pin(async move { sent.await.map_err(Into::into) });
        }
        // `Display` writes the canonical text, so that the key does not depend on the order of the arguments.
        let key = format!("{} {}", call.name(), call.args());
        if let Some(outcome) = self.cache.get(&key) {
            println!("  (the cache knows: {key})");
            return Box::pin(ready(Ok(outcome)));
        }
        // `self.inner` was polled ready, so it is the service to call: a clone of it might not be ready.
        let sent = self.inner.call(call);
        let cache = self.cache.clone();
        Box::pin(async move {
            let outcome = sent.await.map_err(Into::into)?;
            // A pending call returns as `Outcome::Deferred`, which is no answer to cache.
            if outcome.is_returned() {
                cache.put(key, outcome.clone());
            }
            Ok(outcome)
        })
    }
}

/// A retry policy for tower: one more attempt when the tool has failed.
#[derive(Clone)]
struct OnceMore {
    left: u32,
}

impl Policy<ToolCall, Outcome, BoxError> for OnceMore {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        call: &mut ToolCall,
        result: &mut Result<Outcome, BoxError>,
    ) -> Option<Self::Future> {
        if !matches!(result, Ok(Outcome::Failed(_))) || self.left == 0 {
            return None;
        }
        self.left -= 1;
        println!("  (retry sends {} again)", call.id());
        Some(ready(()))
    }

    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    page: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tools() -> Tools {
    let sent = Arc::new(AtomicU32::new(0));
    let tools = FunctionToolset::new()
        .tool(tool_fn("read_page", "Reads a page", async |args: Page| {
            println!("  > read {}", args.page);
            Ok::<_, ToolError>(format!("the text of {}", args.page))
        }))
        .tool(tool_fn("send_report", "Sends the report", move |_: Nothing| {
            let attempt = sent.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                println!("  > sent the report, attempt {attempt}");
                match attempt {
                    1 => Err(ToolError::from(ToolFailed::new("the line was busy"))),
                    _ => Ok("it arrived"),
                }
            }
        }))
        .tool(tool_fn("pay", "Pays the invoice", async |_: Nothing| {
            println!("  > paid the invoice, and heard no answer");
            Err::<(), ToolError>(ToolFailed::new("the bank did not answer").into())
        }));
    tools.layered(
        ServiceBuilder::new()
            .layer(decide_fn(policy).named("Policy"))
            .layer(RetryLayer::new(OnceMore { left: 1 }))
            .concurrency_limit(4)
            .timeout(Duration::from_secs(10))
            .layer(ReadCache::of(&["read_page"])),
    )
}

fn policy(_: &RunContext, call: &ToolCall) -> Decision {
    match (call.name(), call.args().str("page")) {
        ("read_page", Some("salaries")) => {
            Decision::ask("reads what people earn").with_key("salaries")
        }
        ("pay", _) => Decision::ask("spends money").with_key("pay"),
        _ => Decision::allow(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("A line that begins with > is a tool that really runs.");
    let turn = Turn::new(tools());
    let read = |id: &'static str, page: &str| ToolCall::new(id, "read_page", json!({"page": page}));

    println!("\n1. The same page twice");
    run(&turn, read("call_1", "prices")).await?;
    run(&turn, read("call_2", "prices")).await?;

    println!("\n2. A page that needs an approval, twice");
    run(&turn, read("call_3", "salaries")).await?;
    run(&turn, read("call_4", "salaries")).await?;

    println!("\n3. A call that fails, and that no layer asked about");
    run(&turn, ToolCall::new("call_5", "send_report", json!({}))).await?;

    println!("\n4. A call that fails, and that a person approved");
    run(&turn, ToolCall::new("call_6", "pay", json!({}))).await
}

/// Runs a response with one call, and approves it if it is deferred.
async fn run(turn: &Turn, call: ToolCall) -> Result<(), Box<dyn Error>> {
    let id = call.id().to_owned();
    println!("  {id}: {} {}", call.name(), call.args());
    let report = turn.run(vec![call]).await?;
    tell(&report);
    if let Some(suspended) = report.into_suspended() {
        println!("  {id}: ann approves");
        let answers = suspended.requests().answer().approve(&id).answered_by("ann").build()?;
        tell(&turn.resume(suspended, answers).await?);
    }
    Ok(())
}

fn tell(report: &TurnReport) {
    for call in report.calls() {
        let id = call.call().id();
        match (call.outcome().content(), call.execution()) {
            (None, _) => println!("  {id}: waits for an approval: {}", call.asked()[0].reason()),
            (Some(told), Execution::NotStarted) => println!("  {id}: {told}, and no tool ran"),
            (Some(told), _) => println!("  {id}: {told}"),
        }
    }
}
