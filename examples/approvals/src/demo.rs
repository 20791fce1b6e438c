//! The agent of the demo: scripted in place of a real model, so that no key is needed. Everything around it (the stack,
//! the settings of each ask, the resuming) is as around a real one.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use countersign::agent::text;
use countersign::decision::Preview;
use countersign::deferred::metadata;
use countersign::ledger::{Ask, Quorum};
use countersign::message::RequestPart;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{
    Agent, Args, BoxError, Decision, FunctionToolset, Message, Model, RunContext, ToolCall,
    ToolError, ToolsExt as _, Toolset as _, decide_fn, schemars, tool_fn,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tower::ServiceBuilder;

use crate::runs::Requester;

/// The default calls of the agent, one on each line: a tool and its arguments.
pub(crate) const PROMPT: &str = r#"delete_file {"path": "logs/2024-archive.tar"}
transfer {"amount_eur": 12500, "to": "DE02 1203 0000 0000 2020 51", "reference": "Invoice 881"}
cleaner {"prompt": "delete_file {\"path\": \"tmp/session-cache\"}"}
edit_config {"file": "nginx.conf", "text": "worker_processes 8;\nkeepalive_timeout 65;\ngzip on;\n"}
restart_server {"host": "db-2.internal"}"#;

/// The files of the demo, with their texts.
const FILES: [(&str, &str); 1] =
    [("nginx.conf", "worker_processes 2;\nkeepalive_timeout 65;\ngzip on;\n")];

/// The file in which the tools record their runs.
pub(crate) struct Ran(pub(crate) PathBuf);

impl Ran {
    /// Each tool's effect: one line, at the end of the file, in place of money that moves and files that go.
    fn note(cx: &RunContext, args: &impl Serialize) -> Result<(), ToolError> {
        let (tool, call) = (cx.tool_name(), cx.tool_call_id());
        let line = json!({"run": cx.run_id(), "agent": cx.agent_path(), "call": call, "tool": tool, "args": args});
        let file = &cx.deps::<Self>()?.0;
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }
}

/// Deletes one file.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    path: String,
}

/// Moves money.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Transfer {
    amount_eur: u32,
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

/// Replaces the text of a configuration file.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditConfig {
    file: String,
    text: String,
}

/// Restarts one server.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestartServer {
    host: String,
    /// The time that it takes, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    takes_s: Option<u32>,
}

/// Sends the same report to the same people: doing it twice does no harm.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendReport {
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    takes_s: Option<u32>,
}

async fn delete_file(cx: RunContext, args: DeleteFile) -> Result<String, ToolError> {
    Ran::note(&cx, &args)?;
    Ok(format!("deleted {}", args.path))
}

async fn transfer(cx: RunContext, args: Transfer) -> Result<String, ToolError> {
    Ran::note(&cx, &args)?;
    Ok(format!("transferred {} EUR to {}", args.amount_eur, args.to))
}

async fn edit_config(cx: RunContext, args: EditConfig) -> Result<String, ToolError> {
    Ran::note(&cx, &args)?;
    Ok(format!("wrote {}", args.file))
}

async fn restart_server(cx: RunContext, args: RestartServer) -> Result<String, ToolError> {
    Ran::note(&cx, &args)?;
    tokio::time::sleep(Duration::from_secs(args.takes_s.unwrap_or(0).into())).await;
    Ok(format!("restarted {}", args.host))
}

async fn send_report(cx: RunContext, args: SendReport) -> Result<String, ToolError> {
    Ran::note(&cx, &args)?;
    tokio::time::sleep(Duration::from_secs(args.takes_s.unwrap_or(0).into())).await;
    Ok(format!("sent the report to {}", args.to))
}

fn tools() -> FunctionToolset {
    FunctionToolset::new()
        .tool(tool_fn("delete_file", "Deletes a file", delete_file))
        .tool(tool_fn("transfer", "Moves money", transfer))
        .tool(tool_fn("edit_config", "Replaces a configuration file", edit_config))
        .tool(tool_fn("restart_server", "Restarts a server", restart_server))
        .tool(tool_fn("send_report", "Sends the report", send_report).idempotent())
}

/// Returns whether a tool takes these arguments. Edited arguments are checked before the decision is recorded: a
/// decision is final, and one with arguments that the tool refuses would stop its run for good.
///
/// # Errors
/// Says what does not fit.
pub(crate) fn check(call: &ToolCall) -> Result<(), String> {
    tools().validate(call.name(), call.args())
}

