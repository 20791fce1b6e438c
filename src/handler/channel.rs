//! Batches out, answers in.

use tokio::sync::{mpsc, oneshot};

use super::{DeferredToolHandler, deny_blocked};
use crate::call::RunContext;
use crate::deferred::{DeferredToolRequests, DeferredToolResults, check};
use crate::error::BoxError;

/// A handler that sends each batch over a channel and waits for the answers: for an editor, a bot, or a page that is
/// served by another task. At most `capacity` batches wait to be received.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let (handler, mut batches) = countersign::channel(16);
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

/// One batch that waits for its answers. Dropped without an answer, it ends the run with an error, and nothing
/// deferred has executed.
#[derive(Debug)]
pub struct Batch {
    cx: RunContext,
    requests: DeferredToolRequests,
    answers: oneshot::Sender<DeferredToolResults>,
}

impl Batch {
    /// The run that waits.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.cx
    }

    /// The calls that wait.
    #[must_use]
    pub fn requests(&self) -> &DeferredToolRequests {
        &self.requests
    }

    /// Whether nobody waits for the answers any more: the run was dropped.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.answers.is_closed()
    }

    /// Waits until nobody waits for the answers any more, to take the question off a screen.
    pub async fn abandoned(&mut self) {
        self.answers.closed().await;
    }

    /// Gives the answers; says whether anybody was still waiting for them.
    #[allow(clippy::must_use_candidate, reason = "whether anybody waited seldom matters")]
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
        let rest = requests.only(|id| blocked.is_left(id));
        if rest.is_empty() {
            return Ok(blocked);
        }
        let (sender, receiver) = oneshot::channel();
        let batch = Batch { cx: cx.clone(), requests: rest.clone(), answers: sender };
        self.sender
            .send(batch)
            .await
            .map_err(|_| "nobody receives batches from the channel any more")?;
        let answers = receiver.await.map_err(|_| "the batch was dropped without an answer")?;
        check(&rest, &answers, false)?;
        Ok(blocked.then(answers))
    }
}
