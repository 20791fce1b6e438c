//! The making of one response: what the client has missed, the run, and the asks at its end.
//!
//! ```text
//! intent --> prepare: change the chat, save it --> catch the client up --> run the agent
//!                                                                               |
//!           send the last chunks <-- save and release the chat <-- settle the asks
//! ```
//!
//! We save twice, as the process may die at two times. The first save, before we ask the model, keeps the user's
//! message. The second is one transaction with the closing of the asks, so no ask stays open for a call that has its
//! result. We send the last chunks after it: a client that has seen the end may rely on it.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::{Either, select};
use serde_json::Value;

use super::active::ActiveStream;
use super::answer::{PartAnswer, copy_answer, is_complete, merged};
use super::approval;
use super::chat::ShownAsk;
use super::chunk::{Chunk, FinishReason};
use super::config::ChatConfig;
use super::granting::{self, ChosenGrants};
use super::intent::Intent;
use super::message::{Role, UiMessage};
use super::message_stream::{MessageStream, lock};
use super::principal::Principal;
use super::rejection::Rejection;
use super::storage::ChatLease;
use countersign::agent::{Agent, Run, RunError, RunOutput, RunResult, RunStep};
use countersign::deferred::{Answer, DeferredToolRequests, DeferredToolResults};
use countersign::error::Error;
use countersign::ledger::{AskState, LedgerError};
use countersign::outcome::DeferralKind;
use countersign::turn::{SuspendedRun, TurnReport};

/// The end of the run of a response.
enum RunEnd {
    /// The run has an output, or is suspended with pending calls.
    Finished(Box<RunResult>),
    Failed(Box<RunError>),
    /// The user has stopped the run.
    Stopped(SuspendedRun),
    /// There was nothing to run, or calls still wait for answers.
    Nothing,
}

/// The making of one response, by the process that has the lease of the chat.
pub(super) struct ResponseTask<'a> {
    config: &'a ChatConfig,
    id: &'a str,
    principal: Principal,
    lease: ChatLease,
    active: &'a Arc<ActiveStream>,
    /// The length of the model's history before the message.
    before: usize,
    /// The answers of the request, by call.
    answers: HashMap<String, PartAnswer>,
    /// The grants that go with the answers.
    grants: ChosenGrants,
    /// The grants that are offered with the asks at the end, by call.
    offers: HashMap<String, Vec<Value>>,
    /// The asks that are closed with the chat.
    closed_asks: Vec<String>,
}

impl<'a> ResponseTask<'a> {
    pub(super) fn new(
        config: &'a ChatConfig,
        id: &'a str,
        principal: Principal,
        lease: ChatLease,
        active: &'a Arc<ActiveStream>,
    ) -> Self {
        let before = lease.chat.known();
        let (answers, grants) = (HashMap::new(), ChosenGrants::default());
        let (offers, closed_asks) = (HashMap::new(), Vec::new());
        Self { config, id, principal, lease, active, before, answers, grants, offers, closed_asks }
    }

    /// Makes the response and saves the chat. Returns the chunks that end the stream, which the caller sends: a client
    /// may answer as soon as it has them, so the chat has to be saved before.
    pub(super) async fn run(mut self, intent: Intent) -> Result<Vec<Chunk>, Rejection> {
        let stream = match self.prepare(intent).await {
            Ok(stream) => stream.shared(),
            Err(error) => {
                self.lease.release().await;
                return Err(Rejection::internal("a chat could not be continued", &error));
            }
        };
        lock(&stream).start();
        let end = self.run_agent(&stream).await;
        self.offers = self.offers(&end).await;
        let last = self.end(end, &mut lock(&stream));
        let message = lock(&stream).message().clone();
        self.lease.chat.keep(message, self.before);
        let store = &self.config.store;
        match store.save_and_release(self.id, &self.lease, &self.closed_asks).await {
            Ok(sealed) => Ok(sealed.into_iter().chain(last).collect()),
            Err(rejection) => {
                self.lease.release().await;
                Ok(vec![Chunk::Error { error_text: rejection.message }])
            }
        }
    }

