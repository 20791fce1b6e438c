//! The connection of a served call with the upstream server: the target of progress, the client that answers questions,
//! and a slot for the unchanged result.
//!
//! The served call and the call upstream are two protocols with a stack between them, which carries arguments and
//! outcomes and nothing else. A site is a dependency of the turn, so a call finds its own, also when many run at the
//! same time over one connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, ProgressNotificationParam};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

/// Asks the client's person on behalf of an upstream server, under the server's own key for the question.
pub(super) type Elicit =
    Arc<dyn Fn(String, ElicitRequestParams) -> BoxFuture<'static, ElicitResult> + Send + Sync>;

/// A result from upstream, unchanged.
#[derive(Clone)]
pub(super) enum Raw {
    Result(Value),
    Error(ErrorData),
}

/// The served call that a call upstream belongs to; a dependency of its turn.
pub(super) struct Site {
    pub(super) progress: Option<UnboundedSender<ProgressNotificationParam>>,
    pub(super) elicit: Option<Elicit>,
    /// The idempotency key of the approval, in place of that of the turn.
    pub(super) key: Mutex<Option<String>>,
    raw: Mutex<Option<Raw>>,
}

impl Site {
    pub(super) fn new(
        progress: Option<UnboundedSender<ProgressNotificationParam>>,
        elicit: Option<Elicit>,
    ) -> Arc<Self> {
        Arc::new(Self { progress, elicit, key: Mutex::default(), raw: Mutex::default() })
    }

    pub(super) fn put(&self, raw: Raw) {
        *lock(&self.raw) = Some(raw);
    }

    pub(super) fn take(&self) -> Option<Raw> {
        lock(&self.raw).take()
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Site")
    }
}

/// Routes the questions that a server sends while calls are in flight.
#[derive(Default)]
pub(super) struct Routes {
    /// The calls in flight whose clients can be asked, by a number of their own.
    asking: Mutex<HashMap<u64, Elicit>>,
}

impl Routes {
    /// Routes a server's questions to this client, until the guard is dropped.
    pub(super) fn asking(self: &Arc<Self>, call: u64, elicit: Option<&Elicit>) -> Option<Routed> {
        lock(&self.asking).insert(call, Arc::clone(elicit?));
        Some(Routed { routes: Arc::clone(self), call })
    }

    /// The client to ask, if it is certain which one: that of the only call in flight.
    ///
    /// Before the newest revision a server's question does not say which call it belongs to. With two calls in flight
    /// it could be shown to the wrong person, so then no one is asked.
    pub(super) fn only_asker(&self) -> Option<Elicit> {
        let asking = lock(&self.asking);
        let mut askers = asking.values();
        askers.next().filter(|_| asking.len() == 1).cloned()
    }
}

/// Ends a route when it is dropped.
pub(super) struct Routed {
    routes: Arc<Routes>,
    call: u64,
}

impl Drop for Routed {
    fn drop(&mut self) {
        lock(&self.routes.asking).remove(&self.call);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
