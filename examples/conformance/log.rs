//! The observations of tool bodies, handlers and the model while a scenario is played, for each run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::decision::Question;
use countersign::{DeferredToolRequests, ToolCall};
use serde_json::{Value, json};

/// Shared by the bodies, the handlers and the model of a scenario.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Observed>>);

/// The lists are those of the current run; the counters continue over all runs.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) executed: Vec<Value>,
    pub(crate) handlers_saw: Vec<Value>,
    pub(crate) model_saw: Vec<Value>,
    /// The number of responses of the model.
    pub(crate) responses: usize,
    /// The counter of the `ticket` step.
    pub(crate) ticket: u64,
    counts: BTreeMap<String, u32>,
}

impl Log {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observed {
    /// Increments a counter, and returns its value: 1 the first time.
    pub(crate) fn count(&mut self, what: String) -> u32 {
        let count = self.counts.entry(what).or_default();
        *count += 1;
        *count
    }

    /// The lists of the run that is over.
    pub(crate) fn take(&mut self) -> [(&'static str, Value); 3] {
        [
            ("executed", std::mem::take(&mut self.executed).into()),
            ("handlers_saw", std::mem::take(&mut self.handlers_saw).into()),
            ("model_saw", std::mem::take(&mut self.model_saw).into()),
        ]
    }
}

/// A batch as results show it.
pub(crate) fn shown(requests: &DeferredToolRequests) -> Value {
    let call = |call: &ToolCall| {
        let mut shown = json!({"id": call.id(), "tool": call.name(), "args": call.args()});
        let mut reasons: Vec<_> =
            requests.questions(call.id()).iter().map(Question::reason).collect();
        reasons.retain(|reason| !reason.is_empty());
        reasons.sort_unstable();
        reasons.dedup();
        if !reasons.is_empty() {
            shown["reasons"] = json!(reasons);
        }
        shown
    };
    json!({
        "approvals": requests.approvals.iter().map(call).collect::<Vec<_>>(),
        "calls": requests.calls.iter().map(call).collect::<Vec<_>>(),
        "metadata": requests.metadata,
    })
}
