//! The tools of an MCP server, which `--mcp` adds behind the stack.

use countersign::{Tools, ToolsExt as _};
use countersign_mcp::{Launch, McpToolset};

/// Starts the server with this command, whose words are separated by spaces, and gives its tools. Their names begin
/// with `mcp_`, as a server may have tools of the same names as ours.
pub(crate) async fn tools(command: &str) -> Result<Tools, String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("`--mcp` needs the command of a server")?;
    let launch = Launch::command(program).args(words);
    let server = McpToolset::connect("mcp", launch).await.map_err(|error| error.to_string())?;
    Ok(server.prefixed("mcp"))
}
