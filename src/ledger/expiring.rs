//! Expiring asks and claims whose time is over and that no operation has touched since.

use std::collections::HashSet;

use super::change::Change;
use super::listing::RefusedRow;
use super::{Ledger, LedgerError};

/// The limit of one read of due asks, apart from those that stay due.
const AT_ONCE: u32 = 256;

/// The result of [`Ledger::expire`].
#[derive(Debug, Default)]
#[must_use]
pub struct Expired {
    /// The ids of the asks that are expired or unknown now.
    pub changed: Vec<String>,
    /// The asks whose time is over, but whose rows are refused (rule L8). They are unchanged.
    pub refused: Vec<RefusedRow>,
}

impl Ledger {
    /// Applies all deadlines and leases that are over: pending asks expire, and claimed asks become unknown. Deciding
    /// and claiming do this for their ask by themselves; a service calls this so that lists show it too. An ask that
    /// cannot be read does not keep others from expiring.
    ///
    /// # Errors
    /// [`LedgerError::Store`]; some asks may have changed before the error.
    pub async fn expire(&self) -> Result<Expired, LedgerError> {
        let mut expired = Expired::default();
        // Asks that stay due, as their rows are refused, come first in each read: the reads grow so that others follow
        // them.
        let mut stays = HashSet::new();
        loop {
            let more = u32::try_from(stays.len()).unwrap_or(u32::MAX).saturating_mul(2);
            let due = self.store.due(AT_ONCE.saturating_add(more)).await?;
            let due: Vec<_> = due.into_iter().filter(|id| !stays.contains(id)).collect();
            if due.is_empty() {
                return Ok(expired);
            }
            for id in due {
                match self.change(&id, Change::default(), |_, _| (), |()| None).await {
                    Ok(Some(((), true))) => expired.changed.push(id),
                    Ok(_) => _ = stays.insert(id),
                    Err(error @ (LedgerError::Unreadable { .. } | LedgerError::Changed { .. })) => {
                        stays.insert(id.clone());
                        expired.refused.push(RefusedRow { id, error });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
