//! Servers and clients that cannot be used, or do not keep to the protocol, at the program `countersign guard`: one clear
//! line each, and nothing runs.

use std::time::Duration;

use countersign_mcp::ACCEPT_TOOLS;
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
        (url("http://127.0.0.1:9/"), "Connection refused"),
        (url("ftp://127.0.0.1/"), "http"),
    ] {
        let mut client = Client::from(command);
        let response = client.ask("initialize", hello(ERA)).await;
        let text = response["error"]["message"].as_str().unwrap();
        says(text, "files", expected);
        assert!(!text.contains("::") && !text.contains("Some("), "no type of a program: {text}");
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
    // The first two are found by their answers, the others by a time that runs out.
    for (what, limit, expected) in [
        ("the same cursor", "300", "does not end"),
        ("other cursors", "300", "does not end"),
        ("a number", "8", "could not list its tools"),
        ("exit", "8", "could not list its tools"),
    ] {
        let desk = Desk::new();
        let told_server = instead(&desk, "tools/list", what);
        let options = ["--name", "files", "--start-timeout", limit];
        let command = desk.guard_of("ann", &options, &told_server);
        let mut client = Client::earlier(command, ERA, json!({})).await;
        let response = client.ask("tools/list", json!({})).await;
        says(response["error"]["message"].as_str().unwrap(), "files", expected);
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(error);
        says(&text, "files", "did not run");
        assert!(desk.runs().is_empty());
    }
}

