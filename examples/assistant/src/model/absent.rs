//! Replaces `real` in a build without the feature `genai`.

use countersign::agent::RunError;
use countersign::{Agent, Tools};

/// No value exists: a build without the feature has no real model.
pub(crate) enum Real {}

/// Always an error, which says how to enable real models.
pub(crate) async fn named(name: &str) -> Result<Real, String> {
    Err(format!(
        "`--model {name}` needs the feature `genai`: cargo run -p assistant --features genai -- --model {name}"
    ))
}

pub(crate) fn agent(model: Real, _: Tools) -> Agent {
    match model {}
}

pub(crate) fn in_its_own_words(_: &RunError) -> Option<&str> {
    None
}
