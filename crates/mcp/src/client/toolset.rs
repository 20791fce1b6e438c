//! The tools of an MCP server as a toolset: a leaf under every layer, rule and grant.
//!
//! We take a list as far as we can use it. If one tool is bad, we leave it out, with a warning in the log, and offer
//! the others:
//!
//! | a tool is left out when | reason |
//! |---|---|
//! | its name is empty, longer than 128 bytes, or not shown as it is (a space at an end) | a person could not tell it from another |
//! | its name contains `*` or `?` | rules would read it as a pattern |
//! | its name is that of a request, as `resources/read` | these are judged as calls of the guard's own tools |
//! | two tools have its name | which one would run is the server's choice |
//! | its schema is none, or nested too deeply | its arguments could not be checked |

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, CompleteRequestParams,
    ElicitResult, ElicitationAction, GetPromptRequest, GetPromptRequestParams, InputRequest,
    InputRequiredResult, JsonObject, ListToolsRequest, MetaObject, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, Request, RequestMetaObject, ServerPeerInfo,
    ServerResult, SubscribeRequestParams, Tool as Listed,
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::{Connection, Failed};
use super::launch::Launch;
use crate::McpError;
use crate::downstream::{Downstream, Raw};
use crate::form;
use crate::result;
use countersign::args::Args;
use countersign::call::{RunContext, ToolDefinition};
use countersign::error::BoxError;
use countersign::outcome::{ToolError, ToolFailed, ToolReturn};
use countersign::toolset::{Permit, Toolset};

/// The tool under which reading a resource is judged.
pub(crate) const READ_RESOURCE: &str = "resources/read";
/// The tool under which getting a prompt is judged.
pub(crate) const GET_PROMPT: &str = "prompts/get";
/// The tool under which completing an argument is judged.
pub(crate) const COMPLETE: &str = "completion/complete";
/// The tool under which subscribing to a resource is judged.
pub(crate) const SUBSCRIBE: &str = "resources/subscribe";
/// The requests that are judged as calls; no tool of a server has one of these names.
pub(crate) const JUDGED: [&str; 4] = [READ_RESOURCE, GET_PROMPT, COMPLETE, SUBSCRIBE];
/// The time for which a listing is used before the server is asked again, also without a notification.
const FRESH: Duration = Duration::from_secs(5);
/// The most pages of a list, against a server whose list never ends.
const MAX_PAGES: usize = 1_000;
/// The number of rounds of questions that a server may send within one call.
///
/// Each round asks a person.
const MAX_ROUNDS: usize = 10;
/// The key in `_meta` of the idempotency key.
const IDEMPOTENCY: &str = "countersign/idempotencyKey";

/// The tools of one MCP server, as a [`Toolset`]: put layers around them as around any other.
///
/// A tool's source is the server's name in your configuration and the tool's own name
/// ([`ToolDefinition::source`]), as data. Its annotations, title and output schema are in the definition's metadata
/// under `mcp`. The hints of a server can only make a call stricter; `idempotentHint` never makes a tool idempotent.
///
/// The server's later changes of its tools are offered as they are; [`pinned`](Self::pinned) has people accept them.
///
/// A result with `isError` is a failed outcome. A server that dies in a call leaves the outcome *may have run*; the next
/// call starts it again, with growing pauses while it does not come up. Progress keeps a call's time limit from passing,
/// and a call that is given up is cancelled at the server.
///
/// ```no_run
/// use countersign_mcp::{Launch, McpToolset};
/// use countersign::{ToolsExt, Turn};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let git = McpToolset::connect("git", Launch::command("mcp-server-git").args(["--repository", "."])).await?;
/// let turn = Turn::new(git.approval_required());
/// # let _ = turn; Ok(()) }
/// ```
#[derive(Clone)]
pub struct McpToolset {
    pub(crate) connection: Arc<Connection>,
    id: Arc<str>,
    listing: Arc<RwLock<Option<Listing>>>,
    /// `true` if resources and prompts are tools, too, as a guard judges them.
    whole: bool,
}

/// The latest listing of the server.
#[derive(Clone)]
struct Listing {
    tools: Arc<ListedTools>,
    /// The count of changes that this listing was made after.
    changes: u64,
    at: Instant,
}

/// The tools of a listing. The next listing shares them if the server lists the same again, as reading a thousand
/// schemas takes longer than getting them.
pub(crate) struct ListedTools {
    /// As they came, also those that are not offered.
    listed: Vec<Listed>,
    definitions: Vec<ToolDefinition>,
    validators: HashMap<String, jsonschema::Validator>,
    /// The offered tools, and what else of the server is pinned.
    pub(crate) pinned: PinnedParts,
}