// "A server has the time of `--start-timeout` for its start, and again for its list": more than the ten seconds that a turn
// gives other toolsets.
#[tokio::test]
async fn a_server_has_its_start_timeout_for_its_list() {
    let desk = Desk::new();
    let slow = instead(&desk, "tools/list", "its list after eleven seconds");
    let command = desk.guard_of("ann", &["--name", "files", "--wait", "1"], &slow);
    let mut client = Client::earlier(command, ERA, json!({})).await;
    let (text, error) = told(&client.call("write", json!({"n": 1})).await);
    assert!(error);
    says(&text, "", "waits for an approval");
    assert!(desk.runs().is_empty());
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
    for what in [
        "exit",
        "half a message",
        "oversized",
        "deep",
        "too large a number",
        "an error without a number",
        "a frame in a log",
        "a deep log",
    ] {
        let desk = Desk::new();
        let server = instead(&desk, "tools/call", what);
        let command = desk.guard_of("ann", &["--name", "files"], &server);
        let mut client = Client::earlier(command, ERA, forms()).await;
        client.person = Some(super::client::yes());
        desk.accept_tools().await;
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(error, "{what}");
        says(&text, "files", "may have run");
        assert!(!desk.logged().contains("hunter2"), "no content is logged");
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

// "Any other line is text": what a server logs on its stdout, in any form, ends nothing.
#[tokio::test]
async fn what_a_server_logs_on_its_stdout_ends_no_call() {
    const NOISE: &str = r#"
import sys
LINES = ['INFO hunter2', '[INFO] hunter2', '[', '[]', '[1, 2]', '{ hunter2', '{}', '{"level": "info", "msg": "hunter2"}',
         '[{"msg": "hunter2"}]', '"hunter2"', '7', '{"n": 1e999}', '{"id": 2, "result": {"content": []}}', '  [x] done ']
def noisy(real):
    for line in real:
        for text in LINES:
            print(text, flush=True)
        yield line
print('[INFO] hunter2 is ready', flush=True)
sys.stdin = noisy(sys.stdin)
exec(open(sys.argv[2]).read())
"#;
    let desk = Desk::new();
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py");
    let (server, tells) = (server.display().to_string(), desk.told().to_string());
    let words = ["python3", "-c", NOISE, &tells, &server];
    let command = desk.guard_before("ann", &["--name", "files"], &words);
    let mut client = Client::earlier(command, ERA, forms()).await;
    client.person = Some(super::client::yes());
    for n in 1..4 {
        let (text, error) = told(&client.call("write", json!({"n": n})).await);
        assert!(!error && text.starts_with("wrote"), "{text}");
    }
    assert_eq!(desk.runs().len(), 3);
    assert!(desk.logged().contains("a line on stdio is left out"), "{}", desk.logged());
    assert!(!desk.logged().contains("hunter2"), "no content is logged");
}

// "A server that refuses our revision": it is tried again with the newest that both know, and what it says is shown.
#[tokio::test]
async fn a_server_that_refuses_a_revision_is_tried_again_with_one_that_both_know() {
    for (knows, lists) in [
        (vec!["2025-06-18"], true),
        (vec!["2024-11-05", "2025-03-26"], true),
        (vec!["2025-06-18"], false),
        (vec!["2025-03-26"], false),
    ] {
        let desk = Desk::new();
        let mut server = desk.told();
        (server["knows"], server["lists"]) = (json!(knows), json!(lists));
        let command = desk.guard_of("ann", &["--name", "files"], &server);
        let mut client = Client::earlier(command, "2025-06-18", forms()).await;
        client.person = Some(super::client::yes());
        let (text, error) = told(&client.call("write", json!({"n": 1})).await);
        assert!(!error && text.starts_with("wrote"), "{knows:?} {lists}: {text}");
        assert_eq!(desk.runs().len(), 1);
    }
    for (lists, expected) in
        [(true, "it knows 1999-01-01"), (false, "Unsupported protocol version")]
    {
        let desk = Desk::new();
        let mut server = desk.told();
        (server["knows"], server["lists"]) = (json!(["1999-01-01"]), json!(lists));
        let mut client = Client::from(desk.guard_of("ann", &["--name", "files"], &server));
        let response = client.ask("initialize", hello("2025-06-18")).await;
        says(response["error"]["message"].as_str().unwrap(), "files", expected);
        assert!(client.response_or_end(99).await.is_none(), "the guard ends");
    }
}

/// M5: the same where the server ends in place of an answer: to the newest handshake, which it does not know, or to a
/// revision. One that ends each time is started three times at most.
#[tokio::test]
async fn a_server_that_ends_in_place_of_an_answer_is_asked_for_an_earlier_handshake() {
    for (unknown, knows, works) in [
        (true, vec!["2025-11-25"], true),
        (true, vec!["2025-06-18"], true),
        (false, vec!["2025-06-18"], true),
        (true, vec!["1999-01-01"], false),
        (false, vec!["1999-01-01"], false),
    ] {
        let desk = Desk::new();
        let mut server = match unknown {
            true => instead(&desk, "server/discover", "exit"),
            false => desk.told(),
        };
        (server["knows"], server["ends"], server["lane"]) = (json!(knows), json!(true), json!("1"));
        let mut client = Client::from(desk.guard_of("ann", &["--name", "files"], &server));
        let response = client.ask("initialize", hello("2025-06-18")).await;
        let starts = desk.servers(&server["lane"]).len();
        let error = &response["error"]["message"];
        assert_eq!(error.is_null(), works, "{unknown} {knows:?}: {error}");
        let wanted = 1 + usize::from(unknown) + usize::from(knows != ["2025-11-25"]);
        match works {
            true => assert_eq!(starts, wanted, "{unknown} {knows:?}"),
            false => {
                says(error.as_str().unwrap(), "files", "has ended before");
                assert_eq!(starts, 3, "{unknown} {knows:?}");
            }
        }
    }
}

// "Oversized and malformed frames" of a client.
#[tokio::test]
async fn frames_of_a_client_that_cannot_be_read_run_nothing_and_the_next_one_is_served() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.told()), ERA, json!({})).await;
    desk.accept_tools().await;
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": 7000, "method": "tools/call", "params": params});
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
        good.replace(":1}", ":1e400}"),
        good.replace(":1}", ":NaN}"),
        good.replace("\"id\":7000", "\"id\":{}"),
        good.replace("\"write\"", "7"),
        good.replace("{\"n\":1}", "[1]"),
        good.replace("{\"n\":1}", "\"n\""),
        call(json!(null)).to_string(),
        call(json!([])).to_string(),
        "\u{0}\u{1b}[2J".to_owned(),
        String::new(),
    ] {
        client.notified.clear();
        client.write_line(&bad).await;
        let start = bad.chars().take(60).collect::<String>();
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "write", "after {start:?}: {listed}");
        assert!(desk.pending().await.is_empty(), "nothing is asked: {start:?}");
        // "answered with its id": perhaps behind the answer to a later request.
        let is_answered = |client: &Client| client.notified.iter().any(|frame| frame["id"] == 7000);
        let is_due = bad.starts_with('{') && bad.contains("\"id\":7000");
        for _ in 0..50 {
            if is_due && !is_answered(&client) {
                client.ask("tools/list", json!({})).await;
            }
        }
        let answers = client.notified.iter().filter(|frame| frame.get("method").is_none());
        let answers: Vec<_> = answers.collect();
        assert!(answers.iter().all(|it| it["error"]["message"].is_string()), "{answers:?}");
        if is_due {
            assert!(answers.iter().any(|it| it["id"] == 7000), "after {start:?}: {answers:?}");
        }
    }
    let log = desk.logged();
    for problem in ["it is no message", "longer than 16 MiB", "recursion limit", "it is no JSON"] {
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

// Rule M6: "a text with half of a character is read with U+FFFD in its place", from either end, and is shown so.
#[tokio::test]
async fn halves_of_characters_are_repaired() {
    for what in ["half a character", "no character"] {
        let desk = Desk::new();
        let server = instead(&desk, "tools/call", what);
        let command = desk.guard_of("ann", &["--name", "files", "--wait", "20"], &server);
        let mut client = Client::earlier(command, ERA, forms()).await;
        desk.accept_tools().await;
        client.person = Some(super::client::yes());
        let response = client.call("write", json!({"n": 1})).await;
        assert_eq!(told(&response), ("cut \u{fffd}".to_owned(), false), "{what}");
    }
    let desk = Desk::new();
    let guard = desk.guard_of("ann", &["--wait", "30"], &desk.told());
    let mut client = Client::earlier(guard, ERA, forms()).await;
    desk.accept_tools().await;
    client.person = Some(super::client::yes());
    let id = client.begin("ping", json!({})).await;
    client.response(id).await;
    let cut = client.begin_raw(r#"{"name":"write","arguments":{"text":"cut \ud83d"}}"#).await;
    let (text, error) = told(&client.response(cut).await);
    assert!(!error, "{text}");
    assert_eq!(desk.runs()[0]["args"], json!({"text": "cut \u{fffd}"}));
    assert!(client.asked[0]["message"].as_str().unwrap().contains("cut"));
    assert!(desk.logged().contains("halves of characters"), "{}", desk.logged());
}

// Rule M6: "a tool that cannot be read is not offered, and the others are", however deep it is.
#[tokio::test]
async fn a_tool_that_is_nested_too_deeply_to_be_read_does_not_hide_the_others() {
    let desk = Desk::new();
    let server = instead(&desk, "tools/list", "a deep tool");
    let mut client = Client::earlier(desk.guard(&server), ERA, json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["write"]);
    let log = desk.logged();
    assert!(log.contains("its definition is nested too deeply"), "{log}");
}

// Rule M6, names: a space at an end cannot be seen, and `*` and `?` are patterns of rules.
#[tokio::test]
async fn names_that_are_patterns_or_end_with_spaces_are_refused() {
    let desk = Desk::new();
    let object = json!({"type": "object"});
    let mut server = desk.told();
    let named = |name: &str| json!({"name": name, "inputSchema": object});
    server["tools"] = ["good", "write ", " write", "*", "a?", "x/y"].map(named).into();
    let mut client = Client::earlier(desk.guard(&server), ERA, json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["good", "x/y"]);
    for name in ["", "a*", "git/x", "git ", "wh?t"] {
        let output = desk.user.run(&["guard", "--name", name, "--", "true"]);
        let text = output.err.clone();
        assert!(text.contains("cannot be the name of a server"), "{name:?}: {text}");
    }
}

// A tool that does not exist: the model is told those that it can call.
#[tokio::test]
async fn an_unknown_tool_is_told_the_tools_and_not_the_requests() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.told()), ERA, json!({})).await;
    let response = client.call("wrote", json!({})).await;
    let text = told(&response).0;
    assert_eq!(text, "There is no tool `wrote`. Available: `write`.", "{response}");
}

