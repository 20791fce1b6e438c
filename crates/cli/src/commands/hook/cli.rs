//! The command line of `countersign hook`.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use countersign_cli::hook::Client;

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

/// Decide about the tool calls of coding agents.
#[derive(Args)]
#[command(after_help = STATUSES)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

#[derive(Subcommand)]
pub(crate) enum HookCommand {
    #[command(flatten)]
    Answer(AnsweringClient),
    /// Configure a client to call the hook
    Install(Install),
    /// Remove the hook from the configuration of a client
    Uninstall(Configuration),
    /// Check that a client has the hook, and obeys it
    Doctor(Doctor),
}

/// `countersign hook CLIENT`: a client whose payload is answered, with the options.
pub(crate) struct AnsweringClient {
    pub(crate) client: Client,
    pub(crate) answering: Answering,
}

impl Subcommand for AnsweringClient {
    fn augment_subcommands(command: Command) -> Command {
        Client::ALL.into_iter().fold(command, |command, client| {
            let about = format!("Answer a hook of {}", client.title());
            command.subcommand(Answering::augment_args(Command::new(client.name())).about(about))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name.parse::<Client>().is_ok()
    }
}

impl FromArgMatches for AnsweringClient {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let unknown = || Error::new(ErrorKind::InvalidSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(unknown)?;
        let client = name.parse().map_err(|_| unknown())?;
        Ok(Self { client, answering: Answering::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl HookCommand {
    /// The client whose payload is answered, with the options.
    pub(crate) fn answering(&self) -> Option<(Client, &Answering)> {
        match self {
            Self::Answer(it) => Some((it.client, &it.answering)),
            Self::Install(_) | Self::Uninstall(_) | Self::Doctor(_) => None,
        }
    }
}
