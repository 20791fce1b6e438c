//! One served call: its pass through the stack, its asks, and the replies to the client.
//!
//! ```text
//! request --> open the state --> (decide | resume a kept call | start a turn)
//!                                               |
//!                              progress, questions of the server, cancellation
//!                                               |
//!                      finish: settle the claims, make the reply, record the delivery
//! ```
//!
//! A lost reply is harmless because of the order at the end. We settle the claim with the outcome *before* we make the
//! reply, and record the delivery only once the reply was written: on stdio when the write has succeeded, over HTTP
//! where the client is still there. If a client has gone and asks again, it finds an outcome that was not delivered,
//! and gets it, in place of a second run (rule M3).

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequiredResult,
    InputResponses, ProgressToken,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::answered_forms::elicit;
use super::asker::{self, Asker};
use super::asks::{AskKey, End, LazyKey};
use super::in_flight::{
    Asked, CallInFlight, CallingClient, Reply, Request, STATE, State, TurnFuture, Waiting,
};
use super::session::HttpSession;
use super::shared::Shared;
use crate::downstream::{Downstream, Elicit, Raw, Report, Reports, lock};
use crate::form::{self, FormAnswer};
use crate::result;
use countersign::args::Args;
use countersign::call::{Execution, RepeatedRequest, ToolCall};
use countersign::decision::ToolDecision;
use countersign::deferred::Answer;
use countersign::error::BoxError;
use countersign::ledger::{Approver, Ask, AskRecord, AskState, Presented, Surface};
use countersign::outcome::Outcome;
use countersign::turn::{TurnError, TurnReport};

/// The time for which a claimed call may run after its client has given up, so that its outcome is recorded.
///
/// We do not stop a claimed call at once, since that makes its outcome unknown, and most calls end within this time. A
/// call that was not claimed has not begun, and ends at once.
const GRACE: Duration = Duration::from_secs(3);
/// The time for which a call in flight may run after the program was told to end.
///
/// Clients kill a server two seconds after they have told it to end. We have to record the outcome of the call
/// within that time.
const STOPPING: Duration = Duration::from_secs(1);
/// The time for which a call is kept while its server waits for an answer of the client.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// The id of the call in its turn.
const CALL: &str = "call";

