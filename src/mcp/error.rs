//! The errors of connecting to MCP servers and of serving.

/// An error of a connection to an MCP server, or of serving tools. Its text is one line that says what to do.
///
/// Texts of a server are cut to 300 characters and escaped. A call that fails is no `McpError` but an outcome, which
/// the model is told; this error is for the program that connects or serves.
///
/// ```
/// use countersign::mcp::{Launch, McpError, McpToolset};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let failed = McpToolset::connect("git", Launch::command("/nowhere/mcp-server-git")).await;
/// let Err(McpError::Start { server, .. }) = failed else { panic!() };
/// assert_eq!(server, "git");
/// # });
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The command of the server could not be started.
    #[error(
        "MCP server `{server}` could not be started: {problem}. Check that the command exists and may be executed"
    )]
    Start {
        /// The name of the server in the user's configuration.
        server: String,
        /// The error of the operating system.
        problem: String,
    },
    /// The server does not speak MCP, ended at once, or speaks another version.
    #[error(
        "`{server}` does not answer as an MCP server: {problem}. Run its command by hand to see what it prints"
    )]
    Handshake {
        /// The name of the server in the user's configuration.
        server: String,
        /// The message or the error in place of the handshake.
        problem: String,
    },
    /// The server could not list its tools.
    #[error("MCP server `{server}` could not list its tools: {problem}")]
    List {
        /// The name of the server in the user's configuration.
        server: String,
        /// What went wrong, in one line.
        problem: String,
    },
    /// The connection is lost, and the server is started again only after a while.
    #[error("MCP server `{server}` is gone; the next attempt to reach it is in {seconds} s")]
    Down {
        /// The name of the server in the user's configuration.
        server: String,
        /// The seconds until the next attempt.
        seconds: u64,
    },
    /// The transport of the served tools has failed.
    #[error("serving MCP has failed: {problem}")]
    Serve {
        /// What went wrong, in one line.
        problem: String,
    },
    /// A setting of the server or guard cannot be used.
    #[error("{problem}")]
    Config {
        /// The setting, and how to correct it.
        problem: String,
    },
}
