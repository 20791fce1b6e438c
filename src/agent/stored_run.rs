//! Runs that are parked in a ledger, and resumed by one worker at a time under a lease (rule L5).

use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::Agent;
use super::keeper::Keeper;
use super::result::{RunError, RunOutput, RunResult, put_before};
use super::run_loop::Running;
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::ledger::{Ledger, LedgerError, Millis, RunWrite, Saved, Taken, recorded};
use crate::message::Message;
use crate::turn::{SuspendedRun, TurnReport};

/// The result of taking up a parked run.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeUp {
    /// This worker has resumed the run, and the result is saved. A run that was suspended again, or ended with an
    /// error, is parked again.
    Resumed(Result<RunResult, RunError>),
    /// This worker has resumed the run, but the result could not be saved: the ledger does not have it. The executions
    /// are recorded there, and none of them runs again.
    NotKept {
        /// The result of the run, which only this process has.
        ended: Result<RunResult, RunError>,
        /// Why the ledger could not save the result; `None` when another worker has taken the run over.
        error: Option<ErrorKind>,
    },
    /// The run was [given up](Agent::give_up). This is its history, with one result for every call, to continue from.
    GivenUp(Vec<Message>),
    /// Another worker holds the lease on the run.
    Held {
        /// The name of that worker.
        by: String,
        /// When that worker took the run, in milliseconds since 1970 by the store's clock.
        since: Option<Millis>,
        /// When the lease ends unless it is renewed, in milliseconds since 1970 by the store's clock.
        until: Millis,
    },
    /// The run is over. This is its text, its structured answer, or the reason it was given up, as `{"given_up":
    /// reason}`.
    Over(Value),
    /// The ledger has no such run, or not yet: the asks of a run are parked before the run is.
    UnknownRun,
}

impl Agent {
    /// Resumes a parked run of the [ledger](Self::ledger) with the decisions about its calls. Calls that are not
    /// decided, and calls that another worker is executing, stay pending. Of any number of workers one resumes the run,
    /// under a lease that it renews; the others get [`TakeUp::Held`]. When the worker dies, another one can take the
    /// run up after the [lease](crate::ledger::Ledger::lease), and calls that were executed do not run again. A worker
    /// that was suspended for longer than the lease finishes the calls it has started and starts no others.
    ///
    /// The result is saved in one transaction, which also closes the asks of the calls that have their results (rule
    /// L5). Decisions that were made in the meantime are taken up before this returns, so that a caller who gets
    /// [`TakeUp::Held`] after deciding need not try again.
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
    /// [`ErrorKind::Ledger`] when the ledger fails before anything was resumed. An agent without a ledger returns
    /// [`TakeUp::UnknownRun`].
    pub async fn take_up(&self, run_id: &str) -> Result<TakeUp, ErrorKind> {
        let Some(ledger) = self.turn.own_ledger() else { return Ok(TakeUp::UnknownRun) };
        let mut before: Option<RunResult> = None;
        loop {
            let taken = (self.taken(ledger, run_id).await, before.take());
            let ((hold, answers), before_it) = match taken {
                (Ok(Ok(taken)), before) => (taken, before),
                // The result of the previous round is saved, and the worker that holds the lease now continues from it.
                (_, Some(run)) => return Ok(TakeUp::Resumed(Ok(run))),
                (Ok(Err(other)), None) => return Ok(other),
                (Err(error), None) => return Err(error),
            };
            let keeper = Keeper::default();
            let run = self.resume(hold.state.clone(), answers).kept_by(keeper.clone());
            let run = run.output(self.output.clone().or_deferred());
            let mut ended = hold.keeping(&keeper, run.into_future()).await;
            let saved = hold.keep(&ended).await;
            put_before(before_it.map(|run| run.turns).unwrap_or_default(), &mut ended);
            match saved {
                Ok(Saved::Saved) => {}
                Ok(Saved::StaleToken) => return Ok(TakeUp::NotKept { ended, error: None }),
                Err(error) => return Ok(TakeUp::NotKept { ended, error: Some(failed(error)) }),
            }
            match ended {
                Ok(run) if self.is_decided(&run).await => before = Some(run),
                ended => return Ok(TakeUp::Resumed(ended)),
            }
        }
    }

