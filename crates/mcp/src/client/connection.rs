//! The connection to one MCP server: started when it is needed, and started again, with growing pauses, when it is lost.
//!
//! We decide here what a failure means, by when it happened, as everything above depends on it:
//!
//! | [`Failed`] | the request | told to the model |
//! |---|---|---|
//! | `NotSent` | has not left this process | the tool did not run |
//! | `Unknown` | was sent, and its end was not seen | the tool may have run |
//! | `Answered` | has an error of the server | what the server says, as a failure |
//!
//! We never repeat a request by ourselves, even if it looks harmless: only the tool's owner knows what is idempotent.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult,
    GetExtensions as _, Implementation, ListRootsRequestMethod, ProtocolVersion,
    ResourceUpdatedNotificationParam, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientServiceExt as _, NotificationContext, Peer, PeerRequestOptions,
    RequestContext, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::announcements::{ListChanges, Subscriptions};
use super::child::ChildTransport;
use super::hello::Hello;
use super::launch::{Launch, Transport};
use super::progress::{ProgressRoute, ProgressTransport};
use super::{packages, programs};
use crate::McpError;
use crate::cancelling::CancelOnDrop;
use crate::downstream::{Downstream, Routes, lock};
use crate::error;
use crate::form;

/// The end of a handshake.
type Handshake = Result<RunningService<RoleClient, ClientSide>, ClientInitializeError>;

/// The longest pause between two attempts to start a server.
///
/// The pauses are 1, 2, 4 … seconds, and at most half of this, counted from the last failure. A call in between fails
/// at once: a model that calls in a loop does not start a broken server in a loop.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The key of a question of a server, before the newest revision gave questions keys.
const QUESTION: &str = "question";
/// The time for which the end of a connection is waited for: a process is told to end after 3 seconds, and killed after
/// 6.
const MAX_ENDING: Duration = Duration::from_secs(8);

/// The connection to one server. It outlives the server's process: the next call starts it again.
pub(crate) struct Connection {
    pub(crate) name: Arc<str>,
    pub(crate) launch: Launch,
    live: Mutex<State>,
    routes: Arc<Routes>,
    /// Counts list changes and restarts: a list that was read under another number has to be read again.
    changes: watch::Sender<ListChanges>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// The most log messages that a client wants: their severity, and the request for them.
    logs: std::sync::Mutex<Option<(usize, ClientRequest)>>,
    forms: AtomicBool,
    calls: AtomicU64,
    /// The files and packages that the command has named when the server was started.
    programs: std::sync::Mutex<BTreeMap<String, Value>>,
}

#[derive(Default)]
struct State {
    running: Option<RunningService<RoleClient, ClientSide>>,
    /// The server has run before: we ask it again for what clients have asked of it.
    has_run: bool,
    failures: u32,
    not_before: Option<Instant>,
}

/// The reason for which a request has no result.
pub(crate) enum Failed {
    /// The request was not sent.
    NotSent(McpError),
    /// The request was sent, and its end was not seen.
    Unknown(String),
    /// The server has answered with an error.
    Answered(ErrorData),
}

impl Connection {
    pub(crate) fn new(name: Arc<str>, launch: Launch) -> Arc<Self> {
        Arc::new(Self {
            name,
            launch,
            live: Mutex::default(),
            routes: Arc::default(),
            changes: watch::Sender::new(ListChanges::default()),
            subscriptions: Arc::default(),
            logs: std::sync::Mutex::default(),
            forms: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            programs: std::sync::Mutex::default(),
        })
    }

    /// Declares to the server, when it is started next, that its forms can be answered.
    pub(crate) fn answer_forms(&self, can: bool) {
        self.forms.store(can, Ordering::Relaxed);
    }

    /// Counts list changes and restarts of the server.
    pub(crate) fn changes(&self) -> watch::Receiver<ListChanges> {
        self.changes.subscribe()
    }

    /// Tells clients that the tools have changed for them.
    pub(crate) fn count_change_of_tools(&self) {
        self.changes.send_modify(|counts| counts.tools += 1);
    }

