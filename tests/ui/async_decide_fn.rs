//! An async closure belongs in `from_fn`, and what a closure returns is a decision.

use countersign::{Decision, ToolCall, decide_fn, from_fn};

fn main() {
    let _ = decide_fn(async |_, _: &ToolCall| Decision::allow());
    let _ = decide_fn(|_, call: &ToolCall| call.name() == "read_file");
    let _ = from_fn(async |_, call: ToolCall| call.name() == "read_file");
}
