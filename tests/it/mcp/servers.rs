//! The guard between other people's clients and servers, which `.ci/mcp` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::program;

/// The folder that `.ci/mcp` fills.
pub(super) fn folder() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let target = built.ancestors().nth(3).unwrap();
    let folder = target.join("mcp");
    assert!(
        folder.join(".installed").exists(),
        "run `.ci/mcp` first: {} is not complete",
        folder.display()
    );
    folder
}

/// What a client is given, beside its server's command.
struct Given<'a> {
    mode: &'a str,
    answer: Option<&'a str>,
    calls: Value,
}

/// Runs one of the clients, and gives its lines.
fn client(home: &Path, command: &[String], given: &Given<'_>) -> Vec<Value> {
    let folder = folder();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp");
    let env = json!({"HOME": home, "PATH": std::env::var("PATH").unwrap()});
    let told = json!({"command": command, "mode": given.mode, "answer": given.answer, "calls": given.calls, "env": env, "packages": folder.join("node_modules")});
    let mut run = match given.mode {
        "typescript" => {
            let mut run = Command::new("node");
            run.arg(scripts.join("client.mjs"));
            run
        }
        _ => {
            let mut run = Command::new(folder.join("venv/bin/python"));
            run.arg(scripts.join("client.py"));
            run
        }
    };
    let output = run.arg(told.to_string()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{} {command:?}: {}",
        given.mode,
        String::from_utf8_lossy(&output.stderr)
    );
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn countersign(home: &Path, words: &[&str]) -> Value {
    let run = Command::new(program("countersign"))
        .args(words)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env("COUNTERSIGN_STORE", home.join("asks.db"))
        .output()
        .unwrap();
    serde_json::from_slice(&run.stdout).unwrap_or(Value::Null)
}

fn guarded(home: &Path, name: &str, wait: &str, server: &[String]) -> Vec<String> {
    let mut command = vec![program("countersign").to_string_lossy().into_owned()];
    let (store, home) = (home.join("asks.db").display().to_string(), home.display().to_string());
    let own = ["guard", "--home", &home, "--store", &store, "--principal", "ann"];
    command.extend(own.map(str::to_owned));
    command.extend(["--name", name, "--wait", wait, "--"].map(str::to_owned));
    command.extend(server.iter().cloned());
    command
}

/// The servers, with a call of each.
fn servers(home: &Path) -> Vec<(&'static str, Vec<String>, Value)> {
    let folder = folder();
    let node =
        |name: &str| folder.join("node_modules/.bin").join(name).to_string_lossy().into_owned();
    let python = |name: &str| folder.join("venv/bin").join(name).to_string_lossy().into_owned();
    let files = home.join("files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("a.txt"), "the text of a").unwrap();
    let files = files.to_string_lossy().into_owned();
    vec![
        ("everything", vec![node("mcp-server-everything")], json!(["echo", {"message": "hi"}])),
        (
            "filesystem",
            vec![node("mcp-server-filesystem"), files.clone()],
            json!(["read_text_file", {"path": format!("{files}/a.txt")}]),
        ),
        ("memory", vec![node("mcp-server-memory")], json!(["read_graph", {}])),
        (
            "time",
            vec![python("mcp-server-time"), "--local-timezone".into(), "UTC".into()],
            json!(["convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}]),
        ),
    ]
}

// "put before server-filesystem in an unmodified client's `mcp.json`, by only prefixing the command, it lists the same
// tools", and an approved call has the bare server's result; old and new clients.
#[test]
fn other_peoples_clients_and_servers_work_through_the_guard() {
    let home = tempfile::tempdir().unwrap();
    for (name, server, call) in servers(home.path()) {
        let guard = guarded(home.path(), name, "20", &server);
        for mode in ["legacy", "auto", "typescript"] {
            let none = Given { mode, answer: None, calls: json!([]) };
            let bare = Given { mode, answer: None, calls: json!([call]) };
            let bare = client(home.path(), &server, &bare);
            let listed = client(home.path(), &guard, &none);
            assert_eq!(listed[0], bare[0], "{name} by {mode}: the tools");
            let proposed = countersign(home.path(), &["pins", "list"]);
            if let Some(ask) = proposed["ask"].as_str() {
                countersign(home.path(), &["pins", "accept", ask, "--as", "ann"]);
            }
            let yes = Given { mode, answer: Some("approve"), calls: json!([call]) };
            let through = client(home.path(), &guard, &yes);
            for part in ["text", "error", "structured"] {
                assert_eq!(through[1][part], bare[1][part], "{name} by {mode}: {}", through[1]);
            }
            assert_eq!(through[1]["asked"], 1, "{name} by {mode}");
            let no = Given { mode, answer: Some("decline"), calls: json!([call]) };
            let denied = client(home.path(), &guard, &no);
            assert!(
                denied[1]["text"].as_str().unwrap().contains("Denied by ann"),
                "{name} by {mode}: {}",
                denied[1]
            );
        }
    }
}

// A client that cannot be asked is told the ask, and finds the decision in another process.
#[test]
fn a_client_without_forms_finds_the_decision_of_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    let (name, server, call) = servers(home.path()).remove(1);
    let guard = guarded(home.path(), name, "1", &server);
    let given = || Given { mode: "typescript", answer: None, calls: json!([call]) };
    client(home.path(), &guard, &Given { calls: json!([]), ..given() });
    countersign(home.path(), &["pins", "accept", "--all", "--as", "ann"]);
    let told = client(home.path(), &guard, &given());
    let text = told[1]["text"].as_str().unwrap();
    let ask = countersign(home.path(), &["asks", "list", "--state", "pending"]);
    let id = ask["id"].as_str().unwrap_or_else(|| panic!("{ask}"));
    assert!(text.contains(id), "{text}");
    let decided = countersign(
        home.path(),
        &[
            "asks",
            "decide",
            id,
            "--fingerprint",
            ask["fingerprint"].as_str().unwrap(),
            "--as",
            "bob",
            "--approve",
        ],
    );
    assert_eq!(decided["result"], "won", "{decided}");
    assert_eq!(client(home.path(), &guard, &given())[1]["text"], "the text of a");
    assert_ne!(client(home.path(), &guard, &given())[1]["text"], "the text of a", "once");
}
