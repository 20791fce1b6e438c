//! Any tools as an MCP server: over stdio, or as a router for streamable HTTP.

mod answered_forms;
mod asker;
pub(crate) mod asks;
mod bearer;
mod bodies;
mod http;
mod in_flight;
mod open_forms;
mod other_requests;
mod process_io;
mod request_ids;
mod requests;
mod responses;
mod serving;
mod session;
pub(crate) mod shared;
mod stdio;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::asks::{AskPolicy, Asks};
use self::bearer::Bearer;
use self::requests::Requests;
use self::shared::{FindPrincipal, InboxPlace, LabelTools, Shared, Upstream};
use self::stdio::ClientTransport;
use crate::McpError;
use crate::client::announcements::ListChanges;
use crate::client::toolset::{McpToolset, checked_name};
use crate::pins::Pins;
use countersign::call::{RunContext, ToolDefinition};
use countersign::ledger::{Ask, Ledger, MemoryStore};
use countersign::origin::ReadLabel;
use countersign::seal::SealKeys;
use countersign::tools::Tools;

/// Serves tools by MCP, with their asks: see [`Server`].
///
/// ```
/// use countersign::FunctionToolset;
/// use countersign_mcp as mcp;
///
/// let server = mcp::serve(FunctionToolset::new()).named("files");
/// assert_eq!(format!("{server:?}"), "Server { name: \"files\", .. }");
/// ```
pub fn serve(tools: impl Into<Tools>) -> Server {
    Server {
        tools: tools.into(),
        name: "countersign".to_owned(),
        scope: json!("countersign"),
        ledger: None,
        keys: None,
        wait: Duration::from_secs(45),
        inbox: None,
        answer_hint: String::new(),
        forms: true,
        principal: "mcp client".to_owned(),
        policy: Arc::new(|_, ask| ask),
        upstream: None,
        hosts: None,
        origins: ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]
            .map(str::to_owned)
            .to_vec(),
        authorize: None,
        labels: None,
        shutdown: None,
    }
}

/// Tools that are served by MCP. A client asks by the newest revision (2026-07-28) or an earlier one.
///
/// A call that a layer asks about is parked in the ledger, and the client's person is asked as the client declares: by
/// an input-required result, by elicitation, by a link to the inbox, or not at all. The one field of the form has no
/// default, and only its literal value approves. The answer counts as the requester's. Where no answer comes in time,
/// the client is told the ask's id, and an equal call finds the decision later. An approval is claimed before the tool
/// runs, so that one approval runs one call, also over several servers on one store.
///
/// ```no_run
/// use countersign::ledger::{Ledger, MemoryStore};
/// use countersign::{FunctionToolset, ToolsExt};
/// use countersign_mcp as mcp;
///
/// # async fn run() -> Result<(), mcp::McpError> {
/// let tools = FunctionToolset::new().approval_required();
/// mcp::serve(tools).named("files").ledger(Ledger::new(MemoryStore::new())).stdio().await
/// # }
/// ```
#[must_use = "a server does nothing until it is given a transport"]
pub struct Server {
    tools: Tools,
    name: String,
    scope: Value,
    ledger: Option<Ledger>,
    keys: Option<SealKeys>,
    wait: Duration,
    inbox: Option<Arc<InboxPlace>>,
    answer_hint: String,
    forms: bool,
    principal: String,
    policy: Arc<AskPolicy>,
    upstream: Option<(McpToolset, Option<Arc<Pins>>)>,
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
    authorize: Option<FindPrincipal>,
    shutdown: Option<BoxFuture<'static, ()>>,
    labels: Option<Arc<LabelTools>>,
}

