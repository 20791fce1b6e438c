//! A provider on this machine: it speaks OpenAI's and Anthropic's language, streamed or not, from a script.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use axum::routing::post;
use countersign_genai::Client;
use countersign_genai::GenaiModel;
use futures::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{anthropic, openai};

/// The key that the provider knows.
pub(crate) const KEY: &str = "sk-test-0123456789";

/// One language of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

/// Both, streamed and not.
pub(crate) const EVERY: [(Wire, bool); 4] = [
    (Wire::OpenAi, true),
    (Wire::OpenAi, false),
    (Wire::Anthropic, true),
    (Wire::Anthropic, false),
];

pub(crate) const BOTH: [Wire; 2] = [Wire::OpenAi, Wire::Anthropic];

/// A response of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Text(String),
    /// Its arguments are the text that the model writes.
    Call {
        id: String,
        name: String,
        args: String,
    },
    /// OpenAI's language has no signatures.
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
}

pub(crate) fn says(text: &str) -> Part {
    Part::Text(text.into())
}

pub(crate) fn calls(id: &str, name: &str, args: impl Into<Value>) -> Part {
    writes(id, name, &args.into().to_string())
}

pub(crate) fn writes(id: &str, name: &str, args: &str) -> Part {
    Part::Call { id: id.into(), name: name.into(), args: args.into() }
}

/// How the provider answers one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Says(Vec<Part>),
    /// Says this, and gives another reason for stopping.
    Stops(Vec<Part>, &'static str),
    Fails(u16, Value),
    /// Sends so many events of its stream, and the connection is lost.
    Breaks(Vec<Part>, usize),
    /// Sends so many events of its stream, and closes it as if that were all.
    Ends(Vec<Part>, usize),
    /// Sends so many events of its stream, and then nothing more.
    Hangs(Vec<Part>, usize),
    /// Sends so many events of its stream, and then one that says it has failed.
    GivesUp(Vec<Part>, usize),
}

type Script = Arc<Mutex<VecDeque<Reply>>>;

struct Inner {
    wire: Wire,
    script: Script,
    requests: Mutex<Vec<Value>>,
    refused: Mutex<Vec<String>>,
}

pub(crate) struct Provider {
    inner: Arc<Inner>,
    url: String,
    server: JoinHandle<()>,
}

/// A result, as the provider was told it.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

pub(crate) fn told(id: &str, content: &str, is_error: bool) -> Told {
    Told { id: id.into(), content: content.into(), is_error }
}

impl Provider {
    pub(crate) async fn start(wire: Wire) -> Self {
        Self::with(wire, Script::default()).await
    }

    /// Another provider, which continues at this one's place in the script.
    pub(crate) async fn beside(&self, wire: Wire) -> Self {
        Self::with(wire, Arc::clone(&self.inner.script)).await
    }

