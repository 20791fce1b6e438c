//! An agent as a workflow of [Restate](https://restate.dev): the run survives the death of every process, and what was
//! approved still runs at most once.
//!
//! ```text
//! .ci/restate && cd examples/servers && cargo run -p restate
//! ```
//!
//! ```text
//!  Run/KEY  (workflow)                               Ask/ID  (virtual object: one handler at a time)
//!  ───────────────────                               ───────────────────────────────────────────────
//!  model ──► first pass ──► promise of each ask ◄──── decide: of all deciders one wins, the others are told
//!    ▲                          │                     look:   expiry, and decisions that were made elsewhere
//!    └───── approved pass ◄─────┘
//!            claim ► body ► settle, in our ledger
//! ```
//!
//! Each box of the left side is a step in Restate's journal. Restate repeats a step that was not journaled, also one
//! that has run: that is why the body of a tool claims its call in the ledger before it does anything.
//!
//! | file | contents |
//! |---|---|
//! | `agent` | the model, the tools and the policy; nothing in it knows Restate |
//! | `run` | the workflow |
//! | `asks` | the virtual object of an ask, and the look-out for decisions that were made elsewhere |
//! | `stage` | the processes: Restate's server and this service, started and killed; for the demonstration and the tests |

mod agent;
mod asks;
mod demo;
mod run;
mod service;
mod stage;
mod steps;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An agent as a workflow of Restate, with asks that are decided once and tools that run at most once.
#[derive(Parser)]
#[command(name = "restate")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a server and this service, kills both while a call is pending, and finishes the run. The default.
    Demo,
    /// Serves the workflow and the asks to a server of Restate, which has to be told this address.
    Serve(service::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        None | Some(Command::Demo) => demo::play().await,
        Some(Command::Serve(options)) => service::serve(options).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