/// The parts of a server that are pinned, as they are now: each by its name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PinnedParts {
    pub(crate) tools: BTreeMap<String, Value>,
    /// The server's words about itself.
    pub(crate) about: BTreeMap<String, Value>,
    /// The files and packages that its command names.
    pub(crate) programs: BTreeMap<String, Value>,
}

impl ListedTools {
    /// The tools that are offered, in the server's order.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &Listed> {
        self.listed.iter().filter(|tool| self.pinned.tools.contains_key(&*tool.name))
    }
}

impl McpToolset {
    /// Connects to the server and lists its tools. `name` is the name of the server in your configuration; the server's
    /// own name for itself is never used.
    ///
    /// # Errors
    /// [`McpError`] when the server cannot be started, speaks no MCP, or cannot list its tools.
    ///
    /// We start the server here and list its tools once. So a wrong command is an error at the start of your
    /// program.
    ///
    /// ```no_run
    /// use countersign_mcp::{Launch, McpToolset};
    /// use countersign::{Tools, ToolsExt, Turn};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let git = McpToolset::connect("git", Launch::command("mcp-server-git")).await?;
    /// let docs = McpToolset::connect("docs", Launch::url("https://docs.example/mcp")).await?;
    /// // Two servers may have tools of one name, so each gets a prefix.
    /// let turn = Turn::new(Tools::combined([git.prefixed("git"), docs.prefixed("docs")]));
    /// assert!(turn.definitions().await?.iter().any(|tool| tool.name() == "git_status"));
    /// # Ok(()) }
    /// ```
    pub async fn connect(name: impl Into<Arc<str>>, launch: Launch) -> Result<Self, McpError> {
        let this = Self::new(name, launch, false);
        checked_name(this.server())?;
        this.list(true).await?;
        Ok(this)
    }

    /// A toolset that connects when it is used first.
    pub(crate) fn new(name: impl Into<Arc<str>>, launch: Launch, whole: bool) -> Self {
        let name = name.into();
        let id = format!("mcp:{name}").into();
        Self { connection: Connection::new(name, launch), id, listing: Arc::default(), whole }
    }

