//! The permission stack between the model and the files. Read [`stack`] from top to bottom.
//!
//! ```text
//!  read_file("~/notes/../a.txt")
//!      │
//!  Paths       rewrites paths: everything inside sees, shows and runs `a.txt`
//!  Outside     denies what is not in the workspace, as it is written or behind its links
//!  Secrets     denies `.env`, keys and the like
//!  ReadOnly    denies every change; absent unless `--read-only`
//!  Changes     asks about writes, moves and deletes, and about tools of a server (`--mcp`); allows reads; denies what
//!              it does not know
//!  tower       at most four tools at once, and ten seconds for each
//!      │
//!  the tool
//! ```
//!
//! The strictest decision wins: a DENY beats an ASK, and an ASK beats an ALLOW, in any order. Nothing in the stack
//! waits for a person: a call that needs an approval is deferred, and passes through the whole stack again once it is
//! approved.

use std::time::Duration;

use countersign::decision::Preview;
use countersign::decision::ToolBlocked;
use countersign::deferred::metadata::GRANTABLE;
use countersign::{
    BoxError, Decision, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt as _, Tools,
    ToolsExt as _, decide_fn,
};
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;

use crate::sandbox::Sandbox;
use crate::tools;

/// The tools with all layers, outermost first. The tools of a server are inside of the same layers.
pub(crate) fn stack(read_only: bool, server: Option<Tools>) -> Tools {
    let files = Tools::from(tools::files());
    let tools = match server {
        Some(server) => Tools::combined([files, server]),
        None => files,
    };
    tools.layered(
        ServiceBuilder::new()
            .layer(decide_fn(rewrite_paths).named("Paths"))
            .layer(decide_fn(deny_outside).named("Outside"))
            .layer(decide_fn(deny_secrets).named("Secrets"))
            .layer(read_only.then_some(ReadOnly).into_layer())
            .layer(Changes.into_layer())
            // Tower's own layers. A deferred call has left the stack, so they measure tools and not people.
            .layer(ConcurrencyLimitLayer::new(4))
            .layer(TimeoutLayer::new(Duration::from_secs(10))),
    )
}

/// Rewrites every path to its canonical form. A path without one is left for the next layer to deny. All layers inside,
/// the person who is asked and the tool see the same path.
fn rewrite_paths(_: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    let sandbox = call.context().deps::<Sandbox>()?;
    let mut args = call.args().clone();
    for (name, path) in paths(call)? {
        if let Ok(path) = sandbox.normalise(path) {
            args = args.with(name, path);
        }
    }
    Ok(Decision::allow().with_args(args))
}

/// Denies paths outside the workspace: `..`, absolute paths, and links that lead out, even if nothing exists there yet.
fn deny_outside(_: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    let sandbox = call.context().deps::<Sandbox>()?;
    for (_, path) in paths(call)? {
        if let Err(refused) = sandbox.resolve(path) {
            return Ok(Decision::deny(format!("{refused}.")));
        }
    }
    Ok(Decision::allow())
}

/// Denies paths that may contain secrets, by their own names and by the names of what links lead to.
fn deny_secrets(_: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    let sandbox = call.context().deps::<Sandbox>()?;
    for (_, path) in paths(call)? {
        // An error denies as well: the model learns which layer failed, and the host learns why.
        if sandbox.both(path)?.iter().any(|path| is_secret(path)) {
            return Ok(Decision::deny(format!("`{path}` may hold secrets.")));
        }
    }
    Ok(Decision::allow())
}

/// Whether any part of a path has the name of a secret. Case is ignored, as some file systems ignore it.
fn is_secret(path: &str) -> bool {
    let names = [".aws", ".git", ".gnupg", ".netrc", ".npmrc", ".ssh"];
    let starts = [".env", "credentials", "id_ed25519", "id_rsa", "secrets"];
    let ends = [".key", ".keystore", ".p12", ".pem", ".pfx"];
    path.to_lowercase().split('/').any(|part| {
        names.contains(&part)
            || starts.iter().any(|start| part.starts_with(start))
            || ends.iter().any(|end| part.ends_with(end))
    })
}

