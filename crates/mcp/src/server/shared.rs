//! The state that all requests of a server share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{
    CallToolResult, JsonObject, ServerCapabilities, ServerConfig, ServerPeerInfo, Tool as Listed,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::asks::Asks;
use super::in_flight::{CallInFlight, Reply, STATE, STATE_VALID, State};
use super::request_ids::RequestIds;
use crate::McpError;
use crate::client::announcements::ListChanges;
use crate::client::launch::digest;
use crate::client::toolset::{JUDGED, McpToolset};
use crate::downstream::lock;
use crate::pins::Pins;
use crate::result;
use countersign::call::ToolDefinition;
use countersign::error::BoxError;
use countersign::origin::ReadLabel;
use countersign::outcome::Outcome;
use countersign::seal::SealKeys;
use countersign::tools::Tools;
use countersign::turn::Turn;

/// The time for which the identities of tools are used before they are read again.
///
/// If we listed a server's tools for each call, we would double its requests. A change that the server announces ends this
/// time, and within it the pin still finds a changed tool.
const FRESH: Duration = Duration::from_secs(5);
/// The time for which calls may run after the client's connection has ended.
///
/// If we ended the process at once, every call in flight would be one that may have run.
const ENDING: Duration = Duration::from_secs(5);

/// Finds the name of the person that a request of HTTP acts for.
pub(crate) type FindPrincipal = Arc<
    dyn Fn(axum::http::HeaderMap) -> futures::future::BoxFuture<'static, Option<String>>
        + Send
        + Sync,
>;

/// Says how the results of a tool are labelled.
pub(crate) type LabelTools = dyn Fn(&ToolDefinition) -> Option<ReadLabel> + Send + Sync;

/// A guard's upstream server.
pub(crate) struct Upstream {
    pub(crate) toolset: McpToolset,
    pub(crate) pins: Option<Arc<Pins>>,
    /// The server's words about itself, as clients are told them once it was reached.
    pub(crate) about: Mutex<BTreeMap<String, Value>>,
    /// The lists that the upstream server offers, once it was reached.
    pub(crate) capabilities: OnceLock<ServerCapabilities>,
}

impl Upstream {
    /// Proposes what is new of the server, and keeps what clients are told of its words about itself.
    pub(crate) async fn look(&self, info: &ServerPeerInfo) {
        let about = match &self.pins {
            Some(pins) => {
                pins.look().await;
                pins.about().await
            }
            None => crate::client::toolset::about(info),
        };
        *lock(&self.about) = about;
    }

    /// Adds what the server says about itself, as clients are told it.
    pub(crate) fn describe(&self, info: &mut ServerConfig) {
        let about = lock(&self.about);
        let of = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
        (info.instructions, info.server_info.title) = (of("instructions"), of("title"));
        if let Some(version) = of("version") {
            info.server_info.version = version;
        }
    }

    /// The tools as clients are told them.
    pub(crate) async fn tools(&self) -> Result<Vec<Listed>, BoxError> {
        let listing = self.toolset.list(true).await?;
        match &self.pins {
            Some(pins) => {
                pins.look().await;
                pins.shown(&listing).await
            }
            None => Ok(listing.offered().cloned().collect()),
        }
    }
}

/// The tools by their names.
type Identities = Arc<HashMap<String, ToolIdentity>>;

/// The tools as they were read at a moment, behind so many announced changes.
#[derive(Clone)]
pub(crate) struct KnownTools {
    at: Instant,
    changes: u64,
    tools: Identities,
}

/// Finds the address of the inbox, if there is one.
pub(crate) type InboxPlace = dyn Fn() -> Option<String> + Send + Sync;

/// The state that all requests of a server share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) tools: Tools,
    pub(crate) scope: Value,
    /// The labels of results, if what clients read is recorded.
    pub(crate) labels: Option<Arc<LabelTools>>,
    pub(crate) asks: Asks,
    pub(crate) keys: SealKeys,
    pub(crate) wait: Duration,
    pub(crate) inbox: Option<Arc<InboxPlace>>,
    /// The place where a person answers, for clients whose call waits.
    pub(crate) answer_hint: String,
    /// `true` if people may answer in forms of their clients.
    pub(crate) forms: bool,
    pub(crate) principal: String,
    pub(crate) upstream: Option<Upstream>,
    /// The calls whose servers have sent a question, until their clients answer.
    pub(crate) kept: Mutex<HashMap<String, CallInFlight>>,
    pub(crate) identities: RwLock<Option<KnownTools>>,
    pub(crate) changed: watch::Sender<ListChanges>,
    pub(crate) in_flight: Arc<()>,
    pub(crate) request_ids: Arc<RequestIds>,
    /// Cancelled when the program ends: no call begins any more.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when the client on stdio is gone: no call waits for a person any more.
    pub(crate) disconnected: CancellationToken,
    /// `true` if we see whether a response was written to its client.
    pub(crate) sees_writes: bool,
}

#[derive(Clone)]
pub(crate) struct ToolIdentity {
    digest: String,
    has_schema: bool,
    parameters: Arc<JsonObject>,
}

impl Shared {
    /// A turn over the tools. An upstream server has limits of its own for its start and its list, and their errors say more than
    /// that of the turn.
    pub(crate) fn turn(&self) -> Turn {
        let turn = Turn::new(self.tools.clone());
        match &self.upstream {
            Some(upstream) => turn.describing_within(upstream.toolset.listing_within()),
            None => turn,
        }
    }