    /// The name of the server in the user's configuration.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.connection.name
    }

    /// Waits until the server says that its lists have changed, or was started again.
    ///
    /// ```no_run
    /// # async fn watch(git: countersign_mcp::McpToolset) {
    /// git.wait_for_change().await;
    /// println!("{} has other tools now", git.server());
    /// # }
    /// ```
    pub async fn wait_for_change(&self) {
        // The sender lives as long as the connection that this value holds.
        _ = self.connection.changes().changed().await;
    }

    /// The tools as the server lists them now, or has within the last seconds.
    pub(crate) async fn list(&self, anew: bool) -> Result<Arc<ListedTools>, McpError> {
        let changes = self.connection.changes().borrow().tools;
        match self.latest() {
            Some(known) if !anew && known.changes == changes && known.at.elapsed() < FRESH => {
                Ok(known.tools)
            }
            known => Box::pin(self.list_anew(known)).await,
        }
    }

    /// The time within which the tools are listed, or an error says why they are not: the start of the server and its list have
    /// the start timeout each.
    pub(crate) fn listing_within(&self) -> Duration {
        self.connection
            .launch
            .start_timeout
            .saturating_mul(2)
            .saturating_add(Duration::from_secs(1))
    }

    fn latest(&self) -> Option<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// We read the number of changes again after the listing, so a change during it is not counted as listed twice.
    /// The next call finds a change that comes right after.
    async fn list_anew(&self, known: Option<Listing>) -> Result<Arc<ListedTools>, McpError> {
        // The start of a server has a limit of its own, whose error says more.
        self.connection.peer().await?;
        let limit = self.connection.launch.start_timeout;
        let listed = match tokio::time::timeout(limit, self.pages()).await {
            Ok(listed) => listed?,
            Err(_) => {
                let seconds = limit.as_secs_f32();
                let problem = format!("no answer within its start timeout of {seconds} s");
                return Err(self.list_error(problem));
            }
        };
        let changes = self.connection.changes().borrow().tools;
        let about = about(&*self.connection.info().await?);
        let programs = self.connection.programs();
        let is_same = |known: &Listing| {
            let (listed_before, pinned) = (&known.tools.listed, &known.tools.pinned);
            *listed_before == listed && pinned.about == about && pinned.programs == programs
        };
        let tools = match known.filter(is_same) {
            Some(known) => known.tools,
            None => {
                let mut tools = self.read(listed);
                (tools.pinned.about, tools.pinned.programs) = (about, programs);
                Arc::new(tools)
            }
        };
        let listing = Listing { tools: Arc::clone(&tools), changes, at: Instant::now() };
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(listing);
        Ok(tools)
    }

    fn list_error(&self, problem: impl fmt::Display) -> McpError {
        let problem: String =
            countersign::show::escape(&problem.to_string()).chars().take(300).collect();
        McpError::List { server: self.server().to_owned(), problem }
    }

    async fn pages(&self) -> Result<Vec<Listed>, McpError> {
        let info = self.connection.info().await?;
        if info.capabilities.tools.is_none() {
            return Ok(Vec::new());
        }
        let (mut tools, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ListToolsRequest { params: Some(params), ..Default::default() };
            let sent =
                self.connection.request(ClientRequest::ListToolsRequest(request), None).await;
            let (page, next) = match sent {
                Ok(ServerResult::ListToolsResult(page)) => (page.tools, page.next_cursor),
                // A page with one tool that cannot be read; the others can.
                Ok(ServerResult::CustomResult(page)) => self.one_by_one(&page.0)?,
                Ok(_) => return Err(self.list_error("its answer is not a list of tools")),
                Err(Failed::NotSent(error)) => return Err(error),
                Err(Failed::Unknown(problem)) => return Err(self.list_error(problem)),
                Err(Failed::Answered(error)) => return Err(self.list_error(error.message)),
            };
            tools.extend(page);
            match next {
                None => return Ok(tools),
                Some(next) if cursor.as_ref() == Some(&next) => break,
                next => cursor = next,
            }
        }
        Err(self.list_error("its list of tools does not end"))
    }

    fn one_by_one(&self, page: &Value) -> Result<(Vec<Listed>, Option<String>), McpError> {
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err(self.list_error("its answer is not a list of tools"));
        };
        let mut read = Vec::new();
        for tool in tools {
            match Listed::deserialize(tool) {
                Ok(tool) => read.push(tool),
                Err(error) => self
                    .not_offered(tool.get("name").and_then(Value::as_str).unwrap_or("?"), &error),
            }
        }
        Ok((read, page.get("nextCursor").and_then(Value::as_str).map(str::to_owned)))
    }

    fn not_offered(&self, tool: &str, why: &(impl fmt::Display + ?Sized)) {
        let (server, tool) = (self.server(), countersign::show::escape_name(tool));
        let why: String = countersign::show::escape(&why.to_string()).chars().take(200).collect();
        tracing::warn!(target: "countersign::mcp", server, tool, why, "a tool of the server is not offered");
    }

    /// Takes the tools that can be offered: with a name of their own that is shown as it is, and a schema.
    fn read(&self, listed: Vec<Listed>) -> ListedTools {
        let mut counts = HashMap::<String, usize>::new();
        for tool in &listed {
            *counts.entry(tool.name.to_string()).or_default() += 1;
        }
        let (mut definitions, mut validators) = (Vec::new(), HashMap::new());
        let mut pinned = PinnedParts::default();
        for tool in &listed {
            let name = tool.name.to_string();
            if !is_clear(&name) || JUDGED.contains(&&*name) {
                self.not_offered(
                    &name,
                    "its name is empty, reserved, too long, a pattern, or not shown as it is",
                );
                continue;
            }
            if counts.get(&name).is_some_and(|count| *count > 1) {
                self.not_offered(&name, "the server has several tools of this name");
                continue;
            }
            let schema = Value::Object((*tool.input_schema).clone());
            let definition = json!(tool);
            // As deep as it is in the ask by which a change of it is accepted.
            if Args::try_from(json!({"changed": {"tool": {"now": definition}}})).is_err() {
                self.not_offered(&name, "its definition is nested too deeply");
                continue;
            }
            match jsonschema::validator_for(&schema) {
                Ok(validator) => {
                    definitions.push(self.definition(tool));
                    pinned.tools.insert(name.clone(), definition);
                    validators.insert(name, validator);
                }
                Err(error) => self.not_offered(&name, &error),
            }
        }
        if self.whole {
            definitions.extend(self.request_tools());
        }
        ListedTools { listed, definitions, validators, pinned }
    }

    /// A tool of the server, as layers and models see it.
    pub(crate) fn definition(&self, tool: &Listed) -> ToolDefinition {
        let declared = json!({
            "annotations": tool.annotations,
            "outputSchema": tool.output_schema,
            "title": tool.title,
        });
        let (name, schema) = (tool.name.to_string(), Value::Object((*tool.input_schema).clone()));
        let idempotent = self.connection.launch.idempotent.contains(&name);
        ToolDefinition::new(name, schema)
            .with_description(tool.description.clone().unwrap_or_default().into_owned())
            .with_server(Arc::clone(&self.connection.name))
            .with_idempotent(idempotent)
            .with_metadata("mcp", declared)
    }

    /// Requests beside calls, as the tools under which a guard judges them.
    fn request_tools(&self) -> [ToolDefinition; 4] {
        let named = |name: &str, field: &str, kind: &str| {
            let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
            ToolDefinition::new(name, schema).with_server(Arc::clone(&self.connection.name))
        };
        [
            named(READ_RESOURCE, "uri", "string"),
            named(GET_PROMPT, "name", "string"),
            named(COMPLETE, "argument", "object"),
            named(SUBSCRIBE, "uri", "string"),
        ]
    }

    /// We send the idempotency key in `_meta`: a server that knows it can recognize a repeated call by itself. If
    /// a person has approved, the key is the id of the ask, which is the same in every process.
    async fn call(&self, permit: &Permit) -> Result<ToolReturn, ToolError> {
        let cx = permit.context();
        let downstream = cx.deps::<Arc<Downstream>>().ok().cloned();
        let own = downstream
            .as_ref()
            .and_then(|downstream| crate::downstream::lock(&downstream.key).clone());
        let mut meta = MetaObject::new();
        if let Some(key) = own.or_else(|| cx.idempotency_key()) {
            meta.0.insert(IDEMPOTENCY.to_owned(), Value::String(key));
        }
        let mut asked = AskedBack { meta: RequestMetaObject(meta), ..AskedBack::default() };
        for _ in 0..MAX_ROUNDS {
            let request = request(permit.tool(), permit.args(), &asked)?;
            match self.connection.request(request, downstream.as_ref()).await {
                Ok(ServerResult::InputRequiredResult(required)) => {
                    asked = answered(required, downstream.as_ref(), asked.meta).await;
                }
                Ok(answer) => return self.done(permit.tool(), &answer, downstream.as_ref()),
                Err(Failed::NotSent(error)) => {
                    return Err(ToolFailed::new(format!("The tool did not run: {error}.")).into());
                }
                Err(Failed::Unknown(why)) => {
                    return Err(ToolError::unknown(format!("{why}: the tool may have run.")));
                }
                Err(Failed::Answered(error)) => {
                    let text = error.message.to_string();
                    if let Some(downstream) = &downstream {
                        downstream.put(Raw::Error(error));
                    }
                    return Err(ToolFailed::new(text).into());
                }
            }
        }
        Err(ToolFailed::new(format!("`{}` asked the client too often.", self.server())).into())
    }

    fn done(
        &self,
        tool: &str,
        answer: &ServerResult,
        downstream: Option<&Arc<Downstream>>,
    ) -> Result<ToolReturn, ToolError> {
        let raw = match answer {
            ServerResult::CallToolResult(result) if !JUDGED.contains(&tool) => json!(result),
            ServerResult::ReadResourceResult(result) if tool == READ_RESOURCE => json!(result),
            ServerResult::GetPromptResult(result) if tool == GET_PROMPT => json!(result),
            ServerResult::CompleteResult(result) if tool == COMPLETE => json!(result),
            ServerResult::EmptyResult(_) if tool == SUBSCRIBE => json!({}),
            _ => {
                let text =
                    format!("`{}` has answered with something else than a result.", self.server());
                return Err(ToolError::unknown(format!("{text} The tool may have run.")));
            }
        };
        if let Some(downstream) = downstream {
            downstream.put(Raw::Result(raw.clone()));
        }
        match answer {
            ServerResult::CallToolResult(result) => result::returned(result),
            _ => Ok(ToolReturn::new(raw)),
        }
    }
}

