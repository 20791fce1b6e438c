//! The news for webhooks: which asks are new, expire soon, or are settled (rule S10). Of all processes over a store, one
//! tells a webhook, under a lease. The row of the lease has what was told, so the next process tells the rest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;

use super::board::{Board, BoardItem};
use super::webhook::{Told, Webhook};
use countersign::ledger::{Acquired, AskRecord, AskState, Lease, LeaseKeeper, Ledger, Millis};

/// The time from the death of the process that tells a webhook until another one does.
const LEASE: Duration = Duration::from_secs(15);
/// The pause after which a process that does not tell looks again whether it may.
const AGAIN: Duration = Duration::from_secs(2);
/// The age up to which we remember single asks. All older ones are known to have been told.
const RECENT: Millis = 60_000;
/// The number of newest asks that are searched for those that were settled while no process told.
const SETTLED: u32 = 1_000;

/// The news that were told, as the store has them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Mark {
    /// Up to when, by the store's clock.
    until: Millis,
    /// The recent asks that are pending, and were told as new.
    new: HashSet<String>,
    /// The asks that were settled recently, and told so.
    decided: HashSet<String>,
    /// The pending asks that were told as expiring.
    expiring: HashSet<String>,
}

/// The webhooks of a process, of which it tells those whose lease it has.
pub(super) struct Notices(Vec<Target>);

struct Target {
    webhook: Webhook,
    ledger: Ledger,
    tried: Option<Instant>,
    telling: Option<Telling>,
}

/// Compares each reading of the store with the one before.
struct Telling {
    keeper: LeaseKeeper,
    pending: HashMap<String, Arc<BoardItem>>,
    expiring: HashSet<String>,
    /// The asks that were told as settled in the last minute, with the time.
    decided: Vec<(Millis, String)>,
    /// The task that sends. A target that hangs delays nothing else. The task ends with this value.
    _sending: JoinSet<()>,
}

impl Notices {
    pub(super) fn new(webhooks: Vec<Webhook>, ledger: &Ledger) -> Self {
        let target = |webhook| Target {
            webhook,
            ledger: ledger.clone().lease(LEASE),
            tried: None,
            telling: None,
        };
        Self(webhooks.into_iter().map(target).collect())
    }

    /// Sends the changes since the reading before. All asks that are pending at the very first reading of a store are new.
    pub(super) async fn look(&mut self, board: &Board) {
        for target in &mut self.0 {
            target.look(board).await;
        }
    }

    /// Stops telling, and lets another process begin. News that were not sent are not marked as
    /// told.
    pub(super) async fn release(&mut self) {
        for telling in self.0.drain(..).filter_map(|target| target.telling) {
            telling.keeper.release().await;
        }
    }
}

impl Target {
    async fn look(&mut self, board: &Board) {
        if self.telling.as_ref().is_some_and(|telling| telling.keeper.is_lost()) {
            self.telling = None;
            self.webhook.forget();
        }
        if self.telling.is_none() && self.tried.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.begin(board).await;
        }
        if let Some(telling) = &mut self.telling {
            telling.look(&self.ledger, &self.webhook, board).await;
        }
    }

    /// Begins to tell, where no other process does.
    async fn begin(&mut self, board: &Board) {
        self.tried = Some(Instant::now());
        // This row outlasts runs, and each process that knows the webhook finds it.
        let acquired = self.ledger.acquire_chat(&self.webhook.key()).await;
        let lease = match acquired {
            Ok(Acquired::Lease(lease)) => lease,
            Ok(_) => return,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "it is not known whether another process tells a webhook");
                return;
            }
        };
        let mark = Option::<Mark>::deserialize(lease.state()).ok().flatten();
        let (_, lease) = lease.take_state();
        let known =
            |item: &&Arc<BoardItem>| mark.as_ref().is_some_and(|mark| mark.has(&item.record));
        let known = board.items.iter().filter(known);
        let pending = known.map(|it| (it.record.ask.id().to_owned(), Arc::clone(it))).collect();
        if let Some(mark) = &mark {
            self.tell_settled(mark).await;
        }
        let mark = mark.unwrap_or_default();
        self.telling = Some(Telling {
            keeper: lease.keeper().clone(),
            pending,
            decided: mark.decided.into_iter().map(|id| (mark.until, id)).collect(),
            expiring: mark.expiring,
            _sending: sending(self.webhook.clone(), lease),
        });
    }

    /// Tells of the asks that were settled since the process before has told of any.
    async fn tell_settled(&self, mark: &Mark) {
        let Ok(listed) = self.ledger.list(None, SETTLED).await else { return };
        for record in listed.records {
            let at = record.decision.as_ref().map_or(record.changed_at, |decision| decision.at);
            let since = at > mark.until.saturating_sub(RECENT);
            let id = record.ask.id();
            let settled = record.state != AskState::Pending && !mark.decided.contains(id);
            // An ask that was never told as pending, such as one that a grant has answered, is not told as settled.
            if settled && since && mark.has(&record) {
                self.webhook.tell(id, &Told::of(&record, "decided"));
            }
        }
    }
}

