//! In the place of real models, where the example is built without them.

use countersign::{Agent, RunError, Tools};

/// There is none.
pub(crate) enum Real {}

/// Says how to get one.
pub(crate) async fn named(name: &str) -> Result<Real, String> {
    Err(format!(
        "`--model {name}` needs the feature `genai`: cargo run --example assistant --features genai -- --model {name}"
    ))
}

pub(crate) fn agent(model: Real, _: Tools) -> Agent {
    match model {}
}

pub(crate) fn in_its_own_words(_: &RunError) -> Option<&str> {
    None
}
