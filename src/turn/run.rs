//! Working through the calls of a response: passes through the stack, questions to the handler, the report.
//!
//! ```text
//!  start ─► passes ─► fail if broken ─► answer ──► park ──► requests not offered yet?
//!                                         ▲         │           │ none: finish
//!                                         │         │ grants    ▼
//!                                         │         └─► passes  the handler ─► apply ─► passes
//!                                         └──────────────────────────────────────┘
//!  from_suspended ─► planned passes ─► park ─► apply the answers ─► answer (as above)
//! ```
//!
//! # Why the loop ends
//!
//! `offered` holds the ids of the calls that someone was asked about since the response began or was resumed. We offer
//! a call once, so a handler and a layer that asks again cannot go round for ever (rule T4). An agent's next response
//! has new ids and is offered.
//!
//! # Why a resume passes before it parks
//!
//! A stored state may have planned passes: an error stopped the response in the middle, or calls were approved and the
//! process died. We make these first, as they may lead to more pending calls, and check the answers against the batch
//! with those in it. If the batch has grown since, its answers do not fit: no deferred call runs before all are
//! answered (rule T1).
//!
//! # Why errors come after the siblings
//!
//! A fatal error of one call ends the response, but only after the others have ended, and with the state in the error.
//! Dropping the siblings in the middle would leave each of them as *may have run* (rule T9).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call_state::{CallState, INTERNAL_ERROR, RESULT_WITHHELD, State};
use super::config::{FinalAnswer, Turn};
use super::dispatch::Dispatcher;
use super::event::RunEvent;
use super::heap::boxed;
use super::limits::limit_asking;
use super::report::{CallReport, TurnError, TurnReport};
use super::snapshot::{StoredCall, SuspendedTurn};
use super::{batch, checks, reading};
use crate::call::{Execution, ToolCall, ToolDefinition};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::{BoxError, Error, UsageLimitExceeded, UserError};
use crate::handler::Stopped;
use crate::outcome::Outcome;
use crate::panic::{Panicked, catch_panic};
use crate::telemetry::Stopwatch;

/// A response in progress: its calls with their states, and the dispatcher for their passes.
pub(super) struct TurnRun<'a> {
    pub(super) turn: &'a Turn,
    pub(super) dispatcher: Dispatcher<'a>,
    pub(super) calls: Vec<CallState>,
    /// The ids of the calls that were asked about since the response was started or resumed. The handler is not asked
    /// about a call twice (rule T4).
    offered: BTreeSet<Arc<str>>,
}

impl<'a> TurnRun<'a> {
    /// Passes the calls of a new response through the stack: allowed calls run, and the others are deferred or denied
    /// (rule T1). A call that comes with an outcome needs no pass.
    pub(super) async fn start(
        turn: &'a Turn,
        calls: Vec<(ToolCall, Option<Outcome>)>,
        shown: Option<Vec<ToolDefinition>>,
    ) -> Result<Self, TurnError> {
        let dispatcher =
            boxed(|| Dispatcher::new(turn, shown, false)).await.map_err(TurnError::before)?;
        let calls = calls.into_iter().map(|(call, outcome)| CallState::of(call, outcome));
        let mut this =
            Self { turn, dispatcher, calls: calls.collect(), offered: BTreeSet::default() };
        reading::wrote(turn.own_reads(), &this.calls);
        this.dispatcher.refuse_unfit(&mut this.calls);
        let all: Vec<_> = (0..this.calls.len()).collect();
        this.tell_calls(&all);
        // If the model has no retries left, no call of this response runs.
        let retries = turn.retries.as_ref();
        if let Some(kind) =
            retries.and_then(|it| it.exceeded(&this.calls, this.dispatcher.max_retries()))
        {
            return Err(TurnError::before(kind));
        }
        this.dispatch().await;
        this.fail_if_broken()
    }

    /// Resumes a response from its stored state.
    pub(super) async fn from_suspended(
        turn: &'a Turn,
        suspended: SuspendedTurn,
    ) -> Result<Self, TurnError> {
        let calls: Vec<_> = suspended.0.calls.iter().map(CallState::from).collect();
        let listed = boxed(|| Dispatcher::new(turn, None, true)).await.and_then(|dispatcher| {
            // The turn accepts no such ids, but a trusted history from elsewhere may have them.
            if dispatcher.has_agents() {
                checks::ids_of_agents(&calls)?;
            }
            Ok(dispatcher)
        });
        match listed {
            Ok(dispatcher) => Ok(Self { turn, dispatcher, calls, offered: BTreeSet::default() }),
            Err(kind) => Err(TurnError::with_state(kind, suspended)),
        }
    }

