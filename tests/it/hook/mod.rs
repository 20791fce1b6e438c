//! Hooks of coding agents through the library: payloads that the clients have sent, and what they are answered.

mod attacks;
mod counting;
mod granting;
mod recorded;
mod vocabulary;

use std::time::{Duration, Instant};

use countersign::hook::{Client, Hook, HookReply};
use countersign::ledger::{Ledger, MemoryStore};
use countersign::{Decision, decide_fn};
use serde_json::{Value, json};

/// A payload that a client has sent before a tool call.
pub(crate) struct Recorded {
    pub(crate) client: Client,
    pub(crate) event: String,
    pub(crate) tool: String,
    pub(crate) payload: Value,
}

/// The recorded payloads of the clients that have a hook here.
pub(crate) fn recorded() -> Vec<Recorded> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/payloads.jsonl");
    let text = std::fs::read_to_string(path).unwrap().replace("WS", "/src/ws");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let of = |line: Value| {
        let client = word(&line, "client").parse().ok()?;
        let (event, tool) = (word(&line, "event"), word(&line, "tool"));
        Some(Recorded { client, event, tool, payload: line["payload"].clone() })
    };
    lines.filter_map(of).collect()
}

/// Those before a tool call.
pub(crate) fn before() -> Vec<Recorded> {
    let events = ["PreToolUse", "BeforeTool", "tool.execute.before"];
    let is_before = |it: &Recorded| events.iter().any(|event| it.event.eq_ignore_ascii_case(event));
    recorded().into_iter().filter(is_before).collect()
}

fn answered(hook: &Hook, payload: &[u8]) -> HookReply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = async { Ok(Ledger::new(MemoryStore::new())) };
    runtime.block_on(hook.answer(payload, Instant::now() + Duration::from_millis(5), store))
}

fn allowing(client: Client) -> Hook {
    Hook::new(client).layered(decide_fn(|_, _| Decision::allow()).named("test"))
}

fn denying(client: Client) -> Hook {
    Hook::new(client).layered(decide_fn(|_, _| Decision::deny("not here")).named("test"))
}

/// The denial that the client obeys: these fields and no other, the reason on stderr, and status 2.
fn assert_denied(client: Client, reply: &HookReply, why: &str) {
    let answer: Value = serde_json::from_slice(reply.stdout()).unwrap();
    let reason = reply.stderr().trim_end();
    assert!(reason.contains(why), "{reason}");
    let expected = match client {
        Client::Claude | Client::Codex => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
        Client::Copilot => {
            json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
        }
        _ => json!({"decision": "deny", "reason": reason}),
    };
    assert_eq!((answer, reply.status()), (expected, 2), "{client}");
}
