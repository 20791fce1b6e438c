//! The server's side of the protocol: the requests that are answered, and the principals that they act for.
//!
//! The face translates between the protocol and the served calls, and holds no state of calls: that is in [`Shared`],
//! since a client may come back on another connection.
//!
//! Who a request acts for:
//!
//! | transport | `authorize` | principal | shares asks with |
//! |---|---|---|---|
//! | HTTP | gives a name | the name | all requests of that name |
//! | HTTP | not set | `anonymous`, with a number of the connection | no one else |
//! | stdio | | [`Server::principal`](super::Server::principal) | all clients of that name |
//!
//! Two anonymous connections with one principal would answer each other's asks: an approval that one person gave would
//! run the call of another person (rule M3).

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::Either;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientRequest,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, InputRequiredResult, ListPromptsRequest, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ResultType, ServerCapabilities, ServerConfig,
    ServerResult, SubscriptionFilter, Tool as Listed,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::connection::Failed;
use super::flight::{CallingClient, Reply, Request};
use super::shared::{Shared, Upstream};
use super::toolset::{GET_PROMPT, READ_RESOURCE};
use crate::call::ToolDefinition;
use crate::turn::Turn;

/// The person that a request of HTTP acts for, as `authorize` has found out.
#[derive(Clone)]
pub(super) struct HttpPrincipal(pub(super) Option<String>);

/// One connection of a client, or one request of a client without connections.
pub(super) struct Face {
    shared: Arc<Shared>,
    http: bool,
    /// Tells this connection apart from others, for clients without a name.
    nonce: String,
}

impl Face {
    pub(super) fn new(shared: Arc<Shared>, http: bool) -> Self {
        Self { shared, http, nonce: uuid::Uuid::now_v7().to_string() }
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
        CallingClient { principal, nonce, forms, urls, rounds }
    }

    async fn serve(&self, request: Request, cx: &RequestContext<RoleServer>) -> Reply {
        let _in_flight = Arc::clone(&self.shared.in_flight);
        let client = self.client(cx, request.state.as_deref());
        self.shared.call(client, request, cx).await
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
        mine.resources = offered.resources.clone().map(|mut resources| {
            resources.subscribe = None;
            resources
        });
        // The first connection counts; a server that offers less later fails its requests.
        _ = upstream.capabilities.set(mine);
        if let Some(pins) = &upstream.pins {
            pins.look().await;
        }
        Ok(())
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
        Turn::new(self.shared.tools.clone()).definitions().await.map_err(|error| {
            tracing::error!(target: "countersign::mcp", server = self.shared.name, %error, "the tools cannot be listed");
            ErrorData::internal_error("the tools cannot be listed", None)
        })
    }

    /// The upstream server, if its kind of list is offered to clients.
    async fn beside(
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

/// Whether a client declares forms and links. Without either, an earlier client means forms.
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
    let beside = definition.metadata().get("mcp").cloned().unwrap_or_default();
    let of = |key: &str| beside.get(key).filter(|value| !value.is_null()).cloned();
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
            ErrorData::invalid_request(super::result::text(&result.content), None)
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
        let upstream = $self.beside(&$cx, |it| it.$field.is_some(), method::<$Method>()).await?;
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

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.offered());
        info.server_info = Implementation::new(self.shared.name.clone(), env!("CARGO_PKG_VERSION"));
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
        Ok(DiscoverResult::from_server_info(
            self.supported_protocol_versions().into_owned(),
            self.get_info(),
        ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&ERAS)
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        let mut changed = self.shared.changes();
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                if cx.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.shared.changes();
        loop {
            tokio::select! {
                () = cx.cancelled() => return Ok(()),
                () = self.shared.stopping.cancelled() => return Ok(()),
                more = changed.changed() => {
                    if more.is_err() || cx.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Some(upstream) = &self.shared.upstream else {
            let definitions = self.definitions().await?;
            return Ok(ListToolsResult::with_all_items(definitions.iter().map(listed).collect()));
        };
        let listing = upstream.toolset.list(true).await.map_err(|error| unreachable(&error))?;
        if let Some(pins) = &upstream.pins {
            pins.look().await;
        }
        let offered: std::collections::HashSet<String> =
            self.definitions().await?.iter().map(|it| it.name().to_owned()).collect();
        let mut tools = Vec::new();
        for tool in listing.tools.iter().filter(|tool| offered.contains(&*tool.name)) {
            let tool = match &upstream.pins {
                // The accepted definition: a server that changes it cannot get a new text to the model.
                Some(pins) => {
                    let shown = pins.listed(&tool.name, json!(tool)).await;
                    serde_json::from_value(shown).unwrap_or_else(|_| tool.clone())
                }
                None => tool.clone(),
            };
            tools.push(tool);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = params.name.into_owned();
        if [READ_RESOURCE, GET_PROMPT].contains(&&*tool) && self.shared.upstream.is_some() {
            return Err(ErrorData::invalid_params("unknown tool", None));
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
        self.beside(
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
        self.beside(
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
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(method::<CompleteRequestMethod>())
    }
}

/// The revisions that are spoken.
static ERAS: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

impl Shared {
    /// Counts the changes of the served tools.
    fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        match &self.upstream {
            Some(upstream) => upstream.toolset.connection.changes(),
            None => self.changed.subscribe(),
        }
    }
}
