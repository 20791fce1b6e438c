//! Acquiring the lease on a run or a chat (rule L5).

use std::time::Duration;

use super::lease::{Acquired, Lease};
use super::saving::{Changed, on_run};
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::ClaimRecord;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::{Ledger, millis};
use crate::ledger::rows::run_record::RunRecord;

/// Acquires the lease on a run.
pub(in crate::ledger) async fn acquire_run(
    ledger: &Ledger,
    run: &str,
    worker: &str,
    lease: Duration,
) -> Result<Acquired, LedgerError> {
    on_run(ledger, run, None, |now, record| {
        let Some(record) = record else { return (Acquired::UnknownRun, None) };
        if record.over {
            return (Acquired::Over { result: record.state }, None);
        }
        acquire(ledger, record, (worker, lease), now)
    })
    .await
}

/// Acquires the lease on a chat. A chat that does not exist is created with the state `null`.
pub(in crate::ledger) async fn acquire_chat(
    ledger: &Ledger,
    key: &str,
) -> Result<Acquired, LedgerError> {
    let (lease, worker) = (ledger.lease, ledger.worker_name());
    on_run(ledger, key, None, |now, record| {
        let record = record.unwrap_or_else(|| RunRecord::new(key, true, now));
        acquire(ledger, record, (worker, lease), now)
    })
    .await
}

/// Gives the lease on a run to a worker, unless another one has a lease that is not over.
fn acquire(
    ledger: &Ledger,
    mut record: RunRecord,
    (worker, lease): (&str, Duration),
    now: Millis,
) -> (Acquired, Option<Changed>) {
    if let Some(claim) = record.claim.as_ref().filter(|claim| now < claim.until) {
        let by = claim.worker.clone();
        return (Acquired::Held { by, since: claim.at, until: claim.until }, None);
    }
    record.token += 1;
    let until = now.saturating_add(millis(lease));
    record.claim = Some(ClaimRecord { worker: worker.to_owned(), at: Some(now), until });
    let acquired = Lease::new(ledger, (&record.run, record.token), lease, record.state.clone());
    (Acquired::Lease(acquired), Some((record, Some("run_taken"))))
}
