//! A stand-in for the library's terminal handler.

use countersign::{
    BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext,
};

#[derive(Clone)]
pub(crate) struct TerminalHandler;

impl DeferredToolHandler for TerminalHandler {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Ok(requests.answer().deny_rest("not yet").build()?)
    }
}
