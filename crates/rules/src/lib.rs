//! Permissions as a file: rules in TOML as a layer.
//!
//! [`Rules`] are read from files and decide about each call: ALLOW, ASK or DENY. The strictest rule wins over all rules
//! and files, order never matters, and what no rule speaks about is asked about (rule R2). A file loads as a whole or
//! not at all, with the tests in it (rule R3). `docs/rules-file.md` describes the format.
//!
//! ```
//! use countersign_rules::{RuleCall, Rules};
//! use countersign::decision::ToolDecision::{Allow, Ask, Deny};
//! use serde_json::json;
//!
//! let rules = Rules::builder().text("mine.toml", r#"
//!     version = 1
//!
//!     [[rule]]
//!     id = "look"
//!     allow = ["read_file", "mcp:docs/get_*"]
//!     where.path.within = "."
//!
//!     [[rule]]
//!     id = "push"
//!     ask = "shell"
//!     where.command.runs = "git push"
//!     except.command.runs = "git push --dry-run"
//!     every_time = true
//!
//!     [[rule]]
//!     id = "secrets"
//!     deny = "*"
//!     where.any_path = ["**/.env", "~/.ssh/**"]
//!     reason = "secrets stay out of reach; use .env.example"
//!
//!     [test]
//!     allow = ["read_file: {path: src/lib.rs}"]
//!     ask = ["shell: timeout 9 git push", "read_file: {path: ../x}"]
//!     deny = ["shell: cat .env", "read_file: {path: x/.env}"]
//! "#).load()?;
//!
//! let decide = |tool: &str, args: serde_json::Value| {
//!     rules.decide(&RuleCall::new(tool, args.as_object().unwrap())).decision()
//! };
//! assert_eq!(decide("read_file", json!({"path": "src/lib.rs"})), Allow);
//! assert_eq!(decide("shell", json!({"command": "ls && git push origin main"})), Ask);
//! assert_eq!(decide("send", json!({"attachments": ["%2eenv"]})), Deny);
//! # Ok::<(), countersign_rules::RulesError>(())
//! ```
//!
//! # How a call is decided
//!
//! ```text
//!  call ─► the rules that name its tool, in all files
//!           allow: covers the call, or single commands of a shell text
//!           ask, deny: speak about the call, or about single commands
//!       ─► the floor: questions that no file switches off (rule R5)
//!       ─► the strictest of all; what nothing covers is asked about (rule R2)
//!       ─► the limits of `at_most`, counted once per call (rule R7)
//! ```
//!
//! # Who may write what
//!
//! | source | may allow | may narrow |
//! |---|---|---|
//! | a preset, a file of the user | yes | yes |
//! | a file of a project | only in the form that a person has approved (rule R4) | yes |
//! | the model, a tool, a server | no | no |
//!
//! # Which module does what
//!
//! | module | does |
//! |---|---|
//! | `format` | reads a file of rules: its rules, conditions, tests and schema |
//! | `sources` | loads all files together; knows what a person has accepted, and the files of projects |
//! | `calls` | a call as rules see it: its tool, its commands, the places of its paths |
//! | `readings` | the texts of arguments in every reading that a tool may make of them; the tools of coding agents |
//! | `matching` | conditions, and the fields and places of one call that they look at |
//! | `evaluation` | decides: the strictest rule, the pins of a question, and the wider answers that a person may give |
//! | `floor` | the questions that no file switches off |
//! | `folders` | calls that read everything below a folder |
//! | `handle`, `layer` | the rules that are in force, and the middleware that decides by them |
//! | `import` | the permission files of other agents |
//!
//! [`lint`], [`propose`], [`replay`], [`difference`] and [`Explanation`] are for the people who write rules.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod builder;
mod calls;
mod counts;
mod coverage;
mod decision_journal;
mod error;
mod evaluation;
mod explanation;
mod floor;
mod folders;
mod format;
mod handle;
mod import;
mod journal_calls;
mod layer;
mod lint;
mod matching;
mod preset;
mod proposing;
pub mod readings;
mod replay;
mod ruling;
mod sources;

pub use builder::RulesBuilder;
pub use calls::call::RuleCall;
pub use counts::{CallCounts, Count, MemoryCounts};
pub use decision_journal::{DecisionJournal, JournalEntry, JournaledAnswer};
pub use error::{Problem, RulesError};
pub use explanation::Explanation;
pub use format::example::{WrittenCall, stated_record};
pub use format::schema::schema;
pub use handle::{LoadedFile, Reload, Rules};
pub use import::{Imported, LeftOut, import_claude, import_codex};
pub use lint::{Lint, lint};
pub use preset::{edits_text, preset_text};
pub use proposing::{ProposedRule, ProposedRules, UncoveredCall, propose};
pub use replay::{ChangedDecision, Replayed, compare, replay};
pub use ruling::{Layer, NearMiss, Ruling, Spoke};
pub use sources::accepted::{AcceptedFile, AcceptedRules};
pub use sources::difference::{RuleDifference, difference};
pub use sources::project::{ApprovedProject, ProjectApprovals, find_project_file};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