    async fn with(wire: Wire, script: Script) -> Self {
        let inner =
            Arc::new(Inner { wire, script, requests: Mutex::default(), refused: Mutex::default() });
        let app = Router::new().route(wire.path(), post(answer)).with_state(Arc::clone(&inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { inner, url, server }
    }

    /// With a script of these answers.
    pub(crate) async fn saying<const N: usize>(wire: Wire, script: [Reply; N]) -> Self {
        let this = Self::start(wire).await;
        this.then(script);
        this
    }

    pub(crate) fn then(&self, script: impl IntoIterator<Item = Reply>) {
        self.inner.script.lock().unwrap().extend(script);
    }

    /// Begins a new script.
    pub(crate) fn again(&self, script: impl IntoIterator<Item = Reply>) {
        *self.inner.script.lock().unwrap() = script.into_iter().collect();
        self.inner.requests.lock().unwrap().clear();
        self.inner.refused.lock().unwrap().clear();
    }

    pub(crate) fn model(&self) -> GenaiModel {
        let (kind, name) = self.inner.wire.model();
        self.model_of(kind, name)
    }

    /// A model of another provider that speaks this language.
    pub(crate) fn model_of(&self, kind: AdapterKind, name: &str) -> GenaiModel {
        model_at(&self.url, kind, name)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.inner.requests.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Value {
        self.requests().pop().unwrap()
    }

    /// Why requests were refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.inner.refused.lock().unwrap().clone()
    }

    /// The results in the last request, in order.
    pub(crate) fn told(&self) -> Vec<Told> {
        match self.inner.wire {
            Wire::OpenAi => openai::told(&self.last()),
            Wire::Anthropic => anthropic::told(&self.last()),
        }
    }
}

pub(crate) fn model_at(url: &str, kind: AdapterKind, name: &str) -> GenaiModel {
    let target = (Endpoint::from_owned(url), AuthData::from_single(KEY));
    let client = Client::builder().append_provider_config(kind, target).build().unwrap();
    GenaiModel::with_client(client, name)
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Wire {
    fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/v1/chat/completions",
            Self::Anthropic => "/v1/messages",
        }
    }

    fn model(self) -> (AdapterKind, &'static str) {
        match self {
            Self::OpenAi => (AdapterKind::OpenAI, "gpt-4o-mini"),
            Self::Anthropic => (AdapterKind::Anthropic, "claude-sonnet-4-5"),
        }
    }

    fn check(self, headers: &HeaderMap, request: &Value) -> Result<(), String> {
        match self {
            Self::OpenAi => openai::check(headers, request),
            Self::Anthropic => anthropic::check(headers, request),
        }
    }

    /// The events of a stream; the last one is its end.
    pub(crate) fn events(self, parts: &[Part], stop: Option<&str>) -> Vec<String> {
        match self {
            Self::OpenAi => openai::events(parts, stop),
            Self::Anthropic => anthropic::events(parts, stop),
        }
    }

    fn whole(self, parts: &[Part], stop: Option<&str>) -> Value {
        match self {
            Self::OpenAi => openai::whole(parts, stop),
            Self::Anthropic => anthropic::whole(parts, stop),
        }
    }

    fn failure(self) -> String {
        match self {
            Self::OpenAi => {
                let error = json!({"error": {"message": "we are sorry", "type": "server_error"}});
                format!("data: {error}\n\n")
            }
            Self::Anthropic => {
                let error = json!({"type": "overloaded_error", "message": "we are sorry"});
                let data = json!({"type": "error", "error": error});
                format!("event: error\ndata: {data}\n\n")
            }
        }
    }
}

type Answer = Response<Body>;

fn failing(status: u16, body: &Value) -> Answer {
    let answer = Response::builder().status(status).header("retry-after", "7");
    answer.header(header::CONTENT_TYPE, "application/json").body(body.to_string().into()).unwrap()
}

async fn answer(State(inner): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> Answer {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let checked = inner.wire.check(&headers, &request);
    let streamed = request["stream"] == true;
    inner.requests.lock().unwrap().push(request);
    if let Err(reason) = checked {
        inner.refused.lock().unwrap().push(reason.clone());
        return failing(
            400,
            &json!({"error": {"type": "invalid_request_error", "message": reason}}),
        );
    }
    let reply = inner.script.lock().unwrap().pop_front();
    let (parts, stop) = match &reply {
        None => return failing(418, &json!({"error": {"message": "the script is at its end"}})),
        Some(Reply::Fails(status, body)) => return failing(*status, body),
        Some(Reply::Stops(parts, stop)) => (parts, Some(*stop)),
        Some(
            Reply::Says(parts)
            | Reply::Breaks(parts, _)
            | Reply::Ends(parts, _)
            | Reply::Hangs(parts, _)
            | Reply::GivesUp(parts, _),
        ) => (parts, None),
    };
    if !streamed {
        let body = inner.wire.whole(parts, stop).to_string();
        let answer = Response::builder().header(header::CONTENT_TYPE, "application/json");
        return answer.body(body.into()).unwrap();
    }
    let events = inner.wire.events(parts, stop);
    stream(events, &reply.unwrap(), inner.wire)
}

fn stream(mut events: Vec<String>, reply: &Reply, wire: Wire) -> Answer {
    match reply {
        Reply::Breaks(_, n) | Reply::Ends(_, n) | Reply::Hangs(_, n) => events.truncate(*n),
        Reply::GivesUp(_, n) => {
            events.truncate(*n);
            events.push(wire.failure());
        }
        Reply::Says(_) | Reply::Stops(..) | Reply::Fails(..) => {}
    }
    // Each event is a chunk of its own, as on a network.
    let events = futures::stream::iter(events).then(|event| async {
        tokio::task::yield_now().await;
        Ok::<_, io::Error>(event)
    });
    let body = match reply {
        Reply::Breaks(..) => {
            // Time for what was sent to arrive before the connection goes.
            let lost = futures::stream::once(async {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                Err(io::Error::other("lost"))
            });
            Body::from_stream(events.chain(lost))
        }
        Reply::Hangs(..) => Body::from_stream(events.chain(futures::stream::pending())),
        _ => Body::from_stream(events),
    };
    let answer = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
    answer.body(body).unwrap()
}

/// Returns `true` if a name of a tool is one that providers take.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && is_id(text)
}

pub(crate) fn is_id(text: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(sound)
}

/// Returns whether an object has no other keys than these.
pub(crate) fn only(object: &Value, keys: &[&str]) -> Result<(), String> {
    let strange = |key: &&String| !keys.contains(&key.as_str());
    match object.as_object().and_then(|object| object.keys().find(strange)) {
        Some(key) => Err(format!("`{key}`: extra inputs are not permitted")),
        None => Ok(()),
    }
}

pub(crate) fn said(text: &Value) -> Result<&str, String> {
    let text = text.as_str().filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| "text content must be non-empty".to_owned())
}

/// A text in two pieces, as models dictate.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    [&text[..middle], &text[middle..]]
}