// Rule M5: a question that is no form reaches no client, as the guard has declared forms only.
#[tokio::test]
async fn a_link_of_a_server_reaches_no_client() {
    let desk = Desk::new();
    let link = json!({"mode": "url", "message": "Log in", "url": "https://evil.example/", "elicitationId": "e"});
    let mut server = desk.told();
    server["around"] =
        json!({"before": [{"id": "link", "method": "elicitation/create", "params": link}]});
    let options = ["--name", "files", "--wait", "20", "--danger-accept-all-tools"];
    let both = json!({"elicitation": {"form": {}, "url": {}}});
    let mut client = Client::earlier(desk.guard_of("ann", &options, &server), ERA, both).await;
    client.person = Some(super::client::yes());
    client.call("write", json!({"n": 1})).await;
    assert_eq!(client.asked.len(), 1, "the guard's own form: {:?}", client.asked);
    let heard = || desk.heard().into_iter().find(|heard| heard["id"] == "link");
    super::process::wait("the server has its answer", || heard().is_some()).await;
    assert_eq!(heard().unwrap()["error"]["code"], -32602);
}

// Rule M2: the form shows the call and the reason, and not where a rule is.
#[tokio::test]
async fn the_form_says_nothing_that_only_the_author_of_the_rules_understands() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'a'\nask = 'mcp:files/*'\nreason = 'it writes'\n";
    std::fs::write(&rules, text).unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "files", "--danger-accept-all-tools", "--rules", &rules];
    let guard = desk.guard_of("ann", &options, &desk.told());
    let mut client = Client::earlier(guard, ERA, forms()).await;
    client.person = Some(super::client::yes());
    client.call("write", json!({"n": 1})).await;
    let text = client.asked[0]["message"].as_str().unwrap();
    assert!(text.contains("it writes") && text.contains("mcp:files/write(n: 1)"), "{text}");
    assert!(!text.contains("rules.toml") && !text.contains("stays the same"), "{text}");
}

