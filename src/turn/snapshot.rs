//! The stored states of responses and runs that are suspended, and how they are read and written.

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
use crate::message::Message;
use crate::outcome::Outcome;

/// The version of the stored form of a turn (rule L7).
pub(super) const TURN_VERSION: u32 = 1;

/// A response of which calls wait: one versioned value to store and [resume](crate::Turn::resume) from, in this
/// process or another. Settled calls are in it with their outcomes, and do not run again.
///
/// Reading it checks it: an unknown version, a missing or doubled call, or a question that does not match its
/// fingerprint is an error. That finds accidents. Whoever can write the stored value can write another one that
/// fits: keep it where only you can write.
///
/// Writing it checks it too: what could not be read back is not written (rule L7).
#[derive(Clone, PartialEq)]
pub struct SuspendedTurn(pub(super) StoredTurn);

/// The stored form.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredTurn {
    pub(super) version: u32,
    pub(super) run_id: String,
    pub(super) response: u32,
    pub(super) path: Vec<String>,
    pub(super) calls: Vec<StoredCall>,
    /// What people have denied in the run, unless the run holds it.
    #[serde(default, skip_serializing_if = "Denied::is_empty")]
    pub(super) denied: Denied,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredCall {
    pub(super) call: ToolCall,
    #[serde(flatten)]
    pub(super) state: StoredState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) asked: Vec<Question>,
    /// The arguments that ran or would run, where they are not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<Args>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<Answered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) denied_by: Option<String>,
    /// Whether its tool was started.
    #[serde(default)]
    pub(super) started: bool,
    /// Where the agent behind its tool stopped.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "within")]
    pub(super) agent: Option<Box<SuspendedRun>>,
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
pub(super) enum StoredState {
    Settled(Outcome),
    #[serde(rename = "waiting")]
    Pending(PendingCall),
    /// The agent behind its tool has begun.
    Delegated(Plan),
    /// Nobody has decided about it yet.
    Planned(Plan),
}

/// A pass that is to be made: from where, and with which approval.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) origin: Args,
    pub(super) approval: Option<Approval>,
    /// How often the call was deferred before.
    pub(super) deferrals: u32,
}

/// The version of the stored form of a run (rule L7).
const RUN_VERSION: u32 = 1;

/// A run that waits for answers, or that an error stopped: one versioned value with the history and the calls of the
/// last response. Store it, and [resume](crate::Agent::resume) it in this process or another.
///
/// Whoever can write the stored value chooses what runs: keep it where only you can write. Writing it fails where it
/// could not be read back (rule L7); a run that would wait with such a state ends with the error, and the state in it.
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
    /// Behind the response of `turn` stand the results of those of its calls that are settled (rule T3).
    pub(crate) history: Arc<Vec<Message>>,
    /// What is to be said, where an error came before it was.
    pub(crate) prompts: Vec<String>,
    pub(crate) usage: Usage,
    /// The last response, if some of its calls have no result in the history yet.
    pub(crate) turn: Option<SuspendedTurn>,
    /// What people have denied in the run; the root's holds that of its sub-agents.
    pub(crate) denied: Denied,
}

/// The stored form. Its history ends with the response of `turn`, which has the results of the calls that are settled.
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
    #[serde(default)]
    denied: Denied,
}

/// The same, as it is written.
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
    #[serde(skip_serializing_if = "Denied::is_empty")]
    pub(super) denied: &'a Denied,
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
            denied: &self.denied,
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
        let StoredRun { run_id, responses, history, prompts, usage, turn, denied } = stored;
        if turn.as_ref().is_some_and(|turn| turn.run_id() != run_id || !turn.is_of(&history)) {
            return problem("its calls are not those of the last response in its history".into());
        }
        let history = Arc::new(history);
        let mut run = Self { run_id, responses, history, prompts, usage, turn, denied };
        run.tell_settled();
        Ok(run)
    }
}
