//! The program `countersign`: the library's ledger, inbox and hooks from the command line. Everything it does is public
//! in the library; here are the command lines, what is printed, and the exit statuses.

mod asks;
mod cli;
mod completions;
mod output;

use std::process::ExitCode;

use cli::Command;
use countersign::config::{Config, Directories};
use output::{Failure, Output};

/// What every command needs: the user's directories and configuration.
struct Context {
    directories: Directories,
    config: Config,
}

fn main() -> ExitCode {
    let cli = match cli::read() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let json = cli.json;
    output::print(run(cli), json)
}

fn run(cli: cli::Cli) -> Result<Output, Failure> {
    // Completions are generated while packages are built, where there is no user.
    if let Command::Completions(completions) = &cli.command {
        return Ok(completions.run());
    }
    let directories = Directories::of_user()?;
    let config = Config::load(&directories, cli.config.as_deref())?;
    let context = Context { directories, config };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Store(error.to_string()))?;
    runtime.block_on(async {
        match cli.command {
            Command::Asks(asks) => asks.run(&context).await,
            Command::Completions(completions) => Ok(completions.run()),
        }
    })
}
