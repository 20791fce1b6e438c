//! Capability grants: tools declare the capabilities that they need, a layer asks for missing ones, and a grant has the
//! duration and reach that the person who gave it has chosen.
//!
//! ```text
//! cargo run --example capabilities
//! ```
//!
//! A researcher may write files and reach the network only with a grant, and has a worker, another agent. The handler
//! grants two capabilities when they are first missing: writing files, for this run and the workers of the run; the
//! network, for the agent that asked and no other. So the researcher is asked about once for each; its worker writes
//! without a question, and has to ask for the network itself, which the handler refuses.
//!
//! None of this is in the library. The layer attaches the missing capabilities to its question as metadata, and the
//! handler reads them there. The grants reach the tool in the answer's metadata, and the layer through a dependency of
//! the run. The output shows each question with the agent that it comes from, each grant, and what ran.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use countersign::handler::handler_fn_sync;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{
    Agent, BoxError, Decision, DeferredToolRequests, DeferredToolResults, FunctionToolset, Model,
    Outcome, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt as _, Tools,
    ToolsExt as _, TurnReport, schemars, tool_fn,
};
use serde_json::{Map, Value, json};

/// The key, in a tool's metadata, of the capabilities that it needs.
const NEEDS: &str = "required_capabilities";

/// A capability that was granted to an agent, and possibly to its workers.
#[derive(Clone)]
struct Grant {
    capability: String,
    agent: String,
    for_workers: bool,
}

/// The grants of this run: a dependency, which workers inherit.
#[derive(Default)]
struct Grants(Mutex<Vec<Grant>>);

impl Grants {
    fn add(&self, grant: Grant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(grant);
    }

    fn has(&self, agent: &str, capability: &str) -> bool {
        let worker_of = |grant: &Grant| agent.starts_with(&format!("{}/", grant.agent));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|grant| {
            grant.capability == capability
                && (grant.agent == agent || grant.for_workers && worker_of(grant))
        })
    }
}

/// A middleware that asks for capabilities that a call needs and its agent does not have.
struct Capabilities;

impl ToolMiddleware for Capabilities {
    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        let Ok(grants) = cx.deps::<Grants>() else {
            return Decision::deny("This run has no grants.");
        };
        let needs = cx.tool_definition().and_then(|tool| tool.metadata().get(NEEDS)?.as_array());
        let agent = cx.agent_path();
        let missing: Vec<&str> = needs
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|capability| !grants.has(&agent, capability))
            .collect();
        if missing.is_empty() {
            return Decision::allow();
        }
        Decision::ask(format!("needs {}", missing.join(", ")))
            .with_metadata("required_capabilities", json!(needs))
            .with_metadata("missing_capabilities", json!(missing))
    }
}

/// Grants missing capabilities by two rules, and refuses workers the network.
fn grant(
    cx: &RunContext,
    requests: &DeferredToolRequests,
) -> Result<DeferredToolResults, BoxError> {
    let grants = cx.deps::<Grants>()?;
    let mut answers = requests.answer();
    for call in &requests.approvals {
        let id = call.id();
        let agent = requests.agent(id).unwrap_or("root").to_owned();
        let missing = &requests.metadata[id]["missing_capabilities"];
        println!("  asked: {agent} wants to call {}, missing {missing}", call.name());
        let missing: Vec<String> = serde_json::from_value(missing.clone())?;
        if agent != "root" && missing.iter().any(|capability| capability == "net.external") {
            println!("    refused: the network is not for workers");
            answers = answers.deny(id, "A worker does not get the network.");
            continue;
        }
        for capability in &missing {
            let for_workers = capability == "fs.write";
            let reach = if for_workers { "and its workers" } else { "and no other agent" };
            println!("    granted: {capability}, for {agent} {reach}");
            grants.add(Grant { capability: capability.clone(), agent: agent.clone(), for_workers });
        }
        // The metadata of a request never reaches a tool by itself; that of an answer does.
        let told = Map::from_iter([("granted_capabilities".to_owned(), json!(missing))]);
        answers = answers.approve(id).metadata(id, told);
    }
    Ok(answers.answered_by("owner").build()?)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Target {
    name: String,
}

async fn write_file(cx: RunContext, target: Target) -> Result<String, ToolError> {
    Ok(ran(&cx, &format!("wrote {}", target.name)))
}

async fn fetch(cx: RunContext, target: Target) -> Result<String, ToolError> {
    Ok(ran(&cx, &format!("fetched {}", target.name)))
}

/// Prints what ran, and the grant that came with the call.
fn ran(cx: &RunContext, what: &str) -> String {
    let granted = cx.tool_call_metadata().and_then(|metadata| metadata.get("granted_capabilities"));
    let granted =
        granted.map_or("granted before".to_owned(), |granted| format!("granted {granted}"));
    println!("  > {} {what} ({granted})", cx.agent_path());
    what.to_owned()
}

fn tools() -> FunctionToolset {
    FunctionToolset::new()
        .tool(
            tool_fn("write_file", "Writes a file", write_file).metadata(NEEDS, json!(["fs.write"])),
        )
        .tool(tool_fn("fetch", "Fetches a page", fetch).metadata(NEEDS, json!(["net.external"])))
}

/// A model that makes the calls of a script.
struct Script(Mutex<Vec<ModelResponse>>);

impl Script {
    fn new(responses: impl IntoIterator<Item = Vec<(&'static str, &'static str)>>) -> Self {
        let mut next = 0;
        let responses = responses.into_iter().map(|calls| {
            ModelResponse::calls(calls.into_iter().map(|(tool, about)| {
                next += 1;
                let args = match tool {
                    "worker" => json!({"prompt": about}),
                    _ => json!({"name": about}),
                };
                ToolCall::new(format!("call_{next}"), tool, args)
            }))
        });
        let mut responses: Vec<_> = responses.collect();
        responses.reverse();
        Self(Mutex::new(responses))
    }
}

impl Model for Script {
    async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(next.unwrap_or_else(|| ModelResponse::text("Done.")))
    }
}

/// Prints the outcome of every call, including the calls of workers.
fn print(turns: &[TurnReport], indent: usize) {
    for call in turns.iter().flat_map(TurnReport::calls) {
        let (name, word) = (call.call().name(), call.outcome().word());
        let why = match call.outcome() {
            Outcome::Denied(denied) => format!(": {}", denied.message),
            _ => String::new(),
        };
        println!("{:indent$}{name}: {word}{why}", "");
        print(call.turns(), indent + 2);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let worker =
        Agent::new(Script::new([vec![("write_file", "b.txt"), ("fetch", "b.example")]]), tools());
    let script = Script::new([
        vec![("write_file", "a.txt"), ("fetch", "a.example")],
        vec![("fetch", "c.example"), ("worker", "write and fetch b")],
    ]);
    let all = Tools::combined([
        tools().into(),
        FunctionToolset::new()
            .id("workers")
            .tool(worker.as_tool("worker", "Does a part of the work"))
            .into(),
    ]);
    // One layer around all tools: it also decides about the worker's calls.
    let researcher = Agent::new(script, all.layered(Capabilities.into_layer()));

    println!("The run:");
    let run = researcher
        .run("Research a, b and c")
        .deps(Grants::default())
        .deferred_tool_handler(handler_fn_sync(grant))
        .await?;
    println!("The report:");
    print(run.turns(), 2);
    println!("The researcher says: {}", run.text().unwrap_or_default());
    Ok(())
}