fn sending(webhook: Webhook, lease: Lease<()>) -> JoinSet<()> {
    let mut sending = JoinSet::new();
    sending.spawn(async move {
        let keeper = lease.keeper().clone();
        keeper.keep(webhook.send(&lease)).await;
    });
    sending
}

impl Mark {
    /// Returns `true` if the ask was told as new: it was pending then.
    fn has(&self, record: &AskRecord) -> bool {
        let recent = record.parked_at > self.until.saturating_sub(RECENT);
        if recent { self.new.contains(record.ask.id()) } else { true }
    }
}

impl Telling {
    async fn look(&mut self, ledger: &Ledger, webhook: &Webhook, board: &Board) {
        let of = |item: &Arc<BoardItem>| (item.record.ask.id().to_owned(), Arc::clone(item));
        let now: HashMap<_, _> = board.items.iter().map(of).collect();
        let mut told = false;
        for (id, item) in now.iter().filter(|(id, _)| !self.pending.contains_key(*id)) {
            webhook.tell(id, &Told::of(&item.record, "new"));
            told = true;
        }
        let gone: Vec<_> =
            self.pending.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        for id in gone {
            self.expiring.remove(&id);
            if let Ok(Some(record)) = ledger.get(&id).await
                && record.state != AskState::Pending
            {
                webhook.tell(&id, &Told::of(&record, "decided"));
                self.decided.push((record.changed_at, id));
                told = true;
            }
        }
        self.pending = now;
        let timed = self.pending.values().any(|item| item.record.expires_at.is_some());
        if !timed && !told {
            return;
        }
        let Ok(now) = ledger.now().await else { return };
        if self.look_at_deadlines(webhook, now) || told {
            webhook.mark(json!(self.mark(now)));
        }
    }

    /// Tells which asks expire soon; whether there were any.
    fn look_at_deadlines(&mut self, webhook: &Webhook, now: Millis) -> bool {
        let mut told = false;
        for (id, item) in &self.pending {
            let left = item.record.expires_at.map(|at| at.saturating_sub(now));
            let soon = left.is_some_and(|left| left <= webhook.lead());
            if soon && self.expiring.insert(id.clone()) {
                webhook.tell(id, &Told::of(&item.record, "expiring"));
                told = true;
            }
        }
        told
    }

    fn mark(&mut self, until: Millis) -> Mark {
        let recent = until.saturating_sub(RECENT);
        self.decided.retain(|(at, _)| *at > recent);
        let new = self.pending.iter().filter(|(_, item)| item.record.parked_at > recent);
        Mark {
            until,
            new: new.map(|(id, _)| id.clone()).collect(),
            decided: self.decided.iter().map(|(_, id)| id.clone()).collect(),
            expiring: self.expiring.clone(),
        }
    }
}
