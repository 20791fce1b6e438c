//! The handler of a served call: its asks are answered from the ledger, by the client, or at another surface.
//!
//! An ask of a served call may be answered at three places at the same time, and the first answer counts, as all of
//! them decide in the ledger:
//!
//! | place | when |
//! |---|---|
//! | a form in the client | it declares forms, the server has people answer there, the requester may approve this ask, and the whole call fits into the form |
//! | the inbox, opened by a link | it declares URLs, an inbox is configured, and the client has not just come from there |
//! | any other surface of the ledger | always |
//!
//! A client of the newest revision gets the question as the result of its request and comes again with the answer; an
//! earlier one is asked while its request is held. Where no one answers in time, the request ends with the id of the
//! ask and nothing more: no link with a token, as the text goes to the model, which must not be able to approve (rule
//! M2).
//!
//! A client without an account whose requests are connections of their own is found again by its request state alone,
//! which it has while it is asked. Where it cannot be asked, no later call of it would find the decision, so no person
//! is asked, and it is told why (rule M3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequiredResult, ProgressNotificationParam, ProgressToken, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::asks::{AskKey, AskStanding, LazyKey, MayPark, OVER, Renewing};
use super::flight::{CallingClient, Reply, State, Waiting};
use super::form;
use super::result;
use super::shared::Shared;
use super::site::{Report, Site, lock};
use crate::args::Args;
use crate::call::{RunContext, ToolCall};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::BoxError;
use crate::handler::DeferredToolHandler;
use crate::ledger::{Ask, Record};

/// The interval of progress notifications for a held call.
///
/// Clients that count the time since the last progress as the time of the tool would otherwise give up before the
/// person decides. The number of the progress grows by a millionth, so that it stays below any real progress of the
/// tool.
const BEAT: Duration = Duration::from_secs(5);

/// Asks a client of an older revision, which counts the time as the tool's.
///
/// Whatever is no answer (an error, a time that is over, a result of another kind) is a form that was closed, which
/// decides nothing. Only a person's own no is a denial.
pub(super) fn elicit(
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
pub(super) struct Asker {
    pub(super) shared: Arc<Shared>,
    pub(super) client: CallingClient,
    pub(super) key: LazyKey,
    pub(super) site: Arc<Site>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) peer: Peer<RoleServer>,
    /// Whether the client was asked before, and has returned: it is not sent to the inbox again.
    pub(super) returned: bool,
    /// Whether no layer has counted the call, as it repeats one whose ask was open.
    pub(super) joins: Arc<AtomicBool>,
    pub(super) beat: Option<mpsc::UnboundedSender<Report>>,
}

/// The answer to one call of a batch.
enum CallReply {
    Approved(Args),
    Denied(String),
    /// The client gets this result instead, and nothing runs.
    Left(Reply),
}

impl DeferredToolHandler for Asker {
    async fn handle(
        &self,
        cx: &RunContext,
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
            match self.answer(cx, requests, call).await? {
                CallReply::Approved(args) if args.to_value() == call.args().to_value() => {
                    answers = answers.approve(id)
                }
                CallReply::Approved(args) => answers = answers.approve_with(id, args),
                CallReply::Denied(text) => answers = answers.deny(id, text),
                CallReply::Left(reply) => {
                    lock(&self.waiting.reply).get_or_insert(reply);
                    answers = answers.leave(id);
                }
            }
        }
        Ok(answers.build()?)
    }
}

impl Asker {
    /// The end of the run's log is read before the ask is looked at, so that a decision between the two ends the wait.
    async fn answer(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
        call: &ToolCall,
    ) -> Result<CallReply, BoxError> {
        let (asks, questions) = (&self.shared.asks, requests.questions(call.id()));
        let key = self.key_of(requests, call);
        let until = Instant::now() + self.shared.wait;
        let mut asked = false;
        // The ask that the call is held for, and the place in its log.
        let mut held: Option<(String, i64)> = None;
        loop {
            // An approval is not claimed any more for a call that would be given up at once.
            if self.shared.stopping.is_cancelled() {
                return Ok(CallReply::Left(Reply::not_begun()));
            }
            if asks.is_cancelled(held.as_ref().map(|(ask, _)| &**ask)).await? {
                return Ok(CallReply::Left(Reply::Result(Box::new(result::failed(OVER)))));
            }
            let is_found = &|ask: &Ask| self.client.returns || self.question(ask).is_some();
            let parking = MayPark { joins: self.joins.load(Ordering::Relaxed), is_found };
            let record = match asks.standing(cx, &key, (call.args(), questions), &parking).await? {
                AskStanding::Pending(record) => record,
                AskStanding::Claimed { ask, token, args } => {
                    let renewing = Renewing::start(asks.ledger.clone(), ask.clone(), token);
                    lock(&self.site.key).get_or_insert_with(|| ask.clone());
                    lock(&self.waiting.claims).push((ask, token, renewing));
                    return Ok(CallReply::Approved(args));
                }
                AskStanding::Denied(text) => return Ok(CallReply::Denied(text)),
                AskStanding::Delivered(outcome) => {
                    return Ok(CallReply::Left(Shared::redelivered(outcome)));
                }
                AskStanding::NoWayBack => return Ok(CallReply::Left(Self::no_way_back())),
            };
            let question = self.question(&record.ask);
            if let Some(question) = question.clone().filter(|_| self.client.rounds && !asked) {
                return self.round(&record, question);
            }
            let (id, run) = (record.ask.id().to_owned(), record.ask.run().to_owned());
            let Some(seen) = held.filter(|(ask, _)| *ask == id).map(|(_, place)| place) else {
                held = Some((id, asks.wait_for_change(&run, -1).await?));
                continue;
            };
            if let Some(question) = question.filter(|_| !asked && !self.client.rounds) {
                asked = true;
                self.ask_client(&record, question, (&run, seen), until).await?;
                held = Some((id, asks.wait_for_change(&run, -1).await?));
            } else {
                match self.wait(&run, seen, until).await? {
                    Some(place) => held = Some((id, place)),
                    None => return self.given_up(&record).await,
                }
            }
            if self.shared.stopping.is_cancelled() {
                return self.given_up(&record).await;
            }
        }
    }

