//! The coding agents and the MCP clients that this user has.

use std::path::Path;

use countersign_cli::hook::{Client, Installation};

use super::servers::{self, McpFile};
use crate::Context;

/// An agent, and by what it was found.
pub(super) struct FoundAgent {
    pub(super) client: Client,
    /// `true` if the person has named it.
    pub(super) is_named: bool,
}

/// The agents and servers that `init` can protect.
pub(super) struct InitFindings {
    pub(super) agents: Vec<FoundAgent>,
    /// The configuration of MCP clients that have no hooks.
    pub(super) mcp: Vec<McpFile>,
}

impl InitFindings {
    /// Looks for agents: those that are named, or else each whose program or settings are there.
    pub(super) fn look(context: &Context, named: &[Client]) -> Self {
        let home = context.directories.home();
        let clients: Vec<_> = match named {
            [] => Client::ALL.into_iter().filter(|it| is_there(*it, home)).collect(),
            named => {
                let mut named = named.to_vec();
                named.sort();
                named.dedup();
                named
            }
        };
        let is_named = !named.is_empty();
        let agents = clients.into_iter().map(|client| FoundAgent { client, is_named }).collect();
        Self { agents, mcp: servers::of_user(home) }
    }
}

/// Returns `true` if the program of a client can be found, or a folder with its settings.
fn is_there(client: Client, home: &Path) -> bool {
    let settings = Installation::of_environment(client, home).own_place(Path::new("/"));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&folders).map(|it| it.join(client.program()));
    settings.is_dir() || programs.any(|program| program.is_file())
}