/// Returns `true` if a name is shown as it is, and is no pattern of rules.
fn is_clear(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.trim() == name
        && !name.contains(['*', '?'])
        && countersign::show::escape_name(name) == name
}

/// Checks the name of a server in the user's configuration. It is shown, and read by rules, as `mcp:<server>/<tool>`,
/// where the first `/` ends it.
pub(crate) fn checked_name(server: &str) -> Result<(), McpError> {
    if is_clear(server) && !server.contains('/') {
        return Ok(());
    }
    let shown = countersign::show::escape_name(server);
    Err(McpError::Config {
        problem: format!(
            "`{shown}` cannot be the name of a server: give it one without `/`, `*`, `?` and spaces at its ends, of \
             visible ASCII and at most 128 characters"
        ),
    })
}

/// A server's words about itself, as far as clients are told them.
pub(crate) fn about(info: &ServerPeerInfo) -> BTreeMap<String, Value> {
    let itself = info.server_info.as_ref();
    let texts = [
        ("instructions", info.instructions.as_ref()),
        ("title", itself.and_then(|it| it.title.as_ref())),
        ("version", itself.map(|it| &it.version)),
    ];
    let said = texts.into_iter().filter_map(|(name, text)| Some((name, text?)));
    let said = said.filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name.to_owned(), Value::String(text.clone()))).collect()
}

