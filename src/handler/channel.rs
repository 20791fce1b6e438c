//! A handler that sends batches over a channel and receives the answers.

use tokio::sync::{mpsc, oneshot};

use super::{DeferredToolHandler, deny_blocked};
use crate::call::RunContext;
use crate::deferred::{DeferredToolRequests, DeferredToolResults, check};
use crate::error::BoxError;

/// Creates a handler that sends each batch over a channel and waits for the answers, for a surface in another task: an
/// editor, a bot, a web page. The channel holds up to `capacity` batches, at least one; while it is full, the handler
/// waits.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let (handler, mut batches) = countersign::handler::channel(16);
/// tokio::spawn(async move {
///     while let Some(batch) = batches.recv().await {
///         let answers = batch.requests().answer().deny_rest("not now").build();
///         if let Ok(answers) = answers {
///             batch.answer(answers);
///         }
///     }
/// });
/// # drop(handler);
/// # });
/// ```
#[must_use]
pub fn channel(capacity: usize) -> (ChannelHandler, mpsc::Receiver<Batch>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (ChannelHandler { sender }, receiver)
}

/// A handler that sends batches over a channel; see [`channel`].
#[derive(Debug, Clone)]
pub struct ChannelHandler {
    sender: mpsc::Sender<Batch>,
}

/// A batch of pending calls, sent by a [`ChannelHandler`]. A batch that is dropped without an answer ends the run with
/// an error, and no deferred call has been executed.
#[derive(Debug)]
pub struct Batch {
    cx: RunContext,
    requests: DeferredToolRequests,
    answers: oneshot::Sender<DeferredToolResults>,
}

impl Batch {
    /// The context of the run that waits for the answers.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.cx
    }

    /// The pending calls, without [blocked](DeferredToolRequests::is_blocked) ones, which the handler denies itself.
    #[must_use]
    pub fn requests(&self) -> &DeferredToolRequests {
        &self.requests
    }

    /// Whether the run was dropped, so that answers would have no effect.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.answers.is_closed()
    }

    /// Waits until the run is dropped, for a surface to withdraw the question.
    pub async fn abandoned(&mut self) {
        self.answers.closed().await;
    }

    /// Sends the answers to the run. Returns `false` if the run was dropped.
    #[allow(
        clippy::must_use_candidate,
        reason = "a surface seldom needs to know whether the run still exists"
    )]
    pub fn answer(self, answers: DeferredToolResults) -> bool {
        self.answers.send(answers).is_ok()
    }
}

impl DeferredToolHandler for ChannelHandler {
    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let blocked = deny_blocked(requests).leave_rest().build()?;
        let rest = requests.clone().only(|id| blocked.is_left(id));
        if rest.is_empty() {
            return Ok(blocked);
        }
        let (sender, receiver) = oneshot::channel();
        let batch = Batch { cx: cx.clone(), requests: rest.clone(), answers: sender };
        self.sender.send(batch).await.map_err(|_| "the receiver of the channel was dropped")?;
        let answers = receiver.await.map_err(|_| "the batch was dropped without an answer")?;
        check(&rest, &answers, false)?;
        Ok(blocked.then(answers))
    }
}
