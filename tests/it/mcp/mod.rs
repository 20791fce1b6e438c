//! MCP: servers, the guard, and the tools of servers.

mod client;
mod guarding;
mod servers;
mod serving;