    /// Gives up a parked run of the [ledger](Self::ledger), for example because the user sends another message: the run
    /// is over and the asks of its calls are closed, in one transaction (rule L5). The returned history says of pending
    /// calls that they did not run, because of `reason`; executed calls have their results; and calls whose end was not
    /// observed may have run.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`] when the ledger fails; the run is unchanged.
    pub async fn give_up(&self, run_id: &str, reason: &str) -> Result<TakeUp, ErrorKind> {
        let Some(ledger) = self.turn.own_ledger() else { return Ok(TakeUp::UnknownRun) };
        loop {
            let mut hold = match Hold::take(ledger, run_id).await? {
                Ok(hold) => hold,
                Err(other) => return Ok(other),
            };
            let mut asks = Vec::new();
            if let Some(turn) = hold.state.turn.take() {
                let (turn, closes) = match recorded(ledger, turn).await {
                    Ok(recorded) => recorded,
                    Err(error) => return Err(hold.given_back(error).await),
                };
                (hold.state.turn, asks) = (Some(turn), closes);
            }
            let state = json!({"given_up": reason});
            if hold.write(state, true, &asks).await.map_err(failed)? == Saved::Saved {
                return Ok(TakeUp::GivenUp(hold.state.close(reason)));
            }
        }
    }

    /// Takes a lease on the run, and reads the decisions about its calls.
    async fn taken<'l>(
        &self,
        ledger: &'l Ledger,
        run_id: &'l str,
    ) -> Result<Result<(Hold<'l>, DeferredToolResults), TakeUp>, ErrorKind> {
        let hold = match Hold::take(ledger, run_id).await? {
            Ok(hold) => hold,
            Err(other) => return Ok(Err(other)),
        };
        match self.decisions(&hold.state).await {
            Ok(answers) => Ok(Ok((hold, answers))),
            Err(error) => Err(hold.given_back(error).await),
        }
    }

    /// Whether a pending call was decided while the run was being saved. If the ledger fails here, the next worker
    /// finds the decision.
    async fn is_decided(&self, run: &RunResult) -> bool {
        let Some(suspended) = run.suspended() else { return false };
        self.decisions(suspended).await.is_ok_and(|answers| answers.answers_any())
    }
}

/// A lease that this worker holds on a run.
struct Hold<'l, S = SuspendedRun> {
    ledger: &'l Ledger,
    run_id: &'l str,
    token: u64,
    /// The snapshot of the run; `()` until it was deserialised.
    state: S,
}

impl<'l> Hold<'l> {
    /// Takes a lease on a run and reads its snapshot, or says why not.
    async fn take(ledger: &'l Ledger, run_id: &'l str) -> Result<Result<Self, TakeUp>, ErrorKind> {
        let taken = ledger.take_run(run_id, ledger.worker_name(), ledger.lease_time()).await;
        let (token, state) = match taken.map_err(failed)? {
            Taken::Taken { token, state } => (token, state),
            Taken::Held { by, since, until } => {
                return Ok(Err(TakeUp::Held { by, since, until }));
            }
            Taken::Over { result } => return Ok(Err(TakeUp::Over(result))),
            Taken::UnknownRun => return Ok(Err(TakeUp::UnknownRun)),
        };
        let hold = Hold { ledger, run_id, token, state: () };
        match serde_json::from_value(state) {
            Ok(state) => Ok(Ok(Hold { ledger, run_id, token, state })),
            Err(error) => Err(hold.given_back(ErrorKind::Ledger(error.into())).await),
        }
    }
}

impl<S> Hold<'_, S> {
    /// Renews the lease; `None` if the ledger fails.
    async fn renew(&self, lease: Duration) -> Option<Saved> {
        let run_id = self.run_id;
        let renewed = self.ledger.renew_run(run_id, self.token, lease).await;
        let failed = |error| tracing::warn!(run_id, %error, "a run could not be kept for longer");
        renewed.map_err(failed).ok()
    }

    /// Renews the lease while `going` runs.
    async fn keeping<T>(&self, keeper: &Keeper, going: impl Future<Output = T>) -> T {
        let lease = self.ledger.lease_time();
        keeper.keeping(lease, going, || self.renew(lease)).await
    }

    /// Ends the lease at once, so that the next worker need not wait until it expires. Used when nothing was resumed.
    async fn given_back(self, error: ErrorKind) -> ErrorKind {
        self.renew(Duration::ZERO).await;
        error
    }

    /// Saves the result or the snapshot of the run, and closes the asks of the calls that have their results, in one
    /// transaction (rule L5).
    async fn keep(&self, ended: &Result<RunResult, RunError>) -> Result<Saved, LedgerError> {
        let (state, over) = match ended {
            Ok(result) => match result.output() {
                RunOutput::Text(text) => (json!(text), true),
                RunOutput::Structured(value) => (value.clone(), true),
                RunOutput::Deferred(run) => (state_of(run)?, false),
            },
            Err(error) => (state_of(error.suspended())?, false),
        };
        let turns = match ended {
            Ok(result) => result.turns(),
            Err(error) => error.turns(),
        };
        self.write(state, over, &closed_asks(turns)).await
    }

    async fn write(
        &self,
        state: Value,
        over: bool,
        closes: &[String],
    ) -> Result<Saved, LedgerError> {
        let saved = RunWrite { state, token: Some(self.token), over, closes };
        self.ledger.write_run(self.run_id, saved).await
    }
}

