#[path = "it/mcp/mod.rs"]
mod mcp;
#[path = "it/support/mod.rs"]
mod support;