    /// Asks the handler once about all pending calls (rule T2), then applies its answers. If an agent behind a call
    /// makes another response after that, the handler is asked about the calls pending there, and so on.
    pub(super) async fn answer(mut self) -> Result<TurnReport, TurnError> {
        self = boxed(|| self.go_on()).await?;
        if self.answer_stands() {
            self.skip_open();
            return boxed(|| self.finish()).await;
        }
        loop {
            match boxed(|| self.park()).await {
                Err(kind) => return Err(self.fail(kind)),
                // Grants have answered calls, whose passes may lead to more questions.
                Ok(true) => {
                    self.wake_agents();
                    self.dispatcher.refuse_unfit(&mut self.calls);
                    boxed(|| self.dispatch()).await;
                    self = self.fail_if_broken()?;
                    continue;
                }
                Ok(false) => {}
            }
            if !self.calls.iter().any(CallState::is_open) {
                return boxed(|| self.finish()).await;
            }
            let requests = self.offerable();
            if requests.is_empty() {
                return boxed(|| self.finish()).await;
            }
            self.offer(&requests);
            let watchers = &self.turn.watchers;
            watchers.tell(|| RunEvent::DeferredToolRequests { requests: requests.clone() });
            let asked = Stopwatch::start();
            let answers = match boxed(|| self.ask(&requests)).await {
                Some(Ok(answers)) => answers,
                Some(Err(kind)) => return Err(self.fail(kind)),
                None => return boxed(|| self.finish()).await,
            };
            watchers.tell(|| RunEvent::DeferredToolResults { results: answers.clone() });
            self = boxed(|| self.apply(&requests, answers, Some(asked))).await?;
        }
    }

    /// Applies answers that were given elsewhere, then asks the handler about calls that are pending after that.
    pub(super) async fn resume(
        mut self,
        answers: DeferredToolResults,
    ) -> Result<TurnReport, TurnError> {
        self = boxed(|| self.dispatch_planned()).await?;
        if let Err(kind) = boxed(|| self.park()).await {
            return Err(self.fail(kind));
        }
        let requests = self.requests();
        self.offer(&requests);
        self = boxed(|| self.apply(&requests, answers, None)).await?;
        boxed(|| self.answer()).await
    }

    /// Returns `true` if the response has a final answer that is valid: a structured answer is void if a call has to be
    /// retried.
    pub(super) fn answer_stands(&self) -> bool {
        let retried = |call: &CallState| matches!(call.state, State::Settled(Outcome::Retry(_)));
        match self.turn.final_answer {
            Some(FinalAnswer::Streamed) => true,
            Some(FinalAnswer::Structured) => !self.calls.iter().any(retried),
            None => false,
        }
    }

    /// The pending calls that the handler was not asked about yet, without those that certain people have to approve if no
    /// one counts these (rule R9).
    fn offerable(&self) -> DeferredToolRequests {
        let all = self.requests();
        let handler = self.turn.handler.as_ref();
        let counts = self.turn.durability.is_some() || handler.is_some_and(|it| it.counts_people());
        let for_people: BTreeSet<String> = all
            .iter()
            .map(|call| call.id())
            .filter(|id| !counts && all.questions(id).iter().any(|it| it.people().is_some()))
            .map(str::to_owned)
            .collect();
        all.only(|id| !self.offered.contains(id) && !for_people.contains(id))
    }

    fn offer(&mut self, requests: &DeferredToolRequests) {
        self.offered.extend(requests.iter().map(|call| Arc::clone(call.shared_id())));
    }

    async fn ask(
        &self,
        requests: &DeferredToolRequests,
    ) -> Option<Result<DeferredToolResults, Error>> {
        let handler = self.turn.handler.as_ref()?;
        let cx = self.turn.context();
        let failed = |source: BoxError| match Error::of_host(source) {
            Ok(error) => error,
            Err(source) if source.is::<Stopped>() => Error::Stopped,
            Err(source) => Error::Handler { name: handler.name().into_owned(), source },
        };
        Some(match catch_panic(|| handler.handle(&cx, requests)).await {
            Ok(answers) => answers.map_err(failed),
            Err(Panicked(what)) => Err(failed(what.into())),
        })
    }

    /// Makes the planned passes, also those that resume agents which need no answer.
    async fn go_on(mut self) -> Result<Self, TurnError> {
        self.wake_agents();
        boxed(|| self.dispatch_planned()).await
    }