/// The questions that a server has sent so far within a call, with the answers.
#[derive(Default)]
struct AskedBack {
    meta: RequestMetaObject,
    responses: Option<BTreeMap<String, Value>>,
    state: Option<String>,
}

fn request(tool: &str, args: &Args, asked: &AskedBack) -> Result<ClientRequest, ToolError> {
    let missing = |what: &str| ToolError::from(ToolFailed::new(format!("`{what}` is missing.")));
    Ok(match tool {
        READ_RESOURCE => {
            let mut params =
                ReadResourceRequestParams::new(args.str("uri").ok_or_else(|| missing("uri"))?);
            params.meta = Some(asked.meta.clone());
            (params.input_responses, params.request_state) =
                (asked.responses.clone(), asked.state.clone());
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        }
        GET_PROMPT => {
            let mut params =
                GetPromptRequestParams::new(args.str("name").ok_or_else(|| missing("name"))?);
            params.meta = Some(asked.meta.clone());
            params.arguments = args.get("arguments").and_then(Value::as_object).cloned();
            (params.input_responses, params.request_state) =
                (asked.responses.clone(), asked.state.clone());
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        }
        COMPLETE => {
            let mut params: CompleteRequestParams = serde_json::from_value(args.to_value())
                .map_err(|error| ToolError::from(ToolFailed::new(error.to_string())))?;
            params.meta = Some(asked.meta.clone());
            ClientRequest::CompleteRequest(CompleteRequest::new(params))
        }
        SUBSCRIBE => {
            let uri = args.str("uri").ok_or_else(|| missing("uri"))?;
            ClientRequest::SubscribeRequest(Request::new(SubscribeRequestParams::new(uri)))
        }
        name => {
            let arguments: JsonObject = args.as_map().clone();
            let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
            params.meta = Some(asked.meta.clone());
            (params.input_responses, params.request_state) =
                (asked.responses.clone(), asked.state.clone());
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        }
    })
}

/// Passes the server's questions to the client's person; questions of other kinds are cancelled.
async fn answered(
    required: InputRequiredResult,
    downstream: Option<&Arc<Downstream>>,
    meta: RequestMetaObject,
) -> AskedBack {
    let mut responses = BTreeMap::new();
    for (key, question) in required.input_requests.unwrap_or_default() {
        let elicit = downstream.and_then(|downstream| downstream.elicit.as_ref());
        let answer = match (question, elicit) {
            (InputRequest::Elicitation(question), Some(elicit))
                if form::is_form(&question.params) =>
            {
                elicit(key.clone(), question.params).await
            }
            _ => ElicitResult::new(ElicitationAction::Cancel),
        };
        responses.insert(key, json!(answer));
    }
    AskedBack { meta, responses: Some(responses), state: required.request_state }
}

impl Toolset for McpToolset {
    fn id(&self) -> &str {
        &self.id
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Ok(self.list(false).await?.definitions.clone())
    }

    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        let Some(Listing { tools, .. }) = self.latest() else { return Ok(()) };
        let Some(validator) = tools.validators.get(tool) else { return Ok(()) };
        let value = args.to_value();
        let problems =
            validator.iter_errors(&value).map(|error| match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                path => format!("`{path}`: {}", error.masked()),
            });
        let problems: Vec<_> = problems.collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        self.call(&permit).await
    }
}

impl fmt::Debug for McpToolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpToolset").field("server", &self.server()).finish_non_exhaustive()
    }
}
