//! The methods of [`SuspendedTurn`]: a response with pending calls, as a value to store.

use std::fmt;
use std::sync::Arc;

use super::batch::requests;
use super::snapshot::{StoredCall, StoredState, StoredTurn, SuspendedTurn, TURN_VERSION};
use crate::args::depth;
use crate::call::{AskHistory, Denied, RunContext, RunInfo, ToolCall, is_about_repeating};
use crate::deferred::DeferredToolRequests;
use crate::error::UserError;
use crate::gate::MAY_HAVE_RUN;
use crate::message::{Message, RequestPart};
use crate::origin::ReadRecord;
use crate::outcome::Outcome;

impl SuspendedTurn {
    pub(super) fn new(info: &RunInfo, calls: Vec<StoredCall>) -> Self {
        Self(StoredTurn {
            version: TURN_VERSION,
            run_id: info.run_id.clone(),
            response: info.response,
            path: info.path.clone(),
            calls,
            denied: info.asks.as_ref().map(AskHistory::denied).unwrap_or_default(),
            read_before: info.read_before,
            reads: info.reads.clone(),
        })
    }

    /// Refuses a state that could not be read back.
    pub(super) fn check_storable(&self) -> Result<(), UserError> {
        depth::check_state(&self.0)
    }

    /// The denials of the run.
    pub(super) fn denied(&self) -> &Denied {
        &self.0.denied
    }

    /// The number of reads of the run when the response was requested, if that is recorded.
    pub(super) fn read_before(&self) -> Option<u32> {
        self.0.read_before
    }

    /// The record of the run's reads, if there is one.
    pub(super) fn reads(&self) -> Option<&ReadRecord> {
        self.0.reads.as_ref()
    }

    /// Removes the denials and the record of reads, as the snapshot of the run has them.
    pub(crate) fn without_history(mut self) -> Self {
        self.0.denied.clear();
        self.0.reads = None;
        self
    }

    /// The id of the suspended run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.0.run_id
    }

    /// The number of the response in its run.
    #[must_use]
    pub fn response(&self) -> u32 {
        self.0.response
    }

    /// Settles the call with this id, as one that was started.
    pub(crate) fn settle(&mut self, id: &str, outcome: &Outcome) {
        if let Some(stored) = self.0.calls.iter_mut().find(|stored| stored.call.id() == id) {
            let outcome = outcome.bounded().into_owned();
            (stored.started, stored.state) = (true, StoredState::Settled(outcome));
        }
    }

    pub(super) fn path(&self) -> &[String] {
        &self.0.path
    }

    /// A context of the run, for asking a handler outside of the run. It has no dependencies; add them with
    /// [`with_deps`](RunContext::with_deps).
    #[must_use]
    pub fn context(&self) -> RunContext {
        let (run_id, response, path) =
            (self.0.run_id.clone(), self.0.response, self.0.path.clone());
        RunContext::of_run(Arc::new(RunInfo { run_id, response, path, ..RunInfo::default() }))
    }

    /// Returns `true` if any call is pending, of this response or of an agent behind one of its calls.
    pub(super) fn waits(&self) -> bool {
        self.0.calls.iter().any(|stored| match &stored.state {
            StoredState::Pending(_) => true,
            StoredState::Delegated(_) => stored.agent.as_ref().is_some_and(|run| run.waits()),
            StoredState::Settled(_) | StoredState::Planned(_) => false,
        })
    }

    /// The pending calls, as the batch to answer.
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        requests(&self.0.run_id, self.0.response, self.open_calls())
    }

    /// The calls of the response, in model order, with the outcome of those that are settled.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, Option<&Outcome>)> {
        self.0.calls.iter().map(|stored| match &stored.state {
            StoredState::Settled(outcome) => (&stored.call, Some(outcome)),
            _ => (&stored.call, None),
        })
    }

    /// The results of the settled calls, as one message for the model; `None` if no call is settled.
    pub(super) fn told(&self) -> Option<Message> {
        let settled =
            self.calls().filter_map(|(call, outcome)| RequestPart::results(call, outcome?));
        let mut settled = settled.peekable();
        settled.peek().is_some().then(|| results(settled))
    }

    /// Returns `true` if these are the calls of the last response of a history, and only their results follow that
    /// response.
    ///
    /// A trusted history may have been written by another program, so a turn is accepted as its last response only if
    /// the calls are the same, in the same order, and what follows them are exactly the results that the turn would
    /// write.
    pub(crate) fn is_of(&self, history: &[Message]) -> bool {
        let (asked, behind) = history.split_at(behind_response(history));
        let last = asked.last().map(|message| message.tool_calls().collect::<Vec<_>>());
        self.calls().map(|(call, _)| call).eq(last.unwrap_or_default())
            && (behind.is_empty() || self.told().as_slice() == behind)
    }

    /// Settles every call without an outcome as one that may have run, because the response was dropped while its calls
    /// were running.
    ///
    /// The state that is left says nothing about these calls, and "may have run" is the only true thing to tell the
    /// model. We give up an agent that had begun, with its snapshot, since its last steps are missing.
    pub(crate) fn interrupted(mut self) -> Self {
        for stored in &mut self.0.calls {
            if !matches!(stored.state, StoredState::Settled(_)) {
                stored.state = StoredState::Settled(Outcome::unknown(MAY_HAVE_RUN));
                (stored.started, stored.agent) = (true, None);
            }
        }
        self
    }

    /// Settles every call without an outcome as not executed or stopped, to end the response.
    pub(crate) fn close(mut self, reason: &str) -> Self {
        for stored in &mut self.0.calls {
            let text = match stored.state {
                StoredState::Settled(_) => continue,
                StoredState::Delegated(_) => "The agent was stopped before its end",
                StoredState::Pending(_) | StoredState::Planned(_) => "The tool did not run",
            };
            let outcome = Outcome::failed(format!("{text}: {reason}."));
            let may_have_run = stored.asked.iter().any(is_about_repeating);
            stored.state = StoredState::Settled(match may_have_run {
                true => not_repeated(&outcome),
                false => outcome,
            });
            stored.agent = None;
        }
        self
    }
}

