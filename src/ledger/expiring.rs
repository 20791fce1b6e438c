//! What time makes of asks, where nobody looks at them.

use super::change::Change;
use super::{Ledger, LedgerError};

/// How many asks are worked through in one go.
const AT_ONCE: u32 = 256;

impl Ledger {
    /// Lets the time take effect that has passed: asks that nobody decided expire, claims whose lease is over become
    /// unknown. Gives the ids of what has changed. Deciding and claiming look at the time by themselves.
    ///
    /// # Errors
    /// [`LedgerError`]; some may have changed.
    pub async fn expire(&self) -> Result<Vec<String>, LedgerError> {
        let (mut changed, mut failed) = (Vec::new(), None);
        loop {
            let due = self.store.due(AT_ONCE).await?;
            let before = changed.len();
            for id in due {
                match self.change(&id, Change::default(), |_, _| (), |()| None).await {
                    Ok(Some(((), true))) => changed.push(id),
                    Ok(_) => {}
                    // One that cannot be read does not keep the others from expiring.
                    Err(error @ (LedgerError::Unreadable { .. } | LedgerError::Changed { .. })) => {
                        failed = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            if changed.len() == before {
                return failed.map_or(Ok(changed), Err);
            }
        }
    }
}
