//! One served call: its pass through the stack, the asks it needs, and what the client is told meanwhile.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, InputRequiredResult, InputResponses, ProgressNotificationParam,
    ProgressToken, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::asks::{End, Key, Renewing, Standing};
use super::form::{self, Said};
use super::result;
use super::server::Shared;
use super::site::{Raw, Site, lock};
use crate::call::{Execution, RunContext, ToolCall};
use crate::deferred::{Answer, DeferredToolRequests, DeferredToolResults};
use crate::handler::DeferredToolHandler;
use crate::ledger::Record;
use crate::outcome::Outcome;
use crate::turn::{Turn, TurnError, TurnReport};
use crate::{Args, BoxError};

/// The purpose of sealed request states.
const STATE: &str = "mcp request state";
/// How long a request state may be used.
const STATE_VALID: Duration = Duration::from_secs(24 * 3600);
/// How often a client hears of a held call that it asked progress of.
const BEAT: Duration = Duration::from_secs(5);
/// How long a claimed call may go on after its client has given up, so that its outcome is known.
const GRACE: Duration = Duration::from_secs(3);
/// How long a call is kept whose server has asked back.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// The id of the call in its turn.
const CALL: &str = "call";

/// What is told to the client.
pub(super) enum Reply {
    Result(Box<CallToolResult>),
    /// A result of another kind, as it came.
    Raw(Value),
    InputRequired(Box<InputRequiredResult>),
    Error(ErrorData),
}

/// How a client can be asked, by what it declares.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) principal: String,
    /// Tells apart the connections of clients without a name.
    pub(super) nonce: Option<String>,
    pub(super) forms: bool,
    pub(super) urls: bool,
    /// Whether input-required results may be returned.
    pub(super) rounds: bool,
}

/// One request, whatever its method.
pub(super) struct Request {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) state: Option<String>,
    pub(super) responses: Option<InputResponses>,
}

/// What a request state holds. The seal covers it, and the ledger makes it single-use.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The key of the call that the state is for.
    key: String,
    /// The ask that the client's person is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    /// The call that is kept because its server has asked back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
    /// Stands in for the connection of a client without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

type Running = Pin<Box<dyn Future<Output = Result<TurnReport, TurnError>> + Send>>;
type Asked = (ElicitRequestParams, oneshot::Sender<ElicitResult>);

/// A call in flight: its turn, and what comes of it.
pub(super) struct Flight {
    running: Running,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    questions: mpsc::UnboundedReceiver<Asked>,
    site: Arc<Site>,
    waiting: Arc<Waiting>,
    key: Key,
    /// The question of the server that is with the client now.
    open: Option<oneshot::Sender<ElicitResult>>,
    told: f64,
}

/// What the handler of a turn leaves for the request that waits for the turn.
#[derive(Default)]
struct Waiting {
    reply: Mutex<Option<Reply>>,
    claims: Mutex<Vec<(String, u64, Renewing)>>,
}

impl Shared {
    /// Serves one call to its reply.
    pub(super) async fn call(
        self: &Arc<Self>,
        client: Client,
        request: Request,
        cx: &RequestContext<RoleServer>,
    ) -> Reply {
        let args = match Args::try_from(request.args.clone()) {
            Ok(args) => args,
            Err(error) => return Reply::Error(ErrorData::invalid_params(error.to_string(), None)),
        };
        let key = match self.key(&client, &request, &args).await {
            Ok(key) => key,
            Err(error) => return self.broken(&error),
        };
        let state = match request.state.as_deref().map(|state| self.open(state, &key)).transpose() {
            Ok(state) => state,
            Err(problem) => return Reply::Error(ErrorData::invalid_params(problem, None)),
        };
        let said = request.responses.as_ref().and_then(|it| it.get(form::QUESTION));
        let mut flight = match state.as_ref().and_then(|state| state.kept.as_deref()) {
            Some(kept) => match self.resume(kept, said) {
                Some(flight) => flight,
                None => {
                    let text = "This request state was used already, or is too old. Call again without it.";
                    return Reply::Error(ErrorData::invalid_params(text, None));
                }
            },
            None => {
                if let Some(ask) = state.as_ref().and_then(|state| state.ask.as_deref())
                    && let Err(reply) = self.decide(ask, said, &client).await
                {
                    return reply;
                }
                self.start(&client, &request, key, cx)
            }
        };
        match self.fly(&mut flight, &client, cx).await {
            Flown::Reply(reply) => reply,
            Flown::Landed(report) => {
                let Flight { waiting, key, site, .. } = flight;
                self.landed(&waiting, (&key, &site), *report, cx).await
            }
            Flown::Asked(question) => self.keep(flight, question, &client),
        }
    }

