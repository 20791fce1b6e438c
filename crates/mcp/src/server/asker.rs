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
//! earlier one is asked while its request is held. Where no one answers in time, or the form is closed, the request ends
//! with the id of the ask and nothing more: no link with a token, as the text goes to the model, which must not be able
//! to approve (rule M2). The form stays open, and is listened for by [`answered_forms`](super::answered_forms).
//!
//! A client without an account, whose requests are connections of their own, is found again by its request state
//! alone, which it has while it is asked. If it cannot be asked, no later call of it would find the decision. So we
//! ask no person, and tell the client why (rule M3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    ElicitRequestParams, InputRequiredResult, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::answered_forms::opened;
use super::asks::{AskKey, AskStanding, LazyKey, MayPark, OVER, Renewing};
use super::in_flight::{CallingClient, Reply, State, Waiting};
use super::open_forms::FormState;
use super::shared::Shared;
use crate::downstream::{Downstream, Report, lock};
use crate::form;
use crate::result;
use countersign::args::Args;
use countersign::call::{RunContext, ToolCall};
use countersign::deferred::{DeferredToolRequests, DeferredToolResults};
use countersign::error::BoxError;
use countersign::handler::DeferredToolHandler;
use countersign::ledger::{Ask, AskRecord, AskState};

/// The interval of progress notifications for a held call.
///
/// Some clients count the time since the last progress as the time of the tool, and would give up before the person
/// decides. The number of the progress grows by a millionth, so it stays below any real progress of the tool.
const BEAT: Duration = Duration::from_secs(5);

/// Answers the asks of one served call: from the ledger, by asking the client, or by waiting for the inbox.
pub(crate) struct Asker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: CallingClient,
    pub(crate) key: LazyKey,
    pub(crate) downstream: Arc<Downstream>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) peer: Peer<RoleServer>,
    /// `true` if the client was asked before, and has returned: it is not sent to the inbox again.
    pub(crate) returned: bool,
    /// `true` if no layer has counted the call, as it repeats one whose ask was open.
    pub(crate) joins: Arc<AtomicBool>,
    pub(crate) beat: Option<mpsc::UnboundedSender<Report>>,
}

/// The answer to one call of a batch.
enum CallReply {
    Approved(Args),
    Denied(String),
    /// The client gets this result instead, and nothing runs.
    Left(Reply),
}

