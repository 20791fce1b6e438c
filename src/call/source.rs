//! The source of a tool: its toolset or MCP server, and its name there.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The source of a tool: the id of its toolset, or the name of its MCP server, and the name of the tool there. Both
/// are data of their own and never parts of one text, so that no tool or server gets the identity of another by a
/// separator in its name. Wrappers that rename a tool do not change its source.
///
/// ```
/// use countersign::call::ToolSource;
///
/// let source = ToolSource::server("github", "create_issue");
/// assert_eq!((source.set(), source.tool()), ("github", "create_issue"));
/// assert_ne!(source, ToolSource::toolset("github", "create_issue"));
/// ```
///
/// Its `Display` is for people:
///
/// ```
/// use countersign::call::ToolSource;
///
/// assert_eq!(ToolSource::server("github", "create_issue").to_string(), "`create_issue` of MCP server `github`");
/// assert_eq!(ToolSource::toolset("files", "rm").to_string(), "`rm` of toolset `files`");
/// assert!(ToolSource::server("a", "b").is_server());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolSource {
    server: bool,
    set: Arc<str>,
    tool: Arc<str>,
}

impl ToolSource {
    /// A tool of the toolset with this [id](crate::Toolset::id).
    #[must_use]
    pub fn toolset(id: impl Into<Arc<str>>, tool: impl Into<Arc<str>>) -> Self {
        Self { server: false, set: id.into(), tool: tool.into() }
    }

    /// A tool of the MCP server that the user's configuration gives this name. A server's own name for itself is never
    /// used, because any server can claim any name.
    #[must_use]
    pub fn server(name: impl Into<Arc<str>>, tool: impl Into<Arc<str>>) -> Self {
        Self { server: true, set: name.into(), tool: tool.into() }
    }

    /// Returns `true` if the tool is one of an MCP server.
    ///
    /// ```
    /// use countersign::call::ToolSource;
    /// let (ours, theirs) = (ToolSource::toolset("files", "read"), ToolSource::server("files", "read"));
    /// assert!(theirs.is_server() && !ours.is_server());
    /// assert_ne!(ours, theirs, "a server cannot take the place of a toolset by its name");
    /// ```
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.server
    }

    /// The id of the toolset, or the name of the MCP server.
    #[must_use]
    pub fn set(&self) -> &str {
        &self.set
    }

    /// The name of the tool in its toolset or at its server.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// For people, never to be parsed: the names may contain any character.
impl fmt::Display for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.server { "MCP server" } else { "toolset" };
        write!(f, "`{}` of {kind} `{}`", self.tool.escape_debug(), self.set.escape_debug())
    }
}
