//! The arguments of a tool have a schema, which the model is shown.

use countersign::toolset::blocking_tool_fn;
use countersign::{ToolError, tool_fn};

#[derive(serde::Deserialize)]
struct Pay {
    amount: u32,
}

async fn pay(args: Pay) -> Result<u32, ToolError> {
    Ok(args.amount)
}

fn main() {
    let _ = tool_fn("pay", "Pays", pay);
    let _ = blocking_tool_fn("pay", "Pays", |_, args: Pay| Ok::<_, ToolError>(args.amount));
}
