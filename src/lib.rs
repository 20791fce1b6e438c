//! `async fn(ToolCall) -> Outcome`, with a permission stack around it.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod agent;
pub mod args;
pub mod call;
#[cfg(feature = "cli")]
pub mod cli;
pub mod decision;
pub mod deferred;
pub mod error;
pub mod gate;
pub mod handler;
pub mod layer;
pub mod middleware;
pub mod outcome;
pub mod show;
pub mod tools;
pub mod toolset;
pub mod turn;

pub use schemars;

pub use agent::{
    Agent, Message, Model, ModelRequest, ModelResponse, Output, RequestPart, ResponsePart,
    ReturnKind, Run, RunError, RunEvent, RunOutput, RunResult, SuspendedRun, text,
};
pub use args::{Args, ArgsError};
pub use call::{
    Execution, Extensions, Phase, RunContext, Said, ToolCall, ToolDefinition, ToolKind,
};
#[cfg(feature = "cli")]
pub use cli::TerminalHandler;
pub use decision::{Decision, Denial, Question, QuestionId, ToolBlocked, ToolDecision};
pub use deferred::{
    Answers, CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval, ToolApproved,
    metadata,
};
pub use error::{BoxError, ErrorKind, UserError};
pub use gate::Gate;
pub use handler::{
    ApproveAll, Batch, ChannelHandler, DeferredToolHandler, DenyAll, FailClosed, HandlerChain,
    HandlerFn, HandlerFnSync, PermissionHandler, channel, danger_approve_all, handler_fn,
    handler_fn_sync, permission_handler,
};
pub use layer::{MiddlewareLayer, MiddlewareService, ToolMiddlewareExt};
pub use middleware::{
    Chain, DecideFn, FirstDecision, FromFn, Opinion, ToolCallError, ToolMiddleware, When,
    danger_first_decision_wins, decide_fn, from_fn, when,
};
pub use outcome::{
    ApprovalRequired, CallDeferred, Deferral, DeferralKind, ModelRetry, Outcome, ToolDenied,
    ToolError, ToolFailed, ToolReturn, ToolUnknown,
};
pub use tools::{Tools, ToolsExt};
#[cfg(feature = "schema")]
pub use toolset::schema_tool_fn;
pub use toolset::{
    ExternalToolset, FunctionToolset, IntoToolFn, Permit, Tool, Toolset, blocking_tool_fn, tool_fn,
};
pub use turn::{Answered, CallReport, SuspendedTurn, Turn, TurnError, TurnReport, admit};