/// A middleware that denies every change.
struct ReadOnly;

impl ToolMiddleware for ReadOnly {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "list_files" | "read_file" => Decision::allow(),
            _ => Decision::deny("The workspace is read-only today."),
        }
    }
}

/// A middleware that allows reads and asks about changes.
///
/// Each question has a key, so that an approval covers it even if its text changes until the approved pass. A write
/// shows its difference to the file, a deletion the first lines of the file. The question is pinned to a digest of the
/// full content: when the file has changed by the approved pass, it is another question, and a person is asked again.
struct Changes;

/// How many lines of a file that is deleted are shown.
const FIRST_LINES: usize = 5;

impl ToolMiddleware for Changes {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "list_files" | "read_file" => Decision::allow(),
            _ if is_of_a_server(cx) => {
                Decision::ask("calls a tool of the MCP server, which may do anything")
                    .with_key("server")
            }
            // A person may answer later moves of the same file to the same place in advance (rule G3).
            "move_file" => {
                Decision::ask("moves a file").with_key("move").with_metadata(GRANTABLE, true)
            }
            "delete_file" | "write_file" => ask_about_content(cx, call).await.into(),
            _ => Decision::deny("No rule allows this tool."),
        }
    }
}

/// Whether the call is of a tool of a server. By its source and not by its name, which a server chooses.
fn is_of_a_server(cx: &RunContext) -> bool {
    let source = cx.tool_definition().and_then(|definition| definition.source());
    source.is_some_and(|source| source.is_server())
}

async fn ask_about_content(cx: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    let path = call.args().str("path").unwrap_or_default();
    let file = cx.deps::<Sandbox>()?.resolve(path)?;
    let content = match tokio::fs::metadata(&file).await {
        Ok(found) if found.is_file() => Some(tokio::fs::read(&file).await?),
        // Nothing is there, or something that the tool will refuse.
        _ => None,
    };
    let bytes = content.as_ref().map_or(0, Vec::len);
    let old = content.as_deref().map(String::from_utf8_lossy);
    let (ask, preview) = match (call.name(), old.as_deref()) {
        ("delete_file", None) => {
            return Ok(Decision::ask("deletes what is not there").with_key("delete"));
        }
        ("delete_file", Some(old)) => (
            Decision::ask(format!("deletes {bytes} bytes")).with_key("delete"),
            Preview::first_lines(path, old, FIRST_LINES),
        ),
        (_, old) => {
            let ask = match old {
                Some(_) => Decision::ask(format!("replaces {bytes} bytes")),
                None => Decision::ask("writes a new file"),
            };
            (ask.with_key("write"), Preview::diff(path, old, call.args().str("text")))
        }
    };
    // The text is not the whole file where a file is no UTF-8, so the digest covers the bytes too.
    Ok(ask.with_preview(preview.covering(content.unwrap_or_default())))
}

/// The arguments of a tool that are paths. A tool that is not listed is denied, so that a new tool has no permissions.
fn paths(call: &ToolCall) -> Result<Vec<(&'static str, &str)>, ToolBlocked> {
    let names: &[&'static str] = match call.name() {
        "delete_file" | "list_files" | "read_file" | "write_file" => &["path"],
        "move_file" => &["from", "to"],
        // Which of its arguments are paths is not known, so each of its calls is asked about.
        _ if is_of_a_server(call.context()) => &[],
        _ => return Err(ToolBlocked::new("No rule allows this tool.")),
    };
    let path = |name| call.args().str(name).map(|path| (name, path));
    let missing = || ToolBlocked::new("A path is missing.");
    names.iter().map(|name| path(*name).ok_or_else(missing)).collect()
}
