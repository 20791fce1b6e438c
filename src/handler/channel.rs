//! A handler that sends batches over a channel and receives the answers.
//!
//! The handler waits for room in the channel and for the answer, and each may never come. Both waits are bounded by
//! the run, not by a time. If you drop the run, you drop the handler, and the batch in the channel says so
//! ([`Batch::is_abandoned`], [`Batch::abandoned`]), for a surface to withdraw the question. If a surface goes away, it
//! drops the receiver or the batch. That ends the run with an error, instead of leaving it waiting for ever.

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
///
/// ```
/// use countersign::handler::channel;
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let (handler, mut batches) = channel(1);
/// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required();
/// let turn = Turn::new(tools).deferred_tool_handler(handler);
/// let run = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]);
/// let surface = async {
///     let batch = batches.recv().await.unwrap();
///     let answers = batch.requests().answer().approve("c1").answered_by("ann").build().unwrap();
///     assert!(!batch.is_abandoned());
///     batch.answer(answers)
/// };
/// let (report, heard) = tokio::join!(run, surface);
/// assert!(heard);
/// assert_eq!(report?.calls()[0].outcome().content().unwrap(), "deleted a");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
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

    /// Returns `true` if the run was dropped, so that answers would have no effect.
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
