//! The events for webhooks: asks that are new, expire soon, or are settled (rule S10).
//!
//! Webhooks follow the store and not the decisions of this process, so that asks of other processes, and those that
//! expire, are told too. The price is that an ask which was made and decided between two looks (a second) is not told
//! at all, which is the right answer for a message whose purpose is to call somebody.
//!
//! After a restart all pending asks count as new: one message too many is better than one too few.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::board::{Board, BoardItem};
use super::webhook::{Told, Webhook};
use crate::ledger::{AskState, Ledger};

/// Compares each reading of the store with the one before.
pub(super) struct Notices {
    ledger: Ledger,
    webhooks: Vec<Webhook>,
    pending: HashMap<String, Arc<BoardItem>>,
    expiring: HashSet<String>,
    /// One task sends for each webhook, so that a target that hangs delays nothing else.
    sending: JoinSet<()>,
}

impl Notices {
    pub(super) fn new(webhooks: Vec<Webhook>, ledger: Ledger) -> Self {
        let mut sending = JoinSet::new();
        for webhook in &webhooks {
            sending.spawn(webhook.clone().send());
        }
        let (pending, expiring) = Default::default();
        Self { ledger, webhooks, pending, expiring, sending }
    }

    /// Sends the changes since the reading before. All asks that are pending at the first reading are new.
    ///
    /// An ask that has gone and cannot be read is passed over; it is no decision.
    pub(super) async fn look(&mut self, board: &Board) {
        if self.sending.is_empty() {
            return;
        }
        let of = |item: &Arc<BoardItem>| (item.record.ask.id().to_owned(), Arc::clone(item));
        let now: HashMap<_, _> = board.items.iter().map(of).collect();
        for (id, item) in &now {
            if !self.pending.contains_key(id) {
                self.tell(id, &Told::of(&item.record, "new"));
            }
        }
        let gone: Vec<_> =
            self.pending.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        for id in gone {
            self.expiring.remove(&id);
            if let Ok(Some(record)) = self.ledger.get(&id).await
                && record.state != AskState::Pending
            {
                self.tell(&id, &Told::of(&record, "decided"));
            }
        }
        self.pending = now;
        self.look_at_deadlines().await;
    }

    async fn look_at_deadlines(&mut self) {
        if self.pending.values().all(|item| item.record.expires_at.is_none()) {
            return;
        }
        let Ok(now) = self.ledger.now().await else { return };
        for (id, item) in &self.pending {
            let Some(left) = item.record.expires_at.map(|at| at.saturating_sub(now)) else {
                continue;
            };
            for webhook in &self.webhooks {
                if left <= webhook.lead() && !self.expiring.contains(id) {
                    webhook.tell(id, &Told::of(&item.record, "expiring"));
                }
            }
            if self.webhooks.iter().any(|webhook| left <= webhook.lead()) {
                self.expiring.insert(id.clone());
            }
        }
    }

    fn tell(&self, id: &str, told: &Told) {
        for webhook in &self.webhooks {
            webhook.tell(id, told);
        }
    }
}
