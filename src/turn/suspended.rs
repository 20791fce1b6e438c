//! A response that waits, as a value to store.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::args::{Args, depth, unique};
use crate::call::{
    AskHistory, Denied, Execution, RunContext, RunInfo, ToolCall, is_about_repeating,
};
use crate::decision::Question;
use crate::deferred::{CallAddress, DeferredToolRequests, PendingCall};
use crate::error::UserError;
use crate::gate::MAY_HAVE_RUN;
use crate::message::{Message, RequestPart};
use crate::outcome::Outcome;

use super::SuspendedRun;
use super::pending::requests;
use super::report::Answered;
use super::slot::{INTERNAL_ERROR, Plan, Slot, State, not_repeated};
use super::suspended_run::{behind_response, results};

/// The version of the stored form (rule L7).
const VERSION: u32 = 1;

/// A response of which calls wait: one versioned value to store and [resume](crate::Turn::resume) from, in this
/// process or another. Settled calls are in it with their outcomes, and do not run again.
///
/// Reading it checks it: an unknown version, a missing or doubled call, or a question that does not match its
/// fingerprint is an error. That finds accidents. Whoever can write the stored value can write another one that
/// fits: keep it where only you can write.
///
/// Writing it checks it too: what could not be read back is not written (rule L7).
#[derive(Clone, PartialEq)]
pub struct SuspendedTurn(Stored);

/// The stored form.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    version: u32,
    run_id: String,
    response: u32,
    path: Vec<String>,
    calls: Vec<StoredCall>,
    /// What people have denied in the run, unless the run holds it.
    #[serde(default, skip_serializing_if = "Denied::is_empty")]
    denied: Denied,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct StoredCall {
    call: ToolCall,
    #[serde(flatten)]
    state: StoredState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<Question>,
    /// The arguments that ran or would run, where they are not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Args>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<Answered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    denied_by: Option<String>,
    /// Whether its tool was started.
    #[serde(default)]
    started: bool,
    /// Where the agent behind its tool stopped.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "within")]
    agent: Option<Box<SuspendedRun>>,
}

/// Writes the run of an agent as a part of its parent's, which is checked as a whole.
fn within<S: Serializer>(
    run: &Option<Box<SuspendedRun>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    run.as_ref().map(|run| run.stored()).serialize(serializer)
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredState {
    Settled(Outcome),
    #[serde(rename = "waiting")]
    Pending(PendingCall),
    /// The agent behind its tool has begun.
    Delegated(Plan),
    /// Nobody has decided about it yet.
    Planned(Plan),
}

impl SuspendedTurn {
    pub(super) fn new(info: &RunInfo, slots: &[Slot]) -> Self {
        let calls = slots.iter().map(StoredCall::from).collect();
        Self(Stored {
            version: VERSION,
            run_id: info.run_id.clone(),
            response: info.response,
            path: info.path.clone(),
            calls,
            denied: info.asks.as_ref().map(AskHistory::denied).unwrap_or_default(),
        })
    }

    /// The stored form, unchecked.
    pub(super) fn stored(&self) -> &Stored {
        &self.0
    }

    /// Refuses a state that could not be read back.
    pub(super) fn check_storable(&self) -> Result<(), UserError> {
        depth::check_state(&self.0)
    }

    /// What people have denied in the run.
    pub(super) fn denied(&self) -> &Denied {
        &self.0.denied
    }

    /// The run holds what people have denied.
    pub(crate) fn without_denied(mut self) -> Self {
        self.0.denied.clear();
        self
    }

    pub(super) fn slots(&self) -> Vec<Slot> {
        self.0.calls.iter().map(Slot::from).collect()
    }

    /// The run that waits.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.0.run_id
    }

    /// The number of the response in its run.
    #[must_use]
    pub fn response(&self) -> u32 {
        self.0.response
    }

    /// Gives a call that waits this outcome.
    pub(super) fn settle(&mut self, id: &str, outcome: Outcome) {
        if let Some(stored) = self.0.calls.iter_mut().find(|stored| stored.call.id() == id) {
            (stored.started, stored.state) = (true, StoredState::Settled(outcome));
        }
    }

    pub(super) fn path(&self) -> &[String] {
        &self.0.path
    }

    /// A context of the run that waits, for a handler that is asked outside of it. It has no dependencies; add them
    /// with [`with_deps`](RunContext::with_deps).
    #[must_use]
    pub fn context(&self) -> RunContext {
        let (run_id, response, path) =
            (self.0.run_id.clone(), self.0.response, self.0.path.clone());
        RunContext::of_run(Arc::new(RunInfo { run_id, response, path, ..RunInfo::default() }))
    }

    /// Whether any call waits, here or in an agent behind one.
    pub(super) fn waits(&self) -> bool {
        self.0.calls.iter().any(|stored| match &stored.state {
            StoredState::Pending(_) => true,
            StoredState::Delegated(_) => stored.agent.as_ref().is_some_and(|run| run.waits()),
            StoredState::Settled(_) | StoredState::Planned(_) => false,
        })
    }

    /// The calls that wait, as the batch to answer.
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        requests(&self.0.run_id, self.0.response, &self.slots())
    }

    /// The calls of the response, in model order, with the outcome of those that are settled.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, Option<&Outcome>)> {
        self.0.calls.iter().map(|stored| match &stored.state {
            StoredState::Settled(outcome) => (&stored.call, Some(outcome)),
            _ => (&stored.call, None),
        })
    }

    /// What the model is told of the calls that are settled, as one message; `None` while none is.
    pub(super) fn told(&self) -> Option<Message> {
        let settled =
            self.calls().filter_map(|(call, outcome)| RequestPart::results(call, outcome?));
        let mut settled = settled.peekable();
        settled.peek().is_some().then(|| results(settled))
    }

    /// Whether these are the calls of the last response of a history, with nothing behind it but their results.
    pub(crate) fn is_of(&self, history: &[Message]) -> bool {
        let (asked, behind) = history.split_at(behind_response(history));
        let last = asked.last().map(|message| message.tool_calls().collect::<Vec<_>>());
        self.calls().map(|(call, _)| call).eq(last.unwrap_or_default())
            && (behind.is_empty() || self.told().as_slice() == behind)
    }

    /// The response was given up while its calls were at work: what has no outcome may have run.
    pub(crate) fn interrupted(mut self) -> Self {
        for stored in &mut self.0.calls {
            if !matches!(stored.state, StoredState::Settled(_)) {
                stored.state = StoredState::Settled(Outcome::unknown(MAY_HAVE_RUN));
                (stored.started, stored.agent) = (true, None);
            }
        }
        self
    }

    /// Gives every call without an outcome one: the response is over.
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

