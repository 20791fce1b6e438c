//! One run of an agent.

use std::collections::BTreeSet;
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Agent;
use super::result::{RunError, RunOutput, RunResult};
use super::suspended::{SuspendedRun, results};
use crate::call::{Extensions, ToolCall, ToolDefinition};
use crate::deferred::DeferredToolResults;
use crate::error::{ErrorKind, UserError};
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::message::{Message, RequestPart, ResponsePart};
use crate::model::{Deltas, Heard, ModelRequest, ModelResponse};
use crate::turn::{
    Answered, CallReport, Retries, RunEvent, SuspendedTurn, Turn, TurnError, TurnReport, Watchers,
    admit,
};

/// A run that is about to start: set more, or await it.
#[must_use = "a run does nothing until it is awaited"]
pub struct Run<'a> {
    agent: &'a Agent,
    state: SuspendedRun,
    /// `None` asks the handler.
    answers: Option<DeferredToolResults>,
    prompt: Option<String>,
    handler: Option<Arc<dyn ErasedHandler>>,
    deps: Extensions,
    retries: Retries,
    watchers: Watchers,
}

impl<'a> Run<'a> {
    pub(super) fn prompt(agent: &'a Agent, prompt: String) -> Self {
        let state = SuspendedRun::from_trusted_history(Vec::new());
        Self { prompt: Some(prompt), ..Self::resume(agent, state, None) }
    }

    pub(super) fn resume(
        agent: &'a Agent,
        state: SuspendedRun,
        answers: Option<DeferredToolResults>,
    ) -> Self {
        let (handler, deps) = (agent.handler.clone(), agent.deps.clone());
        let watchers = agent.turn.watchers().clone();
        let retries = Retries::new(agent.max_retries);
        Self { agent, state, answers, prompt: None, handler, deps, retries, watchers }
    }

    /// Answers deferred calls inline, in place of the agent's handler.
    pub fn deferred_tool_handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Asks nobody inline, also where the agent has a handler.
    pub fn without_handler(mut self) -> Self {
        self.handler = None;
        self
    }

