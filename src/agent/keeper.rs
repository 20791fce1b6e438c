//! Who saves a run that a worker has taken: it knows whether another worker has it now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::call::keeping;
use crate::ledger::Saved;

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
