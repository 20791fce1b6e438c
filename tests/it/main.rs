//! The integration tests: one binary, through the public API. `tests/house.rs` fails when a file is missing here.

mod support;

mod agent;
#[cfg(feature = "ai-sdk")]
mod ai_sdk;
mod answers;
mod approving;
mod arguments;
mod asking;
mod assistant;
mod basics;
mod cancelling;
mod compile_fail;
mod conformance;
mod corpus;
mod deciding;
mod deferring;
mod examples;
mod functions;
#[cfg(feature = "genai")]
mod genai;
mod histories;
mod ledger;
mod levels;
mod limits;
mod model_layers;
mod names;
mod nesting;
mod outputs;
#[cfg(feature = "postgres")]
mod postgres;
mod program;
mod properties;
mod pydantic;
mod rate_limit;
mod retries;
mod seal;
mod secrecy;
mod seeds;
mod shell;
mod sub_agents;
mod terminal;
mod testing;
mod tool_errors;
mod tower_errors;
mod tower_layers;
mod turn;
mod variants;
mod with_ledger;
mod wrappers;
