//! A layer can change the arguments of a call, and nothing that says which call it is.

use countersign::ToolCall;

fn layer(mut call: ToolCall) -> ToolCall {
    call.set_id("another");
    call.set_name("another");
    call.inner = None;
    call
}

fn main() {}