impl Server {
    /// Sets the name of the server, which clients are told and asks show; `countersign` by default.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self.scope = json!(self.name);
        self
    }

    /// Sets the ledger in which asks are parked. By default it is in memory and ends with the process.
    ///
    /// Several servers on one store share their asks, where their names, projects and principals are equal: a client
    /// that reconnects to another process finds its decision (rule M3).
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Sets the keys that seal the request states of clients. By default they are random and end with the process, so
    /// that a client that was asked by another process is asked again.
    ///
    /// Give all processes behind one address the same keys. When you rotate a key, keep the old one among them
    /// for a day, as a request state is valid as long as that.
    pub fn seal_keys(mut self, keys: SealKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets how long a call is held while a person decides; 45 seconds by default. It has to be less than the client's
    /// own limit: after it, the client is told the ask's id.
    ///
    /// With zero no call is held. Use that for a client whose person always decides in the inbox.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the address of the inbox, for clients that can open one. The link decides nothing.
    ///
    /// `#ask=<id>` is appended, in place of a fragment that the URL has. The page has to ask who the person is: anyone
    /// who has the link can open it, and nothing more.
    pub fn inbox(self, url: impl Into<String>) -> Self {
        let url = url.into();
        self.inbox_from(move || Some(url.clone()))
    }

    /// Sets where the address of the [`inbox`](Self::inbox) is found when a person is asked, for an inbox that may start
    /// later than this server. Without an address there is no link.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// let place = std::env::temp_dir().join("inbox.url");
    /// let server = mcp::serve(FunctionToolset::new()).inbox_from(move || std::fs::read_to_string(&place).ok());
    /// # let _ = server;
    /// ```
    pub fn inbox_from(
        mut self,
        place: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.inbox = Some(Arc::new(place));
        self
    }

    /// Sets where a person answers, as a client is told it with the id of an ask that waits.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// let hint = "A person answers it at the desk of operations: tell them so.";
    /// let server = mcp::serve(FunctionToolset::new()).answer_hint(hint);
    /// # let _ = server;
    /// ```
    pub fn answer_hint(mut self, hint: impl Into<String>) -> Self {
        self.answer_hint = hint.into();
        self
    }

    /// Never asks a person by a form of the client: asks wait for the inbox, or any other surface of the ledger. An
    /// answer on a form counts for nothing, also on one that another server on this ledger has sent.
    ///
    /// Use it for clients whose forms a program answers: a hook, a setting that remembers answers, or a script that
    /// has the secret of a server over HTTP.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// let server = mcp::serve(FunctionToolset::new()).inbox("https://inbox.example/").without_forms();
    /// # let _ = server;
    /// ```
    pub fn without_forms(mut self) -> Self {
        self.forms = false;
        self
    }

    /// Sets the name of the person that stdio clients act for.
    pub fn principal(mut self, name: impl Into<String>) -> Self {
        self.principal = name.into();
        self
    }

    /// Sets the root of the project, within which a principal's equal calls share approvals. Equal calls in two
    /// projects are two calls.
    pub fn project(mut self, root: impl Into<String>) -> Self {
        self.scope = json!([self.scope, root.into()]);
        self
    }

    /// Sets a function that is called with the context of the run and each ask before it is parked, to set its deadline
    /// and quorum; see [`Ledger::ask_policy`].
    ///
    /// The function sees the ask with its questions and arguments, and may set when it expires, how many people have to
    /// approve, and who. [`Ask::tool`] is `mcp:<server>/<tool>`. What identifies the ask (its run, call, tool and
    /// arguments) has to stay, as an equal call is found by it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::Ask;
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// let server = mcp::serve(FunctionToolset::new())
    ///     .ask_policy(|_cx, ask: Ask| ask.with_valid_for(Duration::from_secs(3600)));
    /// # let _ = server;
    /// ```
    pub fn ask_policy(
        mut self,
        policy: impl Fn(&RunContext, Ask) -> Ask + Send + Sync + 'static,
    ) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Sets the hosts under which the router answers, against DNS rebinding; the loopback names by default.
    ///
    /// A page of the web can point its own name at this machine, and its requests then have the page's name as host.
    /// Name the host under which a proxy reaches the router.
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the origins of browsers that may send requests to the router; by default those of this machine.
    pub fn origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a function that finds the person that a request of HTTP acts for, from its headers. A request for which it
    /// gives `None` is refused with 401. Without it, no two connections share asks or approvals.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// # fn main() -> Result<(), mcp::McpError> {
    /// let server = mcp::serve(FunctionToolset::new()).authorize(|headers| async move {
    ///     // What a proxy in front of this server has checked.
    ///     headers.get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned)
    /// });
    /// let app = server.hosts(["tools.example"]).router()?;
    /// # let _ = app; Ok(()) }
    /// ```
    pub fn authorize<F, Fut>(mut self, authorize: F) -> Self
    where
        F: Fn(axum::http::HeaderMap) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<String>> + Send + 'static,
    {
        self.authorize = Some(Arc::new(move |headers| Box::pin(authorize(headers))));
        self
    }

    /// Requires a secret of every request over HTTP, as `Authorization: Bearer SECRET`. A request without it is refused
    /// with 401 before anything of it is read. It is the account of this person: all requests with it share asks and
    /// approvals, as the clients of one person on stdio do (rule M3). In place of [`authorize`](Self::authorize).
    ///
    /// # Errors
    /// [`McpError::Config`] when the secret is shorter than 32 characters, or has others than letters, digits and
    /// `-._~+/=`, which a header may not carry.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// # fn main() -> Result<(), mcp::McpError> {
    /// # let secret = "5f0c".repeat(16);
    /// let server = mcp::serve(FunctionToolset::new()).bearer(&secret, "ann")?;
    /// # let _ = server;
    /// assert!(mcp::serve(FunctionToolset::new()).bearer("too short", "ann").is_err());
    /// # Ok(()) }
    /// ```
    pub fn bearer(self, secret: &str, principal: impl Into<String>) -> Result<Self, McpError> {
        let (bearer, principal) = (Bearer::new(secret)?, principal.into());
        Ok(self.authorize(move |headers| {
            let known = bearer.is_in(&headers).then(|| principal.clone());
            std::future::ready(known)
        }))
    }

    /// Sets a future that completes when the program is told to end. From then on no call begins, and a call that waits
    /// for a person is told the id of its ask, which stays pending. Calls in flight have a second to end; then they are
    /// cancelled, and an approval whose call was not seen to end is recorded as *may have run*. Without it, the claims
    /// of such calls stay open until their leases end.
    ///
    /// [`on`](Self::on) and [`stdio`](Self::stdio) return when the responses are written. Streams of the
    /// [`router`](Self::router) end, so that a graceful shutdown of the HTTP server does.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let server = mcp::serve(FunctionToolset::new()).shutdown(async { _ = stopped.await });
    /// let (_client, served) = tokio::io::duplex(1024);
    /// let (input, output) = tokio::io::split(served);
    /// let running = tokio::spawn(server.on(input, output));
    /// stop.send(()).unwrap();
    /// running.await??; // although the client is still connected
    /// # Ok(()) }
    /// ```
    pub fn shutdown(mut self, told: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(told));
        self
    }

    /// Records what each client reads through this server, so that layers and people learn where the values of its calls
    /// come from (rule O5). The function says how the results of a tool are labelled, beside what its definition says; a
    /// file of rules has such a function.
    ///
    /// A record is that of one connection, or of one session over HTTP. A request without a session knows of no other.
    /// The server sees no text of the user and no result of another server. So nothing is named by `user`, and
    /// `has_read` is about what went through here.
    ///
    /// ```
    /// use countersign::origin::ReadLabel;
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    ///
    /// let server = mcp::serve(FunctionToolset::new())
    ///     .record_origins(|tool| (tool.name() == "fetch").then(|| ReadLabel::others("web")));
    /// # let _ = server;
    /// ```
    pub fn record_origins(
        mut self,
        label: impl Fn(&ToolDefinition) -> Option<ReadLabel> + Send + Sync + 'static,
    ) -> Self {
        self.labels = Some(Arc::new(label));
        self
    }

    /// Puts these tools, of this server, behind the served ones.
    pub(crate) fn upstream(
        mut self,
        toolset: McpToolset,
        pins: Option<Arc<Pins>>,
        scope: Value,
    ) -> Self {
        (self.upstream, self.scope) = (Some((toolset, pins)), scope);
        self
    }

    fn shared(&mut self, sees_writes: bool) -> Result<Arc<Shared>, McpError> {
        checked_name(&self.name)?;
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => random_keys()?,
        };
        let ledger = self.ledger.clone().unwrap_or_else(|| Ledger::new(MemoryStore::new()));
        let upstream = self.upstream.take();
        let upstream = upstream.map(|(toolset, pins)| Upstream {
            toolset,
            pins,
            about: Mutex::default(),
            capabilities: OnceLock::new(),
        });
        let (changed, _) = watch::channel(ListChanges::default());
        Ok(Arc::new(Shared {
            name: self.name.clone(),
            tools: self.tools.clone(),
            scope: self.scope.clone(),
            labels: self.labels.clone(),
            asks: Asks::new(ledger, Arc::clone(&self.policy)),
            keys,
            wait: self.wait,
            inbox: self.inbox.clone(),
            answer_hint: self.answer_hint.clone(),
            forms: self.forms,
            principal: self.principal.clone(),
            upstream,
            kept: Mutex::default(),
            identities: RwLock::default(),
            changed,
            in_flight: Arc::default(),
            request_ids: Arc::default(),
            stopping: CancellationToken::new(),
            disconnected: CancellationToken::new(),
            sees_writes,
        }))
    }

    /// Serves one client on stdin and stdout, until it ends the connection. Nothing else may read stdin or
    /// write to stdout, also not before.
    ///
    /// # Panics
    /// In a runtime without I/O. `#[tokio::main]` and `enable_all` make one with it.
    ///
    /// # Errors
    /// [`McpError::Serve`] when the client speaks no MCP.
    pub async fn stdio(self) -> Result<(), McpError> {
        self.on(process_io::stdin(), process_io::stdout()).await
    }

    /// Serves one client that writes to `input` and reads from `output`, until it ends the connection.
    ///
    /// # Errors
    /// [`McpError::Serve`] when the client speaks no MCP.
    ///
    /// ```
    /// use countersign::FunctionToolset;
    /// use countersign_mcp as mcp;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (client, server) = tokio::io::duplex(64 * 1024);
    /// let (input, output) = tokio::io::split(server);
    /// let served = tokio::spawn(mcp::serve(FunctionToolset::new()).named("files").on(input, output));
    ///
    /// let (answers, mut requests) = tokio::io::split(client);
    /// let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
    ///     "capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#.replace('\n', " ");
    /// requests.write_all(format!("{hello}\n").as_bytes()).await?;
    /// let answer = BufReader::new(answers).lines().next_line().await?.unwrap_or_default();
    /// assert!(answer.contains(r#""name":"files""#), "{answer}");
    /// # served.abort();
    /// # Ok(()) }
    /// ```
    pub async fn on<R, W>(mut self, input: R, output: W) -> Result<(), McpError>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let shared = self.shared(true)?;
        let mut told = self.shutdown.take().unwrap_or_else(|| Box::pin(std::future::pending()));
        let ended = serve_on(&shared, (input, output), &mut told).await;
        if let Some(upstream) = &shared.upstream {
            upstream.toolset.connection.close().await;
        }
        ended
    }

    /// A router that serves streamable HTTP on every path below which it is nested.
    ///
    /// # Errors
    /// [`McpError::Config`] when no keys can be made, or outside of a Tokio runtime when a
    /// [`shutdown`](Self::shutdown) is set.
    ///
    /// It needs a server of its own, such as `axum::serve`, and TLS where it leaves the machine. Nest it under a path;
    /// other paths are not touched.
    pub fn router(mut self) -> Result<axum::Router, McpError> {
        let shared = self.shared(false)?;
        let streams = CancellationToken::new();
        if let Some(told) = self.shutdown.take() {
            let runtime = Handle::try_current().map_err(|_| McpError::Config {
                problem: "a router with a shutdown has to be made inside of a Tokio runtime"
                    .to_owned(),
            })?;
            runtime.spawn(stop(Arc::downgrade(&shared), streams.clone(), told));
        }
        Ok(http::router(
            shared,
            streams,
            self.hosts.take(),
            std::mem::take(&mut self.origins),
            self.authorize.take(),
        ))
    }
}

