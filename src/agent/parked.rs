//! Runs that a ledger keeps: parked when they wait, and resumed by one worker at a time (rule L5).

use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::Agent;
use super::result::{RunError, RunOutput, RunResult, put_before};
use super::running::Running;
use crate::call::keeping;
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::ledger::{Ledger, LedgerError, Millis, RunWrite, Saved, Taken, recorded};
use crate::message::Message;
use crate::turn::{SuspendedRun, TurnReport};

/// What became of a parked run.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeUp {
    /// This worker has resumed it, and it came to this. A run that waits again, or that an error stopped, is parked
    /// again.
    Resumed(Result<RunResult, RunError>),
    /// This worker has resumed it, and what it came to was not kept: the run stands in the ledger as it stood before.
    /// What was executed is recorded there, and does not run again.
    NotKept {
        /// What it came to here.
        ended: Result<RunResult, RunError>,
        /// Why the ledger could not keep it; `None` when another worker has taken the run over.
        error: Option<ErrorKind>,
    },
    /// It was [given up](Agent::give_up). This is its history, with one result for every call, to go on with.
    GivenUp(Vec<Message>),
    /// Another worker resumes it.
    Held {
        /// Which.
        by: String,
        /// Since when: milliseconds since 1970, by the store's clock.
        since: Option<Millis>,
        /// Until when, unless it renews: milliseconds since 1970, by the store's clock.
        until: Millis,
    },
    /// It is over, and came to this: its text, its structured answer, or why it was given up, as `{"given_up": reason}`.
    Over(Value),
    /// The ledger has no such run, or not yet: the asks of a run are there before the run is.
    UnknownRun,
}

