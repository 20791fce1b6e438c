//! The command line of `countersign hook`.

use clap::{Args, Subcommand};
use countersign::hook::Client;

use super::doctor::Doctor;
use super::install::{Configuration, Install};
use super::options::Answering;

const STATUSES: &str = "\
A client runs `countersign hook CLIENT` before each tool call, with the call on stdin, and reads the answer on stdout. \
`countersign hook install CLIENT` configures the client to do so.

Exit statuses of `hook CLIENT`: 0 allowed, or no opinion; 2 denied, with the reason on stderr, too. Every problem is a \
denial: a signal, a store that cannot be used, a payload that cannot be read, too little time.
Exit statuses of the others: 0 done, or everything is in order; 1 a file cannot be used; 2 bad usage; 3 `doctor` has found \
a problem.";

/// Decide about the tool calls of coding agents: Claude Code, Codex CLI, Gemini CLI, Copilot CLI and opencode.
#[derive(Args)]
#[command(after_help = STATUSES)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

#[derive(Subcommand)]
pub(crate) enum HookCommand {
    /// Answer a hook of Claude Code
    Claude(Answering),
    /// Answer a hook of Codex CLI
    Codex(Answering),
    /// Answer a hook of Gemini CLI
    Gemini(Answering),
    /// Answer a hook of GitHub Copilot CLI
    Copilot(Answering),
    /// Answer the plugin in opencode
    Opencode(Answering),
    /// Configure a client to call the hook
    Install(Install),
    /// Remove the hook from the configuration of a client
    Uninstall(Configuration),
    /// Check that a client has the hook, and obeys it
    Doctor(Doctor),
}

impl HookCommand {
    /// The client whose payload is answered, with the options.
    pub(crate) fn answering(&self) -> Option<(Client, &Answering)> {
        Some(match self {
            Self::Claude(answering) => (Client::Claude, answering),
            Self::Codex(answering) => (Client::Codex, answering),
            Self::Gemini(answering) => (Client::Gemini, answering),
            Self::Copilot(answering) => (Client::Copilot, answering),
            Self::Opencode(answering) => (Client::Opencode, answering),
            Self::Install(_) | Self::Uninstall(_) | Self::Doctor(_) => return None,
        })
    }
}
