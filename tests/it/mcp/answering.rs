//! Requests that cannot be read, on stdio and over HTTP: each has an answer, and nothing runs (rule M6).

use std::time::Duration;

use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{FunctionToolset, ToolError, ToolsExt, tool_fn};
use countersign_mcp::serve;
use serde_json::{Value, json};

use super::client::{Client, payments, times, told};
use super::process::Desk;
use super::sessions::{call, listening};

const ERA: &str = "2025-11-25";

/// Ids that the protocol does not have, and the ids of their answers: JSON-RPC has numbers of any size, and `null`.
const IDS: [(&str, &str); 10] = [
    ("1.5", "1.5"),
    ("-0.25", "-0.25"),
    ("9223372036854775808", "9223372036854775808"),
    ("-9223372036854775809", "-9223372036854775809"),
    ("1e30", "1e30"),
    ("null", "null"),
    ("true", "null"),
    ("{}", "null"),
    ("[1]", "null"),
    ("{\"a\":{}}", "null"),
];

/// The frames that answer no request whose id the protocol has.
fn refusals(client: &Client) -> Vec<Value> {
    client.notified.iter().filter(|it| it["error"].is_object()).cloned().collect()
}

// Rule M6: "Every request is answered: one whose id is no text or whole number of 64 bits by an error -32600 with the id
// as it came (`null` where it cannot be one)."
#[tokio::test]
async fn a_request_with_an_id_that_the_protocol_does_not_have_is_answered() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.told()), ERA, json!({})).await;
    desk.accept_tools().await;
    let requests = [
        ("tools/call", json!({"name": "write", "arguments": {"n": 1}})),
        ("tools/list", json!({})),
        ("ping", json!({})),
        ("no/method", json!({})),
    ];
    for (method, params) in &requests {
        for (id, answered) in IDS {
            client.notified.clear();
            let request =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            client.write_line(&request).await;
            client.until(|client| !refusals(client).is_empty()).await;
            let answers = refusals(&client);
            let expected: Value = serde_json::from_str(answered).unwrap();
            let [answer] = &answers[..] else { panic!("one answer: {answers:?}") };
            assert_eq!(answer.get("id"), Some(&expected), "{method} {id}: {answer}");
            assert_eq!(answer["error"]["code"], -32600, "{method} {id}: {answer}");
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.contains("`id` has to be") && text.contains("Nothing has run"), "{text}");
        }
    }
    // A notification has no id, and no answer.
    client.notified.clear();
    client.write_line(r#"{"jsonrpc":"2.0","method":"tools/call","params":[1]}"#).await;
    client.ask("tools/list", json!({})).await;
    client.ask("tools/list", json!({})).await;
    assert!(refusals(&client).is_empty(), "{:?}", client.notified);
    assert!(desk.runs().is_empty() && desk.pending().await.is_empty());
}

