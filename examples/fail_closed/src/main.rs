//! Fail closed: when a handler fails, only approved calls run, and the run continues.
//!
//! ```text
//! cargo run -p fail_closed
//! ```
//!
//! An assistant cleans up a server with four calls in one response. Reading needs no approval. Two deletions need one,
//! and the ticket is opened by another system. Three handlers answer in turn: one forgets two of the calls, one fails,
//! and one panics.
//!
//! First each handler answers alone. A missing answer is never a yes: the run ends with an error, no pending call has
//! run, and the error carries the snapshot of the run to resume from. Then each handler is wrapped in [`FailClosed`]:
//! calls without an answer are denied, the model is told so, and the run continues. A yes counts only if its handler
//! returned: the one that panics after a yes has approved nothing.
//!
//! The model is told "Denied by policy." and no more. The cause is for the host: here a `tracing` subscriber prints it.

use std::error::Error;
use std::panic;

use countersign::handler::FailClosed;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults,
    FunctionToolset, Model, RunContext, ToolCall, ToolDefinition, ToolError, Tools, ToolsExt as _,
    TurnReport, schemars, tool_fn,
};
use serde_json::json;

/// Approves one call and forgets the others. `build` instead of `unchecked` would return an error about that.
#[derive(Clone)]
struct Forgetful;

impl DeferredToolHandler for Forgetful {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Ok(requests.answer().approve("call_2").answered_by("ann").unchecked())
    }
}

/// Cannot reach the service that should answer.
#[derive(Clone)]
struct Failing;

impl DeferredToolHandler for Failing {
    async fn handle(
        &self,
        _: &RunContext,
        _: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Err("the approval service is down".into())
    }
}

/// Panics after it has approved a call.
#[derive(Clone)]
struct Panicking;

impl DeferredToolHandler for Panicking {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let _answers = requests.answer().approve("call_2");
        panic!("index out of bounds: the handler has a bug");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct OnePath {
    path: String,
}

fn tools() -> Tools {
    let files = FunctionToolset::new()
        .tool(tool_fn("read_file", "Reads a file", async |args: OnePath| {
            did(format!("read {}", args.path))
        }))
        .tool(tool_fn("delete_file", "Deletes a file", async |args: OnePath| {
            did(format!("deleted {}", args.path))
        }))
        .approval_required_if(|_, call| call.name() == "delete_file");
    let open_ticket = ToolDefinition::new("open_ticket", json!({"type": "object"}));
    Tools::combined([files, ExternalToolset::new("tickets", [open_ticket]).into()])
}

/// Prints that a tool body ran.
fn did(what: String) -> Result<String, ToolError> {
    println!("  > {what}");
    Ok(what)
}

/// A scripted model: four calls, then a final text.
struct Assistant;

impl Model for Assistant {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(match request.messages().len() {
            1 => ModelResponse::calls([
                ToolCall::new("call_1", "read_file", json!({"path": "disk.txt"})),
                ToolCall::new("call_2", "delete_file", json!({"path": "old.log"})),
                ToolCall::new("call_3", "delete_file", json!({"path": "backup.tar"})),
                ToolCall::new("call_4", "open_ticket", json!({})),
            ]),
            _ => ModelResponse::text("That is all I could do."),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Output for the host: the library's log, and one line for each panic.
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR);
    log.without_time().with_ansi(false).with_target(false).init();
    panic::set_hook(Box::new(|panic| {
        println!("  (panicked: {})", panic.payload().downcast_ref().copied().unwrap_or(""));
    }));
    println!("A line that begins with > is a tool that really runs.");
    both("forgets two calls", Forgetful).await?;
    both("fails", Failing).await?;
    both("panics after a yes", Panicking).await
}

/// Runs the agent with this handler alone, and then wrapped in [`FailClosed`].
async fn both(what: &str, handler: impl DeferredToolHandler + Clone) -> Result<(), Box<dyn Error>> {
    println!("\n== A handler that {what}, alone");
    let agent = Agent::new(Assistant, tools()).deferred_tool_handler(handler.clone());
    match agent.run("Clean up.").await {
        Ok(run) => tell(&run.turns()[0]),
        Err(error) => {
            println!("  the run stops: {}", explained(&error));
            let waits = error.suspended().requests();
            let waits: Vec<_> = waits.iter().map(ToolCall::id).collect();
            println!("  and can be resumed: {} still pending", waits.join(", "));
        }
    }
    println!("== The same in FailClosed");
    let agent = Agent::new(Assistant, tools()).deferred_tool_handler(FailClosed::new(handler));
    let run = agent.run("Clean up.").await?;
    tell(&run.turns()[0]);
    println!("  assistant: {}", run.text().unwrap_or_default());
    Ok(())
}

/// Prints the result of each call for the model, and who answered.
fn tell(report: &TurnReport) {
    for call in report.calls() {
        let by = call.answered().and_then(|answered| answered.by());
        let by = by.map_or("allowed without asking".to_owned(), |by| format!("answered by {by}"));
        let told = call.outcome().content().unwrap_or_default();
        println!(
            "  {} {:<11} {:<8} {told}, {by}",
            call.call().id(),
            call.call().name(),
            call.outcome().word()
        );
    }
}

/// An error and its sources, in one line.
fn explained(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", explained(source)),
        None => error.to_string(),
    }
}
