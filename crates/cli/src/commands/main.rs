//! The program `countersign`: the library's ledger, inbox and hooks from the command line. Everything it does is public
//! in the library; here are the command lines, what is printed, and the exit statuses.

mod accepted;
mod account_settings;
mod asks;
mod cli;
mod completions;
mod findings;
mod grants;
mod guard;
mod guard_entries;
mod guard_program;
mod hook;
mod ids;
mod inbox;
mod init;
mod listening;
mod mcp_clients;
mod moment;
mod output;
mod paths;
mod pins;
mod preset_name;
mod project;
mod proxy;
mod reference;
mod rules;
mod seconds;
mod serving;
mod sessions;
mod signals;
mod terminal;
mod used_store;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory as _;
use cli::{Cli, Command};
use countersign_cli::config::{Config, Directories};
use output::{CommandError, CommandOutput};

/// The context that every command needs: the user's directories and configuration.
struct Context {
    directories: Directories,
    config: Config,
    /// The configuration file that was given in place of the user's.
    config_file: Option<PathBuf>,
}

impl Context {
    /// The configuration, with the key of the log that a command line names in place of its own.
    fn config_with_key(&self, file: Option<PathBuf>) -> Config {
        let mut config = self.config.clone();
        config.audit_key_file = file.or(config.audit_key_file);
        config
    }
}

fn main() -> ExitCode {
    let cli = match cli::read() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    if let Command::Hook(hook) = &cli.command
        && let Some((client, answering)) = hook.command.answering()
    {
        hook::answer(client, answering, cli.config.as_deref());
    }
    let form = cli.form();
    output::print(run(cli), form)
}

/// The settings of a command that a person runs: those of the options, the environment, and the configuration.
fn of_user(config: Option<PathBuf>) -> Result<Context, CommandError> {
    let directories = Directories::of_user()?;
    let config_file = config.or_else(Config::file_of_environment);
    let config = Config::load(&directories, config_file.as_deref())?;
    Ok(Context { directories, config, config_file })
}

fn run(cli: Cli) -> Result<CommandOutput, CommandError> {
    // Completions are generated while packages are built, where there is no user.
    if let Command::Completions(completions) = &cli.command {
        return Ok(completions.run(Cli::command()));
    }
    if let Command::Reference(_) = &cli.command {
        return Ok(reference::Reference::run(Cli::command()));
    }
    // Rules are examined and accepted without a store and without the configuration.
    if let Command::Rules(rules) = &cli.command {
        return rules.run(cli.config.as_deref());
    }
    let context = match &cli.command {
        // A client starts a guard, in an environment that a project can set (rule P1).
        Command::Guard(guard) if guard.is_started_by_client() => {
            guard.settings().context(cli.config.clone())?
        }
        _ => of_user(cli.config.clone())?,
    };
    let mut runtime = match &cli.command {
        // One client, one server: handing a message from thread to thread would take longer than working on it.
        Command::Guard(guard) if guard.is_on_stdio() => {
            tokio::runtime::Builder::new_current_thread()
        }
        _ => {
            let mut threads = tokio::runtime::Builder::new_multi_thread();
            threads.worker_threads(2);
            threads
        }
    };
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::Store(error.to_string()))?;
    let json = cli.json;
    let output = runtime.block_on(async {
        match cli.command {
            Command::Asks(asks) => asks.run(&context).await,
            Command::Inbox(inbox) => inbox.run(&context, json).await,
            Command::Completions(completions) => Ok(completions.run(Cli::command())),
            Command::Reference(_) => Ok(reference::Reference::run(Cli::command())),
            Command::Grants(grants) => grants.run(&context).await,
            Command::Init(init) => init.run(&context).await,
            Command::Guard(guard) => guard.run(&context).await,
            Command::Pins(pins) => pins.run(&context).await,
            Command::Hook(hook) => hook.run(&context),
            Command::Rules(rules) => rules.run(context.config_file.as_deref()),
        }
    });
    // A thread that reads stdin cannot be stopped, and is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    output
}
