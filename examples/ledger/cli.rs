//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};
use countersign::ledger::AskState;

/// The exit statuses, for the end of `--help`.
const STATUSES: &str = "\
Prints one JSON object per line. Exit statuses:
  0  done: won, recorded (a quorum is short), claimed, renewed, settled, cancelled, verified
  1  the store cannot be reached or read, or not all of it: what is refused has a line of its own
  2  bad usage
  3  lost, held by another worker, stale token, too late to cancel
  4  expired      5  cancelled      6  made for something else than what waits      7  no such ask
  8  settled, with the recorded outcome      9  not decided      10  denied, or not allowed
  11 its outcome is unknown: it may have run      12  the log is broken
`by` and `decided_by` are a name, or a list of names where several had to agree. Times are milliseconds since 1970.";

/// Where asks are parked, decided once, claimed and settled.
#[derive(Parser)]
#[command(name = "ledger", after_help = STATUSES)]
pub(crate) struct Cli {
    /// Where the asks are: `sqlite:PATH`, or `postgres://…` in a build with the feature.
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// A file whose bytes are the key of the log; the same for every command over one store.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) audit_key_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes the store, if it is not there.
    Init,
    /// Parks an ask, read from stdin: `{"tool","args","questions":[…],"principal"?,"expires_in_s"?,"idempotent"?,
    /// "quorum"?,"key"?}`. The same key again gives the same ask.
    Park,
    /// Lists asks, newest first.
    List {
        #[arg(long, value_parser = state)]
        state: Option<AskState>,
        #[arg(long, default_value_t = u32::MAX, hide_default_value = true)]
        limit: u32,
    },
    /// Shows one ask.
    Show { id: String },
    /// Decides about what was shown.
    #[command(group = ArgGroup::new("verdict").required(true).args(["approve", "deny", "answer"]))]
    Decide {
        id: String,
        #[arg(long, allow_hyphen_values = true)]
        fingerprint: String,
        /// Who decides.
        #[arg(long = "as", value_name = "WHO", value_parser = name, allow_hyphen_values = true)]
        who: String,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Claims the execution of an approved ask.
    Claim {
        id: String,
        #[arg(long, value_parser = name, allow_hyphen_values = true)]
        worker: String,
        /// How long, unless it is renewed.
        #[arg(long, value_parser = seconds, default_value = "60", allow_hyphen_values = true)]
        lease_s: Duration,
    },
    /// Makes a claim last longer from now on.
    Renew {
        id: String,
        #[arg(long)]
        token: u64,
        #[arg(long, value_parser = seconds, allow_hyphen_values = true)]
        lease_s: Duration,
    },
    /// Records what came of an execution.
    Settle {
        id: String,
        #[arg(long)]
        token: u64,
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        outcome: String,
    },
    /// Lets the time take effect that has passed.
    Expire,
    /// Withdraws an ask that nobody executes yet.
    Cancel {
        id: String,
        #[arg(long = "as", value_name = "WHO", value_parser = name, allow_hyphen_values = true)]
        who: String,
    },
    /// Notes how far every log has come, in a log of its own: from then on `verify` shows when one is cut or removed.
    Checkpoint,
    /// Checks the log, and that every ask stands where it says.
    Verify {
        /// What `export` or `checkpoint` wrote earlier: the log must go on from there.
        #[arg(long, value_name = "PATH")]
        earlier: Option<PathBuf>,
    },
    /// Writes the log as JSON lines. Entries hold digests of arguments, not their values.
    Export,
    /// Runs what it reads from stdin, on one connection: a command a line, as a JSON list of words. Prints
    /// `{"status","lines","error"}` for each.
    Each,
}

#[derive(Args)]
#[group(skip)]
pub(crate) struct AnswerArgs {
    /// It may run.
    #[arg(long)]
    pub(crate) approve: bool,
    /// It may run with these arguments.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["deny", "answer"], allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// It does not run, and this is what the model is told.
    #[arg(long, value_name = "MSG", allow_hyphen_values = true)]
    pub(crate) deny: Option<String>,
    /// It was executed elsewhere, or is a question, and this is the answer.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) answer: Option<String>,
}

fn state(text: &str) -> Result<AskState, String> {
    let known = AskState::ALL.into_iter().find(|state| state.as_str() == text);
    known.ok_or_else(|| {
        let all: Vec<_> = AskState::ALL.iter().map(|state| state.as_str()).collect();
        format!("the states are {}", all.join(", "))
    })
}

fn name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("somebody has a name") } else { Ok(text.to_owned()) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Parses the words of one command of `each`.
pub(crate) fn command(words: Vec<String>) -> Result<Command, String> {
    let head = ["ledger", "--store", ""].map(str::to_owned);
    let cli = Cli::try_parse_from(head.into_iter().chain(words));
    cli.map(|cli| cli.command).map_err(|error| error.to_string())
}

/// Parses the command line. Otherwise prints the help, or one line to stderr, and returns the exit status.
pub(crate) fn read() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if !error.use_stderr() {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        super::failed(text.split("\n\nUsage:").next().unwrap_or(text), 2)
    })
}
