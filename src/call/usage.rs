//! Requests and tool calls of a run: counts and limits.
//!
//! We take from a limit before the work, and give back if the work does not happen. So concurrent calls never exceed
//! the limit: of ten calls at a limit of three, three start. We also take a sub-agent's count from every run above it,
//! from the inside outward. If a run further out refuses, we give back what we took inside. For that moment a sibling
//! may be refused that would just have fitted. A limit may do that, but it may not be exceeded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::UsageLimitExceeded;

/// Limits on the requests and tool calls of a run, its sub-agents included. Nothing is limited by default.
///
/// ```
/// use countersign::call::UsageLimits;
/// let limits = UsageLimits::new().requests(20).tool_calls(50);
/// # let _ = limits;
/// ```
///
/// The effect of a limit: a request beyond it ends the run with an error, from which it can be resumed under a higher
/// limit. A call beyond it does not run, and ends the run with the same error after the calls beside it have finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct UsageLimits {
    requests: Option<u32>,
    tool_calls: Option<u32>,
}

impl UsageLimits {
    /// Limits that allow any number of requests and calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many requests may be made to the models of the run.
    pub fn requests(mut self, max: u32) -> Self {
        self.requests = Some(max);
        self
    }

    /// Sets how many calls may be executed. A call counts when its tool is started. A call that is denied or pending,
    /// or whose tool defers it, does not count.
    ///
    /// ```
    /// use countersign::call::UsageLimits;
    /// let limits = UsageLimits::new().requests(20).tool_calls(100);
    /// # let _ = limits;
    /// ```
    pub fn tool_calls(mut self, max: u32) -> Self {
        self.tool_calls = Some(max);
        self
    }
}

/// The requests and tool calls of a run so far, with those of its sub-agents and of the time before it was suspended.
///
/// ```
/// use countersign::call::Usage;
///
/// let stored = serde_json::to_value(Usage::default()).unwrap();
/// assert_eq!(stored, serde_json::json!({"requests": 0, "tool_calls": 0}));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// The number of requests made to models.
    pub requests: u32,
    /// The number of calls whose tool was started; a call that deferred itself does not count.
    pub tool_calls: u32,
}

/// The counters of one run. A count in a sub-agent's run also counts in all runs above it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    limits: UsageLimits,
    requests: AtomicU32,
    tool_calls: AtomicU32,
    above: Option<Arc<Self>>,
}

impl Meter {
    pub(crate) fn new(limits: UsageLimits, used: Usage, above: Option<Arc<Self>>) -> Self {
        let (requests, tool_calls) = (used.requests.into(), used.tool_calls.into());
        Self { limits, requests, tool_calls, above }
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            requests: self.requests.load(Ordering::Acquire),
            tool_calls: self.tool_calls.load(Ordering::Acquire),
        }
    }

    /// Counts a request, or refuses it if a limit of this run or of a run above is reached.
    pub(crate) fn take_request(&self) -> Result<(), UsageLimitExceeded> {
        let what = "ask its models";
        self.take(what, |meter| (&meter.requests, meter.limits.requests))
    }

    /// Counts a call that is about to be executed, or refuses it if a limit of this run or of a run above is reached.
    pub(crate) fn take_tool_call(&self) -> Result<(), UsageLimitExceeded> {
        let what = "execute tools";
        self.take(what, |meter| (&meter.tool_calls, meter.limits.tool_calls))
    }

    /// Takes back the count of a call that was not executed or has deferred itself.
    pub(crate) fn give_tool_call_back(&self) {
        for meter in self.with_above() {
            meter.tool_calls.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn take(
        &self,
        what: &'static str,
        of: impl Fn(&Self) -> (&AtomicU32, Option<u32>),
    ) -> Result<(), UsageLimitExceeded> {
        for (taken, meter) in self.with_above().enumerate() {
            let (count, max) = of(meter);
            let max = max.unwrap_or(u32::MAX);
            let more = |count: u32| (count < max).then(|| count + 1);
            if count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
                for meter in self.with_above().take(taken) {
                    of(meter).0.fetch_sub(1, Ordering::AcqRel);
                }
                return Err(UsageLimitExceeded { what, max });
            }
        }
        Ok(())
    }

    fn with_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |meter| meter.above.as_deref())
    }
}
