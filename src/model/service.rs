//! Models as tower services, and tower's layers around models.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tower::{Layer, Service, ServiceExt as _};

use super::{ErasedModel, Model, ModelRequest, ModelResponse};
use crate::error::BoxError;

/// Methods of every [`Model`].
pub trait ModelExt: Model + Sized {
    /// Puts tower layers around the requests to the model: a timeout, retries, a rate limit, your own. The first layer
    /// of a `ServiceBuilder` is outermost. The layers never measure a tool or a person.
    ///
    /// The layers are applied at the first request, inside the runtime. Requests await readiness one after the other
    /// and then run concurrently, so that services that are not `Clone` (`RateLimit`) need no `buffer`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::model::{ModelExt, ModelRequest, ModelResponse};
    /// use countersign::{BoxError, Model};
    /// use tower::ServiceBuilder;
    ///
    /// # struct Remote;
    /// # impl Model for Remote {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("")) }
    /// # }
    /// let model = Remote.layered(
    ///     ServiceBuilder::new().rate_limit(60, Duration::from_secs(60)).timeout(Duration::from_secs(90)),
    /// );
    /// # let _ = model;
    /// ```
    fn layered<L>(self, layer: L) -> LayeredModel<L>
    where
        L: Layer<ModelService> + Send + Sync + 'static,
        L::Service: Service<ModelRequest, Response = ModelResponse> + Send + 'static,
        <L::Service as Service<ModelRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ModelRequest>>::Future: Send + 'static,
    {
        LayeredModel { model: ModelService(Arc::new(self)), layer, service: OnceLock::new() }
    }
}

impl<M: Model> ModelExt for M {}

/// A model as a [`tower::Service`]; always ready.
///
/// ```
/// use countersign::message::Message;
/// use countersign::model::{ModelRequest, ModelService};
/// use countersign::testing::ScriptedModel;
/// use tower::ServiceExt;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let request = ModelRequest::new(Vec::<Message>::new());
/// let response = ModelService::new(ScriptedModel::new([])).oneshot(request).await?;
/// assert_eq!(response.parts.len(), 1);
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ModelService(Arc<dyn ErasedModel>);

impl ModelService {
    /// Wraps a model as a service.
    pub fn new(model: impl Model) -> Self {
        Self(Arc::new(model))
    }
}

impl Service<ModelRequest> for ModelService {
    type Response = ModelResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ModelResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ModelRequest) -> Self::Future {
        let model = Arc::clone(&self.0);
        Box::pin(async move { model.respond(request).await })
    }
}

/// A model with layers around it; see [`ModelExt::layered`].
///
/// We hold the lock only until the service is ready and the request has begun. So requests run at the same time, while
/// a layer that limits their rate sees them one after the other.
pub struct LayeredModel<L: Layer<ModelService>> {
    model: ModelService,
    layer: L,
    /// The layers, applied at the first request: `buffer` needs a runtime to spawn its worker.
    service: OnceLock<Mutex<L::Service>>,
}

impl<L> Model for LayeredModel<L>
where
    L: Layer<ModelService> + Send + Sync + 'static,
    L::Service: Service<ModelRequest, Response = ModelResponse> + Send + 'static,
    <L::Service as Service<ModelRequest>>::Error: Into<BoxError>,
    <L::Service as Service<ModelRequest>>::Future: Send + 'static,
{
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let service = self.service.get_or_init(|| Mutex::new(self.layer.layer(self.model.clone())));
        let response = service.lock().await.ready().await.map_err(Into::into)?.call(request);
        response.await.map_err(Into::into)
    }
}

impl fmt::Debug for ModelService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelService")
    }
}

impl<L: Layer<ModelService>> fmt::Debug for LayeredModel<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LayeredModel({})", std::any::type_name::<L>())
    }
}
