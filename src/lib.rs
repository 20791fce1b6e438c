//! `async fn(ToolCall) -> Outcome`, behind permission layers.
//!
//! Countersign puts composable [`tower::Layer`]s around the tools of an LLM agent. For each call a layer decides ALLOW,
//! DENY or ASK, and may change the arguments. The ASKs of one model response form one batch. A handler answers the
//! batch inline, or the batch is stored and answered hours later, in another process. **What was approved is what runs:
//! at most once, and never silently.**
//!
//! ```text
//!  model response ── the calls of ONE response
//!       │  Turn: one pass per call, concurrently
//!       ▼
//!  ToolCall ─► [middleware] ─► [tower::timeout] ─► [middleware] ─► Gate ─► Permit ─► Toolset
//!               │ DENY: stops here                                  │ an open question: deferred, at once
//!               │ ASK: recorded, the call continues inward          ▼
//!               ▼                                        DeferredToolRequests ─► handler, or the caller
//!  outcomes, in model order ◄── approved calls pass the SAME stack again ◄── DeferredToolResults
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
//!             "delete_file" => Decision::ask(format!("delete {}?", call.args()["path"])).key("delete"),
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
//! # Where to start
//!
//! - Deciding: [`ToolMiddleware`], [`decide_fn`], [`from_fn`], [`Chain`], and the [`middleware`] page.
//! - Tools: [`FunctionToolset`], [`Toolset`], and the wrappers on the [`tools`] page.
//! - Running: [`Turn`] around your own loop, or [`Agent`] with a [`Model`].
//! - Answering: the [`handler`] page, [`DeferredToolRequests`], [`SuspendedRun`].
//! - [What is promised](docs::rules), and [where to put which layer](docs::ordering).
//! - Coming from [PydanticAI](docs::pydantic), from [pydantic-ai-middleware](docs::pydantic_ai_middleware), or from
//!   PydanticAI's `VercelAIAdapter` (`docs::vercel_ai_adapter`, with the feature `ai-sdk`).
//!
//! # Features
//!
//! No feature changes a decision.
//!
//! | feature | gives |
//! |---|---|
//! | `agent` | [`Agent`]: the loop of a model and its tools (on by default) |
//! | `ai-sdk` | chats for unmodified `useChat` front ends, with approvals |
//! | `ledger` | asks that are decided once and executed once, over all processes (on by default; `agent` needs it) |
//! | `cli` | the program `countersign`, with its configuration (`config`) and the hooks of coding agents (`hook`) |
//! | `genai` | real models, through the clients of the `genai` crate |
//! | `schema` | tools that are described only by a JSON Schema |
//! | `seal` | authenticated tokens for approvals that travel through a browser, a queue or mail |
//! | `opentelemetry` | metrics, and links between the traces of an ask and of its execution |
//! | `postgres` | a store for the ledger in PostgreSQL |
//! | `sqlite` | a store for the ledger in a file that several processes share |
//! | `terminal` | a handler that asks a person in the terminal |
//! | `testing` | checks for layers, middleware and stores of your own |
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
        reason = "modules on lower floors do not know which of the upper ones are switched on"
    )
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "agent")]
pub mod agent;
#[cfg(feature = "ai-sdk")]
pub mod ai_sdk;
pub mod args;
pub mod call;
#[cfg(feature = "cli")]
pub mod config;
pub mod decision;
pub mod deferred;
pub mod docs;
pub mod error;
pub mod gate;
#[cfg(feature = "genai")]
pub mod genai;
pub mod handler;
pub mod layer;
#[cfg(feature = "ledger")]
pub mod ledger;
pub mod message;
pub mod middleware;
#[cfg(feature = "agent")]
pub mod model;
pub mod outcome;
mod panic;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "seal")]
pub mod seal;
pub mod shell;
pub mod show;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod telemetry;
#[cfg(feature = "terminal")]
pub mod terminal;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
pub mod toolset;
pub mod turn;

pub use schemars;

#[cfg(feature = "agent")]
pub use agent::{
    Agent, Output, Run, RunError, RunIter, RunOutput, RunResult, RunStep, RunStream, RunStreamSync,
    TakeUp, structured, text,
};
pub use args::{Args, ArgsError, IntoArgs};
pub use call::{
    AskHistory, DeniedBefore, Execution, Extensions, Parts, Phase, RunContext, Said, ToolCall,
    ToolDefinition, ToolKind, ToolSource, Usage, UsageLimits,
};
pub use decision::{
    Decision, Denial, IntoDecision, Question, QuestionId, ToolBlocked, ToolDecision,
};
pub use deferred::{
    Answered, Answers, CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval,
    ToolApproved, metadata,
};
pub use error::{BoxError, ErrorKind, UsageLimitExceeded, UserError};
pub use gate::Gate;
// `self::` distinguishes the module from the crate `genai`.
#[cfg(feature = "genai")]
pub use self::genai::{GenaiError, GenaiModel};
pub use handler::{
    ApproveAll, Batch, ChannelHandler, DeferredToolHandler, DenyAll, FailClosed, HandlerChain,
    HandlerFn, HandlerFnSync, PermissionHandler, Stopped, channel, danger_approve_all, handler_fn,
    handler_fn_sync, permission_handler,
};
pub use layer::{MiddlewareLayer, MiddlewareService, ToolMiddlewareExt};
pub use message::{Message, RequestPart, ResponsePart, ReturnKind};
pub use middleware::{
    Adjusted, Chain, DecideFn, FirstDecision, FromFn, Opinion, ToolCallError, ToolMiddleware,
    ToolRateLimit, When, danger_first_decision_wins, decide_fn, from_fn, when,
};
#[cfg(feature = "agent")]
pub use model::{LayeredModel, Model, ModelExt, ModelRequest, ModelResponse, ModelService};
pub use outcome::{
    ApprovalRequired, CallDeferred, Deferral, DeferralKind, FatalError, ModelRetry, Outcome,
    ToolDenied, ToolError, ToolFailed, ToolReturn, ToolUnknown,
};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "seal")]
pub use seal::SealKeys;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
#[cfg(feature = "terminal")]
pub use terminal::TerminalHandler;
pub use tools::{ToolLayer, ToolService, Tools, ToolsExt};
#[cfg(feature = "schema")]
pub use toolset::schema_tool_fn;
pub use toolset::{
    ExternalToolset, FunctionToolset, IntoToolFn, Permit, Tool, ToolArgs, Toolset,
    blocking_tool_fn, tool_fn,
};
pub use turn::{
    CallReport, RunEvent, SuspendedRun, SuspendedTurn, Turn, TurnError, TurnReport, admit,
};
