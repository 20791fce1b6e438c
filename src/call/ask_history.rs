//! The history of a run's questions to people: the calls they have denied, and the number of pending calls (rule D11).
//!
//! A model that is told no often tries the same call again, and an approver who has to say no ten times says yes at the
//! eleventh. So a denial is remembered for the run, by tool and arguments, and after `max_repeats` the call is denied
//! without asking. A model that varies one byte in the arguments defeats this, so we limit the number of pending calls,
//! too.
//!
//! | event | effect on the entry of the call |
//! |---|---|
//! | a person denies it | count + 1, once per batch; the message replaces the reason unless it is the default text |
//! | a policy or an expiry denies it | none |
//! | a person approves it | the entry is removed |
//! | the run is stored and resumed | the denials are kept, the counts of the batch are not |
//!
//! The key is a digest, so a stored run does not keep the arguments that were denied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::args::{Args, digest};
use crate::outcome::DENIED;

/// The earlier denials of the same call in this run by a person: the same tool, with equal arguments (rule D11).
///
/// Its `Display` is the line for the approver: `denied twice before: keep the cache`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "How often a person has denied the same call before in this run.")]
pub struct DeniedBefore {
    times: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The time of the last denial, in words for people, where a door that holds no run has looked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<String>,
}

/// ```
/// use countersign::call::DeniedBefore;
///
/// let before = DeniedBefore::new(2, "keep the cache");
/// assert_eq!(before.to_string(), "denied twice before: keep the cache");
/// assert_eq!(DeniedBefore::new(5, "").to_string(), "denied 5 times before");
/// assert_eq!(format!("{before:?}"), "DeniedBefore(2 times)"); // the reason may quote arguments
/// ```
impl DeniedBefore {
    /// A count of denials with the reason given last, for tests of handlers and pages. The library makes its own
    /// values.
    #[must_use]
    pub fn new(times: u32, reason: impl Into<String>) -> Self {
        Self { times, reason: reason.into(), when: None }
    }

    /// The denials that a door which holds no run has found among equal calls: the default message of a denial is no reason.
    pub(crate) fn found(times: u32, words: &str, when: String) -> Self {
        let reason = if words == DENIED { "" } else { words };
        Self { when: Some(when), ..Self::new(times, reason) }
    }

    /// Returns `true` if a run has recorded the denials, and no door has looked for them among equal calls. A run has no later
    /// answer that could change its no, and a door may have one: a grant for exactly this call (rule G2).
    pub(crate) fn is_of_run(&self) -> bool {
        self.when.is_none()
    }

    /// The number of denials that were recorded before this call; equal calls of one batch count once.
    #[must_use]
    pub fn times(&self) -> u32 {
        self.times
    }

    /// The message of the last denial that had one; empty when none did.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for DeniedBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => f.write_str("denied once before")?,
            2 => f.write_str("denied twice before")?,
            times => write!(f, "denied {times} times before")?,
        }
        if let Some(when) = &self.when {
            write!(f, ", {}{when}", if self.times > 1 { "last at " } else { "at " })?;
        }
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

impl fmt::Debug for DeniedBefore {
    /// Leaves the reason out, as it may quote arguments (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeniedBefore({} times)", self.times)
    }
}

/// The history of one run's questions to people: the calls they have denied, and how many calls are pending (rule D11).
///
/// An [`Agent`](crate::Agent) keeps one history for each run, shared with the runs of its sub-agents, and stores it in
/// the [`SuspendedRun`](crate::SuspendedRun). A loop of your own passes the same history to each
/// [`Turn`](crate::Turn) of a run. Clones share one history. The serialized form has the denials only.
///
/// ```
/// use countersign::call::AskHistory;
/// use countersign::{FunctionToolset, Turn};
///
/// let history = AskHistory::default();
/// let turn = Turn::new(FunctionToolset::new());
/// let first = turn.clone().of_run("run-1", 0).ask_history(&history);
/// let second = turn.of_run("run-1", 1).ask_history(&history);
/// # let _ = (first, second);
/// ```
#[derive(Clone, Default)]
pub struct AskHistory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    denied: Denied,
    /// The keys of the calls whose denial the current batch has counted, so that equal calls of a batch count once.
    counted: BTreeSet<String>,
    pending: usize,
}

/// The denials of a run, by [`call_key`].
pub(crate) type Denied = BTreeMap<String, DeniedBefore>;

/// The key of a call in the history: a digest of its tool's identity and its arguments.
pub(crate) fn call_key(tool: &str, args: &Args) -> String {
    let mut key = digest(&json!([1, tool, Value::Object(args.as_map().clone())]));
    key.truncate(32);
    key
}

impl AskHistory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the denials, which is the part that is stored.
    pub(crate) fn denied(&self) -> Denied {
        self.lock().denied.clone()
    }

    /// Adds stored denials. An entry that is already there wins over the stored one.
    ///
    /// An entry in memory is newer than the stored one. The agent and its sub-agents share one history, and when a
    /// sub-agent continues, we read its stored state again, with the counts of the time at which it was suspended.
    pub(crate) fn extend(&self, stored: &Denied) {
        let mut state = self.lock();
        for (key, before) in stored {
            state.denied.entry(key.clone()).or_insert_with(|| before.clone());
        }
    }

    /// The denials of the call with this key. The key is a closure because most runs have no denial, and then it is not
    /// computed.
    pub(crate) fn denied_before(&self, key: impl FnOnce() -> String) -> Option<DeniedBefore> {
        let state = self.lock();
        if state.denied.is_empty() { None } else { state.denied.get(&key()).cloned() }
    }

    /// Begins to count the denials of another batch.
    pub(crate) fn begin_batch(&self) {
        self.lock().counted.clear();
    }

    /// Records that a person has denied the call. Equal calls of one batch count once. The default message of a denial
    /// does not replace an earlier reason.
    pub(crate) fn deny(&self, key: String, words: &str) {
        let mut state = self.lock();
        if !state.counted.insert(key.clone()) {
            return;
        }
        let before = state.denied.entry(key).or_insert_with(|| DeniedBefore::new(0, ""));
        before.times = before.times.saturating_add(1);
        if words != DENIED {
            words.clone_into(&mut before.reason);
        }
    }

    /// Removes the denials of a call that was approved.
    pub(crate) fn approve(&self, key: impl FnOnce() -> String) {
        let mut state = self.lock();
        if !state.denied.is_empty() {
            state.denied.remove(&key());
        }
    }

    /// Sets the number of pending calls, when a turn begins or is resumed.
    pub(crate) fn set_pending(&self, pending: usize) {
        self.lock().pending = pending;
    }

    /// Adds one pending call and returns `true`, unless `max` calls are pending already.
    ///
    /// Counting and comparing are one step under the lock, as the calls of a response are deferred by concurrent
    /// passes.
    pub(crate) fn ask(&self, max: u32) -> bool {
        let mut state = self.lock();
        let may = state.pending < max as usize;
        state.pending += usize::from(may);
        may
    }

    /// Subtracts a pending call that was answered, or that is not asked about any more.
    pub(crate) fn answered(&self) {
        let mut state = self.lock();
        state.pending = state.pending.saturating_sub(1);
    }
}

impl Serialize for AskHistory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.denied().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AskHistory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let denied = Denied::deserialize(deserializer)?;
        Ok(Self(Arc::new(Mutex::new(State { denied, ..State::default() }))))
    }
}

impl fmt::Debug for AskHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "AskHistory(denied: {}, pending: {})", state.denied.len(), state.pending)
    }
}
