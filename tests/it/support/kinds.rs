//! One tool for each outcome of a call, named for it.

use countersign::call::ToolKind;
use countersign::outcome::{ApprovalRequired, CallDeferred, ModelRetry};
use countersign::{Decision, ToolDefinition, ToolError, Tools, ToolsExt, decide_fn};
use serde_json::json;

use super::Recorder;

/// `plain` runs; `declared` declares that it needs an approval; `external` is executed elsewhere; the body of `raises`
/// asks, and the body of `defers` defers; a layer asks about `asked` and denies `denied`; `retried` asks the model to
/// try again; `broken` ends the run.
pub(crate) fn every_kind() -> (Recorder, Tools) {
    let of = |name: &str| ToolDefinition::new(name, json!({"type": "object"}));
    let plain = ["plain", "raises", "defers", "asked", "denied", "retried", "broken"].map(of);
    let declared = of("declared").with_kind(ToolKind::Unapproved);
    let external = of("external").with_kind(ToolKind::External);
    let recorder = Recorder::of(plain.into_iter().chain([declared, external]));
    let recorder = recorder.body(|cx, call| match call.name() {
        "raises" if !cx.tool_call_approved() => Err(ApprovalRequired::new().into()),
        "defers" => Err(CallDeferred::new().into()),
        "retried" => Err(ModelRetry::new("try again").into()),
        "broken" => Err(ToolError::fatal("disk on fire")),
        name => Ok(json!(format!("{name} ran"))),
    });
    let layer = decide_fn(|_, call| match call.name() {
        "asked" => Decision::ask("sure?"),
        "denied" => Decision::deny("no"),
        _ => Decision::allow(),
    });
    (recorder.clone(), recorder.layered(layer))
}
