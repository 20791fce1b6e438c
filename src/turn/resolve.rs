//! Working through the calls of a response: walking, asking, and what comes of it.

use std::collections::HashSet;

use super::checks;
use super::event::RunEvent;
use super::pending::requests;
use super::report::{TurnError, TurnReport};
use super::slot::{INTERNAL_ERROR, RESULT_WITHHELD, Slot, State};
use super::suspended::SuspendedTurn;
use super::together::Together;
use super::{FinalAnswer, Turn, boxed, user};
use crate::call::{Execution, ToolCall, ToolDefinition};
use crate::caught::{Caught, caught};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::{BoxError, ErrorKind, UsageLimitExceeded, UserError};
use crate::handler::Stopped;
use crate::outcome::Outcome;

/// A response that is being worked on.
pub(super) struct Resolving<'a> {
    pub(super) turn: &'a Turn,
    pub(super) together: Together<'a>,
    pub(super) slots: Vec<Slot>,
    /// The calls that somebody was asked about since the response was taken up: nobody is asked again (rule T4).
    offered: HashSet<String>,
}

impl<'a> Resolving<'a> {
    /// Walks the calls of a fresh response: ordinary ones run, deferred ones are known afterwards (rule T1). A call
    /// that comes with an outcome needs no walk.
    pub(super) async fn start(
        turn: &'a Turn,
        calls: Vec<(ToolCall, Option<Outcome>)>,
        shown: Option<Vec<ToolDefinition>>,
    ) -> Result<Self, TurnError> {
        let together = boxed(|| Together::new(turn, shown)).await.map_err(TurnError::before)?;
        let slots = calls.into_iter().map(|(call, outcome)| Slot::of(call, outcome));
        let mut this = Self { turn, together, slots: slots.collect(), offered: HashSet::default() };
        this.together.refuse_unfit(&mut this.slots);
        let all: Vec<_> = (0..this.slots.len()).collect();
        this.tell_calls(&all);
        // A model that has spent its retries gets nothing of this response run.
        let retries = turn.retries.as_ref();
        if let Some(kind) =
            retries.and_then(|it| it.exceeded(&this.slots, this.together.max_retries()))
        {
            return Err(TurnError::before(kind));
        }
        this.walk().await;
        this.fail_if_broken()
    }

    /// Takes up a response where it was left.
    pub(super) async fn from_suspended(
        turn: &'a Turn,
        suspended: SuspendedTurn,
    ) -> Result<Self, TurnError> {
        let slots = suspended.slots();
        let listed = boxed(|| Together::new(turn, None)).await.and_then(|together| {
            // A history from elsewhere may have such ids.
            if together.has_agents() {
                checks::ids_of_agents(&slots)?;
            }
            Ok(together)
        });
        match listed {
            Ok(together) => Ok(Self { turn, together, slots, offered: HashSet::default() }),
            Err(kind) => Err(TurnError::with_state(kind, suspended)),
        }
    }

    /// Asks the handler, once, about everything that waits (rule T2). What an agent behind a call waits for after that
    /// is another response, which it is asked about in turn.
    pub(super) async fn answer(mut self) -> Result<TurnReport, TurnError> {
        self = boxed(|| self.go_on()).await?;
        if self.answer_stands() {
            self.skip_open();
            return self.finish();
        }
        loop {
            if let Err(kind) = boxed(|| self.park()).await {
                return Err(self.fail(kind));
            }
            let requests = self.requests().only(|id| !self.offered.contains(id));
            if requests.is_empty() {
                return self.finish();
            }
            self.offer(&requests);
            let watchers = &self.turn.watchers;
            watchers.tell(|| RunEvent::DeferredToolRequests { requests: requests.clone() });
            let answers = match boxed(|| self.ask(&requests)).await {
                Some(Ok(answers)) => answers,
                Some(Err(kind)) => return Err(self.fail(kind)),
                None => return self.finish(),
            };
            watchers.tell(|| RunEvent::DeferredToolResults { results: answers.clone() });
            self = boxed(|| self.apply(&requests, answers, false)).await?;
        }
    }

