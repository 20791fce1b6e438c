//! The error of a tool is an error.

use countersign::{schemars, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    amount: u32,
}

struct Refused;

async fn pay(args: Pay) -> Result<u32, Refused> {
    if args.amount > 9 { Err(Refused) } else { Ok(args.amount) }
}

fn main() {
    let _ = tool_fn("pay", "Pays", pay);
}
