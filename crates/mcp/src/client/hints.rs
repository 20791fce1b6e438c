//! A server's hints about its tools, which can make a call stricter and nothing else (rule M4).
//!
//! A hint is a claim of another party. If it says that a tool is dangerous, we believe it, as a server gains nothing
//! by it. If it says that a tool is harmless, we do not. So a hint is only ever a reason to ask, and a tool without
//! hints is what the protocol takes it for: destructive, and open to the world.
//!
//! | `readOnlyHint` | `destructiveHint` | `openWorldHint` | destructive | open to the world |
//! |---|---|---|---|---|
//! | absent, `false` | absent, `true` | absent, `true` | yes | yes |
//! | absent, `false` | `false` | `false` | no | no |
//! | `true` | any | absent, `true` | no | yes |
//!
//! A hint of another type than a boolean counts as absent.

use std::borrow::Cow;

use serde_json::Value;

use countersign::call::{RunContext, ToolCall, ToolDefinition};
use countersign::decision::Decision;
use countersign::middleware::ToolMiddleware;

/// Asks about calls of tools which, by their server's own hints, destroy something or reach beyond the server.
///
/// The layer asks, or leaves the decision to others, so no hint makes a call laxer: where a rule asks or denies, it
/// stays so. A tool that has no hints counts as both, as the protocol says. A server that is careless or lies can hint
/// that a tool is harmless. If you want to be asked about a call in any case, write a rule.
///
/// ```
/// use countersign_mcp::{AskByHints, Guard, Launch};
/// use countersign::ledger::{Ledger, MemoryStore};
/// use countersign::{Decision, ToolMiddlewareExt, ToolsExt, decide_fn};
///
/// let launch = Launch::command("mcp-server-filesystem").args(["."]);
/// let guard = Guard::new("files", launch, Ledger::new(MemoryStore::new())).layers(|tools| {
///     // Everything is allowed that the server does not call destructive.
///     tools.layered(decide_fn(|_, _| Decision::allow())).layered(AskByHints::destructive().into_layer())
/// });
/// # let _ = guard;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it asks about nothing until it is layered around tools"]
pub struct AskByHints {
    destructive: bool,
    open_world: bool,
}

impl AskByHints {
    /// Asks about tools that may destroy something: all but those with `readOnlyHint: true` or `destructiveHint: false`.
    pub fn destructive() -> Self {
        Self { destructive: true, open_world: false }
    }

    /// Asks about tools that reach beyond the server, such as the web: all but those with `openWorldHint: false`.
    pub fn open_world() -> Self {
        Self { destructive: false, open_world: true }
    }

    /// Asks about what either of the two asks about.
    ///
    /// ```
    /// use countersign_mcp::AskByHints;
    ///
    /// let both = AskByHints::destructive().or(AskByHints::open_world());
    /// assert_eq!(both, AskByHints::open_world().or(AskByHints::destructive()));
    /// ```
    pub fn or(self, other: Self) -> Self {
        let destructive = self.destructive || other.destructive;
        Self { destructive, open_world: self.open_world || other.open_world }
    }
}

/// The value of a hint, if it has one.
fn hint(definition: Option<&ToolDefinition>, name: &str) -> Option<bool> {
    let annotations = definition?.metadata().get("mcp")?.get("annotations")?;
    annotations.get(name).and_then(Value::as_bool)
}

impl ToolMiddleware for AskByHints {
    fn name(&self) -> Cow<'static, str> {
        "server's hints".into()
    }

    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        let of = |name| hint(cx.tool_definition(), name);
        let is_harmless = of("readOnlyHint") == Some(true) || of("destructiveHint") == Some(false);
        let is_closed = of("openWorldHint") == Some(false);
        let reasons = [
            (self.destructive && !is_harmless, "the server does not say that it destroys nothing"),
            (self.open_world && !is_closed, "the server does not say that it stays within itself"),
        ];
        let reasons: Vec<_> = reasons.iter().filter(|(asks, _)| *asks).map(|(_, it)| *it).collect();
        match reasons.is_empty() {
            true => Decision::undecided(),
            false => Decision::ask(reasons.join(", and ")).with_key("hints"),
        }
    }
}
