//! Hooks of coding agents through the library: payloads that the clients have sent, and what they are answered.

mod attacks;
mod clients;
mod counting;
mod granting;
mod kept_shell;
mod people;
mod presets;
mod protected;
mod recorded;
mod vocabulary;

use std::time::{Duration, Instant};

use countersign::ledger::{Ledger, MemoryStore};
use countersign::{Decision, ToolMiddlewareExt as _, decide_fn};
use countersign_cli::hook::{Client, Hook, HookReply};
use countersign_rules::Rules;
use serde_json::Value;

use crate::support::clients::forms;

/// A hook of Claude Code for `carl`, whose files have no MCP server, with these rules.
pub(crate) fn without_servers(rules: &str) -> Hook {
    let rules = Rules::builder().lexical().text("mine.toml", rules).load().unwrap();
    let hook = Hook::new(Client::Claude).servers(Some(Vec::new())).principal("carl");
    hook.layered(rules.into_layer()).unknown_by_name(true)
}

/// A payload that a client has sent before a tool call.
pub(crate) struct Recorded {
    pub(crate) client: Client,
    pub(crate) event: String,
    pub(crate) tool: String,
    pub(crate) payload: Value,
}

/// The payloads of all clients.
pub(crate) fn recorded() -> Vec<Recorded> {
    let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let of = |client: Client| {
        forms(client.name()).payloads.iter().map(move |line| {
            let (event, tool) = (word(line, "event"), word(line, "tool"));
            Recorded { client, event, tool, payload: line["payload"].clone() }
        })
    };
    Client::ALL.into_iter().flat_map(of).collect()
}

/// Those before a tool call.
pub(crate) fn before() -> Vec<Recorded> {
    let is_before = |it: &Recorded| it.event == forms(it.client.name()).text("before");
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
    let expected = forms(client.name()).answer("denial", reason).unwrap();
    assert_eq!((answer, reply.status()), (expected, 2), "{client}");
}
