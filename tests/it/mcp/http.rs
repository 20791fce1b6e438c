//! The guard over HTTP: the secret of its clients, its address, and clients that come back (rules M2, M3).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use countersign_mcp::{Launch, McpToolset};
use serde_json::{Value, json};

use super::client::{Client, forms, told, yes};
use super::process::{Desk, WebGuard, wait};
use super::servers::folder;
use super::sessions::{Web, ask_of, call};

/// A guard over HTTP, which holds a call for a second.
async fn listening(desk: &Desk, options: &[&str]) -> WebGuard {
    listening_for(desk, "1", options).await
}

/// A guard over HTTP, which holds a call for so many seconds.
async fn listening_for(desk: &Desk, wait: &str, options: &[&str]) -> WebGuard {
    let listen = ["--wait", wait, "--listen", "127.0.0.1:0"];
    desk.listening(desk.guard_of("ann", &[&listen, options].concat(), &desk.told())).await
}

/// The values of `Authorization` of senders that are not known.
fn unknown(secret: &str) -> Vec<Vec<String>> {
    let other = secret.chars().rev().collect::<String>();
    let bearer = |secret: &str| format!("Bearer {secret}");
    vec![
        vec![],
        vec![String::new()],
        vec!["Bearer".to_owned()],
        vec!["Bearer ".to_owned()],
        vec![bearer(&other)],
        vec![bearer(&secret[..secret.len() - 1])],
        vec![bearer(&format!("{secret}0"))],
        vec![bearer(&format!("{secret} {secret}"))],
        vec![bearer(&secret.to_uppercase())],
        vec![secret.to_owned()],
        vec![format!("Basic {secret}")],
        vec![format!("Bearer\t{secret}")],
        vec![bearer(secret), bearer(&other)],
        vec![bearer(secret), bearer(secret)],
    ]
}

/// Sends a request, and asserts that it is refused as that of an unknown sender.
async fn is_refused(
    client: &reqwest::Client,
    (method, url): (&str, &str),
    senders: &[String],
    session: Option<&str>,
) {
    let newest = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut later: Value = serde_json::from_str(&call("write", json!({"n": 1}))).unwrap();
    later["params"]["_meta"] = newest;
    let info = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": yes()});
    let earlier = call("write", json!({"n": 1}));
    for body in [hello.to_string(), earlier, later.to_string(), answer.to_string()] {
        let mut request = client.request(method.parse().unwrap(), url).body(body);
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("content-type", "application/json");
        request = request.header("mcp-protocol-version", "2026-07-28");
        request = request.header("mcp-method", "tools/call").header("mcp-name", "write");
        for sender in senders {
            request = request.header("authorization", sender);
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.unwrap();
        let what = format!("{method} {url} {}", senders.len());
        assert_eq!(response.status().as_u16(), 401, "{what}");
        let challenge = response.headers().get("www-authenticate");
        assert!(challenge.is_some_and(|it| it.to_str().unwrap().starts_with("Bearer ")), "{what}");
        assert!(response.headers().get("mcp-session-id").is_none(), "{what}");
    }
}

// Rule M2: "Over HTTP a guard answers only requests with its secret", of every method, at every path and in both eras:
// "without it nothing is read, and no server is started".
#[tokio::test]
async fn a_request_without_the_secret_reaches_nothing() {
    let desk = Desk::new();
    let guard = listening(&desk, &[]).await;
    let base = guard.url.trim_end_matches("/mcp").to_owned();
    let senders = unknown(&guard.secret);
    let client = reqwest::Client::new();
    for sender in &senders {
        is_refused(&client, ("POST", &guard.url), sender, None).await;
    }
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"] {
        for sender in [&senders[0], &senders[4]] {
            is_refused(&client, (method, &guard.url), sender, None).await;
        }
    }
    for path in ["", "/", "/mcp/", "/mcp/x", "/x", "/.well-known/oauth-protected-resource"] {
        for method in ["GET", "POST"] {
            is_refused(&client, (method, &format!("{base}{path}")), &senders[0], None).await;
        }
    }
    assert!(desk.servers(&Value::Null).is_empty(), "no server was started");
    assert!(desk.pending().await.is_empty(), "nothing was asked");

    // Nor does a session of a known sender exist for others.
    let web = Web::new(&*guard.url).with("authorization", guard.bearer());
    let ann = web.opened().await;
    let session = ann.header("mcp-session-id");
    for method in ["POST", "GET", "DELETE"] {
        for sender in &senders {
            is_refused(&client, (method, &guard.url), sender, Some(&session)).await;
        }
    }
    desk.accept_tools().await;
    assert_eq!(ann.with("authorization", "Bearer x").call("write", json!({})).await.0, 401);
    assert!(desk.runs().is_empty());
    for scheme in ["Bearer", "bearer", "BEARER "] {
        let ann = ann.with("authorization", format!("{scheme} {}", guard.secret));
        assert!(told(&ann.call("write", json!({})).await.1).0.contains("waits for"), "{scheme}");
    }
    assert!(!desk.logged().contains(&guard.secret), "the log has no secret");
}

