//! The loop of a run as a state machine: one step asks the model or handles the calls of one response.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::Instrument as _;

use super::Agent;
use super::history::{self, Undecided};
use super::output::Output;
use super::reading::RunReading;
use super::result::{RunError, RunOutput, RunResult};
use crate::call::{AskHistory, Meter, ToolCall, ToolDefinition};
use crate::deferred::{Answered, DeferredToolResults};
use crate::error::{AnswerError, Error, UserError};
use crate::ledger::LeaseKeeper;
use crate::message::{Message, RequestPart};
use crate::model::TokenUsage;
use crate::outcome::Outcome;
use crate::turn::{
    CallReport, FinalAnswer, Retries, RunEvent, SuspendedRun, SuspendedTurn, Turn, TurnError,
    TurnReport, Watchers, boxed, results,
};

/// A run in progress, with its next step.
pub(super) struct RunLoop<'a> {
    pub(super) agent: &'a Agent,
    pub(super) state: SuspendedRun,
    /// The answers to the pending calls; `None` asks the handler.
    pub(super) answers: Option<DeferredToolResults>,
    /// `true` if the run was built by `resume` or `ask`, so that its history may end with calls without results.
    pub(super) resumes: bool,
    /// The template of the run's turns: everything but the run id and the number of the response.
    pub(super) turn: Turn,
    pub(super) output: Output,
    /// `true` if the first text is the final answer ([`Run::stream`](super::Run::stream)).
    pub(super) ends_with_text: bool,
    pub(super) watchers: Watchers,
    pub(super) meter: Arc<Meter>,
    pub(super) retries: Retries,
    pub(super) turns: Vec<TurnReport>,
    /// `true` if the caller saves the run; otherwise the run saves itself.
    pub(super) is_saved_by_caller: bool,
    /// The lease that the caller has on the run.
    pub(super) lease: Option<LeaseKeeper>,
    pub(super) next: Next,
    /// The span of the run, `invoke_agent`.
    pub(super) span: tracing::Span,
    /// The tokens of the requests so far, in this process.
    pub(super) tokens: TokenUsage,
    /// The record of the run's reads, if there is one.
    pub(super) reads: RunReading,
}

/// The next step of a run.
pub(super) enum Next {
    /// Check the history and the answers that the run was given.
    Start,
    /// Resume a response that has pending calls.
    TakeUp(SuspendedTurn),
    /// Send the history to the model.
    Ask,
    /// Decide about and run the calls of a new response.
    Call(Called),
    /// No step: the run is over.
    Over,
}

/// The calls of a response before any of them is decided, with the outcomes that are already known.
pub(super) struct Called {
    pub(super) calls: Vec<(ToolCall, Option<Outcome>)>,
    /// The tool definitions that the request contained.
    pub(super) shown: Vec<ToolDefinition>,
    /// The final answer that is in the same response.
    pub(super) answer: Option<RunOutput>,
}

