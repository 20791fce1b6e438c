//! The downstream end of a call to a server: the target of its progress and log messages, the client that answers its
//! questions, and a slot for its unchanged result.
//!
//! The served call and the call upstream are of two connections, with a stack between them that carries arguments and
//! outcomes and nothing else. The downstream end is a dependency of the turn. So a call finds its own, also when many run at
//! the same time over one connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ProgressNotificationParam, ServerNotification,
};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

/// Asks the client's person on behalf of an upstream server, under the server's own key for the question.
pub(crate) type Elicit =
    Arc<dyn Fn(String, ElicitRequestParams) -> BoxFuture<'static, ElicitResult> + Send + Sync>;

/// A result from upstream, unchanged.
#[derive(Clone)]
pub(crate) enum Raw {
    Result(Value),
    Error(ErrorData),
}

/// The reports of a server while a call runs.
pub(crate) enum Report {
    Progress(ProgressNotificationParam),
    /// A log message, as it came.
    Log(Box<ServerNotification>),
}

/// The reports that the client of a call wants, and where they go.
pub(crate) struct Reports {
    pub(crate) to: UnboundedSender<Report>,
    pub(crate) progress: bool,
    /// The least severe log messages, where the client has set a level.
    pub(crate) logs: Option<usize>,
}

/// The served call that a call upstream belongs to; a dependency of its turn.
pub(crate) struct Downstream {
    pub(crate) reports: Option<Reports>,
    pub(crate) elicit: Option<Elicit>,
    /// The idempotency key of the approval, in place of that of the turn.
    pub(crate) key: Mutex<Option<String>>,
    raw: Mutex<Option<Raw>>,
}

impl Downstream {
    pub(crate) fn new(reports: Option<Reports>, elicit: Option<Elicit>) -> Arc<Self> {
        Arc::new(Self { reports, elicit, key: Mutex::default(), raw: Mutex::default() })
    }

    /// The receiver of progress, if the client wants it.
    pub(crate) fn progress(&self) -> Option<UnboundedSender<Report>> {
        self.reports.as_ref().filter(|it| it.progress).map(|it| it.to.clone())
    }

    /// Passes a log message on, if the client wants those of its severity.
    #[expect(deprecated, reason = "clients of earlier revisions have log messages")]
    pub(crate) fn log(&self, message: &ServerNotification) {
        let ServerNotification::LoggingMessageNotification(log) = message else { return };
        let severity = log.params.level as usize;
        let wanted = |it: &&Reports| it.logs.is_some_and(|least| severity >= least);
        if let Some(reports) = self.reports.as_ref().filter(wanted) {
            // A client that has disconnected needs no log.
            _ = reports.to.send(Report::Log(Box::new(message.clone())));
        }
    }

    pub(crate) fn put(&self, raw: Raw) {
        *lock(&self.raw) = Some(raw);
    }

    pub(crate) fn take(&self) -> Option<Raw> {
        lock(&self.raw).take()
    }
}

impl fmt::Debug for Downstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Downstream")
    }
}

/// Routes what a server sends beside its results: questions and log messages.
#[derive(Default)]
pub(crate) struct Routes {
    /// The calls in flight, by a number of their own.
    in_flight: Mutex<HashMap<u64, Option<Arc<Downstream>>>>,
}

impl Routes {
    /// Records a call in flight, until the guard is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        call: u64,
        downstream: Option<&Arc<Downstream>>,
    ) -> Routed {
        lock(&self.in_flight).insert(call, downstream.cloned());
        Routed { routes: Arc::clone(self), call }
    }

    /// The call that a message of the server belongs to, if that is certain: the only one in flight. The error says why
    /// there is none.
    ///
    /// Before the newest revision neither a question nor a log message says which call it belongs to. With two calls in
    /// flight it could reach the wrong person, so no one gets it.
    pub(crate) fn only(&self) -> Result<Arc<Downstream>, &'static str> {
        let in_flight = lock(&self.in_flight);
        let mut downstreams = in_flight.values();
        match (downstreams.next(), downstreams.next()) {
            (Some(Some(downstream)), None) => Ok(Arc::clone(downstream)),
            (Some(None), None) => Err("the call in flight has no client that can be asked"),
            (Some(_), Some(_)) => {
                Err("several calls are in flight, and it does not say which one it is about")
            }
            (None, _) => Err("no call is in flight"),
        }
    }
}

/// Ends a route when it is dropped.
pub(crate) struct Routed {
    routes: Arc<Routes>,
    call: u64,
}

impl Drop for Routed {
    fn drop(&mut self) {
        lock(&self.routes.in_flight).remove(&self.call);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Arc<Downstream> {
        let cancel =
            |_, _| -> BoxFuture<'static, ElicitResult> { Box::pin(std::future::pending()) };
        Downstream::new(None, Some(Arc::new(cancel)))
    }

    // Rule M5: a question reaches "the client of the only call in flight", also when only one of them can be asked.
    #[test]
    fn a_question_reaches_no_client_while_two_calls_are_in_flight() {
        let routes = Arc::new(Routes::default());
        assert!(routes.only().is_err());
        let can_be_asked = asked();
        let first = routes.begin(1, Some(&can_be_asked));
        assert!(routes.only().is_ok_and(|downstream| Arc::ptr_eq(&downstream, &can_be_asked)));
        for other in [Some(Downstream::new(None, None)), Some(asked()), None] {
            let second = routes.begin(2, other.as_ref());
            assert!(routes.only().is_err());
            drop(second);
            assert!(routes.only().is_ok());
        }
        drop(first);
        assert!(routes.only().is_err());
    }
}
