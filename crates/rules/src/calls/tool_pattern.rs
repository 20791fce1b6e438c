//! Patterns over the identity of a tool: the MCP server or the toolset it belongs to, and its name.
//!
//! | pattern | a tool of this program | of a toolset `files` | of an MCP server `docs` |
//! |---|---|---|---|
//! | `search` | matches | matches | only in a rule that asks or denies |
//! | `set:files/search` | – | matches | – |
//! | `mcp:docs/search` | – | – | matches |
//! | `*` | matches | matches | only in a rule that asks or denies |
//!
//! Some tools of a coding agent are not in the table of its tools. You name such a tool with the client, `claude:Skill`,
//! and literally: `*` in a rule that allows is not about it, so no rule allows a tool that a later version of the client
//! brings. `client:todo` is a tool of any coding agent that the table of its tools has, by its name there. It is neither
//! a tool of a server nor one of the host's own program that has the same name.
//!
//! A rule that denies or asks may name a tool of the vocabulary by a coding agent's own name for it, too: `claude:Edit`, `Edit`,
//! `set:claude/Edit` or `Edit*` for `edit_file`.
//!
//! A server names its tools as it likes. So a rule that allows `search` must not allow a server's tool of that name,
//! and a rule that denies `search` should deny it, as the user is worried about the word. `Tool(args)`, as other
//! programs write conditions, is refused with a pointer to `where`.

use super::call::{ANY_CLIENT, RuleCall};
use super::glob::{Glob, MAX_PATTERN, is_pattern};
use crate::readings::tools::{CLIENTS, client_of, is_of_client, no_door_has};

