//! A served call in flight, the replies to its client, and the ways to ask that client.
//!
//! A call can outlive its request. In the newest revision a server asks back by the result of the request. So we
//! keep the call ([`Shared::kept`](super::shared::Shared)) until the client comes with the answer. Then it continues
//! from where it was: if we started it again, its first half would run twice.

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
use super::open_forms::OpenForms;
use crate::downstream::{Downstream, Report};
use crate::result;
use countersign::origin::ReadRecord;
use countersign::turn::{TurnError, TurnReport};

/// The purpose of sealed request states.
pub(crate) const STATE: &str = "mcp request state";
/// The time for which a request state may be used.
pub(crate) const STATE_VALID: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// The reply to the client.
pub(crate) enum Reply {
    Result(Box<CallToolResult>),
    /// A result of another kind, unchanged.
    Raw(Value),
    InputRequired(Box<InputRequiredResult>),
    Error(ErrorData),
}

impl Reply {
    /// The reply to a call that comes after the program was told to end.
    pub(crate) fn not_begun() -> Self {
        let text = "Not run: this server is about to end. Nothing has run.";
        Self::Result(Box::new(result::failed(text)))
    }
}

/// The ways to ask a client, by its declared capabilities.
#[derive(Clone)]
pub(crate) struct CallingClient {
    pub(crate) principal: String,
    /// Tells apart the connections of clients without a name.
    pub(crate) nonce: Option<String>,
    /// `true` if a later equal call of this client finds the decision about this one.
    pub(crate) returns: bool,
    pub(crate) forms: bool,
    pub(crate) urls: bool,
    /// `true` if input-required results may be returned.
    pub(crate) rounds: bool,
    /// The least severe log messages that the client wants.
    pub(crate) logs: Option<usize>,
    /// The forms that are open in the client.
    pub(crate) open_forms: Arc<OpenForms>,
    /// The record of what the client has read through this server, if there is one.
    pub(crate) reads: Option<ReadRecord>,
}

/// One request, of any method.
pub(crate) struct Request {
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<InputResponses>,
}

/// The content of a request state. The seal covers it, and the ledger makes it single-use.
///
/// The state goes through the client, which may be hostile or merely old. So we seal it (rule L6), with the key of the
/// call, and refuse it for any other. We refuse unknown fields, as a state of a newer build may mean something that
/// this one would ignore.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// The key of the call that the state is for.
    pub(crate) key: String,
    /// The ask that the client's person is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<String>,
    /// The suspended call whose server has sent a question to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<String>,
    /// Stands in for the connection of a client without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
}

pub(crate) type TurnFuture = Pin<Box<dyn Future<Output = Result<TurnReport, TurnError>> + Send>>;

/// A question of the server, with its key.
pub(crate) struct Asked {
    pub(crate) key: String,
    pub(crate) question: ElicitRequestParams,
    pub(crate) answer: oneshot::Sender<ElicitResult>,
}

/// A call in flight: its turn, and the channels for its results.
pub(crate) struct CallInFlight {
    pub(crate) running: TurnFuture,
    pub(crate) reports: mpsc::UnboundedReceiver<Report>,
    pub(crate) questions: mpsc::UnboundedReceiver<Asked>,
    pub(crate) downstream: Arc<Downstream>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) key: LazyKey,
    /// The question of the server that is with the client now: its key, and the place of the answer.
    pub(crate) open: Option<(String, oneshot::Sender<ElicitResult>)>,
    pub(crate) told: f64,
}

/// The messages of a turn's handler to the request that waits for the turn.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) reply: Mutex<Option<Reply>>,
    pub(crate) claims: Mutex<Vec<(String, u64, Renewing)>>,
}
