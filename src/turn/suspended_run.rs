//! The methods of [`SuspendedRun`]: a suspended run as a value to store.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::ids::new_run_id;
use super::snapshot::{SuspendedRun, SuspendedTurn};
use super::suspended::{behind_response, results};
use crate::args::depth;
use crate::call::{Denied, RunContext, Usage};
use crate::deferred::DeferredToolRequests;
use crate::error::UserError;
use crate::message::{Message, RequestPart};
use crate::outcome::Outcome;

impl SuspendedRun {
    /// A run that continues from this history, with a new run id. When it is resumed, the calls of its last response
    /// that have no result are taken up: allowed ones run, and the others get the answers, or the handler is asked
    /// about them ([`Agent::ask`](crate::Agent::ask)). Until then [`requests`](Self::requests) is empty. Calls that
    /// have their result do not run again. If every call has its result, answers are an error that names their ids,
    /// and the run continues with a prompt.
    ///
    /// The [history](Self::history) of another suspended run can be resumed this way without the rest of its snapshot.
    /// Everything that is only in the snapshot is lost: approvals are bound to the other run, edits and counts are
    /// forgotten, and an agent behind a tool that has no result yet begins from the start.
    ///
    /// Anyone who writes the history chooses what the model believes to have happened, and what runs: take the history
    /// only from your own store (rule A6).
    ///
    /// ```no_run
    /// # use countersign::agent::RunError;
    /// # use countersign::{Agent, DeferredToolResults, Message, SuspendedRun};
    /// # async fn example(agent: Agent, history: Vec<Message>) -> Result<(), RunError> {
    /// let run = SuspendedRun::from_trusted_history(history);
    /// let run = agent.resume(run, DeferredToolResults::new().approve("call_1")).await?;
    /// # let _ = run; Ok(()) }
    /// ```
    #[must_use]
    pub fn from_trusted_history(history: Vec<Message>) -> Self {
        Self {
            run_id: new_run_id(),
            responses: 0,
            history: Arc::new(history),
            prompts: Vec::new(),
            usage: Usage::default(),
            turn: None,
            denied: Denied::default(),
            reads: None,
        }
    }

    /// The requests and tool calls of the run so far, with those of its sub-agents.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The id of the run, the same after every resume.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The pending calls, as the batch to answer. Empty if an error stopped the run and no call is pending.
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        self.turn.as_ref().map(SuspendedTurn::requests).unwrap_or_default()
    }

    /// Returns `true` if any call is pending.
    pub(crate) fn waits(&self) -> bool {
        self.turn.as_ref().is_some_and(SuspendedTurn::waits)
    }

    /// A context of the run, for asking a handler outside of the run.
    #[must_use]
    pub fn context(&self) -> RunContext {
        self.turn.as_ref().map(SuspendedTurn::context).unwrap_or_default()
    }

    /// The conversation up to the response with the pending calls, and the results of its settled calls (rule T3).
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The conversation up to the response with the pending calls, without the results of its settled calls.
    pub(super) fn asked(&self) -> &[Message] {
        match self.turn {
            Some(_) => self.history.get(..behind_response(&self.history)).unwrap_or_default(),
            None => &self.history,
        }
    }

    /// Updates the history so that the results of the settled calls follow their response.
    pub(crate) fn tell_settled(&mut self) {
        let Some(told) = self.turn.as_ref().map(SuspendedTurn::told) else { return };
        let asked = self.asked().len();
        if self.history.get(asked..).unwrap_or_default() != told.as_slice() {
            let history = Arc::make_mut(&mut self.history);
            history.truncate(asked);
            history.extend(told);
        }
    }

    /// Removes the results of the settled calls from the history. They are appended again with the other results of
    /// their response.
    pub(crate) fn untell_settled(&mut self) {
        let asked = self.asked().len();
        if asked < self.history.len() {
            Arc::make_mut(&mut self.history).truncate(asked);
        }
    }

    /// Refuses a state that could not be read back.
    pub(crate) fn check_storable(&self) -> Result<(), UserError> {
        depth::check_state(&self.stored())
    }

    /// The last response, if some of its calls have no result in the history yet.
    #[must_use]
    pub fn turn(&self) -> Option<&SuspendedTurn> {
        self.turn.as_ref()
    }

    /// Gives up the pending calls, and returns the history with one result for every call (rule T3), to continue with a
    /// new prompt. The results say that the calls were not executed because of `reason`. Calls without a result in a
    /// [bare history](Self::from_trusted_history) get such a result too.
    ///
    /// ```
    /// use countersign::message::ResponsePart;
    /// use countersign::{Message, SuspendedRun, ToolCall};
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "rm", json!({}));
    /// let history = vec![Message::user("Clean up"), Message::Response { parts: vec![ResponsePart::ToolCall(call)] }];
    /// let closed = SuspendedRun::from_trusted_history(history).close("the user has moved on");
    /// let Message::Request { parts } = &closed[2] else { unreachable!() };
    /// let result = serde_json::to_value(&parts[0])?;
    /// assert_eq!(result["content"], "The tool did not run: the user has moved on.");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn close(mut self, reason: &str) -> Vec<Message> {
        self.untell_settled();
        let mut history = Arc::unwrap_or_clone(self.history);
        match self.turn {
            Some(turn) => {
                let turn = turn.close(reason);
                history.push(results(
                    turn.calls().filter_map(|(call, outcome)| RequestPart::results(call, outcome?)),
                ));
            }
            None => close_bare(&mut history, reason),
        }
        history
    }
}

/// Adds a result for every call of the last response that has none, after the results that are there.
///
/// The new results go behind the results that are there and before anything else in that message: additional content of
/// tools follows all results, and a provider refuses a result that does not directly follow the calls.
fn close_bare(history: &mut Vec<Message>, reason: &str) {
    let at = behind_response(history);
    let (before, behind) = history.split_at_mut(at);
    let settled: HashSet<&str> = behind.iter().flat_map(Message::result_ids).collect();
    let open = before.last().into_iter().flat_map(Message::tool_calls);
    let open = open.filter(|call| !settled.contains(call.id()));
    let outcome = Outcome::failed(format!("The tool did not run: {reason}."));
    let closed: Vec<_> = open.filter_map(|call| RequestPart::result(call, &outcome)).collect();
    match behind.first_mut() {
        _ if closed.is_empty() => {}
        Some(Message::Request { parts }) => {
            let told = |part: &RequestPart| matches!(part, RequestPart::ToolReturn { .. });
            let at = parts.iter().rposition(told).map_or(0, |last| last + 1);
            parts.splice(at..at, closed);
        }
        _ => history.push(Message::Request { parts: closed }),
    }
}

impl fmt::Debug for SuspendedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedRun")
            .field("run_id", &self.run_id)
            .field("history", &self.history)
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}
