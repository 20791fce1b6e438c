//! Runs that are parked in a ledger, and resumed by one worker at a time under a lease (rule L5).

use std::collections::BTreeSet;
use std::future::IntoFuture as _;

use serde_json::{Value, json};

use super::Agent;
use super::result::{RunError, RunOutput, RunResult, put_before};
use super::run_loop::RunLoop;
use crate::deferred::DeferredToolResults;
use crate::error::Error;
use crate::ledger::{Acquired, Lease, Ledger, LedgerError, Millis, Saved, recorded};
use crate::message::Message;
use crate::turn::{SuspendedRun, TurnReport};

/// The result of taking up a parked run.
///
/// | result | who has the run | what the caller does |
/// |---|---|---|
/// | `Resumed` | this worker had it, and the end is saved | nothing |
/// | `NotKept` | another worker, or no one knows | logs it; the executions are recorded |
/// | `Held` | another worker | nothing: that worker takes up decisions of meanwhile |
/// | `Over`, `GivenUp` | no one | shows the end |
/// | `UnknownRun` | it is not parked (yet) | tries again later, if it has just begun |
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
        /// The reason why the ledger could not save the result; `None` when another worker has taken the run over.
        error: Option<Error>,
    },
    /// The run was [given up](Agent::give_up). This is its history, with one result for every call, to continue from.
    GivenUp(Vec<Message>),
    /// Another worker holds the lease on the run.
    Held {
        /// The name of that worker.
        by: String,
        /// The time when that worker took the run, in milliseconds since 1970 by the store's clock.
        since: Option<Millis>,
        /// The end of the lease unless it is renewed, in milliseconds since 1970 by the store's clock.
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
    /// # use countersign::agent::TakeUp;
    /// # use countersign::{Agent, Error};
    /// # async fn example(agent: Agent, run_id: &str) -> Result<(), Error> {
    /// match agent.take_up(run_id).await? {
    ///     TakeUp::Resumed(Ok(run)) => println!("{:?}", run.text()),
    ///     TakeUp::Resumed(Err(error)) => println!("stopped, and parked again: {error}"),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails before anything was resumed. An agent without a ledger returns
    /// [`TakeUp::UnknownRun`].
    pub async fn take_up(&self, run_id: &str) -> Result<TakeUp, Error> {
        let Some(ledger) = self.turn.configured_ledger() else { return Ok(TakeUp::UnknownRun) };
        let mut before: Option<RunResult> = None;
        loop {
            let taken = (self.taken(ledger, run_id).await, before.take());
            let ((lease, answers), before_it) = match taken {
                (Ok(Ok(taken)), before) => (taken, before),
                // The result of the previous round is saved, and the worker that holds the lease now continues from it.
                (_, Some(run)) => return Ok(TakeUp::Resumed(Ok(run))),
                (Ok(Err(other)), None) => return Ok(other),
                (Err(error), None) => return Err(error),
            };
            let (state, lease) = lease.take_state();
            let run = self.resume(state, answers).under_lease(lease.keeper()).or_deferred();
            let mut ended = lease.keeper().keep(run.into_future()).await;
            let saved = save(&lease, &ended).await;
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
    /// [`Error::Ledger`] when the ledger fails; the run is unchanged.
    ///
    /// ```
    /// use countersign::agent::TakeUp;
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new()).ledger(Ledger::new(MemoryStore::new()));
    /// assert!(matches!(agent.give_up("no-such-run", "another message").await?, TakeUp::UnknownRun));
    /// # Ok::<(), countersign::Error>(()) }).unwrap();
    /// ```
    pub async fn give_up(&self, run_id: &str, reason: &str) -> Result<TakeUp, Error> {
        let Some(ledger) = self.turn.configured_ledger() else { return Ok(TakeUp::UnknownRun) };
        loop {
            let (mut run, lease) = match acquire(ledger, run_id).await? {
                Ok(lease) => lease.take_state(),
                Err(other) => return Ok(other),
            };
            let asks = match self.settle_recorded(&mut run).await {
                Ok(asks) => asks,
                Err(error) => {
                    lease.keeper().release().await;
                    return Err(error);
                }
            };
            let result = json!({"given_up": reason});
            if lease.end(result, &asks).await.map_err(failed)? == Saved::Saved {
                return Ok(TakeUp::GivenUp(run.close(reason)));
            }
        }
    }

    /// Takes a lease on the run, and reads the decisions about its calls.
    async fn taken(
        &self,
        ledger: &Ledger,
        run_id: &str,
    ) -> Result<Result<(Lease<SuspendedRun>, DeferredToolResults), TakeUp>, Error> {
        let lease = match acquire(ledger, run_id).await? {
            Ok(lease) => lease,
            Err(other) => return Ok(Err(other)),
        };
        match self.decisions(lease.state()).await {
            Ok(answers) => Ok(Ok((lease, answers))),
            Err(error) => {
                lease.keeper().release().await;
                Err(error)
            }
        }
    }

    /// Sets the results that the ledger has recorded for calls of a suspended run, before the run is
    /// [closed](SuspendedRun::close) without being resumed: a call that another process has executed keeps its result,
    /// and one whose end was not observed may have run. Returns the ids of all asks of the run, to be closed when the
    /// run is saved ([`Lease::end`], [`Lease::save_and_release`]). Without a ledger there are none.
    ///
    /// If the run is parked in the ledger, [`give_up`](Self::give_up) does all of this for you.
    ///
    /// ```
    /// # use countersign::{Agent, Error, Message, SuspendedRun};
    /// # use countersign::ledger::{Ledger, Lease};
    /// # async fn example(agent: &Agent, lease: &Lease<()>, mut run: SuspendedRun) -> Result<Vec<Message>, Box<dyn std::error::Error>> {
    /// let asks = agent.settle_recorded(&mut run).await?;
    /// let history = run.close("the user has changed the subject");
    /// lease.save_and_release(serde_json::to_value(&history)?, &asks).await?;
    /// # Ok(history) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails; the run is unchanged.
    pub async fn settle_recorded(&self, run: &mut SuspendedRun) -> Result<Vec<String>, Error> {
        let (Some(ledger), Some(turn)) = (self.turn.configured_ledger(), run.turn()) else {
            return Ok(Vec::new());
        };
        let (turn, asks) = recorded(ledger, turn.clone()).await?;
        run.turn = Some(turn);
        Ok(asks)
    }

    /// Returns `true` if a pending call was decided while the run was being saved. If the ledger fails here, the next
    /// worker finds the decision.
    async fn is_decided(&self, run: &RunResult) -> bool {
        let Some(suspended) = run.suspended() else { return false };
        self.decisions(suspended).await.is_ok_and(|answers| answers.answers_any())
    }
}

/// Acquires the lease on a run and reads its snapshot, or says why not.
async fn acquire(
    ledger: &Ledger,
    run_id: &str,
) -> Result<Result<Lease<SuspendedRun>, TakeUp>, Error> {
    let (state, lease) = match ledger.acquire_run(run_id).await.map_err(failed)? {
        Acquired::Lease(lease) => lease.take_state(),
        Acquired::Held { by, since, until } => return Ok(Err(TakeUp::Held { by, since, until })),
        Acquired::Over { result } => return Ok(Err(TakeUp::Over(result))),
        Acquired::UnknownRun => return Ok(Err(TakeUp::UnknownRun)),
    };
    match serde_json::from_value(state) {
        Ok(state) => Ok(Ok(lease.with_state(state))),
        Err(error) => {
            lease.keeper().release().await;
            Err(Error::Ledger(error.into()))
        }
    }
}

/// Saves the result or the snapshot of the run, and closes the asks of the calls that have their results, in one
/// transaction (rule L5).
async fn save<T>(
    lease: &Lease<T>,
    ended: &Result<RunResult, RunError>,
) -> Result<Saved, LedgerError> {
    match ended {
        Ok(result) => {
            let closes = closed_asks(result.turns());
            let end = match result.output() {
                RunOutput::Text(text) => json!(text),
                RunOutput::Structured(value) => value.clone(),
                RunOutput::Deferred(run) => {
                    return lease.save_and_release(state_of(run)?, &closes).await;
                }
            };
            lease.end(end, &closes).await
        }
        Err(error) => {
            let closes = closed_asks(error.turns());
            lease.save_and_release(state_of(error.suspended())?, &closes).await
        }
    }
}

impl RunLoop<'_> {
    /// Saves the snapshot of the run for other workers, and closes the asks of the calls that have their results, in
    /// one transaction (rule L5).
    pub(super) async fn park(
        &self,
        state: &SuspendedRun,
        report: Option<&TurnReport>,
    ) -> Result<(), LedgerError> {
        let Some(ledger) = self.saves_itself() else { return Ok(()) };
        let (state, closes) = (state_of(state)?, closed_asks(report));
        ledger.create_run(&self.state.run_id, state, &closes).await.map(drop)
    }

    /// Closes the asks of the calls that have their results, in a run that continues without being saved.
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
        self.turn.configured_ledger().filter(|_| self.turn.is_root() && !self.is_saved_by_caller)
    }

    /// Returns `true` if the run may be parked in the ledger, so that resuming it takes a lease first. It may not be
    /// if the caller has the lease already.
    pub(super) fn resumes_parked(&self) -> bool {
        let kept = self.turn.configured_ledger().is_some() && self.turn.is_root();
        kept && self.resumes && !self.is_saved_by_caller && self.state.waits()
    }

    /// Resumes a run under a lease if it is parked in the ledger. No other worker can take up the previous snapshot
    /// then.
    pub(super) async fn held_to_end(mut self) -> Result<RunResult, RunError> {
        let Some(ledger) = self.turn.configured_ledger().cloned() else {
            return self.finish().await;
        };
        let run_id = self.state.run_id.clone();
        let (stored, lease) = match acquire(&ledger, &run_id).await {
            Ok(Ok(lease)) => lease.take_state(),
            Ok(Err(TakeUp::Held { by, since, .. })) => {
                return Err(self.stop(Error::RunTaken { run: run_id.clone(), by, since }));
            }
            // The ledger has no parked state that a worker could take up. Executed calls are recorded, and their
            // results are replayed.
            Ok(Err(_)) => return self.finish().await,
            Err(error) => return Err(self.stop(error)),
        };
        if stored.turn != self.state.turn {
            lease.keeper().release().await;
            return Err(self.stop(Error::RunGoneOn { run: run_id.clone() }));
        }
        (self.is_saved_by_caller, self.lease) = (true, Some(lease.keeper().clone()));
        let state = self.snapshot();
        let ended = lease.keeper().keep(self.finish()).await;
        match save(&lease, &ended).await {
            Ok(Saved::Saved) => ended,
            Ok(Saved::StaleToken) => {
                Err(RunError::new(Error::RunGoneOn { run: run_id.clone() }, state, turns(ended)))
            }
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
fn closed_asks<'a>(reports: impl IntoIterator<Item = &'a TurnReport>) -> Vec<String> {
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

fn failed(error: LedgerError) -> Error {
    Error::Ledger(error.into())
}
