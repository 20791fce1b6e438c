//! MCP: the tools of any server as [`Tools`](countersign::Tools), any `Tools` as a server, and a guard in
//! front of a server.
//!
//! | what | does |
//! |---|---|
//! | [`McpToolset`] | the tools of a server, as a leaf under every layer |
//! | [`serve`] | any tools as a server, over stdio or streamable HTTP, with their asks |
//! | [`Guard`] | layers in front of a server, for an unmodified client |
//! | [`Proposal`] | the tools of a server that a person has to accept |
//! | [`AskByHints`] | a layer that asks where a server's own hints are a reason to |
//!
//! Servers and clients of the revisions 2026-07-28, 2025-11-25 and 2025-06-18 work together in any pair.
//!
//! ```no_run
//! use countersign_mcp::{Launch, McpToolset};
//! use countersign::{Decision, ToolCall, ToolsExt, Turn, decide_fn};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let git = McpToolset::connect("git", Launch::command("mcp-server-git")).await?;
//! let turn = Turn::new(git.layered(decide_fn(|_, call: &ToolCall| match call.name() {
//!     "git_status" => Decision::allow(),
//!     _ => Decision::ask("changes the repository"),
//! })));
//! # let _ = turn; Ok(()) }
//! ```
//!
//! # What a server can do, and what it cannot
//!
//! A server is another party's program, whose texts reach the model and the person. It can refuse, fail, take long, and
//! lie about what it did. It cannot:
//!
//! | attempt | what happens |
//! |---|---|
//! | change a tool after it was accepted ([`Guard`], [`McpToolset::pinned`]) | the tool is listed as accepted, and its calls are denied until a person has seen the difference (rule M4) |
//! | steer the model by a new tool, or by other instructions | a new tool is not listed, and instructions are passed on as they were accepted |
//! | be another program tomorrow | the calls are denied until a person has accepted the changed file or package; not what it loads, and not behind a URL |
//! | name a tool as another, or with hidden characters | the tool is not offered |
//! | claim to be idempotent or read-only | hints can make a call stricter ([`AskByHints`]), and never laxer |
//! | ask a person in the guard's words | its question is shown with its name, and answers nothing but itself (rule M5) |
//! | ask the host's model, or list its folders | refused (rule M1) |
//! | never end its list of tools | an error after a thousand pages, or a repeated cursor |
//! | die in the middle of a call | the outcome is *may have run*, and the call is not repeated (rule M6) |

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cancelling;
mod client;
mod downstream;
mod error;
mod form;
mod frames;
mod guard;
mod outline;
mod pins;
mod reading;
mod result;
mod server;

pub use client::hints::AskByHints;
pub use client::launch::Launch;
pub use client::toolset::McpToolset;
pub use error::McpError;
pub use guard::Guard;
pub use pins::{ACCEPT_TOOLS, OfferedTool, Proposal, ServerParts, ToolStanding};
pub use server::{Server, serve};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
