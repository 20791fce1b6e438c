//! The steps of a run, written to a file as they are reached; and a place to stop in, for those who want to see what a
//! kill does.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::json;

/// The step that has just ended, and is not in Restate's journal yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The model has responded.
    Model,
    /// The response has passed the stack: allowed calls have run, and the asks are in the ledger.
    Asked,
    /// A decision is in the ledger.
    Decided,
    /// A tool body has begun: its call is claimed in the ledger.
    Started,
    /// The body has had its effect, and its outcome is not recorded.
    Done,
    /// The approved calls have run, and their outcomes are in the ledger.
    Settled,
    /// The model has given its final answer.
    Ended,
}

/// The file of the steps, one line of JSON for each, and where to stop.
pub(crate) struct Steps {
    pub(crate) file: PathBuf,
    pub(crate) stop_at: Option<Step>,
}

impl Steps {
    /// Notes a step, and stays in it for ever if it is the one to stop at.
    pub(crate) async fn reached(&self, step: Step, run: &str) -> io::Result<()> {
        let name = step.to_possible_value().map(|name| name.get_name().to_owned());
        self.write(name.as_deref().unwrap_or_default(), run)?;
        if self.stop_at == Some(step) {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Notes what has happened, at the end of the file.
    pub(crate) fn write(&self, what: &str, run: &str) -> io::Result<()> {
        let line = json!({"step": what, "run": run});
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}
