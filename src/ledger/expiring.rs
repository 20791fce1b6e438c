//! What time makes of asks, where nobody looks at them.

use std::collections::HashSet;

use super::change::Change;
use super::listing::RefusedRow;
use super::{Ledger, LedgerError};

/// How many asks are worked through in one go.
const AT_ONCE: u32 = 256;

/// What the time that has passed has come to.
#[derive(Debug, Default)]
#[must_use]
pub struct Expired {
    /// The ids of the asks that have changed.
    pub changed: Vec<String>,
    /// The asks whose time is over and that are refused, so that they stay as they are (rule L8).
    pub refused: Vec<RefusedRow>,
}

impl Ledger {
    /// Lets the time take effect that has passed: asks that nobody decided expire, claims whose lease is over become
    /// unknown. Deciding and claiming look at the time by themselves. An ask that cannot be read keeps no other from
    /// expiring.
    ///
    /// # Errors
    /// [`LedgerError::Store`]; some may have changed.
    pub async fn expire(&self) -> Result<Expired, LedgerError> {
        let mut expired = Expired::default();
        // What stays due is due first, each time.
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