    /// Changes the chat as the intent demands, and opens the stream of the message.
    async fn prepare(&mut self, intent: Intent) -> Result<MessageStream, Error> {
        match intent {
            Intent::Submit { message, place } => {
                self.supersede().await?;
                self.lease.chat.go_back(place);
                self.lease.chat.say(message);
            }
            Intent::Regenerate { place } => {
                self.supersede().await?;
                self.lease.chat.go_back(place);
            }
            Intent::Answer { message, answers } => {
                let mut known = self.known(&message);
                for answer in &answers {
                    copy_answer(&mut known, answer, &message);
                }
                self.answers = answers.into_iter().map(|it| (it.call.clone(), it)).collect();
                return Ok(self.resume(known, &message));
            }
            Intent::Resume { message } if !message.id.is_empty() => {
                return Ok(self.resume(self.known(&message), &message));
            }
            Intent::Resume { .. } => {}
        }
        self.before = self.lease.chat.known();
        self.lease.save().await?;
        let message = UiMessage::new(format!("msg-{}", uuid::Uuid::now_v7()), Role::Assistant);
        Ok(MessageStream::new(Arc::clone(self.active), self.config.client, message))
    }

    /// The server's copy of a message, or the given one where the server has none.
    fn known(&self, message: &UiMessage) -> UiMessage {
        self.lease.chat.message(&message.id).unwrap_or(message).clone()
    }

    fn resume(&self, known: UiMessage, client: &UiMessage) -> MessageStream {
        let id = known.id.clone();
        let active = Arc::clone(self.active);
        let mut stream = MessageStream::resume(active, self.config.client, known, client);
        for ask in self.lease.chat.asks.iter().filter(|ask| ask.message == id) {
            stream.rename(&ask.call, &ask.part);
        }
        stream
    }

    /// Closes the pending calls, as the user does not answer them. We read the ledger first, so calls that another
    /// process has executed since keep their results.
    async fn supersede(&mut self) -> Result<(), Error> {
        if let Some(run) = &mut self.lease.chat.run {
            self.closed_asks.extend(self.config.agent.settle_recorded(run).await?);
        }
        self.lease.chat.supersede();
        Ok(())
    }

    /// Runs the agent, if the chat has something to run and every pending call has its answer.
    async fn run_agent(&mut self, stream: &Arc<Mutex<MessageStream>>) -> RunEnd {
        let agent = &self.config.agent;
        let chat = &mut self.lease.chat;
        let place = chat.place(&lock(stream).message().id);
        if place.is_some_and(|place| place + 1 < chat.messages.len()) {
            // The pending calls, if any, belong to a later message.
            return RunEnd::Nothing;
        }
        let run = match chat.run.take() {
            Some(run) => {
                let is_stored = |ask: &&ShownAsk| !self.answers.contains_key(&ask.call);
                let stored = || chat.asks.iter().filter(is_stored);
                if let Err(kind) = withdraw_aged(agent, &run, stored()).await {
                    return RunEnd::Failed(Box::new(RunError::before_start(kind, run)));
                }
                let stored =
                    stored().filter_map(|ask| Some((ask.call.as_str(), ask.answer.as_ref()?)));
                let posted = self.answers.iter().map(|(call, it)| (call.as_str(), &it.answer));
                let ours = stored.chain(posted).collect();
                let answers = match agent.decisions(&run).await {
                    Ok(recorded) => {
                        let given = (&*chat, &self.answers);
                        let grants =
                            ChosenGrants::of(agent, &run, given, &recorded, &self.principal);
                        self.grants = grants.await;
                        merged(&run.requests(), &recorded, &ours, &self.principal)
                    }
                    Err(kind) => {
                        return RunEnd::Failed(Box::new(RunError::before_start(kind, run)));
                    }
                };
                if run.requests().is_empty() {
                    agent.ask(run)
                } else if is_complete(&run.requests(), &answers) {
                    agent.resume(run, answers)
                } else {
                    return self.store_answers(run, stream).await;
                }
            }
            None if chat.is_unanswered() => {
                agent.ask(SuspendedRun::from_trusted_history(chat.history.clone()))
            }
            None => return RunEnd::Nothing,
        };
        let principal = self.principal.clone();
        let watcher = Arc::clone(stream);
        let run = run.watch(move |event| lock(&watcher).event(event));
        let run = (self.config.each_run)(run.deps(principal.clone()), &principal, self.id);
        self.drive(run, stream).await
    }

