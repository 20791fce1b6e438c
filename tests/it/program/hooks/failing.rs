//! Payloads that a hook cannot decide about, and its answers to them.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CALL, Call, answered, assert_denied};
use crate::program::{User, ended};
use crate::support::clients::{forms, some_clients};

#[test]
fn a_payload_that_cannot_be_decided_is_denied() {
    let user = User::new();
    let big = vec![b'x'; 10 << 20];
    for client in some_clients(2) {
        for payload in [&b""[..], b"nonsense", b"{}", b"[1]", &big] {
            let child = user.start_hook(client, "20", &[], payload);
            assert_denied(client, &ended(&child.wait_with_output().unwrap()), "cannot be used");
        }
        let unknown = Call { client, ..CALL }.payload("SomethingNew");
        assert_denied(client, &user.tell(client, &unknown), "SomethingNew");
    }
    assert!(!user.state("asks.db").exists(), "the store is opened only to ask");
}

#[test]
fn a_store_or_configuration_that_cannot_be_used_denies() {
    let user = User::new();
    let payload = CALL.before().to_string();
    for client in some_clients(0) {
        let payload = Call { client, ..CALL }.before().to_string();
        let run = |options: &[&str]| {
            ended(
                &user
                    .start_hook(client, "20", options, payload.as_bytes())
                    .wait_with_output()
                    .unwrap(),
            )
        };
        assert_denied(client, &run(&["--store", "mysql://db"]), "is no store");
        assert_denied(client, &run(&["--store", "sqlite:/no/such/asks.db"]), "store");
        assert_denied(client, &run(&["--store", "postgres://127.0.0.1:1/none"]), "");
        assert_denied(client, &run(&["--config", "missing.toml"]), "no such file");
    }
    let bad = user.command(&["hook", "claude", "--unknown"]).output().unwrap();
    assert_eq!(
        (bad.status.code(), bad.stderr.is_empty()),
        (Some(2), false),
        "every client blocks on that"
    );
    user.configure("nonsense");
    let child = user.start_hook("claude", "20", &[], payload.as_bytes());
    assert_denied("claude", &ended(&child.wait_with_output().unwrap()), "config.toml");
}

