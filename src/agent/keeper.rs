//! State that a run shares with the caller that saves it: whether the lease on the run was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::call::keeping;
use crate::ledger::Saved;

/// Connects a run with the caller that saves it and holds the lease on it.
#[derive(Clone, Default)]
pub(crate) struct Keeper {
    /// Whether another worker has taken the run over.
    lost: Arc<AtomicBool>,
}

impl Keeper {
    /// Renews a lease while `going` runs, and records it when the lease was lost to another worker.
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

    /// Whether the lease was lost. The run then starts nothing more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}
