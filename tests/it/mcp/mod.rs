//! MCP: servers, the guard, and the tools of servers.

mod announcing;
mod changed_rules;
mod changing;
mod client;
mod conformance;
mod crashing;
mod ending;
mod guarding;
mod hints;
mod hostile_clients;
mod hostile_servers;
mod http;
mod pinning;
mod process;
mod projects;
mod pydantic;
mod refusing;
mod servers;
mod serving;
mod sessions;
mod single_use;
mod translating;
