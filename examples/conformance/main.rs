//! The conformance runner: plays one scenario, given as JSON on stdin, and prints the outcome as JSON.
//!
//! A scenario has tools with scripted bodies, wrappers around them, a scripted model, scripted handlers, and the steps
//! of the caller, run after run. The outcome has the end of each run, the executed tool bodies, and the inputs of
//! handlers and of the model. The scenarios are in `tests/conformance`, with their format and the results they must
//! give.
//!
//! ```sh
//! cargo run -q --example conformance --features schema < tests/conformance/scenarios/static_approved_object.json
//! ```
//!
//! [`play`] is the caller, [`tools`] the tools and wrappers, [`handlers`] and [`model`] the scripted handlers and
//! model.

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
