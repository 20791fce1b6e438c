//! The ids of the requests that are being answered.
//!
//! The protocol's library keeps requests by their ids. If a second one has the id of the first, it takes its place,
//! and the response to the first is lost, also where its call has run. So we refuse the second one before we serve
//! anything of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use rmcp::ErrorData;
use rmcp::model::RequestId;

use crate::downstream::lock;
use crate::reading::Refusal;

/// The ids that are in use, each in its session of HTTP. On stdio there is one connection, without a session.
#[derive(Default)]
pub(crate) struct RequestIds {
    used: Mutex<HashSet<UsedId>>,
}

type UsedId = (Option<String>, RequestId);

impl RequestIds {
    /// Takes an id until the request is answered.
    ///
    /// # Errors
    /// The answer to the request, where an earlier one with this id is still being answered.
    pub(crate) fn take(
        self: &Arc<Self>,
        session: Option<&str>,
        id: &RequestId,
    ) -> Result<TakenId, Refusal> {
        let used = (session.map(str::to_owned), id.clone());
        if lock(&self.used).insert(used.clone()) {
            return Ok(TakenId { ids: Arc::clone(self), used });
        }
        let text = "The request was not taken: an earlier request with the same `id` is still being answered. Send it \
                    with another id. Nothing has run.";
        Err(Refusal::of(id, ErrorData::invalid_request(text, None)))
    }
}

/// An id in use. It travels with its request, and is free again when the request is dropped.
pub(crate) struct TakenId {
    ids: Arc<RequestIds>,
    used: UsedId,
}

impl Drop for TakenId {
    fn drop(&mut self) {
        lock(&self.ids.used).remove(&self.used);
    }
}
