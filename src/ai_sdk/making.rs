//! Making one response: what the client has missed, what the run does, and what is asked at its end.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::{Either, select};

use super::answer::{CallAnswer, PartAnswer, is_complete, merged, note};
use super::approval;
use super::chat::Shown;
use super::chunk::{Chunk, FinishReason};
use super::config::ChatConfig;
use super::home::Held;
use super::live::Live;
use super::message::{Role, UiMessage};
use super::plan::Plan;
use super::principal::Principal;
use super::refusal::Refusal;
use super::telling::{Told, lock};
use crate::agent::{Keeper, Run, RunError, RunOutput, RunResult, RunStep};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::ErrorKind;
use crate::outcome::DeferralKind;
use crate::turn::{SuspendedRun, recorded};

/// What became of a run.
enum Ended {
    /// It came to its end, or waits.
    Run(Box<RunResult>),
    Failed(Box<RunError>),
    /// The user has stopped it.
    Stopped(SuspendedRun),
    /// There was nothing to run.
    Nothing,
}

/// One response that is made.
pub(super) struct Making<'a> {
    config: &'a ChatConfig,
    id: &'a str,
    principal: Principal,
    held: Held,
    live: &'a Arc<Live>,
    /// How much the model knew before the message.
    before: usize,
    /// The calls that the request answers, by id.
    answers: HashMap<String, PartAnswer>,
    /// Which asks are closed with the chat, and whether another server has taken it over.
    keeper: Keeper,
}

impl<'a> Making<'a> {
    pub(super) fn new(
        config: &'a ChatConfig,
        id: &'a str,
        principal: Principal,
        held: Held,
        live: &'a Arc<Live>,
        keeper: Keeper,
    ) -> Self {
        let before = held.chat.known();
        let answers = HashMap::new();
        Self { config, id, principal, held, live, before, answers, keeper }
    }

    /// Makes the response, and keeps the chat. Gives what is told once it is kept.
    pub(super) async fn make(mut self, plan: Plan) -> Result<Vec<Chunk>, Refusal> {
        let told = match self.prepare(plan).await {
            Ok(told) => Told::shared(told),
            Err(error) => {
                self.config.home.release(self.id, &self.held).await;
                return Err(Refusal::internal("a chat could not be gone on with", &error));
            }
        };
        lock(&told).start();
        let ended = self.run(&told).await;
        let last = self.end(ended, &mut lock(&told));
        let message = lock(&told).message().clone();
        self.held.chat.keep(message, self.before);
        let saved = self.config.home.save(self.id, &self.held, &self.keeper.closing.take()).await;
        match saved {
            Ok(state) => Ok(state.into_iter().chain(last).collect()),
            Err(refusal) => {
                // Whoever tries again need not wait for the end of the lease.
                self.config.home.release(self.id, &self.held).await;
                Ok(vec![Chunk::Error { error_text: refusal.message }])
            }
        }
    }

    /// Brings the chat to where the response begins.
    async fn prepare(&mut self, plan: Plan) -> Result<Told, ErrorKind> {
        let client = self.config.client;
        match plan {
            Plan::Say { message, place } => {
                self.give_up().await?;
                self.held.chat.go_back(place);
                self.held.chat.say(message);
            }
            Plan::Again { place } => {
                self.give_up().await?;
                self.held.chat.go_back(place);
            }
            Plan::Answer { message, answers } => {
                let mut known = self.known(&message);
                for answer in &answers {
                    note(&mut known, answer, &message);
                }
                self.answers = answers.into_iter().map(|it| (it.call.clone(), it)).collect();
                return Ok(self.going_on(known, &message));
            }
            Plan::GoOn { message } if !message.id.is_empty() => {
                return Ok(self.going_on(self.known(&message), &message));
            }
            Plan::GoOn { .. } => {}
        }
        self.before = self.held.chat.known();
        self.config.home.keep(self.id, &self.held).await?;
        let message = UiMessage::new(format!("msg-{}", uuid::Uuid::now_v7()), Role::Assistant);
        Ok(Told::new(Arc::clone(self.live), client, message))
    }

    /// The message as the server has it.
    fn known(&self, message: &UiMessage) -> UiMessage {
        self.held.chat.message(&message.id).unwrap_or(message).clone()
    }

    fn going_on(&self, known: UiMessage, client: &UiMessage) -> Told {
        let id = known.id.clone();
        let mut told = Told::going_on(Arc::clone(self.live), self.config.client, known, client);
        for ask in self.held.chat.asks.iter().filter(|ask| ask.message == id) {
            told.rename(&ask.call, &ask.part);
        }
        told
    }

