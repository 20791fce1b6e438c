//! Batch approval by policy: one handler sees all calls of a response and answers them by rules.
//!
//! ```text
//! cargo run --example batch_policy
//! ```
//!
//! An assistant stocks a fruit stall. Its first response makes seven calls. Looking at a price asks nobody, so it runs
//! at once. The other six wait, and the handler is asked about them **once**, before any of them runs. It approves all
//! reads, denies all writes, decides about purchases by their arguments (approved, approved for less, denied), and
//! gives the count that the warehouse made, as that tool is executed elsewhere. Each answer says which rule gave it.
//!
//! The model is told what became of each call, and tries something smaller. That is a new response, so the handler is
//! asked again, about that one call. What is printed: the batches as the handler sees them, then call by call the
//! answer, who gave it, and what the model was told.

use std::error::Error;

use countersign::{
    Agent, Answers, BoxError, DeferredToolRequests, DeferredToolResults, ExternalToolset,
    FunctionToolset, Message, Model, ModelRequest, ModelResponse, RunContext, RunEvent, ToolCall,
    ToolDefinition, ToolError, Tools, ToolsExt as _, TurnReport, UserError, handler_fn_sync,
    schemars, tool_fn,
};
use serde_json::json;

/// Up to here a purchase needs nobody.
const SMALL: u64 = 20;
/// Beyond this there is no purchase, not even a smaller one.
const LARGE: u64 = 500;

/// The policy. It sees the whole batch, and every call gets exactly one answer: `build` names those that have none.
///
/// `answered_by` signs what is answered so far and not signed yet, so each rule signs what it has just answered.
fn policy(
    _: &RunContext,
    requests: &DeferredToolRequests,
) -> Result<DeferredToolResults, UserError> {
    println!("The handler is asked, once for this response. It sees:");
    for call in requests.iter() {
        println!("  {}  {}", call.id(), shown(call));
    }
    let mut answers =
        requests.answer().approve_tool("read_file").answered_by("rule 1: reads are fine");
    for call in &requests.approvals {
        answers = match call.name() {
            "read_file" => answers,
            "buy" => purchase(answers, call),
            _ => answers
                .deny(call.id(), "Nothing is written while the stall is open.")
                .answered_by("rule 2: no writes"),
        };
    }
    for call in &requests.calls {
        answers = answers.result(call.id(), json!({"apples": 12})).answered_by("the warehouse");
    }
    answers.build()
}

/// The rest is decided by arguments. They were validated before anybody was asked, so `euros` is a number.
fn purchase<'a>(answers: Answers<'a>, call: &ToolCall) -> Answers<'a> {
    let id = call.id();
    match call.args()["euros"].as_u64() {
        Some(euros) if euros <= SMALL => answers.approve(id).answered_by("rule 3: small purchase"),
        // Approved for less: the edited arguments go through the whole stack, and they are what runs.
        Some(euros) if euros <= LARGE => answers
            .approve_with(id, call.args().clone().with("euros", SMALL))
            .answered_by("rule 4: capped"),
        _ => answers
            .deny(id, format!("More than {LARGE} euros: ask the owner of the stall."))
            .answered_by("rule 5: too much"),
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    path: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Purchase {
    fruit: String,
    euros: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Fruit {
    fruit: String,
}

fn tools() -> Tools {
    let stall = FunctionToolset::new()
        .tool(tool_fn("get_price", "The price of a fruit", async |args: Fruit| {
            did(format!("looked up {}: 2 euros", args.fruit))
        }))
        .tool(tool_fn("read_file", "Reads a file", async |args: File| {
            did(format!("read {}", args.path))
        }))
        .tool(tool_fn("write_file", "Writes a file", async |args: File| {
            did(format!("wrote {}", args.path))
        }))
        .tool(tool_fn("buy", "Buys fruit", async |args: Purchase| {
            did(format!("bought {} for {} euros", args.fruit, args.euros))
        }))
        .approval_required_if(|_, call| call.name() != "get_price");
    // Somebody else counts: the call is handed out, and its result comes back as an answer.
    let warehouse = ExternalToolset::new(
        "warehouse",
        [ToolDefinition::new("count_stock", json!({"type": "object"}))],
    );
    Tools::combined([stall, warehouse.into()])
}

/// Says that a tool body ran, when it does.
fn did(what: String) -> Result<String, ToolError> {
    println!("  > {what}");
    Ok(what)
}

/// In the place of a real model: three responses, the second one smaller where the policy said no.
struct Assistant;

impl Model for Assistant {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let said = request.messages().iter().filter(|it| matches!(it, Message::Response { .. }));
        Ok(match said.count() {
            0 => ModelResponse::calls([
                ToolCall::new("call_1", "get_price", json!({"fruit": "apples"})),
                ToolCall::new("call_2", "read_file", json!({"path": "orders.txt"})),
                ToolCall::new("call_3", "write_file", json!({"path": "orders.txt"})),
                ToolCall::new("call_4", "buy", json!({"fruit": "apples", "euros": 12})),
                ToolCall::new("call_5", "buy", json!({"fruit": "pears", "euros": 300})),
                ToolCall::new("call_6", "buy", json!({"fruit": "saffron", "euros": 9000})),
                ToolCall::new("call_7", "count_stock", json!({})),
            ]),
            1 => ModelResponse::calls([ToolCall::new(
                "call_8",
                "buy",
                json!({"fruit": "saffron", "euros": 15}),
            )]),
            _ => ModelResponse::text("The stall is stocked. The order book is as it was."),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("A line that begins with > is a tool that really runs.\n");
    let agent = Agent::new(Assistant, tools())
        .deferred_tool_handler(handler_fn_sync(policy))
        .watch(|event| {
            if let RunEvent::ToolCallsDone { report } = event {
                tell(report);
            }
        });
    let run = agent.run("Stock the stall.").await?;
    println!("assistant: {}", run.text().unwrap_or_default());
    Ok(())
}

/// What became of the calls of a response, and why.
fn tell(report: &TurnReport) {
    println!("What became of it:");
    for call in report.calls() {
        let answer = call.answered().map_or("nobody was asked".to_owned(), |answered| {
            format!("{} by {}", answered.word(), answered.by().unwrap_or("somebody"))
        });
        println!("  {}  {}", call.call().id(), shown(call.call()));
        println!("          {answer}");
        println!("          the model is told: {}", call.outcome().content().unwrap_or_default());
    }
    println!();
}

fn shown(call: &ToolCall) -> String {
    format!("{} {}", call.name(), call.args())
}