    /// Goes on with answers that were given elsewhere.
    pub(super) async fn resume(
        mut self,
        answers: DeferredToolResults,
    ) -> Result<TurnReport, TurnError> {
        self = boxed(|| self.walk_planned()).await?;
        if let Err(kind) = boxed(|| self.park()).await {
            return Err(self.fail(kind));
        }
        let requests = self.requests();
        self.offer(&requests);
        self = boxed(|| self.apply(&requests, answers, true)).await?;
        boxed(|| self.answer()).await
    }

    /// Whether there is a final answer, and no call beside it has to be tried again first.
    fn answer_stands(&self) -> bool {
        let retried = |slot: &Slot| matches!(slot.state, State::Settled(Outcome::Retry(_)));
        match self.turn.final_answer {
            Some(FinalAnswer::Streamed) => true,
            Some(FinalAnswer::Structured) => !self.slots.iter().any(retried),
            None => false,
        }
    }

    fn offer(&mut self, requests: &DeferredToolRequests) {
        self.offered.extend(requests.iter().map(|call| call.id().to_owned()));
    }

    async fn ask(
        &self,
        requests: &DeferredToolRequests,
    ) -> Option<Result<DeferredToolResults, ErrorKind>> {
        let handler = self.turn.handler.as_ref()?;
        let (name, cx) = (handler.name().into_owned(), self.turn.context());
        let failed = |source: BoxError| match source.downcast::<UserError>() {
            Ok(error) => user(*error),
            Err(source) if source.is::<Stopped>() => ErrorKind::Stopped,
            Err(source) => ErrorKind::Handler { name, source },
        };
        Some(match caught(|| handler.handle(&cx, requests)).await {
            Ok(answers) => answers.map_err(failed),
            Err(Caught(what)) => Err(failed(what.into())),
        })
    }

    /// Walks the calls that nobody has decided about yet, and lets agents go on that wait for nobody.
    async fn go_on(mut self) -> Result<Self, TurnError> {
        self.wake_agents();
        boxed(|| self.walk_planned()).await
    }

    async fn walk_planned(mut self) -> Result<Self, TurnError> {
        let planned = |(at, slot): (usize, &Slot)| slot.is_new().map(|new| (at, new));
        let planned: Vec<_> = self.slots.iter().enumerate().filter_map(planned).collect();
        if planned.is_empty() {
            return Ok(self);
        }
        self.together.refuse_unfit(&mut self.slots);
        let new = planned.into_iter().filter(|(_, new)| *new).map(|(at, _)| at);
        self.tell_calls(&new.collect::<Vec<_>>());
        // Not even what is beside a call that has failed once too often.
        self = self.fail_if_broken()?;
        self.walk().await;
        self.fail_if_broken()
    }

    /// Agents that an error has stopped go on where they stopped.
    pub(super) fn wake_agents(&mut self) {
        for slot in &mut self.slots {
            let idle = slot.child.run.as_ref().is_some_and(|run| !run.waits());
            if let State::Delegated(plan) = &slot.state
                && idle
            {
                slot.state = State::Planned(plan.clone());
            }
        }
    }

    /// A final answer was given beside these calls: what waits is not executed, and nobody is asked.
    fn skip_open(&mut self) {
        self.close_open("a final answer was already given", true);
    }

