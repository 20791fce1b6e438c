//! Static analysis of shell commands: what they read, write, run and send, and whether they may run unattended (rule
//! C1).
//!
//! [`Commands::parse`] is strict: we refuse syntax that the lexer does not know. A [`Classifier`] judges each simple
//! command by itself, with a table of programs that describes what their options and operands mean. The result is a
//! [`Judgement`]: for each [`Part`] its [`Effect`]s, [`ToolDecision`](countersign::decision::ToolDecision) and [`Reason`]s. `docs/shell.md`
//! lists the assumptions, and explains how to describe a program.
//!
//! ```
//! use countersign::decision::ToolDecision;
//! use countersign_shell::{Classifier, Dialect, Effect, Preset, SearchPath, Workspace};
//!
//! let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
//!     .with_search_path(SearchPath::unchecked());
//!
//! let judgement = classifier.judge("grep -rn TODO src | sort -o todo.txt", Dialect::Bash);
//! assert_eq!(judgement.decision(), ToolDecision::Ask);
//! assert_eq!(judgement.parts()[0].effects(), [Effect::Reads("/src/project/src".into())]);
//! assert_eq!(judgement.to_string(), "ask: `sort` with the option `-o` is not known to be harmless");
//! ```
//!
//! As a layer in front of a tool that takes a command:
//!
//! ```
//! use countersign::decision::ToolDecision;
//! use countersign_shell::{Classifier, Dialect, Preset, Workspace};
//! use countersign::{Decision, ToolCall, decide_fn};
//!
//! let classifier = Classifier::new(Workspace::new("."), Preset::Developer);
//! let layer = decide_fn(move |_, call: &ToolCall| {
//!     let judgement = classifier.judge(call.args()["command"].as_str().unwrap_or_default(), Dialect::Bash);
//!     match judgement.decision() {
//!         ToolDecision::Allow => Decision::allow(),
//!         ToolDecision::Ask => Decision::ask(judgement.to_string()).with_key("shell"),
//!         ToolDecision::Deny => Decision::deny(judgement.to_string()),
//!     }
//! });
//! # let _ = layer;
//! ```
//!
//! A missing argument, or one that is not a string, becomes the empty text here, which is allowed because it runs
//! nothing. The classifier is not a sandbox.
//!
//! # From a text to a verdict
//!
//! ```text
//!  text ─► characters ─► lexer, words, redirections ─► parser ─► Commands        refused: ask
//!                                                                   │
//!       table of programs ─► arguments matched like the program does ─► effects  unknown: ask
//!                                                                   │
//!       workspace, search path ─► places of paths, files of programs ─► reasons  outside, secret: ask
//!                                                                   ▼
//!                                                               Judgement: one Part for each simple command
//! ```
//!
//! Each step can only add reasons, and a step that does not know something adds one. So a command is allowed only if
//! every step has understood it.
//!
//! # What is assumed
//!
//! - The shell that runs the text has its default options, no aliases and no functions with the names of programs.
//! - A program does what its manual says, and the file that is found in `PATH` is that program.
//! - What the analysis looks at (links, files, the search path) is still so when the command runs. [`ShellTool`] runs
//!   the judged words without a shell: that removes the first assumption and not the others.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod execution;
mod judging;
mod names;
mod places;
mod preset;
pub mod program_files;
mod syntax;
mod table;
mod tool;

pub use execution::ShellOutput;
pub use judging::classify::Classifier;
pub use judging::environment::ActingVariable;
pub use judging::judgement::{Effect, Judgement, Part, Reason, says_unknown};
pub use names::protected;
pub use names::sieve::Sieve;
pub use places::files::bounded_text;
pub use places::git_settings::GitSettings;
pub use places::lexical::{inside, lexically_normal};
pub use places::paths::{Workspace, resolved};
pub use places::repository::{GIT_VALUES, setting_runs};
pub use places::search_path::SearchPath;
pub use places::secrets;
pub use places::worktrees::{may_be_in_own_worktree, worktree_of, worktrees};
pub use preset::Preset;
pub use syntax::commands::{
    Assignment, Commands, Compound, CompoundKind, Join, Pipeline, Redirection, RedirectionTarget,
    Refused, SimpleCommand, Stage, Word, WordKind,
};
pub use syntax::dialect::Dialect;
pub use table::{ProgramArguments, ProgramExample, Programs, ProgramsError};
pub use tool::{ShellArgs, ShellTool};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
