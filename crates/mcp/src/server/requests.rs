//! The server's side of the protocol: the requests that are answered, and the principals that they act for.
//!
//! This module translates between the protocol and the served calls. It holds no state of calls: that is in
//! [`Shared`], since a client may come back on another connection.
//!
//! Who a request acts for:
//!
//! | transport | `authorize` | principal | shares asks with |
//! |---|---|---|---|
//! | HTTP | gives a name | the name | all requests of that name |
//! | HTTP | not set | `anonymous`, with a number of the connection | no one else, and in the revision 2026-07-28, where each request is a connection, with no other request |
//! | stdio | | [`Server::principal`](super::Server::principal) | all clients of that name |
//!
//! If two anonymous connections had one principal, they would answer each other's asks: an approval of one person
//! would run the call of another person (rule M3).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

use futures::future::Either;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientRequest,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, InputRequiredResult, ListPromptsRequest, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ResourceUpdatedNotificationParam, ResultType,
    ServerCapabilities, ServerConfig, ServerResult, SubscribeRequestParams, SubscriptionFilter,
    Tool as Listed, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::in_flight::{CallingClient, Reply, Request};
use super::open_forms::OpenForms;
use super::shared::{Shared, Upstream};
use crate::client::announcements::ListChanges;
use crate::client::connection::{Connection, Failed};
use crate::client::subscriber::Subscriber;
use crate::client::toolset::{GET_PROMPT, JUDGED, READ_RESOURCE};
use crate::downstream::lock;
use crate::reading::refusal_of;
use countersign::call::ToolDefinition;
use countersign::origin::ReadRecord;

/// The person that a request of HTTP acts for, as `authorize` has found out.
#[derive(Clone)]
pub(crate) struct HttpPrincipal(pub(crate) Option<String>);

/// One connection of a client, or one request of a client without connections.
pub(crate) struct Requests {
    pub(crate) shared: Arc<Shared>,
    http: bool,
    /// Tells this connection apart from others, for clients without a name.
    nonce: String,
    /// The least severe log messages that the client wants; none until it says so.
    pub(crate) level: Mutex<Option<usize>>,
    subscriber: OnceLock<Arc<Subscriber>>,
    open_forms: Arc<OpenForms>,
    /// The record of what the client has read through this server, if there is one. Without a session no request knows
    /// of another.
    reads: Option<ReadRecord>,
    /// Cancelled when the client is gone.
    gone: CancellationToken,
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

impl Requests {
    pub(crate) fn new(shared: Arc<Shared>, http: bool) -> Self {
        let nonce = uuid::Uuid::now_v7().to_string();
        let (level, subscriber, gone) = <(Mutex<_>, OnceLock<_>, CancellationToken)>::default();
        let reads = shared.labels.is_some().then(ReadRecord::new);
        let open_forms = Arc::default();
        Self { shared, http, nonce, level, subscriber, open_forms, reads, gone }
    }

    /// The subscriptions of this client.
    pub(crate) fn subscriber(&self, connection: &Arc<Connection>) -> &Arc<Subscriber> {
        self.subscriber.get_or_init(|| Arc::new(Subscriber::new(Arc::clone(connection))))
    }

    /// The principal of a request, and the ways to ask that person: only those that the client declares.
    fn client(&self, cx: &RequestContext<RoleServer>, state: Option<&str>) -> CallingClient {
        let rounds =
            cx.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let (forms, urls) = asking(cx.client_capabilities().as_ref());
        let parts = cx.extensions.get::<axum::http::request::Parts>();
        let named = parts.and_then(|parts| parts.extensions.get::<HttpPrincipal>());
        let (principal, nonce) = match named.and_then(|named| named.0.clone()) {
            Some(name) => (name, None),
            None if self.http => {
                let nonce = self.shared.nonce_of(state).unwrap_or_else(|| self.nonce.clone());
                ("anonymous".to_owned(), Some(nonce))
            }
            None => (self.shared.principal.clone(), None),
        };
        let logs = *lock(&self.level);
        // Without an account and without sessions, which the newest revision does not have, each request has a key of
        // its own.
        let returns = nonce.is_none() || !rounds;
        let open_forms = Arc::clone(&self.open_forms);
        let reads = self.reads.clone();
        CallingClient { principal, nonce, returns, forms, urls, rounds, logs, open_forms, reads }
    }