impl Agent {
    /// Resumes a run that the [ledger](Self::ledger) keeps, with what was decided about its calls since; calls that
    /// nobody has decided about, and calls that another worker executes right now, go on waiting. Of any number of
    /// workers one resumes it, the others are told. While it does, the run is kept for it; when it dies, another worker
    /// can take the run up after the [lease](crate::ledger::Ledger::lease), and what was executed does not run again. A
    /// worker that was away for longer than that ends what it has begun, and begins nothing more.
    ///
    /// What it came to is kept in one transaction with the asks of the calls that have got their results, which are
    /// closed (rule L5). What was decided by then is taken up before this returns: whoever decides while a run is held,
    /// and is told so, need not come back.
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
    /// [`ErrorKind::Ledger`] when the ledger cannot answer, before anything was resumed; without a ledger no run is
    /// known.
    pub async fn take_up(&self, run_id: &str) -> Result<TakeUp, ErrorKind> {
        let Some(ledger) = self.turn.get_ledger() else { return Ok(TakeUp::UnknownRun) };
        let mut before: Option<RunResult> = None;
        loop {
            let taken = (self.taken(ledger, run_id).await, before.take());
            let ((hold, answers), before_it) = match taken {
                (Ok(Ok(taken)), before) => (taken, before),
                // What it came to before is kept, and whoever has it now goes on with it.
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

    /// Gives up a run that the [ledger](Self::ledger) keeps, as when somebody says something else meanwhile: it is over,
    /// and the asks of its calls are closed, in one transaction (rule L5). The model is told of calls that wait that
    /// they did not run, because of `reason`; of those that were executed, what came of them; and of those whose end was
    /// not seen, that they may have run.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`]; the run stands as it was.
    pub async fn give_up(&self, run_id: &str, reason: &str) -> Result<TakeUp, ErrorKind> {
        let Some(ledger) = self.turn.get_ledger() else { return Ok(TakeUp::UnknownRun) };
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

    /// Takes the run, with what was decided about its calls.
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

    /// Whether anything was decided about what waits while it was saved. Should the ledger not say, whoever takes the
    /// run up next finds it.
    async fn is_decided(&self, run: &RunResult) -> bool {
        let Some(suspended) = run.suspended() else { return false };
        self.decisions(suspended).await.is_ok_and(|answers| answers.answers_any())
    }
}

/// Who saves a run that was taken up.
#[derive(Clone, Default)]
pub(crate) struct Keeper {
    /// Another worker has taken it over.
    lost: Arc<AtomicBool>,
}

impl Keeper {
    /// Keeps what was taken, while something goes on with it; it is told when another worker has it.
    pub(crate) async fn keeping<T, R: Future<Output = Option<Saved>>>(
        &self,
        lease: Duration,
        going: impl Future<Output = T>,
        renew: impl Fn() -> R,
    ) -> T {
        let renew = async || {
            if renew().await == Some(Saved::StaleToken) {
                self.lost.store(true, Ordering::Release);
            }
        };
        keeping(lease, going, renew).await
    }

    /// Whether another worker has it now: nothing more is begun here.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

/// A run that this worker has taken.
struct Hold<'l, S = SuspendedRun> {
    ledger: &'l Ledger,
    run_id: &'l str,
    token: u64,
    /// Where it stands, once it is read.
    state: S,
}

impl<'l> Hold<'l> {
    /// Takes a run, or says why not.
    async fn take(ledger: &'l Ledger, run_id: &'l str) -> Result<Result<Self, TakeUp>, ErrorKind> {
        let taken = ledger.take_run(run_id, ledger.get_worker(), ledger.get_lease()).await;
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
    /// Keeps the run for longer, if the ledger can be reached.
    async fn renew(&self, lease: Duration) -> Option<Saved> {
        let run_id = self.run_id;
        let renewed = self.ledger.renew_run(run_id, self.token, lease).await;
        let failed = |error| tracing::warn!(run_id, %error, "a run could not be kept for longer");
        renewed.map_err(failed).ok()
    }

    /// Keeps the run while something goes on with it.
    async fn keeping<T>(&self, keeper: &Keeper, going: impl Future<Output = T>) -> T {
        let lease = self.ledger.get_lease();
        keeper.keeping(lease, going, || self.renew(lease)).await
    }

    /// Nothing was resumed: whoever comes next need not wait for the end of the lease.
    async fn given_back(self, error: ErrorKind) -> ErrorKind {
        self.renew(Duration::ZERO).await;
        error
    }

    /// Keeps what the run came to, for now or for good, and closes the asks of the calls that have got their results.
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
    /// Parks the run for another worker, and closes the asks of calls that have got their results with it.
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

    /// Closes the asks of calls that have got their results, where the run is not saved with them.
    pub(super) async fn close_asks(&self, report: Option<&TurnReport>) -> Result<(), LedgerError> {
        let Some(ledger) = self.saves_itself() else { return Ok(()) };
        match &closed_asks(report)[..] {
            [] => Ok(()),
            asks => ledger.close_all(asks).await,
        }
    }

    /// The same, where the run ends with another error.
    pub(super) async fn close_asks_if_possible(&self, report: Option<&TurnReport>) {
        if let Err(error) = self.close_asks(report).await {
            tracing::warn!(%error, "asks of calls that have their results could not be closed");
        }
    }

    /// The ledger, where the run is parked by itself: it is no sub-agent's, and no worker has taken it.
    fn saves_itself(&self) -> Option<&Ledger> {
        self.turn.get_ledger().filter(|_| self.turn.is_root() && self.keeper.is_none())
    }

    /// Whether it may be a run that the ledger keeps, and nobody has taken it for this.
    pub(super) fn resumes_parked(&self) -> bool {
        let kept = self.turn.get_ledger().is_some() && self.turn.is_root();
        kept && self.resumes && self.keeper.is_none() && self.state.waits()
    }

    /// Resumes a run, and holds it meanwhile where the ledger keeps it: no worker takes it up from where it stood.
    pub(super) async fn held_to_end(mut self) -> Result<RunResult, RunError> {
        let Some(ledger) = self.turn.get_ledger().cloned() else { return self.finish().await };
        let run_id = self.state.run_id.clone();
        let hold = match Hold::take(&ledger, &run_id).await {
            Ok(Ok(hold)) => hold,
            Ok(Err(TakeUp::Held { by, since, .. })) => {
                return Err(self.stop(ErrorKind::RunTaken { run: run_id.clone(), by, since }));
            }
            // Nobody can take it up. What was executed is recorded, and told again.
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
            // What the ledger could not save is still in memory, and newer than the state that was taken.
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

/// The asks that are closed with the state that these reports led to.
pub(crate) fn closed_asks<'a>(reports: impl IntoIterator<Item = &'a TurnReport>) -> Vec<String> {
    let asks: BTreeSet<_> = reports.into_iter().flat_map(TurnReport::closed_asks).collect();
    asks.into_iter().cloned().collect()
}

/// A run as the ledger keeps it.
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
