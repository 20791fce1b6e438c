//! A real agent of PydanticAI whose tools are those of a guard, or of tools that are served. `.ci/pydantic` installs it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{
    Decision, FunctionToolset, ToolCall, ToolError, ToolMiddlewareExt, ToolsExt, decide_fn, tool_fn,
};
use countersign_mcp::serve;
use serde_json::{Value, json};

use super::client::{NoArgs, decide_the_pending, payments, times};
use super::process::Desk;
use crate::pydantic::python;

/// Runs the agent to its end, and gives what its model was told and shown.
async fn agent(given: Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pydantic/mcp_agent.py");
    let ran = tokio::task::spawn_blocking(move || {
        let mut run = Command::new(python());
        run.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = run.spawn().unwrap();
        run.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
        run.wait_with_output().unwrap()
    });
    let ran = ran.await.unwrap();
    let problem = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{problem}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn text<'a>(told: &'a Value, call: &str) -> &'a str {
    let told = told["told"].as_array().unwrap().iter().find(|it| it[0] == call);
    told.and_then(|it| it[1].as_str()).unwrap_or_default()
}

// Rules M1, M2 and M3 with another party's agent: "an allowed tool runs, a denied one tells the model why, an asked one
// waits for a decision in the ledger and then runs exactly once".
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_pydantic_ai_works_through_the_guard() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    let text_of_rules = "
        version = 1
        [[rule]]
        id = 'small'
        allow = 'mcp:files/write'
        where.n = '< 10'
        [[rule]]
        id = 'large'
        deny = 'mcp:files/write'
        where.n = '> 100'
        reason = 'more than a hundred is too much'
    ";
    std::fs::write(&rules, text_of_rules).unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "files", "--wait", "30", "--rules", &rules];
    let options = [&options[..], &["--danger-accept-all-tools"]].concat();
    let command = desk.guard_of("ann", &options, &desk.told());
    let words = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
    let env = command.get_envs().filter_map(|(name, value)| Some((words(name), words(value?))));
    let mut env: serde_json::Map<String, Value> =
        env.map(|(name, value)| (name, json!(value))).collect();
    env.entry("PATH").or_insert_with(|| json!(std::env::var("PATH").unwrap()));
    let command: Vec<_> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(words).collect();
    let calls = json!([["write", {"n": 1}], ["write", {"n": 101}], ["write", {"n": 50}]]);
    let running = tokio::spawn(agent(json!({"command": command, "env": env, "calls": calls})));
    // The first call is allowed; before it there is no store.
    desk.begun(1).await;
    let asked = desk.asked().await;
    assert_eq!(asked.ask.args().to_value(), json!({"n": 50}));
    assert_eq!(desk.runs().len(), 1, "only the allowed call has run");
    desk.approve(&asked, "bob").await;
    let told = running.await.unwrap();

    assert_eq!(told["tools"], json!(["write"]));
    assert!(text(&told, "c0").contains("wrote"), "{told}");
    assert!(text(&told, "c1").contains("more than a hundred is too much"), "{told}");
    assert!(text(&told, "c2").contains("wrote"), "{told}");
    let ran: Vec<_> = desk.runs().iter().map(|run| run["args"]["n"].clone()).collect();
    assert_eq!(ran, [json!(1), json!(50)]);
    let record = desk.ledger().await.get(asked.ask.id()).await.unwrap().unwrap();
    assert_eq!(record.state, AskState::Executed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_pydantic_ai_works_with_served_tools() {
    let (pay, paid) = payments();
    let look = tool_fn("look", "Looks", async |_: NoArgs| Ok::<_, ToolError>("looked"));
    let wipe = tool_fn("wipe", "Wipes", async |_: NoArgs| Ok::<_, ToolError>("wiped"));
    let tools = countersign::Tools::combined([
        pay.into(),
        FunctionToolset::new().tool(look).tool(wipe).into(),
    ]);
    let policy = decide_fn(|_, call: &ToolCall| match call.name() {
        "look" => Decision::allow(),
        "pay" => Decision::ask("pays"),
        _ => Decision::deny("nothing is wiped here"),
    });
    let ledger = Ledger::new(MemoryStore::new());
    let server = serve(tools.layered(policy.into_layer())).ledger(ledger.clone());
    // Its connections are one person's, so that they share asks.
    let server = server.wait(Duration::from_secs(30)).authorize(async |_| Some("ann".to_owned()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = server.router().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });

    let calls = json!([["look", {}], ["wipe", {}], ["pay", {"euros": 5}]]);
    let running = tokio::spawn(agent(json!({"url": url, "calls": calls})));
    while ledger.list(Some(AskState::Pending), 1).await.unwrap().records.is_empty() {
        assert!(!running.is_finished(), "{:?}", running.await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(times(&paid), 0);
    let yes = countersign::deferred::Answer::Approve { args: None };
    decide_the_pending(&ledger, "bob", yes).await;
    let told = running.await.unwrap();
    assert!(text(&told, "c0").contains("looked"), "{told}");
    assert!(text(&told, "c1").contains("nothing is wiped here"), "{told}");
    assert!(text(&told, "c2").contains("paid 5"), "{told}");
    assert_eq!(times(&paid), 1);
}
