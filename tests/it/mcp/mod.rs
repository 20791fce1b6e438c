//! MCP: servers, the guard, and the tools of servers.

mod client;
mod conformance;
mod crashing;
mod ending;
mod guarding;
mod hints;
mod pinning;
mod process;
mod refusing;
mod servers;
mod serving;
mod single_use;
mod translating;