/// The index of the first message after the last response.
pub(super) fn behind_response(history: &[Message]) -> usize {
    let responds = |message: &Message| matches!(message, Message::Response { .. });
    history.iter().rposition(responds).map_or(0, |at| at + 1)
}

/// The message with the results of a response: all results first, then the additional content of the tools, as
/// providers expect the results directly after the calls.
pub(crate) fn results(parts: impl Iterator<Item = (RequestPart, Vec<RequestPart>)>) -> Message {
    let (mut results, mut added) = (Vec::new(), Vec::new());
    for (result, content) in parts {
        results.push(result);
        added.extend(content);
    }
    results.extend(added);
    Message::Request { parts: results }
}

/// The outcome of a call that may have run, and was not run again for this reason.
pub(super) fn not_repeated(why: &Outcome) -> Outcome {
    let why = why.content().unwrap_or_default();
    let why = why.as_str().unwrap_or_default();
    Outcome::unknown(format!("{MAY_HAVE_RUN} It was not run again: {why}"))
}

impl fmt::Debug for SuspendedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls().map(|(call, outcome)| {
            (call.id(), call.name(), outcome.map_or("waiting", Outcome::word))
        });
        f.debug_struct("SuspendedTurn")
            .field("run_id", &self.0.run_id)
            .field("response", &self.0.response)
            .field("calls", &calls.collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::args::Args;
    use crate::deferred::{CallAddress, PendingCall};
    use crate::toolset::{FunctionToolset, tool_fn};
    use crate::turn::Turn;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Any {
        #[serde(rename = "deep")]
        _deep: Value,
    }

    // Rule L7: "The state that any earlier version has written loads and can be continued". Earlier versions had no
    // limit of 64 levels.
    #[tokio::test]
    async fn a_call_that_was_stored_with_deeper_arguments_loads_and_runs() {
        let deep = (0..100).fold(json!(1), |value, _| json!([value]));
        let args = Args::new().with("deep", deep);
        let tool = tool_fn("go", "", async |_: Any| Ok::<_, crate::outcome::ToolError>("went"));
        let turn = Turn::new(FunctionToolset::new().tool(tool.requires_approval()));
        let report = turn.run(vec![ToolCall::new("c", "go", json!({"deep": 1}))]).await.unwrap();
        let mut earlier = report.into_suspended().unwrap();
        let stored = earlier.0.calls.first_mut().unwrap();
        stored.call = ToolCall::new("c", "go", json!({})).with_args(args.clone());
        let StoredState::Pending(pending) = &mut stored.state else { panic!() };
        let address = CallAddress::new(&earlier.0.run_id, 0, &earlier.0.path, "c");
        let (tool, args) = (pending.tool.clone(), (args.clone(), args));
        *pending = PendingCall::new(&address, tool, pending.deferral(), args, pending.deferrals);
        let text = serde_json::to_string(&earlier).unwrap();
        let loaded: SuspendedTurn = serde_json::from_str(&text).unwrap();
        assert_eq!(loaded, earlier);
        let answers = loaded.requests().answer().approve("c").build().unwrap();
        let report = turn.resume(loaded, answers).await.unwrap();
        assert_eq!(report.calls()[0].outcome().content().unwrap(), "went");
    }
}