    /// Stores the answers with the chat until all pending calls of the response have one, as none of them runs before
    /// (rule T1). A denial is recorded in the ledger at once, so that a later approval cannot replace it (rule A3).
    ///
    /// For example, an approval of one call of three is stored with the chat and is no decision yet: the user can take
    /// it back until the batch is complete. A denial is a decision at once.
    async fn store_answers(
        &mut self,
        run: SuspendedRun,
        stream: &Arc<Mutex<MessageStream>>,
    ) -> RunEnd {
        let requests = run.requests();
        let denials = self.answers.values().filter(|it| matches!(it.answer, Answer::Deny { .. }));
        let denials = denials.map(|it| (it.call.as_str(), &it.answer)).collect();
        let denials = merged(&requests, &DeferredToolResults::new(), &denials, &self.principal);
        let agent = &self.config.agent;
        let decided = async {
            agent.decide(&run, denials).await?;
            let now = match agent.configured_ledger() {
                Some(ledger) => Some(ledger.now().await.map_err(of_ledger)?),
                None => None,
            };
            Ok((agent.decisions(&run).await?, now))
        };
        let (recorded, now) = match decided.await {
            Ok(recorded) => recorded,
            Err(kind) => return RunEnd::Failed(Box::new(RunError::before_start(kind, run))),
        };
        self.lease.chat.run = Some(run);
        for (call, answer) in self.answers.drain() {
            // The ledger may have an earlier decision from another surface: the earlier one counts (rule L1).
            let earlier = recorded.answer_to(&call);
            let by = recorded.answered_by.get(&call).map(String::as_str);
            let by = by.unwrap_or(self.principal.as_str());
            lock(stream).answered(&call, earlier.as_ref().unwrap_or(&answer.answer), by);
            for ask in self.lease.chat.asks.iter_mut().filter(|ask| ask.part == answer.part) {
                ask.open = false;
                ask.answer = Some(answer.answer.clone());
                ask.answered_at = now;
                ask.grant.clone_from(&answer.grant);
            }
        }
        RunEnd::Nothing
    }

    /// Drives the run to its end, or until it is stopped. We drive it step by step: when no step is running, we can
    /// suspend it.
    ///
    /// To stop the run drops the step that is running. If a tool was running in it, its outcome is unknown, and
    /// [`RunIter::suspended`](countersign::agent::RunIter::suspended) says so.
    async fn drive(&mut self, run: Run<'_>, stream: &Mutex<MessageStream>) -> RunEnd {
        let run = match self.lease.keeper() {
            Some(keeper) => run.under_lease(keeper),
            None => run.saved_by_caller(),
        };
        let mut run = run.or_deferred().iter();
        let end = loop {
            let step = match select(pin!(self.active.stopped()), pin!(run.next())).await {
                Either::Left(_) => None,
                Either::Right((step, _)) => Some(step),
            };
            self.grants.make(&self.config.agent, &self.principal, stream).await;
            match step {
                None => break RunEnd::Stopped(run.suspended()),
                Some(Ok(Some(RunStep::End(result)))) => break RunEnd::Finished(Box::new(result)),
                Some(Ok(Some(_))) => {}
                Some(Ok(None)) => break RunEnd::Nothing,
                Some(Err(error)) => break RunEnd::Failed(Box::new(error)),
            }
        };
        let turns = match &end {
            RunEnd::Finished(result) => result.turns(),
            RunEnd::Failed(error) => error.turns(),
            RunEnd::Stopped(_) | RunEnd::Nothing => run.turns(),
        };
        let asks: BTreeSet<_> = turns.iter().flat_map(TurnReport::closed_asks).cloned().collect();
        self.closed_asks.extend(asks);
        end
    }

