//! The guard: a stack in front of one MCP server, in an unmodified client's configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::McpError;
use crate::client::launch::Launch;
use crate::client::toolset::{McpToolset, checked_name};
use crate::pins::{PinLayer, Pins, ServerParts};
use crate::server::{Server, serve};
use countersign::args::Args;
use countersign::call::{RunContext, ToolCall, ToolDefinition};
use countersign::decision::Decision;
use countersign::error::BoxError;
use countersign::layer::ToolMiddlewareExt as _;
use countersign::ledger::Ledger;
use countersign::middleware::ToolMiddleware;
use countersign::outcome::{Outcome, ToolError, ToolReturn};
use countersign::tools::{Tools, ToolsExt as _};
use countersign::toolset::{Permit, Toolset};
use countersign::turn::Turn;

type Layers = dyn Fn(Tools) -> Tools + Send + Sync;

/// A guard in front of one MCP server: its accepted tools, behind your layers. A client is configured with the guard in
/// place of the server, and needs no change.
///
/// - Calls that the layers allow run upstream, and their results are passed on unchanged. Reading a resource is judged
///   as a call of `resources/read` with its `uri`, getting a prompt as one of `prompts/get` with its `name`. Sampling
///   and unknown methods are refused.
/// - A call that a layer asks about is decided by a person: see [`Server`]. The approval is claimed before upstream is
///   called, and settled after.
/// - The tools are pinned ([`Proposal`](super::Proposal)): until a person has accepted the server's tools once, each
///   call asks; a tool that has changed since is listed as it was accepted, and denied. So are the server's texts about
///   itself, and the files and packages that its command names.
///
/// Without layers, every call is asked about.
///
/// ```no_run
/// use countersign_mcp::{Guard, Launch};
/// use countersign::{Decision, ToolsExt, ToolMiddlewareExt, decide_fn};
/// use countersign::ledger::{Ledger, MemoryStore};
///
/// # async fn run() -> Result<(), countersign_mcp::McpError> {
/// let launch = Launch::command("mcp-server-git").args(["--repository", "."]);
/// let guard = Guard::new("git", launch, Ledger::new(MemoryStore::new())).layers(|tools| {
///     tools.layered(decide_fn(|_, call: &countersign::ToolCall| match call.name() {
///         "git_status" | "git_diff" | "git_log" => Decision::allow(),
///         _ => Decision::ask("changes the repository"),
///     }))
/// });
/// guard.server().stdio().await
/// # }
/// ```
#[must_use = "a guard does nothing until its server is given a transport"]
pub struct Guard {
    name: String,
    launch: Launch,
    ledger: Ledger,
    layers: Option<Arc<Layers>>,
    named: bool,
    pinned: bool,
    observes: bool,
    principal: String,
    project: String,
    hint: String,
}

impl Guard {
    /// A guard in front of this server. `name` is what people are shown.
    ///
    /// This starts nothing: the server's process begins with the first client. If the server cannot be started, that is
    /// an error of the client's request.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::{Guard, Launch};
    ///
    /// let launch = Launch::command("mcp-server-git").args(["--token", "secret"]);
    /// let guard = Guard::new("git", launch, Ledger::new(MemoryStore::new())).principal("ann").project("/u/ann/site");
    /// assert!(!format!("{guard:?}").contains("secret"));
    /// ```
    pub fn new(name: impl Into<String>, launch: Launch, ledger: Ledger) -> Self {
        Self {
            name: name.into(),
            launch,
            ledger,
            layers: None,
            named: false,
            pinned: true,
            observes: false,
            principal: "mcp client".to_owned(),
            project: String::new(),
            hint: "see `Proposal::accept`".to_owned(),
        }
    }

    /// Sets the layers around the server's tools.
    ///
    /// We call the function once, when the server is made. The layers see a call of a served tool, with the source of its
    /// definition ([`ToolDefinition::source`](countersign::ToolDefinition::source)). If they change the arguments, the
    /// changed ones run upstream. If they change the outcome, the client is told the changed one.
    pub fn layers(mut self, layers: impl Fn(Tools) -> Tools + Send + Sync + 'static) -> Self {
        self.layers = Some(Arc::new(layers));
        self
    }

    /// Pins the tools under the server's name in place of its command or URL, so that what was accepted survives other
    /// arguments of the command. Another program, script or package has to be accepted all the same, and another URL
    /// has not. Use it only where the name is under your control.
    ///
    /// By default another argument of the command makes another server: for example, `mcp-server-git --repository
    /// /other` does other things under the same name. For approvals it always does: they are for one command, also
    /// where two servers were given one name.
    pub fn identified_by_name(mut self) -> Self {
        self.named = true;
        self
    }

    /// Sets the name of the person that stdio clients act for.
    ///
    /// Asks are made in this name, and a policy that forbids approving one's own calls compares with it. Nothing
    /// proves the name: a client on stdio is the program that has started the guard.
    pub fn principal(mut self, name: impl Into<String>) -> Self {
        self.principal = name.into();
        self
    }

    /// Sets the root of the project, within which equal calls share an ask.
    pub fn project(mut self, root: impl Into<String>) -> Self {
        self.project = root.into();
        self
    }

    /// Sets how people accept the tools, as the log says it where tools have to be accepted.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::{Guard, Launch};
    ///
    /// let guard = Guard::new("git", Launch::command("mcp-server-git"), Ledger::new(MemoryStore::new()));
    /// let server = guard.accept_hint("open https://inbox.example/tools").server();
    /// # let _ = server;
    /// ```
    pub fn accept_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Accepts every tool as the server defines it, now and after later changes.
    ///
    /// Without pins, a server that is updated at night can give a tool another description or meaning, and the
    /// model follows it (rule M4).
    pub fn danger_accept_all_tools(mut self) -> Self {
        self.pinned = false;
        self
    }

