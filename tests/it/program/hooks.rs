//! `countersign hook` as a process: approvals that are spent once, and every way in which a hook can fail.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Ended, User, ended};

const CLIENTS: [&str; 5] = ["claude", "codex", "gemini", "copilot", "opencode"];

/// A call of a shell tool, as a client tells it.
#[derive(Clone, Copy)]
struct Call<'a> {
    client: &'a str,
    session: &'a str,
    directory: &'a str,
    id: &'a str,
    command: &'a str,
}

const CALL: Call<'static> =
    Call { client: "claude", session: "s1", directory: "/src", id: "c1", command: "make install" };

impl Call<'_> {
    fn payload(&self, event: &str) -> Value {
        let args = json!({"command": self.command});
        let (session, cwd) = (self.session, self.directory);
        match self.client {
            "copilot" => json!({
                "hookName": event, "sessionId": session, "cwd": cwd, "toolName": "bash", "toolArgs": args,
            }),
            "opencode" => json!({
                "hook_event_name": event, "session_id": session, "cwd": cwd, "tool": "bash", "call_id": self.id,
                "args": args,
            }),
            client => json!({
                "hook_event_name": event, "session_id": session, "cwd": cwd, "tool_use_id": self.id,
                "tool_name": if client == "gemini" { "run_shell_command" } else { "Bash" }, "tool_input": args,
            }),
        }
    }

    fn before(&self) -> Value {
        self.payload(match self.client {
            "gemini" => "BeforeTool",
            "copilot" => "preToolUse",
            "opencode" => "tool.execute.before",
            _ => "PreToolUse",
        })
    }

    fn after(&self) -> Value {
        self.payload(match self.client {
            "gemini" => "AfterTool",
            "copilot" => "postToolUse",
            "opencode" => "tool.execute.after",
            _ => "PostToolUse",
        })
    }
}

