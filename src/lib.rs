//! Permission layers for the tools of LLM agents: each call is allowed, denied or asked about before it runs.
//!
//! Countersign puts composable [`tower::Layer`]s around tools. For each call a layer decides ALLOW, DENY or ASK, and may
//! change the arguments. The ASKs of one model response form one batch. A handler answers the batch inline, or the batch
//! is stored and answered hours later, in another process. **What was approved is what runs: at most once, and never
//! silently.**
//!
//! # What to read
//!
//! **New here?** The guide is in the folder `docs/guide` of this package, one page for one question. `start.md` and
//! `deciding.md`, a few minutes each, put a layer around tools and say which calls it asks about; `asking.md` says who
//! answers. `cargo doc -p countersign-guide --open` shows the guide with its links in the repository.
//!
//! **Looking for a type?** A policy is a [`ToolMiddleware`], or a closure in [`decide_fn`] or [`from_fn`]; the
//! [`middleware`] page lists what can be built from them. Tools are a [`FunctionToolset`], or any [`Toolset`]; the
//! [`tools`] page has the wrappers. [`Turn`] runs the calls of one response, in a loop of your own; [`Agent`] is a loop
//! with a [`Model`]. Answers come from a [`DeferredToolHandler`] ([`handler`]), or from outside, to a [`SuspendedTurn`]
//! or [`SuspendedRun`]. A [`Ledger`] makes all of it hold across processes and crashes.
//!
//! **Deciding whether to trust it?** `docs/rules.md` has what is promised, each promise with its test, and
//! `docs/ordering.md` says where to put which layer.
//!
//! **Coming from elsewhere?** `docs/pydantic.md`, `docs/pydantic-ai-middleware.md` and `docs/vercel-ai-adapter.md`
//! compare this crate with PydanticAI and its neighbours.
//!
//! ```text
//!  model response: its calls          outcomes, in model order
//!       │                                  ▲
//!       ▼  Turn: one pass per call         │
//!  [middleware]   DENY: stops here, with the reason for the model
//!       ▼         ASK: recorded, and the call continues inward
//!  [tower's timeout, limit, retry, …]
//!       ▼
//!  [middleware]
//!       ▼
//!     Gate ───── an open question: deferred, at once
//!       ▼                │
//!    Toolset             └─► DeferredToolRequests ─► handler, or the caller
//!                                                          │
//!  approved calls pass the SAME stack again ◄── DeferredToolResults
//! ```
//!
//! # Example
//!
//! ```
//! use countersign::{
//!     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn,
//!     schemars, tool_fn,
//! };
//! use serde_json::json;
//! use tower::{ServiceBuilder, timeout::TimeoutLayer};
//!
//! struct FileAccess;
//!
//! impl ToolMiddleware for FileAccess {
//!     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
//!         match call.name() {
//!             "delete_file" => Decision::ask(format!("delete {}?", call.args()["path"])).with_key("delete"),
//!             "read_file" => Decision::allow().with_args(call.args().clone().with("audit", true)),
//!             _ => Decision::deny("not a tool for this assistant"),
//!         }
//!     }
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct File { path: String }
//!
//! async fn read_file(file: File) -> Result<String, ToolError> { Ok(format!("the text of {}", file.path)) }
//! async fn delete_file(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let tools = FunctionToolset::new()
//!     .tool(tool_fn("read_file", "Read a text file", read_file))
//!     .tool(tool_fn("delete_file", "Delete a file", delete_file))
//!     .layered(
//!         ServiceBuilder::new()
//!             .layer(FileAccess.into_layer())
//!             .layer(TimeoutLayer::new(std::time::Duration::from_secs(30))), // a body cut off here "may have run"
//!     );
//!
//! let turn = Turn::new(tools);
//! let report = turn.run(vec![
//!     ToolCall::new("call_1", "read_file", json!({"path": "notes.md"})),
//!     ToolCall::new("call_2", "delete_file", json!({"path": "old.log"})),
//! ]).await?;
//! assert!(report.calls()[0].outcome().is_returned());
//! assert!(report.calls()[1].outcome().is_deferred());
//!
//! // The pending call is part of a value: store it, ask a person, and resume here or in another process.
//! let suspended = report.into_suspended().unwrap();
//! let answers = suspended.requests().answer().approve("call_2").answered_by("ann").build()?;
//! let report = turn.resume(suspended, answers).await?;
//! assert_eq!(report.calls()[1].outcome().content().unwrap(), "deleted old.log");
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # Features
//!
//! No feature changes a decision.
//!
//! | feature | gives |
//! |---|---|
//! | `agent` | [`Agent`]: the loop of a model and its tools (on by default) |
//! | `ledger` | asks that are decided once and executed once, over all processes (on by default; `agent` needs it) |
//! | `opentelemetry` | metrics, and links between the traces of an ask and of its execution |
//! | `schema` | tools that are described only by a JSON Schema |
//! | `seal` | authenticated tokens for approvals that travel through a browser, a queue or mail |
//! | `testing` | what a stack decides about a call; checks for layers, middleware and stores of your own |
//!
//! # Crates around this one
//!
//! They use only what is public here.
//!
//! | crate | gives |
//! |---|---|
//! | `countersign-ai-sdk` | chats for unmodified `useChat` front ends, with approvals |
//! | `countersign-cli` | the program `countersign`; as a library, its configuration and the hooks of coding agents |
//! | `countersign-genai` | real models, through the clients of the `genai` crate |
//! | `countersign-inbox` | the page on which people decide the asks of a ledger, as a router for `axum`, and webhooks |
//! | `countersign-mcp` | the tools of MCP servers, any tools as an MCP server, and a guard in front of a server |
//! | `countersign-postgres` | a store for the ledger in PostgreSQL |
//! | `countersign-rules` | permissions as a file: rules in TOML as a layer, with tests in the file |
//! | `countersign-shell` | what a shell command would do, as far as it can be known |
//! | `countersign-sqlite` | a store for the ledger in a file that several processes share |
//! | `countersign-stores` | ledgers by the URLs of their stores |
//! | `countersign-terminal` | a handler that asks a person in the terminal |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![cfg_attr(
    not(feature = "agent"), // which needs `ledger`
    allow(
        dead_code,
        unused_imports,
        reason = "modules of lower tiers do not know which of the upper ones are switched on"
    )
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "agent")]
pub mod agent;
pub mod args;
pub mod call;
pub mod decision;
pub mod deferred;
pub mod error;
pub mod gate;
pub mod handler;
pub mod layer;
#[cfg(feature = "ledger")]
pub mod ledger;
pub mod message;
pub mod middleware;
#[cfg(feature = "agent")]
pub mod model;
pub mod origin;
pub mod outcome;
mod panic;
#[cfg(feature = "seal")]
pub mod seal;
pub mod show;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
pub mod toolset;
pub mod turn;

pub use schemars;

// The names that most programs need. Everything else has one path, in its module; `tests/house.rs` counts these names.
#[cfg(feature = "agent")]
pub use agent::Agent;
pub use args::Args;
pub use call::{RunContext, ToolCall, ToolDefinition};
pub use decision::Decision;
pub use deferred::{DeferredToolRequests, DeferredToolResults};
pub use error::{AnswerError, BoxError, Error, UserError};
pub use handler::{DeferredToolHandler, handler_fn};
pub use layer::ToolMiddlewareExt;
#[cfg(feature = "ledger")]
pub use ledger::Ledger;
pub use message::Message;
pub use middleware::{ToolMiddleware, decide_fn, from_fn};
#[cfg(feature = "agent")]
pub use model::Model;
pub use outcome::{Outcome, ToolError};
pub use tools::{Tools, ToolsExt};
pub use toolset::{FunctionToolset, Permit, Toolset, tool_fn};
pub use turn::{SuspendedRun, SuspendedTurn, Turn, TurnReport};
