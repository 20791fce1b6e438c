//! A run, step by step.

use std::fmt;

use super::result::{RunError, RunResult};
use super::running::{Called, Next, Running};
use crate::call::ToolCall;
use crate::message::Message;
use crate::turn::{SuspendedRun, SuspendedTurn, TurnReport};

/// What a run does next, and how it ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunStep {
    /// The model is asked next, about [`RunIter::history`].
    ModelRequest,
    /// These calls are taken up next: decided about, run, asked about.
    ToolCalls(Vec<ToolCall>),
    /// The run is over.
    End(RunResult),
}

/// A run, step by step; see [`Agent::iter`](crate::Agent::iter).
pub struct RunIter<'a> {
    running: Running<'a>,
    over: bool,
    /// The calls of the step that is under way, as far as is known when it is given up.
    given_up: Option<SuspendedTurn>,
}

impl<'a> RunIter<'a> {
    pub(super) fn new(running: Running<'a>) -> Self {
        Self { running, over: false, given_up: None }
    }

    /// Does the step that was announced before, and announces the next one. `None` when the run is over.
    ///
    /// Dropped in the middle of a step, the run is over. Resumed from [`suspended`](Self::suspended), the model is told
    /// of the calls of that step that they may have run, and none of them runs again.
    ///
    /// # Errors
    /// [`RunError`], with the run as it stood; after it the run is over.
    pub async fn next(&mut self) -> Result<Option<RunStep>, RunError> {
        if self.over {
            return Ok(None);
        }
        self.over = true;
        self.given_up = self.running.announced().map(SuspendedTurn::interrupted);
        let stepped = self.running.step().await;
        self.given_up = None;
        if let Some(result) = stepped? {
            return Ok(Some(RunStep::End(result)));
        }
        self.over = false;
        Ok(Some(match &self.running.next {
            Next::TakeUp(turn) => RunStep::ToolCalls(open(turn)),
            Next::Call(Called { calls, .. }) => {
                let open = calls.iter().filter(|(_, outcome)| outcome.is_none());
                RunStep::ToolCalls(open.map(|(call, _)| call.clone()).collect())
            }
            Next::Start | Next::Ask | Next::Over => RunStep::ModelRequest,
        }))
    }

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.running.state.history
    }

    /// What became of the calls so far, response by response.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.running.turns
    }

    /// The run as it stands between two steps, to stop here and [resume](crate::Agent::ask) it later. Calls that were
    /// announced and not taken up have not run.
    #[must_use]
    pub fn suspended(&self) -> SuspendedRun {
        let mut state = self.running.snapshot();
        if let Some(given_up) = &self.given_up {
            state.turn = Some(given_up.clone());
            state.tell_settled();
        }
        state
    }
}

fn open(turn: &SuspendedTurn) -> Vec<ToolCall> {
    turn.calls().filter(|(_, outcome)| outcome.is_none()).map(|(call, _)| call.clone()).collect()
}

impl fmt::Debug for RunIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunIter").field("state", &self.running.state).finish_non_exhaustive()
    }
}
