//! A limit on how often each tool is called.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::ToolMiddleware;
use crate::call::{RunContext, ToolCall};
use crate::decision::Decision;

/// Denies calls of a tool beyond so many in any span of time, each tool counted by itself. The model is told when it
/// may try again.
///
/// A call counts once, when this middleware first allows it, even if it is denied further inside, or not approved; a
/// denied call does not count. A call that is decided again, after an approval or because a layer inside has changed its
/// arguments, is [a repeat](RunContext::is_repeat): it is neither counted nor denied, also where the process was started
/// again since it was counted. What a retry layer outside sends again on the first walk of a call counts again, and may be
/// denied, as it may run again; what it sends again on an approved pass, or after the arguments have changed, does not.
///
/// Clones share what they have counted, in memory: another process counts by itself. Unlike tower's `rate_limit` it needs no `buffer`, and no call waits.
///
/// ```
/// use std::time::Duration;
/// use countersign::{FunctionToolset, ToolMiddlewareExt, ToolRateLimit, ToolsExt};
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
    /// When each tool was called, oldest first; at most `max` for each.
    calls: Arc<Mutex<HashMap<String, VecDeque<Instant>>>>,
}

impl ToolRateLimit {
    /// Allows so many calls of each tool in any span of this length.
    #[must_use]
    pub fn new(max: u32, per: Duration) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Self { max, per, calls: Arc::default() }
    }

    /// Counts a call, or says how long it is until there is room for one.
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
        // Rounded up, so that a model that waits as long as it is told gets through.
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