    async fn key(&self, client: &Client, request: &Request, args: &Args) -> Result<Key, BoxError> {
        let scope = json!([self.scope, client.nonce]);
        let identity = self.identity(&request.tool).await?;
        Ok(Key::new(&client.principal, &scope, &request.tool, &identity, args))
    }

    /// Opens a request state that was sealed for this call of this person.
    fn open(&self, state: &str, key: &Key) -> Result<State, String> {
        let opened: State =
            self.keys.open(STATE, state, std::time::SystemTime::now()).map_err(|error| {
                format!("The request state is refused: {error}. Call again without it.")
            })?;
        if opened.key != key.id {
            return Err("The request state is for another call. Call again without it.".to_owned());
        }
        Ok(opened)
    }

    /// The connection for which a state was sealed, for a client without a name.
    pub(super) fn nonce_of(&self, state: Option<&str>) -> Option<String> {
        self.keys.open::<State>(STATE, state?, std::time::SystemTime::now()).ok()?.nonce
    }

    fn seal(&self, state: &State) -> Result<String, BoxError> {
        Ok(self.keys.seal(STATE, state, std::time::SystemTime::now() + STATE_VALID)?)
    }

    /// Records what the client's person has said about an ask. It counts as the requester's answer.
    async fn decide(&self, ask: &str, said: Option<&Value>, client: &Client) -> Result<(), Reply> {
        let record = self.asks.ledger.get(ask).await.map_err(|error| self.broken(&error.into()))?;
        let Some(record) = record else {
            return Err(Reply::Error(ErrorData::invalid_params(
                "The request state is for an unknown ask.",
                None,
            )));
        };
        if record.outcome.is_some() || record.claim.is_some() {
            let generation = record.ask.run().rsplit('-').next().and_then(|it| it.parse().ok());
            let key = Key {
                id: run_key(record.ask.run()),
                principal: client.principal.clone(),
                tool: String::new(),
            };
            let taken = match (generation, &record.outcome) {
                (Some(generation), Some(_)) => {
                    self.asks.deliver(&key, generation).await.unwrap_or(false)
                }
                _ => false,
            };
            return Err(match (taken, record.outcome) {
                (true, Some(outcome)) => Self::redelivered(outcome),
                _ => Reply::Error(ErrorData::invalid_params(
                    "This request state was used already. Call again without it, to be asked again.",
                    None,
                )),
            });
        }
        let answer = match said.map_or(Said::Nothing, form::said) {
            Said::Approve => Answer::Approve { args: None },
            Said::Deny => Answer::Deny { message: "denied in the client".to_owned() },
            Said::Nothing => return Ok(()),
        };
        let decided =
            self.asks.ledger.decide(ask, &record.fingerprint, &client.principal, answer).await;
        decided.map(drop).map_err(|error| self.broken(&error.into()))
    }

    /// Starts the turn of a call.
    fn start(
        self: &Arc<Self>,
        client: &Client,
        request: &Request,
        key: Key,
        cx: &RequestContext<RoleServer>,
    ) -> Flight {
        let (progress_to, progress) = mpsc::unbounded_channel();
        let (ask, questions) = mpsc::unbounded_channel::<Asked>();
        let elicit = client.forms.then(|| -> super::site::Elicit {
            Arc::new(move |params| {
                let ask = ask.clone();
                Box::pin(async move {
                    let (answer, answered) = oneshot::channel();
                    // A client that has gone has answered nothing.
                    _ = ask.send((params, answer));
                    answered.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
                })
            })
        });
        let wants_progress = cx.meta.get_progress_token().is_some();
        let site = Site::new(wants_progress.then(|| progress_to.clone()), elicit);
        let waiting = Arc::new(Waiting::default());
        let handler = Asker {
            shared: Arc::clone(self),
            client: client.clone(),
            key: key.clone(),
            site: Arc::clone(&site),
            waiting: Arc::clone(&waiting),
            peer: cx.peer.clone(),
            linked: request.state.is_some() && !client.forms,
            beat: wants_progress.then_some(progress_to),
        };
        let turn = Turn::new(self.tools.clone()).deps(Arc::clone(&site)).handler(handler);
        let call = ToolCall::new(CALL, request.tool.as_str(), request.args.clone());
        let running: Running = Box::pin(async move { turn.run(vec![call]).await });
        Flight { running, progress, questions, site, waiting, key, open: None, told: 0.0 }
    }

