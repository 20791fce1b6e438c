//! The command line of `countersign asks`.

use crate::moment::Moment;
use crate::seconds::seconds;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};
use countersign::ledger::AskState;
use countersign_cli::config::StoreUrl;

/// The exit statuses, for the end of `--help`.
const STATUSES: &str = "\
Prints one JSON object per line. On a terminal, or with `--text`, `list`, `show` and `decide` print text. `show`, `decide` \
and `cancel` take the first characters of an ID, at least 4. Exit statuses:
  0  done: won, recorded (a quorum is short), claimed, renewed, settled, cancelled, verified, reviewed
  1  the store cannot be reached or read, or not all of it
  2  bad usage, or no terminal to `review` or `rekey` at
  3  lost, claimed by another worker, stale token, too late to cancel; nothing to verify: the store is empty
  4  expired      5  cancelled      6  made for another fingerprint      7  no such ask, or several
  8  settled, with the recorded outcome      9  not decided      10  denied, not allowed, or not to be approved
  11 its outcome is unknown: it may have run      12  the log is broken
A row that is refused has a line of its own. `by` and `decided_by` are a name, or a list of names where several had to \
agree. Times are milliseconds since 1970.";

/// Asks of tool calls, which are parked, decided once, claimed and settled. For people, and for programs in any language.
#[derive(Args)]
#[command(after_help = STATUSES)]
pub(crate) struct AsksArgs {
    /// Where the asks are; by default the store of the configuration
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) store: Option<String>,
    /// A file whose bytes are the key of the log; the same for every command over one store
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) audit_key_file: Option<PathBuf>,
    /// A file, kept elsewhere, with the last checkpoint of the store, which `checkpoint` writes: a store that is behind it
    /// is refused
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) anchor_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: AsksCommand,
}

impl AsksArgs {
    pub(crate) fn store(&self) -> Result<Option<StoreUrl>, countersign_cli::config::ConfigError> {
        Ok(self.store.as_deref().map(str::parse).transpose()?)
    }
}

#[derive(Subcommand)]
pub(crate) enum AsksCommand {
    /// Create the store, if it does not exist
    Init,
    /// Park an ask, read from stdin: `{"tool","args","questions":[…],"principal"?,"expires_in_s"?,"idempotent"?,
    /// "quorum"?,"key"?}`. The same key again gives the same ask
    Park,
    /// List asks, newest first
    List {
        /// Only asks in this state: pending, decided, claimed, executed, unknown, released, expired, cancelled or closed
        #[arg(long, value_parser = state)]
        state: Option<AskState>,
        /// Only asks that were decided then or later, or were made then and have no decision: a date in UTC (2026-11-22,
        /// 2026-11-22T18:02:04), or a time before now (30m, 2h, 7d)
        #[arg(long, value_name = "TIME")]
        since: Option<Moment>,
        /// Only asks that were decided before then, or were made before then and have no decision. A date without a time of day
        /// includes that day
        #[arg(long, value_name = "TIME")]
        until: Option<Moment>,
        /// At most this many
        #[arg(long, default_value_t = u32::MAX, hide_default_value = true)]
        limit: u32,
    },
    /// Show one ask
    Show {
        /// The ID of the ask, as `list` prints it, or its first characters
        id: String,
    },
    /// Decide asks on this terminal, one after the other as they come: approve, edit, deny with a reason, grant, or leave
    /// for later
    Review {
        /// The name of the person who decides; by default the `principal` of the configuration. It proves nothing
        #[arg(long = "as", value_name = "WHO", value_parser = name, allow_hyphen_values = true)]
        who: Option<String>,
    },
    /// Decide the ask that was shown
    #[command(group = ArgGroup::new("verdict").required(true).multiple(true).args(["approve", "args", "deny", "answer"]))]
    Decide {
        /// The ID of the ask, as `list` prints it, or its first characters
        id: String,
        /// The fingerprint of what was shown, as `list` and `show` print it
        #[arg(long, allow_hyphen_values = true)]
        fingerprint: String,
        /// The name of the person who decides. It is recorded as it is given, and proves nothing
        #[arg(long = "as", value_name = "WHO", value_parser = name, allow_hyphen_values = true)]
        who: String,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Claim the execution of an approved ask
    Claim {
        /// The ID of the ask
        id: String,
        /// The name of the process that will execute the call
        #[arg(long, value_parser = name, allow_hyphen_values = true)]
        worker: String,
        /// The lease of the claim in seconds, unless it is renewed
        #[arg(long, value_parser = seconds, default_value = "60", allow_hyphen_values = true)]
        lease_s: Duration,
    },
    /// Renew the lease of a claim, from now on
    Renew {
        /// The ID of the ask
        id: String,
        /// The token that `claim` printed
        #[arg(long)]
        token: u64,
        /// The new lease in seconds
        #[arg(long, value_parser = seconds, allow_hyphen_values = true)]
        lease_s: Duration,
    },
    /// Record the outcome of an execution
    Settle {
        /// The ID of the ask
        id: String,
        /// The token that `claim` printed
        #[arg(long)]
        token: u64,
        /// The result of the call, which other workers and readers get
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        outcome: String,
    },
    /// Record the deadlines and leases that have passed
    Expire,
    /// Withdraw an ask that is not claimed yet
    Cancel {
        /// The ID of the ask, or its first characters
        id: String,
        /// The name of the person who withdraws it, recorded as it is given
        #[arg(long = "as", value_name = "WHO", value_parser = name, allow_hyphen_values = true)]
        who: String,
    },
    /// Record the end of every log, in a log of its own: from then on `verify` shows when one is cut or removed
    Checkpoint,
    /// Check the log, and every ask against it
    Verify {
        /// The output of an earlier `export` or `checkpoint`, which the log must continue
        #[arg(long, value_name = "PATH")]
        earlier: Option<PathBuf>,
    },
    /// Add an audit key to the store, or exchange it, on a terminal: verifies the store with the key that it has, and writes
    /// one entry under the new key that names the end of every log
    Rekey {
        /// A file whose bytes are the new key
        #[arg(long, value_name = "PATH")]
        new_key_file: PathBuf,
    },
    /// Write the log as JSON lines, with digests of arguments in place of their values
    Export,
    /// Run the commands on stdin over one connection: one a line, as a JSON list of words. Prints
    /// `{"status","lines","error"}` for each
    Each,
}

#[derive(Args)]
#[group(skip)]
pub(crate) struct AnswerArgs {
    /// The call may run
    #[arg(long, conflicts_with_all = ["deny", "answer"])]
    pub(crate) approve: bool,
    /// The call may run with these arguments
    #[arg(long, value_name = "JSON", conflicts_with_all = ["deny", "answer"], allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// The call does not run, and the model is told this
    #[arg(long, value_name = "MSG", conflicts_with = "answer", allow_hyphen_values = true)]
    pub(crate) deny: Option<String>,
    /// The result of a call that was executed elsewhere, or the answer to a question
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
    if text.trim().is_empty() { Err("a name is not blank") } else { Ok(text.to_owned()) }
}

/// The words of one line of `each`.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(subcommand)]
    command: AsksCommand,
}

/// Parses the words of one command of `each`.
pub(crate) fn command(words: Vec<String>) -> Result<AsksCommand, String> {
    Words::try_parse_from(words).map(|it| it.command).map_err(|error| error.to_string())
}
