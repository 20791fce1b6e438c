//! One permit, one execution: a permit cannot be cloned.

use countersign::{Permit, Toolset};

async fn twice(tools: impl Toolset, permit: Permit) {
    let again = permit.clone();
    let _ = tools.run(permit).await;
    let _ = tools.run(again).await;
}

fn main() {}
