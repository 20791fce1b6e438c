//! `countersign hook` as a process: approvals that are spent once, and every way in which a hook can fail.

mod approving;
mod changed;
mod environment;
mod failing;
mod imported;
mod killed;
mod ruling;
mod unapproved;
mod wording;

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CLIENTS, Ended, User, ended};

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

    /// The end of the session, as a client reports it.
    fn end(&self) -> Value {
        self.payload(match self.client {
            "copilot" => "sessionEnd",
            "opencode" => "session.end",
            _ => "SessionEnd",
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

    /// Makes a call that is asked about, approved, made again, and then allowed.
    fn is_approved(&self, call: &Call<'_>) {
        self.hook(call, "1");
        self.approve_pending();
        assert_allowed(&self.hook(call, "5"));
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
