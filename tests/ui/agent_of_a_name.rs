//! The name of a model is no model.

use countersign::{Agent, FunctionToolset};

fn main() {
    let _ = Agent::new("gpt-5", FunctionToolset::new());
}
