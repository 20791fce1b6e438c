//! Layers around the calls of a set.
//!
//! Three things happen here, and only here:
//!
//! - **The layers are applied once**, at the first listing or call, inside of a runtime: `buffer` spawns its worker
//!   when it is applied, and would panic in a program that builds its tools before it starts one.
//! - **The middleware in them get numbers** ([`Level::apply`]), by which the gate sees that a call has passed each of
//!   them (rule D9). The definitions that are listed through this level carry it, so that a call knows which levels it
//!   needs.
//! - **Their names are checked** against the listed tools (rule D4) and against each other (rule D10), at the first
//!   moment at which both are known.
//!
//! We catch a panic while the layers are applied at the listing, which is always before the first call of a turn. So
//! it becomes an error with a text, instead of a panic in a task of the turn.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once, OnceLock};

use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use tower::ServiceExt as _;

use super::parts::{check_selections, warn_of_shared_names};
use super::{Stack, ToolLayer, ToolService, Tools};
use crate::call::{Applied, Level, RunContext, ToolCall, ToolDefinition};
use crate::error::BoxError;
use crate::outcome::Outcome;
use crate::telemetry::last_name;

/// In an `Arc`, shared with the definitions that are listed through it: they name the levels that their calls have to
/// pass (rule D9).
pub(super) struct Layered<L: ToolLayer>(Arc<Inner<L>>);

struct Inner<L: ToolLayer> {
    inner: Tools,
    layer: L,
    /// The layers, applied when the tools are first listed or called: `buffer` needs a runtime to spawn its worker.
    applied: OnceLock<(L::Service, Level)>,
    /// We report shared names once, not at every listing.
    checked: Once,
}

impl<L: ToolLayer> Layered<L> {
    pub(super) fn new(inner: Tools, layer: L) -> Self {
        Self(Arc::new(Inner { inner, layer, applied: OnceLock::new(), checked: Once::new() }))
    }
}

impl<L: ToolLayer> Inner<L> {
    fn applied(&self) -> &(L::Service, Level) {
        self.applied.get_or_init(|| Level::apply(|| self.layer.around(self.inner.clone())))
    }
}

impl<L> Applied for Inner<L>
where
    L: ToolLayer + Send + Sync,
    L::Service: Send + Sync,
{
    fn level(&self) -> &Level {
        &self.applied().1
    }
}

/// The tools in a set, with the level around it. A function of its own, so that it is compiled once for all types of layers.
async fn definitions(
    inner: &Tools,
    applied: Arc<dyn Applied>,
    checked: &Once,
    cx: &RunContext,
) -> Result<Vec<ToolDefinition>, BoxError> {
    let listed = inner.listed(cx).await?;
    let level = catch_unwind(AssertUnwindSafe(|| applied.level()))
        .map_err(|_| "a layer panicked when it was put around the tools")?;
    check_selections(level.parts(), &listed)?;
    let within = |definition: ToolDefinition| definition.within(Arc::clone(&applied));
    let definitions: Vec<_> = listed.into_iter().map(within).collect();
    checked.call_once(|| warn_of_shared_names(level.parts(), &definitions));
    Ok(definitions)
}

impl<L> Stack for Layered<L>
where
    L: ToolLayer<Service: ToolService> + Send + Sync + 'static,
{
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        let applied: Arc<dyn Applied> = Arc::clone(&self.0) as _;
        Box::pin(definitions(&self.0.inner, applied, &self.0.checked, cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        let (service, level) = self.0.applied();
        Box::pin(service.clone().oneshot(call.entering(level)).map_err(Into::into))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {:?}", last_name(std::any::type_name::<L>()), self.0.inner)
    }
}
