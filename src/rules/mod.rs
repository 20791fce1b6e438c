//! Permissions as a file: rules in TOML as a layer.
//!
//! [`Rules`] are read from files and decide about each call: ALLOW, ASK or DENY. The strictest rule wins over all rules
//! and files, order never matters, and what no rule speaks about is asked about (rule R2). A file loads as a whole or
//! not at all, with the tests in it (rule R3). [The file of rules](crate::docs::rules_file) describes the format.
//!
//! ```
//! use countersign::rules::{RuleCall, Rules};
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
//! # Ok::<(), countersign::rules::RulesError>(())
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
//! `evaluation` decides, and everything else feeds it: files are read by `document`, `rule_file`, `rule` and
//! `condition_format`; a call is seen through `seen`, `paths` and `command`; patterns are in `glob`, `host` and
//! `tool_pattern`; the module `reader` lists what a call of a shell may carry beside its command, and `beside` finds what
//! is not on the list; `pins` and `scripts` say what a question is bound to; `handle` holds what is in force, `sources`
//! loads it, `accepted` knows what a person has accepted, `layer` makes it a middleware. [`lint`], [`replay`], [`difference`] and [`Explanation`] are for the people
//! who write rules.

mod accepted;
mod beside;
mod builder;
mod call;
mod classes;
mod command;
mod condition;
mod condition_format;
mod counts;
mod difference;
mod document;
mod engine;
mod error;
mod evaluation;
mod example;
mod explanation;
mod floor;
mod glob;
mod handle;
mod host;
mod import;
mod journal;
mod layer;
mod lint;
mod misspelling;
mod paths;
mod patterns;
mod pins;
mod preset;
mod private_file;
mod project;
mod reason;
mod replay;
mod rule;
mod rule_file;
mod rule_set;
mod ruling;
mod schema;
mod scripts;
mod seen;
mod source;
mod sources;
mod tool_pattern;
mod truth;

pub use accepted::{AcceptedFile, AcceptedRules};
pub use builder::RulesBuilder;
pub use call::RuleCall;
pub use counts::{CallCounts, Count, MemoryCounts};
pub use difference::{RuleDifference, difference};
pub use error::{Problem, RulesError};
pub use explanation::Explanation;
pub use handle::{LoadedFile, Reload, Rules};
pub use import::{Imported, LeftOut, import_claude, import_codex};
pub use journal::{DecisionJournal, JournalEntry};
pub use lint::{Lint, lint};
pub use preset::preset_text;
pub use project::{ApprovedProject, ProjectApprovals, find_project_file};
pub use replay::{ChangedDecision, Replayed, compare, replay};
pub use ruling::{Layer, NearMiss, Ruling, Spoke};
pub use schema::schema;
