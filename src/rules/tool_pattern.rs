//! Patterns over the identity of a tool: the MCP server or the toolset it belongs to, and its name.
//!
//! | pattern | a tool of this program | of a toolset `files` | of an MCP server `docs` |
//! |---|---|---|---|
//! | `search` | matches | matches | only in a rule that asks or denies |
//! | `set:files/search` | – | matches | – |
//! | `mcp:docs/search` | – | – | matches |
//! | `*` | matches | matches | only in a rule that asks or denies |
//!
//! A server names its tools as it likes, so that a rule which allows `search` must not allow a server's tool of that
//! name. One that denies it should: what the user is worried about is the word. `Tool(args)`, as other programs write
//! conditions, is refused with a pointer to `where`.

use super::call::RuleCall;
use super::glob::{Glob, MAX_PATTERN, is_pattern};

/// A pattern over tools: `name`, `set:ID/name` or `mcp:SERVER/name`; each part may have `*` and `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolPattern {
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
}

impl ToolPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The name, if only one tool name matches.
    pub(super) fn literal(&self) -> Option<&str> {
        self.name.literal()
    }

    /// The name, if only one tool name matches, of any toolset or server.
    pub(super) fn plain_name(&self) -> Option<&str> {
        (self.source == ToolOrigin::Any).then(|| self.literal()).flatten()
    }

    pub(super) fn is_every_tool(&self) -> bool {
        self.name.text() == "*"
    }

    /// Whether the pattern speaks about the tool of a call. A pattern without a source, in a rule that allows, is not
    /// about tools of MCP servers: a server names its tools as it likes.
    pub(super) fn matches(&self, call: &RuleCall<'_>, allows: bool) -> bool {
        let source = match &self.source {
            ToolOrigin::Any => !allows || call.server_name().is_none(),
            ToolOrigin::Toolset(set) => call.toolset_id().is_some_and(|id| set.matches(id)),
            ToolOrigin::Server(server) => call.server_name().is_some_and(|name| {
                if allows { server.matches(name) } else { server.matches_folded(name) }
            }),
        };
        let named = |name: &str| {
            if allows { self.name.matches(name) } else { self.name.matches_folded(name) }
        };
        source && (named(call.tool) || call.own_name().is_some_and(named))
    }

    pub(super) fn is_literal(&self) -> bool {
        !is_pattern(self.name.text())
    }
}