impl Shared {
    /// Serves one call to its reply.
    pub(crate) async fn call(
        self: &Arc<Self>,
        client: CallingClient,
        request: Request,
        cx: &RequestContext<RoleServer>,
    ) -> Reply {
        if self.stopping.is_cancelled() {
            return Reply::not_begun();
        }
        let args = match Args::try_from(request.args.clone()) {
            Ok(args) => args,
            Err(error) => return Reply::Error(ErrorData::invalid_params(error.to_string(), None)),
        };
        let key = match self.key(&client, &request, args).await {
            Ok(key) => key,
            Err(error) => return self.broken(&error),
        };
        let state = match request.state.as_deref().map(|state| self.open(state, &key)).transpose() {
            Ok(state) => state,
            Err(problem) => return Reply::Error(ErrorData::invalid_params(problem, None)),
        };
        let said = request.responses.as_ref().and_then(|it| it.get(form::QUESTION));
        let mut call = match state.as_ref().and_then(|state| state.kept.as_deref()) {
            Some(kept) => match self.resume(kept, request.responses.as_ref()) {
                Some(call) => call,
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
        match self.until_reply(&mut call, &client, cx).await {
            CallStep::Reply(reply) => reply,
            CallStep::Ended(report) => {
                let CallInFlight { waiting, downstream, .. } = call;
                self.finish(&waiting, &downstream, *report, cx).await
            }
            CallStep::Asked(key, question) => self.keep(call, (key, question), &client),
        }
    }

    async fn key(
        self: &Arc<Self>,
        client: &CallingClient,
        request: &Request,
        args: Args,
    ) -> Result<LazyKey, BoxError> {
        let identity = self.identity(&request.tool).await?;
        let (shared, client, tool) = (Arc::clone(self), client.clone(), request.tool.clone());
        Ok(AskKey::lazy(move || {
            let scope = json!([shared.scope, client.nonce]);
            AskKey::new(&client.principal, &scope, (&shared.name, &tool), &identity, &args)
        }))
    }

    /// Opens a request state that was sealed for this call of this person.
    fn open(&self, state: &str, key: &AskKey) -> Result<State, String> {
        let opened: State =
            self.keys.open(STATE, state, std::time::SystemTime::now()).map_err(|error| {
                format!("The request state is refused: {error}. Call again without it.")
            })?;
        if opened.key != key.id {
            return Err("The request state is for another call. Call again without it.".to_owned());
        }
        Ok(opened)
    }

    /// Records the answer of the client's person to an ask. It counts as the requester's.
    ///
    /// If a state comes twice, we look at what has happened to its ask. If the ask was claimed, the approval was
    /// used: the second request gets the outcome if no other request did, and otherwise an error. It never runs the
    /// call again.
    async fn decide(
        &self,
        ask: &str,
        said: Option<&Value>,
        client: &CallingClient,
    ) -> Result<(), Reply> {
        let record = self.asks.ledger.get(ask).await.map_err(|error| self.broken(&error.into()))?;
        let Some(record) = record else {
            return Err(Reply::Error(ErrorData::invalid_params(
                "The request state is for an unknown ask.",
                None,
            )));
        };
        if record.outcome.is_some() || record.claim.is_some() {
            let taken = match record.outcome {
                Some(_) => self.asks.redeliver(&record).await.unwrap_or(false),
                None => false,
            };
            return Err(match (taken, record.outcome) {
                (true, Some(outcome)) => Self::redelivered(outcome),
                _ => Reply::Error(ErrorData::invalid_params(
                    "This request state was used already. Call again without it, to be asked again.",
                    None,
                )),
            });
        }
        let broken = |error: BoxError| self.broken(&error);
        let answer = self.answered(&record, said, client).await.map_err(broken)?;
        if answer != FormAnswer::Nothing || self.is_at_inbox(client, &record, said) {
            return Ok(());
        }
        // A form that was closed is not shown again (rule M2), unless the call is made anew.
        let now = self.asks.ledger.get(ask).await.map_err(|error| broken(error.into()))?;
        match now.filter(|now| now.state == AskState::Pending) {
            Some(pending) => Err(self.left(&pending, client, true).await.map_err(broken)?),
            None => Ok(()),
        }
    }

    /// Returns `true` if the client's person has opened the link to the inbox, where the call is decided now.
    pub(crate) fn is_at_inbox(
        &self,
        client: &CallingClient,
        record: &AskRecord,
        said: Option<&Value>,
    ) -> bool {
        let action = said.and_then(|said| said.get("action")).and_then(Value::as_str);
        action == Some("accept") && self.form(client, &record.ask).is_none()
    }

    /// The reply where no one has decided in time, has closed the form, or the program ends. An ask that its client would
    /// not find again is cancelled, as a person would decide in vain.
    pub(crate) async fn left(
        &self,
        record: &AskRecord,
        client: &CallingClient,
        closed: bool,
    ) -> Result<Reply, BoxError> {
        if client.returns {
            return Ok(asker::waits(record, closed, &self.answer_hint));
        }
        let why = "countersign: its client cannot come back for the decision";
        self.asks.ledger.cancel(record.ask.id(), why).await?;
        Ok(if closed { asker::closed() } else { asker::no_way_back() })
    }

    /// The form in which the client's person may decide this ask; `None` where it is decided elsewhere. An ask that certain
    /// people have to approve is: a client's form says nothing about who has answered it.
    pub(crate) fn form(&self, client: &CallingClient, ask: &Ask) -> Option<ElicitRequestParams> {
        let has_forms = self.forms && client.forms && ask.people().is_empty();
        let may_answer = has_forms && self.asks.ledger.may_answer(ask, &client.principal);
        may_answer.then(|| form::form(ask)).flatten()
    }

    /// Records an answer of the client's person as the decision, if the ask still has none. Only the answer to a form
    /// decides: what comes back for a link, or for a form of before that would not be shown now, is nothing.
    pub(crate) async fn answered(
        &self,
        record: &AskRecord,
        said: Option<&Value>,
        client: &CallingClient,
    ) -> Result<FormAnswer, BoxError> {
        let said = said.filter(|_| self.form(client, &record.ask).is_some());
        let said = said.map_or(FormAnswer::Nothing, form::said);
        let answer = match said {
            FormAnswer::Approve => Answer::Approve { args: None },
            FormAnswer::Deny => Answer::Deny { message: "denied in the client".to_owned() },
            FormAnswer::Nothing => return Ok(said),
        };
        // A form has all of the call, or there is none.
        let shown = Presented::whole(record.ask.id(), record.fingerprint.as_str());
        let who = Approver::new(client.principal.as_str());
        Surface::new(self.asks.ledger.clone()).decide(&who, &shown, answer).await?;
        Ok(said)
    }

    /// Starts the turn of a call.
    fn start(
        self: &Arc<Self>,
        client: &CallingClient,
        request: &Request,
        key: LazyKey,
        cx: &RequestContext<RoleServer>,
    ) -> CallInFlight {
        let (to, reports) = mpsc::unbounded_channel();
        let (ask, questions) = mpsc::unbounded_channel::<Asked>();
        let elicit = client.forms.then(|| -> Elicit {
            Arc::new(move |key, question| {
                let ask = ask.clone();
                Box::pin(async move {
                    let (answer, answered) = oneshot::channel();
                    // A client that has disconnected has not answered.
                    _ = ask.send(Asked { key, question, answer });
                    answered.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
                })
            })
        });
        let wants_progress = cx.meta.get_progress_token().is_some();
        let wanted = Reports { to: to.clone(), progress: wants_progress, logs: client.logs };
        let downstream = Downstream::new(Some(wanted), elicit);
        let waiting = Arc::new(Waiting::default());
        let joins = Arc::new(AtomicBool::new(false));
        let handler = Asker {
            shared: Arc::clone(self),
            client: client.clone(),
            key: Arc::clone(&key),
            downstream: Arc::clone(&downstream),
            waiting: Arc::clone(&waiting),
            joins: Arc::clone(&joins),
            peer: cx.peer.clone(),
            returned: request.state.is_some(),
            beat: wants_progress.then_some(to),
        };
        let repeated = self.repeated(Arc::clone(&key), joins);
        let turn = self.turn().deps(Arc::clone(&downstream)).deps(repeated);
        let turn = turn.deferred_tool_handler(handler);
        let turn = match (&client.reads, &self.labels) {
            (Some(record), Some(labels)) => {
                let labels = Arc::clone(labels);
                turn.origins(record).labelled(move |tool| labels(tool))
            }
            _ => turn,
        };
        let call = ToolCall::new(CALL, request.tool.as_str(), request.args.clone());
        let running: TurnFuture = Box::pin(async move { turn.run(vec![call]).await });
        CallInFlight {
            running,
            reports,
            questions,
            downstream,
            waiting,
            key,
            open: None,
            told: f64::NEG_INFINITY,
        }
    }

    /// Tells layers whether the call repeats one whose ask is open. Then it joins that ask, and parks no other one.
    fn repeated(self: &Arc<Self>, key: LazyKey, joins: Arc<AtomicBool>) -> RepeatedRequest {
        let shared = Arc::clone(self);
        RepeatedRequest::new(move |decision| {
            let (shared, key, joins) = (Arc::clone(&shared), Arc::clone(&key), Arc::clone(&joins));
            Box::pin(async move {
                // What is not asked about does not wait for an ask.
                if decision != ToolDecision::Ask {
                    return false;
                }
                let open = shared.asks.is_open(&key).await.unwrap_or_else(|error| {
                    tracing::warn!(target: "countersign::mcp", %error, "a repeated call is counted again");
                    false
                });
                joins.store(open, Ordering::Relaxed);
                open
            })
        })
    }

    /// Drives a call until it ends, or the client has to do something.
    ///
    /// `biased`, with the end of the call first: a call that has ended and a client that has gone at the same moment is
    /// a call with an outcome. A program that is told to end gives its calls less time than a client that is gone.
    async fn until_reply(
        &self,
        call: &mut CallInFlight,
        client: &CallingClient,
        cx: &RequestContext<RoleServer>,
    ) -> CallStep {
        let token = cx.meta.get_progress_token();
        let mut asking: Option<BoxFuture<'static, ElicitResult>> = None;
        let mut given_up: Option<Pin<Box<tokio::time::Sleep>>> = None;
        let mut stopped = false;
        loop {
            tokio::select! {
                biased;
                report = &mut call.running => {
                    // Messages from before the result are sent before it.
                    while let Ok(report) = call.reports.try_recv() {
                        reported(&mut call.told, token.as_ref(), report, cx).await;
                    }
                    return CallStep::Ended(Box::new(report));
                }
                Some(report) = call.reports.recv() => {
                    reported(&mut call.told, token.as_ref(), report, cx).await;
                }
                Some(asked) = call.questions.recv(), if call.open.is_none() => {
                    let question = form::labelled(asked.question, &self.name);
                    call.open = Some((asked.key.clone(), asked.answer));
                    if client.rounds {
                        return CallStep::Asked(asked.key, question);
                    }
                    asking = Some(Box::pin(elicit(cx.peer.clone(), question, self.wait)));
                }
                answer = async { match &mut asking { Some(it) => it.await, None => std::future::pending().await } } => {
                    asking = None;
                    if let Some((_, open)) = call.open.take() {
                        // The server may have given up its question.
                        _ = open.send(answer);
                    }
                }
                () = cx.ct.cancelled(), if given_up.is_none() => {
                    if lock(&call.waiting.claims).is_empty() {
                        return CallStep::Reply(given_up_reply());
                    }
                    given_up = Some(Box::pin(tokio::time::sleep(GRACE)));
                }
                () = self.stopping.cancelled(), if !stopped => {
                    stopped = true;
                    given_up = Some(Box::pin(tokio::time::sleep(STOPPING)));
                }
                () = async { match &mut given_up { Some(it) => it.await, None => std::future::pending().await } } => {
                    self.settle(&call.waiting, None).await;
                    return CallStep::Reply(if stopped { stopped_reply() } else { given_up_reply() });
                }
            }
        }
    }

    /// Settles the claims of a call with its outcome, and makes the reply.
    async fn finish(
        &self,
        waiting: &Waiting,
        downstream: &Downstream,
        report: Result<TurnReport, TurnError>,
        cx: &RequestContext<RoleServer>,
    ) -> Reply {
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                self.settle(waiting, Some(error.report())).await;
                tracing::error!(target: "countersign::mcp", server = &*self.name, error = %error.error(), "a call has failed");
                return Reply::Result(Box::new(result::failed(of_failed(&error))));
            }
        };
        let asks = self.settle(waiting, Some(&report)).await;
        if let Some(reply) = lock(&waiting.reply).take() {
            return reply;
        }
        let Some(call) = report.calls().first() else { return given_up_reply() };
        let reply = match (call.outcome(), downstream.take()) {
            (Outcome::Deferred(_), _) => Reply::Result(Box::new(result::failed(
                "The call has to be asked about again. Call it again.",
            ))),
            // An upstream result is passed on unchanged, unless a layer has changed the content for the model.
            (outcome @ (Outcome::Failed(_) | Outcome::Returned(_)), Some(raw)) => {
                Self::passed_on(outcome, raw)
            }
            (outcome, _) => Reply::Result(Box::new(result::result(
                outcome,
                self.has_schema(call.call().name()),
            ))),
        };
        // A session that was ended has no stream for the reply, and its requests are not cancelled.
        let parts = cx.extensions.get::<axum::http::request::Parts>();
        let has_ended = match parts.and_then(|parts| parts.extensions.get::<HttpSession>()) {
            Some(session) => !session.is_open().await,
            None => cx.peer.is_transport_closed(),
        };
        let is_gone = cx.ct.is_cancelled() || has_ended;
        if !asks.is_empty() && !is_gone {
            // On stdio it is seen whether the response could be written.
            match self.sees_writes {
                true => self.asks.responses.begin(cx.id.clone(), asks),
                false => self.delivered(&asks).await,
            }
        }
        reply
    }

