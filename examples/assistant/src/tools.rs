//! The tools: they list, read, write, move and delete real files.
//!
//! Where a layer asks about a call, a tool shows what the call would change: a write the difference to the file, a
//! deletion the first lines of the file. The question is pinned to a digest of the full content: when the file has changed
//! by the approved pass, a person is asked again.
//!
//! Whatever the stack has decided, a tool checks the path with the [`Sandbox`] again when it opens a file. A later tool
//! has to see the changes of an earlier one, so tools that change files are `sequential`: they run one after the other,
//! in the model's order.
#![expect(clippy::needless_pass_by_value, reason = "a tool is given its context and its arguments")]

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;

use countersign::decision::Preview;
use countersign::outcome::ToolFailed;
use countersign::schemars::JsonSchema;
use countersign::toolset::blocking_tool_fn;
use countersign::{FunctionToolset, RunContext, ToolError};
use serde::{Deserialize, Serialize};

use crate::sandbox::Sandbox;

/// The maximum number of entries of a folder that are listed.
const MOST_ENTRIES: usize = 500;
/// The maximum number of bytes of a file that are read.
const MOST_BYTES: u64 = 64 * 1024;
/// The number of lines that are shown of a file that is deleted.
const FIRST_LINES: usize = 5;

/// The toolset. File operations block, so each tool runs on a blocking thread.
pub(crate) fn files() -> FunctionToolset {
    let list = "Lists a folder; `~` is the workspace.";
    let read = "Reads a text file, at most its first 64 KiB.";
    let write = "Writes a text file, with the folders it is in.";
    let rename = "Moves a file to a path where nothing is.";
    let delete = "Deletes a file.";
    let writing = blocking_tool_fn("write_file", write, write_file).with_preview(preview_of_write);
    let deleting =
        blocking_tool_fn("delete_file", delete, delete_file).with_preview(preview_of_deletion);
    FunctionToolset::new()
        .id("files")
        .tool(blocking_tool_fn("list_files", list, list_files))
        .tool(blocking_tool_fn("read_file", read, read_file))
        .tool(writing.sequential())
        .tool(blocking_tool_fn("move_file", rename, move_file).sequential())
        .tool(deleting.sequential())
}

#[derive(Deserialize, JsonSchema)]
struct OnePath {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    path: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct MoveFile {
    from: String,
    to: String,
}

/// The entries of a folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) path: String,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    Other,
}

fn list_files(cx: RunContext, args: OnePath) -> Result<Listing, ToolError> {
    let sandbox = cx.deps::<Sandbox>()?;
    let folder = resolve(&cx, &args.path)?;
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(&args.path))?.take(MOST_ENTRIES) {
        let entry = entry.map_err(failed(&args.path))?;
        let kind = match entry.file_type().map_err(failed(&args.path))? {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_file() => Kind::File,
            _ => Kind::Other,
        };
        entries.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let path = sandbox.normalise(&args.path).map_err(|refused| fail(refused.to_string()))?;
    Ok(Listing { path, entries })
}

fn read_file(cx: RunContext, args: OnePath) -> Result<String, ToolError> {
    let file = existing(&args.path, resolve(&cx, &args.path)?)?;
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(failed(&args.path))?;
    opened.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed(&args.path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write_file(cx: RunContext, args: WriteFile) -> Result<String, ToolError> {
    let file = unlinked(&cx, &args.path)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed(&args.path))?;
    }
    fs::write(file, &args.text).map_err(failed(&args.path))?;
    Ok(format!("wrote {} bytes to `{}`", args.text.len(), args.path))
}

fn move_file(cx: RunContext, args: MoveFile) -> Result<String, ToolError> {
    let from = existing(&args.from, unlinked(&cx, &args.from)?)?;
    let to = unlinked(&cx, &args.to)?;
    if to.symlink_metadata().is_ok() {
        return Err(fail(format!("`{}` is there already", args.to)));
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed(&args.to))?;
    }
    fs::rename(from, to).map_err(failed(&args.from))?;
    Ok(format!("moved `{}` to `{}`", args.from, args.to))
}

fn delete_file(cx: RunContext, args: OnePath) -> Result<String, ToolError> {
    let file = existing(&args.path, unlinked(&cx, &args.path)?)?;
    fs::remove_file(file).map_err(failed(&args.path))?;
    Ok(format!("deleted `{}`", args.path))
}

async fn preview_of_write(cx: RunContext, args: WriteFile) -> Result<Preview, ToolError> {
    let old = content(&cx, &args.path).await?;
    let text = old.as_deref().map(String::from_utf8_lossy);
    let preview = Preview::diff(&args.path, text.as_deref(), args.text.as_str());
    // The text is not the whole file where a file is no UTF-8, so the digest covers the bytes too.
    Ok(preview.covering(old.unwrap_or_default()))
}

async fn preview_of_deletion(cx: RunContext, args: OnePath) -> Result<Preview, ToolError> {
    let Some(old) = content(&cx, &args.path).await? else {
        return Err(fail(format!("`{}` is not there", args.path)));
    };
    let preview = Preview::first_lines(&args.path, &String::from_utf8_lossy(&old), FIRST_LINES);
    Ok(preview.covering(old))
}

/// The content of a file. `None` where nothing is there, or something that the tools will refuse.
async fn content(cx: &RunContext, path: &str) -> Result<Option<Vec<u8>>, ToolError> {
    let file = resolve(cx, path)?;
    match tokio::fs::metadata(&file).await {
        Ok(found) if found.is_file() => {
            tokio::fs::read(&file).await.map(Some).map_err(failed(path))
        }
        _ => Ok(None),
    }
}

/// The real place of a path. The stack has checked it; it is checked again here, as late as possible.
fn resolve(cx: &RunContext, path: &str) -> Result<PathBuf, ToolError> {
    let found = cx.deps::<Sandbox>()?.resolve(path);
    found.map_err(|refused| fail(refused.to_string()))
}

/// As [`resolve`], for a change. The path has to name the file itself, since people may misread what a change does to a
/// link.
fn unlinked(cx: &RunContext, path: &str) -> Result<PathBuf, ToolError> {
    let sandbox = cx.deps::<Sandbox>()?;
    match sandbox.both(path) {
        Ok([written, real]) if written == real => resolve(cx, path),
        Ok([_, real]) => Err(fail(format!("`{path}` is a link to `{real}`"))),
        Err(refused) => Err(fail(refused.to_string())),
    }
}

/// Checks that a path is an ordinary file: reading a pipe or a device could block for ever.
fn existing(path: &str, file: PathBuf) -> Result<PathBuf, ToolError> {
    match fs::metadata(&file).map_err(failed(path))?.is_file() {
        true => Ok(file),
        false => Err(fail(format!("`{path}` is not a file"))),
    }
}

/// A failure with a text for the model. A `?` on an `io::Error` would send the model the error's own text instead.
fn fail(message: String) -> ToolError {
    ToolFailed::new(message).into()
}

/// The kind of an error, with the path as the model knows it: the error's own text may reveal more about the machine.
fn failed(path: &str) -> impl Fn(std::io::Error) -> ToolError {
    move |error| match error.kind() {
        ErrorKind::NotFound => fail(format!("`{path}` is not there")),
        kind => fail(format!("`{path}`: {kind}")),
    }
}
