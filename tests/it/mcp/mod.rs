//! MCP: servers, the guard, and the tools of servers.

mod ambiguous;
mod announcing;
mod answering;
mod changed_rules;
mod changing;
pub(crate) mod client;
mod conformance;
mod crashing;
mod ending;
mod forms;
mod granting;
mod guarding;
mod hints;
mod hostile_clients;
mod hostile_servers;
mod http;
mod initializing;
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
