//! Commands of a shell, judged by what they run, write, send and read (rule C1).
//!
//! [`Commands::parse`] reads a text strictly: what it does not know is refused. A [`Classifier`] judges each simple command
//! by itself, from a table of programs: what its options and operands mean, what it reads, writes, runs and sends. The
//! result, a [`Judgement`], is data: part for part the [`Effect`]s, the [`Verdict`] and the [`Reason`]s.
//! [How commands are judged](crate::docs::shell) says what is assumed, and how a program is described.
//!
//! ```
//! use countersign::shell::{Classifier, Dialect, Effect, Preset, SearchPath, Verdict, Workspace};
//!
//! let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
//!     .search_path(SearchPath::unchecked());
//!
//! let judgement = classifier.judge("grep -rn TODO src | sort -o todo.txt", Dialect::Bash);
//! assert_eq!(judgement.verdict(), Verdict::Ask);
//! assert_eq!(judgement.parts()[0].effects(), [Effect::Reads("/src/project/src".into())]);
//! assert_eq!(judgement.to_string(), "ask: `sort` with the option `-o` is not known to be harmless");
//! ```
//!
//! As a layer in front of a tool that takes a command:
//!
//! ```
//! use countersign::shell::{Classifier, Dialect, Preset, Verdict, Workspace};
//! use countersign::{Decision, ToolCall, decide_fn};
//!
//! let classifier = Classifier::new(Workspace::new("."), Preset::Developer);
//! let layer = decide_fn(move |call: &ToolCall| {
//!     let judgement = classifier.judge(call.args()["command"].as_str().unwrap_or_default(), Dialect::Bash);
//!     match judgement.verdict() {
//!         Verdict::Allow => Decision::allow(),
//!         Verdict::Ask => Decision::ask(judgement.to_string()).key("shell"),
//!         Verdict::Deny => Decision::deny(judgement.to_string()),
//!     }
//! });
//! # let _ = layer;
//! ```
//!
//! A missing or unreadable argument is no command: the empty text is allowed, as it runs nothing. This is not a sandbox.

mod characters;
mod classify;
mod commands;
mod dialect;
mod directories;
mod environment;
mod judgement;
mod lexer;
mod names;
mod operands;
mod parser;
mod paths;
mod redirections;
mod running;
mod scripts;
mod search_path;
mod simple;
mod table;
mod tool;
mod word;
mod words;

pub use classify::{Classifier, Preset};
pub use commands::{
    Assignment, Commands, Join, Pipeline, Redirection, RedirectionTarget, Refused, SimpleCommand,
    Stage,
};
pub use dialect::Dialect;
pub use judgement::{Effect, Judgement, Part, Reason, Verdict};
pub use paths::Workspace;
pub use running::ShellOutput;
pub use search_path::SearchPath;
pub use table::{ProgramExample, Programs, ProgramsError};
pub use tool::{ShellArgs, ShellTool};
pub use word::{Word, WordKind};
