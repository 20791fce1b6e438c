//! Chats: kept like runs, one holder at a time, and listed apart from them.

use std::time::Duration;

use serde_json::Value;

use super::{RunRecord, RunWrite, Saved, Taken, read, row_id};
use crate::ledger::stored::there;
use crate::ledger::{Ledger, LedgerError, millis};

/// A chat's name among the runs.
fn key(chat: &str) -> String {
    format!("chat:{chat}")
}

impl Ledger {
    /// A chat as it stands.
    pub(crate) async fn get_chat(&self, chat: &str) -> Result<Option<Value>, LedgerError> {
        let found = there(self.store.get(&row_id(&key(chat))).await?)?;
        Ok(found.map(|found| read(&found)).transpose()?.map(|record| record.state))
    }

    /// Takes a chat, as [`take_run`](Self::take_run) takes a run. One that is not there begins as `null`.
    pub(crate) async fn hold_chat(
        &self,
        chat: &str,
        lease: Duration,
    ) -> Result<Taken, LedgerError> {
        let (key, lease, worker) = (key(chat), millis(lease), self.get_worker());
        self.on_run(&key, None, |now, record| {
            let mut record = record.unwrap_or_else(|| RunRecord::new(&key, true, now));
            match record.take(worker, lease, now) {
                taken @ Taken::Taken { .. } => (taken, Some((record, Some("run_taken")))),
                other => (other, None),
            }
        })
        .await
    }

    /// Keeps a chat for longer.
    pub(crate) async fn renew_chat(
        &self,
        chat: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Saved, LedgerError> {
        self.renew_run(&key(chat), token, lease).await
    }

    /// Saves a chat, and keeps it.
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

    /// Saves a chat and gives it up, and closes asks with it.
    pub(crate) async fn write_chat(
        &self,
        chat: &str,
        write: RunWrite<'_>,
    ) -> Result<Saved, LedgerError> {
        self.write_run(&key(chat), write).await
    }
}
