//! A tool cannot be run around its gate: only the gate makes a permit.

use countersign::{Permit, ToolCall, Toolset};

async fn around_the_gate(tools: impl Toolset, call: ToolCall) {
    let permit = Permit { call };
    let _ = tools.run(permit).await;
}

async fn with_the_call_itself(tools: impl Toolset, call: ToolCall) {
    let _ = tools.run(call).await;
}

fn main() {}
