//! Layers around the calls of a set.

use std::fmt;
use std::sync::OnceLock;

use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use tower::ServiceExt as _;

use super::{Stack, ToolLayer, ToolService, Tools};
use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::error::BoxError;
use crate::outcome::Outcome;

pub(super) struct Layered<L: ToolLayer> {
    inner: Tools,
    layer: L,
    /// Applied at the first call: `buffer` spawns its worker when it is layered.
    service: OnceLock<L::Service>,
}

impl<L: ToolLayer> Layered<L> {
    pub(super) fn new(inner: Tools, layer: L) -> Self {
        Self { inner, layer, service: OnceLock::new() }
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
        Box::pin(self.inner.definitions(cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        let service = self.service.get_or_init(|| self.layer.around(self.inner.clone()));
        Box::pin(service.clone().oneshot(call).map_err(Into::into))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = std::any::type_name::<L>();
        let shown =
            layer.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(layer);
        write!(f, "{shown} > {:?}", self.inner)
    }
}
