//! The tools of a server behind its pins: calls are judged by what was accepted, and only that is offered.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Pinned, Pins};
use crate::client::toolset::{JUDGED, McpToolset};
use crate::form::HISTORY;
use countersign::args::Args;
use countersign::call::{RunContext, ToolCall, ToolDefinition};
use countersign::decision::Decision;
use countersign::error::BoxError;
use countersign::layer::ToolMiddlewareExt as _;
use countersign::ledger::{AskState, Ledger, LedgerError};
use countersign::middleware::ToolMiddleware;
use countersign::outcome::{ToolError, ToolReturn};
use countersign::tools::{Tools, ToolsExt as _};
use countersign::toolset::{Permit, Toolset};

/// The key of the question about a call of a tool that was not accepted, in the set with this name.
fn not_accepted(set: &str) -> String {
    format!("not accepted in {set}")
}

/// Cancels the asks of served calls that were asked about only because their tools were not accepted, once these are.
/// An equal call is not asked about any more, so nothing would use the answers.
///
/// We do it where the tools are accepted ([`Proposal::accept`](super::Proposal::accept)), for the calls that are held at
/// this moment. Each guard that finds them accepted does it, too, as any surface can decide about a proposal. A failure
/// is harmless: the asks expire.
pub(super) async fn close_asks(ledger: &Ledger, set: &str) {
    let key = not_accepted(set);
    let closed = async {
        for record in ledger.list(Some(AskState::Pending), u32::MAX).await?.records {
            let mut questions = record.ask.questions().iter().filter(|it| it.layer() != HISTORY);
            let is_first = questions.next().is_some_and(|question| question.key() == key);
            if is_first && questions.next().is_none() {
                let why = "countersign: the tools of the server were accepted";
                ledger.cancel(record.ask.id(), why).await?;
            }
        }
        Ok::<_, LedgerError>(())
    };
    if let Err(error) = closed.await {
        tracing::warn!(target: "countersign::mcp", set, %error, "asks about accepted tools stay open");
    }
}

/// Asks about calls of tools that were never accepted, and denies those of tools that have changed since.
pub(crate) struct PinLayer {
    pub(crate) pins: Arc<Pins>,
    /// `true` if asks about nothing but tools that were not accepted are closed when they are. An equal call of a
    /// client runs then. A suspended turn needs an answer to the ask that it has.
    pub(crate) closes_asks: bool,
}

impl ToolMiddleware for PinLayer {
    fn name(&self) -> Cow<'static, str> {
        "accepted tools".into()
    }

    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        let source = cx.tool_definition().and_then(ToolDefinition::source);
        let Some(source) = source else { return Decision::deny("The tool has no source.") };
        if JUDGED.contains(&source.tool()) {
            return Decision::undecided();
        }
        let server = &self.pins.server;
        let standing = match self.pins.standing(source.tool()).await {
            Ok(standing) => standing,
            Err(error) => {
                tracing::error!(target: "countersign::mcp", server, %error, "the pins cannot be read");
                return Decision::deny("Whether this tool was accepted cannot be read.");
            }
        };
        match standing {
            Some(Pinned::Same) => Decision::undecided(),
            Some(Pinned::New(ask)) => {
                let key = match self.closes_asks {
                    true => not_accepted(&self.pins.proposals.set),
                    false => "not accepted".to_owned(),
                };
                Decision::ask(format!(
                    "This tool of `{server}` was not accepted yet (accept the server's tools once: ask {ask})."
                ))
                .with_key(key)
            }
            Some(Pinned::Changed(ask)) => Decision::deny(format!(
                "`{server}` has changed this tool since it was accepted. A person has to accept the change (ask {ask})."
            )),
            Some(Pinned::Denied(ask)) => Decision::deny(format!(
                "A person has denied this tool of `{server}` as it is now (ask {ask}), and may still accept it."
            )),
            Some(Pinned::Program { name, ask, is_denied }) => {
                let name = countersign::show::escape_name(&name);
                let what = match is_denied {
                    true => format!(
                        "A person has denied the present content of `{name}`, by which `{server}` is started (ask {ask}), and may still accept it."
                    ),
                    false => format!(
                        "`{server}` is started by `{name}`, which is not as it was accepted. A person has to accept the change (ask {ask})."
                    ),
                };
                Decision::deny(what)
            }
            None => Decision::deny(format!("`{server}` does not offer this tool any more.")),
        }
    }
}

impl McpToolset {
    /// The tools as a person has accepted them (rule M4), kept in this ledger: the pins of a [`Guard`](crate::Guard), for
    /// an agent of your own.
    ///
    /// Until a person has accepted the server's tools, all are offered, and each call asks. From then on a tool is
    /// offered only as it was accepted. The call of a tool that has changed is denied, and so are all calls when the
    /// program of the server, or a script that its command names, has another content. People accept in `countersign
    /// pins`, or where your program shows each [`Proposal`](super::Proposal). Another command or URL is another server.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::{self as mcp, Launch, McpToolset, Proposal};
    /// use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct NoArgs {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # let tools = FunctionToolset::new().tool(tool_fn("look", "Looks", async |_: NoArgs| Ok::<_, ToolError>("seen")));
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let url = format!("http://{}/mcp", listener.local_addr()?);
    /// # let server = mcp::serve(tools).router()?;
    /// # tokio::spawn(async move { axum::serve(listener, server).await });
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let tools = McpToolset::connect("files", Launch::url(url)).await?.pinned(ledger.clone());
    /// let turn = Turn::new(tools);
    /// let look = || vec![ToolCall::new("c1", "look", json!({}))];
    /// assert!(turn.run(look()).await?.calls()[0].outcome().is_deferred());
    ///
    /// for proposal in Proposal::list(&ledger).await? {
    ///     proposal.accept(&ledger, "ann").await?;
    /// }
    /// assert!(turn.run(look()).await?.calls()[0].outcome().is_returned());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn pinned(self, ledger: Ledger) -> Tools {
        let launch = self.connection.launch.digest();
        let people = (None, "see `mcp::Proposal::accept`");
        let pins = Pins::new(ledger, self.clone(), &launch, people);
        let layer = PinLayer { pins: Arc::clone(&pins), closes_asks: false };
        PinnedTools { toolset: self, pins }.layered(layer.into_layer())
    }
}

/// The tools of a server as they were accepted.
struct PinnedTools {
    toolset: McpToolset,
    pins: Arc<Pins>,
}

impl Toolset for PinnedTools {
    fn id(&self) -> &str {
        self.toolset.id()
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let listed = self.toolset.list(false).await?;
        self.pins.look().await;
        let shown = self.pins.shown(&listed).await?;
        Ok(shown.iter().map(|tool| self.toolset.definition(tool)).collect())
    }

    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        self.toolset.validate(tool, args)
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        self.toolset.run(permit).await
    }
}