    /// Allows every call, and logs what the layers would have decided (target `countersign::observe`, without
    /// arguments).
    ///
    /// Use it to find out what a set of rules would ask in daily work, before you switch it on. The layers judge a
    /// copy of the tools that is not executed. So a layer that writes (a journal, a counter) does so as if the calls
    /// were not run.
    pub fn danger_observe(mut self) -> Self {
        self.observes = true;
        self
    }

    /// Starts the server, and gives what a person has to accept of it, tool by tool. Nothing is served, and nothing is
    /// proposed until the person has chosen.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::{FunctionToolset, ToolError, schemars, tool_fn};
    /// use countersign_mcp::{self as mcp, Guard, Launch, ToolStanding};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct NoArgs {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tools = FunctionToolset::new()
    /// #     .tool(tool_fn("look", "Looks", async |_: NoArgs| Ok::<_, ToolError>("seen")))
    /// #     .tool(tool_fn("push", "Pushes", async |_: NoArgs| Ok::<_, ToolError>("pushed")));
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let url = format!("http://{}/mcp", listener.local_addr()?);
    /// # let server = mcp::serve(tools).router()?;
    /// # tokio::spawn(async move { axum::serve(listener, server).await });
    /// let guard = Guard::new("git", Launch::url(url), Ledger::new(MemoryStore::new()));
    /// let mut parts = guard.look().await?;
    /// parts.accept(&["look"], "ann").await?;
    /// parts.deny(&["push"], "ann").await?;
    /// let standing = parts.tools().iter().map(|tool| (tool.name(), tool.standing()));
    /// assert!(standing.eq([("look", ToolStanding::Accepted), ("push", ToolStanding::Denied)]));
    /// parts.close().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`McpError`] when the server cannot be started, speaks no MCP, or cannot list its tools.
    pub async fn look(self) -> Result<ServerParts, McpError> {
        checked_name(&self.name)?;
        let toolset = McpToolset::new(self.name.as_str(), self.launch.clone(), true);
        let pins = self.pins(&toolset);
        ServerParts::of(pins, &toolset).await
    }

    fn pins(&self, toolset: &McpToolset) -> Arc<Pins> {
        let launch = self.launch.digest();
        let pinned = if self.named { "" } else { &*launch };
        let people = (Some(&*self.principal), &*self.hint);
        Pins::new(self.ledger.clone(), toolset.clone(), pinned, people)
    }

    /// The served side of the guard, to configure further and to give a transport.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::{Guard, Launch};
    ///
    /// let guard = Guard::new("git", Launch::command("mcp-server-git"), Ledger::new(MemoryStore::new()));
    /// let server = guard.server().wait(Duration::from_secs(20)).inbox("https://inbox.example/");
    /// assert_eq!(format!("{server:?}"), "Server { name: \"git\", .. }");
    /// ```
    pub fn server(self) -> Server {
        let launch = self.launch.digest();
        let toolset = McpToolset::new(self.name.as_str(), self.launch.clone(), true);
        let pins = (self.pinned && !self.observes).then(|| self.pins(&toolset));
        let layers =
            self.layers.unwrap_or_else(|| Arc::new(|tools: Tools| tools.approval_required()));
        let tools = match self.observes {
            true => {
                let judged = layers(Tools::from(Unexecuted(toolset.clone())));
                let listing_within = toolset.listing_within();
                toolset.clone().layered(Observer { judged, listing_within }.into_layer())
            }
            false => {
                let tools = match &pins {
                    Some(pins) => {
                        let pins = Arc::clone(pins);
                        let layer = PinLayer { pins, closes_asks: true };
                        toolset.clone().layered(layer.into_layer())
                    }
                    None => toolset.clone().into(),
                };
                layers(tools)
            }
        };
        let scope = json!(["guard", self.name, launch, self.project]);
        serve(tools)
            .named(self.name.as_str())
            .ledger(self.ledger)
            .principal(self.principal)
            .upstream(toolset, pins, scope)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name)
            .field("launch", &self.launch)
            .finish_non_exhaustive()
    }
}

/// The server's tools without their execution, to find the decisions that the layers would have made.
///
/// To find the decision of a stack we run it, so it needs tools. These do nothing.
struct Unexecuted(McpToolset);

impl Toolset for Unexecuted {
    fn id(&self) -> &str {
        self.0.id()
    }

    async fn definitions(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        self.0.definitions(cx).await
    }

    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        self.0.validate(tool, args)
    }

    async fn run(&self, _: Permit) -> Result<ToolReturn, ToolError> {
        Ok(ToolReturn::default())
    }
}

/// Logs the decision that the layers would have made, and allows every call.
struct Observer {
    judged: Tools,
    listing_within: Duration,
}

impl ToolMiddleware for Observer {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        let turn = Turn::new(self.judged.clone()).describing_within(self.listing_within);
        let asked = vec![ToolCall::new("observed", call.name(), call.args().to_value())];
        let (decision, reason) = match turn.run(asked).await {
            Ok(report) => match report
                .calls()
                .first()
                .map(|call| (call.outcome().clone(), call.asked().to_vec()))
            {
                Some((Outcome::Deferred(_), questions)) => (
                    "ask",
                    questions
                        .iter()
                        .map(|it| it.reason().to_owned())
                        .collect::<Vec<_>>()
                        .join("; "),
                ),
                Some((Outcome::Denied(denied), _)) => ("deny", denied.message),
                _ => ("allow", String::new()),
            },
            Err(error) => ("deny", error.to_string()),
        };
        tracing::info!(target: "countersign::observe", tool = call.name(), decision, reason, "would have been decided");
        Decision::undecided()
    }
}
