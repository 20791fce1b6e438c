//! The errors of connecting to MCP servers and of serving.

use rmcp::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error of a connection to an MCP server, or of serving tools. Its text is one line that says what to do.
///
/// We cut texts of a server to 300 characters and escape them. A call that fails is no `McpError` but an outcome,
/// which the model is told. This error is for the program that connects or serves.
///
/// ```
/// use countersign_mcp::{Launch, McpError, McpToolset};
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
    /// The server does not answer at its URL, or answers otherwise than one of MCP.
    #[error(
        "MCP server `{server}` cannot be used at its URL: {problem}. Check the URL, and that the server runs there"
    )]
    Unreachable {
        /// The name of the server in the user's configuration.
        server: String,
        /// The error of the connection, or what the server has answered.
        problem: String,
    },
    /// The server could not list its tools.
    #[error("MCP server `{server}` could not list its tools: {problem}")]
    List {
        /// The name of the server in the user's configuration.
        server: String,
        /// The problem, in one line.
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
        /// The problem, in one line.
        problem: String,
    },
    /// A setting of the server or guard cannot be used.
    #[error("{problem}")]
    Config {
        /// The setting, and how to correct it.
        problem: String,
    },
}

/// The failure of a handshake in a few words: the library's own text names its types, and not the cause.
pub(crate) fn of_handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "its answer to the handshake is none".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "the connection has ended before the handshake was answered".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => of_transport(&*error.error),
        ClientInitializeError::JsonRpcError(refused) => {
            let known = supported(refused);
            let known = match known.is_empty() {
                true => String::new(),
                false => format!(" (it knows {})", known.join(", ")),
            };
            format!("it has refused the handshake: {}{known}", refused.message)
        }
        // It knows the earlier handshake alone, and what it says about that is the cause.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_handshake(fallback),
        other => other.to_string(),
    }
}

/// The revisions that a refusal says the server knows.
pub(crate) fn supported(refused: &ErrorData) -> Vec<String> {
    let data = refused.data.as_ref();
    let lists = ["supported", "supportedVersions", "supported_versions"];
    let list = lists.iter().find_map(|name| data?.get(name)?.as_array());
    let texts = list.into_iter().flatten().filter_map(|it| it.as_str());
    // Another text than a date is no revision, and may be anything.
    let is_revision =
        |it: &&str| it.len() == 10 && it.bytes().all(|b| b == b'-' || b.is_ascii_digit());
    texts.filter(is_revision).map(str::to_owned).collect()
}

fn of_transport(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let error: &(dyn std::error::Error + 'static) =
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(failed)) => failed,
            Some(StreamableHttpError::AuthRequired(_)) => {
                return "it answers only requests with a secret (401 Unauthorized)".to_owned();
            }
            _ => error,
        };
    // The innermost cause says the most: the connection is refused, the name is unknown, the certificate is none.
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
