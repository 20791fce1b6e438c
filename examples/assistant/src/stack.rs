//! The permission stack between the model and the files: a file of rules, and two layers in Rust for what a file cannot
//! say. Read [`stack`] from top to bottom.
//!
//! ```text
//!  read_file("~/notes/../a.txt")
//!      │
//!  Paths       rewrites paths: everything inside sees, shows and runs `a.txt`
//!  rules       `rules.toml`: allows reads; asks about writes, moves, deletes, and tools of a server (`--mcp`); denies
//!              what is outside of the workspace, and `.env`, keys and the like
//!  ReadOnly    denies every change; absent unless `--read-only`
//!  tower       at most four tools at once, and ten seconds for each
//!      │
//!  the tool    shows what a call would change, where the rules ask
//! ```
//!
//! The strictest decision wins: a DENY beats an ASK, and an ASK beats an ALLOW, in any order. Nothing in the stack
//! waits for a person: a call that needs an approval is deferred, and passes through the whole stack again once it is
//! approved.

use std::path::Path;
use std::time::Duration;

use countersign::{
    BoxError, Decision, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt as _, Tools,
    ToolsExt as _, decide_fn,
};
use countersign_rules::{Rules, RulesError};
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;

use crate::sandbox::{Refused, Sandbox};
use crate::tools;

/// The tools with all layers, outermost first. The tools of a server are inside of the same layers.
pub(crate) fn stack(rules: impl ToolMiddleware, read_only: bool, server: Option<Tools>) -> Tools {
    let files = Tools::from(tools::files());
    let tools = match server {
        Some(server) => Tools::combined([files, server]),
        None => files,
    };
    tools.layered(
        ServiceBuilder::new()
            .layer(decide_fn(rewrite_paths).named("Paths"))
            .layer(rules.into_layer())
            .layer(read_only.then_some(ReadOnly).into_layer())
            // Tower's own layers. A deferred call has left the stack, so they measure tools and not people.
            .layer(ConcurrencyLimitLayer::new(4))
            .layer(TimeoutLayer::new(Duration::from_secs(10))),
    )
}

/// The rules for a workspace: those beside this file, or those of another file.
pub(crate) fn rules(workspace: &Path, file: Option<&Path>) -> Result<Rules, RulesError> {
    let rules = Rules::builder().root(workspace);
    match file {
        Some(file) => rules.file(file),
        None => rules.text("rules.toml", include_str!("../rules.toml")),
    }
    .load()
}

/// Rewrites every path to its canonical form, so that all layers inside, the person who is asked and the tool see the
/// same path. A path that leads out has no such form, and is left for the rules to deny.
fn rewrite_paths(cx: &RunContext, call: &ToolCall) -> Result<Decision, BoxError> {
    // Which arguments of a server's tool are paths is not known. By its source and not by its name, which a server
    // chooses.
    let source = cx.tool_definition().and_then(|definition| definition.source());
    if source.is_some_and(|source| source.is_server()) {
        return Ok(Decision::allow());
    }
    let sandbox = cx.deps::<Sandbox>()?;
    let mut args = call.args().clone();
    for name in ["path", "from", "to"] {
        let Some(path) = call.args().str(name) else { continue };
        match sandbox.normalise(path) {
            Ok(path) => args = args.with(name, path),
            Err(refused @ Refused::NotPlain(_)) => {
                return Ok(Decision::deny(format!("{refused}.")));
            }
            Err(_) => {}
        }
    }
    Ok(Decision::allow().with_args(args))
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