    /// The peer, after the server was started if it does not run.
    ///
    /// The lock is held while the server starts, so that ten calls at once start one process.
    pub(crate) async fn peer(self: &Arc<Self>) -> Result<Peer<RoleClient>, McpError> {
        let mut live = self.live.lock().await;
        if let Some(running) =
            live.running.as_ref().filter(|it| !it.is_closed() && !it.peer().is_transport_closed())
        {
            return Ok(running.peer().clone());
        }
        live.running = None;
        if let Some(at) = live.not_before.filter(|at| Instant::now() < *at) {
            let seconds = at.saturating_duration_since(Instant::now()).as_secs() + 1;
            return Err(McpError::Down { server: self.name.to_string(), seconds });
        }
        // In a box, like every future here that few calls need: a request would have room for all of them, and is
        // moved.
        let (started, ()) = futures::join!(Box::pin(self.start()), self.read_programs());
        match started {
            Ok(running) => {
                let peer = running.peer().clone();
                let has_run = live.has_run;
                *live = State { running: Some(running), has_run: true, ..State::default() };
                if has_run {
                    tracing::warn!(target: "countersign::mcp", server = &*self.name, "the server was started again");
                    self.renew(peer.clone());
                }
                self.changes.send_modify(ListChanges::restarted);
                self.listen(peer.clone());
                Ok(peer)
            }
            Err(error) => {
                live.failures = live.failures.saturating_add(1);
                let pause = Duration::from_secs(1_u64 << live.failures.min(6)).min(MAX_PAUSE) / 2;
                live.not_before = Some(Instant::now() + pause);
                Err(error)
            }
        }
    }

    /// The server's description of itself in the handshake.
    pub(crate) async fn info(self: &Arc<Self>) -> Result<Arc<ServerPeerInfo>, McpError> {
        let peer = self.peer().await?;
        let missing = || self.handshake("the handshake has no answer");
        peer.peer_info().ok_or_else(missing)
    }

    /// The files and packages that the command of the server has named when it was started, each with its state.
    pub(crate) fn programs(&self) -> BTreeMap<String, Value> {
        lock(&self.programs).clone()
    }

    /// Reads the files that the command names, while the server starts: digests of large programs take a while.
    async fn read_programs(&self) {
        let launch = self.launch.clone();
        let read = tokio::task::spawn_blocking(move || programs::of_launch(&launch));
        let found = read.await.unwrap_or_else(|_| programs::unreadable());
        for (package, _) in found.iter().filter(|(_, state)| packages::is_unnamed(state)) {
            let (server, package) = (&*self.name, countersign::show::escape_name(package));
            tracing::warn!(target: "countersign::mcp", server, package, "the command of the server names no version of a package, so that what runs can change without a question");
        }
        *lock(&self.programs) =
            found.into_iter().map(|(name, state)| (name, Value::String(state))).collect();
    }

    /// The peer of a server that runs.
    pub(crate) async fn running(&self) -> Option<Peer<RoleClient>> {
        self.live.lock().await.running.as_ref().map(|it| it.peer().clone())
    }

    /// Subscribes again, and asks for log messages again, at a server that was started again.
    fn renew(&self, peer: Peer<RoleClient>) {
        let subscriptions = Arc::clone(&self.subscriptions);
        let logs = lock(&self.logs).as_ref().map(|(_, request)| request.clone());
        tokio::spawn(async move {
            subscriptions.renew(&peer).await;
            if let Some(logs) = logs {
                // A server that refuses it writes what it likes.
                _ = peer.send_request(logs).await;
            }
        });
    }

    /// Asks the server for log messages of this severity, if it does not write them already for another client.
    pub(crate) async fn write_logs(self: &Arc<Self>, severity: usize, request: ClientRequest) {
        {
            let mut logs = lock(&self.logs);
            if logs.as_ref().is_some_and(|(known, _)| *known <= severity) {
                return;
            }
            *logs = Some((severity, request.clone()));
        }
        // A server that refuses it writes what it likes, and each client gets what it wants of that.
        _ = self.request(request, None).await;
    }