    /// The digest of a tool's source and schema; empty for an unknown tool.
    pub(crate) async fn identity(&self, tool: &str) -> Result<String, BoxError> {
        // A change that is announced while they are read is a later one.
        let changes = self.changes().borrow().tools;
        let known = self.identities.read().unwrap_or_else(PoisonError::into_inner).clone();
        let is_fresh = |it: &KnownTools| it.changes == changes && it.at.elapsed() < FRESH;
        let known = match known.filter(is_fresh) {
            Some(known) => known.tools,
            None => {
                let definitions = self.turn().definitions().await?;
                let tools: HashMap<_, _> = definitions.iter().map(identity).collect();
                let tools = Arc::new(tools);
                let known = KnownTools { at: Instant::now(), changes, tools: Arc::clone(&tools) };
                let mut write = self.identities.write().unwrap_or_else(PoisonError::into_inner);
                *write = Some(known);
                tools
            }
        };
        Ok(known.get(tool).map(|identity| identity.digest.clone()).unwrap_or_default())
    }

    /// The result for a tool that the upstream server does not have: it names those that can be called, and not the
    /// requests that are judged as calls.
    pub(crate) async fn unknown_tool(&self, tool: &str) -> Option<CallToolResult> {
        self.upstream.as_ref()?;
        if self.identity(tool).await.is_ok_and(|known| !known.is_empty()) {
            return None;
        }
        // A server that cannot be reached is said by the call.
        let definitions = self.turn().definitions().await.ok()?;
        let mut names: Vec<_> = definitions
            .iter()
            .map(ToolDefinition::name)
            .filter(|it| !JUDGED.contains(it))
            .collect();
        if names.contains(&tool) {
            return None;
        }
        names.sort_unstable();
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let available = if names.is_empty() { "no tools".to_owned() } else { names.join(", ") };
        let tool = tool.escape_debug();
        let text = format!("There is no tool `{tool}`. Available: {available}.");
        Some(result::failed(text))
    }

    /// Returns `true` if the tool declares the form of its results.
    pub(crate) fn has_schema(&self, tool: &str) -> bool {
        let known = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().and_then(|known| known.tools.get(tool));
        known.is_some_and(|identity| identity.has_schema)
    }

    /// The schema of a tool's arguments, if the tools were read before: with it headers of HTTP that repeat an argument
    /// are compared with the argument.
    pub(crate) fn parameters(&self, tool: &str) -> Option<Arc<JsonObject>> {
        let known = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        let identity = known.as_ref()?.tools.get(tool)?;
        Some(Arc::clone(&identity.parameters))
    }

    /// Waits for calls that still run after the client has disconnected or the program was told to end, so that their
    /// outcomes are recorded. What is kept for an answer that cannot come any more is recorded as unknown.
    pub(crate) async fn ended(&self) {
        let end = Instant::now() + ENDING;
        while Arc::strong_count(&self.in_flight) > 1 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let kept = std::mem::take(&mut *lock(&self.kept));
        for call in kept.into_values() {
            self.settle(&call.waiting, None).await;
        }
    }

    /// Ends the calls in good order: none begins any more, those in flight have a short time, and what was not seen to
    /// end is recorded as unknown.
    pub(crate) async fn stop(&self) {
        self.stopping.cancel();
        self.ended().await;
    }

    /// The connection for which a state was sealed, for a client without a name.
    pub(crate) fn nonce_of(&self, state: Option<&str>) -> Option<String> {
        self.keys.open::<State>(STATE, state?, std::time::SystemTime::now()).ok()?.nonce
    }

    /// Seals a request state, for as long as it may be used.
    pub(crate) fn seal(&self, state: &State) -> Result<String, BoxError> {
        Ok(self.keys.seal(STATE, state, std::time::SystemTime::now() + STATE_VALID)?)
    }

    /// If a store cannot be reached, we refuse the call and do not let it pass (rule D4). We do not tell the client
    /// what failed, except for a server that cannot be reached.
    pub(crate) fn broken(&self, error: &BoxError) -> Reply {
        tracing::error!(target: "countersign::mcp", server = &*self.name, %error, "a call was refused");
        let mut causes =
            std::iter::successors(Some(&**error as &dyn std::error::Error), |error| error.source());
        let text = match causes.find_map(|error| error.downcast_ref::<McpError>()) {
            Some(error) => format!("The tool did not run: {error}."),
            None => "The call was refused: its approval could not be looked up. Nothing has run."
                .to_owned(),
        };
        Reply::Result(Box::new(result::failed(text)))
    }

    /// The outcome of an equal call whose client did not get it.
    ///
    /// We mark it in `_meta`: a client can tell that it gets the outcome of an earlier request, which may be minutes
    /// old.
    pub(crate) fn redelivered(outcome: Value) -> Reply {
        let outcome = serde_json::from_value(outcome).unwrap_or_else(|_| {
            Outcome::failed("The recorded outcome of this call cannot be read: it may have run.")
        });
        let mut told = result::result(&outcome, false);
        let mut meta = told.meta.take().unwrap_or_default();
        meta.0.insert("countersign/deliveredLate".to_owned(), Value::Bool(true));
        told.meta = Some(meta);
        Reply::Result(Box::new(told))
    }
}

fn identity(definition: &ToolDefinition) -> (String, ToolIdentity) {
    let declared = definition.metadata().get("mcp").and_then(|mcp| mcp.get("outputSchema"));
    let has_schema = declared.is_some_and(|schema| !schema.is_null());
    let digest = digest(&json!([definition.source(), definition.parameters()]));
    let parameters = Arc::new(definition.parameters().as_object().cloned().unwrap_or_default());
    (definition.name().to_owned(), ToolIdentity { digest, has_schema, parameters })
}