    /// Drives a call until it ends, or the client has to do something.
    async fn fly(
        &self,
        flight: &mut Flight,
        client: &Client,
        cx: &RequestContext<RoleServer>,
    ) -> Flown {
        let token = cx.meta.get_progress_token();
        let mut asking: Option<BoxFuture<'static, ElicitResult>> = None;
        let mut given_up: Option<Pin<Box<tokio::time::Sleep>>> = None;
        loop {
            tokio::select! {
                biased;
                report = &mut flight.running => {
                    // What came before the result is told before it.
                    while let Ok(progress) = flight.progress.try_recv() {
                        progressed(&mut flight.told, token.as_ref(), progress, cx).await;
                    }
                    return Flown::Landed(Box::new(report));
                }
                Some(progress) = flight.progress.recv() => {
                    progressed(&mut flight.told, token.as_ref(), progress, cx).await;
                }
                Some((question, answer)) = flight.questions.recv(), if flight.open.is_none() => {
                    let question = form::labelled(question, &self.name);
                    flight.open = Some(answer);
                    if client.rounds {
                        return Flown::Asked(question);
                    }
                    asking = Some(elicit(cx.peer.clone(), question, self.wait));
                }
                answer = async { match &mut asking { Some(it) => it.await, None => std::future::pending().await } } => {
                    asking = None;
                    if let Some(open) = flight.open.take() {
                        // The server may have given up its question.
                        _ = open.send(answer);
                    }
                }
                () = cx.ct.cancelled(), if given_up.is_none() => {
                    if lock(&flight.waiting.claims).is_empty() {
                        return Flown::Reply(given_up_reply());
                    }
                    given_up = Some(Box::pin(tokio::time::sleep(GRACE)));
                }
                () = async { match &mut given_up { Some(it) => it.await, None => std::future::pending().await } } => {
                    self.settle(&flight.waiting, None).await;
                    return Flown::Reply(given_up_reply());
                }
            }
        }
    }