impl User {
    fn start_hook(&self, client: &str, limit: &str, options: &[&str], payload: &[u8]) -> Child {
        let mut command = self.command(&[&["hook", client, "--limit", limit], options].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(payload);
        child
    }

    fn hook(&self, call: &Call<'_>, limit: &str) -> Ended {
        let payload = call.before().to_string();
        ended(
            &self
                .start_hook(call.client, limit, &[], payload.as_bytes())
                .wait_with_output()
                .unwrap(),
        )
    }

    fn tell(&self, client: &str, payload: &Value) -> Ended {
        let child = self.start_hook(client, "5", &[], payload.to_string().as_bytes());
        ended(&child.wait_with_output().unwrap())
    }

    fn asks(&self) -> Vec<Value> {
        self.run(&["asks", "list"]).lines()
    }

    fn pending(&self) -> Vec<Value> {
        self.run(&["asks", "list", "--state", "pending"]).lines()
    }

    /// Waits until this many asks are pending.
    fn pending_are(&self, count: usize) -> Vec<Value> {
        let start = Instant::now();
        loop {
            let pending = self.pending();
            if pending.len() == count {
                return pending;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{} pending", pending.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn decide(&self, ask: &Value, answer: &[&str]) {
        let text = |name: &str| ask[name].as_str().unwrap();
        let args =
            ["asks", "decide", text("id"), "--fingerprint", text("fingerprint"), "--as", "ann"];
        let ended = self.run(&[&args, answer].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
    }

    fn approve_pending(&self) {
        for ask in self.pending() {
            self.decide(&ask, &["--approve"]);
        }
    }

    fn states(&self) -> Vec<String> {
        self.asks().iter().map(|ask| ask["state"].as_str().unwrap().to_owned()).collect()
    }
}

#[track_caller]
fn assert_allowed(ended: &Ended) {
    assert!(ended.status == 0 && !ended.out.contains("deny"), "{ended:?}");
}

/// The answer that the client obeys, and nothing else on stdout.
#[track_caller]
fn assert_denied(client: &str, ended: &Ended, why: &str) {
    let answer: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let (deny, reason) = match client {
        "claude" | "codex" => (
            &answer["hookSpecificOutput"]["permissionDecision"],
            &answer["hookSpecificOutput"]["permissionDecisionReason"],
        ),
        "copilot" => (&answer["permissionDecision"], &answer["permissionDecisionReason"]),
        _ => (&answer["decision"], &answer["reason"]),
    };
    assert_eq!((deny, ended.status), (&json!("deny"), 2), "{ended:?}");
    assert!(reason.as_str().unwrap().contains(why), "{ended:?}");
    assert!(ended.err.contains(reason.as_str().unwrap()), "{ended:?}");
}

#[test]
fn a_limit_counts_over_the_processes_of_a_hook() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'few'\nallow = 'shell'\n\
                at_most = { calls = 2, within = '1h', else = 'deny' }\n";
    std::fs::write(rules, text).unwrap();
    for id in ["c1", "c2"] {
        assert_allowed(&user.hook(&Call { id, ..CALL }, "20"));
    }
    assert_denied("claude", &user.hook(&Call { id: "c3", ..CALL }, "20"), "at most 2 calls");
}

/// G1: a grant for the session answers later calls of the hook, each a process, and no other call.
#[test]
fn a_grant_answers_equal_calls_of_its_session() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    std::fs::write(rules, "version = 1\n").unwrap();
    assert_denied("claude", &user.hook(&CALL, "4"), "waits for approval");
    let ask = user.pending_are(1).remove(0);
    let text = |name: &str| ask[name].as_str().unwrap().to_owned();
    let (id, fingerprint) = (text("id"), text("fingerprint"));
    let make = ["grants", "make", &id, "--in", "session", "--as", "ann", "--fingerprint"];
    assert_eq!(user.run(&[&make[..], &["0"]].concat()).status, 6, "another fingerprint");
    let made = user.run(&[&make[..], &[&fingerprint, "--for", "2h", "--json"]].concat());
    assert_eq!(made.status, 0, "{made:?}");
    let grant = made.lines()[0]["id"].as_str().unwrap().to_owned();
    // The pending call stays with the people; the ones after it are answered.
    user.decide(&ask, &["--approve"]);
    for id in ["c1", "c2", "c3"] {
        assert_allowed(&user.hook(&Call { id, ..CALL }, "20"));
    }
    for other in [
        Call { session: "s2", ..CALL },
        Call { directory: "/src/other", ..CALL },
        Call { command: "make install2", ..CALL },
        Call { client: "codex", ..CALL },
    ] {
        assert_denied(other.client, &user.hook(&other, "4"), "waits for approval");
    }
    let revoked = user.run(&["grants", "revoke", &grant, "--as", "bob"]);
    assert_eq!(revoked.status, 0, "{revoked:?}");
    assert_denied("claude", &user.hook(&Call { id: "c4", ..CALL }, "4"), "waits for approval");
}

/// G2: a grant does not answer a call that a person has denied.
#[test]
fn a_grant_does_not_answer_a_call_that_was_denied() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    std::fs::write(rules, "version = 1\n").unwrap();
    assert_denied("claude", &user.hook(&CALL, "4"), "waits for approval");
    let ask = user.pending_are(1).remove(0);
    let text = |name: &str| ask[name].as_str().unwrap().to_owned();
    let make = ["grants", "make", &text("id"), "--in", "session", "--fingerprint"];
    assert_eq!(user.run(&[&make[..], &[&text("fingerprint")]].concat()).status, 0);
    user.decide(&ask, &["--deny", "not this one"]);
    assert_denied("claude", &user.hook(&CALL, "20"), "not this one");
    assert_denied("claude", &user.hook(&Call { id: "c2", ..CALL }, "4"), "waits for approval");
}

#[test]
fn an_approval_in_time_answers_the_call() {
    let user = User::new();
    for client in CLIENTS {
        let call = Call { client, ..CALL };
        let payload = call.before().to_string();
        let child = user.start_hook(client, "30", &[], payload.as_bytes());
        let pending = user.pending_are(1);
        assert_eq!(pending[0]["tool"], "shell");
        assert_eq!(pending[0]["args"], json!({"command": "make install", "workdir": "/src"}));
        user.decide(&pending[0], &["--approve"]);
        let ended = ended(&child.wait_with_output().unwrap());
        assert_allowed(&ended);
        assert_eq!(
            ended.out.contains("allow"),
            client != "codex",
            "a person's yes is explicit: {ended:?}"
        );
    }
}

#[test]
fn a_late_approval_is_spent_by_the_same_call_once() {
    let user = User::new();
    for client in CLIENTS {
        let call = Call { client, ..CALL };
        let asked = user.hook(&call, "1");
        assert_denied(client, &asked, "call again with the same arguments");
        let ask = user.pending_are(1).remove(0);
        assert!(asked.err.contains(ask["id"].as_str().unwrap()));
        user.decide(&ask, &["--approve"]);
        let again = Call { id: "c2", ..call };
        assert_allowed(&user.hook(&again, "5"));
        let third = Call { id: "c3", ..call };
        assert_denied(client, &user.hook(&third, "1"), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", "enough"]);
        assert_denied(client, &user.hook(&third, "1"), "enough");
    }
}

#[test]
fn an_approval_is_for_one_session_directory_client_and_arguments() {
    let user = User::new();
    assert_denied("claude", &user.hook(&CALL, "1"), "waits for approval");
    user.approve_pending();
    for other in [
        Call { session: "s2", ..CALL },
        Call { directory: "/src/other", ..CALL },
        Call { command: "make install2", ..CALL },
        Call { client: "codex", ..CALL },
    ] {
        assert_denied(other.client, &user.hook(&other, "1"), "waits for approval");
    }
    let mut agent = CALL.before();
    agent["agent_id"] = "a1".into();
    assert_denied("claude", &user.tell("claude", &agent), "waits for approval");
    assert_allowed(&user.hook(&CALL, "5"));
    assert_eq!(user.pending().len(), 5);
}

#[test]
fn two_calls_at_once_after_one_approval_run_once() {
    let user = User::new();
    for client in CLIENTS {
        let call = Call { client, ..CALL };
        user.hook(&call, "1");
        user.approve_pending();
        let payloads = ["c2", "c3"].map(|id| Call { id, ..call }.before().to_string());
        let children = payloads.map(|it| user.start_hook(client, "2", &[], it.as_bytes()));
        let all = children.map(|child| ended(&child.wait_with_output().unwrap()));
        assert_eq!(all.iter().filter(|it| it.status == 0).count(), 1, "{all:?}");
        user.decide(&user.pending_are(1)[0], &["--deny", "no"]);
    }
}

#[test]
fn eight_hooks_at_once_share_a_store_and_each_run_has_its_own_approval() {
    let user = User::new();
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let payloads = ids.map(|id| Call { id, ..CALL }.before().to_string());
    let children = payloads.map(|it| user.start_hook("claude", "60", &[], it.as_bytes()));
    for _ in 0..3 {
        user.decide(&user.pending_are(1)[0], &["--approve"]);
        // The others ask again, together.
        user.pending_are(1);
    }
    for _ in 0..2 {
        user.decide(&user.pending_are(1)[0], &["--deny", "no"]);
        std::thread::sleep(Duration::from_millis(200));
        if user.pending().is_empty() {
            break;
        }
    }
    let all = children.map(|child| ended(&child.wait_with_output().unwrap()));
    assert_eq!(all.iter().filter(|it| it.status == 0).count(), 3, "{all:?}");
    for denied in all.iter().filter(|it| it.status != 0) {
        assert_denied("claude", denied, "no");
    }
    assert_eq!(user.run(&["asks", "verify"]).status, 0);
}

#[test]
fn an_execution_is_closed_by_the_event_after_the_call() {
    for client in CLIENTS {
        let user = User::new();
        let call = Call { client, ..CALL };
        user.hook(&call, "1");
        user.approve_pending();
        assert_allowed(&user.hook(&call, "5"));
        assert_eq!(user.states(), ["claimed"]);
        let told = user.tell(client, &call.after());
        assert_eq!((told.status, told.out.as_str(), told.err.as_str()), (0, "", ""), "{client}");
        assert_eq!(user.states(), ["executed"]);
        assert_eq!(user.asks()[0]["outcome"]["as_approved"], true);
    }
}

#[test]
fn changed_arguments_after_the_call_are_reported() {
    let user = User::new();
    user.hook(&CALL, "1");
    user.approve_pending();
    assert_allowed(&user.hook(&CALL, "5"));
    let told = user.tell("claude", &Call { command: "make all", ..CALL }.after());
    assert_eq!((told.status, told.out.as_str()), (0, ""));
    assert!(told.err.contains("with other arguments"), "{told:?}");
    assert_eq!(user.asks()[0]["outcome"]["as_approved"], false);
}

#[test]
fn without_an_event_after_the_call_its_outcome_is_unknown_at_the_end_of_the_session() {
    let user = User::new();
    user.hook(&CALL, "1");
    user.approve_pending();
    assert_allowed(&user.hook(&CALL, "5"));
    let end = json!({"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": "/src", "reason": "exit"});
    assert_eq!(user.tell("claude", &end).status, 0);
    assert_eq!(user.states(), ["unknown"]);
    assert_denied("claude", &user.hook(&CALL, "1"), "waits for approval");
    assert_eq!(user.pending().len(), 1, "what may have run is a new question");
}

#[test]
fn without_a_session_only_an_answer_in_time_counts() {
    let user = User::new();
    let mut payload = CALL.before();
    payload.as_object_mut().unwrap().remove("session_id");
    let child = user.start_hook("claude", "1", &[], payload.to_string().as_bytes());
    assert_denied("claude", &ended(&child.wait_with_output().unwrap()), "in time");
    assert_eq!(user.states(), ["cancelled"]);
    let child = user.start_hook("claude", "30", &[], payload.to_string().as_bytes());
    user.decide(&user.pending_are(1)[0], &["--approve"]);
    assert_allowed(&ended(&child.wait_with_output().unwrap()));
}

#[test]
fn edited_arguments_are_the_ones_that_run() {
    let user = User::new();
    let child = user.start_hook("claude", "30", &[], CALL.before().to_string().as_bytes());
    let pending = user.pending_are(1);
    let args = r#"{"command": "make check", "workdir": "/src"}"#;
    user.decide(&pending[0], &["--approve", "--args", args]);
    let ended = ended(&child.wait_with_output().unwrap());
    assert_eq!(ended.status, 0, "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["updatedInput"], json!({"command": "make check"}));
    let told = user.tell("claude", &Call { command: "make check", ..CALL }.after());
    assert_eq!((told.status, told.err.as_str()), (0, ""));
    assert_eq!(user.asks()[0]["outcome"]["as_approved"], true);
}

#[test]
fn a_call_that_a_person_denies_repeatedly_is_denied_without_asking() {
    let user = User::new();
    for n in 0..3 {
        let message = format!("no {n}");
        assert_denied("claude", &user.hook(&CALL, "1"), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", &message]);
        assert_denied("claude", &user.hook(&CALL, "1"), &message);
    }
    assert_denied("claude", &user.hook(&CALL, "1"), "denied this call 3 times");
    assert!(user.pending().is_empty());
}

#[test]
fn a_payload_that_cannot_be_decided_is_denied() {
    let user = User::new();
    let big = vec![b'x'; 10 << 20];
    for client in CLIENTS {
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
    for client in CLIENTS {
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
    user.hook(&CALL, "1");
    let lock = rusqlite::Connection::open(user.state("asks.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    let other = Call { command: "make other", ..CALL };
    assert_denied("claude", &user.hook(&other, "2"), "");
    assert!(start.elapsed() < Duration::from_secs(10));
    lock.execute_batch("ROLLBACK").unwrap();
    assert_denied("claude", &user.hook(&other, "1"), "waits for approval");
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

#[cfg(unix)]
mod signalled {
    use std::process::Command;

    use super::*;

    fn kill(child: &Child, signal: &str) {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    #[test]
    fn a_signal_is_a_denial() {
        let user = User::new();
        for (client, signal) in CLIENTS.into_iter().zip(["-TERM", "-INT", "-HUP", "-XFSZ", "-QUIT"])
        {
            let call = Call { client, ..CALL };
            let child = user.start_hook(client, "60", &[], call.before().to_string().as_bytes());
            let pending = user.pending_are(1);
            kill(&child, signal);
            assert_denied(client, &ended(&child.wait_with_output().unwrap()), "told to end");
            user.decide(&pending[0], &["--deny", "no"]);
        }
    }

    /// A hook that is killed anywhere leaves at most one execution for one approval.
    #[test]
    fn a_hook_that_is_killed_at_any_moment_spends_an_approval_at_most_once() {
        let user = User::new();
        for step in 0_u64..12 {
            let command = format!("make step{step}");
            let call = Call { command: &command, ..CALL };
            user.hook(&call, "1");
            user.approve_pending();
            let mut child =
                user.start_hook("claude", "20", &[], call.before().to_string().as_bytes());
            std::thread::sleep(Duration::from_millis(step * 4));
            child.kill().unwrap();
            let killed = ended(&child.wait_with_output().unwrap());
            let again = user.hook(&call, "1");
            let allowed = [&killed, &again].iter().filter(|it| it.out.contains("allow\"")).count();
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
        let script = "ulimit -f 8; exec \"$0\" hook claude --limit 10";
        let mut command = Command::new("sh");
        command.args(["-c", script, crate::support::program("countersign").to_str().unwrap()]);
        command.env("HOME", user.home()).current_dir(user.home());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut call = CALL.before();
        call["tool_input"]["command"] = "x".repeat(100_000).into();
        child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
        assert_denied("claude", &ended(&child.wait_with_output().unwrap()), "");
        assert_eq!(user.run(&["asks", "verify"]).status, 0);
    }

    #[test]
    fn an_allow_that_cannot_be_written_is_no_allow() {
        let user = User::new();
        user.hook(&CALL, "1");
        user.approve_pending();
        let mut command = user.command(&["hook", "claude", "--limit", "10"]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(CALL.before().to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
    }
}