    /// Gives up what waits. Calls that were executed meanwhile keep their results.
    async fn give_up(&mut self) -> Result<(), ErrorKind> {
        let ledger = self.config.agent.get_ledger();
        if let (Some(ledger), Some(run)) = (ledger, &mut self.held.chat.run)
            && let Some(turn) = run.turn.take()
        {
            let (turn, asks) = recorded(ledger, turn).await?;
            run.turn = Some(turn);
            self.keeper.closing.add(asks);
        }
        self.held.chat.supersede();
        Ok(())
    }

    /// Runs what is to be run.
    async fn run(&mut self, told: &Arc<Mutex<Told>>) -> Ended {
        let agent = &self.config.agent;
        let chat = &mut self.held.chat;
        let place = chat.place(&lock(told).message().id);
        if place.is_some_and(|place| place + 1 < chat.messages.len()) {
            // What waits belongs to a later message.
            return Ended::Nothing;
        }
        let run = match chat.run.take() {
            Some(run) => {
                let held = chat.asks.iter().filter_map(|ask| Some((&ask.call, ask.held.as_ref()?)));
                let given = self.answers.iter().map(|(call, answer)| (call, &answer.answer));
                let said = held.chain(given).map(|(call, said)| (call.as_str(), said)).collect();
                let answers = match agent.decisions(&run).await {
                    Ok(recorded) => merged(&run.requests(), recorded, &said, &self.principal),
                    Err(kind) => return Ended::Failed(Box::new(RunError::stopped(kind, run))),
                };
                if run.requests().is_empty() {
                    agent.ask(run)
                } else if is_complete(&run.requests(), &answers) {
                    agent.resume(run, answers)
                } else {
                    return self.hold(run, told).await;
                }
            }
            None if chat.is_unanswered() => {
                agent.ask(SuspendedRun::from_trusted_history(chat.history.clone()))
            }
            None => return Ended::Nothing,
        };
        let principal = self.principal.clone();
        let watching = Arc::clone(told);
        let run = run.watch(move |event| lock(&watching).event(event));
        let run = (self.config.each_run)(run.deps(principal.clone()), &principal, self.id);
        self.drive(run).await
    }

    /// Keeps answers until all calls of the response have one: none of them runs before (rule T1). A no is recorded at
    /// once, so that nobody can turn it into a yes (rule A3).
    async fn hold(&mut self, run: SuspendedRun, told: &Arc<Mutex<Told>>) -> Ended {
        let requests = run.requests();
        let no = self.answers.values().filter(|answer| answer.answer.is_denial());
        let no = no.map(|answer| (answer.call.as_str(), &answer.answer)).collect();
        let no = merged(&requests, DeferredToolResults::new(), &no, &self.principal);
        let agent = &self.config.agent;
        let decided = async {
            agent.decide(&run, no).await?;
            agent.decisions(&run).await
        };
        let recorded = match decided.await {
            Ok(recorded) => recorded,
            Err(kind) => return Ended::Failed(Box::new(RunError::stopped(kind, run))),
        };
        self.held.chat.run = Some(run);
        for (call, answer) in self.answers.drain() {
            // Somebody may have decided otherwise before, elsewhere: that stands (rule L1).
            let earlier = recorded.approvals.get(&call).cloned().map(CallAnswer::Approval);
            let by = recorded.answered_by.get(&call).map(String::as_str);
            let by = by.unwrap_or(self.principal.as_str());
            lock(told).answered(&call, earlier.as_ref().unwrap_or(&answer.answer), by);
            for ask in self.held.chat.asks.iter_mut().filter(|ask| ask.part == answer.part) {
                (ask.open, ask.held) = (false, Some(answer.answer.clone()));
            }
        }
        Ended::Nothing
    }

    async fn drive(&self, run: Run<'_>) -> Ended {
        let mut run = run.kept_by(self.keeper.clone()).or_deferred().iter();
        loop {
            let step = match select(pin!(self.live.stopped()), pin!(run.next())).await {
                Either::Left(_) => None,
                Either::Right((step, _)) => Some(step),
            };
            match step {
                None => return Ended::Stopped(run.suspended()),
                Some(Ok(Some(RunStep::End(result)))) => return Ended::Run(Box::new(result)),
                Some(Ok(Some(_))) => {}
                Some(Ok(None)) => return Ended::Nothing,
                Some(Err(error)) => return Ended::Failed(Box::new(error)),
            }
        }
    }

