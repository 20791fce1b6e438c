//! Forms of answers that several clients obey.

use serde_json::{Map, Value, json};

/// The reason why a call was allowed, where a client shows a reason.
pub(super) const ALLOWED: &str = "allowed by countersign";

/// The answer in `hookSpecificOutput`: `allow`, `deny` or `ask`, for this reason.
pub(super) fn decided(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

/// The denial in `hookSpecificOutput`, also of a request for a permission.
pub(super) fn denied(reason: &str, is_request: bool) -> Value {
    match is_request {
        true => {
            let decision = json!({"behavior": "deny", "message": reason});
            json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
        }
        false => decided("deny", reason),
    }
}

/// The allow in `hookSpecificOutput` with other arguments.
pub(super) fn allowed_with(args: Map<String, Value>) -> Value {
    let mut answer = decided("allow", ALLOWED);
    if let Some(output) = answer.pointer_mut("/hookSpecificOutput").and_then(Value::as_object_mut) {
        output.insert("updatedInput".to_owned(), Value::Object(args));
    }
    answer
}

/// A hook in a group for all tools, which this matcher stands for, or for an event without tools.
pub(super) fn group(matcher: Option<&str>, hook: &Value) -> Value {
    match matcher {
        Some(matcher) => json!({"matcher": matcher, "hooks": [hook]}),
        None => json!({"hooks": [hook]}),
    }
}

/// A limit in whole seconds, as the units of clients are.
pub(super) fn seconds(limit: std::time::Duration) -> u64 {
    limit.as_secs().max(1)
}
