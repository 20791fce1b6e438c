//! Replaces `mcp` in a build without the feature `mcp`.

use countersign::Tools;

/// Always an error, which says how to enable servers.
pub(crate) async fn tools(command: &str) -> Result<Tools, String> {
    Err(format!(
        "`--mcp` needs the feature `mcp`: cargo run -p assistant --features mcp -- --mcp \"{command}\""
    ))
}
