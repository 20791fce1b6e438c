//! `countersign hook` as a process: approvals that are spent once, and every way in which a hook can fail.

mod approving;
mod asking_in_client;
mod changed;
mod entries;
mod environment;
mod failing;
mod imported;
mod journal;
mod killed;
mod linked;
mod ruling;
mod unapproved;
mod wording;

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Ended, User, ended};
use crate::support::clients::{ToldCall, forms};

/// A call of a shell tool, as a client tells it.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) client: &'a str,
    pub(super) session: &'a str,
    pub(super) directory: &'a str,
    pub(super) id: &'a str,
    pub(super) command: &'a str,
}

pub(super) const CALL: Call<'static> =
    Call { client: "claude", session: "s1", directory: "/src", id: "c1", command: "make install" };

impl Call<'_> {
    fn payload(&self, event: &str) -> Value {
        let forms = forms(self.client);
        let shell = forms.tool("shell").unwrap();
        let call = ToldCall {
            session: self.session,
            directory: self.directory,
            id: self.id,
            tool: shell[0],
            args: json!({shell[1]: self.command}),
        };
        forms.payload(event, &call)
    }

    pub(super) fn before(&self) -> Value {
        self.payload(forms(self.client).text("before"))
    }

    fn after(&self) -> Value {
        self.payload(forms(self.client).text("after"))
    }

    /// The end of the session, as a client reports it.
    fn end(&self) -> Value {
        self.payload(forms(self.client).text("end"))
    }
}

impl User {
    /// Starts a hook that waits this many seconds for a person, and has time enough for everything else.
    fn start_hook(&self, client: &str, wait: &str, options: &[&str], payload: &[u8]) -> Child {
        // The home of this user is where its sessions are, and a home is no project unless a person says so.
        let root = self.home().to_str().unwrap();
        let root = if options.contains(&"--root") { vec![] } else { vec!["--root", root] };
        let words = ["hook", client, "--limit", "90", "--wait", wait];
        let mut command = self.command(&[&words[..], &root[..], options].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(payload);
        child
    }

    pub(super) fn hook(&self, call: &Call<'_>, wait: &str) -> Ended {
        let payload = call.before().to_string();
        ended(
            &self
                .start_hook(call.client, wait, &[], payload.as_bytes())
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
        self.hook(call, "0");
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

/// The payload of Claude Code for a call of one of its tools in this directory.
fn payload_of(directory: &std::path::Path, tool: &str, input: &Value) -> Value {
    json!({
        "session_id": "s1", "cwd": directory, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
        "tool_use_id": "c1",
    })
}

/// What a hook answers to a payload.
pub(super) fn answered(mut command: std::process::Command, payload: &str) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    ended(&child.wait_with_output().unwrap())
}

#[track_caller]
fn assert_allowed(ended: &Ended) {
    assert!(ended.status == 0 && !ended.out.contains("deny"), "{ended:?}");
}

/// The answer that the client obeys, and nothing else on stdout.
#[track_caller]
fn assert_denied(client: &str, ended: &Ended, why: &str) {
    let answer: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    // The loader of programs may have written something before.
    let err = ended.err.strip_suffix('\n').unwrap_or(&ended.err);
    let begins = std::iter::once(0).chain(err.match_indices('\n').map(|(at, _)| at + 1));
    let denial = |reason: &str| forms(client).answer("denial", reason).unwrap();
    let reason = begins.map(|at| &err[at..]).find(|reason| denial(reason) == answer);
    assert!(reason.is_some_and(|it| it.contains(why)) && ended.status == 2, "{ended:?}");
}
