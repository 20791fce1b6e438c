//! The command line of `countersign init`.

use clap::{Args, ValueEnum};
use countersign_cli::hook::Client;

use crate::hook::options::{Allow, Edits};
use crate::hook::place::clients;

const AFTER: &str = "\
Only files of this user are changed: the rules and the configuration of this program, the settings of each agent, and, with \
`--guard on`, the configuration of MCP clients. Each change is shown first. The files as they were are kept in `init` of the \
state directory, readable by this user alone, and `--undo` puts them back. A file that was edited in between keeps the edit: \
only the hook is removed from it, and `--undo` says so.

Each step has a command of its own: `countersign hook install CLIENT --preset developer`, `countersign hook uninstall CLIENT`, \
`countersign rules check`, `countersign inbox`, `countersign guard`.

An agent whose settings cannot be read or changed without loss is left out, by name and with what to do, and the others are set \
up; only where none is left, it is an error.

Exit statuses: 0 done, or there was nothing to do; 1 a file cannot be used; 2 bad usage, or the answer was no; 3 no agent was \
found, something was left out, or `--undo` could not take everything back exactly.";

/// Protect the coding agents of this user: choose rules, and have the agents ask before each tool call
#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct InitArgs {
    /// Change without questions, as the options say. A preset has to be named, unless there are rules already
    #[arg(long)]
    pub(super) yes: bool,
    /// Take back what `init` has changed
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "client", "preset", "edits", "allow", "journal", "inbox", "guard"])]
    pub(super) undo: bool,
    /// Show the changes as differences, and make none
    #[arg(long)]
    pub(super) dry_run: bool,
    /// An agent, any number of times; by default each that is installed and was tested with this program
    #[arg(long, value_parser = clients())]
    pub(super) client: Vec<Client>,
    /// The preset that decides beside your rules
    #[arg(long, value_enum, value_name = "NAME")]
    pub(super) preset: Option<ChosenPreset>,
    /// Edits of files in the project: `workspace` runs them unasked, but for protected files and definitions of builds; with
    /// `ask` a rule has to allow them
    #[arg(long, value_enum)]
    pub(super) edits: Option<Edits>,
    /// What an allowed call is answered with: `silent` leaves it to the agent's own rules, `grant` answers for them
    #[arg(long, value_enum)]
    pub(super) allow: Option<Allow>,
    /// A journal of decisions, with the arguments of calls but for secrets, which `rules propose` and `rules replay` read
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(super) journal: Option<Switch>,
    /// An address for the page on which you answer, which agents are told
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(super) inbox: Option<Switch>,
    /// A guard in front of the MCP servers of clients that have no hooks
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(super) guard: Option<Switch>,
}

/// A preset, or none.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ChosenPreset {
    /// Reading, building, testing and formatting the project; queries that change nothing
    Developer,
    /// Reading only
    Reader,
    /// Every call is asked about that your own rules do not decide
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}
