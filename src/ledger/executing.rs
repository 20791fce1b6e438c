//! Claiming an approved call, renewing the lease, and settling the outcome.

use std::time::Duration;

use serde_json::Value;

use super::change::Change;
use super::record::Record;
use super::results::{Claimed, Renewed, Settled};
use super::{Ledger, LedgerError, millis, rules};

impl Ledger {
    /// Claims the execution of an approved ask for `worker`. The claim lasts as long as its lease, which can be
    /// [renewed](Self::renew).
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn claim(
        &self,
        id: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Claimed, LedgerError> {
        let lease = millis(lease);
        let event = |made: &Result<(Claimed, bool), Vec<String>>| match made {
            Ok((Claimed::Claimed { .. }, _)) => Some("claimed"),
            Ok((Claimed::Aged { .. }, true)) => Some("aged"),
            _ => None,
        };
        let claim = |record: &mut Record, now| match record.ask.repeats() {
            earlier if earlier.is_empty() => {
                let before = record.state;
                let claimed = rules::claim(record, worker, lease, now);
                Ok((claimed, record.state != before))
            }
            earlier => Err(earlier),
        };
        match self.change(id, Change::by(worker), claim, event).await? {
            None => Ok(Claimed::UnknownAsk),
            Some((Ok((claimed, _)), _)) => Ok(claimed),
            Some((Err(earlier), _)) => self.claim_again(id, earlier, worker, lease).await,
        }
    }

    /// Extends the lease of a claim, to this long from now.
    ///
    /// # Errors
    /// [`LedgerError`]; the lease ends when it did before.
    pub async fn renew(
        &self,
        id: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Renewed, LedgerError> {
        let lease = millis(lease);
        let renew = |record: &mut Record, now| rules::renew(record, token, lease, now);
        let event = |(_, lost): &(Renewed, bool)| lost.then_some("renewed");
        let made = self.change(id, Change::default(), renew, event).await?;
        Ok(made.map_or(Renewed::UnknownAsk, |((renewed, _), _)| renewed))
    }

    /// Records the outcome of an execution. Of several settlements of one claim the first counts. A worker whose claim
    /// was superseded by a later one cannot settle any more (rule L2).
    ///
    /// # Errors
    /// [`LedgerError`]; the outcome is not recorded.
    pub async fn settle(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
    ) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, outcome, false).await
    }

    /// Records that the tool body has deferred: it did not run to its end, and the call is asked about anew, as another
    /// ask.
    ///
    /// # Errors
    /// [`LedgerError`]; the claim is unchanged.
    pub async fn release(&self, id: &str, token: u64) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, Value::Null, true).await
    }

    async fn settle_as(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
        released: bool,
    ) -> Result<Settled, LedgerError> {
        let event = |result: &Settled| match result {
            Settled::Settled { again: false, .. } if released => Some("released"),
            Settled::Settled { again: false, .. } => Some("settled"),
            _ => None,
        };
        let settle =
            |record: &mut Record, now| rules::settle(record, token, &outcome, released, now);
        let made = self.change(id, Change::default(), settle, event).await?;
        Ok(made.map_or(Settled::UnknownAsk, |(settled, _)| settled))
    }
}
