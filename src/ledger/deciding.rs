//! Deciding about an ask, where more than its fingerprint has to fit.

use super::ask::Millis;
use super::change::Change;
use super::record::{Record, Verdict};
use super::results::Decided;
use super::rules::{self, Deciding};
use super::{Ledger, LedgerError};

impl Ledger {
    /// Decides about an ask that passes a check within the same transaction. `None` where there is no such ask.
    pub(crate) async fn decide_if<E: Send>(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        verdict: Verdict,
        check: impl Fn(&Record, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let deciding = Deciding { fingerprint: fingerprint.to_owned(), by: by.to_owned(), verdict };
        let event = |result: &Result<Decided, E>| match result {
            Ok(Decided::Won { again: false }) => Some("decided"),
            Ok(Decided::Recorded { again: false, .. }) => Some("voted"),
            _ => None,
        };
        let decide = |record: &mut Record, now| {
            check(record, now).map(|()| rules::decide(record, &deciding, now))
        };
        let made = self.change(id, Change::by(by), decide, event).await?;
        Ok(made.map(|(decided, _)| decided))
    }
}