    /// Stores the result of the run in the chat. Returns the chunks that end the stream.
    fn end(&mut self, end: RunEnd, stream: &mut MessageStream) -> Vec<Chunk> {
        match end {
            RunEnd::Finished(result) => {
                let history = result.history().to_vec();
                match result.into_output() {
                    RunOutput::Deferred(run) => self.lease.chat.run = Some(*run),
                    RunOutput::Text(_) | RunOutput::Structured(_) => {
                        self.lease.chat.history = history
                    }
                }
                self.finish(stream, None)
            }
            RunEnd::Failed(error) => {
                let about_answers = match error.error() {
                    Error::Answers(wrong) => Some(wrong.to_string()),
                    _ => None,
                };
                let text = (self.config.error_text)(&error);
                if about_answers.is_none() {
                    tracing::error!(chat = self.id, error = %error, "the run of a chat failed");
                }
                self.lease.chat.run = Some(error.into_suspended());
                match about_answers {
                    Some(problem) => self.finish(stream, Some(&problem)),
                    None => {
                        // The answers did not take effect. Their asks stay open, and the client may answer again.
                        self.answers.clear();
                        self.settle_asks(stream, None);
                        stream.write_unsent(|writer, out| writer.error(text, out))
                    }
                }
            }
            RunEnd::Stopped(run) => {
                self.lease.chat.run = Some(run);
                self.settle_asks(stream, None);
                let last = stream.write_unsent(|writer, out| writer.abort(out));
                stream.close_parts("The run was stopped: the tool may have run.");
                last
            }
            RunEnd::Nothing => self.finish(stream, None),
        }
    }

    /// The grants to offer with the asks about the calls that are pending now.
    async fn offers(&self, end: &RunEnd) -> HashMap<String, Vec<Value>> {
        let run = match end {
            RunEnd::Finished(result) => result.suspended(),
            RunEnd::Failed(error) => Some(error.suspended()),
            RunEnd::Stopped(run) => Some(run),
            RunEnd::Nothing => self.lease.chat.run.as_ref(),
        };
        match run.filter(|_| self.config.approvals) {
            Some(run) => granting::offers(&self.config.agent, run, &self.principal).await,
            None => HashMap::new(),
        }
    }

    fn finish(&mut self, stream: &mut MessageStream, problem: Option<&str>) -> Vec<Chunk> {
        let is_pending = self.settle_asks(stream, problem);
        let reason = if is_pending { FinishReason::ToolCalls } else { FinishReason::Stop };
        stream.write_unsent(|writer, out| writer.finish(reason, out))
    }

    /// Closes the asks whose calls are no longer pending, and asks about the pending calls that have no ask. Returns
    /// whether any call is pending.
    ///
    /// An ask stays open only while its call is pending with the same fingerprint. A call that a layer has changed
    /// meanwhile is asked about again under a new id, and the old id does not count any more (rule A2).
    fn settle_asks(&mut self, stream: &mut MessageStream, problem: Option<&str>) -> bool {
        let requests = self.lease.chat.requests();
        for ask in &mut self.lease.chat.asks {
            let is_pending = requests.get(&ask.call).is_some()
                && requests.fingerprint(&ask.call) == ask.fingerprint.as_deref();
            let answered = self.answers.contains_key(&ask.call);
            ask.open = ask.open && is_pending && !answered;
            ask.answer = ask.answer.take().filter(|_| is_pending && !answered);
            ask.grant = ask.grant.take().filter(|_| ask.answer.is_some());
        }
        for call in requests.iter().map(|call| call.id().to_owned()) {
            let asks = &self.lease.chat.asks;
            if !asks.iter().any(|ask| ask.call == call && (ask.open || ask.answer.is_some())) {
                self.ask(&requests, &call, stream, problem);
            }
        }
        !requests.is_empty()
    }

