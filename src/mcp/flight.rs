//! A served call in flight, the replies to its client, and the ways to ask that client.
//!
//! A flight can outlive its request. In the newest revision a server asks back by the result of the request, so the
//! call is kept ([`Shared::kept`](super::shared::Shared)) until the client comes with the answer, and continues from
//! where it was: it is not started again, which would run its first half twice.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::asks::{LazyKey, Renewing};
use super::result;
use super::site::{Report, Site};
use crate::turn::{TurnError, TurnReport};

/// The purpose of sealed request states.
pub(super) const STATE: &str = "mcp request state";
/// How long a request state may be used.
pub(super) const STATE_VALID: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// The reply to the client.
pub(super) enum Reply {
    Result(Box<CallToolResult>),
    /// A result of another kind, unchanged.
    Raw(Value),
    InputRequired(Box<InputRequiredResult>),
    Error(ErrorData),
}

impl Reply {
    /// The reply to a call that comes after the program was told to end.
    pub(super) fn not_begun() -> Self {
        let text = "Not run: this server is about to end. Nothing has run.";
        Self::Result(Box::new(result::failed(text)))
    }
}

/// The ways to ask a client, by its declared capabilities.
#[derive(Clone)]
pub(super) struct CallingClient {
    pub(super) principal: String,
    /// Tells apart the connections of clients without a name.
    pub(super) nonce: Option<String>,
    /// Whether a later equal call of this client finds the decision about this one.
    pub(super) returns: bool,
    pub(super) forms: bool,
    pub(super) urls: bool,
    /// Whether input-required results may be returned.
    pub(super) rounds: bool,
    /// The least severe log messages that the client wants.
    pub(super) logs: Option<usize>,
}

/// One request, of any method.
pub(super) struct Request {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) state: Option<String>,
    pub(super) responses: Option<InputResponses>,
}

/// The content of a request state. The seal covers it, and the ledger makes it single-use.
///
/// It goes through the client, which may be hostile or merely old, so it is sealed (rule L6), names the key of the
/// call, and is refused for any other. Unknown fields are refused, as a state of a newer build may mean something that
/// this one would ignore.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// The key of the call that the state is for.
    pub(super) key: String,
    /// The ask that the client's person is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ask: Option<String>,
    /// The suspended call whose server has sent a question to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<String>,
    /// Stands in for the connection of a client without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nonce: Option<String>,
}

pub(super) type TurnFuture = Pin<Box<dyn Future<Output = Result<TurnReport, TurnError>> + Send>>;

/// A question of the server, with its key.
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) question: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

/// A call in flight: its turn, and the channels for its results.
pub(super) struct Flight {
    pub(super) running: TurnFuture,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) questions: mpsc::UnboundedReceiver<Asked>,
    pub(super) site: Arc<Site>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) key: LazyKey,
    /// The question of the server that is with the client now: its key, and the place of the answer.
    pub(super) open: Option<(String, oneshot::Sender<ElicitResult>)>,
    pub(super) told: f64,
}

/// The messages of a turn's handler to the request that waits for the turn.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) reply: Mutex<Option<Reply>>,
    pub(super) claims: Mutex<Vec<(String, u64, Renewing)>>,
}
