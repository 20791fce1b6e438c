//! Layers around the calls of a set.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use tower::ServiceExt as _;

use super::{Stack, ToolLayer, ToolService, Tools};
use crate::call::{Applied, Level, RunContext, ToolCall, ToolDefinition};
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Shared with the definitions that come through it, which say what their calls have to pass.
pub(super) struct Layered<L: ToolLayer>(Arc<Shared<L>>);

struct Shared<L: ToolLayer> {
    inner: Tools,
    layer: L,
    /// Applied at the first call: `buffer` spawns its worker when it is layered.
    applied: OnceLock<(L::Service, Level)>,
}

impl<L: ToolLayer> Layered<L> {
    pub(super) fn new(inner: Tools, layer: L) -> Self {
        Self(Arc::new(Shared { inner, layer, applied: OnceLock::new() }))
    }
}

impl<L: ToolLayer> Shared<L> {
    fn applied(&self) -> &(L::Service, Level) {
        self.applied.get_or_init(|| Level::apply(|| self.layer.around(self.inner.clone())))
    }
}

impl<L> Applied for Shared<L>
where
    L: ToolLayer + Send + Sync,
    L::Service: Send + Sync,
{
    fn level(&self) -> &Level {
        &self.applied().1
    }
}

impl<L> Stack for Layered<L>
where
    L: ToolLayer<Service: ToolService> + Send + Sync + 'static,
{
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        Box::pin(async {
            let definitions = self.0.inner.definitions(cx).await?;
            let within = |definition: ToolDefinition| definition.within(Arc::clone(&self.0) as _);
            Ok(definitions.into_iter().map(within).collect())
        })
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        let (service, level) = self.0.applied();
        Box::pin(service.clone().oneshot(call.entering(level)).map_err(Into::into))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = std::any::type_name::<L>();
        let shown =
            layer.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(layer);
        write!(f, "{shown} > {:?}", self.0.inner)
    }
}
