//! The retries of a run: how often the model may be told to try again with a tool.
//!
//! A retry is counted per tool and response. A model that calls one tool five times with the same mistake has made one
//! mistake, as it saw none of the results before it made the calls. A tool that succeeds gets its budget back, so that
//! a long run with an occasional mistake does not end; a tool that fails beside a success of itself does not.
//!
//! | response | `search` | budget of 2 |
//! |---|---|---|
//! | 1 | fails, fails | 1 left |
//! | 2 | succeeds | 2 left |
//! | 3 | fails, succeeds | 1 left |
//! | 4 | fails | 0 left |
//! | 5 | fails | the run ends |
//!
//! Results from elsewhere do not count: a person or a queue gave them, and a retry that they ask for is no mistake of
//! the model.

use std::collections::{BTreeMap, BTreeSet};

use super::call_state::{CallState, State};
use super::report::TurnReport;
use crate::deferred::Answered;
use crate::error::Error;
use crate::outcome::Outcome;

/// The retries that each tool may cost within one run, and those it has cost so far.
#[derive(Debug, Clone)]
pub(crate) struct Retries {
    max: u32,
    spent: BTreeMap<String, u32>,
}

impl Retries {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, spent: BTreeMap::new() }
    }

    /// Counts the retries of a response: one for each tool that failed, however many of its calls did, as the model
    /// made all calls before it saw a failure. A tool with successes only gets its whole budget back.
    pub(crate) fn spend(&mut self, report: &TurnReport) {
        let new = || report.calls().iter().filter(|call| !call.settled_before());
        let failed = new().filter(|call| counts(call.outcome(), call.answered(), false));
        let failed: BTreeSet<&str> = failed.map(|call| call.call().name()).collect();
        for call in new().filter(|call| call.outcome().is_returned()) {
            if !failed.contains(call.call().name()) {
                self.spent.remove(call.call().name());
            }
        }
        for tool in failed {
            *self.spent.entry(tool.to_owned()).or_default() += 1;
        }
    }

    /// Counts one failure of a tool that the model should have called and did not, or refuses it.
    pub(crate) fn spend_on(&mut self, tool: &str) -> Result<(), Error> {
        let spent = self.spent.entry(tool.to_owned()).or_default();
        if *spent >= self.max {
            let problem = format!(
                "it has answered with text where `{tool}` has to be called, more often than it may be retried ({}, see `Agent::max_retries`)",
                self.max
            );
            return Err(Error::ModelBehavior { problem, ids: Vec::new() });
        }
        *spent += 1;
        Ok(())
    }

    /// The error about the first call of the response that has failed once too often. `own` returns the limit that a
    /// tool sets for itself, which takes precedence over the agent's.
    pub(super) fn exceeded(
        &self,
        calls: &[CallState],
        own: impl Fn(&str) -> Option<u32>,
    ) -> Option<Error> {
        let call = calls.iter().find(|call| {
            let State::Settled(outcome) = &call.state else { return false };
            let spent = self.spent.get(call.call.name()).copied().unwrap_or_default();
            let max = own(call.call.name()).unwrap_or(self.max);
            spent >= max && counts(outcome, call.answered.as_ref(), call.settled_before)
        })?;
        let (max, see) = match own(call.call.name()) {
            Some(max) => (max, "`max_retries` of the tool or its toolset"),
            None => (self.max, "`Agent::max_retries`"),
        };
        let tool = call.call.name().escape_debug();
        let problem = format!(
            "tool `{tool}` has failed more often than it may be retried ({max}, see {see})"
        );
        Some(Error::ModelBehavior { problem, ids: vec![call.call.id().to_owned()] })
    }
}

/// Returns `true` if the outcome of a call costs a retry: the model has to try again, the call was settled by this
/// turn, and the outcome is not the result of a call that was executed elsewhere.
fn counts(outcome: &Outcome, answered: Option<&Answered>, settled_before: bool) -> bool {
    let elsewhere = matches!(answered, Some(Answered::Result { .. }));
    matches!(outcome, Outcome::Retry(_)) && !elsewhere && !settled_before
}