    /// Gives every call that is open its result: it was not executed.
    fn close_open(&mut self, why: &str, skipped: bool) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_open()) {
            // A tool that defers itself beside a final answer is skipped like every other deferred call.
            let begun = slot.child.run.is_some() || (slot.execution.started() && !skipped);
            let what = if begun { "Stopped" } else { "Not executed" };
            if let (Some(asks), Some(_)) = (&self.turn.info.asks, slot.pending()) {
                asks.answered();
            }
            slot.settle_unrun(Outcome::failed(format!("{what}: {why}.")));
            slot.skipped = skipped;
            slot.tell_result(&self.turn.watchers);
        }
    }

    /// Tells whoever watches of these calls, which are new.
    fn tell_calls(&self, new: &[usize]) {
        let watchers = &self.turn.watchers;
        let new = || new.iter().filter_map(|at| self.slots.get(*at));
        for slot in new().filter(|_| watchers.are_there()) {
            let fits = !matches!(slot.state, State::Settled(Outcome::Retry(_)));
            let looked = !fits || !self.together.is_external(slot);
            slot.tell_call(watchers, looked.then_some(fits));
        }
        new().for_each(|slot| slot.tell_result(watchers));
    }

    /// The batch of what waits.
    pub(super) fn requests(&self) -> DeferredToolRequests {
        requests(&self.turn.info.run_id, self.turn.info.response, &self.slots)
    }

    /// A fatal error of a call, or one failure too many: its siblings are done, the handler is not asked, and the
    /// response ends (rule T8).
    pub(super) fn fail_if_broken(mut self) -> Result<Self, TurnError> {
        let watchers = &self.turn.watchers;
        let errors = self.slots.iter_mut().filter_map(|slot| {
            let error = broken(slot)?;
            slot.tell_result(watchers);
            Some(error)
        });
        match errors.reduce(first_of) {
            Some(kind) => Err(self.fail(kind)),
            None => {
                let retries = self.turn.retries.as_ref();
                let own = self.together.max_retries();
                match retries.and_then(|it| it.exceeded(&self.slots, own)) {
                    Some(kind) => Err(self.fail(kind)),
                    None => Ok(self),
                }
            }
        }
    }

    pub(super) fn fail(mut self, kind: ErrorKind) -> TurnError {
        // In a ledger the asks stay open, and the run can be taken up (rule S8).
        if kind.is_stopped() && self.turn.ledger.is_none() {
            self.close_open("a person stopped the run", false);
        }
        let suspended = SuspendedTurn::new(&self.turn.info, &self.slots);
        TurnError::after(kind, suspended, self.report())
    }

    /// The response is over, or waits. A state that could not be read back is an error while it is still in memory.
    fn finish(self) -> Result<TurnReport, TurnError> {
        let report = self.report();
        let Some(suspended) = report.suspended() else { return Ok(report) };
        match suspended.check_storable() {
            Ok(()) => Ok(report),
            Err(error) => Err(TurnError::after(user(error), suspended.clone(), report)),
        }
    }

    fn report(self) -> TurnReport {
        let suspended = self.slots.iter().any(Slot::is_open);
        let suspended = suspended.then(|| SuspendedTurn::new(&self.turn.info, &self.slots));
        let closes = self.closes();
        TurnReport::new(self.slots, suspended, closes)
    }
}

/// Settles a call that has failed with an error that is not for the model, and gives the error. An agent that has
/// failed stays where it stopped.
fn broken(slot: &mut Slot) -> Option<ErrorKind> {
    let id = slot.call.id().to_owned();
    if let Some(kind) = slot.failed.take() {
        let agent = slot.call.name().to_owned();
        return Some(ErrorKind::Agent { id, agent, source: Box::new(kind) });
    }
    let State::Broken(_) = slot.state else { return None };
    let ended = State::Settled(match slot.execution {
        Execution::NotStarted => Outcome::failed("The tool did not run: an error stopped it."),
        // What a layer has made of the result is not known, and may have been to withhold it.
        Execution::Finished(Outcome::Returned(_)) => Outcome::failed(RESULT_WITHHELD),
        _ => Outcome::failed(INTERNAL_ERROR),
    });
    let State::Broken(error) = std::mem::replace(&mut slot.state, ended) else { return None };
    Some(kind_of(id, slot.call.name(), error))
}

/// The first error counts. That a limit is reached is said once, about all of the calls.
fn first_of(first: ErrorKind, later: ErrorKind) -> ErrorKind {
    match (first, later) {
        (
            ErrorKind::UsageLimit { exceeded, mut ids },
            ErrorKind::UsageLimit { ids: more, exceeded: same },
        ) if exceeded == same => {
            ids.extend(more);
            ErrorKind::UsageLimit { exceeded, ids }
        }
        (first, _) => first,
    }
}

fn kind_of(id: String, tool: &str, error: BoxError) -> ErrorKind {
    let error = match error.downcast::<UserError>() {
        Ok(error) => return user(*error),
        Err(error) => error,
    };
    match error.downcast::<UsageLimitExceeded>() {
        Ok(exceeded) => ErrorKind::UsageLimit { exceeded: *exceeded, ids: vec![id] },
        Err(source) => ErrorKind::Tool { id, tool: tool.to_owned(), source },
    }
}
