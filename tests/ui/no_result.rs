//! A tool gives a `Result`.

use countersign::{schemars, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    amount: u32,
}

async fn pay(args: Pay) -> u32 {
    args.amount
}

fn main() {
    let _ = tool_fn("pay", "Pays", pay);
}
