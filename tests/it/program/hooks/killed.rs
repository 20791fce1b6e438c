//! Signals, a full disk, and a client that does not read: always a denial, and an approval is spent at most once.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{User, ended};
use crate::support::clients::{clients, some_clients};

const CODEX: Call<'static> = Call { client: "codex", ..CALL };

fn kill(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_signal_is_a_denial() {
    let user = User::new();
    let signals = ["-TERM", "-INT", "-HUP", "-XFSZ", "-QUIT"];
    for (client, signal) in some_clients(1).zip(signals.into_iter().cycle()) {
        let call = Call { client, ..CALL };
        let child = user.start_hook(client, "60", &[], call.before().to_string().as_bytes());
        let pending = user.pending_are(1);
        kill(&child, signal);
        assert_denied(client, &ended(&child.wait_with_output().unwrap()), "told to end");
        user.decide(&pending[0], &["--deny", "no"]);
    }
}

/// A pipe that is full, and that no one reads.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut filling = writer.try_clone().unwrap();
    std::thread::spawn(move || while filling.write_all(&[0; 4096]).is_ok() {});
    (reader, writer)
}

#[test]
fn a_hook_that_is_killed_before_it_has_read_its_payload_leaves_nothing() {
    let user = User::new();
    let mut command = user.command(&["hook", "claude", "--limit", "20"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let payload = CALL.before().to_string();
    stdin.write_all(&payload.as_bytes()[..payload.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    child.kill().unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"");
    assert!(!user.state("asks.db").exists());
}

#[test]
fn a_hook_that_is_killed_while_it_waits_leaves_an_ask_whose_approval_is_spent_once() {
    let user = User::new();
    let mut child = user.start_hook("codex", "60", &[], CODEX.before().to_string().as_bytes());
    user.pending_are(1);
    child.kill().unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"");
    user.approve_pending();
    assert_allowed(&user.hook(&Call { id: "c2", ..CODEX }, "20"));
    assert_denied("codex", &user.hook(&Call { id: "c3", ..CODEX }, "0"), "waits for approval");
}

/// L2: after the claim, and before the client has the answer, it is not known whether the client runs the call.
#[test]
fn a_hook_that_is_killed_between_its_claim_and_its_answer_leaves_an_unknown_outcome() {
    let user = User::new();
    assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
    user.approve_pending();
    let (_reader, stdout) = full_pipe();
    let mut command = user.command(&["hook", "claude", "--limit", "60"]);
    let mut child = command.stdin(Stdio::piped()).stdout(stdout).spawn().unwrap();
    child.stdin.take().unwrap().write_all(CALL.before().to_string().as_bytes()).unwrap();
    let start = Instant::now();
    while user.states() != ["claimed"] {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", user.states());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_denied("claude", &user.hook(&Call { id: "c2", ..CALL }, "0"), "waits for approval");
    let end = json!({"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": "/src", "reason": "exit"});
    assert_eq!(user.tell("claude", &end).status, 0);
    let mut states = user.states();
    states.sort();
    assert_eq!(states, ["pending", "unknown"]);
}

/// A hook that is killed anywhere leaves at most one execution for one approval.
#[test]
fn a_hook_that_is_killed_at_any_moment_spends_an_approval_at_most_once() {
    let user = User::new();
    for (step, client) in (0_u32..15).zip(clients().cycle()) {
        let command = format!("make step{step}");
        let call = Call { command: &command, client, ..CALL };
        let begun = Instant::now();
        user.hook(&call, "0");
        let whole = begun.elapsed();
        user.approve_pending();
        let mut child = user.start_hook(client, "20", &[], call.before().to_string().as_bytes());
        // From before it has begun to after it has ended.
        std::thread::sleep(whole * step / 11);
        child.kill().unwrap();
        let killed = ended(&child.wait_with_output().unwrap());
        let again = user.hook(&call, "0");
        // The allow of Codex is silence with status 0; a hook that is killed has none.
        let allowed = [&killed, &again].iter().filter(|it| it.status == 0).count();
        assert!(allowed <= 1, "{killed:?} {again:?}");
        assert_eq!(user.run(&["asks", "verify"]).status, 0);
        for ask in user.pending() {
            user.decide(&ask, &["--deny", "no"]);
        }
    }
}

#[test]
fn a_full_disk_denies() {
    let user = User::new();
    user.run(&["asks", "init"]);
    let script = "ulimit -f 8; exec \"$0\" hook claude --limit 10 --home \"$HOME\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, crate::support::program("countersign").to_str().unwrap()]);
    command.env("HOME", user.home()).current_dir(user.home());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut call = CALL.before();
    call["tool_input"]["command"] = "x".repeat(100_000).into();
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    let denied = ended(&child.wait_with_output().unwrap());
    assert_denied("claude", &denied, "");
    // No ask was made, neither in the store that is looked at below nor in another one.
    assert!(!denied.err.contains("waits for approval"), "{denied:?}");
    assert_eq!(user.run(&["asks", "verify"]).status, 3, "nothing was written");
}

#[test]
fn an_allow_that_cannot_be_written_is_no_allow() {
    let user = User::new();
    user.hook(&CALL, "0");
    user.approve_pending();
    let mut command = user.command(&["hook", "claude", "--limit", "90"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(CALL.before().to_string().as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(user.states(), ["claimed"], "it was allowed, and its approval is spent");
}

/// A client that reads stdout alone gets its answer, also when its other pipe is full.
#[test]
fn a_denial_does_not_wait_for_a_client_that_reads_no_stderr() {
    let user = User::new();
    let (_reader, stderr) = full_pipe();
    for client in some_clients(2) {
        let mut command = user.command(&["hook", client, "--limit", "20"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take());
        let mut denied = ended(&child.wait_with_output().unwrap());
        // The reason is read from the answer, as no one has read stderr.
        let mut texts = denied.out.split('"');
        denied.err = texts.find(|text| text.contains("cannot be used")).unwrap().to_owned();
        assert_denied(client, &denied, "cannot be used");
    }
}

/// A client that gives up at its own limit may end the shell around the hook only, and then it runs the call.
#[test]
fn a_hook_whose_client_has_given_up_spends_no_approval_that_comes_later() {
    let user = User::new();
    let mut command = Command::new("sh");
    let program = crate::support::program("countersign");
    command.args([
        "-c",
        "\"$0\" hook claude --limit 60 --home \"$HOME\"; exit $?",
        program.to_str().unwrap(),
    ]);
    command.env("HOME", user.home()).current_dir(user.home());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(CALL.before().to_string().as_bytes()).unwrap();
    let pending = user.pending_are(1);
    kill(&shell, "-KILL");
    // The end of its output is the end of the hook, too.
    let ended = ended(&shell.wait_with_output().unwrap());
    assert!(ended.err.contains("the client has given up"), "{ended:?}");
    user.decide(&pending[0], &["--approve"]);
    assert_eq!(user.states(), ["decided"]);
}