    async fn serve(&self, request: Request, cx: &RequestContext<RoleServer>) -> Reply {
        let _in_flight = Arc::clone(&self.shared.in_flight);
        let client = self.client(cx, request.state.as_deref());
        // The library moves the future of a request several times.
        Box::pin(self.shared.call(client, request, cx)).await
    }

    /// Serves a request whose result is passed on as it came, or is a question to the client.
    async fn passed_on<T: DeserializeOwned>(
        &self,
        request: Request,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Either<T, InputRequiredResult>, ErrorData> {
        match self.serve(request, cx).await {
            Reply::Raw(raw) => serde_json::from_value(raw)
                .map(Either::Left)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None)),
            Reply::InputRequired(required) => Ok(Either::Right(*required)),
            other => Err(refused(other)),
        }
    }

    /// Connects to the upstream server as this client would, and offers the same lists.
    async fn connect(&self, capabilities: Option<&ClientCapabilities>) -> Result<(), ErrorData> {
        let Some(upstream) = &self.shared.upstream else { return Ok(()) };
        let connection = &upstream.toolset.connection;
        connection.answer_forms(asking(capabilities).0);
        let info = connection.info().await.map_err(|error| unreachable(&error))?;
        let offered = &info.capabilities;
        let mut mine = ServerCapabilities::default();
        mine.tools = offered.tools.clone().map(|mut tools| {
            tools.list_changed = Some(true);
            tools
        });
        mine.prompts = offered.prompts.clone();
        mine.resources = offered.resources.clone();
        mine.completions = offered.completions.clone();
        mine.logging = offered.logging.clone();
        if info.protocol_version >= ProtocolVersion::V_2026_07_28 {
            only_the_newest(&mut mine);
        }
        // The first connection counts; a server that offers less later fails its requests.
        _ = upstream.capabilities.set(mine);
        upstream.look(&info).await;
        Ok(())
    }

    /// Passes updates of resources on to a client that has subscribed to them, until it is gone.
    fn pass_updates_on(&self, connection: &Arc<Connection>, peer: Peer<RoleServer>) {
        let mut updates = connection.subscriptions.updates();
        // The subscriptions end with the connection, and not with this task.
        let subscriber = Arc::downgrade(self.subscriber(connection));
        let gone = self.gone.clone();
        tokio::spawn(async move {
            loop {
                let update = tokio::select! {
                    update = updates.recv() => update,
                    () = gone.cancelled() => return,
                };
                let about = subscriber.upgrade().and_then(|it| it.about(update));
                let Some(uris) = about else { return };
                for uri in uris {
                    let params = ResourceUpdatedNotificationParam::new(uri);
                    if peer.notify_resource_updated(params).await.is_err() {
                        return;
                    }
                }
            }
        });
    }

    fn offered(&self) -> ServerCapabilities {
        let tools =
            || ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        match &self.shared.upstream {
            Some(upstream) => upstream.capabilities.get().cloned().unwrap_or_else(tools),
            None => tools(),
        }
    }

    async fn definitions(&self) -> Result<Vec<ToolDefinition>, ErrorData> {
        self.shared.turn().definitions().await.map_err(|error| {
            tracing::error!(target: "countersign::mcp", server = self.shared.name, %error, "the tools cannot be listed");
            ErrorData::internal_error("the tools cannot be listed", None)
        })
    }

    /// The upstream server, if its kind of list is offered to clients.
    pub(crate) async fn upstream_with(
        &self,
        cx: &RequestContext<RoleServer>,
        has: impl Fn(&ServerCapabilities) -> bool + Send,
        none: ErrorData,
    ) -> Result<&Upstream, ErrorData> {
        // A client of the newest revision may call without having listed anything before.
        if self.shared.upstream.as_ref().is_some_and(|it| it.capabilities.get().is_none()) {
            self.connect(cx.client_capabilities().as_ref()).await?;
        }
        let upstream = self.shared.upstream.as_ref().filter(|_| has(&self.offered()));
        upstream.ok_or(none)
    }
}

/// Leaves out what the newest revision has in another form, or not at all: log messages, and updates of resources.
fn only_the_newest(capabilities: &mut ServerCapabilities) {
    capabilities.logging = None;
    if let Some(resources) = &mut capabilities.resources {
        resources.subscribe = None;
    }
}

fn unreachable(error: &super::McpError) -> ErrorData {
    tracing::error!(target: "countersign::mcp", %error, "the server cannot be reached");
    ErrorData::internal_error(error.to_string(), None)
}