    /// Settles the claims of a call with what came of it, and makes the reply.
    async fn landed(
        &self,
        waiting: &Waiting,
        (key, site): (&Key, &Site),
        report: Result<TurnReport, TurnError>,
        cx: &RequestContext<RoleServer>,
    ) -> Reply {
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                self.settle(waiting, Some(error.report())).await;
                tracing::error!(target: "countersign::mcp", server = &*self.name, error = %error.error(), "a call has failed");
                return Reply::Result(Box::new(result::failed(
                    "The call failed with an internal error.",
                )));
            }
        };
        let asks = self.settle(waiting, Some(&report)).await;
        if let Some(reply) = lock(&waiting.reply).take() {
            return reply;
        }
        let Some(call) = report.calls().first() else { return given_up_reply() };
        let reply = match (call.outcome(), site.take()) {
            (Outcome::Deferred(_), _) => Reply::Result(Box::new(result::failed(
                "The call has to be asked about again. Call it again.",
            ))),
            // What came from upstream is passed on unchanged, unless a layer has changed what the model is told.
            (outcome @ (Outcome::Failed(_) | Outcome::Returned(_)), Some(raw)) => {
                Self::passed_on(outcome, raw)
            }
            (outcome, _) => Reply::Result(Box::new(result::result(
                outcome,
                self.has_schema(call.call().name()),
            ))),
        };
        if !cx.ct.is_cancelled() {
            for ask in asks {
                if let Err(error) = self.asks.delivered(key, &ask).await {
                    tracing::warn!(target: "countersign::mcp", ask, %error, "a delivery could not be recorded");
                }
            }
        }
        reply
    }

    fn passed_on(outcome: &Outcome, raw: Raw) -> Reply {
        match raw {
            Raw::Error(error) if outcome.text().is_some_and(|text| text == error.message) => {
                Reply::Error(error)
            }
            Raw::Result(raw) if raw.get("contents").is_some() || raw.get("messages").is_some() => {
                match outcome.content() {
                    Some(content) if content == raw => Reply::Raw(raw),
                    content => Reply::Raw(content.unwrap_or_default()),
                }
            }
            Raw::Result(raw) => match serde_json::from_value::<CallToolResult>(raw) {
                Ok(came) if result::is_of(&came, outcome) => Reply::Result(Box::new(came)),
                _ => Reply::Result(Box::new(result::result(outcome, false))),
            },
            Raw::Error(_) => Reply::Result(Box::new(result::result(outcome, false))),
        }
    }

    /// Settles the claims, and returns their asks if the call has ended.
    async fn settle(&self, waiting: &Waiting, report: Option<&TurnReport>) -> Vec<String> {
        let claims = std::mem::take(&mut *lock(&waiting.claims));
        let call = report.and_then(|report| report.calls().first());
        let mut settled = Vec::new();
        for (ask, token, renewing) in claims {
            drop(renewing);
            let end = match call.map(|call| (call.execution(), call.outcome())) {
                None | Some((Execution::Unknown, _) | (_, Outcome::Unknown(_))) => End::Unknown,
                Some((
                    Execution::NotStarted,
                    Outcome::Deferred(_) | Outcome::Denied(_) | Outcome::Retry(_),
                )) => End::NotRun,
                Some((_, outcome)) => End::Outcome(json!(outcome)),
            };
            let ended = matches!(end, End::Outcome(_));
            match self.asks.settle(&ask, token, end).await {
                Ok(()) if ended => settled.push(ask),
                Ok(()) => {}
                Err(error) => {
                    tracing::error!(target: "countersign::mcp", ask, %error, "what came of a call could not be recorded");
                }
            }
        }
        settled
    }

    /// Keeps a call whose server has asked back, until the client comes with the answer.
    fn keep(
        self: &Arc<Self>,
        flight: Flight,
        question: ElicitRequestParams,
        client: &Client,
    ) -> Reply {
        let id = uuid::Uuid::now_v7().to_string();
        let state = State {
            key: flight.key.id.clone(),
            ask: None,
            kept: Some(id.clone()),
            nonce: client.nonce.clone(),
        };
        let sealed = match self.seal(&state) {
            Ok(sealed) => sealed,
            Err(error) => return self.broken(&error),
        };
        lock(&self.kept).insert(id.clone(), flight);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let dropped = lock(&shared.kept).remove(&id);
            let waiting = dropped.map(|flight| flight.waiting);
            if let Some(waiting) = waiting {
                shared.settle(&waiting, None).await;
            }
        });
        let requests = BTreeMap::from([(form::QUESTION.to_owned(), form::input(question))]);
        Reply::InputRequired(Box::new(InputRequiredResult::new(Some(requests), Some(sealed))))
    }

    /// Takes a kept call, once, and gives its server the client's answer.
    fn resume(&self, kept: &str, said: Option<&Value>) -> Option<Flight> {
        let mut flight = lock(&self.kept).remove(kept)?;
        let answer = said.and_then(|said| serde_json::from_value(said.clone()).ok());
        if let Some(open) = flight.open.take() {
            // The server may have given up its question.
            _ = open.send(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)));
        }
        Some(flight)
    }

    pub(super) fn broken(&self, error: &BoxError) -> Reply {
        tracing::error!(target: "countersign::mcp", server = &*self.name, %error, "a call was refused");
        Reply::Result(Box::new(result::failed(
            "The call was refused: its approval could not be looked up.",
        )))
    }

    /// The outcome of an equal call whose client did not get it.
    fn redelivered(outcome: Value) -> Reply {
        let outcome = serde_json::from_value(outcome).unwrap_or_else(|_| {
            Outcome::failed("The call has run, and its result cannot be read.")
        });
        let mut told = result::result(&outcome, false);
        let mut meta = told.meta.take().unwrap_or_default();
        meta.0.insert("countersign/deliveredLate".to_owned(), Value::Bool(true));
        told.meta = Some(meta);
        Reply::Result(Box::new(told))
    }
}