impl DeferredToolHandler for Asker {
    fn counts_people(&self) -> bool {
        true
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = requests.answer();
        for call in &requests.calls {
            let failed = countersign::outcome::ToolFailed::new(
                "This call needs an answer that MCP cannot carry.",
            );
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
    /// We read the end of the run's log before we look at the ask: a decision between the two ends the wait.
    async fn answer(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
        call: &ToolCall,
    ) -> Result<CallReply, BoxError> {
        let (asks, questions) = (&self.shared.asks, requests.questions(call.id()));
        let key = self.key_of(requests, call);
        let until = Instant::now() + self.shared.wait;
        let left = |reply| Ok(CallReply::Left(reply));
        // The ask that the call is held for, the place in its log, and its form in the client.
        let mut held: Option<HeldFor> = None;
        // Once no one is waited for any more: whether the form was closed.
        let mut wait_is_over = None;
        loop {
            // An approval is not claimed any more for a call that would be given up at once.
            if self.is_ending() {
                return self.ended_early(held.as_ref()).await;
            }
            let held_for = held.as_ref().map(|held| &*held.ask);
            if asks.is_cancelled(held_for).await? {
                return left(cancelled());
            }
            let parking = MayPark {
                joins: self.joins.load(Ordering::Relaxed),
                held: held_for,
                held_until: &|ask| self.is_held_for(ask).then_some(until),
                is_found: &|ask| self.client.returns || self.question(ask).is_some(),
            };
            let record = match asks.standing(cx, &key, (call.args(), questions), &parking).await? {
                AskStanding::Pending(record) => record,
                AskStanding::Claimed { ask, token, args } => {
                    self.keep_claim(ask, token);
                    return Ok(CallReply::Approved(args));
                }
                AskStanding::Denied(text) => return Ok(CallReply::Denied(text)),
                AskStanding::Delivered(outcome) => return left(Shared::redelivered(outcome)),
                AskStanding::Cancelled => return left(cancelled()),
                AskStanding::NoWayBack => return left(no_way_back()),
            };
            if let Some(closed) = wait_is_over {
                return left(self.shared.left(&record, &self.client, closed).await?);
            }
            let (id, run) = (record.ask.id(), record.ask.run());
            let Some(here) = held.as_mut().filter(|held| held.ask == id) else {
                let question = self.question(&record.ask);
                if let Some(question) = question.clone().filter(|_| self.client.rounds) {
                    return self.round(&record, question);
                }
                held = Some(self.hold(&record, question).await?);
                continue;
            };
            match self.wait(run, here, until).await? {
                Waited::Changed(place) => here.seen = place,
                Waited::Closed => wait_is_over = Some(true),
                Waited::Over => wait_is_over = Some(false),
            }
        }
    }

    /// Returns `true` if a call is held for the answer to an ask, and not answered by a round with its question.
    fn is_held_for(&self, ask: &Ask) -> bool {
        !self.client.rounds || self.question(ask).is_none()
    }

    /// Keeps the claim of an approved call until its outcome is settled.
    fn keep_claim(&self, ask: String, token: u64) {
        let renewing = Renewing::start(self.shared.asks.ledger.clone(), ask.clone(), token);
        lock(&self.downstream.key).get_or_insert_with(|| ask.clone());
        lock(&self.waiting.claims).push((ask, token, renewing));
    }

    /// Returns `true` if no call is begun any more: the program ends, or the client is gone.
    fn is_ending(&self) -> bool {
        self.shared.stopping.is_cancelled() || self.shared.disconnected.is_cancelled()
    }

    /// The reply to a call that is not begun any more. It names the ask that was parked for the call, which stays.
    async fn ended_early(&self, held: Option<&HeldFor>) -> Result<CallReply, BoxError> {
        let record = match held {
            Some(held) => self.shared.asks.ledger.get(&held.ask).await?,
            None => None,
        };
        Ok(CallReply::Left(match record.filter(|record| record.state == AskState::Pending) {
            Some(record) => self.shared.left(&record, &self.client, false).await?,
            None => Reply::not_begun(),
        }))
    }

    /// Begins to hold the call for an ask, with its form in a client of an older revision. The other surfaces can decide
    /// too: the first answer counts.
    async fn hold(
        &self,
        record: &AskRecord,
        question: Option<ElicitRequestParams>,
    ) -> Result<HeldFor, BoxError> {
        let seen = self.shared.asks.wait_for_change(record.ask.run(), -1).await?;
        let form = match question {
            Some(question) => {
                Some(opened(&self.shared, &self.client, record, (&self.peer, question)).await)
            }
            None => None,
        };
        Ok(HeldFor { ask: record.ask.id().to_owned(), seen, form })
    }

    /// The question for the client: a form, if its person may decide this ask, or a link to the inbox.
    fn question(&self, ask: &Ask) -> Option<ElicitRequestParams> {
        let link = || {
            self.shared.inbox.as_ref().and_then(|place| place()).map(|base| form::link(ask, &base))
        };
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
    fn round(
        &self,
        record: &AskRecord,
        question: ElicitRequestParams,
    ) -> Result<CallReply, BoxError> {
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

    /// Waits until the run's log has grown or the form is gone, and meanwhile sends the client progress notifications.
    ///
    /// The time is that of the whole request and not of one wait: a log that grows again and again does not hold the
    /// client longer.
    async fn wait(
        &self,
        run: &str,
        held: &mut HeldFor,
        until: Instant,
    ) -> Result<Waited, BoxError> {
        let mut beats = 0.0;
        loop {
            let next = until.min(Instant::now() + BEAT);
            let change = self.shared.asks.wait_for_change(run, held.seen);
            tokio::select! {
                place = change => return place.map(Waited::Changed),
                state = gone(&mut held.form) => match state {
                    FormState::Closed => return Ok(Waited::Closed),
                    FormState::Lost(error) => return Err(error.into()),
                    FormState::Open | FormState::Over => held.form = None,
                },
                () = self.shared.stopping.cancelled() => return Ok(Waited::Over),
                () = self.shared.disconnected.cancelled() => return Ok(Waited::Over),
                () = tokio::time::sleep_until(next) => {}
            }
            if Instant::now() >= until {
                return Ok(Waited::Over);
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
}

/// The ask that a call is held for.
struct HeldFor {
    ask: String,
    /// The place in the log of its run that was seen.
    seen: i64,
    /// Its form in the client.
    form: Option<watch::Receiver<FormState>>,
}

/// The end of a wait.
enum Waited {
    /// The log has grown, to this place.
    Changed(i64),
    /// The person has closed the form.
    Closed,
    /// The time is over, or the program or the connection ends.
    Over,
}

/// Waits until a form is open no more.
async fn gone(form: &mut Option<watch::Receiver<FormState>>) -> FormState {
    let Some(form) = form else { return std::future::pending().await };
    let state = form.wait_for(|state| *state != FormState::Open).await;
    state.map_or(FormState::Over, |state| state.clone())
}

/// The result for a call that was held for an ask which was cancelled.
fn cancelled() -> Reply {
    Reply::Result(Box::new(result::failed(OVER)))
}

/// The result for a client that no decision would reach. It says what to do, as another call changes nothing.
pub(crate) fn no_way_back() -> Reply {
    let text = "Not run: this call needs an approval, and this client could not come back for one. It cannot be \
                asked by a form here, and without a session or an account no later call would be known as the \
                same one, so that calling again changes nothing. A person has to connect it otherwise: by a \
                revision of MCP with sessions (2025-11-25 or earlier), with a client that shows forms, or with \
                the token or account by which this server knows its clients. Nothing has run.";
    Reply::Result(Box::new(result::failed(text)))
}

/// The result for a client whose person has closed the form, and which is found again by that form only.
pub(crate) fn closed() -> Reply {
    let text = "Not run: this call needs an approval, and its form was closed without an answer. Another call shows \
                another form. Nothing has run.";
    Reply::Result(Box::new(result::failed(text)))
}

/// The result for a client that was not answered in time: the id of the ask, and where a person answers.
pub(crate) fn waits(record: &AskRecord, closed: bool, hint: &str) -> Reply {
    let id = record.ask.id();
    let place = if hint.is_empty() { String::new() } else { format!(" {hint}") };
    let why = if closed { " Its form was closed without an answer." } else { "" };
    let text = format!(
        "Not run yet: this call waits for an approval, under ask {id}.{why}{place} Once it is approved, call the tool again \
         with exactly the same arguments. Nothing has run."
    );
    Reply::Result(Box::new(result::failed(text)))
}