// Rule M2: the secret "is in a private file, and in no log, error or argument".
#[tokio::test]
async fn the_secret_is_in_a_private_file_and_nowhere_else() {
    let desk = Desk::new();
    let guard = listening(&desk, &[]).await;
    let file = desk.user.state("guard.token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(guard.secret.len(), 64, "256 random bits");
    let process = guard.process.id().unwrap();
    for part in ["cmdline", "environ"] {
        let text = std::fs::read(format!("/proc/{process}/{part}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&guard.secret), "{part}");
    }
    let again = listening(&desk, &[]).await;
    assert_eq!(again.secret, guard.secret, "clients are configured with it once");
    let own = desk.user.home().join("own.token").display().to_string();
    let other = listening(&desk, &["--token-file", &own]).await;
    assert_ne!(other.secret, guard.secret);
    assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!desk.logged().contains(&guard.secret) && !desk.logged().contains(&other.secret));

    let refused = |content: &str, mode: u32| {
        std::fs::write(&own, content).unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(mode)).unwrap();
        let words =
            ["guard", "--listen", "127.0.0.1:0", "--token-file", &own, "--", "no-such-server"];
        let ended = desk.user.run(&words);
        assert!(ended.status == 2 && ended.err.contains("own.token"), "{ended:?}");
        assert!(content.is_empty() || !ended.err.contains(content), "{ended:?}");
        ended.err
    };
    assert!(refused(&"a".repeat(64), 0o644).contains("others can read this secret"));
    assert!(refused("hunter2", 0o600).contains("at least 32"));
    assert!(refused("", 0o600).contains("at least 32"));
    assert!(refused(&"ä".repeat(64), 0o600).contains("a header may not carry"));
    assert!(desk.user.run(&["guard", "--token-file", &own, "--", "x"]).status == 2, "only HTTP");
}

// Rule M2: "It listens where other machines reach it only by `--danger-unencrypted`", as the inbox does.
#[tokio::test]
async fn an_address_that_other_machines_reach_has_to_be_asked_for() {
    let desk = Desk::new();
    for address in ["0.0.0.0:0", "[::]:0", "203.0.113.1:8790", "[::ffff:127.0.0.1]:0"] {
        for words in
            [&["guard", "--listen", address, "--", "x"][..], &["inbox", "--listen", address]]
        {
            let ended = desk.user.run(words);
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            assert!(ended.err.contains("other machines can reach"), "{ended:?}");
            assert!(ended.err.contains("--danger-unencrypted"), "{ended:?}");
        }
    }
    let options = ["--listen", "0.0.0.0:0", "--danger-unencrypted"];
    let guard = desk.listening(desk.guard_of("ann", &options, &desk.told())).await;
    let url = guard.url.replace("0.0.0.0", "127.0.0.1");
    is_refused(&reqwest::Client::new(), ("POST", &url), &[], None).await;
    let launch = Launch::url(url).header("authorization", guard.bearer());
    McpToolset::connect("files", launch.header("host", "another.example")).await.unwrap();
}

// Rule M3: "The secret of a guard over HTTP is the account of its clients": an equal call finds the decision, also where each request is a
// connection of its own, and runs once.
#[tokio::test]
async fn a_client_without_forms_comes_back_by_its_secret() {
    let desk = Desk::new();
    let guard = listening(&desk, &[]).await;
    let web = Web::new(&*guard.url).with("authorization", guard.bearer());
    web.opened().await;
    desk.accept_tools().await;
    let none = json!({});
    let newest = async || web.call_newest("write", json!({"n": 1}), (&none, json!({}))).await.1;
    let ask = ask_of(&newest().await);
    assert_eq!(ask_of(&newest().await), ask, "it joins the ask, and no person is asked again");
    let asked = desk.asked().await;
    assert_eq!((asked.ask.id(), asked.ask.principal()), (&*ask, Some("ann")));
    desk.approve(&asked, "bob").await;
    assert!(told(&newest().await).0.starts_with("wrote"));
    assert_ne!(ask_of(&newest().await), ask, "once");
    assert_eq!(desk.runs().len(), 1);
}

/// Runs the official Python client against a URL, and gives its lines.
async fn python(guard: &WebGuard, mode: &str, answer: Option<&str>, calls: Value) -> Vec<Value> {
    let told = json!({"url": guard.url, "mode": mode, "answer": answer, "calls": calls});
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/client.py");
    let mut run = Command::new(folder().join("venv/bin/python"));
    run.arg(script).arg(told.to_string()).env("SECRET_OF_GUARD", &guard.secret);
    let ran = tokio::task::spawn_blocking(move || run.output().unwrap()).await.unwrap();
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{mode}: {err}");
    let lines = String::from_utf8(ran.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// A client of other people, of both eras, with a form and without, with the secret and without.
#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_is_asked_and_comes_back_over_http() {
    for mode in ["legacy", "auto"] {
        let desk = Desk::new();
        let patient = listening_for(&desk, "30", &[]).await;
        python(&patient, mode, None, json!([])).await;
        desk.accept_tools().await;
        let call = json!([["write", {"n": 1}]]);
        let lines = python(&patient, mode, Some("approve"), call.clone()).await;
        assert_eq!((&lines[0]["tools"], &lines[1]["asked"]), (&json!(["write"]), &json!(1)));
        assert!(lines[1]["text"].as_str().unwrap().starts_with("wrote"), "{mode}: {lines:?}");

        // The client has no form, and its wait runs out.
        let mut guard = listening(&desk, &[]).await;
        let lines = python(&guard, mode, None, call.clone()).await;
        assert!(lines[1]["text"].as_str().unwrap().contains("waits for an approval"), "{lines:?}");
        desk.approve(&desk.asked().await, "bob").await;
        let lines = python(&guard, mode, None, call).await;
        assert!(lines[1]["text"].as_str().unwrap().starts_with("wrote"), "{mode}: {lines:?}");
        assert_eq!(desk.runs().len(), 2, "{mode}");

        guard.secret = "0".repeat(64);
        let told = json!({"url": guard.url, "mode": mode, "calls": [["write", {"n": 2}]]});
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/client.py");
        let mut run = Command::new(folder().join("venv/bin/python"));
        run.arg(script).arg(told.to_string()).env("SECRET_OF_GUARD", &guard.secret);
        let ran = tokio::task::spawn_blocking(move || run.output().unwrap()).await.unwrap();
        assert!(!ran.status.success(), "{mode}: it cannot even list the tools");
        assert_eq!(desk.runs().len(), 2, "{mode}");
    }
}

// Rule M2: "With `--ask-in inbox` no form is shown, and an answer in the client counts for nothing."
#[tokio::test]
async fn a_guard_that_asks_in_the_inbox_shows_no_form() {
    let desk = Desk::new();
    let elsewhere = ["--wait", "0", "--ask-in", "inbox"];
    let guard = || desk.guard_of("ann", &elsewhere, &desk.told());
    let mut client = Client::earlier(guard(), "2025-11-25", forms()).await;
    client.person = Some(yes());
    desk.accept_tools().await;
    let response = client.call("write", json!({"n": 1})).await;
    assert!(told(&response).0.contains("waits for an approval"), "{response}");
    assert!(client.asked.is_empty() && desk.runs().is_empty(), "{:?}", client.asked);
    desk.approve(&desk.asked().await, "bob").await;
    assert!(told(&client.call("write", json!({"n": 1})).await).0.starts_with("wrote"));

    let mut client = Client::newest(guard(), forms()).await;
    let response = client.call("write", json!({"n": 2})).await;
    assert!(told(&response).0.contains("waits for an approval"), "{response}");
    assert_eq!(response["result"]["requestState"], Value::Null);

    // Another guard on the same ledger shows a form, and its state comes to this one.
    let mut asks = Client::newest(desk.guard(&desk.told()), forms()).await;
    let asked = asks.call("write", json!({"n": 3})).await;
    let state = &asked["result"]["requestState"];
    let response = client.retry("write", json!({"n": 3}), state, yes()).await;
    assert!(told(&response).0.contains("waits for an approval"), "{response}");
    assert_eq!(desk.runs().len(), 1, "only what was approved elsewhere");
    let response = asks.retry("write", json!({"n": 3}), state, yes()).await;
    assert!(told(&response).0.starts_with("wrote"), "{response}");
}

// S14: "A guard names the inbox without its secret", wherever the inbox is when a person is asked.
#[tokio::test]
async fn a_guard_sends_a_client_to_the_inbox_wherever_it_is() {
    let desk = Desk::new();
    let guard = desk.guard_of("ann", &["--wait", "0", "--inbox"], &desk.told());
    let mut client = Client::newest(guard, json!({"elicitation": {"url": {}}})).await;
    desk.accept_tools().await;
    let response = client.call("write", json!({"n": 1})).await;
    assert!(
        told(&response).0.contains("waits for an approval"),
        "no inbox was started: {response}"
    );
    std::fs::write(desk.user.state("inbox.url"), "http://127.0.0.1:8788/\n").unwrap();
    let asked = client.call("write", json!({"n": 2})).await;
    let question = &asked["result"]["inputRequests"]["countersign"]["params"];
    let id = question["elicitationId"].as_str().unwrap();
    assert_eq!(question["url"], format!("http://127.0.0.1:8788/#ask={id}"), "{asked}");
    assert!(!desk.user.state("inbox.secret").exists(), "a guard needs no secret");
}

// The same over HTTP: the secret alone approves nothing, in both eras.
#[tokio::test]
async fn a_guard_over_http_that_asks_in_the_inbox_lets_no_client_approve() {
    let desk = Desk::new();
    let guard = listening(&desk, &["--ask-in", "inbox"]).await;
    let web = Web::new(&*guard.url).with("authorization", guard.bearer());
    let session = web.opened().await;
    desk.accept_tools().await;
    let newest =
        async |more: Value| web.call_newest("write", json!({"n": 1}), (&forms(), more)).await.1;
    let ask = ask_of(&newest(json!({})).await);
    assert_eq!(ask_of(&session.call("write", json!({"n": 1})).await.1), ask, "in any era");
    let yes = json!({"inputResponses": {"countersign": yes()}});
    assert_eq!(ask_of(&newest(yes).await), ask);
    assert!(desk.runs().is_empty());
    desk.approve(&desk.asked().await, "bob").await;
    assert!(told(&newest(json!({})).await).0.starts_with("wrote"));
}

// On a terminal it prints what each client's configuration needs, without the secret.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_a_guard_prints_what_clients_need() {
    use std::io::Read as _;
    let desk = Desk::new();
    let (mut pty, pts) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(50, 2_000)).unwrap();
    let mut guard = pty_process::blocking::Command::new(crate::support::program("countersign"));
    guard = guard.arg("guard").arg("--home").arg(desk.user.home());
    guard = guard.args(["--name", "my git", "--listen", "127.0.0.1:0", "--", "x"]);
    guard = guard.env("HOME", desk.user.home()).env_remove("XDG_STATE_HOME");
    guard = guard.env_remove("XDG_CONFIG_HOME").env_remove("COUNTERSIGN_STORE");
    let mut guard = guard.spawn(pts).unwrap();
    let mut shown = String::new();
    while !shown.contains("Others:")
        || !shown.ends_with('\n')
        || !shown.contains("with the text in ")
    {
        let mut bytes = [0; 4096];
        let read = pty.read(&mut bytes).unwrap();
        assert!(read > 0, "{shown}");
        shown += &String::from_utf8_lossy(&bytes[..read]);
    }
    guard.kill().unwrap();
    guard.wait().unwrap();
    let file = desk.user.state("guard.token");
    let secret = std::fs::read_to_string(&file).unwrap();
    assert!(!shown.contains(secret.trim()), "{shown}");
    let url = shown.split("listens on ").nth(1).unwrap().split_whitespace().next().unwrap();
    let after = |name: &str| {
        let line = shown.split(&format!("{name} (")).nth(1).unwrap().lines().nth(1).unwrap();
        line.trim().to_owned()
    };
    let json = |name: &str| serde_json::from_str::<Value>(&after(name)).unwrap();
    let claude = json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer ${COUNTERSIGN_GUARD_TOKEN}"}});
    assert_eq!(json("Claude Code"), json!({"mcpServers": {"my git": claude}}));
    let cursor =
        json!({"url": url, "headers": {"Authorization": "Bearer ${env:COUNTERSIGN_GUARD_TOKEN}"}});
    assert_eq!(json("Cursor"), json!({"mcpServers": {"my git": cursor}}));
    let code = json("VS Code");
    assert_eq!(
        code["servers"]["my git"]["headers"]["Authorization"],
        "Bearer ${input:countersign}"
    );
    assert_eq!(code["inputs"][0]["password"], true);
    let codex = after("Codex");
    assert!(codex.contains("bearer_token_env_var = \"COUNTERSIGN_GUARD_TOKEN\""), "{codex}");
    let export = format!("export COUNTERSIGN_GUARD_TOKEN=\"$(cat {})\"", file.display());
    assert!(shown.contains(&export), "{shown}");
    wait("the file is there", || file.exists()).await;
}