    async fn start(&self) -> Result<RunningService<RoleClient, ClientSide>, McpError> {
        let all = async {
            let mut hello = Hello::default();
            // A server that refuses a revision by an error, or by its end, may know an earlier one.
            loop {
                match self.attempt(&hello).await? {
                    Ok(running) => return Ok(running),
                    Err(error) => match hello.after(&error) {
                        Some(earlier) => {
                            let (server, revision) = (&*self.name, earlier.revision().as_str());
                            tracing::info!(target: "countersign::mcp", server, revision, "the server has refused the revision of the protocol: it is tried again with an earlier one");
                            hello = earlier;
                        }
                        None => return Err(self.handshake(&error::of_handshake(&error))),
                    },
                }
            }
        };
        let running = match tokio::time::timeout(self.launch.start_timeout, all).await {
            Ok(started) => started?,
            Err(_) => {
                let seconds = self.launch.start_timeout.as_secs_f32();
                let problem = format!("it did not answer within its start timeout of {seconds} s");
                return Err(self.handshake(&problem));
            }
        };
        // The library takes any text for a revision, and would read messages of an unknown one as those it knows.
        match running.peer().peer_info().map(|info| info.protocol_version.clone()) {
            Some(version) if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) => {
                Err(self.handshake(&format!("it speaks the unknown revision `{version}`")))
            }
            _ => Ok(running),
        }
    }

    /// Starts the server, or connects to it, and makes the handshake.
    async fn attempt(&self, hello: &Hello) -> Result<Handshake, McpError> {
        let mut capabilities = ClientCapabilities::default();
        if self.forms.load(Ordering::Relaxed) {
            capabilities.elicitation = Some(rmcp::model::ElicitationCapability::default());
        }
        let me = Implementation::new("countersign", env!("CARGO_PKG_VERSION"));
        let client = ClientSide {
            name: Arc::clone(&self.name),
            info: hello.config(capabilities, me),
            routes: Arc::clone(&self.routes),
            changes: self.changes.clone(),
            subscriptions: Arc::clone(&self.subscriptions),
        };
        let calls = Arc::clone(&self.routes);
        let mode = hello.mode();
        Ok(match &self.launch.way {
            Transport::Command { program, args, env, directory } => {
                let mut command = tokio::process::Command::new(program);
                command.args(args).envs(env);
                if let Some(directory) = directory {
                    command.current_dir(directory);
                }
                let child = ChildTransport::spawn(command, &self.name).map_err(|error| {
                    let (server, problem) = (self.name.to_string(), error.to_string());
                    McpError::Start { server, problem }
                })?;
                client.serve_with_lifecycle(ProgressTransport::new(child, calls), mode).await
            }
            Transport::Url { url, headers } => {
                let config = self.http(url, headers)?;
                // An error says that the process has chosen its cryptography already, which is used then.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let transport = StreamableHttpClientTransport::from_config(config);
                client.serve_with_lifecycle(ProgressTransport::new(transport, calls), mode).await
            }
        })
    }

    /// Ends the connection, and gives a server that is a process the time to end by itself.
    pub(crate) async fn close(&self) {
        if let Some(mut running) = self.live.lock().await.running.take() {
            // One that takes longer is killed with this process.
            _ = running.close_with_timeout(MAX_ENDING).await;
        }
    }

    fn http(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<StreamableHttpClientTransportConfig, McpError> {
        let bad = |what: &str| McpError::Config {
            problem: format!("MCP server `{}`: {what}", self.name),
        };
        let parsed = url::Url::parse(url)
            .map_err(|error| bad(&format!("its URL cannot be read: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("its URL has to begin with http:// or https://"));
        }
        let mut custom = HashMap::new();
        for (name, value) in headers {
            let name = name.parse().map_err(|_| bad("a name of its headers is none"))?;
            custom.insert(name, value.parse().map_err(|_| bad("a value of its headers is none"))?);
        }
        Ok(StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom))
    }

    /// The text has at most 300 characters, escaped: it may be a page of HTML, or bytes that steer a
    /// terminal (rule S1).
    fn handshake(&self, problem: &(impl std::fmt::Display + ?Sized)) -> McpError {
        // The server's output is left out, as it may contain anything.
        let problem: String =
            countersign::show::escape(&problem.to_string()).chars().take(300).collect();
        let server = self.name.to_string();
        match self.launch.way {
            Transport::Command { .. } => McpError::Handshake { server, problem },
            Transport::Url { .. } => McpError::Unreachable { server, problem },
        }
    }

    /// A server of the newest revision announces changes on a stream that the client has to open.
    fn listen(&self, peer: Peer<RoleClient>) {
        let new = peer
            .peer_info()
            .is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
        if !new {
            return;
        }
        let changes = self.changes.clone();
        tokio::spawn(async move {
            let filter = SubscriptionFilter::builder()
                .tools_list_changed()
                .prompts_list_changed()
                .resources_list_changed()
                .build();
            let Ok(mut events) = peer.listen(filter).await else { return };
            while let Ok(Some(event)) = events.next().await {
                changes.send_modify(|counts| counts.count(&event));
            }
        });
    }

    /// Sends one request, with its progress and questions routed to the served call. A dropped future cancels the
    /// request at the server.
    ///
    /// The time limit begins anew with each progress. If we give a request up, we cancel it at the server, which may
    /// continue all the same. So its outcome is unknown and not failed.
    pub(crate) async fn request(
        self: &Arc<Self>,
        mut request: ClientRequest,
        downstream: Option<&Arc<Downstream>>,
    ) -> Result<ServerResult, Failed> {
        let peer = self.peer().await.map_err(Failed::NotSent)?;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let is_call = matches!(
            request,
            ClientRequest::CallToolRequest(_)
                | ClientRequest::ReadResourceRequest(_)
                | ClientRequest::GetPromptRequest(_)
        );
        let _in_flight = is_call.then(|| self.routes.begin(call, downstream));
        let progress = downstream.and_then(|downstream| downstream.progress()).map(Arc::new);
        if let Some(progress) = &progress {
            request.extensions_mut().insert(ProgressRoute::to(progress));
        }
        let mut options = PeerRequestOptions::with_timeout(self.launch.timeout);
        options.reset_timeout_on_progress = true;
        let down = || Failed::NotSent(McpError::Down { server: self.name.to_string(), seconds: 1 });
        let handle = peer.send_request_with_option(request, options).await.map_err(|_| down())?;
        let mut sent = CancelOnDrop::new(&handle, "the call was given up");
        let result = handle.await_response().await;
        sent.answered();
        result.map_err(|error| match error {
            ServiceError::McpError(error) => Failed::Answered(error),
            ServiceError::Timeout { .. } => {
                Failed::Unknown(format!("no answer of `{}` in time", self.name))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                Failed::Unknown(format!("the connection to `{}` was lost", self.name))
            }
            _ => Failed::Unknown(format!("`{}` has answered with something else", self.name)),
        })
    }
}

/// The client's side of the protocol: questions of servers go to the call they belong to, and nothing else is answered.
///
/// We refuse sampling and roots (rule M1), as both would let a server act with what the host has: its model, its folders.
pub(crate) struct ClientSide {
    /// The name of the server in the user's configuration.
    name: Arc<str>,
    info: ClientConfig,
    routes: Arc<Routes>,
    changes: watch::Sender<ListChanges>,
    subscriptions: Arc<Subscriptions>,
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    #[expect(deprecated, reason = "it is refused, in place of the library's empty answer")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !form::is_form(&request) {
            let server = &*self.name;
            tracing::warn!(target: "countersign::mcp", server, "a question of the server is no form, and reaches no one");
            let text = "No one was asked: this client has declared forms only.";
            return Err(ErrorData::invalid_params(text, None));
        }
        let problem = match self.routes.only() {
            Ok(downstream) => match &downstream.elicit {
                Some(ask) => return Ok(ask(QUESTION.to_owned(), request).await),
                None => "the client of the call cannot be asked",
            },
            Err(problem) => problem,
        };
        tracing::warn!(target: "countersign::mcp", server = &*self.name, problem, "a question of the server reaches no one");
        // An error and no cancelled form, as no person has closed one: servers make it the text of the call's result.
        Err(ErrorData::invalid_request(format!("No one was asked: {problem}."), None))
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.subscriptions.updated(params.uri);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|counts| counts.tools += 1);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|counts| counts.prompts += 1);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|counts| counts.resources += 1);
    }
}