fn failed(failed: Failed) -> ErrorData {
    match failed {
        Failed::NotSent(error) => unreachable(&error),
        Failed::Unknown(why) => ErrorData::internal_error(why, None),
        Failed::Answered(error) => error,
    }
}

/// Returns two values: `true` if a client declares forms, and `true` if it declares links. Without either, an earlier
/// client means forms.
///
/// Before links existed, declaring elicitation without a kind meant forms.
fn asking(capabilities: Option<&ClientCapabilities>) -> (bool, bool) {
    match capabilities.and_then(|capabilities| capabilities.elicitation.as_ref()) {
        Some(elicitation) => {
            let urls = elicitation.url.is_some();
            (elicitation.form.is_some() || !urls, urls)
        }
        None => (false, false),
    }
}

/// A definition, as clients see it.
fn listed(definition: &ToolDefinition) -> Listed {
    let declared = definition.metadata().get("mcp").cloned().unwrap_or_default();
    let of = |key: &str| declared.get(key).filter(|value| !value.is_null()).cloned();
    let mut schema = definition.parameters().as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| Value::String("object".to_owned()));
    let mut tool =
        Listed::new(definition.name().to_owned(), definition.description().to_owned(), schema);
    tool.title = of("title").and_then(|title| title.as_str().map(str::to_owned));
    tool.annotations = of("annotations").and_then(|it| serde_json::from_value(it).ok());
    tool.output_schema = of("outputSchema").and_then(|it| it.as_object().cloned()).map(Arc::new);
    tool
}

fn refused(reply: Reply) -> ErrorData {
    match reply {
        Reply::Error(error) => error,
        Reply::Result(result) => {
            ErrorData::invalid_request(crate::result::text(&result.content), None)
        }
        Reply::Raw(_) | Reply::InputRequired(_) => {
            ErrorData::internal_error("an answer of another kind", None)
        }
    }
}

fn method<M: rmcp::model::ConstString>() -> ErrorData {
    ErrorData::method_not_found::<M>()
}

macro_rules! passed_list {
    ($self:ident, $cx:ident, $params:ident, $field:ident, $Method:ident, $Request:ident, $Result:ident) => {{
        let upstream =
            $self.upstream_with(&$cx, |it| it.$field.is_some(), method::<$Method>()).await?;
        let mut request = $Request::default();
        request.params = $params;
        let sent = ClientRequest::$Request(request);
        match upstream.toolset.connection.request(sent, None).await.map_err(failed)? {
            ServerResult::$Result(mut result) => {
                result.result_type = Some(ResultType::COMPLETE);
                Ok(result)
            }
            _ => {
                Err(ErrorData::internal_error("the server has answered with something else", None))
            }
        }
    }};
}

