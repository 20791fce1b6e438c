//! Batch approval by policy: one handler receives all pending calls of a response and answers them by rules.
//!
//! ```text
//! cargo run --example batch_policy
//! ```
//!
//! An assistant stocks a fruit stall. Its first response makes seven calls. Looking up a price needs no approval and
//! runs at once. The other six are deferred, and the handler is asked about them **once**, before any of them runs. It
//! approves all reads, denies all writes, decides about purchases by their arguments (approved, approved for less,
//! denied), and gives the count of the warehouse as the result of the tool that is executed elsewhere. Each answer
//! names the rule that gave it.
//!
//! The model receives a result for each call and tries a smaller purchase. That is a new response, so the handler is
//! asked again, about that one call. The output shows the batches as the handler receives them, and for each call the
//! answer, the rule that gave it, and the result for the model.

use std::error::Error;

use countersign::deferred::Answers;
use countersign::handler::handler_fn_sync;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::toolset::ExternalToolset;
use countersign::turn::RunEvent;
use countersign::{
    Agent, AnswerError, BoxError, DeferredToolRequests, DeferredToolResults, FunctionToolset,
    Message, Model, RunContext, ToolCall, ToolDefinition, ToolError, Tools, ToolsExt as _,
    TurnReport, schemars, tool_fn,
};
use serde_json::json;

/// The highest amount, in euros, that is approved as requested.
const SMALL: u64 = 20;
/// The highest amount, in euros, that is approved at all, for at most [`SMALL`].
const LARGE: u64 = 500;

/// The policy. It receives the whole batch, and has to answer every call exactly once: `build` returns an error that
/// names the calls without an answer.
///
/// `answered_by` signs all answers so far that are not signed yet, so each rule signs the answers that it has just
/// given.
fn policy(
    _: &RunContext,
    requests: &DeferredToolRequests,
) -> Result<DeferredToolResults, AnswerError> {
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

/// Decides about a purchase by its arguments. They were validated before the handler was asked, so `euros` is a number.
fn purchase<'a>(answers: Answers<'a>, call: &ToolCall) -> Answers<'a> {
    let id = call.id();
    match call.args()["euros"].as_u64() {
        Some(euros) if euros <= SMALL => answers.approve(id).answered_by("rule 3: small purchase"),
        // Approved for less: the edited arguments go through the whole stack, and the tool runs with them.
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
    // The warehouse counts: the call is handed out, and its result comes back as an answer.
    let warehouse = ExternalToolset::new(
        "warehouse",
        [ToolDefinition::new("count_stock", json!({"type": "object"}))],
    );
    Tools::combined([stall, warehouse.into()])
}

/// Prints that a tool body ran.
fn did(what: String) -> Result<String, ToolError> {
    println!("  > {what}");
    Ok(what)
}

/// A scripted model: three responses, of which the second asks for less after a denial.
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

/// Prints the outcome of each call of a response, and the rule that decided it.
fn tell(report: &TurnReport) {
    println!("The results:");
    for call in report.calls() {
        let answer = call.answered().map_or("allowed without asking".to_owned(), |answered| {
            format!("{} by {}", answered.word(), answered.by().unwrap_or("a person"))
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
