//! Counts the calls of rules with `at_most`.
//!
//! A limit counts *calls*, not evaluations. We evaluate one call on the first pass, on the approved one, perhaps in
//! another process, and for people who ask for an explanation. It is one call of the rule each time. So a count has
//! the identity of the call, and the context says whether the call has passed the rules before ([`Count::is_repeat`]).
//! A repeat is let through even if its count was lost, as it had its place when it was asked about.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::json;

use countersign::error::BoxError;

/// One call that a rule with `at_most` counts.
///
/// ```
/// use countersign_rules::{CallCounts, Count, MemoryCounts, Rules};
/// use countersign_rules::RuleCall;
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let rules = Rules::builder().lexical().text("mine.toml", "
///     version = 1
///     [[rule]]
///     id = 'few'
///     allow = 'search'
///     at_most = { calls = 1, within = '1h' }
/// ").load()?;
/// let args = json!({});
/// let call = RuleCall::new("search", args.as_object().unwrap());
/// let decide = async |id: &str| rules.decide_and_count(&call, "ann", id, false).await.to_string();
/// assert!(decide("call-1").await.starts_with("allow"));
/// assert!(decide("call-1").await.starts_with("allow"), "the same call is counted once");
/// assert!(decide("call-2").await.starts_with("ask"), "beyond the limit a person is asked");
/// # let _: &dyn CallCounts = &MemoryCounts::default();
/// # Ok::<(), countersign_rules::RulesError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The rule, with the layer that it comes from.
    pub rule: String,
    /// The principal for whom the call is made.
    pub principal: String,
    /// The call: the same for each pass and in each process.
    pub call: String,
    /// `true` if the call has passed the rules before, so that it was counted then.
    pub is_repeat: bool,
    /// The most calls within the span of time.
    pub calls: u32,
    /// The span of time that is looked at.
    pub within: Duration,
}

/// A place where calls are counted: in memory, or in a store that all processes share.
///
/// An implementation counts a call once for each principal and rule, and says whether it is within the limit. The
/// check and the count are one step: two calls never take the same last place. An error makes the rule's `else`
/// apply.
///
/// # Errors
/// If a call cannot be counted, we do not know that the limit holds: we log the error, and the rule's `else`
/// applies.
pub trait CallCounts: Send + Sync + 'static {
    /// Counts a call, unless it was counted before. `false` if it is beyond the limit; such a call is not counted.
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<bool, BoxError>>;
}

/// Counts in the store of the ledger, which all processes share.
///
/// ```
/// use countersign::ledger::{Ledger, MemoryStore};
/// use countersign_rules::Rules;
///
/// let rules = Rules::builder().counts(Ledger::new(MemoryStore::new()));
/// # let _ = rules;
/// ```
impl CallCounts for countersign::ledger::Ledger {
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<bool, BoxError>> {
        Box::pin(async move {
            // A pass that repeats an earlier one was counted then.
            if count.is_repeat {
                return Ok(true);
            }
            let counter = json!(["at_most", count.rule, count.principal]).to_string();
            Ok(self.count_call(&counter, &count.call, count.calls, count.within).await?)
        })
    }
}

/// The largest limit of `at_most`, as the calls of a rule are looked through for each call, and the number of rules and
/// principals that [`MemoryCounts`] counts for.
pub(super) const MAX_COUNTED: u16 = 10_000;

// A limit that a file may name can be counted in a store.
const _: () = assert!(MAX_COUNTED as u32 == countersign::ledger::Ledger::MAX_COUNTED_CALLS);

/// The counted calls, each with its time.
type Calls = VecDeque<(SystemTime, String)>;

/// Counts in the memory of this process: another process, and this one after a restart, begins at zero. A program that
/// ends after each call, such as a hook, needs counts in a store. For at most 10 000 rules and principals calls are
/// counted; beyond that a call is counted as being beyond its limit.
///
/// ```
/// use countersign_rules::{MemoryCounts, Rules};
///
/// let rules = Rules::builder().counts(MemoryCounts::default());
/// # let _ = rules;
/// ```
#[derive(Default)]
pub struct MemoryCounts {
    /// The calls of each rule and principal, oldest first.
    calls: Mutex<HashMap<(String, String), Calls>>,
}

impl fmt::Debug for MemoryCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCounts").finish_non_exhaustive()
    }
}

impl MemoryCounts {
    fn counted(&self, count: &Count, now: SystemTime) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (count.rule.clone(), count.principal.clone());
        if calls.len() >= usize::from(MAX_COUNTED) && !calls.contains_key(&key) {
            return count.is_repeat;
        }
        let counted = calls.entry(key).or_default();
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= count.within);
        while counted.front().is_some_and(|(at, _)| is_old(*at)) {
            counted.pop_front();
        }
        if counted.iter().any(|(_, call)| *call == count.call) || count.is_repeat {
            return true;
        }
        let room = counted.len() < usize::try_from(count.calls).unwrap_or(usize::MAX);
        if room {
            counted.push_back((now, count.call.clone()));
        }
        room
    }
}

impl CallCounts for MemoryCounts {
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<bool, BoxError>> {
        let counted = self.counted(count, SystemTime::now());
        Box::pin(std::future::ready(Ok(counted)))
    }
}
