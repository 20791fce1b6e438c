//! A tool of `tool_fn` is async.

use countersign::{ToolError, schemars, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    amount: u32,
}

fn pay(args: Pay) -> Result<u32, ToolError> {
    Ok(args.amount)
}

fn main() {
    let _ = tool_fn("pay", "Pays", pay);
}
