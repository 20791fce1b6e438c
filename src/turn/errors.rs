//! The mapping of errors of layers to outcomes (rule T8).
//!
//! | error | not started | end unknown | finished |
//! |---|---|---|---|
//! | tower's: a time-out, a full limit, a closed buffer | "did not run" | "may have run" | the recorded outcome |
//! | any other | ends the response | ends the response | ends the response |
//!
//! The text depends on the gate's record and not on the layer. A timeout outside of a retry does not know whether one
//! of the attempts has reached the tool, and a model that reads "did not run" calls again.

use std::sync::Arc;

use tower::buffer::error::{Closed, ServiceError};
use tower::load_shed::error::Overloaded;
use tower::timeout::error::Elapsed;

use crate::call::{Execution, RunContext, ToolCall};
use crate::error::BoxError;
use crate::gate::MAY_HAVE_RUN;
use crate::middleware::ToolCallError;
use crate::outcome::Outcome;

/// Maps an error of a layer to an outcome for the model; `None` ends the response with the error.
pub(super) type ErrorOutcome =
    Arc<dyn Fn(&RunContext, &ToolCall, &ToolCallError) -> Option<Outcome> + Send + Sync>;

/// Tower's errors become outcomes that say whether the tool ran; everything else ends the response.
pub(super) fn default_outcome(
    _: &RunContext,
    _: &ToolCall,
    failed: &ToolCallError,
) -> Option<Outcome> {
    let what = tower_error(&failed.error)?;
    Some(match &failed.execution {
        Execution::NotStarted => Outcome::failed(format!("The tool did not run: {what}.")),
        Execution::Unknown => Outcome::unknown(format!("{MAY_HAVE_RUN} ({what})")),
        Execution::Finished(outcome) => outcome.clone(),
        Execution::FinishedWithError => return None,
    })
}

fn tower_error(error: &BoxError) -> Option<&'static str> {
    if error.is::<Elapsed>() {
        Some("it took too long")
    } else if error.is::<Overloaded>() {
        Some("too many calls are running")
    } else if error.is::<Closed>() || error.is::<ServiceError>() {
        Some("its queue is closed")
    } else {
        None
    }
}
