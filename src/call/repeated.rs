//! Requests of a client that repeat one whose ask is open.
//!
//! Some clients have no memory of their calls, for example those behind a hook or a server: they are told to call again
//! when a person has approved. To the stack the second request is another call, in another turn. To the person, and to a
//! limit that counts calls, it is the same one. Only the door that receives the requests can tell the two apart.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::decision::ToolDecision;

type Holds = dyn Fn(ToolDecision) -> BoxFuture<'static, bool> + Send + Sync;

/// Tells layers whether a request repeats an earlier one whose ask is open: a dependency of the turn, set by a door that
/// makes a turn for each request ([`Turn::deps`](crate::Turn::deps)).
///
/// A layer that counts calls (rules in a file, with `at_most`) asks it about the calls of the turn's own response, not
/// about those of agents below, and does not count a call for which the answer is `true`. A door that answers so keeps
/// this promise: such a call only runs by the approval of that open ask. Otherwise it is decided about again, and
/// counted.
///
/// ```
/// use countersign::call::RepeatedRequest;
/// use countersign::decision::ToolDecision;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // A door that knows of an open ask: a call that is allowed does not wait for it.
/// let request = RepeatedRequest::new(|decision| Box::pin(async move { decision == ToolDecision::Ask }));
/// assert!(request.holds(ToolDecision::Ask).await);
/// assert!(!request.holds(ToolDecision::Allow).await);
/// # });
/// ```
#[derive(Clone)]
pub struct RepeatedRequest(Arc<Holds>);

impl RepeatedRequest {
    /// Calls this function with the decision of the layer that wants to count, before it counts.
    pub fn new(
        holds: impl Fn(ToolDecision) -> BoxFuture<'static, bool> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(holds))
    }

    /// Returns `true` if the request repeats one whose ask is open, so that a layer with this decision counts nothing.
    pub async fn holds(&self, decision: ToolDecision) -> bool {
        (self.0)(decision).await
    }
}

impl fmt::Debug for RepeatedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepeatedRequest").finish_non_exhaustive()
    }
}