/// Passes progress on under the client's own token; it never goes back.
async fn progressed(
    told: &mut f64,
    token: Option<&ProgressToken>,
    mut progress: ProgressNotificationParam,
    cx: &RequestContext<RoleServer>,
) {
    let Some(token) = token.filter(|_| progress.progress > *told) else { return };
    *told = progress.progress;
    progress.progress_token = token.clone();
    // A client that has gone needs no progress.
    _ = cx.peer.notify_progress(progress).await;
}

enum Flown {
    Reply(Reply),
    Landed(Box<Result<TurnReport, TurnError>>),
    Asked(ElicitRequestParams),
}

fn given_up_reply() -> Reply {
    Reply::Error(ErrorData::internal_error("the call was cancelled", None))
}

fn run_key(run: &str) -> String {
    run.trim_start_matches("mcp-").rsplit_once('-').map_or("", |(key, _)| key).to_owned()
}

/// Asks a client of an older revision, which counts the time as the tool's.
fn elicit(
    peer: Peer<RoleServer>,
    question: ElicitRequestParams,
    wait: Duration,
) -> BoxFuture<'static, ElicitResult> {
    Box::pin(async move {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
        let sent =
            peer.send_request_with_option(request, PeerRequestOptions::with_timeout(wait)).await;
        let answer = match sent {
            Ok(sent) => sent.await_response().await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(ClientResult::ElicitResult(answer)) => answer,
            _ => ElicitResult::new(ElicitationAction::Cancel),
        }
    })
}

/// Answers the asks of one served call: from the ledger, by asking the client, or by waiting for the inbox.
struct Asker {
    shared: Arc<Shared>,
    client: Client,
    key: Key,
    site: Arc<Site>,
    waiting: Arc<Waiting>,
    peer: Peer<RoleServer>,
    /// Whether the client was sent to the inbox already, and comes back.
    linked: bool,
    beat: Option<mpsc::UnboundedSender<ProgressNotificationParam>>,
}

/// The answer to one call of a batch.
enum Answered {
    Approved(Args),
    Denied(String),
    /// The client is told this instead, and nothing runs.
    Left(Reply),
}

impl DeferredToolHandler for Asker {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = requests.answer();
        for call in &requests.calls {
            let failed =
                crate::outcome::ToolFailed::new("This call needs an answer that MCP cannot carry.");
            answers = answers.result(call.id(), failed);
        }
        for call in &requests.approvals {
            let id = call.id();
            if requests.is_blocked(id) {
                answers = answers.deny(id, "Blocked by policy.");
                continue;
            }
            match self.answer(requests, call).await? {
                Answered::Approved(args) if args.to_value() == call.args().to_value() => {
                    answers = answers.approve(id)
                }
                Answered::Approved(args) => answers = answers.approve_with(id, args),
                Answered::Denied(text) => answers = answers.deny(id, text),
                Answered::Left(reply) => {
                    lock(&self.waiting.reply).get_or_insert(reply);
                    answers = answers.leave(id);
                }
            }
        }
        Ok(answers.build()?)
    }
}

