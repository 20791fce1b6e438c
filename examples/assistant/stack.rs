//! The permission stack: what stands between the model and the files. Read [`stack`] from top to bottom.
//!
//! ```text
//!  read_file("~/notes/../a.txt")
//!      │
//!  Paths       rewrites paths: everything inside sees, shows and runs `a.txt`
//!  Outside     denies what is not in the workspace, as it is written or behind its links
//!  Secrets     denies `.env`, keys and the like
//!  ReadOnly    denies every change; absent unless `--read-only`
//!  Changes     asks about writes, moves and deletes; allows reads; denies what it does not know
//!  tower       at most four tools at once, and ten seconds for each
//!      │
//!  the tool
//! ```
//!
//! The strictest answer wins: a DENY beats an ASK, an ASK beats an ALLOW, wherever they stand. Nobody waits in here:
//! a call that somebody is asked about comes back through the whole stack once it is approved.

use std::time::Duration;

use countersign::{
    BoxError, Decision, RunContext, ToolBlocked, ToolCall, ToolMiddleware, ToolMiddlewareExt as _,
    Tools, ToolsExt as _,
};
use sha2::{Digest as _, Sha256};
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;

use crate::sandbox::Sandbox;
use crate::tools;

/// The tools with everything that is in front of them, outermost first.
pub(crate) fn stack(read_only: bool) -> Tools {
    tools::files().layered(
        ServiceBuilder::new()
            .layer(Paths.into_layer())
            .layer(Outside.into_layer())
            .layer(Secrets.into_layer())
            .layer(read_only.then_some(ReadOnly).into_layer())
            .layer(Changes.into_layer())
            // Tower's own. They never see a question wait, so they measure tools and not people.
            .layer(ConcurrencyLimitLayer::new(4))
            .layer(TimeoutLayer::new(Duration::from_secs(10))),
    )
}

/// Rewrites every path to the one way to write it, relative to the workspace. What cannot be written so is left as
/// it is, for [`Outside`] to deny. The next layers, the person who is asked and the tool all see the same path.
struct Paths;

impl ToolMiddleware for Paths {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let rewrite = || -> Result<Decision, BoxError> {
            let sandbox = cx.deps::<Sandbox>()?;
            let mut args = call.args().clone();
            for name in path_args(call)? {
                if let Ok(path) = sandbox.normalise(path(call, name)?) {
                    args = args.with(*name, path);
                }
            }
            Ok(Decision::allow().with_args(args))
        };
        rewrite().into()
    }
}

/// Denies what is not in the workspace: `..`, absolute paths, links that lead out, also for files that do not exist
/// yet.
struct Outside;

impl ToolMiddleware for Outside {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let check = || -> Result<Decision, BoxError> {
            let sandbox = cx.deps::<Sandbox>()?;
            for name in path_args(call)? {
                if let Err(refused) = sandbox.resolve(path(call, name)?) {
                    return Ok(Decision::deny(format!("{refused}.")));
                }
            }
            Ok(Decision::allow())
        };
        check().into()
    }
}

/// Denies what may hold secrets, by its name and by the name of what a link leads to.
struct Secrets;

impl ToolMiddleware for Secrets {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let check = || -> Result<Decision, BoxError> {
            let sandbox = cx.deps::<Sandbox>()?;
            for name in path_args(call)? {
                let path = path(call, name)?;
                if sandbox.both(path)?.iter().any(|path| is_secret(path)) {
                    return Ok(Decision::deny(format!("`{path}` may hold secrets.")));
                }
            }
            Ok(Decision::allow())
        };
        check().into()
    }
}

/// Whether any part of a path has the name of a secret. Capitals do not matter: some file systems ignore them.
pub(crate) fn is_secret(path: &str) -> bool {
    let names = [".aws", ".git", ".gnupg", ".netrc", ".npmrc", ".ssh"];
    let starts = [".env", "credentials", "id_ed25519", "id_rsa", "secrets"];
    let ends = [".key", ".keystore", ".p12", ".pem", ".pfx"];
    path.to_lowercase().split('/').any(|part| {
        names.contains(&part)
            || starts.iter().any(|start| part.starts_with(start))
            || ends.iter().any(|end| part.ends_with(end))
    })
}

/// Denies every change.
struct ReadOnly;

impl ToolMiddleware for ReadOnly {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "list_files" | "read_file" => Decision::allow(),
            _ => Decision::deny("The workspace is read-only today."),
        }
    }
}

/// Allows reads, asks about changes.
///
/// Each question has a key, so that an approval covers it also when its text says it differently the next time.
/// Where content would be lost, the question is pinned to it: when the file has changed by the time of the answer,
/// that is another question, and it is asked.
struct Changes;

impl ToolMiddleware for Changes {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "list_files" | "read_file" => Decision::allow(),
            "move_file" => Decision::ask("moves a file").key("move"),
            "delete_file" | "write_file" => ask_about_content(cx, call).await.into(),
            _ => Decision::deny("No rule allows this tool."),
        }
    }
}

async fn ask_about_content(cx: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    let file = cx.deps::<Sandbox>()?.resolve(path(call, "path")?)?;
    let content = match tokio::fs::metadata(&file).await {
        Ok(found) if found.is_file() => Some(tokio::fs::read(&file).await?),
        _ => None,
    };
    let ask = match (call.name(), &content) {
        ("delete_file", None) => Decision::ask("deletes what is no file").key("delete"),
        ("delete_file", Some(old)) => {
            Decision::ask(format!("deletes {} bytes", old.len())).key("delete")
        }
        (_, None) => Decision::ask("writes a new file").key("write"),
        (_, Some(old)) => Decision::ask(format!("replaces {} bytes", old.len())).key("write"),
    };
    let digest = content.map_or("none".into(), |content| hex(&Sha256::digest(content)));
    Ok(ask.pin("content", digest))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The arguments of a tool that are paths. A tool that is not listed here is denied: a new one starts with nothing.
fn path_args(call: &ToolCall) -> Result<&'static [&'static str], ToolBlocked> {
    match call.name() {
        "delete_file" | "list_files" | "read_file" | "write_file" => Ok(&["path"]),
        "move_file" => Ok(&["from", "to"]),
        _ => Err(ToolBlocked::new("No rule allows this tool.")),
    }
}

fn path<'a>(call: &'a ToolCall, name: &str) -> Result<&'a str, ToolBlocked> {
    call.args().str(name).ok_or_else(|| ToolBlocked::new(format!("`{name}` must be a path.")))
}