// Rule D1: a store that cannot be used refuses the call, and the model is told that nothing has run.
#[tokio::test]
async fn a_call_without_its_store_is_told_that_nothing_has_run() {
    let desk = Desk::new();
    let options = ["--name", "files", "--wait", "1", "--danger-accept-all-tools"];
    let mut client =
        Client::earlier(desk.guard_of("ann", &options, &desk.told()), ERA, json!({})).await;
    client.call("write", json!({"n": 1})).await;
    for file in ["asks.db", "asks.db-wal", "asks.db-shm"] {
        _ = std::fs::rename(desk.user.state(file), desk.user.state(&format!("moved-{file}")));
    }
    std::fs::write(desk.user.state("asks.db"), "no database").unwrap();
    let (text, error) = told(&client.call("write", json!({"n": 2})).await);
    assert!(error && text.contains("Nothing has run"), "{text}");
    assert!(desk.runs().is_empty());
}

// Rule R1: "a guard names the rules that can never be about its server in its log".
#[tokio::test]
async fn rules_that_can_never_be_about_the_server_are_named_in_the_log() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'short'\nallow = 'write'\n\
                [[rule]]\nid = 'typo'\nask = 'mcp:flies/*'\n[[rule]]\nid = 'good'\nallow = 'mcp:files/write'\n";
    std::fs::write(&rules, text).unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "files", "--rules", &rules];
    Client::earlier(desk.guard_of("ann", &options, &desk.told()), ERA, json!({})).await;
    let log = desk.logged();
    let line = log.lines().find(|line| line.contains("can never be about this server")).unwrap();
    assert!(line.contains("2: rule `short`") && line.contains("5: rule `typo`"), "{line}");
    assert!(!line.contains("good"), "{line}");
}