impl RunLoop<'_> {
    pub(super) async fn run_to_end(self) -> Result<RunResult, RunError> {
        match self.resumes_parked() {
            true => boxed(|| self.held_to_end()).await,
            false => boxed(|| self.finish()).await,
        }
    }

    pub(super) async fn finish(mut self) -> Result<RunResult, RunError> {
        loop {
            if let Some(result) = boxed(|| self.step()).await? {
                return Ok(result);
            }
        }
    }

    /// Runs the next step. Returns the result if it was the last one.
    pub(super) async fn step(&mut self) -> Result<Option<RunResult>, RunError> {
        let span = self.span.clone();
        let stepped = self.step_in_span().instrument(span.clone()).await;
        if stepped.is_err() {
            span.record("error.type", "run_error");
            span.record("otel.status_code", "ERROR");
        }
        stepped
    }

    async fn step_in_span(&mut self) -> Result<Option<RunResult>, RunError> {
        if self.lease.as_ref().is_some_and(LeaseKeeper::is_lost) {
            return Err(self.stop(Error::RunGoneOn { run: self.state.run_id.clone() }));
        }
        match std::mem::replace(&mut self.next, Next::Over) {
            Next::Start => self.start().map(|()| None).map_err(|kind| self.stop(kind)),
            Next::TakeUp(waiting) => {
                let answer = self.answer_in(&waiting);
                let turn = with_final_answer(self.turn(), answer.as_ref());
                let ended = match self.answers.take() {
                    Some(answers) => boxed(|| turn.resume(waiting, answers)).await,
                    None => boxed(|| turn.ask(waiting)).await,
                };
                boxed(|| self.after(ended, answer)).await
            }
            Next::Ask => match boxed(|| self.ask_model()).await {
                Ok((response, shown)) => self.enter(response, shown),
                Err(kind) => Err(self.stop(kind)),
            },
            Next::Call(Called { calls, shown, answer }) => {
                let turn = with_final_answer(self.turn(), answer.as_ref());
                let ended = boxed(|| turn.run_with(calls, Some(shown))).await;
                boxed(|| self.after(ended, answer)).await
            }
            Next::Over => Ok(None),
        }
    }

    /// Checks the history and the answers, and determines the first step.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        if self.state.turn.is_none() {
            self.check_history()?;
        }
        if let Some(turn) = &self.state.turn
            && !turn.is_of(&self.state.history)
        {
            let problem = "its pending calls are not those of its last response";
            let ids = self.state.requests().iter().map(|call| call.id().to_owned()).collect();
            return Err(UserError::History { problem: problem.into(), ids }.into());
        }
        self.state.untell_settled();
        self.next = match self.state.turn.take() {
            Some(turn) => {
                if let Err(error) = self.check_deferred(&turn) {
                    self.state.turn = Some(turn);
                    return Err(error.into());
                }
                Next::TakeUp(turn)
            }
            None => {
                self.say_prompt();
                Next::Ask
            }
        };
        Ok(())
    }

    /// Checks that every call of the history has its result. Calls without one are allowed in the last response of a
    /// run that is resumed; they become its pending turn.
    fn check_history(&mut self) -> Result<(), Error> {
        if let Some(Undecided { mut calls, up_to }) = history::undecided(&self.state.history)? {
            if !self.resumes {
                let ids = calls.iter().filter(|(_, outcome)| outcome.is_none());
                let ids = ids.map(|(call, _)| call.id().to_owned()).collect();
                let problem = "calls have no results: resume the suspended run they belong to (`resume`, `ask`), or `close` it first";
                return Err(UserError::History { problem: problem.into(), ids }.into());
            }
            self.decide_outputs(&mut calls, &mut None);
            self.state.turn = Some(self.turn().undecided(calls));
            // The known results are part of the turn now, and are appended again together with the new ones.
            Arc::make_mut(&mut self.state.history).truncate(up_to);
            return Ok(());
        }
        if let Some(answers) = self.answers.as_ref().filter(|answers| !answers.is_empty()) {
            let ids = answers.approvals.keys().chain(answers.calls.keys()).cloned();
            let ids: BTreeSet<_> = ids.chain(answers.left().map(str::to_owned)).collect();
            return Err(AnswerError::Unknown { ids: ids.into_iter().collect() }.into());
        }
        let problem = match self.state.history.last() {
            _ if !self.state.prompts.is_empty() => return Ok(()),
            Some(Message::Request { .. }) => return Ok(()),
            Some(Message::Response { .. }) => {
                "it ends with the model's answer, and there is no prompt: add one with `saying`"
            }
            None => "it is empty, and there is no prompt",
        };
        Err(UserError::History { problem: problem.into(), ids: Vec::new() }.into())
    }

    /// The structured answer that is among the calls of a suspended turn, and was accepted before the run stopped.
    fn answer_in(&self, turn: &SuspendedTurn) -> Option<RunOutput> {
        let structured = self.output.structured.as_ref()?;
        let taken = |(call, outcome): (&ToolCall, Option<&Outcome>)| {
            let taken = self.is_output(call.name()) && outcome.is_some_and(Outcome::is_returned);
            taken.then(|| structured.read(call.args()).ok()).flatten()
        };
        turn.calls().find_map(taken).map(RunOutput::Structured)
    }

    /// Refuses a resume that is certain to leave calls pending, if the run may not end with deferred calls, before
    /// anything runs.
    fn check_deferred(&self, turn: &SuspendedTurn) -> Result<(), UserError> {
        let requests = turn.requests();
        let open = |id: &&str| {
            let mut calls = turn.calls().filter(|(_, outcome)| outcome.is_none());
            requests.get(id).is_some() || calls.any(|(call, _)| call.id() == *id)
        };
        let ids: Vec<String> = match &self.answers {
            _ if self.output.deferred => return Ok(()),
            Some(answers) => answers.left().filter(open).map(str::to_owned).collect(),
            None if self.turn.has_handler() || self.answer_in(turn).is_some() => return Ok(()),
            None => requests.iter().map(|call| call.id().to_owned()).collect(),
        };
        if ids.is_empty() { Ok(()) } else { Err(self.not_expected(ids, turn)) }
    }

    /// The error about pending calls at the end of a run that may not end with deferred calls.
    fn not_expected(&self, ids: Vec<String>, turn: &SuspendedTurn) -> UserError {
        let left = |answers: &DeferredToolResults| ids.iter().any(|id| answers.is_left(id));
        let left_by = match self.answers.as_ref().is_some_and(left) {
            true => Some("the answers".to_owned()),
            false => self.turn.named_handler(),
        };
        let again = turn.deferred_again().into_iter().filter(|id| ids.contains(id)).collect();
        UserError::DeferredNotExpected { ids, left_by, again }
    }

    fn say_prompt(&mut self) {
        std::mem::take(&mut self.state.prompts).into_iter().for_each(|prompt| self.say(prompt));
    }

    pub(super) fn say(&mut self, prompt: String) {
        self.reads.prompt(&prompt, self.turn.is_root());
        let history = Arc::make_mut(&mut self.state.history);
        match history.last_mut() {
            // Results and the prompt that follows them belong to one request.
            Some(Message::Request { parts }) => {
                parts.push(RequestPart::UserPrompt { content: prompt.into() })
            }
            _ => history.push(Message::user(prompt)),
        }
    }

    pub(super) fn turn(&self) -> Turn {
        let turn = self.turn.clone().of_run(self.state.run_id.clone(), self.state.responses);
        let turn = turn.answering_all(!self.output.deferred);
        turn.with_retries(self.retries.clone()).requested_at(self.reads.requested)
    }

    /// Handles the end of a turn: appends the results for the model, or ends the run.
    async fn after(
        &mut self,
        ended: Result<TurnReport, TurnError>,
        answer: Option<RunOutput>,
    ) -> Result<Option<RunResult>, RunError> {
        let mut report = match ended {
            Ok(report) => report,
            Err(error) if error.error().is_stopped() => {
                let stopped = self.fail(error);
                let parked = self.park(stopped.suspended(), stopped.turns().last()).await;
                if let Err(error) = parked {
                    return Err(self.stop(Error::Ledger(error.into())));
                }
                return Err(stopped);
            }
            Err(error) => {
                self.close_asks_if_possible(Some(error.report())).await;
                return Err(self.fail(error));
            }
        };
        let answer = self.unless_retried(answer, &mut report);
        self.tell_done(&report);
        self.retries.spend(&report);
        if let Some(waiting) = report.suspended().cloned() {
            self.turns.push(report);
            return self.suspend(waiting).await.map(Some);
        }
        let parts = report.calls().iter().filter_map(|call| self.told(call));
        let message = results(parts);
        Arc::make_mut(&mut self.state.history).push(message);
        self.state.responses += 1;
        self.turns.push(report);
        if let Err(error) = self.close_asks(self.turns.last()).await {
            return Err(self.stop(Error::Ledger(error.into())));
        }
        if let Some(answer) = answer {
            return Ok(Some(self.end(answer)));
        }
        self.say_prompt();
        self.next = Next::Ask;
        Ok(None)
    }

    /// Drops a structured answer if another call of the response has to be retried, and tells the model so.
    fn unless_retried(
        &self,
        answer: Option<RunOutput>,
        report: &mut TurnReport,
    ) -> Option<RunOutput> {
        let Some(RunOutput::Structured(_)) = &answer else { return answer };
        let retried = |call: &CallReport| {
            matches!(call.outcome(), Outcome::Retry(_)) && !self.is_output(call.call().name())
        };
        if !report.calls().iter().any(retried) {
            return answer;
        }
        let text = "Not used: a call beside the final answer has to be tried again first.";
        report.replace_outcomes(|call| {
            (self.is_output(call.call().name()) && call.outcome().is_returned())
                .then(|| Outcome::failed(text))
        });
        None
    }

    /// Ends the run with its pending calls, or with an error if its output does not allow them.
    async fn suspend(&mut self, waiting: SuspendedTurn) -> Result<RunResult, RunError> {
        if !self.output.deferred {
            self.close_asks_if_possible(self.turns.last()).await;
            let ids = waiting.requests().iter().map(|call| call.id().to_owned()).collect();
            let error = self.not_expected(ids, &waiting);
            self.state.turn = Some(waiting);
            return Err(self.stop(error.into()));
        }
        self.state.turn = Some(waiting);
        // Prompts that were not sent are dropped: the caller adds them again when it resumes the run.
        self.state.prompts.clear();
        self.state = self.snapshot();
        if let Err(error) = self.state.check_storable() {
            self.close_asks_if_possible(self.turns.last()).await;
            return Err(self.stop(error.into()));
        }
        let state = self.state.clone();
        if let Err(error) = self.park(&state, self.turns.last()).await {
            return Err(self.stop(Error::Ledger(error.into())));
        }
        Ok(self.end(RunOutput::Deferred(Box::new(state))))
    }

    pub(super) fn end(&mut self, output: RunOutput) -> RunResult {
        let state = self.snapshot();
        let turns = std::mem::take(&mut self.turns);
        let SuspendedRun { history, run_id, usage, reads, .. } = state;
        RunResult { output, history, run_id, turns, usage, reads }
    }

    /// The result of a settled call as the model receives it, and additional content after the results.
    fn told(&self, report: &CallReport) -> Option<(RequestPart, Vec<RequestPart>)> {
        let (result, mut added) = RequestPart::results(report.call(), report.outcome())?;
        if self.agent.tell_edits
            && matches!(report.answered(), Some(Answered::Approved { edited: true, .. }))
        {
            let (id, args) = (report.call().id(), report.args());
            let note =
                format!("A person changed the arguments of call {id} before it ran, to {args}.");
            added.push(RequestPart::UserPrompt { content: note.into() });
        }
        Some((result, added))
    }

    fn tell_done(&self, report: &TurnReport) {
        self.watchers.tell(|| RunEvent::ToolCallsDone { report: Arc::new(report.clone()) });
    }

    /// A snapshot of the run, to resume from.
    pub(super) fn snapshot(&self) -> SuspendedRun {
        let mut state = self.state.clone();
        state.usage = self.meter.usage();
        state.turn = self.announced().or(state.turn).map(SuspendedTurn::without_history);
        let asks = self.turn.own_ask_history().filter(|_| self.turn.is_root());
        state.denied = asks.map(AskHistory::denied).unwrap_or_default();
        state.reads = self.reads.record.clone().filter(|_| self.turn.is_root());
        state.tell_settled();
        state
    }

    /// The calls of the next step, if it has any.
    pub(super) fn announced(&self) -> Option<SuspendedTurn> {
        match &self.next {
            Next::TakeUp(turn) => Some(turn.clone()),
            Next::Call(Called { calls, .. }) => Some(self.turn().undecided(calls.iter().cloned())),
            Next::Start | Next::Ask | Next::Over => None,
        }
    }

    /// Ends the run with an error of a turn, and the snapshot to resume from.
    fn fail(&mut self, error: TurnError) -> RunError {
        let (kind, suspended, report) = error.into_parts();
        self.tell_done(&report);
        self.turns.push(report);
        self.state.turn = suspended;
        if self.state.turn.is_none() {
            // A resumed response always comes back with its state, so this one was new. None of its calls ran: without
            // the response, the history is as it was before the request.
            Arc::make_mut(&mut self.state.history).pop();
        }
        self.stop(kind)
    }

    /// Ends the run with an error and a snapshot.
    pub(super) fn stop(&mut self, kind: Error) -> RunError {
        RunError::new(kind, self.snapshot(), std::mem::take(&mut self.turns))
    }
}

/// Tells a turn that its response contains a final answer, so that calls that would be deferred are skipped.
fn with_final_answer(turn: Turn, answer: Option<&RunOutput>) -> Turn {
    match answer {
        Some(RunOutput::Text(_)) => turn.final_answer(FinalAnswer::Streamed),
        Some(RunOutput::Structured(_)) => turn.final_answer(FinalAnswer::Structured),
        Some(RunOutput::Deferred(_)) | None => turn,
    }
}