    async fn dispatch_planned(mut self) -> Result<Self, TurnError> {
        let planned = |(at, call): (usize, &CallState)| call.is_new().map(|new| (at, new));
        let planned: Vec<_> = self.calls.iter().enumerate().filter_map(planned).collect();
        if planned.is_empty() {
            return Ok(self);
        }
        self.dispatcher.refuse_unfit(&mut self.calls);
        let new = planned.into_iter().filter(|(_, new)| *new).map(|(at, _)| at);
        self.tell_calls(&new.collect::<Vec<_>>());
        // If a call has failed once too often, no other call of the response runs either.
        self = self.fail_if_broken()?;
        self.dispatch().await;
        self.fail_if_broken()
    }

    /// Makes the planned passes, and denies the calls that were deferred beyond a limit on questions (rule D11).
    pub(super) async fn dispatch(&mut self) {
        let is_planned = |call: &CallState| matches!(call.state, State::Planned(_));
        let planned: Vec<_> = self.calls.iter().map(is_planned).collect();
        boxed(|| self.dispatcher.dispatch(&mut self.calls)).await;
        let calls = self.calls.iter_mut().zip(planned).filter(|(_, planned)| *planned);
        for (call, _) in calls.filter(|(call, _)| call.pending().is_some()) {
            let asks = self.turn.info.asks.as_ref();
            let limit = asks.and_then(|asks| limit_asking(call, asks, self.turn.ask_limits));
            if let Some((limit, text)) = limit {
                call.deny_unasked(limit, text);
                call.tell_result(&self.turn.watchers);
            }
            self.turn.pass_ended(call);
        }
    }

    /// Plans the passes that resume agents without pending calls, which an error has stopped.
    pub(super) fn wake_agents(&mut self) {
        for call in &mut self.calls {
            let idle = call.child.run.as_ref().is_some_and(|run| !run.waits());
            if let State::Delegated(plan) = &call.state
                && idle
            {
                call.state = State::Planned(plan.clone());
            }
        }
    }

    /// Settles all open calls without executing them, because the response has a final answer.
    fn skip_open(&mut self) {
        self.close_open("a final answer was already given", true);
    }

    /// Settles every open call with the result that it was not executed, or was stopped.
    fn close_open(&mut self, why: &str, skipped: bool) {
        for call in self.calls.iter_mut().filter(|call| call.is_open()) {
            // A tool body that deferred its own call next to a final answer counts as not executed, like other
            // skipped calls.
            let begun = call.child.run.is_some() || (call.execution.started() && !skipped);
            let what = if begun { "Stopped" } else { "Not executed" };
            if let (Some(asks), Some(_)) = (&self.turn.info.asks, call.pending()) {
                asks.answered();
            }
            call.settle_unrun(Outcome::failed(format!("{what}: {why}.")));
            call.skipped = skipped;
            call.tell_result(&self.turn.watchers);
        }
    }

    /// Sends watchers the events of new calls, with the results of those that are settled already.
    fn tell_calls(&self, new: &[usize]) {
        let watchers = &self.turn.watchers;
        let new = || new.iter().filter_map(|at| self.calls.get(*at));
        for call in new().filter(|_| watchers.are_there()) {
            let fits = !matches!(call.state, State::Settled(Outcome::Retry(_)));
            let looked = !fits || !self.dispatcher.is_external(call);
            call.tell_call(watchers, looked.then_some(fits));
        }
        new().for_each(|call| call.tell_result(watchers));
    }

    /// The batch of pending calls.
    pub(super) fn requests(&self) -> DeferredToolRequests {
        let open = self.calls.iter().filter_map(CallState::open);
        batch::requests(&self.turn.info.run_id, self.turn.info.response, open)
    }

    /// Ends the response if a call has a fatal error, or has failed once too often (rule T8). The other calls have
    /// ended by then, and the handler is not asked.
    pub(super) fn fail_if_broken(mut self) -> Result<Self, TurnError> {
        let watchers = &self.turn.watchers;
        let errors = self.calls.iter_mut().filter_map(|call| {
            let error = broken(call)?;
            call.tell_result(watchers);
            Some(error)
        });
        match errors.reduce(first_of) {
            Some(kind) => Err(self.fail(kind)),
            None => {
                let retries = self.turn.retries.as_ref();
                let own = self.dispatcher.max_retries();
                match retries.and_then(|it| it.exceeded(&self.calls, own)) {
                    Some(kind) => Err(self.fail(kind)),
                    None => Ok(self),
                }
            }
        }
    }

