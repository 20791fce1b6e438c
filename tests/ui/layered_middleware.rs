//! A middleware of one's own becomes a layer by `into_layer`.

use countersign::{FunctionToolset, ToolMiddleware, ToolsExt};

struct MyMiddleware;

impl ToolMiddleware for MyMiddleware {}

fn main() {
    let _ = FunctionToolset::new().layered(MyMiddleware);
}
