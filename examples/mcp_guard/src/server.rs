//! A small server of files, with the names and arguments of the official one. It checks nothing but its own folder:
//! what is allowed in it is the guard's business.

use std::error::Error;
use std::path::{Path, PathBuf};

use countersign::schemars::{self, JsonSchema};
use countersign::toolset::blocking_tool_fn;
use countersign::{FunctionToolset, RunContext, ToolError};
use countersign_mcp as mcp;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct OnePath {
    path: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    path: PathBuf,
    content: String,
}

#[derive(Deserialize, JsonSchema)]
struct Move {
    source: PathBuf,
    destination: PathBuf,
}

/// Serves the files of a folder on stdio, until the client ends the connection.
pub(crate) async fn serve(folder: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let root = folder.canonicalize()?;
    let inside = move |path: &Path| -> Result<PathBuf, ToolError> {
        let parent = path.parent().map(Path::canonicalize).transpose()?;
        match (parent, path.file_name()) {
            (Some(parent), Some(name)) if parent.starts_with(&root) => Ok(parent.join(name)),
            _ => Err("The path is not in the folder.".into()),
        }
    };
    let (read, write, rename) = (inside.clone(), inside.clone(), inside);
    let tools = FunctionToolset::new()
        .id("files")
        .tool(blocking_tool_fn(
            "read_text_file",
            "Reads a text file",
            move |_: RunContext, it: OnePath| {
                Ok::<_, ToolError>(std::fs::read_to_string(read(&it.path)?)?)
            },
        ))
        .tool(blocking_tool_fn("write_file", "Writes a file", move |_: RunContext, it: Write| {
            std::fs::write(write(&it.path)?, it.content)?;
            Ok::<_, ToolError>(format!("Successfully wrote to {}", it.path.display()))
        }))
        .tool(blocking_tool_fn("move_file", "Moves a file", move |_: RunContext, it: Move| {
            std::fs::rename(rename(&it.source)?, rename(&it.destination)?)?;
            Ok::<_, ToolError>("Successfully moved")
        }));
    Ok(mcp::serve(tools).named("files").stdio().await?)
}
