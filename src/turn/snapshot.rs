//! The snapshots of suspended responses and runs, and their versioned stored form.
//!
//! # What a stored state is, and is not
//!
//! A stored state is plain JSON with a version, complete by itself: any process with the same tools can continue from
//! it. When we read it, we compute the fingerprint of each pending call again, and refuse a state that was edited by
//! accident. The state is not signed: an attacker who can write it can compute a fingerprint as well. Keep it in a
//! database of yours, or seal tokens that leave it (the feature `seal`).
//!
//! A pending call is stored as `waiting`: every state that was ever written has to load (`tests/corpus`), so a
//! stored field keeps its name.
//!
//! # Why the history is stored without the last results
//!
//! The results of settled calls are in the turn. If we stored them twice, the two could differ after an edit: the
//! model would be told one thing, and the next pass another. We append them when we read the state, so the history of
//! a suspended run has them (rule T3).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::args::{Args, unique};
use crate::call::{Approval, Denied, ToolCall, Usage};
use crate::decision::Question;
use crate::deferred::{Answered, CallAddress, PendingCall};
use crate::error::UserError;
use crate::message::{Message, has_open_calls};
use crate::origin::ReadRecord;
use crate::outcome::Outcome;

/// The version of the stored form of a turn (rule L7).
pub(super) const TURN_VERSION: u32 = 1;

/// A response with pending calls: one versioned value to store and to [resume](crate::Turn::resume), in this process or
/// another. It has the outcomes of the settled calls, which do not run again.
///
/// Deserializing checks the value: an unknown version, a call that appears twice, or a question that does not match its
/// fingerprint is an error. These checks find accidents, not attacks: anyone who can write the stored value can write a
/// consistent one. Keep it where only you can write.
///
/// Serializing fails for a value that could not be read back (rule L7).
///
/// ```
/// use countersign::{FunctionToolset, SuspendedTurn, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
/// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
///
/// let mut stored = serde_json::to_value(&suspended)?;
/// assert_eq!(serde_json::from_value::<SuspendedTurn>(stored.clone())?, suspended);
/// stored["calls"][0]["waiting"]["shown"]["path"] = json!("b");
/// let error = serde_json::from_value::<SuspendedTurn>(stored).unwrap_err();
/// assert!(error.to_string().contains("changed after it was stored"));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, PartialEq)]
pub struct SuspendedTurn(pub(super) StoredTurn);

/// The stored form of a [`SuspendedTurn`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredTurn {
    pub(super) version: u32,
    pub(super) run_id: String,
    pub(super) response: u32,
    pub(super) path: Vec<String>,
    pub(super) calls: Vec<StoredCall>,
    /// The denials of the run; empty in the turn of a [`SuspendedRun`], which has them itself.
    #[serde(default, skip_serializing_if = "Denied::is_empty")]
    pub(super) denied: Denied,
    /// The number of reads of the run when the response was requested, if that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read_before: Option<u32>,
    /// The record of the run's reads; absent in the turn of a [`SuspendedRun`], which has it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reads: Option<ReadRecord>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredCall {
    pub(super) call: ToolCall,
    #[serde(flatten)]
    pub(super) state: StoredState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) asked: Vec<Question>,
    /// The arguments with which the call ran or would run, if they are not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<Args>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<Answered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) denied_by: Option<String>,
    /// `true` if the tool of the call was started.
    #[serde(default)]
    pub(super) started: bool,
    /// The snapshot of the agent behind the tool, if it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "within")]
    pub(super) agent: Option<Box<SuspendedRun>>,
}

/// Serializes the run of an agent without checking it again, as the parent's snapshot is checked as a whole.
fn within<S: Serializer>(
    run: &Option<Box<SuspendedRun>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    run.as_ref().map(|run| run.stored()).serialize(serializer)
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredState {
    Settled(Outcome),
    #[serde(rename = "waiting")]
    Pending(PendingCall),
    /// The agent behind the tool has begun.
    Delegated(PlannedPass),
    /// The call has not passed the stack yet, or not since it was approved.
    Planned(PlannedPass),
}

/// A pass that is to be made: the arguments it begins with, and the approval, if there is one.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlannedPass {
    pub(super) origin: Args,
    pub(super) approval: Option<Arc<Approval>>,
    /// The number of times the call was deferred before.
    pub(super) deferrals: u32,
}

/// The version of the stored form of a run (rule L7).
const RUN_VERSION: u32 = 1;

