//! `countersign guard init`: from a server's command to a protected client (rule M7).

use std::path::{Path, PathBuf};

use pty_process::blocking::Command;
use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;
use crate::program::Ended;
use crate::support::program;
use crate::support::write_program;
use crate::terminal::lines::Session;

const ERA: &str = "2025-11-25";

fn tool(name: &str, annotations: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let description = format!("Does {name}");
    json!({"name": name, "description": description, "inputSchema": schema, "annotations": annotations})
}

/// A server with a tool that it calls reading, and two others.
fn told_server(desk: &Desk) -> Value {
    let mut server = desk.told();
    server["tools"] = json!([
        tool("look", &json!({"readOnlyHint": true})),
        tool("write", &json!({})),
        tool("drop", &json!({}))
    ]);
    server
}

/// A program of this name that is the server.
fn server_program(desk: &Desk, server: &Value, name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py").display().to_string();
    let folder = desk.user.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    let text = format!("#!/bin/sh\nexec python3 '{script}' '{server}'\n");
    write_program(&file, text);
    file
}

fn init(desk: &Desk, options: &[&str], server: &Path) -> Ended {
    let server = server.display().to_string();
    desk.user
        .run(&[&["--json", "guard", "init", "--name", "files"], options, &["--", &server]].concat())
}

fn rules_file(desk: &Desk) -> PathBuf {
    desk.user.home().join(".config/countersign/guard/files.toml")
}

/// A client that starts the guard by an entry that was printed for it.
async fn by_entry(desk: &Desk, entry: &str) -> Client {
    let entry: Value = serde_json::from_str(entry).unwrap();
    let server = &entry["mcpServers"]["files"];
    let words: Vec<_> =
        server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(server["command"], program_path(desk));
    let at = words.iter().position(|word| *word == "--").unwrap();
    let command = desk.guard_before("ann", &words[1..at], &words[at + 1..]);
    Client::earlier(command, ERA, json!({"elicitation": {}})).await
}

async fn listed(client: &mut Client) -> Vec<String> {
    let tools = client.ask("tools/list", json!({})).await["result"]["tools"].clone();
    tools.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

// Rule M7: "shows each tool, and accepts it, denies it or leaves it", "A file of rules in which each accepted tool is asked
// about", "which the person activates".
#[tokio::test]
async fn a_person_accepts_the_tools_of_a_server_one_by_one() {
    let desk = Desk::new();
    let server = server_program(&desk, &told_server(&desk), "server");
    let server = server.display().to_string();
    let command = Command::new(program("countersign"))
        .args(["guard", "init", "--name", "files", "--as", "ann", "--", &server])
        .env("HOME", desk.user.home())
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("COUNTERSIGN_STORE");
    let mut session = Session::of(command);
    session.until("1 of 3: look; the server says that it only reads", 1).until("[q] end:", 1);
    session.until("inputSchema.properties.text.type: \"string\"", 1).send("a\r");
    session.until("2 of 3: write", 1).until("[q] end:", 2).send("a\r");
    session.until("3 of 3: drop", 1).until("[q] end:", 3).send("d\r");
    session.until("2 tools of `files` accepted, 1 denied.", 1).until("countersign asks review", 1);
    assert_eq!(session.ended(), Some(0), "{}", session.shown());

    let file = rules_file(&desk);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("ask = \"mcp:files/look\"\n# allow = \"mcp:files/look\"\n"), "{text}");
    assert!(text.contains("ask = \"mcp:files/write\"\nreason") && !text.contains("drop"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("allow")), "{text}");
    std::fs::write(&file, text.replace("ask = \"mcp:files/look\"\n# allow", "allow")).unwrap();

    let printed = init(&desk, &["--yes"], Path::new(&server));
    let line = printed.lines().remove(0);
    assert_eq!(line["rules_written"], false, "{line}");
    assert_eq!((&line["accepted"], &line["denied"]), (&json!(["look", "write"]), &json!(["drop"])));
    let mut client = by_entry(&desk, line["clients"][0]["entry"].as_str().unwrap()).await;
    assert_eq!(listed(&mut client).await, ["look", "write"]);
    client.person = Some(super::client::yes());
    let (text, is_error) = told(&client.call("look", json!({})).await);
    assert!(!is_error && client.asked.is_empty(), "it is allowed: {text}");
    let (text, is_error) = told(&client.call("write", json!({})).await);
    assert!(!is_error && client.asked.len() == 1, "it was asked about: {text}");
    let (text, is_error) = told(&client.call("drop", json!({})).await);
    assert!(is_error && text.contains("denied this tool"), "{text}");
    assert_eq!(client.asked.len(), 1);
}

// Rule M7: "A script accepts all tools by `--yes`, and allows none".
#[tokio::test]
async fn a_script_accepts_all_tools_and_allows_none() {
    let desk = Desk::new();
    let server = server_program(&desk, &told_server(&desk), "server");
    let ended = init(&desk, &[], &server);
    assert_eq!((ended.status, ended.err.lines().count()), (2, 1), "{ended:?}");
    assert!(ended.err.contains("on a terminal") && !rules_file(&desk).exists(), "{ended:?}");

    let ended = init(&desk, &["--yes"], &server);
    assert_eq!(ended.status, 0, "{ended:?}");
    let line = ended.lines().remove(0);
    assert_eq!(line["called_reading"], json!(["look"]));
    let mut client = by_entry(&desk, line["clients"][0]["entry"].as_str().unwrap()).await;
    assert_eq!(listed(&mut client).await, ["look", "write", "drop"]);
    client.person = Some(super::client::no());
    for (n, tool) in ["look", "write", "drop"].into_iter().enumerate() {
        assert!(told(&client.call(tool, json!({})).await).1);
        assert_eq!(client.asked.len(), n + 1, "{tool} was asked about");
    }
    assert!(desk.runs().is_empty());
}

