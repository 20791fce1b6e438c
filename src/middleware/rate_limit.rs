//! A limit on how often each tool is called.
//!
//! The limit counts in a window that slides: of any span of the given length, at most `max` calls are inside. A counter
//! that is reset at fixed times would allow twice as many around each reset. The price is one instant per counted call,
//! at most `max` for each tool, which are forgotten as they leave the window.
//!
//! We do not count a denied call. Otherwise a model that repeats its call would keep the window full, and the time
//! in the message ("try again in 12 s") would never be true.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::ToolMiddleware;
use crate::call::{RunContext, ToolCall};
use crate::decision::Decision;

/// Limits how often each tool is called: denies the calls of a tool beyond a maximum in any span of time of a given
/// length. The denial says when the model may try again.
///
/// A call counts once, when this middleware first allows it, even if a layer inside or an approver denies it later. A
/// call that this middleware denies does not count. A call that is decided again, after an approval or because a layer
/// inside has changed the arguments, is [a repeat](RunContext::is_repeat): neither counted nor denied. An attempt that
/// a retry layer outside makes before an approval counts again, because it may run the tool again.
///
/// Clones share their counters. Unlike tower's `rate_limit`, this limit needs no `buffer` and delays no call.
///
/// ```
/// use std::time::Duration;
/// use countersign::middleware::ToolRateLimit;
/// use countersign::{FunctionToolset, ToolMiddlewareExt, ToolsExt};
///
/// let tools = FunctionToolset::new()
///     .layered(ToolRateLimit::new(10, Duration::from_secs(60)).for_tools(["search", "fetch"]))
///     .layered(ToolRateLimit::new(100, Duration::from_secs(60)).named("overall")); // for every tool
/// # let _ = tools;
/// ```
#[derive(Clone)]
pub struct ToolRateLimit {
    max: usize,
    per: Duration,
    /// The times of the counted calls of each tool, oldest first; at most `max` for each tool.
    calls: Arc<Mutex<HashMap<String, VecDeque<Instant>>>>,
}

impl ToolRateLimit {
    /// Allows `max` calls of each tool in any span of time of the length `per`; a `max` of 0 denies every call.
    #[must_use]
    pub fn new(max: u32, per: Duration) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Self { max, per, calls: Arc::default() }
    }

    /// Counts a call. `Err` is the time until the tool may be called again.
    fn count(&self, tool: &str) -> Result<(), Duration> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let counted = calls.entry(tool.to_owned()).or_default();
        while counted.front().is_some_and(|call| now.duration_since(*call) >= self.per) {
            counted.pop_front();
        }
        if counted.len() < self.max {
            counted.push_back(now);
            return Ok(());
        }
        let oldest = counted.front().map_or(Duration::ZERO, |call| now.duration_since(*call));
        Err(self.per.saturating_sub(oldest))
    }
}

impl ToolMiddleware for ToolRateLimit {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        if cx.is_repeat() {
            return Decision::allow();
        }
        let (name, max) = (call.name(), self.max);
        if max == 0 {
            return Decision::deny(format!("Not executed: `{name}` may not be called."));
        }
        let Err(wait) = self.count(name) else { return Decision::allow() };
        let (count, per) =
            (if max == 1 { "once".to_owned() } else { format!("{max} times") }, self.per);
        // Rounded up, so that a call after this many seconds is allowed.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Decision::deny(format!(
            "Not executed: `{name}` may be called {count} in {per:?}. Try again in {seconds} s."
        ))
    }
}

impl fmt::Debug for ToolRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolRateLimit({} in {:?})", self.max, self.per)
    }
}