impl Asker {
    async fn answer(
        &self,
        requests: &DeferredToolRequests,
        call: &ToolCall,
    ) -> Result<Answered, BoxError> {
        let (asks, questions) = (&self.shared.asks, requests.questions(call.id()));
        let path = requests.path(call.id()).unwrap_or_else(|| call.name().to_owned());
        let key = match path == self.key.tool {
            true => self.key.clone(),
            // A call of an agent behind the tool.
            false => Key::new(&self.client.principal, &json!(self.key.id), &path, "", call.args()),
        };
        let until = Instant::now() + self.shared.wait;
        let mut asked = false;
        let mut place = None;
        loop {
            let record = match asks.standing(&key, call.args(), questions).await? {
                Standing::Pending(record) => record,
                Standing::Claimed { ask, token, args } => {
                    let renewing = Renewing::start(asks.ledger.clone(), ask.clone(), token);
                    lock(&self.site.key).get_or_insert_with(|| ask.clone());
                    lock(&self.waiting.claims).push((ask, token, renewing));
                    return Ok(Answered::Approved(args));
                }
                Standing::Denied(text) => return Ok(Answered::Denied(text)),
                Standing::Delivered(outcome) => {
                    return Ok(Answered::Left(Shared::redelivered(outcome)));
                }
            };
            let may_ask = self.client.forms
                && self.shared.asks.ledger.may_approve(&record, &self.client.principal);
            let form = may_ask.then(|| form::form(&record, &self.shared.name)).flatten();
            let link = || self.shared.inbox.as_deref().map(|base| form::link(&record, base));
            let question =
                form.or_else(|| if self.client.urls && !self.linked { link() } else { None });
            if let Some(question) = question.clone().filter(|_| self.client.rounds && !asked) {
                return self.round(&record, question);
            }
            let run = record.ask.run().to_owned();
            let seen = match place {
                Some(place) => place,
                None => asks.changed(&run, -1).await?,
            };
            if let Some(question) = question.filter(|_| !asked && !self.client.rounds) {
                asked = true;
                self.ask_client(&record, question, (&run, seen), until).await?;
                place = None;
                continue;
            }
            match self.wait(&run, seen, until).await? {
                Some(now) => place = Some(now),
                None => return Ok(Answered::Left(Self::waits(&record))),
            }
        }
    }

    /// The input-required result for an ask.
    fn round(&self, record: &Record, question: ElicitRequestParams) -> Result<Answered, BoxError> {
        let state = State {
            key: self.key.id.clone(),
            ask: Some(record.ask.id().to_owned()),
            kept: None,
            nonce: self.client.nonce.clone(),
        };
        let sealed = self.shared.seal(&state)?;
        let requests = BTreeMap::from([(form::QUESTION.to_owned(), form::input(question))]);
        let required = InputRequiredResult::new(Some(requests), Some(sealed));
        Ok(Answered::Left(Reply::InputRequired(Box::new(required))))
    }

    /// Asks a client of an older revision, and listens to the other surfaces meanwhile: the first answer counts.
    async fn ask_client(
        &self,
        record: &Record,
        form: ElicitRequestParams,
        (run, seen): (&str, i64),
        until: Instant,
    ) -> Result<(), BoxError> {
        let wait = until.saturating_duration_since(Instant::now());
        let answer = tokio::select! {
            answer = elicit(self.peer.clone(), form, wait) => answer,
            _ = self.wait(run, seen, until) => return Ok(()),
        };
        let answer = match form::said(&json!(answer)) {
            Said::Approve => Answer::Approve { args: None },
            Said::Deny => Answer::Deny { message: "denied in the client".to_owned() },
            Said::Nothing => return Ok(()),
        };
        let (id, fingerprint) = (record.ask.id(), &record.fingerprint);
        self.shared.asks.ledger.decide(id, fingerprint, &self.client.principal, answer).await?;
        Ok(())
    }

    /// Waits until the run's log has grown, and lets the client hear that its call is held; `None` when the time is
    /// over.
    async fn wait(&self, run: &str, seen: i64, until: Instant) -> Result<Option<i64>, BoxError> {
        let mut beats = 0.0;
        loop {
            let next = until.min(Instant::now() + BEAT);
            match tokio::time::timeout_at(next, self.shared.asks.changed(run, seen)).await {
                Ok(place) => return place.map(Some),
                Err(_) if next >= until => return Ok(None),
                Err(_) => {}
            }
            beats += 1.0;
            if let Some(beat) = &self.beat {
                let token = ProgressToken(rmcp::model::NumberOrString::Number(0));
                let params = ProgressNotificationParam::new(token, beats / 1e6)
                    .with_message("waits for an approval");
                // The request may be over.
                _ = beat.send(params);
            }
        }
    }

    /// The result for a client that cannot be asked in time: nothing but the id of the ask.
    fn waits(record: &Record) -> Reply {
        let id = record.ask.id();
        let text = format!(
            "Not run yet: this call waits for an approval, under ask {id}. Once it is approved, call the tool again \
             with exactly the same arguments. Nothing has run."
        );
        Reply::Result(Box::new(result::failed(text)))
    }
}
