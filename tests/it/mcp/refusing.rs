//! Servers and clients that cannot be used, or do not keep to the protocol, at the program `countersign guard`: one clear
//! line each, and nothing runs.

use std::time::Duration;

use countersign::mcp::ACCEPT_TOOLS;
use serde_json::{Value, json};

use super::client::{Client, forms, told};
use super::process::Desk;

const ERA: &str = "2025-11-25";

fn hello(version: &str) -> Value {
    let info = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info})
}

/// Asserts that a text is one line, about the server, and says this.
fn says(text: &str, server: &str, expected: &str) {
    let is_line = !text.contains('\n') && text.len() < 600;
    assert!(is_line && text.contains(server) && text.contains(expected), "{expected}: {text}");
}

/// What a server is told that does something in place of the answer to this method.
fn instead(desk: &Desk, method: &str, what: &str) -> Value {
    let mut told = desk.told();
    told["instead"] = json!({method: what});
    told
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_said_in_one_line() {
    let desk = Desk::new();
    let options = ["--name", "files"];
    let mut unknown = desk.told();
    unknown["version"] = json!("1999-01-01");
    let url = |url: &str| desk.user.command(&["guard", "--name", "files", "--upstream", url]);
    for (command, expected) in [
        (desk.guard_before("ann", &options, &["/no/such/command"]), "could not be started"),
        (desk.guard_before("ann", &options, &["/"]), "could not be started"),
        (desk.guard_before("ann", &options, &["true"]), "does not answer as an MCP server"),
        (desk.guard_before("ann", &options, &["echo", "{\"password\": 1"]), "does not answer"),
        (desk.guard_of("ann", &options, &unknown), "unknown revision `1999-01-01`"),
        (desk.guard_of("ann", &options, &instead(&desk, "initialize", "exit")), "does not answer"),
        (url("http://127.0.0.1:9/"), "does not answer"),
        (url("ftp://127.0.0.1/"), "http"),
    ] {
        let mut client = Client::from(command);
        let response = client.ask("initialize", hello(ERA)).await;
        says(response["error"]["message"].as_str().unwrap(), "files", expected);
        assert!(client.response_or_end(99).await.is_none(), "the guard ends");
    }
    for line in desk.logged().lines().filter(|line| line.starts_with("error: ")) {
        says(line, "files", "");
    }
    assert!(!desk.logged().contains("password"), "{}", desk.logged());
    assert!(desk.runs().is_empty());
}

#[tokio::test]
async fn a_list_of_tools_that_cannot_be_read_is_said_in_one_line() {
    for (what, expected) in [
        ("the same cursor", "does not end"),
        ("other cursors", "does not end"),
        ("a number", "could not list its tools"),
        ("exit", "could not list its tools"),
    ] {
        let desk = Desk::new();
        let told_server = instead(&desk, "tools/list", what);
        let command = desk.guard_of("ann", &["--name", "files"], &told_server);
        let mut client = Client::earlier(command, ERA, json!({})).await;
        let response = client.ask("tools/list", json!({})).await;
        says(response["error"]["message"].as_str().unwrap(), "files", expected);
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(error);
        says(&text, "files", "did not run");
        assert!(desk.runs().is_empty());
    }
}

// "A schema that cannot be read: the tool is not offered, and the log says why."
#[tokio::test]
async fn a_tool_that_cannot_be_read_is_not_offered_and_the_others_are() {
    let desk = Desk::new();
    let object = json!({"type": "object"});
    let mut server = desk.told();
    server["tools"] = json!([
        {"name": "good", "inputSchema": object},
        {"name": "objekt", "inputSchema": {"type": "objekt"}},
        {"name": "seven", "inputSchema": 7},
        {"name": "lost", "inputSchema": {"$ref": "#/nowhere"}},
        {"name": "twice", "inputSchema": object},
        {"name": "twice", "inputSchema": object},
        {"name": "hid\u{202e}den", "inputSchema": object},
        {"name": "resources/read", "inputSchema": object},
        {"name": 8, "inputSchema": object},
        {"inputSchema": object},
        "no tool",
    ]);
    let command = desk.guard_of("ann", &["--name", "files", "--wait", "1"], &server);
    let mut client = Client::earlier(command, ERA, json!({})).await;
    desk.accept_tools().await;
    let listed = client.ask("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["good"]);
    let log = desk.logged();
    for tool in ["objekt", "seven", "lost", "twice", "resources/read"] {
        let mut lines = log.lines().filter(|line| line.contains("is not offered"));
        assert!(lines.any(|line| line.contains(tool) && line.contains("why")), "{tool}: {log}");
        let response = client.call(tool, json!({})).await;
        assert!(told(&response).1 || response["error"].is_object(), "{response}");
    }
    assert!(!log.contains('\u{202e}'), "{log}");
    assert!(desk.runs().is_empty());
}

// Rule M6, by results that cannot be read: the call may have run, and is not repeated.
#[tokio::test]
async fn a_result_that_cannot_be_read_leaves_may_have_run() {
    for what in ["exit", "half a message", "oversized", "deep"] {
        let desk = Desk::new();
        let server = instead(&desk, "tools/call", what);
        let command = desk.guard_of("ann", &["--name", "files"], &server);
        let mut client = Client::earlier(command, ERA, forms()).await;
        client.person = Some(super::client::yes());
        desk.accept_tools().await;
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(error, "{what}");
        says(&text, "files", "may have run");
        assert_eq!((desk.runs().len(), client.asked.len()), (1, 1), "{what}");
        // The equal call is another question, which says so.
        client.person = Some(super::client::no());
        client.call("write", json!({"n": 1})).await;
        assert!(client.asked[1]["message"].as_str().unwrap().contains("may have run"), "{what}");
        assert_eq!(desk.runs().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn lines_of_a_server_that_are_no_messages_are_left_out_and_logged() {
    let desk = Desk::new();
    let script =
        "import sys\nprint('a banner with hunter2', flush=True)\nexec(open(sys.argv[2]).read())";
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py");
    let (server, tells) = (server.display().to_string(), desk.told().to_string());
    let words = ["python3", "-c", script, &tells, &server];
    let command = desk.guard_before("ann", &["--name", "files"], &words);
    let mut client = Client::earlier(command, ERA, forms()).await;
    client.person = Some(super::client::yes());
    let (text, error) = told(&client.call("write", json!({"n": 1})).await);
    assert!(!error && text.starts_with("wrote"), "{text}");
    assert_eq!(
        desk.logged().matches("a line on stdio is left out").count(),
        1,
        "{}",
        desk.logged()
    );
    assert!(!desk.logged().contains("hunter2"));
}

// "Oversized and malformed frames" of a client.
#[tokio::test]
async fn frames_of_a_client_that_cannot_be_read_run_nothing_and_the_next_one_is_served() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.told()), ERA, json!({})).await;
    desk.accept_tools().await;
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let good = call(json!({"name": "write", "arguments": {"n": 1}})).to_string();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let oversized = "x".repeat(17 << 20);
    for bad in [
        "hunter2 is no frame".to_owned(),
        format!("hunter2 {good}"),
        good.replace("}}}", "}}"),
        good.replace(":1}", &format!(":{deep}}}")),
        good.replace(":1}", &format!(":\"{oversized}\"}}")),
        format!("[{good}]"),
        good.replace("2.0", "1.0"),
        good.replace("\"id\":7", "\"id\":{}"),
        good.replace("\"write\"", "7"),
        good.replace("{\"n\":1}", "[1]"),
        good.replace("{\"n\":1}", "\"n\""),
        call(json!(null)).to_string(),
        call(json!([])).to_string(),
        "\u{0}\u{1b}[2J".to_owned(),
        String::new(),
    ] {
        client.write_line(&bad).await;
        let start = bad.chars().take(60).collect::<String>();
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "write", "after {start:?}: {listed}");
        assert!(desk.pending().await.is_empty(), "nothing is asked: {start:?}");
    }
    for response in client.notified.iter().filter(|frame| frame.get("method").is_none()) {
        assert!(response["error"]["message"].is_string(), "{response}");
    }
    let log = desk.logged();
    for problem in ["it is no message", "longer than 16 MiB", "no JSON, or nested too deeply"] {
        assert!(log.contains(problem), "{problem}: {log}");
    }
    assert!(!log.contains("hunter2") && !log.contains("xxxx"), "no content is logged");
    assert!(desk.runs().is_empty());
}

// "An unknown revision" of a client: one that is known is offered, or the request is refused.
#[tokio::test]
async fn a_client_of_an_unknown_revision_is_offered_a_known_one() {
    let desk = Desk::new();
    for (asked, given) in [
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
    ] {
        let mut client = Client::from(desk.guard(&desk.told()));
        let response = client.ask("initialize", hello(asked)).await;
        assert_eq!(response["result"]["protocolVersion"], given, "{asked}: {response}");
    }
    let mut client = Client::newest(desk.guard(&desk.told()), forms()).await;
    client.meta.as_mut().unwrap()["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let response = client.call("write", json!({"n": 1})).await;
    assert_eq!(response["error"]["code"], -32022, "{response}");
    assert!(desk.runs().is_empty());
    let pending = desk.pending().await;
    assert!(pending.iter().all(|it| it.ask.tool() == ACCEPT_TOOLS), "{pending:?}");
}

// "A client that declares what it cannot do": it has not answered, and nothing runs.
#[tokio::test]
async fn a_client_that_declares_forms_and_has_none_is_told_the_ask() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.told()), ERA, forms()).await;
    desk.accept_tools().await;
    for answer in [
        json!({"error": {"code": -32601, "message": "method not found"}}),
        json!({"error": {"code": -32603, "message": "approve"}}),
        json!({"result": {}}),
        json!({"result": "approve"}),
        json!({"result": {"action": "accept"}}),
        json!({"result": {"action": "accept", "content": "approve"}}),
    ] {
        client.answers_raw = Some(answer.clone());
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(error && text.contains("waits for an approval"), "{answer}: {text}");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((desk.pending().await.len(), desk.runs().len()), (1, 0));
}
