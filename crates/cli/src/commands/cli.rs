//! The command line of the program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::output::{self, OutputForm};
use crate::{asks, completions, grants, guard, hook, inbox, init, pins, reference, rules};

const ABOUT: &str = "Permission layers for the tools of LLM agents: what was approved is what runs, at most once, and \
never silently.";

/// The end of `--help`. A paragraph is one line, which is wrapped to the width of the terminal.
const AFTER: &str = "\
Files:
  Configuration  $XDG_CONFIG_HOME/countersign/config.toml (~/.config):
                     store = \"sqlite:///srv/agents/asks.db\"
                     principal = \"ann\"
                     audit_key_file = \"/srv/agents/audit.key\"
                     anchor_file = \"/mnt/elsewhere/asks.checkpoint\"
                     [inbox]
                     listen = \"127.0.0.1:8788\"
                     public_url = \"https://inbox.example/\"
  Default store  $XDG_STATE_HOME/countersign/asks.db (~/.local/state), created for this user alone
  Sealing key    seal.key beside it, generated at the first use
  Inbox          inbox.secret beside it, which logs a browser in, and inbox.url, its address without the secret
  Accepted rules rules/ beside it, written by hook and guard, and by `rules accept`

Environment:
  COUNTERSIGN_CONFIG, COUNTERSIGN_STORE, COUNTERSIGN_PRINCIPAL, COUNTERSIGN_AUDIT_KEY_FILE
  An option of the command line comes first, then the environment, then the file. A hook and a guard take nothing from the environment.

Stores:
  memory:                    in this process, and gone with it
  sqlite:///path, /path      a file that the processes of one machine share
  postgres://host/database   a server

Exit statuses: 0 done; 1 the store or a file cannot be used; 2 bad usage or configuration. Those of a command are at the \
end of its own help. Errors are one line on stderr.

A file that another user could change is refused. Programs of the same user are not kept out: they can read the key, and \
write the store.";

#[derive(Parser)]
#[command(name = "countersign", version, about = ABOUT, after_long_help = AFTER)]
#[command(after_help = "`--help` also lists the files, the environment and the exit statuses.")]
pub(crate) struct Cli {
    /// The configuration file, in place of the user's
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print text for people, also where `asks` and `pins` print JSON: into a pipe or a file
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) text: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Protect the coding agents of this user, in two minutes
    Init(Box<init::cli::InitArgs>),
    /// Park, list, decide, claim and settle asks, and check their log
    Asks(Box<asks::cli::AsksArgs>),
    /// List, show, make, revoke and prune standing approvals
    Grants(Box<grants::Grants>),
    /// Serve the page on which people decide
    Inbox(inbox::InboxArgs),
    /// Put permission layers in front of an MCP server
    Guard(Box<guard::GuardArgs>),
    /// Show and accept the tools of guarded MCP servers
    Pins(pins::PinsArgs),
    /// Decide about the tool calls of coding agents
    Hook(hook::cli::HookArgs),
    /// Check, explain, lint, replay, diff, accept and import rules, and print their schema
    Rules(rules::RulesArgs),
    /// Print the completions for a shell
    Completions(completions::Completions),
    /// Print the page with every command, option, key, variable, file and exit status
    Reference(reference::Reference),
}

impl Cli {
    pub(crate) fn form(&self) -> OutputForm {
        match (self.json, self.text) {
            (true, _) => OutputForm::Json,
            (false, true) => OutputForm::Text,
            (false, false) => OutputForm::Default,
        }
    }
}

/// Parses the command line. Otherwise prints the help, or one line to stderr, and returns the exit status.
pub(crate) fn read() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if !error.use_stderr() {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            // There is no command: the help says which there are.
            let _ = error.print();
            return ExitCode::from(2);
        }
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let text = text.split("\n\nUsage:").next().unwrap_or(text);
        let text = text.split("\n\nFor more information").next().unwrap_or(text).trim_end();
        let help = help();
        let is_of_guard = help == "countersign guard --help";
        match error.kind() {
            ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument if is_of_guard => {
                let text = text.lines().next().unwrap_or(text);
                output::failed(
                    &format!("{text}; the server's command comes after `--`; `{help}` says more"),
                    2,
                )
            }
            ErrorKind::InvalidSubcommand => {
                let doctors = match text.contains("'doctor'") {
                    true => "; there are `countersign hook doctor` and `countersign guard doctor`",
                    false => "",
                };
                output::failed(&format!("{text}{doctors}; `{help}` lists the commands"), 2)
            }
            _ => output::failed(&format!("{text}; `{help}` says more"), 2),
        }
    })
}

/// The help of the command that was used: the words of this command line that name it.
fn help() -> String {
    let mut command = Cli::command();
    let mut help = "countersign".to_owned();
    for word in std::env::args().skip(1) {
        let Some(found) = command.find_subcommand(&word).cloned() else { continue };
        help += &format!(" {word}");
        command = found;
    }
    help + " --help"
}
