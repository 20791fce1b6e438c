//! What a run has used, and what it may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::UsageLimitExceeded;

/// What a run may use, with its sub-agents. Nothing is limited by default.
///
/// ```
/// use countersign::UsageLimits;
/// let limits = UsageLimits::new().requests(20).tool_calls(50);
/// # let _ = limits;
/// ```
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

    /// How many requests the models of the run may get.
    pub fn requests(mut self, max: u32) -> Self {
        self.requests = Some(max);
        self
    }

    /// How many calls may be executed. A call counts when its tool is started; one that is denied, waits, or defers
    /// itself does not, however often.
    pub fn tool_calls(mut self, max: u32) -> Self {
        self.tool_calls = Some(max);
        self
    }
}

/// What a run has used so far, with its sub-agents, over all of its suspensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// The number of requests made to models.
    pub requests: u32,
    /// The number of calls whose tool was started; a call that deferred itself does not count.
    pub tool_calls: u32,
}

/// Counts for one run, and for the runs above it.
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

    /// Counts a request, or refuses it.
    pub(crate) fn take_request(&self) -> Result<(), UsageLimitExceeded> {
        let what = "ask its models";
        self.take(what, |meter| (&meter.requests, meter.limits.requests))
    }

    /// Counts a call that is about to be executed, or refuses it.
    pub(crate) fn take_tool_call(&self) -> Result<(), UsageLimitExceeded> {
        let what = "execute tools";
        self.take(what, |meter| (&meter.tool_calls, meter.limits.tool_calls))
    }

    /// The call has deferred itself: it costs nothing.
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
