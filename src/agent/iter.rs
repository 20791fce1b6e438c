//! Runs as a sequence of steps.

use std::fmt;

use super::result::{RunError, RunResult};
use super::run_loop::{Called, Next, RunLoop};
use crate::call::ToolCall;
use crate::message::Message;
use crate::turn::{SuspendedRun, SuspendedTurn, TurnReport};

/// The next step of a run, or its end.
///
/// We announce a step before it happens. You can look at it, wait, or stop in front of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunStep {
    /// The next step sends [`RunIter::history`] to the model.
    ModelRequest,
    /// The next step decides about these calls, and runs or defers them.
    ToolCalls(Vec<ToolCall>),
    /// The run has ended with this result.
    End(RunResult),
}

/// A run that proceeds one step at a time; see [`Agent::iter`](crate::Agent::iter).
///
/// ```
/// use countersign::agent::RunStep;
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
/// let mut run = agent.iter("Hello");
/// assert!(matches!(run.next().await?, Some(RunStep::ModelRequest)));
/// assert_eq!((run.history().len(), run.turns().len()), (1, 0)); // the prompt, and no calls yet
///
/// // Stopped here: the model was not asked, and the run can go on later, in another process.
/// let stopped = run.suspended();
/// drop(run);
/// assert_eq!(agent.ask(stopped).await?.text(), Some("Done."));
/// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
/// ```
pub struct RunIter<'a> {
    running: RunLoop<'a>,
    over: bool,
    /// The snapshot to resume from if the step in progress is dropped: the calls of that step may have run.
    given_up: Option<SuspendedTurn>,
}

impl<'a> RunIter<'a> {
    pub(super) fn new(running: RunLoop<'a>) -> Self {
        Self { running, over: false, given_up: None }
    }

    /// Runs the step that was announced before, and announces the next one. `None` when the run is over.
    ///
    /// If this future is dropped in the middle of a step, the run is over. When it is resumed from
    /// [`suspended`](Self::suspended), the model is told that the unsettled calls of that step may have run, and none
    /// of them runs again.
    ///
    /// # Errors
    /// [`RunError`], with a snapshot of the run, which is over then.
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

    /// The messages so far.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.running.state.history
    }

    /// The reports of the turns so far, one for each response with calls.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.running.turns
    }

    /// A snapshot of the run between two steps, to stop here and [resume](crate::Agent::ask) it later. Calls that were
    /// announced have not run yet.
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