    /// Takes over what the run came to. Gives what ends the stream.
    fn end(&mut self, ended: Ended, told: &mut Told) -> Vec<Chunk> {
        match ended {
            Ended::Run(result) => {
                let history = result.history().to_vec();
                match result.into_output() {
                    RunOutput::Deferred(run) => self.held.chat.run = Some(*run),
                    RunOutput::Text(_) | RunOutput::Structured(_) => {
                        self.held.chat.history = history
                    }
                }
                self.finish(told, None)
            }
            Ended::Failed(error) => {
                let about_answers = match error.kind() {
                    ErrorKind::User(wrong) if wrong.is_about_answers() => Some(wrong.to_string()),
                    _ => None,
                };
                let text = (self.config.error_text)(&error);
                if about_answers.is_none() {
                    tracing::error!(chat = self.id, error = %error, "the run of a chat failed");
                }
                self.held.chat.run = Some(error.into_suspended());
                match about_answers {
                    Some(problem) => self.finish(told, Some(&problem)),
                    None => {
                        // What did not count because of it counts when it is sent again.
                        self.answers.clear();
                        self.settle_asks(told, None);
                        told.last(|writer, out| writer.error(text, out))
                    }
                }
            }
            Ended::Stopped(run) => {
                self.held.chat.run = Some(run);
                self.settle_asks(told, None);
                let last = told.last(|writer, out| writer.abort(out));
                told.close_parts("The run was stopped: the tool may have run.");
                last
            }
            Ended::Nothing => self.finish(told, None),
        }
    }

    fn finish(&mut self, told: &mut Told, problem: Option<&str>) -> Vec<Chunk> {
        let waits = self.settle_asks(told, problem);
        let reason = if waits { FinishReason::ToolCalls } else { FinishReason::Stop };
        told.last(|writer, out| writer.finish(reason, out))
    }

    /// Asks about what waits now, and closes what does not wait any more. Says whether anything waits.
    fn settle_asks(&mut self, told: &mut Told, problem: Option<&str>) -> bool {
        let requests = self.held.chat.requests();
        for ask in &mut self.held.chat.asks {
            let waits = requests.get(&ask.call).is_some()
                && requests.fingerprint(&ask.call) == ask.fingerprint.as_deref();
            let answered = self.answers.contains_key(&ask.call);
            ask.open = ask.open && waits && !answered;
            ask.held = ask.held.take().filter(|_| waits && !answered);
        }
        for call in requests.iter().map(|call| call.id().to_owned()) {
            let asks = &self.held.chat.asks;
            if !asks.iter().any(|ask| ask.call == call && (ask.open || ask.held.is_some())) {
                self.ask(&requests, &call, told, problem);
            }
        }
        !requests.is_empty()
    }

    fn ask(
        &mut self,
        requests: &DeferredToolRequests,
        id: &str,
        told: &mut Told,
        problem: Option<&str>,
    ) {
        let Some(call) = requests.get(id) else { return };
        let asks = &mut self.held.chat.asks;
        let earlier = asks.iter().filter(|ask| ask.call == id).count();
        if earlier > 0 || told.shows_otherwise(call) || told.is_above(id) {
            // The client has answered this part, has seen other arguments, or would not send its answer: what is asked
            // now has a part of its own.
            let why = match problem.or_else(|| requests.changed(id)) {
                Some(why) => format!("Asked again below: {why}."),
                None if earlier > 0 => "Asked again below: it still waits.".to_owned(),
                None => "Asked below.".to_owned(),
            };
            let part = told.part(id);
            told.tell(|writer, out| {
                writer.fail(&part, &why, out);
                writer.rename(id, &format!("{id}#{}", earlier + 2));
            });
        }
        let part = told.part(id);
        let agent = requests.agent(id).is_some();
        told.tell(|writer, out| writer.show(call, agent, out));
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
            told.tell(|writer, out| writer.ask(id, approval, reason, out));
            if let Some(shown) = approval::shown(requests, id, (approval, &part)) {
                told.tell(|writer, out| writer.push(shown, out));
            }
        }
        self.held.chat.asks.push(Shown {
            approval,
            message: told.message().id.clone(),
            part,
            call: id.to_owned(),
            fingerprint: requests.fingerprint(id).map(str::to_owned),
            open: true,
            held: None,
        });
    }
}