/// The policy: which calls are asked about. It decides about the calls of the sub-agent, too.
fn policy(_: &RunContext, call: &ToolCall) -> Decision {
    match call.name() {
        "delete_file"
            if call.args().str("path").is_some_and(|path| path.starts_with("backups/")) =>
        {
            Decision::deny("Nothing below `backups/` is deleted.")
        }
        "delete_file" => Decision::ask("deletes a file for good").with_key("delete"),
        "transfer" => Decision::ask("moves money out of the company")
            .with_key("transfer")
            .with_pin("list of known accounts", "2026-11")
            .with_metadata(metadata::APPROVAL_DESCRIPTION, "Pays one invoice, as agreed."),
        "edit_config" => {
            let arg = |name| call.args().str(name).unwrap_or_default();
            let old = FILES.iter().find(|(file, _)| *file == arg("file")).map(|(_, text)| *text);
            let change = Preview::diff(arg("file"), old, arg("text"));
            Decision::ask("changes how a server runs").with_key("config").with_preview(change)
        }
        "restart_server" => Decision::ask("cuts off connected users").with_key("restart"),
        "send_report" => Decision::ask("leaves the company").with_key("send"),
        _ => Decision::allow(),
    }
}

fn limits(_: &RunContext, call: &ToolCall) -> Decision {
    match call.args()["amount_eur"].as_u64() {
        Some(amount) if amount > 10_000 => Decision::ask("more than 10 000 EUR").with_key("large"),
        _ => Decision::allow(),
    }
}

/// Sets the requester, the quorum and the deadline of an ask before it is parked.
pub(crate) fn needs(cx: &RunContext, ask: Ask, deadline: Duration) -> Ask {
    let ask = match cx.deps::<Requester>() {
        Ok(Requester(who)) => ask.with_principal(who.as_str()),
        Err(_) => ask,
    };
    match ask.tool() {
        "transfer" => ask.with_quorum(Quorum { approvals: 2, not_the_requester: true }),
        "restart_server" => ask.with_expires_in(deadline),
        _ => ask,
    }
}

/// The agent, and its sub-agent.
pub(crate) fn agent(ran: PathBuf) -> Agent {
    let cleaner = Agent::new(Script, tools());
    let team = tools().tool(cleaner.as_tool("cleaner", "Cleans up what it is told to"));
    let stack = ServiceBuilder::new()
        .layer(decide_fn(policy).named("Policy"))
        .layer(decide_fn(limits).named("Limits"));
    Agent::new(Script, team.layered(stack)).deps(Ran(ran)).output(text().or_deferred())
}

/// A scripted model. Its only state is the conversation, so that it continues in any process.
struct Script;

impl Model for Script {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (mut prompt, mut told, mut responses) = (String::new(), Vec::new(), 0);
        for message in request.messages() {
            let Message::Request { parts } = message else {
                responses += 1;
                continue;
            };
            for part in parts {
                match part {
                    // What follows the results of calls is for a model that reads.
                    RequestPart::UserPrompt { content } if responses == 0 => {
                        prompt += content.as_str().unwrap_or_default();
                    }
                    RequestPart::ToolReturn { tool_name, content, .. } => {
                        let text =
                            content.as_str().map_or_else(|| content.to_string(), str::to_owned);
                        told.push(format!("{tool_name}: {text}"));
                    }
                    RequestPart::UserPrompt { .. } | RequestPart::SystemPrompt { .. } => {}
                }
            }
        }
        Ok(match calls(&prompt)?.into_iter().nth(responses) {
            Some(calls) => ModelResponse::calls(calls),
            None => ModelResponse::text(told.join("\n")),
        })
    }
}

/// The calls of a prompt: a tool and its arguments on each line, those of the next response behind an empty line.
///
/// # Errors
/// The number of the first line that is not a call.
pub(crate) fn calls(prompt: &str) -> Result<Vec<Vec<ToolCall>>, String> {
    let mut responses = vec![Vec::new()];
    for (n, line) in prompt.lines().map(str::trim).enumerate() {
        if line.is_empty() {
            responses.push(Vec::new());
            continue;
        }
        let (tool, args) = line.split_once(char::is_whitespace).unwrap_or((line, "{}"));
        Args::parse(args).map_err(|error| format!("line {}: {error}", n + 1))?;
        let call = ToolCall::new(format!("call_{}", n + 1), tool, args);
        responses.last_mut().into_iter().for_each(|calls| calls.push(call.clone()));
    }
    responses.retain(|calls| !calls.is_empty());
    if responses.is_empty() { Err("there is no call in it".to_owned()) } else { Ok(responses) }
}
