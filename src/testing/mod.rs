//! Helpers for testing your own policies, layers, middleware and ledger stores.
//!
//! ```
//! use countersign::testing::decide;
//! use countersign::{Decision, FunctionToolset, ToolCall, ToolError, ToolsExt, decide_fn, schemars, tool_fn};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct NoArgs {}
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let tools = FunctionToolset::new()
//!     .tool(tool_fn("deploy", "Deploys", async |_: NoArgs| Ok::<_, ToolError>("deployed")))
//!     .layered(decide_fn(|_, _| Decision::ask("changes production")).named("operations"));
//!
//! let said = decide(&tools, ToolCall::new("c1", "deploy", json!({}))).await?;
//! assert_eq!(said.to_string(), "ASK by operations: changes production");
//! # Ok::<(), String>(()) }).unwrap();
//! ```
//!
//! | helper | finds |
//! |---|---|
//! | [`decide`] | what a stack decides about a call, and which layers decide so; the tool does not run |
//! | [`ReadyProbe`] | a layer that calls the service inside it without having polled its readiness |
//! | [`rewrites_once`] | a middleware that changes arguments it has already changed, or changes them otherwise each time |
//! | [`ScriptedHandler`] | what a person would be asked: it answers each call by its tool, and records the batches |
//! | `ScriptedModel` (feature `agent`) | what a model is told: it has a fixed list of responses, and records its requests |
//! | `ledger_contract` (feature `ledger`) | a store of a ledger that decides or executes something twice, or forgets something |

mod decide;
#[cfg(feature = "ledger")]
pub mod ledger_contract;
mod ready_probe;
mod rewrites_once;
mod scripted_handler;
#[cfg(feature = "agent")]
mod scripted_model;

pub use decide::{StackDecision, decide, decide_in};
pub use ready_probe::{ReadyProbe, ReadyProbeService};
pub use rewrites_once::rewrites_once;
pub use scripted_handler::ScriptedHandler;
#[cfg(feature = "agent")]
pub use scripted_model::ScriptedModel;