    pub(super) fn fail(mut self, kind: Error) -> TurnError {
        // With a ledger the asks stay open instead, and the run can be resumed (rule S8).
        if kind.is_stopped() && self.turn.durability.is_none() {
            self.close_open("a person stopped the run", false);
        }
        self.read_results();
        let suspended = self.state();
        TurnError::after(kind, suspended, self.report())
    }

    /// Ends the turn with its report. A state that could not be read back is an error here, while it is still in
    /// memory.
    ///
    /// We check here that the state can be stored, where every value is still in memory and the error can carry it.
    /// If the caller found that out later, the approvals of a whole response would be lost (rule L7).
    async fn finish(self) -> Result<TurnReport, TurnError> {
        self.read_results();
        let (turn, closes) = (self.turn, !self.closed_asks().is_empty());
        let state = closes.then(|| self.state());
        let mut report = self.report();
        if let Some(suspended) = report.suspended()
            && let Err(error) = suspended.check_storable()
        {
            return Err(TurnError::after(Error::User(error), suspended.clone(), report));
        }
        match (turn.close_asks(&mut report).await, state) {
            (Err(kind), Some(state)) => Err(TurnError::after(kind, state, report)),
            _ => Ok(report),
        }
    }

    /// Adds the results of the calls that were settled now to the record of what the run has read.
    fn read_results(&self) {
        let turn = self.turn;
        let label_of = |call: &CallState| Some(turn.label_of(self.dispatcher.definition(call)?));
        reading::results(turn.own_reads(), &self.calls, label_of);
    }

    /// The state of the response, to store or to resume from.
    fn state(&self) -> SuspendedTurn {
        SuspendedTurn::new(&self.turn.info, self.calls.iter().map(StoredCall::from).collect())
    }

    fn report(self) -> TurnReport {
        let suspended = self.calls.iter().any(CallState::is_open).then(|| self.state());
        let closed_asks = self.closed_asks();
        let calls = self.calls.into_iter().map(CallReport::from).collect();
        TurnReport::new(calls, suspended, closed_asks)
    }
}

/// Settles a call that has failed with an error that is not for the model, and returns the error. A call whose agent
/// has failed stays open, so that the agent can be resumed.
fn broken(call: &mut CallState) -> Option<Error> {
    if call.failed.is_none() && !matches!(call.state, State::Broken(_)) {
        return None;
    }
    let id = call.call.id().to_owned();
    if let Some(kind) = call.failed.take() {
        // The call itself lacks its tool, and waits for a process that has it.
        if matches!(call.state, State::Planned(_))
            && matches!(&kind, Error::User(UserError::ApprovedToolMissing { .. }))
        {
            return Some(kind);
        }
        let agent = call.call.name().to_owned();
        return Some(Error::Agent { id, agent, source: Box::new(kind) });
    }
    let ended = State::Settled(match call.execution {
        Execution::NotStarted => Outcome::failed("The tool did not run: an error stopped it."),
        // The tool returned a value, but a layer ended the pass with an error, perhaps to withhold that value.
        Execution::Finished(Outcome::Returned(_)) => Outcome::failed(RESULT_WITHHELD),
        _ => Outcome::failed(INTERNAL_ERROR),
    });
    let State::Broken(error) = std::mem::replace(&mut call.state, ended) else { return None };
    Some(kind_of(id, call.call.name(), error))
}

/// Combines the errors of two calls: the first one counts, but equal usage limit errors become one with all ids.
///
/// If ten concurrent calls exceed one limit, that is one fact for the host, so we join their errors. Of errors that
/// differ the first in model order counts. The others are in the log and in the report.
fn first_of(first: Error, later: Error) -> Error {
    match (first, later) {
        (
            Error::UsageLimit { exceeded, mut ids },
            Error::UsageLimit { ids: more, exceeded: same },
        ) if exceeded == same => {
            ids.extend(more);
            Error::UsageLimit { exceeded, ids }
        }
        (first, _) => first,
    }
}

fn kind_of(id: String, tool: &str, error: BoxError) -> Error {
    let error = match Error::of_host(error) {
        Ok(error) => return error,
        Err(error) => error,
    };
    match error.downcast::<UsageLimitExceeded>() {
        Ok(exceeded) => Error::UsageLimit { exceeded: *exceeded, ids: vec![id] },
        Err(source) => Error::Tool { id, tool: tool.to_owned(), source },
    }
}