#[test]
fn a_store_that_is_locked_denies_in_time() {
    let user = User::new();
    user.hook(&CALL, "0");
    let lock = rusqlite::Connection::open(user.state("asks.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    let other = Call { command: "make other", ..CALL };
    let hook = user.command(&["hook", "claude", "--limit", "2"]);
    let payload = other.before().to_string();
    assert_denied("claude", &answered(hook, &payload), "");
    assert!(start.elapsed() < Duration::from_secs(30));
    lock.execute_batch("ROLLBACK").unwrap();
    assert_denied("claude", &user.hook(&other, "0"), "waits for approval");
}

/// The model would be told that a call was denied which has run.
#[test]
fn a_report_that_cannot_be_recorded_is_a_remark_and_no_denial() {
    for client in some_clients(1) {
        let user = User::new();
        let call = Call { client, ..CALL };
        user.is_approved(&call);
        let lock = rusqlite::Connection::open(user.state("asks.db")).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        let report = call.after().to_string();
        let locked = answered(user.command(&["hook", client, "--limit", "9"]), &report);
        lock.execute_batch("ROLLBACK").unwrap();
        let child = user.start_hook(client, "0", &["--store", "nonsense:"], report.as_bytes());
        let unusable = ended(&child.wait_with_output().unwrap());
        for told in [locked, unusable] {
            assert_eq!((told.status, told.out.as_str()), (0, ""), "{told:?}");
            assert!(told.err.starts_with("countersign: "), "{told:?}");
        }
    }
}

#[test]
fn a_hook_whose_input_never_ends_denies_in_time() {
    let user = User::new();
    let mut command = user.command(&["hook", "codex", "--limit", "1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_denied("codex", &ended(&output), "in time");
}

/// The client counts from the moment at which it starts a shell for the hook, and not from that of the hook's `main`.
#[cfg(target_os = "linux")]
#[test]
fn the_time_limit_is_counted_from_the_start_of_the_process() {
    counted_from_the_start("sleep 6; exec \"$0\" hook codex --home \"$HOME\" --limit 12");
}

/// The shell of the installed command is there for as long as the hook.
#[cfg(target_os = "linux")]
#[test]
fn the_time_limit_is_counted_from_the_start_of_the_shell_around_the_hook() {
    counted_from_the_start(
        "sleep 6; \"$0\" hook codex --home \"$HOME\" --limit 12 --shell $$ || exit 2",
    );
}

#[cfg(target_os = "linux")]
fn counted_from_the_start(script: &str) {
    let user = User::new();
    let hook = user.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(hook.get_program());
    command.env("HOME", user.home()).current_dir(user.home());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let call = Call { client: "codex", ..CALL };
    child.stdin.take().unwrap().write_all(call.before().to_string().as_bytes()).unwrap();
    let denied = ended(&child.wait_with_output().unwrap());
    assert_denied("codex", &denied, "");
    let why = ["waits for approval", "in time"];
    assert!(why.iter().any(|why| denied.err.contains(why)), "{denied:?}");
    // From the beginning of the hook itself it would be 16 at the least.
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "it was counted from the hook's own beginning"
    );
}

/// P4: "A hook that is not told its limit answers within the shortest time that a known version of its client waits", if no
/// person has answered by then. The hooks of all clients wait at once.
#[test]
fn a_hook_without_a_limit_answers_before_its_client_gives_up() {
    let user = &User::new();
    std::thread::scope(|hooks| {
        for client in some_clients(2) {
            hooks.spawn(move || {
                let start = Instant::now();
                let payload = Call { client, ..CALL }.before().to_string();
                let told = answered(user.command(&["hook", client]), &payload);
                let (took, waits) = (start.elapsed(), forms(client).client.shortest_limit());
                assert_denied(client, &told, "");
                assert!(took < waits, "{client} has run the tool already: {took:?} of {waits:?}");
            });
        }
    });
}

/// The store that a hook waits in is removed: what it would be told of an answer is not known any more (rule L9).
#[test]
fn a_store_that_is_removed_while_a_hook_waits_denies() {
    let user = User::new();
    let child = user.start_hook(
        "codex",
        "8",
        &[],
        Call { client: "codex", ..CALL }.before().to_string().as_bytes(),
    );
    user.pending_are(1);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(user.state(&format!("asks.db{end}")));
    }
    assert_denied("codex", &ended(&child.wait_with_output().unwrap()), "");
}

/// Text that nests without an end must not end in a stack overflow, which no process can answer.
#[test]
fn a_command_that_nests_without_an_end_is_denied() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'reads'\nallow = 'shell'\nwhere.command.is = ['read-only']\n\
                [[rule]]\nid = 'others'\ndeny = 'shell'\nreason = 'not here'\n";
    std::fs::write(rules, text).unwrap();
    for begin in [
        "(", "$(", "`", "{ ", "$((", "${a:-", "\"$(", "<(", "if ", "! ", "[[ ", "eval ", "sudo ",
        "a|",
    ] {
        let command = begin.repeat((64 << 10) / begin.len());
        let call = Call { command: &command, client: "codex", ..CALL };
        assert_denied("codex", &user.hook(&call, "60"), "not here");
    }
}

#[test]
fn a_name_that_is_no_name_is_denied_in_a_few_words() {
    let user = User::new();
    let long = "x".repeat(3 << 20);
    for client in some_clients(0) {
        let mut payload = Call { client, ..CALL }.before();
        let tool =
            ["tool_name", "toolName", "tool"].into_iter().find(|it| payload.get(it).is_some());
        payload[tool.unwrap()] = json!(long);
        let denied = user.tell(client, &payload);
        assert_denied(client, &denied, "cannot be used");
        assert!(denied.err.len() < 1_000);
        let denied = user.tell(client, &Call { client, ..CALL }.payload(&long));
        assert_denied(client, &denied, "cannot be used");
        assert!(denied.err.len() < 1_000);
    }
}