/// A pattern over tools: `name`, `set:ID/name` or `mcp:SERVER/name`, each part of which may have `*` and `?`, or
/// `CLIENT:name` and `client:name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolPattern {
    source: ToolOrigin,
    name: Glob,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolOrigin {
    /// None is named.
    Any,
    Toolset(Glob),
    Server(Glob),
    /// A coding agent, by its name.
    Client(&'static str),
    /// Any coding agent, whose tool is in the table of its tools.
    AnyClient,
}

/// Returns `true` if a text may be a name that is written alone.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl ToolPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN {
            return Err(format!("a pattern has at most {MAX_PATTERN} bytes"));
        }
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err("a tool is named by `name`, `set:ID/name` or `mcp:SERVER/name`".into());
        }
        let (source, name) = match text.split_once(':') {
            Some((kind @ ("mcp" | "set"), rest)) => match rest.split_once('/') {
                Some((source, name)) if !source.is_empty() && !name.is_empty() => match kind {
                    "mcp" => (ToolOrigin::Server(Glob::new(source)), name),
                    _ => (ToolOrigin::Toolset(Glob::new(source)), name),
                },
                _ => {
                    return Err(format!(
                        "`{text}` has no tool: write `{kind}:{rest}/*` for all tools"
                    ));
                }
            },
            Some((client, name)) if client == ANY_CLIENT || client_of(client).is_some() => {
                if is_pattern(name) || name.is_empty() {
                    return Err(format!(
                        "`{text}`: a tool of a client is named literally, such as `claude:Skill`"
                    ));
                }
                let named = client_of(client).map(|it| ToolOrigin::Client(it.name));
                (named.unwrap_or(ToolOrigin::AnyClient), name)
            }
            Some((source, name)) if is_word(source) && is_word(name) => {
                return Err(format!(
                    "`{text}`: `{source}` is no coding agent that is known: write `mcp:{source}/{name}` for a tool of an MCP \
                     server, `claude:{name}` for one of Claude Code, and `client:{name}` for one of any agent"
                ));
            }
            Some(_) => {
                return Err(format!(
                    "`{text}` names no tool: conditions on arguments belong into `where`"
                ));
            }
            None => (ToolOrigin::Any, text),
        };
        if name.contains(['(', ')']) {
            return Err(format!(
                "`{text}` names no tool: conditions on arguments belong into `where`"
            ));
        }
        Ok(Self { source, name: Glob::new(name), text: text.to_owned() })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if there may be a tool of this MCP server that matches.
    pub(crate) fn is_of_server(&self, server: &str, allows: bool) -> bool {
        match &self.source {
            ToolOrigin::Any => !allows,
            ToolOrigin::Toolset(_) | ToolOrigin::Client(_) | ToolOrigin::AnyClient => false,
            ToolOrigin::Server(servers) => servers.matches(server),
        }
    }

    /// Returns `true` if the pattern is of version 2 of the format.
    pub(crate) fn is_of_version_2(&self) -> bool {
        self.source == ToolOrigin::AnyClient
    }

    /// The client and the name of its tool, for a tool that is named with its client.
    pub(crate) fn of_client(&self) -> Option<(&'static str, &str)> {
        match &self.source {
            ToolOrigin::Client(client) => Some((client, self.name.text())),
            _ => None,
        }
    }

    /// The name in the vocabulary, for a tool of any client.
    pub(crate) fn of_any_client(&self) -> Option<&str> {
        (self.source == ToolOrigin::AnyClient).then(|| self.name.text())
    }

    /// The MCP server and the tool, where a server is named literally.
    pub(crate) fn of_server(&self) -> Option<(&str, &str)> {
        match &self.source {
            ToolOrigin::Server(server) => Some((server.literal()?, self.name.text())),
            _ => None,
        }
    }

    /// The name, if only one tool name matches.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.name.literal()
    }

    /// The names of the tools that a literal pattern may match: the one that is written, and those which the vocabulary has for
    /// what coding agents call so.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.literal();
        let named = move |name: &str| own.is_some_and(|own| own.eq_ignore_ascii_case(name));
        let known = CLIENTS.iter().flat_map(move |it| it.kinds(named));
        own.into_iter().chain(known.map(|kind| -> &str { kind.name() }))
    }

    /// The name, if only one tool name matches, of any toolset or server.
    pub(crate) fn plain_name(&self) -> Option<&str> {
        (self.source == ToolOrigin::Any).then(|| self.literal()).flatten()
    }

    /// The reason why no tool of any door matches, as far as the form of the name says.
    pub(crate) fn matches_nothing(&self) -> Option<String> {
        no_door_has(self.name.text(), self.of_client().map(|(client, _)| client))
    }

    pub(crate) fn is_every_tool(&self) -> bool {
        self.name.text() == "*"
    }

    /// Returns `true` if the pattern speaks about the tool of a call. A pattern without a source, in a rule that
    /// allows, is not about tools of MCP servers: a server names its tools as it likes.
    pub(crate) fn matches(&self, call: &RuleCall<'_>, allows: bool) -> bool {
        let source = match &self.source {
            ToolOrigin::Any => {
                !allows || call.server_name().is_none() && call.unknown_of().is_none()
            }
            ToolOrigin::Toolset(set) => {
                let is_named = call.toolset_id().is_some_and(|id| set.matches(id));
                is_named && !(allows && call.unknown_of().is_some())
            }
            ToolOrigin::Client(client) => {
                call.unknown_of() == Some(*client) && !(allows && call.field_of_command().is_some())
            }
            ToolOrigin::AnyClient => {
                let is_known = call.unknown_of().is_none();
                call.toolset_as_set().is_some_and(is_of_client) && (is_known || !allows)
            }
            ToolOrigin::Server(server) => call.server_name().is_some_and(|name| {
                if allows { server.matches(name) } else { server.matches_folded(name) }
            }),
        };
        let named = |name: &str| {
            if allows { self.name.matches(name) } else { self.name.matches_folded(name) }
        };
        source && (named(call.tool) || call.own_name().is_some_and(named))
            || !allows && self.is_of_clients_own(call)
    }

    /// Returns `true` if the pattern has a coding agent's own name of the tool, `claude:Edit` or `Bash`, and the call one of the
    /// vocabulary, `edit_file` or `shell`. A rule that denies or asks is about it by either name.
    fn is_of_clients_own(&self, call: &RuleCall<'_>) -> bool {
        let Some(client) = call.toolset_as_set().and_then(client_of) else { return false };
        let is_named = match &self.source {
            ToolOrigin::Client(named) => client.name == *named,
            ToolOrigin::Toolset(set) => set.matches_folded(client.name),
            ToolOrigin::Any | ToolOrigin::AnyClient => true,
            ToolOrigin::Server(_) => false,
        };
        let mut kinds = client.kinds(|name| self.name.matches_folded(name));
        is_named && kinds.any(|kind| kind.name() == call.tool)
    }

    pub(crate) fn is_literal(&self) -> bool {
        !is_pattern(self.name.text())
    }
}