/// Requests of known methods with params of others, and what is said of them.
const PARAMS: [(&str, &str, &str); 12] = [
    ("tools/call", r#"{"name":7}"#, "expected a string"),
    ("tools/call", r#"{"arguments":{"euros":5}}"#, "missing field `name`"),
    ("tools/call", r#"{"name":"pay","arguments":[1]}"#, "expected a map"),
    ("tools/call", r#"{"name":"pay","arguments":{"euros":1e400}}"#, "number out of range"),
    ("tools/call", "[]", "they have to be an object"),
    ("tools/call", "\"pay\"", "they have to be an object"),
    ("tools/call", "null", "there are none"),
    ("resources/read", r#"{"uri":7}"#, "expected a string"),
    ("resources/subscribe", "{}", "missing field `uri`"),
    ("prompts/get", "{}", "missing field `name`"),
    ("completion/complete", "{}", "missing field `ref`"),
    ("logging/setLevel", r#"{"level":"loud"}"#, "unknown variant `loud`"),
];

fn says_which_params(answer: &Value, (method, params, says): (&str, &str, &str)) {
    assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    let expected = format!("The params of `{method}` cannot be read: ");
    assert!(text.starts_with(&expected) && text.contains(says), "{method} {params}: {text}");
    assert!(text.ends_with("Nothing has run."), "{text}");
}

// Rule M6: "one of a known method whose params cannot be read by an error -32602 that says why", on stdio and over HTTP.
#[tokio::test]
async fn params_that_are_not_of_their_method_are_refused_as_such() {
    let (tools, paid) = payments();
    let mut client = Client::earlier(serve(tools.clone()), ERA, json!({})).await;
    let web = listening(serve(tools)).await.opened().await;
    for case @ (method, params, _) in PARAMS {
        let request = |id: u64| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        };
        let id = client.next_id();
        client.write_line(&request(id)).await;
        says_which_params(&client.response(id).await, case);
        let (_, _, answers) = web.send("POST", &request(7)).await;
        let answer = answers.last().unwrap_or_else(|| panic!("an answer to {method} {params}"));
        assert_eq!(answer["id"], 7, "{answer}");
        says_which_params(answer, case);
    }
    let unknown = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/destroy", "params": {}});
    assert_eq!(client.ask("tools/destroy", json!({})).await["error"]["code"], -32601);
    let (_, _, answers) = web.send("POST", &unknown.to_string()).await;
    assert_eq!(answers.last().unwrap()["error"]["code"], -32601);

    // Also the first request of a client.
    let mut new = Client::from(serve(payments().0));
    let answer = new.ask("initialize", json!({"protocolVersion": ERA})).await;
    says_which_params(&answer, ("initialize", "", "missing field `capabilities`"));
    assert_eq!(times(&paid), 0);
}

// The same over HTTP, where the protocol's library has a status and no id.
#[tokio::test]
async fn a_body_that_cannot_be_read_is_answered_with_its_id() {
    let (tools, paid) = payments();
    let web = listening(serve(tools)).await;
    let session = web.opened().await;
    let good = call("pay", json!({"euros": 5}));
    let newest = web.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    for client in [&session, &newest.with("mcp-name", "pay")] {
        for (id, answered) in IDS {
            let body = good.replace("\"id\":1", &format!("\"id\":{id}"));
            let (status, _, answers) = client.send("POST", &body).await;
            let [answer] = &answers[..] else { panic!("one answer: {answers:?}") };
            let expected: Value = serde_json::from_str(answered).unwrap();
            assert_eq!((status, answer.get("id")), (400, Some(&expected)), "{id}: {answer}");
            assert_eq!(answer["error"]["code"], -32600, "{id}: {answer}");
        }
        for (bad, id, says) in [
            (good.replace("2.0", "1.0"), json!(1), "its `jsonrpc` has to be `2.0`"),
            (good[..good.len() - 2].to_owned(), json!(1), "it is no JSON"),
            (format!("[{good}]"), Value::Null, "it is no message"),
            ("null".to_owned(), Value::Null, "it is no message"),
        ] {
            let (status, _, answers) = client.send("POST", &bad).await;
            let answer = answers.last().unwrap_or_else(|| panic!("an answer to {bad}"));
            assert_eq!((status, &answer["id"]), (400, &id), "{bad}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
        }
    }
    // Host and origin are looked at before the body is.
    let (status, _, answers) = session.with("host", "evil.example").send("POST", "{}").await;
    assert!(status == 403 && answers.is_empty(), "{status} {answers:?}");
    assert_eq!(times(&paid), 0);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    text: String,
}

// Rule M6: "a text with half of a character is read with U+FFFD in its place", over HTTP as on stdio, in both eras.
#[tokio::test]
async fn halves_of_characters_are_repaired_over_http() {
    let say = tool_fn("say", "Says it", |said: Said| async move { Ok::<_, ToolError>(said.text) });
    let web = listening(serve(FunctionToolset::new().tool(say))).await;
    let earlier = call("say", json!({"text": "cut HALF, whole"}));
    let mut later: Value = serde_json::from_str(&earlier).unwrap();
    later["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let newest = web.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    for (client, body) in
        [(web.opened().await, earlier), (newest.with("mcp-name", "say"), later.to_string())]
    {
        for half in ["\\ud83d", "\\uDE00"] {
            let body = body.replace("HALF", half);
            let (status, _, answers) = client.send("POST", &body).await;
            assert_eq!(status, 200, "{answers:?}");
            assert_eq!(told(answers.last().unwrap()).0, "cut \u{fffd}, whole");
        }
    }
}

/// Reads a response until it has a text, and gives what was read.
pub(super) async fn until(response: &mut reqwest::Response, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let chunk = tokio::time::timeout(Duration::from_secs(20), response.chunk()).await;
        let chunk = chunk.expect("in time").unwrap().unwrap_or_else(|| panic!("{text}: {read}"));
        read += &String::from_utf8_lossy(&chunk);
    }
    read
}

// Rule M6: "Over HTTP an answer to a form that cannot be read approves nothing, and its form is over, as on stdio": an
// equal call shows another one.
#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_form_over_http() {
    let (tools, paid) = payments();
    let ledger = Ledger::new(MemoryStore::new());
    let server = serve(tools.approval_required()).ledger(ledger.clone());
    let web = listening(server.wait(Duration::from_millis(500))).await;
    let web = web.opened_with(json!({"elicitation": {}})).await;
    for _ in 0..2 {
        let mut calling = web.begin("POST", &call("pay", json!({"euros": 5}))).await;
        let asked = until(&mut calling, "elicitation/create").await;
        let line = asked.lines().find(|line| line.contains("elicitation/create")).unwrap();
        let asked: Value =
            serde_json::from_str(line.strip_prefix("data:").unwrap().trim()).unwrap();
        let content = r#"{"action":"accept","content":{"decision":"approve","more":1e400}}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{content}}}"#, asked["id"]);
        let (status, _, answers) = web.send("POST", &answer).await;
        assert_eq!(status, 400, "{answers:?}");
        assert_eq!(answers[0].get("id"), Some(&Value::Null), "it answers no request: {answers:?}");
        until(&mut calling, "waits for an approval").await;
    }
    let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
    assert_eq!((pending.len(), times(&paid)), (1, 0), "nothing was approved");
}
