//! Policies and layers that a host might stack.

use std::future::{Ready, ready};

use countersign::{BoxError, Decision, Outcome, ToolCall};
use tower::retry::Policy;

/// Sends a call again, so many times: when it ended with an error or failed, or whatever came of it.
#[derive(Clone)]
pub(crate) struct Retries {
    left: usize,
    always: bool,
}

impl Retries {
    pub(crate) fn of_failures(times: usize) -> Self {
        Self { left: times, always: false }
    }

    pub(crate) fn always(times: usize) -> Self {
        Self { left: times, always: true }
    }
}

impl Policy<ToolCall, Outcome, BoxError> for Retries {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut ToolCall,
        result: &mut Result<Outcome, BoxError>,
    ) -> Option<Ready<()>> {
        let failed = matches!(result, Err(_) | Ok(Outcome::Failed(_) | Outcome::Retry(_)));
        if !failed && !self.always {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}

/// Allows, asks and denies by the tool's name.
pub(crate) fn by_name(call: &ToolCall) -> Decision {
    match call.name() {
        "ask" => Decision::ask("sure?"),
        "deny" => Decision::deny("no"),
        _ => Decision::allow(),
    }
}
