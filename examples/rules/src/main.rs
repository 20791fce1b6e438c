//! Permissions as a file: `rules.toml` decides about the calls of two responses, a person answers the rest, and `g` answers
//! such calls for the session. With `--explain`, why. `cargo run -p rules -- --explain`

use countersign::ledger::{Ledger, MemoryStore};
use countersign::{
    FunctionToolset, ToolCall, ToolError, ToolMiddlewareExt as _, ToolsExt as _, Turn, schemars,
    tool_fn,
};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::ShellTool;
use countersign_terminal::TerminalHandler;
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    euros: u32,
}

async fn refund(it: Refund) -> Result<String, ToolError> {
    Ok(format!("refunded {} euros", it.euros))
}

fn shell(command: &str) -> (&'static str, Value) {
    ("shell", json!({"command": command}))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let explain = std::env::args().any(|arg| arg == "--explain");
    let place = tempfile::tempdir()?;
    std::fs::write(place.path().join("README.md"), "# A project\n\nwith two lines.\n")?;

    // All of the file loads, with its tests, or nothing does.
    let rules = Rules::builder().root(place.path());
    let rules = rules.text("rules.toml", include_str!("../rules.toml")).load()?;
    // Grants and the counts of `at_most` live as long as the ledger: here, as long as the process.
    let ledger = Ledger::new(MemoryStore::new()).session("example");
    let person = TerminalHandler::new().answered_by("ann").grants(ledger.clone());
    let refund = tool_fn("refund", "Pays money back", refund);
    let shell_tool = ShellTool::new(place.path()).into_tool("shell");
    let tools =
        FunctionToolset::new().tool(refund).tool(shell_tool).layered(rules.clone().into_layer());

    let responses = [
        [shell("wc -l README.md | cat"), shell("cat .env"), shell("touch notes.txt")],
        [
            shell("touch notes.txt"),
            ("refund", json!({"euros": 20})),
            ("refund", json!({"euros": 60})),
        ],
    ];
    for (number, calls) in responses.into_iter().enumerate() {
        let calls: Vec<ToolCall> = calls
            .into_iter()
            .enumerate()
            .map(|(at, (tool, args))| ToolCall::new(format!("call_{number}_{at}"), tool, args))
            .collect();
        if explain {
            for call in &calls {
                println!(
                    "{}({})\n  {}",
                    call.name(),
                    call.args(),
                    rules.explain(&RuleCall::of(call))
                );
            }
        }
        let turn =
            Turn::new(tools.clone()).ledger(ledger.clone()).deferred_tool_handler(person.clone());
        for call in turn.run(calls).await?.calls() {
            let by = call.answered().and_then(|answer| answer.by()).unwrap_or("the rules");
            println!(
                "{}: {} [{by}]",
                call.call().name(),
                call.outcome().text().unwrap_or_default().trim()
            );
        }
    }
    Ok(())
}
