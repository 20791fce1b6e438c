//! The smallest program: a tool, a layer that asks, a person who answers. `cargo run -p hello`

use countersign::{
    Decision, FunctionToolset, ToolCall, ToolError, ToolsExt as _, Turn, decide_fn, schemars,
    tool_fn,
};
use countersign_terminal::TerminalHandler;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deployment {
    service: String,
}

async fn deploy(it: Deployment) -> Result<String, ToolError> {
    Ok(format!("deployed {}", it.service))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let deploy = tool_fn("deploy", "Deploys a service", deploy);
    let policy = decide_fn(|_, _| Decision::ask("changes production")).named("policy");
    let turn = Turn::new(FunctionToolset::new().tool(deploy).layered(policy));

    // The calls of one model response, from your own loop.
    let calls = vec![ToolCall::new("call_1", "deploy", serde_json::json!({"service": "shop"}))];
    let report = turn.deferred_tool_handler(TerminalHandler::new()).run(calls).await?;
    println!("{}", report.calls()[0].outcome().text().unwrap_or_default());
    Ok(())
}