impl Running<'_> {
    /// Saves the snapshot of the run for other workers, and closes the asks of the calls that have their results, in
    /// one transaction (rule L5).
    pub(super) async fn park(
        &self,
        state: &SuspendedRun,
        report: Option<&TurnReport>,
    ) -> Result<(), LedgerError> {
        let Some(ledger) = self.saves_itself() else { return Ok(()) };
        let (state, closes) = (state_of(state)?, closed_asks(report));
        let begun = RunWrite { state, token: None, over: false, closes: &closes };
        ledger.write_run(&self.state.run_id, begun).await.map(drop)
    }

    /// Closes the asks of the calls that have their results, in a run that continues and is not saved now.
    pub(super) async fn close_asks(&self, report: Option<&TurnReport>) -> Result<(), LedgerError> {
        let Some(ledger) = self.saves_itself() else { return Ok(()) };
        match &closed_asks(report)[..] {
            [] => Ok(()),
            asks => ledger.close_all(asks).await,
        }
    }

    /// Closes asks when the run ends with an error. A failure here is only logged, as that error counts.
    pub(super) async fn close_asks_if_possible(&self, report: Option<&TurnReport>) {
        if let Err(error) = self.close_asks(report).await {
            tracing::warn!(%error, "asks of calls that have their results could not be closed");
        }
    }

    /// The ledger in which the run saves itself; `None` for a sub-agent's run, and for one that a lease holder saves.
    fn saves_itself(&self) -> Option<&Ledger> {
        self.turn.own_ledger().filter(|_| self.turn.is_root() && self.keeper.is_none())
    }

    /// Whether the run may be parked in the ledger, so that resuming it takes a lease first. It may not be if the
    /// caller has the lease already.
    pub(super) fn resumes_parked(&self) -> bool {
        let kept = self.turn.own_ledger().is_some() && self.turn.is_root();
        kept && self.resumes && self.keeper.is_none() && self.state.waits()
    }

    /// Resumes a run under a lease if it is parked in the ledger, so that no worker takes up the previous snapshot at
    /// the same time.
    pub(super) async fn held_to_end(mut self) -> Result<RunResult, RunError> {
        let Some(ledger) = self.turn.own_ledger().cloned() else { return self.finish().await };
        let run_id = self.state.run_id.clone();
        let hold = match Hold::take(&ledger, &run_id).await {
            Ok(Ok(hold)) => hold,
            Ok(Err(TakeUp::Held { by, since, .. })) => {
                return Err(self.stop(ErrorKind::RunTaken { run: run_id.clone(), by, since }));
            }
            // The ledger has no parked state that a worker could take up. Executed calls are recorded, and their
            // results are replayed.
            Ok(Err(_)) => return self.finish().await,
            Err(error) => return Err(self.stop(error)),
        };
        if hold.state.turn != self.state.turn {
            let gone_on = ErrorKind::RunGoneOn { run: run_id.clone() };
            let error = hold.given_back(gone_on).await;
            return Err(self.stop(error));
        }
        let keeper = Keeper::default();
        self.keeper = Some(keeper.clone());
        let state = self.snapshot();
        let ended = hold.keeping(&keeper, self.finish()).await;
        match hold.keep(&ended).await {
            Ok(Saved::Saved) => ended,
            Ok(Saved::StaleToken) => Err(RunError::new(
                ErrorKind::RunGoneOn { run: run_id.clone() },
                state,
                turns(ended),
            )),
            // The state in memory is newer than the snapshot that was taken, and the ledger does not have it.
            Err(error) => {
                let state = match &ended {
                    Ok(result) => result.suspended().cloned().unwrap_or(state),
                    Err(error) => error.suspended().clone(),
                };
                Err(RunError::new(failed(error), state, turns(ended)))
            }
        }
    }
}

/// The ids of the asks to close when the run is saved after these turns, each once.
pub(crate) fn closed_asks<'a>(reports: impl IntoIterator<Item = &'a TurnReport>) -> Vec<String> {
    let asks: BTreeSet<_> = reports.into_iter().flat_map(TurnReport::closed_asks).collect();
    asks.into_iter().cloned().collect()
}

/// The snapshot of a run as JSON for the ledger.
fn state_of(run: &SuspendedRun) -> Result<Value, LedgerError> {
    serde_json::to_value(run).map_err(|error| LedgerError::Unkeepable {
        id: run.run_id().to_owned(),
        problem: error.to_string(),
    })
}

fn turns(ended: Result<RunResult, RunError>) -> Vec<TurnReport> {
    match ended {
        Ok(result) => result.turns,
        Err(error) => error.into_parts().2,
    }
}

fn failed(error: LedgerError) -> ErrorKind {
    ErrorKind::Ledger(error.into())
}
