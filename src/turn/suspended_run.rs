//! A run that waits, as a value to store.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SuspendedTurn, new_run_id, suspended};
use crate::args::{depth, unique};
use crate::call::{Denied, RunContext, Usage};
use crate::deferred::DeferredToolRequests;
use crate::error::UserError;
use crate::message::{Message, RequestPart};
use crate::outcome::Outcome;

/// The version of the stored form (rule L7).
const VERSION: u32 = 1;

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
struct Stored {
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
pub(super) struct Written<'a> {
    version: u32,
    run_id: &'a str,
    responses: u32,
    history: &'a [Message],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    prompts: &'a [String],
    usage: Usage,
    turn: Option<&'a suspended::Stored>,
    #[serde(skip_serializing_if = "Denied::is_empty")]
    denied: &'a Denied,
}

impl SuspendedRun {
    /// A run that has come as far as this history says, with a new run id. Calls of its last response that have no
    /// result are taken up when it is resumed: ordinary ones run, and the others take the answers, or are asked about
    /// ([`Agent::ask`](crate::Agent::ask)). Calls that have their result do not run again. [`requests`](Self::requests) is
    /// empty until then. Where every call has its result, answers are refused, by their ids, and a prompt goes on with it.
    ///
    /// The [history](Self::history) of a run that waits can be given here, and resumed without the rest of its state. What
    /// is only in that state is lost: approvals are bound to another run, edits and counts are forgotten, and an agent
    /// behind a tool that has no result yet begins from the start.
    ///
    /// Whoever writes the history chooses what the model believes to have happened, and what runs: take it from
    /// nowhere but your own store (rule A6).
    ///
    /// ```no_run
    /// # use countersign::{Agent, DeferredToolResults, Message, RunError, SuspendedRun};
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
        }
    }

    /// What the run has used so far, with its sub-agents.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The calls that wait, as the batch to answer. Empty when an error stopped the run and nothing waits.
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        self.turn.as_ref().map(SuspendedTurn::requests).unwrap_or_default()
    }

    /// Whether any call waits.
    pub(crate) fn waits(&self) -> bool {
        self.turn.as_ref().is_some_and(SuspendedTurn::waits)
    }

    /// A context of the run, for a handler that is asked outside of it.
    #[must_use]
    pub fn context(&self) -> RunContext {
        self.turn.as_ref().map(SuspendedTurn::context).unwrap_or_default()
    }

    /// The conversation, up to the response whose calls wait, with the results of those of its calls that are settled
    /// (rule T3).
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The conversation up to and with the response whose calls wait.
    fn asked(&self) -> &[Message] {
        match self.turn {
            Some(_) => self.history.get(..behind_response(&self.history)).unwrap_or_default(),
            None => &self.history,
        }
    }

    /// Puts the results of the calls that are settled behind their response, in place of those that stand there.
    pub(crate) fn tell_settled(&mut self) {
        let Some(told) = self.turn.as_ref().map(SuspendedTurn::told) else { return };
        let asked = self.asked().len();
        if self.history.get(asked..).unwrap_or_default() != told.as_slice() {
            let history = Arc::make_mut(&mut self.history);
            history.truncate(asked);
            history.extend(told);
        }
    }

    /// Takes the results of settled calls from behind their response: they come back with the others.
    pub(crate) fn untell_settled(&mut self) {
        let asked = self.asked().len();
        if asked < self.history.len() {
            Arc::make_mut(&mut self.history).truncate(asked);
        }
    }

    /// The stored form, unchecked.
    pub(super) fn stored(&self) -> Written<'_> {
        Written {
            version: VERSION,
            run_id: &self.run_id,
            responses: self.responses,
            history: self.asked(),
            prompts: &self.prompts,
            usage: self.usage,
            turn: self.turn.as_ref().map(SuspendedTurn::stored),
            denied: &self.denied,
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

    /// Gives up what waits: the history with one result for every call (rule T3), to go on with a new prompt. The
    /// model is told that the calls were not executed, because of `reason`; also of those that have no result in a
    /// [bare history](Self::from_trusted_history).
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

/// Where the messages behind the last response begin.
pub(super) fn behind_response(history: &[Message]) -> usize {
    let responds = |message: &Message| matches!(message, Message::Response { .. });
    history.iter().rposition(responds).map_or(0, |at| at + 1)
}

/// Gives the calls of the last response a result each, behind the results that some of them have.
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

/// The message with the results of a response: all results first, then what tools added for the model to read.
pub(crate) fn results(parts: impl Iterator<Item = (RequestPart, Vec<RequestPart>)>) -> Message {
    let (mut results, mut beside) = (Vec::new(), Vec::new());
    for (result, content) in parts {
        results.push(result);
        beside.extend(content);
    }
    results.extend(beside);
    Message::Request { parts: results }
}

impl Serialize for SuspendedRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check_storable().map_err(S::Error::custom)?;
        self.stored().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SuspendedRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unique::of_version::<Stored, D>(deserializer, VERSION)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<Stored> for SuspendedRun {
    type Error = UserError;

    fn try_from(stored: Stored) -> Result<Self, UserError> {
        let problem = |problem: String| Err(UserError::StoredState { problem });
        let Stored { run_id, responses, history, prompts, usage, turn, denied } = stored;
        if turn.as_ref().is_some_and(|turn| turn.run_id() != run_id || !turn.is_of(&history)) {
            return problem("its calls are not those of the last response in its history".into());
        }
        let history = Arc::new(history);
        let mut run = Self { run_id, responses, history, prompts, usage, turn, denied };
        run.tell_settled();
        Ok(run)
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