// Rule M2: a guard stands before a server with a secret, which is in a private file, and in no log, error or argument.
#[tokio::test]
async fn a_guard_sends_the_secret_of_its_server_from_a_private_file() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    std::fs::write(&rules, "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:*/*'\n").unwrap();
    let rules = rules.display().to_string();
    let accepted = ["--danger-accept-all-tools", "--rules", &rules];
    // The server with a secret is another guard, which listens.
    let far = listening(&desk, &[&["--name", "near"][..], &accepted].concat()).await;
    let file = desk.user.home().join("headers");
    let write = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    };
    let path = file.display().to_string();
    let plain = ["guard", "--name", "far", "--upstream", &far.url];
    let named = [&plain[..], &accepted, &["--upstream-header-file", &path]].concat();

    write(&format!("# its secret\n\nAuthorization: {}\n", far.bearer()), 0o600);
    let mut client = Client::earlier(desk.user.command(&named), "2025-11-25", json!({})).await;
    let (text, error) = told(&client.call("write", json!({"n": 1})).await);
    assert!(!error && text.starts_with("wrote"), "{text}");

    let info = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let mut unknown = Client::from(desk.user.command(&plain));
    let refused = unknown.ask("initialize", hello).await;
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("`far` cannot be used at its URL: it answers only requests with a secret"),
        "{text}"
    );

    for (text, mode, expected) in [
        ("Authorization: hunter2", 0o644, "others can read this secret"),
        ("hunter2", 0o600, "line 1 is no header"),
    ] {
        write(text, mode);
        let ended = desk.user.run(&named);
        assert!(ended.status != 0 && ended.err.contains(expected), "{ended:?}");
        assert!(!ended.err.contains("hunter2") && !ended.err.contains("generated"), "{ended:?}");
    }
    let without = ["guard", "--upstream-header-file", &path, "--", "x"];
    assert_eq!(desk.user.run(&without).status, 2, "a command has no headers");
    assert!(!desk.logged().contains(&far.secret));
}
