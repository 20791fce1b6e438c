//! Static analysis of shell commands: what they read, write, run and send, and whether they may run unattended (rule
//! C1).
//!
//! [`Commands::parse`] is strict: syntax that the lexer does not know is refused. A [`Classifier`] judges each simple
//! command by itself, with a table of programs that describes what their options and operands mean. The result is a
//! [`Judgement`]: for each [`Part`] its [`Effect`]s, [`ToolDecision`](crate::decision::ToolDecision) and [`Reason`]s. [How commands are
//! judged](crate::docs::shell) lists the assumptions, and explains how to describe a program.
//!
//! ```
//! use countersign::decision::ToolDecision;
//! use countersign::shell::{Classifier, Dialect, Effect, Preset, SearchPath, Workspace};
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
//! use countersign::shell::{Classifier, Dialect, Preset, Workspace};
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
//! Each step can only add reasons. A step that does not know something adds one, so that what is allowed is what every
//! step has understood.
//!
//! # What is assumed
//!
//! - The shell that runs the text has its default options, no aliases and no functions with the names of programs.
//! - A program does what its manual says, and the file that is found in `PATH` is that program.
//! - What the analysis looks at (links, files, the search path) is still so when the command runs. [`ShellTool`] runs
//!   the judged words without a shell, which removes the first assumption and not the others.

mod arithmetic;
mod bindings;
mod characters;
mod classify;
mod commands;
mod compounds;
mod conditions;
mod dialect;
mod directories;
mod environment;
mod execution;
pub(crate) mod files;
mod flow;
mod globs;
mod index;
mod judgement;
mod lexer;
mod links;
mod lists;
mod names;
mod operands;
mod outputs;
mod parser;
mod paths;
mod preset;
mod printf;
pub(crate) mod protected;
mod redirections;
mod registries;
pub(crate) mod repository;
mod scanners;
mod scripts;
mod search_path;
pub(crate) mod sieve;
mod simple;
mod table;
mod tool;
mod values;
mod words;
mod wrappers;

pub use classify::Classifier;
pub use commands::{
    Assignment, Commands, Compound, CompoundKind, Join, Pipeline, Redirection, RedirectionTarget,
    Refused, SimpleCommand, Stage, Word, WordKind,
};
pub use dialect::Dialect;
pub use environment::ActingVariable;
pub use execution::ShellOutput;
pub use judgement::{Effect, Judgement, Part, Reason};
pub use paths::{Workspace, lexically_normal, resolved};
pub use preset::Preset;
pub use search_path::SearchPath;
pub use table::{ProgramExample, Programs, ProgramsError};
pub use tool::{ShellArgs, ShellTool};
