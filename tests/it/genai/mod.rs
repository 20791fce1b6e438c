//! Real models over real HTTP, against a local provider that replays a script and refuses what the real ones refuse.

mod anthropic;
mod conversations;
mod failures;
mod histories;

mod openai;
pub(crate) mod provider;
mod thinking;

use countersign::{ToolDefinition, ToolKind};
use serde_json::json;

use crate::support::Recorder;

/// Tools of every kind: by name, what a stack and a person make of them.
fn tools() -> Recorder {
    let of = |name| ToolDefinition::new(name, json!({"type": "object"}));
    Recorder::of([
        of("read"),
        of("deny"),
        of("ask"),
        of("fail"),
        of("again"),
        of("search").with_kind(ToolKind::External),
    ])
    .body(|_, call| match call.name() {
        "fail" => Err(countersign::ToolFailed::new("the disk is full").into()),
        "again" => Err(countersign::ModelRetry::new("name a file").into()),
        _ => Ok(call.args().to_value()),
    })
}
