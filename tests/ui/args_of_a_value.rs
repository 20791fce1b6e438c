//! A JSON value may be something else than an object: the error says how arguments are made.

use countersign::{Decision, ToolCall};
use serde_json::json;

fn change(call: ToolCall) -> ToolCall {
    call.with_args(json!({"amount": 5}))
}

fn main() {
    let _ = Decision::allow().with_args(json!({"amount": 5}));
}
