//! MCP (feature `mcp`): the tools of any server as [`Tools`](crate::Tools), any `Tools` as a server, and a guard in
//! front of a server.
mod connection;
mod error;
mod launch;
mod result;
mod site;
mod toolset;

pub use error::McpError;
pub use launch::Launch;
pub use toolset::McpToolset;