/// Serves one client on stdio, until it ends the connection or the program is told to end.
async fn serve_on<R, W>(
    shared: &Arc<Shared>,
    (input, output): (R, W),
    told: &mut BoxFuture<'static, ()>,
) -> Result<(), McpError>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let requests = Requests::new(Arc::clone(shared), false);
    let client = ClientTransport::new(input, output, Arc::clone(shared));
    let failed = |problem: String| McpError::Serve { problem: countersign::show::escape(&problem) };
    let served = tokio::select! {
        served = requests.serve(client) => served,
        () = &mut *told => return Ok(()),
    };
    let service = match served {
        Ok(service) => service,
        // A client that disconnects at once has made no request.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(error.to_string())),
    };
    let serving = service.cancellation_token();
    let mut waiting = std::pin::pin!(service.waiting());
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = told => {
            shared.stop().await;
            // What is left are responses, which are written before this returns.
            serving.cancel();
            waiting.await
        }
    };
    shared.ended().await;
    ended.map(drop).map_err(|error| failed(error.to_string()))
}

/// Ends the calls of a router, and then its streams.
///
/// This does not keep the router's state, which ends with the router.
async fn stop(shared: Weak<Shared>, streams: CancellationToken, told: BoxFuture<'static, ()>) {
    told.await;
    if let Some(shared) = shared.upgrade() {
        shared.stop().await;
    }
    // The last responses are on their way to the streams that end.
    tokio::time::sleep(Duration::from_millis(100)).await;
    streams.cancel();
}

fn random_keys() -> Result<SealKeys, McpError> {
    // Each of these ids has 74 random bits.
    let secret: Vec<u8> = (0..8).flat_map(|_| uuid::Uuid::now_v7().into_bytes()).collect();
    SealKeys::new("process", secret)
        .map_err(|error| McpError::Config { problem: error.to_string() })
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}
