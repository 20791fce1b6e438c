//! The agent: a scripted model in place of a real one, two tools, and a policy. Nothing here knows Restate, and everything
//! is as in any other program with this library.

use std::sync::Arc;

use countersign::message::RequestPart;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{
    BoxError, Decision, FunctionToolset, Message, Model, RunContext, ToolCall, ToolError, Tools,
    ToolsExt as _, decide_fn, schemars, tool_fn,
};
use serde::Deserialize;

use crate::steps::{Step, Steps};

/// The task of the demonstration: the calls that the scripted model makes, a tool and its arguments on each line, those
/// of the next response behind an empty line.
pub(crate) const TASK: &str = r#"look_up {"order": "A-17"}
refund {"order": "A-17", "euros": 60}"#;

#[derive(Deserialize, schemars::JsonSchema)]
struct Order {
    order: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Refund {
    order: String,
    euros: u32,
}

async fn look_up(cx: RunContext, args: Order) -> Result<String, ToolError> {
    let steps = cx.deps::<Arc<Steps>>()?;
    steps.write("looked_up", cx.run_id())?;
    Ok(format!("order {} was paid and not delivered", args.order))
}

/// Pays money back. Its effect is the line `done`; in place of it, a real one sends a request to a bank.
async fn refund(cx: RunContext, args: Refund) -> Result<String, ToolError> {
    let steps = cx.deps::<Arc<Steps>>()?;
    steps.reached(Step::Started, cx.run_id()).await?;
    steps.reached(Step::Done, cx.run_id()).await?;
    Ok(format!("refunded {} euros for order {}", args.euros, args.order))
}

fn policy(cx: &RunContext, call: &ToolCall) -> Decision {
    // Each decision is noted, to show that a replay of the workflow decides nothing anew.
    if let Err(error) = cx.deps::<Arc<Steps>>().map(|steps| steps.write("policy", cx.run_id())) {
        return Decision::deny(format!("The decision could not be noted: {error}"));
    }
    match call.args()["euros"].as_u64() {
        Some(euros) if euros > 500 => Decision::deny("Refunds above 500 euros are made by hand."),
        Some(_) => Decision::ask("pays money back").with_key("refund"),
        None => Decision::allow(),
    }
}

/// The tools under the policy. Both are journaled: also a call that no person was asked about is claimed in the ledger
/// before it runs, as Restate repeats a step that it has not journaled.
pub(crate) fn tools() -> Tools {
    FunctionToolset::new()
        .tool(tool_fn("look_up", "Looks an order up", look_up).journaled())
        .tool(tool_fn("refund", "Pays an order back", refund).journaled())
        .layered(decide_fn(policy).named("Policy"))
}

/// A scripted model, whose only state is the conversation.
pub(crate) struct Script;

impl Model for Script {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (mut task, mut results, mut responses) = (String::new(), Vec::new(), 0);
        for message in request.messages() {
            let Message::Request { parts } = message else {
                responses += 1;
                continue;
            };
            for part in parts {
                match part {
                    // What follows the results of calls is for a model that reads.
                    RequestPart::UserPrompt { content } if responses == 0 => {
                        task += content.as_str().unwrap_or_default();
                    }
                    RequestPart::ToolReturn { content, .. } => {
                        results.push(content.as_str().unwrap_or_default().to_owned());
                    }
                    RequestPart::UserPrompt { .. } | RequestPart::SystemPrompt { .. } => {}
                }
            }
        }
        let calls = task.split("\n\n").nth(responses).unwrap_or_default();
        let calls = calls.lines().zip(1..).map(|(line, n)| {
            let (tool, args) = line.split_once(' ').unwrap_or((line, "{}"));
            ToolCall::new(format!("call_{}_{n}", responses + 1), tool, args)
        });
        let calls: Vec<_> = calls.collect();
        Ok(match calls.is_empty() {
            true => ModelResponse::text(results.join("\n")),
            false => ModelResponse::calls(calls),
        })
    }
}