    /// The question for the client: a form, if its person may decide this ask, or a link to the inbox.
    fn question(&self, ask: &Ask) -> Option<ElicitRequestParams> {
        let link = || self.shared.inbox.as_deref().map(|base| form::link(ask, base));
        let form = self.shared.form(&self.client, ask);
        form.or_else(|| if self.client.urls && !self.returned { link() } else { None })
    }

    /// A call of an agent behind the tool has a key of its own, below that of the served call, since it is another call
    /// that another approval covers.
    fn key_of(&self, requests: &DeferredToolRequests, call: &ToolCall) -> AskKey {
        let path = requests.path(call.id()).unwrap_or_else(|| call.name().to_owned());
        match path == self.key.tool {
            true => AskKey::clone(&self.key),
            false => {
                let (scope, server) = (json!(self.key.id), &self.shared.name);
                AskKey::new(&self.client.principal, &scope, (server, &path), "", call.args())
            }
        }
    }

    /// The input-required result for an ask.
    fn round(&self, record: &Record, question: ElicitRequestParams) -> Result<CallReply, BoxError> {
        let state = State {
            key: self.key.id.clone(),
            ask: Some(record.ask.id().to_owned()),
            kept: None,
            nonce: self.client.nonce.clone(),
        };
        let sealed = self.shared.seal(&state)?;
        let requests = BTreeMap::from([(form::QUESTION.to_owned(), form::input(question))]);
        let required = InputRequiredResult::new(Some(requests), Some(sealed));
        Ok(CallReply::Left(Reply::InputRequired(Box::new(required))))
    }

    /// Asks a client of an older revision, while the other surfaces can decide too: the first answer counts.
    async fn ask_client(
        &self,
        record: &Record,
        question: ElicitRequestParams,
        (run, seen): (&str, i64),
        until: Instant,
    ) -> Result<(), BoxError> {
        let wait = until.saturating_duration_since(Instant::now());
        let answer = tokio::select! {
            answer = elicit(self.peer.clone(), question, wait) => answer,
            _ = self.wait(run, seen, until) => return Ok(()),
        };
        self.shared.answered(record, Some(&json!(answer)), &self.client).await
    }

    /// Waits until the run's log has grown, and meanwhile sends the client progress notifications; `None` when the time
    /// is over, or the program is to end.
    ///
    /// The time is that of the whole request and not of one wait, so a log that grows again and again does not hold the
    /// client longer.
    async fn wait(&self, run: &str, seen: i64, until: Instant) -> Result<Option<i64>, BoxError> {
        let mut beats = 0.0;
        loop {
            let next = until.min(Instant::now() + BEAT);
            let change = self.shared.asks.wait_for_change(run, seen);
            tokio::select! {
                place = change => return place.map(Some),
                () = self.shared.stopping.cancelled() => return Ok(None),
                () = tokio::time::sleep_until(next) => {}
            }
            if next >= until {
                return Ok(None);
            }
            beats += 1.0;
            if let Some(beat) = &self.beat {
                let token = ProgressToken(rmcp::model::NumberOrString::Number(0));
                let params = ProgressNotificationParam::new(token, beats / 1e6)
                    .with_message("waits for an approval");
                // The request may be over.
                _ = beat.send(Report::Progress(params));
            }
        }
    }

    /// The reply when no one has decided in time, or the program ends. An ask that its client would not find again is
    /// cancelled, as a person would decide in vain.
    async fn given_up(&self, record: &Record) -> Result<CallReply, BoxError> {
        if self.client.returns {
            return Ok(CallReply::Left(Self::waits(record)));
        }
        let why = "countersign: its client cannot come back for the decision";
        self.shared.asks.ledger.cancel(record.ask.id(), why).await?;
        Ok(CallReply::Left(Self::no_way_back()))
    }

    /// The result for a client that no decision would reach. It says what to do, as another call changes nothing.
    fn no_way_back() -> Reply {
        let text = "Not run: this call needs an approval, and this client could not come back for one. It cannot be \
                    asked by a form here, and without a session or an account no later call would be known as the \
                    same one, so that calling again changes nothing. A person has to connect it otherwise: by a \
                    revision of MCP with sessions (2025-11-25 or earlier), with a client that shows forms, or with \
                    the token or account by which this server knows its clients. Nothing has run.";
        Reply::Result(Box::new(result::failed(text)))
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