// Rule M7: "the entry for the configuration of each client": the page about the guard shows the same ones.
#[test]
fn the_entries_are_those_of_the_page() {
    let desk = Desk::new();
    let server = server_program(&desk, &told_server(&desk), "mcp-server-git");
    let mut command = desk.user.command(&[
        "--json",
        "guard",
        "init",
        "--name",
        "git",
        "--yes",
        "--",
        "mcp-server-git",
    ]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", server.parent().unwrap().display()));
    let ended = crate::program::ended(&command.output().unwrap());
    let line: Value = ended.lines().remove(0);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let home = desk.user.home().canonicalize().unwrap().display().to_string();
    let at_home = program_path(&desk).replace(&desk.user.home().display().to_string(), "~");
    let clients = line["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 8);
    for client in clients {
        let entry = client["entry"].as_str().unwrap();
        let entry = entry.replace(&server.display().to_string(), "/usr/local/bin/mcp-server-git");
        let entry = entry.replace(&desk.user.home().display().to_string(), "~").replace(&home, "~");
        let entry = entry.replace("--project\", \"~\"", "--project\", \"~/site\"");
        // The home of the tests is not that of the account.
        let entry = entry.replace(", \"--home\", \"~\"", "");
        let entry = entry.replace(&at_home, "/usr/local/bin/countersign");
        assert!(
            page.contains(&entry),
            "the page has no such entry for {}: {entry}",
            client["client"]
        );
        let row = format!("| {} |", client["client"].as_str().unwrap());
        let row = page.lines().find(|line| line.starts_with(&row));
        let wait = format!("| {} |", client["wait"]);
        assert!(row.is_some_and(|row| row.ends_with(&wait)), "{row:?} {wait}");
    }
}

/// The program of the entries: tests run it from a folder that a build makes anew, so that it is a copy which stays.
fn program_path(desk: &Desk) -> String {
    desk.user.home().join(".local/state/countersign/bin/countersign").display().to_string()
}

// Rule M7: "A guard whose entry names no rules decides by the file that was written for its name".
#[tokio::test]
async fn a_guard_without_named_rules_decides_by_those_of_its_name() {
    let desk = Desk::new();
    let server = server_program(&desk, &told_server(&desk), "server");
    assert_eq!(init(&desk, &["--yes"], &server).status, 0);
    let text = std::fs::read_to_string(rules_file(&desk)).unwrap();
    let allowed = text.replace("ask = \"mcp:files/look\"\n# allow", "allow");
    std::fs::write(rules_file(&desk), allowed).unwrap();
    let server = server.display().to_string();
    let started = |name: &str| {
        let command = desk.guard_before("ann", &["--name", name], &[&server]);
        Client::earlier(command, ERA, json!({"elicitation": {}}))
    };
    let mut client = started("files").await;
    client.person = Some(super::client::no());
    assert!(!told(&client.call("look", json!({})).await).1, "its file allows it");
    assert!(told(&client.call("write", json!({})).await).1);
    assert_eq!(client.asked.len(), 1, "its file asks about it");
    // A server of another name has none of these rules.
    let mut other = started("other").await;
    other.person = Some(super::client::no());
    other.call("look", json!({})).await;
    assert_eq!(other.asked.len(), 1);
    // A file that was there and is gone allows nothing.
    std::fs::remove_file(rules_file(&desk)).unwrap();
    let refused = desk.user.run(&["guard", "--name", "files", "--", &server]);
    assert!(refused.status == 2 && refused.err.contains("was there and is gone"), "{refused:?}");
}

// The guard of a server that starts slowly waits as long for it as the person who began it did.
#[test]
fn the_start_timeout_that_a_server_needs_is_in_the_entries() {
    let desk = Desk::new();
    let server = server_program(&desk, &told_server(&desk), "server");
    let entries = |ended: &Ended| ended.lines().remove(0)["clients"].clone();
    let usual = entries(&init(&desk, &["--yes"], &server));
    assert!(!usual.to_string().contains("--start-timeout"), "{usual}");
    let slow = entries(&init(&desk, &["--yes", "--start-timeout", "90"], &server));
    for client in slow.as_array().unwrap() {
        let entry = client["entry"].as_str().unwrap();
        assert!(entry.contains(r#""--start-timeout", "90""#), "{entry}");
    }
    assert!(slow.as_array().unwrap().len() > 3, "{slow}");
}

// Rule M6: "A server that cannot be used is one clear line".
#[test]
fn a_server_that_cannot_be_looked_at_is_one_clear_line() {
    let desk = Desk::new();
    let with = |name: &str, what: &Value| {
        let mut server = told_server(&desk);
        server["instead"] = what.clone();
        server_program(&desk, &server, name)
    };
    let mut other_version = told_server(&desk);
    other_version["version"] = json!("1999-01-01");
    for (server, says) in [
        (desk.user.home().join("nowhere"), "could not be started"),
        (with("exits", &json!({"initialize": "exit"})), "does not answer as an MCP server"),
        (with("prints", &json!({"initialize": "no json"})), "does not answer as an MCP server"),
        (server_program(&desk, &other_version, "other"), "1999-01-01"),
        (with("lists", &json!({"tools/list": "exit"})), "could not list its tools"),
    ] {
        let ended = init(&desk, &["--yes", "--start-timeout", "3"], &server);
        let errors: Vec<_> = ended.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((ended.status, errors.len()), (1, 1), "{says}: {ended:?}");
        assert!(errors[0].contains(says) && !errors[0].contains("hunter2"), "{says}: {ended:?}");
        assert!(!rules_file(&desk).exists(), "{says}");
    }
}
