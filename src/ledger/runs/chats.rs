//! Chats: stored as runs with a lease for one process at a time, and not listed among the runs.

use std::time::Duration;

use serde_json::Value;

use super::{RunRecord, RunWrite, Saved, Taken, read, row_id};
use crate::ledger::codec::there;
use crate::ledger::{Ledger, LedgerError, millis};

/// The id of the run that a chat is stored as.
fn key(chat: &str) -> String {
    format!("chat:{chat}")
}

impl Ledger {
    /// The stored state of a chat; `None` when there is no such chat.
    pub(crate) async fn load_chat(&self, chat: &str) -> Result<Option<Value>, LedgerError> {
        let found = there(self.store.get(&row_id(&key(chat))).await?)?;
        Ok(found.map(|found| read(&found)).transpose()?.map(|record| record.state))
    }

    /// Takes the lease on a chat, as [`take_run`](Self::take_run) does for a run. A chat that does not exist is created
    /// with the state `null`.
    pub(crate) async fn hold_chat(
        &self,
        chat: &str,
        lease: Duration,
    ) -> Result<Taken, LedgerError> {
        let (key, lease, worker) = (key(chat), millis(lease), self.worker_name());
        self.on_run(&key, None, |now, record| {
            let mut record = record.unwrap_or_else(|| RunRecord::new(&key, true, now));
            match record.take(worker, lease, now) {
                taken @ Taken::Taken { .. } => (taken, Some((record, Some("run_taken")))),
                other => (other, None),
            }
        })
        .await
    }

    /// Extends the lease on a chat, to this long from now.
    pub(crate) async fn renew_chat(
        &self,
        chat: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Saved, LedgerError> {
        self.renew_run(&key(chat), token, lease).await
    }

    /// Saves a chat without giving up the lease.
    pub(crate) async fn keep_chat(
        &self,
        chat: &str,
        token: u64,
        state: Value,
    ) -> Result<Saved, LedgerError> {
        self.on_run(&key(chat), None, |_, record| match record {
            Some(mut record) if record.token == token => {
                (record.saved, record.state) = (record.saved + 1, state.clone());
                (Saved::Saved, Some((record, Some("run_saved"))))
            }
            _ => (Saved::StaleToken, None),
        })
        .await
    }

    /// Saves a chat, gives up the lease, and closes asks, in one transaction.
    pub(crate) async fn write_chat(
        &self,
        chat: &str,
        write: RunWrite<'_>,
    ) -> Result<Saved, LedgerError> {
        self.write_run(&key(chat), write).await
    }
}
