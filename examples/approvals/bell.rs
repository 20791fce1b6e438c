//! Rings when something has happened in the store, whichever process did it: pages look again, and workers.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use countersign::ledger::{AskState, Ledger, LedgerError, RefusedRow};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// How often to look for runs that other processes have started, and to let time take effect.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many open runs are waited for at once, the newest; of the others is heard when somebody looks again.
const OPEN: u32 = 100;

/// Cheap to clone; all clones are one bell.
#[derive(Clone)]
pub(crate) struct Bell(watch::Sender<()>);

impl Bell {
    pub(crate) fn new() -> Self {
        Self(watch::channel(()).0)
    }

    pub(crate) fn ring(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    /// Waits for what becomes of each open run ([`Ledger::changed`]), and rings. Never ends.
    pub(crate) async fn watch(self, ledger: Ledger) {
        let mut watched: HashMap<String, AbortHandle> = HashMap::new();
        let mut known = HashSet::new();
        let mut waiting = JoinSet::new();
        let mut told = HashSet::new();
        loop {
            match open(&ledger).await {
                Ok((open, refused)) => {
                    for row in refused {
                        tell(&mut told, &row);
                    }
                    // Whatever became of the wait for it: a run that begins or ends rings.
                    if open != known {
                        self.ring();
                        known.clone_from(&open);
                    }
                    watched.retain(|run, waits| {
                        let stays = open.contains(run);
                        if !stays {
                            waits.abort();
                        }
                        stays
                    });
                    for run in open {
                        // The beginning of a log is behind us at once, so that a new run rings.
                        let waits = || waiting.spawn(changed(ledger.clone(), run.clone(), -1));
                        watched.entry(run.clone()).or_insert_with(waits);
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the store cannot be looked at"
                    );
                }
            }
            let again = sleep(LOOK_AGAIN);
            tokio::pin!(again);
            loop {
                tokio::select! {
                    () = &mut again => break,
                    Some(ended) = waiting.join_next() => {
                        // One that was given up says nothing.
                        let Ok((run, place)) = ended else { continue };
                        watched.remove(&run);
                        if let Ok(place) = place {
                            self.ring();
                            let waits = waiting.spawn(changed(ledger.clone(), run.clone(), place));
                            watched.insert(run, waits);
                        }
                    }
                }
            }
        }
    }
}

async fn changed(ledger: Ledger, run: String, after: i64) -> (String, Result<i64, LedgerError>) {
    let place = ledger.changed(&run, after).await;
    (run, place)
}

/// The runs of which something is to be expected, and what is refused meanwhile.
async fn open(ledger: &Ledger) -> Result<(HashSet<String>, Vec<RefusedRow>), LedgerError> {
    let mut refused = ledger.expire().await?.refused;
    let asks = ledger.list(Some(AskState::Pending), OPEN).await?;
    let runs = ledger.waiting_runs(OPEN).await?;
    let of_asks = asks.records.into_iter().map(|record| record.ask.run().to_owned());
    let open = of_asks.chain(runs.records.into_iter().map(|run| run.run)).collect();
    refused.extend(asks.refused.into_iter().chain(runs.refused));
    Ok((open, refused))
}

/// Says once of each row that it is refused, for whoever runs the service.
fn tell(told: &mut HashSet<String>, row: &RefusedRow) {
    if told.insert(row.id.clone()) {
        let error = &row.error as &dyn std::error::Error;
        tracing::error!(row = row.id, error, "a row of the store is refused: restore a backup");
    }
}
