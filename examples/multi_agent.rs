//! Agents as tools of agents: every layer above them decides about their calls, the pending calls form one batch, and
//! the agents resume where they stopped.
//!
//! ```text
//! cargo run --example multi_agent
//! ```
//!
//! A chief has a cleaner and an auditor, and the auditor has a cleaner of its own. The chief's layer asks about every
//! deletion and denies deleting anything below `archive/`. An agent below the chief cannot have more permissions: the
//! cleaner has a handler that approves everything, which has no effect.
//!
//! ```text
//!  root ──► cleaner ──► delete_file          one batch:   root/cleaner/delete_file
//!     └───► auditor ──► list_files                        root/auditor/cleaner/delete_file
//!                 └───► cleaner ──► delete_file
//! ```
//!
//! The run suspends with pending calls that are two levels deep. It is stored as one JSON value and resumed twice:
//! first one call is approved and the other left, then the other is denied. The output shows when each tool runs, the
//! batches, and the tree of all calls with their outcomes. No call runs twice.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use countersign::agent::text;
use countersign::handler::danger_approve_all;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{
    Agent, BoxError, Decision, FunctionToolset, Model, RunContext, SuspendedRun, ToolCall,
    ToolError, ToolsExt as _, TurnReport, decide_fn, schemars, tool_fn,
};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Path {
    path: String,
}

async fn delete_file(cx: RunContext, args: Path) -> Result<String, ToolError> {
    println!("  > {}/delete_file {}", cx.agent_path(), args.path);
    Ok(format!("deleted {}", args.path))
}

async fn list_files(cx: RunContext, args: Path) -> Result<String, ToolError> {
    println!("  > {}/list_files {}", cx.agent_path(), args.path);
    Ok("a.log, b.log".to_owned())
}

/// The chief's layer. It sees the calls of all agents, each under the name of its tool.
fn policy(_: &RunContext, call: &ToolCall) -> Decision {
    let path = call.args().get("path").and_then(|path| path.as_str()).unwrap_or_default();
    match call.name() {
        "delete_file" if path.starts_with("archive/") => {
            Decision::deny("Nothing below `archive/` is deleted, by no agent.")
        }
        "delete_file" => Decision::ask("deletes a file").with_key("delete"),
        _ => Decision::allow(),
    }
}

/// A model that makes the calls of a script, and then says that it is done.
struct Script(Mutex<VecDeque<ModelResponse>>);

impl Script {
    fn new<const N: usize>(calls: [(&str, &str, &str); N]) -> Self {
        let calls = calls.map(|(id, tool, about)| {
            let about = match tool {
                "delete_file" | "list_files" => json!({"path": about}),
                _ => json!({"prompt": about}),
            };
            ToolCall::new(id, tool, about)
        });
        Self(Mutex::new(VecDeque::from([ModelResponse::calls(calls)])))
    }
}

impl Model for Script {
    async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(next.unwrap_or_else(|| ModelResponse::text("Done.")))
    }
}

fn chief() -> Agent {
    let delete = || tool_fn("delete_file", "Deletes a file", delete_file);
    let list = tool_fn("list_files", "Lists a folder", list_files);
    let first =
        Script::new([("c1", "delete_file", "a.log"), ("c2", "delete_file", "archive/1.log")]);
    let cleaner = Agent::new(first, FunctionToolset::new().tool(delete()))
        .deferred_tool_handler(danger_approve_all());
    let second = Script::new([("d1", "delete_file", "b.log")]);
    let own_cleaner = Agent::new(second, FunctionToolset::new().tool(delete()));
    let auditor = Agent::new(
        Script::new([("b1", "list_files", "logs"), ("b2", "cleaner", "Delete old logs")]),
        FunctionToolset::new().tool(list).tool(own_cleaner.as_tool("cleaner", "Deletes files")),
    );
    let team = FunctionToolset::new()
        .tool(cleaner.as_tool("cleaner", "Deletes files"))
        .tool(auditor.as_tool("auditor", "Looks through folders"));
    let script = Script::new([("p1", "cleaner", "Clean up"), ("p2", "auditor", "Audit the logs")]);
    Agent::new(script, team.layered(decide_fn(policy))).output(text().or_deferred())
}

/// Prints the pending calls, as the person who approves them sees them.
fn batch(run: &SuspendedRun) {
    let requests = run.requests();
    for call in requests.iter() {
        let path = requests.path(call.id()).unwrap_or_default();
        println!("  waits: {}  {path}({})", call.id(), call.args());
    }
}

/// Prints the outcome of every call, with the calls of sub-agents indented.
fn tree(turns: &[TurnReport], indent: usize) {
    for call in turns.iter().flat_map(TurnReport::calls) {
        let told = call.outcome().text().unwrap_or_else(|| "waits".to_owned());
        println!("{:indent$}{}: {told}", "", call.call().name());
        tree(call.turns(), indent + 2);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let chief = chief();
    println!("The run, until a person has to answer:");
    let run = chief.run("Clean up, and audit the logs").await?;
    let stored = serde_json::to_string(run.suspended().ok_or("nothing waits")?)?;
    batch(run.suspended().ok_or("nothing waits")?);

    println!("Later: one is approved, the other left.");
    let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    let answers = suspended.requests().answer().approve("p2/b2/d1").leave_rest().build()?;
    let run = chief.resume(suspended, answers).await?;
    tree(run.turns(), 2);
    let stored = serde_json::to_string(run.suspended().ok_or("nothing waits")?)?;
    batch(run.suspended().ok_or("nothing waits")?);

    println!("Later still: the other is denied.");
    let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    let answers = suspended.requests().answer().deny("p1/c1", "Keep a.log.").build()?;
    let run = chief.resume(suspended, answers).await?;
    tree(run.turns(), 2);
    println!("The chief says: {}", run.text().unwrap_or_default());
    Ok(())
}