    /// Records that the outcomes of these asks are delivered.
    pub(crate) async fn delivered(&self, asks: &[String]) {
        for ask in asks {
            if let Err(error) = self.asks.delivered(ask).await {
                tracing::warn!(target: "countersign::mcp", ask, %error, "a delivery could not be recorded");
            }
        }
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
    ///
    /// | the result of the call | the claim |
    /// |---|---|
    /// | an outcome | settled with it |
    /// | it did not start, and was denied, deferred or is to be retried | released: the approval can be used again |
    /// | its end was not seen, or the turn has failed | given up: unknown |
    pub(crate) async fn settle(
        &self,
        waiting: &Waiting,
        report: Option<&TurnReport>,
    ) -> Vec<String> {
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
                    tracing::error!(target: "countersign::mcp", ask, %error, "the outcome of a call could not be recorded");
                }
            }
        }
        settled
    }

    /// Keeps a call whose server has sent a question, until the client returns with the answer.
    ///
    /// We keep it in memory, so the answer has to come to this process within a quarter of an hour. Afterwards we
    /// give the call up, with its claims as unknown.
    fn keep(
        self: &Arc<Self>,
        call: CallInFlight,
        (key, question): (String, ElicitRequestParams),
        client: &CallingClient,
    ) -> Reply {
        let id = uuid::Uuid::now_v7().to_string();
        let state = State {
            key: call.key.id.clone(),
            ask: None,
            kept: Some(id.clone()),
            nonce: client.nonce.clone(),
        };
        let sealed = match self.seal(&state) {
            Ok(sealed) => sealed,
            Err(error) => return self.broken(&error),
        };
        lock(&self.kept).insert(id.clone(), call);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            // At the end of the program all that is kept is settled (`Shared::ended`).
            tokio::time::sleep(KEPT).await;
            let dropped = lock(&shared.kept).remove(&id);
            let waiting = dropped.map(|call| call.waiting);
            if let Some(waiting) = waiting {
                shared.settle(&waiting, None).await;
            }
        });
        let requests = BTreeMap::from([(key, form::input(question))]);
        Reply::InputRequired(Box::new(InputRequiredResult::new(Some(requests), Some(sealed))))
    }

    /// Takes a kept call, once, and gives its server the client's answer.
    ///
    /// We take the call out of the map, so the state works once: a second request with the same state finds
    /// nothing.
    fn resume(&self, kept: &str, said: Option<&InputResponses>) -> Option<CallInFlight> {
        let mut call = lock(&self.kept).remove(kept)?;
        if let Some((key, open)) = call.open.take() {
            let said = said.and_then(|said| said.get(&key));
            let answer = said.and_then(|said| serde_json::from_value(said.clone()).ok());
            // The server may have given up its question.
            _ = open.send(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)));
        }
        Some(call)
    }
}