    /// Asks the client to decide about a pending call, or to execute it.
    ///
    /// A client sends an answer by itself only for parts of the last step that are in the state it expects. So a call
    /// that is asked about again needs a new part (`c1#2`), and we close the first one as an error that points below.
    fn ask(
        &mut self,
        requests: &DeferredToolRequests,
        id: &str,
        stream: &mut MessageStream,
        problem: Option<&str>,
    ) {
        let Some(call) = requests.get(id) else { return };
        let asks = &mut self.lease.chat.asks;
        let earlier = asks.iter().filter(|ask| ask.call == id).count();
        if earlier > 0 || stream.shows_otherwise(call) || stream.is_above(id) {
            // The client has answered the part of this call already, shows other arguments in it, or would not send an
            // answer by itself, as the part is not in the last step. So the ask gets a second part.
            let why = match problem.or_else(|| requests.changed(id)) {
                Some(why) => format!("Asked again below: {why}."),
                None if earlier > 0 => "Asked again below: it is still pending.".to_owned(),
                None => "Asked below.".to_owned(),
            };
            let part = stream.part(id);
            stream.write(|writer, out| {
                writer.fail(&part, &why, out);
                writer.rename(id, &format!("{id}#{}", earlier + 2));
            });
        }
        let part = stream.part(id);
        let agent = requests.agent(id).is_some();
        stream.write(|writer, out| writer.show(call, agent, out));
        let approval = match requests.kind(id) {
            Some(DeferralKind::Approval) if !self.config.approvals => return,
            Some(DeferralKind::Approval) => match approval::new_id() {
                Some(id) => Some(id),
                None => return,
            },
            _ => None,
        };
        if let Some(approval) = &approval {
            let reason = approval::reason(requests, id);
            stream.write(|writer, out| writer.ask(id, approval, reason, out));
            let offers = self.offers.get(id).map_or(&[][..], Vec::as_slice);
            if let Some(shown) = approval::shown(requests, id, approval, &part, offers) {
                stream.write(|writer, out| writer.push(shown, out));
            }
        }
        self.lease.chat.asks.push(ShownAsk {
            approval,
            message: stream.message().id.clone(),
            part,
            call: id.to_owned(),
            fingerprint: requests.fingerprint(id).map(str::to_owned),
            open: true,
            answer: None,
            answered_at: None,
            grant: None,
        });
    }
}

fn of_ledger(error: LedgerError) -> Error {
    Error::Ledger(error.into())
}

/// Withdraws the asks whose approvals are stored here for longer than an approval is valid (rule A8). Otherwise such an
/// approval would be as new as the answer to the last call of its response.
async fn withdraw_aged(
    agent: &Agent,
    run: &SuspendedRun,
    stored: impl Iterator<Item = &ShownAsk>,
) -> Result<(), Error> {
    let approved = stored.filter(|ask| matches!(ask.answer, Some(Answer::Approve { .. })));
    let approved: HashMap<_, _> = approved.map(|ask| (&*ask.call, ask)).collect();
    let Some(ledger) = agent.configured_ledger().filter(|_| !approved.is_empty()) else {
        return Ok(());
    };
    let now = ledger.now().await.map_err(of_ledger)?;
    for (call, record) in agent.asks(run).await? {
        let Some(ask) = approved.get(&*call) else { continue };
        // What others have answered meanwhile is as new as it is.
        if record.state != AskState::Pending || !record.votes.is_empty() {
            continue;
        }
        let since = ask.answered_at.unwrap_or(record.parked_at);
        if record.valid_for.is_some_and(|time| since.saturating_add(time) <= now) {
            let by = "countersign: the approval is too old";
            ledger.cancel(record.ask.id(), by).await.map_err(of_ledger)?;
        }
    }
    Ok(())
}
