//! Tower's rate limit is not `Clone`: it needs `buffer` outside of it.

use std::time::Duration;

use countersign::{FunctionToolset, ToolsExt};
use tower::ServiceBuilder;

fn main() {
    let _ = FunctionToolset::new()
        .layered(ServiceBuilder::new().rate_limit(10, Duration::from_secs(1)));
}