/// Passes a report on: progress under the client's own token, and it never goes back.
async fn reported(
    told: &mut f64,
    token: Option<&ProgressToken>,
    report: Report,
    cx: &RequestContext<RoleServer>,
) {
    let mut progress = match report {
        Report::Progress(progress) => progress,
        Report::Log(message) => {
            // A client that has disconnected needs no log.
            _ = cx.peer.send_notification(*message).await;
            return;
        }
    };
    let Some(token) = token.filter(|_| progress.progress > *told) else { return };
    *told = progress.progress;
    progress.progress_token = token.clone();
    // A client that has disconnected needs no progress.
    _ = cx.peer.notify_progress(progress).await;
}

/// The reason why a request stops driving its call: it has a reply, the call has ended, or its server asks the client.
enum CallStep {
    Reply(Reply),
    Ended(Box<Result<TurnReport, TurnError>>),
    Asked(String, ElicitRequestParams),
}

/// The text for the model about a call whose turn has failed: first of all whether anything has run.
///
/// If a store cannot be reached, the turn fails before the call is claimed.
fn of_failed(error: &TurnError) -> &'static str {
    let mut calls = error.report().calls().iter();
    match calls.all(|call| *call.execution() == Execution::NotStarted) {
        true => {
            "Not run: the approval of this call could not be looked up or recorded, as the store of approvals cannot \
             be used now. Nothing has run. A person finds the reason in the log of this server."
        }
        false => "The call failed with an internal error: it may have run.",
    }
}

fn stopped_reply() -> Reply {
    let text = "This server has ended before the call did: the tool may have run.";
    Reply::Result(Box::new(result::failed(text)))
}

fn given_up_reply() -> Reply {
    Reply::Error(ErrorData::internal_error("the call was cancelled", None))
}
