//! The settled asks, as this process read them last.
//!
//! The two locks have two purposes. We hold `reading` for the whole reading: if ten requests come at once, only
//! one reads the store. We hold `read` for a moment, and never over an `await`. With the first lock we look at the
//! cache again, as the request before may have filled it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign::ledger::{AskRecord, AskState, Ledger, LedgerError};

/// The number of the newest asks that are searched. Older ones are in the export of the log.
pub(super) const LOOK_THROUGH: u32 = 10_000;
/// We use a reading for this many times as long as it took, and at most for [`OLDEST`].
///
/// So if a store needs a second for the history, we read it at most a fifth of the time. We read a quick one for nearly
/// each request.
const WORTH: u32 = 4;
const OLDEST: Duration = Duration::from_secs(5);

/// The settled ones among the newest asks, the latest change first.
#[derive(Default)]
pub(super) struct SettledAsks {
    pub(super) records: Vec<Arc<AskRecord>>,
    /// `true` if there are older asks, which were not searched.
    pub(super) older: bool,
}

/// Reads settled asks, once for all requests that want them at the same time.
#[derive(Default)]
pub(super) struct Past {
    reading: tokio::sync::Mutex<()>,
    read: Mutex<Option<(Arc<SettledAsks>, Instant)>>,
}

impl Past {
    /// Makes the next request read the asks again.
    pub(super) fn forget(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn at_hand(&self) -> Option<Arc<SettledAsks>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(it, _)| Arc::clone(it))
    }

    pub(super) async fn settled(&self, ledger: &Ledger) -> Result<Arc<SettledAsks>, LedgerError> {
        if let Some(settled) = self.at_hand() {
            return Ok(settled);
        }
        let _one = self.reading.lock().await;
        if let Some(settled) = self.at_hand() {
            return Ok(settled);
        }
        let begun = Instant::now();
        let listed = ledger.list(None, LOOK_THROUGH).await?;
        let older = listed.records.len() + listed.refused.len() >= LOOK_THROUGH as usize;
        let settled = listed.records.into_iter().filter(|it| it.state != AskState::Pending);
        let mut records: Vec<_> = settled.map(Arc::new).collect();
        records.sort_by(|a, b| order(b).cmp(&order(a)));
        let settled = Arc::new(SettledAsks { records, older });
        let until = Instant::now() + (begun.elapsed() * WORTH).min(OLDEST);
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Arc::clone(&settled), until));
        Ok(settled)
    }
}

/// The position of a settled ask in the history.
pub(super) fn order(record: &AskRecord) -> (i64, &str) {
    (record.changed_at, record.ask.id())
}
