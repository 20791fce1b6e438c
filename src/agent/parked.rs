//! Runs that a ledger keeps: parked when they wait, and resumed by one worker at a time (rule L5).

use std::future::IntoFuture as _;

use serde_json::{Value, json};

use super::Agent;
use super::result::{RunError, RunOutput, RunResult};
use crate::call::keeping;
use crate::error::ErrorKind;
use crate::ledger::{AskState, ClaimRecord, Ledger, LedgerError, Millis, Saved, Taken};
use crate::turn::SuspendedRun;

/// What became of a parked run.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeUp {
    /// This worker has resumed it, and it came to this. A run that waits again, or that an error stopped, is parked
    /// again.
    Resumed(Result<RunResult, RunError>),
    /// Another worker resumes it, or executes a call of it.
    Held {
        /// Which.
        by: String,
        /// Until when, unless it renews: milliseconds since 1970, by the store's clock.
        until: Millis,
    },
    /// It is over, and came to this: its text, or its structured answer.
    Over(Value),
    /// The ledger has no such run.
    UnknownRun,
}

impl Agent {
    /// Resumes a run that the [ledger](Self::ledger) keeps, with what was decided about its calls since; calls that
    /// nobody has decided about go on waiting. Of any number of workers one resumes it, the others are told. While it
    /// does, the run is kept for it; when it dies, another worker can take the run up after the
    /// [lease](crate::ledger::Ledger::lease), and what was executed does not run again.
    ///
    /// ```
    /// # use countersign::{Agent, ErrorKind, TakeUp};
    /// # async fn example(agent: Agent, run_id: &str) -> Result<(), ErrorKind> {
    /// match agent.take_up(run_id).await? {
    ///     TakeUp::Resumed(Ok(run)) => println!("{:?}", run.text()),
    ///     TakeUp::Resumed(Err(error)) => println!("stopped, and parked again: {error}"),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`] when the ledger cannot answer; without a ledger no run is known.
    pub async fn take_up(&self, run_id: &str) -> Result<TakeUp, ErrorKind> {
        let Some(ledger) = self.turn.get_ledger() else { return Ok(TakeUp::UnknownRun) };
        if let Some(held) = self.held(ledger, run_id).await? {
            return Ok(held);
        }
        let lease = ledger.get_lease();
        let taken = ledger.take_run(run_id, ledger.get_worker(), lease).await.map_err(failed)?;
        let (token, state) = match taken {
            Taken::Taken { token, state } => (token, state),
            Taken::Held { by, until } => return Ok(TakeUp::Held { by, until }),
            Taken::Over { result } => return Ok(TakeUp::Over(result)),
            Taken::UnknownRun => return Ok(TakeUp::UnknownRun),
        };
        let suspended: SuspendedRun =
            serde_json::from_value(state).map_err(|error| ErrorKind::Ledger(error.into()))?;
        let answers = self.decisions(&suspended).await?;
        let run = self.resume(suspended, answers).output(self.output.clone().or_deferred());
        let renew = || async {
            if let Err(error) = ledger.renew_run(run_id, token, lease).await {
                tracing::warn!(run_id, %error, "a run could not be kept for longer");
            }
        };
        let ended = keeping(lease, run.into_future(), renew).await;
        let saved = match &ended {
            Ok(result) => match result.output() {
                RunOutput::Text(text) => ledger.end_run(run_id, token, json!(text)).await,
                RunOutput::Structured(value) => ledger.end_run(run_id, token, value.clone()).await,
                RunOutput::Deferred(run) => ledger.save_run(run_id, json!(run), Some(token)).await,
            },
            Err(error) => ledger.save_run(run_id, json!(error.suspended()), Some(token)).await,
        };
        if saved.map_err(failed)? == Saved::StaleToken {
            tracing::error!(run_id, "another worker has taken the run over while it ran here");
        }
        Ok(TakeUp::Resumed(ended))
    }

    /// Whoever executes a call of the run. The lease of a call may last longer than the one of its run: whoever took the
    /// run up in between could neither run the call nor say what became of it.
    async fn held(&self, ledger: &Ledger, run_id: &str) -> Result<Option<TakeUp>, ErrorKind> {
        let run = ledger.get_run(run_id).await.map_err(failed)?;
        let Some(run) = run.filter(|run| !run.over) else { return Ok(None) };
        let suspended: SuspendedRun =
            serde_json::from_value(run.state).map_err(|error| ErrorKind::Ledger(error.into()))?;
        for (_, record) in self.asks(&suspended).await? {
            if record.state != AskState::Claimed {
                continue;
            }
            let now = ledger.get_now(record.ask.id()).await.map_err(failed)?;
            let claimed = now.filter(|now| now.state == AskState::Claimed);
            if let Some(ClaimRecord { worker, until }) = claimed.and_then(|now| now.claim) {
                return Ok(Some(TakeUp::Held { by: worker, until }));
            }
        }
        Ok(None)
    }
}

fn failed(error: LedgerError) -> ErrorKind {
    ErrorKind::Ledger(error.into())
}