impl Serialize for SuspendedTurn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check_storable().map_err(S::Error::custom)?;
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SuspendedTurn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unique::of_version::<Stored, D>(deserializer, VERSION)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<Stored> for SuspendedTurn {
    type Error = UserError;

    fn try_from(stored: Stored) -> Result<Self, UserError> {
        let problem = |problem: String| Err(UserError::StoredState { problem });
        let mut ids = BTreeSet::new();
        for call in &stored.calls {
            if !ids.insert(call.call.id()) {
                return problem(format!("call `{}` appears twice", call.call.id()));
            }
            let StoredState::Pending(pending) = &call.state else { continue };
            let (run_id, id) = (&stored.run_id, call.call.id());
            let address = CallAddress::new(run_id, stored.response, &stored.path, id);
            if !pending.is_bound_to(&address) {
                return problem(format!(
                    "call `{}` was changed after it was stored: ask about it again",
                    call.call.id()
                ));
            }
        }
        Ok(Self(stored))
    }
}

impl From<&Slot> for StoredCall {
    fn from(slot: &Slot) -> Self {
        let state = match &slot.state {
            State::Settled(outcome) => StoredState::Settled(outcome.clone()),
            State::Broken(_) => StoredState::Settled(Outcome::failed(INTERNAL_ERROR)),
            State::Planned(plan) => StoredState::Planned(plan.clone()),
            State::Delegated(plan) => StoredState::Delegated(plan.clone()),
            State::Pending(pending) => StoredState::Pending(pending.clone()),
        };
        Self {
            call: slot.call.clone(),
            state,
            asked: slot.asked.clone(),
            args: Some(slot.args.clone()).filter(|args| args != slot.call.args()),
            answered: slot.answered.clone(),
            denied_by: slot.denied_by.clone(),
            started: slot.execution.started(),
            agent: slot.child.run.clone(),
        }
    }
}

impl From<&StoredCall> for Slot {
    fn from(stored: &StoredCall) -> Self {
        let state = match &stored.state {
            StoredState::Settled(outcome) => State::Settled(outcome.clone()),
            StoredState::Pending(pending) => State::Pending(pending.clone()),
            StoredState::Delegated(plan) => State::Delegated(plan.clone()),
            StoredState::Planned(plan) => State::Planned(plan.clone()),
        };
        let mut slot = Self::new(stored.call.clone(), state);
        slot.asked.clone_from(&stored.asked);
        slot.answered.clone_from(&stored.answered);
        slot.denied_by.clone_from(&stored.denied_by);
        slot.child.run.clone_from(&stored.agent);
        slot.settled_before = matches!(stored.state, StoredState::Settled(_));
        if let State::Planned(plan) | State::Delegated(plan) = &slot.state {
            slot.ask = plan.approval.as_ref().and_then(|approval| approval.ask.clone());
        }
        if let Some(args) = &stored.args {
            slot.args = args.clone();
        }
        if stored.started {
            slot.execution = match &stored.state {
                StoredState::Settled(Outcome::Unknown(_)) => Execution::Unknown,
                StoredState::Settled(outcome) => Execution::Finished(outcome.clone()),
                // Its body has deferred, or nobody knows what it did.
                StoredState::Pending(it) if it.questions.iter().any(is_about_repeating) => {
                    Execution::Unknown
                }
                StoredState::Pending(it) => Execution::Finished(Outcome::Deferred(it.deferral())),
                StoredState::Delegated(_) | StoredState::Planned(_) => Execution::Unknown,
            };
        }
        if let Some(pending) = slot.pending() {
            slot.args = pending.shown.clone();
        }
        slot
    }
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
    use crate::toolset::{FunctionToolset, tool_fn};
    use crate::turn::Turn;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Any {
        #[serde(rename = "deep")]
        _deep: Value,
    }

    // Rule L7: "What any version has written loads, and goes on from there": there was no limit of 64 levels once.
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