impl ServerHandler for Requests {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.offered());
        info.server_info = Implementation::new(self.shared.name.clone(), env!("CARGO_PKG_VERSION"));
        if let Some(upstream) = &self.shared.upstream {
            upstream.describe(&mut info);
        }
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        cx.peer.set_peer_info(request.clone());
        self.connect(Some(&request.capabilities)).await?;
        self.negotiate_initialize(&request)
    }

    async fn discover(&self, cx: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.connect(cx.client_capabilities().as_ref()).await?;
        let mut info = self.get_info();
        only_the_newest(&mut info.capabilities);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&ERAS)
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        let (mut changed, offered) = (self.shared.changes(), self.offered());
        let mut known = *changed.borrow();
        let upstream = self.shared.upstream.as_ref().map(|it| &it.toolset.connection);
        if let Some(connection) = upstream {
            self.pass_updates_on(connection, cx.peer.clone());
        }
        let gone = self.gone.clone();
        tokio::spawn(async move {
            while let Some(Ok(())) = gone.run_until_cancelled(changed.changed()).await {
                let now = *changed.borrow_and_update();
                if !known.tell(now, &cx.peer, &offered).await {
                    return;
                }
                known = now;
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted.prompts_list_changed = requested.prompts_list_changed;
        accepted.resources_list_changed = requested.resources_list_changed;
        Some(accepted)
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.shared.changes();
        let mut known = *changed.borrow();
        loop {
            tokio::select! {
                () = cx.cancelled() => return Ok(()),
                () = self.shared.stopping.cancelled() => return Ok(()),
                more = changed.changed() => {
                    let now = *changed.borrow_and_update();
                    if more.is_err() || !known.stream(now, &cx).await {
                        return Ok(());
                    }
                    known = now;
                }
            }
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if let Err(error) = self.shared.identity("").await {
            tracing::debug!(target: "countersign::mcp", server = self.shared.name, %error, "the tools cannot be read");
        }
        let Some(upstream) = &self.shared.upstream else {
            let definitions = self.definitions().await?;
            return Ok(ListToolsResult::with_all_items(definitions.iter().map(listed).collect()));
        };
        let mut tools = upstream.tools().await.map_err(|error| {
            tracing::error!(target: "countersign::mcp", server = self.shared.name, %error, "the tools cannot be listed");
            ErrorData::internal_error(error.to_string(), None)
        })?;
        let offered: std::collections::HashSet<String> =
            self.definitions().await?.iter().map(|it| it.name().to_owned()).collect();
        tools.retain(|tool| offered.contains(&*tool.name));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        cx: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(refusal_of(request, cx.protocol_version().as_ref()))
    }

    /// The library compares headers of HTTP that repeat an argument with the argument.
    fn get_tool(&self, name: &str) -> Option<Listed> {
        let parameters = self.shared.parameters(name)?;
        Some(Listed::new(name.to_owned(), "", parameters))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = params.name.into_owned();
        if JUDGED.contains(&&*tool) && self.shared.upstream.is_some() {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        if let Some(unknown) = self.shared.unknown_tool(&tool).await {
            return Ok(CallToolResponse::Complete(unknown));
        }
        let args = Value::Object(params.arguments.unwrap_or_default());
        let request =
            Request { tool, args, state: params.request_state, responses: params.input_responses };
        match self.serve(request, &cx).await {
            Reply::Result(mut result) => {
                result.result_type = Some(ResultType::COMPLETE);
                Ok(CallToolResponse::Complete(*result))
            }
            Reply::InputRequired(required) => Ok(CallToolResponse::InputRequired(*required)),
            other => Err(refused(other)),
        }
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        passed_list!(
            self,
            cx,
            params,
            resources,
            ListResourcesRequestMethod,
            ListResourcesRequest,
            ListResourcesResult
        )
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        passed_list!(
            self,
            cx,
            params,
            resources,
            ListResourceTemplatesRequestMethod,
            ListResourceTemplatesRequest,
            ListResourceTemplatesResult
        )
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        passed_list!(
            self,
            cx,
            params,
            prompts,
            ListPromptsRequestMethod,
            ListPromptsRequest,
            ListPromptsResult
        )
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.upstream_with(
            &cx,
            |it| it.resources.is_some(),
            method::<rmcp::model::ReadResourceRequestMethod>(),
        )
        .await?;
        let (tool, args) = (READ_RESOURCE.to_owned(), json!({"uri": params.uri}));
        let request =
            Request { tool, args, state: params.request_state, responses: params.input_responses };
        Ok(match self.passed_on::<rmcp::model::ReadResourceResult>(request, &cx).await? {
            Either::Left(mut result) => {
                result.result_type = Some(ResultType::COMPLETE);
                result.into()
            }
            Either::Right(required) => ReadResourceResponse::InputRequired(required),
        })
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.upstream_with(
            &cx,
            |it| it.prompts.is_some(),
            method::<rmcp::model::GetPromptRequestMethod>(),
        )
        .await?;
        let mut args = json!({"name": params.name});
        if let (Some(arguments), Some(map)) = (params.arguments, args.as_object_mut()) {
            map.insert("arguments".to_owned(), Value::Object(arguments));
        }
        let tool = GET_PROMPT.to_owned();
        let request =
            Request { tool, args, state: params.request_state, responses: params.input_responses };
        Ok(match self.passed_on::<rmcp::model::GetPromptResult>(request, &cx).await? {
            Either::Left(mut result) => {
                result.result_type = Some(ResultType::COMPLETE);
                result.into()
            }
            Either::Right(required) => GetPromptResponse::InputRequired(required),
        })
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.completed(params, &cx).await
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed(params, &cx).await
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unsubscribed(params, &cx).await
    }

    #[expect(deprecated, reason = "clients of earlier revisions send it")]
    async fn set_level(
        &self,
        params: rmcp::model::SetLevelRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.level_set(params, &cx).await
    }
}

/// The revisions that are spoken.
static ERAS: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

impl Shared {
    /// Counts the changes of the served tools.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<ListChanges> {
        match &self.upstream {
            Some(upstream) => upstream.toolset.connection.changes(),
            None => self.changed.subscribe(),
        }
    }
}
