//! The responses with outcomes of approved calls that are being written.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::time::Instant;

use crate::downstream::lock;

/// The time that a response may take to be written. Afterwards its outcome counts as not delivered.
const WRITING: Duration = Duration::from_secs(30);

/// The responses with the outcomes of approved calls that are not written yet.
#[derive(Default)]
pub(crate) struct Responses(Mutex<HashMap<RequestId, (Instant, Vec<String>)>>);

impl Responses {
    /// Records that the response to this request has the outcomes of these asks.
    pub(crate) fn begin(&self, request: RequestId, asks: Vec<String>) {
        let mut writing = lock(&self.0);
        // The library drops the response to a request that was cancelled at the last moment.
        writing.retain(|_, (since, _)| since.elapsed() < WRITING);
        writing.insert(request, (Instant::now(), asks));
    }

    /// Returns `true` if the outcome of this ask is being written. Then an equal call of the same client is
    /// another one.
    pub(crate) fn writes(&self, ask: &str) -> bool {
        let writing = lock(&self.0);
        let mut current = writing.values().filter(|(since, _)| since.elapsed() < WRITING);
        current.any(|(_, asks)| asks.iter().any(|it| it == ask))
    }

    /// The asks whose outcomes the response to this request has.
    pub(crate) fn asks(&self, request: &RequestId) -> Vec<String> {
        lock(&self.0).get(request).map(|(_, asks)| asks.clone()).unwrap_or_default()
    }

    /// Records that the response was written, or could not be.
    pub(crate) fn end(&self, request: &RequestId) {
        lock(&self.0).remove(request);
    }
}
