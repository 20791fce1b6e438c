//! The ledger from the shell: `cargo run --example ledger --features sqlite,postgres -- --store URL COMMAND`.
//!
//! Prints one JSON object per line to stdout, and has an exit status for each result, so that a test in any language
//! can run many processes against one store. `--help` lists the statuses.

mod cli;
mod commands;
mod park;
mod said;
mod store;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use countersign::ledger::LedgerError;

/// The result of a command: the lines to print, and the exit status.
struct Said {
    lines: Vec<serde_json::Value>,
    status: u8,
}

impl Said {
    fn new(status: u8, line: serde_json::Value) -> Self {
        Self { lines: vec![line], status }
    }
}

/// Why a command failed; nothing has changed.
enum Failed {
    /// The command or its input cannot be used: exit status 2.
    Usage(String),
    /// The store cannot be reached, read or written: exit status 1.
    Store(String),
}

impl From<LedgerError> for Failed {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Unkeepable { .. } => Self::Usage(chain(&error)),
            error => Self::Store(chain(&error)),
        }
    }
}

/// An error and its sources, on one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn main() -> ExitCode {
    let args = match cli::read() {
        Ok(args) => args,
        Err(asked) => return asked,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let said = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(args)),
        Err(error) => Err(Failed::Store(error.to_string())),
    };
    match said {
        Ok(Said { lines, status }) => {
            let mut out = std::io::stdout().lock();
            for line in lines {
                // A closed pipe is no error: the reader may want only the first lines (`| head`).
                if writeln!(out, "{line}").is_err() {
                    break;
                }
            }
            status.into()
        }
        Err(Failed::Usage(problem)) => failed(&problem, 2),
        Err(Failed::Store(problem)) => failed(&problem, 1),
    }
}

fn failed(problem: &str, status: u8) -> ExitCode {
    let words: Vec<_> = problem.split_whitespace().collect();
    let _ = writeln!(std::io::stderr(), "error: {}", words.join(" "));
    status.into()
}
