//! The conformance runner: plays one scenario, given as JSON on stdin, and prints what came of it as JSON.
//!
//! A scenario has tools with scripted bodies, wrappers around them, a scripted model, scripted handlers, and what the
//! caller does, run after run. The result says how each run ended, which tool bodies were executed, what handlers were
//! asked and what the model was told. The scenarios are in `tests/conformance`, with their format and the
//! results they must give.
//!
//! ```sh
//! cargo run -q --example conformance < tests/conformance/scenarios/static_approved_object.json
//! ```
//!
//! [`play`] is the caller, [`tools`] the tools and wrappers, [`handlers`] and [`model`] the two that are asked.

mod handlers;
mod log;
mod model;
mod play;
mod scenario;
mod tools;

use std::io::{Read as _, Write as _};

use countersign::BoxError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let result = play::play(serde_json::from_str(&text)?).await?;
    writeln!(std::io::stdout(), "{result:#}")?;
    Ok(())
}
