//! Workers: they resume the runs about which something was decided. Any number, in any number of processes.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::time::{Duration, Instant};

use countersign::agent::TakeUp;
use countersign::ledger::{Ledger, LedgerError, RunRecord};
use countersign::{Agent, BoxError, SuspendedRun};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::runs::Requester;

/// The interval of polls, which find decisions of other processes and the ends of dead workers' leases.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The number of pending runs that are checked, newest first.
const LOOK_THROUGH: u32 = 1_000;
/// The time for which a run is left alone after its n-th error: 2, 4, 8 … seconds, and at most this.
const LATEST: Duration = Duration::from_secs(300);

/// Resumes runs, this many at a time, until `stop`. Runs in progress are completed.
pub(crate) async fn work(
    agent: Agent,
    ledger: Ledger,
    many: usize,
    mut decided: watch::Receiver<()>,
    mut stop: watch::Receiver<bool>,
) {
    let mut workers = Workers {
        agent,
        ledger,
        many,
        busy: JoinSet::new(),
        at_work: HashSet::new(),
        left: HashMap::new(),
    };
    while !*stop.borrow() {
        // Marked as seen before the store is read, so that no change in between is missed.
        decided.mark_unchanged();
        if let Err(error) = workers.look().await {
            tracing::warn!(error = &error as &dyn Error, "the store cannot be read");
        }
        tokio::select! {
            Some(Ok(ended)) = workers.busy.join_next() => workers.ended(ended),
            Ok(()) = decided.changed() => {}
            () = sleep(LOOK_AGAIN) => {}
            _ = stop.changed() => {}
        }
    }
    while let Some(ended) = workers.busy.join_next().await {
        ended.into_iter().for_each(|ended| workers.ended(ended));
    }
}

struct Workers {
    agent: Agent,
    ledger: Ledger,
    many: usize,
    busy: JoinSet<(String, Result<TakeUp, BoxError>)>,
    /// The runs that this process is at work on.
    at_work: HashSet<String>,
    /// The runs that are left alone: after how many errors, and until when.
    left: HashMap<String, (u32, Instant)>,
}

impl Workers {
    /// Starts all runs that can be resumed.
    async fn look(&mut self) -> Result<(), LedgerError> {
        // One that was changed outside of the ledger is left out; the inbox shows it.
        let waiting = self.ledger.waiting_runs(LOOK_THROUGH).await?.records;
        self.left.retain(|run, _| waiting.iter().any(|record| record.run == *run));
        // The oldest run comes first.
        for record in waiting.into_iter().rev() {
            let run = record.run.as_str();
            if self.busy.len() >= self.many {
                break;
            }
            let rests = self.left.get(run).is_some_and(|(_, until)| *until > Instant::now());
            if rests || self.at_work.contains(run) {
                continue;
            }
            // A run that cannot be read does not stop the others.
            match self.resumable(&record).await {
                Ok(Some(agent)) => self.begin(record.run, agent),
                Ok(None) => {}
                Err(error) => self.leave(record.run, &*error),
            }
        }
        Ok(())
    }

    /// The agent to resume the run with, if one of its calls was decided, or an error has stopped it.
    async fn resumable(&self, record: &RunRecord) -> Result<Option<Agent>, BoxError> {
        // Without the error's text, which may quote values.
        let suspended: SuspendedRun = serde_json::from_value(record.state.clone())
            .map_err(|_| "its stored state cannot be read by this version")?;
        let (requests, decided) = (suspended.requests(), self.agent.decisions(&suspended).await?);
        if !requests.is_empty() && requests.iter().all(|call| decided.is_left(call.id())) {
            return Ok(None);
        }
        // The agent works for the person who started the run, who is the requester of its later asks, too.
        let earlier = self.ledger.list_run(&record.run, u32::MAX).await?;
        // A changed row may name another requester.
        if let Some(row) = earlier.refused.into_iter().next() {
            return Err(row.error.into());
        }
        let waiting = self.agent.asks(&suspended).await?;
        let mut asks = waiting.iter().map(|(_, record)| record).chain(&earlier.records);
        let who = asks.find_map(|record| record.ask.principal());
        let agent = self.agent.clone();
        Ok(Some(who.map_or(agent.clone(), |who| agent.deps(Requester(who.to_owned())))))
    }

    fn begin(&mut self, run: String, agent: Agent) {
        self.at_work.insert(run.clone());
        self.busy.spawn(async move {
            let name = run.clone();
            // A task of its own, so that also after a panic it is known which run it was.
            let came = tokio::spawn(async move { agent.take_up(&name).await }).await;
            let panicked = |_| "its worker has panicked".into();
            (run, came.map_err(panicked).and_then(|came| came.map_err(Into::into)))
        });
    }

    fn ended(&mut self, (run, came): (String, Result<TakeUp, BoxError>)) {
        self.at_work.remove(&run);
        match came {
            Ok(TakeUp::Resumed(Err(error))) => self.leave(run, &error),
            Err(error) => self.leave(run, &*error),
            Ok(TakeUp::Resumed(Ok(result))) => {
                self.left.remove(&run);
                let waits = result.suspended().is_some();
                tracing::info!(run, waits_again = waits, "a run was resumed");
            }
            // Another worker has the lease. If that worker dies, a later poll takes the run up.
            Ok(TakeUp::Held { .. }) => {
                self.left.insert(run, (0, Instant::now() + LOOK_AGAIN));
            }
            Ok(TakeUp::NotKept { error: Some(error), .. }) => self.leave(run, &error),
            Ok(_) => {}
        }
    }

    /// Leaves a run alone for a while.
    fn leave(&mut self, run: String, error: &(dyn Error + 'static)) {
        let errors = self.left.get(&run).map_or(0, |(errors, _)| *errors).saturating_add(1);
        let wait = Duration::from_secs(1 << errors.min(9)).min(LATEST);
        tracing::warn!(run, error, ?wait, "a run has stopped with an error, and is tried again");
        self.left.insert(run, (errors, Instant::now() + wait));
    }
}