    /// Adds a dependency, or replaces the agent's of the same type.
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.deps.insert(value);
        self
    }

    /// Watches this run, as it happens, beside whoever watches the agent.
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Goes on with this conversation.
    pub fn history(mut self, history: Vec<Message>) -> Self {
        self.state.history = history;
        self
    }

    /// Says something to the model; on a resume, behind the results of the answered calls.
    pub fn saying(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    async fn go(mut self) -> Result<RunResult, RunError> {
        let mut turns = Vec::new();
        if let Some(turn) = self.state.turn.take() {
            match self.take_up(turn).await {
                Ok(report) => {
                    if let Some(end) = self.after(report, &mut turns) {
                        return end;
                    }
                }
                Err(error) => return Err(self.fail(error, turns)),
            }
        } else if let Err(error) = self.check_start() {
            return Err(self.stop(ErrorKind::User(error), turns));
        }
        self.say_prompt();
        loop {
            let (response, shown) = match self.ask_model().await {
                Ok(response) => response,
                Err(kind) => return Err(self.stop(kind, turns)),
            };
            let (said, calls) = self.enter(response);
            if calls.is_empty() {
                self.state.responses += 1;
                let SuspendedRun { history, run_id, .. } = self.state;
                return Ok(RunResult { output: RunOutput::Text(said), history, run_id, turns });
            }
            match self.turn().run_with(calls, Some(shown)).await {
                Ok(report) => {
                    if let Some(end) = self.after(report, &mut turns) {
                        return end;
                    }
                }
                Err(error) => return Err(self.fail(error, turns)),
            }
        }
    }

    /// Applies the answers to the response that waits, or asks the handler for them.
    async fn take_up(&mut self, suspended: SuspendedTurn) -> Result<TurnReport, TurnError> {
        match self.answers.take() {
            Some(answers) => self.turn().resume(suspended, answers).await,
            None => self.turn().ask(suspended).await,
        }
    }

    /// Nothing waits: answers must be none, and every call in the history must have its result.
    fn check_start(&self) -> Result<(), UserError> {
        if let Some(answers) = self.answers.as_ref().filter(|answers| !answers.is_empty()) {
            let ids = answers.approvals.keys().chain(answers.calls.keys()).cloned();
            let ids: BTreeSet<_> = ids.chain(answers.left().map(str::to_owned)).collect();
            return Err(UserError::AnswersUnknown { ids: ids.into_iter().collect() });
        }
        if self.state.history.is_empty() && self.prompt.is_none() {
            return Err(UserError::History {
                problem: "it is empty, and there is no prompt".into(),
            });
        }
        if self.state.history.last().is_some_and(|last| last.tool_calls().next().is_some()) {
            let problem = "its last calls have no results: resume the suspended run they belong to, or `close` it first";
            return Err(UserError::History { problem: problem.into() });
        }
        Ok(())
    }

    fn say_prompt(&mut self) {
        let Some(prompt) = self.prompt.take() else { return };
        match self.state.history.last_mut() {
            // Results and a prompt are one request.
            Some(Message::Request { parts }) => {
                parts.push(RequestPart::UserPrompt { content: prompt.into() })
            }
            _ => self.state.history.push(Message::user(prompt)),
        }
    }

    fn turn(&self) -> Turn {
        let turn = self.agent.turn.clone().of_run(self.state.run_id.clone(), self.state.responses);
        let turn = turn.shared_handler(self.handler.clone()).with_deps(self.deps.clone());
        turn.with_retries(self.retries.clone()).watched_by(self.watchers.clone())
    }

    async fn ask_model(&self) -> Result<(ModelResponse, Vec<ToolDefinition>), ErrorKind> {
        let tools = self.turn().definitions().await?;
        let mut request = ModelRequest::new(self.state.history.clone()).with_tools(tools.clone());
        if let Some(instructions) = &self.agent.instructions {
            request = request.with_instructions(Arc::clone(instructions));
        }
        if self.watchers.are_there() {
            request = request.with_deltas(self.deltas());
        }
        let response = self.agent.model.respond(request).await.map_err(ErrorKind::Model)?;
        Ok((response, tools))
    }

    fn deltas(&self) -> Deltas {
        let watchers = self.watchers.clone();
        Deltas::new(move |heard| {
            watchers.tell(|| match heard {
                Heard::Text(text) => RunEvent::TextDelta { text: text.to_owned() },
                Heard::Again => RunEvent::ResponseRestarted,
            });
        })
    }

    /// Puts a response into the history. Gives its text and its calls.
    fn enter(&mut self, response: ModelResponse) -> (String, Vec<ToolCall>) {
        let (mut said, mut calls) = (String::new(), Vec::new());
        let mut parts = Vec::new();
        for part in response.parts {
            match part {
                ResponsePart::Text(text) => {
                    said.push_str(&text);
                    parts.push(ResponsePart::Text(text));
                }
                ResponsePart::ToolCall(call) => calls.push(call),
                thinking @ ResponsePart::Thinking { .. } => parts.push(thinking),
            }
        }
        let used: Vec<&str> =
            self.state.history.iter().flat_map(Message::tool_calls).map(ToolCall::id).collect();
        let calls = admit(calls, &used);
        parts.extend(calls.iter().cloned().map(ResponsePart::ToolCall));
        self.watchers.tell(|| RunEvent::Response { parts: parts.clone() });
        self.state.history.push(Message::Response { parts });
        (said, calls)
    }

    /// Tells the model what became of its calls; or the run ends here, as some wait.
    fn after(
        &mut self,
        report: TurnReport,
        turns: &mut Vec<TurnReport>,
    ) -> Option<Result<RunResult, RunError>> {
        self.tell_done(&report);
        self.retries.spend(&report);
        let waiting = report.suspended().cloned();
        if waiting.is_none() {
            let parts = report.calls().iter().filter_map(|call| self.told(call));
            self.state.history.push(results(parts));
            self.state.responses += 1;
        }
        turns.push(report);
        let waiting = waiting?;
        let turns = std::mem::take(turns);
        let state = SuspendedRun { turn: Some(waiting), ..self.state.clone() };
        if !self.agent.output.deferred {
            let ids = state.requests().iter().map(|call| call.id().to_owned()).collect();
            let kind = ErrorKind::User(UserError::DeferredNotExpected { ids });
            return Some(Err(RunError::new(kind, state, turns)));
        }
        let (history, run_id) = (state.history.clone(), state.run_id.clone());
        Some(Ok(RunResult { output: RunOutput::Deferred(Box::new(state)), history, run_id, turns }))
    }

    /// What the model is told of a settled call, and what it reads beside the results.
    fn told(&self, report: &CallReport) -> Option<(RequestPart, Vec<RequestPart>)> {
        let (result, mut beside) = RequestPart::results(report.call(), report.outcome())?;
        if self.agent.tell_edits
            && matches!(report.answered(), Some(Answered::Approved { edited: true, .. }))
        {
            let (id, args) = (report.call().id(), report.args());
            let note =
                format!("A person changed the arguments of call {id} before it ran, to {args}.");
            beside.push(RequestPart::UserPrompt { content: note.into() });
        }
        Some((result, beside))
    }

    fn tell_done(&self, report: &TurnReport) {
        self.watchers.tell(|| RunEvent::ToolCallsDone { report: Arc::new(report.clone()) });
    }

    /// The run ends with an error of a turn, and with the state to resume from.
    fn fail(self, error: TurnError, mut turns: Vec<TurnReport>) -> RunError {
        let (kind, suspended, report) = error.into_parts();
        self.tell_done(&report);
        turns.push(report);
        let mut state = self.state;
        state.turn = suspended;
        if state.turn.is_none() {
            // A response that was taken up again always comes back with its state, so this one was new. Nothing of the response ran: without it, the history is as it was before the request.
            state.history.pop();
        }
        RunError::new(kind, state, turns)
    }

    /// The run ends with an error between turns.
    fn stop(self, kind: ErrorKind, turns: Vec<TurnReport>) -> RunError {
        RunError::new(kind, self.state, turns)
    }
}

impl<'a> IntoFuture for Run<'a> {
    type Output = Result<RunResult, RunError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.go())
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("state", &self.state).finish_non_exhaustive()
    }
}