/// A run that is suspended with pending calls, or that an error stopped: one versioned value with the history and the
/// calls of the last response. Store it, and [resume](crate::Agent::resume) it in this process or another.
///
/// Anyone who can write the stored value chooses what runs: keep it where only you can write. Serializing fails for a
/// value that could not be read back (rule L7). A run that would be suspended with such a value ends with the error
/// instead, which has the value.
///
/// ```no_run
/// use countersign::{Agent, SuspendedRun};
///
/// async fn decided(agent: &Agent, stored: &str) -> Result<(), Box<dyn std::error::Error>> {
///     let suspended: SuspendedRun = serde_json::from_str(stored)?;
///     let answers = suspended.requests().answer().approve("call_1").deny("call_2", "not today").build()?;
///     let run = agent.resume(suspended, answers).await?;
///     println!("{:?}", run.text());
///     Ok(())
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct SuspendedRun {
    pub(crate) run_id: String,
    pub(crate) responses: u32,
    /// The history. After the response of `turn` it has the results of the settled calls (rule T3).
    pub(crate) history: Arc<Vec<Message>>,
    /// Prompts that were not added to the history before an error stopped the run.
    pub(crate) prompts: Vec<String>,
    pub(crate) usage: Usage,
    /// The last response, if some of its calls have no result in the history yet.
    pub(crate) turn: Option<SuspendedTurn>,
    /// The denials of the run; the root's include those of its sub-agents.
    pub(crate) denied: Denied,
    /// The record of the reads of the run and its sub-agents, if there is one.
    pub(crate) reads: Option<ReadRecord>,
}

/// The stored form of a [`SuspendedRun`]. If there is a `turn`, the history ends with its response: the results of
/// settled calls are stored in the turn only.
#[derive(Deserialize)]
struct StoredRun {
    run_id: String,
    responses: u32,
    history: Vec<Message>,
    #[serde(default)]
    prompts: Vec<String>,
    #[serde(default)]
    usage: Usage,
    turn: Option<SuspendedTurn>,
    /// `true` if the run is a trusted history, whose open calls have never been decided about.
    #[serde(default)]
    trusted_history: bool,
    #[serde(default)]
    denied: Denied,
    #[serde(default)]
    reads: Option<ReadRecord>,
}

/// The stored form of a [`SuspendedRun`] for writing, which borrows from the run.
#[derive(Serialize)]
pub(super) struct WrittenRun<'a> {
    pub(super) version: u32,
    pub(super) run_id: &'a str,
    pub(super) responses: u32,
    pub(super) history: &'a [Message],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) prompts: &'a [String],
    pub(super) usage: Usage,
    pub(super) turn: Option<&'a StoredTurn>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) trusted_history: bool,
    #[serde(skip_serializing_if = "Denied::is_empty")]
    pub(super) denied: &'a Denied,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reads: Option<&'a ReadRecord>,
}

impl SuspendedRun {
    /// The stored form, unchecked.
    pub(super) fn stored(&self) -> WrittenRun<'_> {
        WrittenRun {
            version: RUN_VERSION,
            run_id: &self.run_id,
            responses: self.responses,
            history: self.asked(),
            prompts: &self.prompts,
            usage: self.usage,
            turn: self.turn.as_ref().map(|turn| &turn.0),
            trusted_history: self.turn.is_none() && has_open_calls(&self.history),
            denied: &self.denied,
            reads: self.reads.as_ref(),
        }
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
        unique::of_version::<StoredTurn, D>(deserializer, TURN_VERSION)?
            .try_into()
            .map_err(D::Error::custom)
    }
}

impl TryFrom<StoredTurn> for SuspendedTurn {
    type Error = UserError;

    fn try_from(stored: StoredTurn) -> Result<Self, UserError> {
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

impl Serialize for SuspendedRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check_storable().map_err(S::Error::custom)?;
        self.stored().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SuspendedRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unique::of_version::<StoredRun, D>(deserializer, RUN_VERSION)?
            .try_into()
            .map_err(D::Error::custom)
    }
}

impl TryFrom<StoredRun> for SuspendedRun {
    type Error = UserError;

    fn try_from(stored: StoredRun) -> Result<Self, UserError> {
        let problem = |problem: String| Err(UserError::StoredState { problem });
        let StoredRun { run_id, responses, history, prompts, usage, turn, trusted_history, .. } =
            stored;
        let (denied, reads) = (stored.denied, stored.reads);
        if turn.is_none() && !trusted_history && has_open_calls(&history) {
            return problem(
                "it has no `turn`, and its history ends with calls without results: which of them have run is not known. \
                 Store the whole run; to decide about these calls anew, read the history alone and use `from_trusted_history`"
                    .into(),
            );
        }
        if turn.as_ref().is_some_and(|turn| turn.run_id() != run_id || !turn.is_of(&history)) {
            return problem("its calls are not those of the last response in its history".into());
        }
        let history = Arc::new(history);
        let mut run = Self { run_id, responses, history, prompts, usage, turn, denied, reads };
        run.tell_settled();
        Ok(run)
    }
}
