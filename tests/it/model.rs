//! Tower's layers around a model.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use countersign::model::{ModelExt, ModelRequest, ModelResponse, ModelService};
use countersign::turn::RunEvent;
use countersign::{Agent, BoxError, Error, Message, Model, Tools};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tower::retry::Policy;
use tower::{Service, ServiceBuilder, ServiceExt as _};

use crate::support::stored;

/// The model's answer when it is asked for the nth time, from 1.
type Behaves = Arc<
    dyn Fn(usize, ModelRequest) -> BoxFuture<'static, Result<ModelResponse, BoxError>>
        + Send
        + Sync,
>;

/// A model that counts how often it is asked, and by how many at a time.
#[derive(Clone)]
struct Counted {
    asked: Arc<AtomicUsize>,
    running: Arc<Mutex<(usize, usize)>>,
    behaves: Behaves,
}

impl Counted {
    fn new<F>(behaves: impl Fn(usize, ModelRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ModelResponse, BoxError>> + Send + 'static,
    {
        let behaves: Behaves = Arc::new(move |nth, request| Box::pin(behaves(nth, request)));
        Self { asked: Arc::default(), running: Arc::default(), behaves }
    }

    /// Answers "done", after so long.
    fn taking(takes: Duration) -> Self {
        Self::new(move |_, _| async move {
            tokio::time::sleep(takes).await;
            Ok(ModelResponse::text("done"))
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn peak(&self) -> usize {
        self.running.lock().unwrap().1
    }
}

/// Counts down also when the request is dropped.
struct Running(Arc<Mutex<(usize, usize)>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

impl Model for Counted {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let _running = {
            let mut running = self.running.lock().unwrap();
            running.0 += 1;
            running.1 = running.1.max(running.0);
            Running(Arc::clone(&self.running))
        };
        (self.behaves)(nth, request).await
    }
}

fn agent(model: impl Model) -> Agent {
    Agent::new(model, Tools::none())
}

/// Sends a request again that ended with an error, so many times.
#[derive(Clone)]
struct Again(usize);

impl Policy<ModelRequest, ModelResponse, BoxError> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut ModelRequest,
        result: &mut Result<ModelResponse, BoxError>,
    ) -> Option<Ready<()>> {
        result.as_ref().err()?;
        self.0 = self.0.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &ModelRequest) -> Option<ModelRequest> {
        Some(request.clone())
    }
}

// "Whatever keeps the model from answering; the run ends with it, and can be resumed."
#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_ends_the_run_which_can_be_resumed() {
    let model = Counted::new(|nth, _| async move {
        tokio::time::sleep(Duration::from_secs(if nth == 1 { 60 } else { 1 })).await;
        Ok(ModelResponse::text("done"))
    });
    let agent = agent(model.clone().layered(ServiceBuilder::new().timeout(Duration::from_secs(5))));
    let error = agent.run("go").await.unwrap_err();
    let Error::Model(source) = error.error() else { panic!("{error:?}") };
    assert!(source.is::<tower::timeout::error::Elapsed>(), "{source:?}");
    assert_eq!(error.suspended().history(), [Message::user("go")]);
    let run = agent.ask(stored(error.suspended())).await.unwrap();
    assert_eq!((run.text(), model.asked(), run.usage().requests), (Some("done"), 2, 2));
}

#[tokio::test]
async fn a_request_is_repeated_by_a_policy_and_counts_once() {
    let model = Counted::new(|nth, request| async move {
        assert_eq!(request.messages(), [Message::user("go")]);
        if nth < 3 { Err("busy".into()) } else { Ok(ModelResponse::text("done")) }
    });
    let layered = agent(model.clone().layered(ServiceBuilder::new().retry(Again(5))));
    let run = layered.run("go").await.unwrap();
    assert_eq!((run.text(), model.asked(), run.usage().requests), (Some("done"), 3, 1));
    assert_eq!(run.history().len(), 2);
    let model = Counted::new(|_, _| ready(Err("busy".into())));
    let layered = agent(model.clone().layered(ServiceBuilder::new().retry(Again(2))));
    assert!(matches!(layered.run("go").await.unwrap_err().error(), Error::Model(_)));
    assert_eq!(model.asked(), 3);
}

/// The events, one word for each.
async fn heard(model: impl Model) -> Vec<String> {
    let agent = agent(model);
    let mut stream = agent.run_stream("go");
    let mut heard = Vec::new();
    while let Some(event) = stream.next().await {
        heard.push(match event {
            RunEvent::TextDelta { text } => text,
            RunEvent::ResponseRestarted => "(again)".to_owned(),
            RunEvent::Response { .. } => "(response)".to_owned(),
            event => format!("{event:?}"),
        });
    }
    let _ = stream.finish().await.unwrap();
    heard
}

// "The model is asked again: what was heard of the response so far is void."
#[tokio::test]
async fn streamed_deltas_always_add_up_to_the_text() {
    let again = || ServiceBuilder::new().retry(Again(5));
    let text = || Ok(ModelResponse::text("a b"));
    // Each attempt is heard.
    let speaks = Counted::new(move |nth, request| async move {
        request.text_delta("a ");
        if nth < 3 {
            return Err("cut".into());
        }
        request.text_delta("b");
        text()
    });
    let each = ["a ", "(again)", "a ", "(again)", "a ", "b", "(response)"];
    assert_eq!(heard(speaks.layered(again())).await, each);
    // An attempt that says nothing voids nothing.
    let mute = Counted::new(move |nth, request| async move {
        match nth {
            1 => request.text_delta("a "),
            2 => {}
            _ => {
                request.text_delta("a b");
                return text();
            }
        }
        Err("cut".into())
    });
    assert_eq!(heard(mute.layered(again())).await, ["a ", "(again)", "a b", "(response)"]);
    // The one that answers does not stream.
    let whole = Counted::new(move |nth, request| async move {
        if nth == 1 {
            request.text_delta("x");
            return Err("cut".into());
        }
        text()
    });
    assert_eq!(heard(whole.layered(again())).await, ["x", "(again)", "a b", "(response)"]);
    // Nothing was heard before.
    let silent =
        Counted::new(
            move |nth, _| async move { if nth == 1 { Err("cut".into()) } else { text() } },
        );
    assert_eq!(heard(silent.layered(again())).await, ["a b", "(response)"]);
    // A stream that ends early.
    let early = Counted::new(move |_, request| async move {
        request.text_delta("a");
        request.text_delta("");
        text()
    });
    assert_eq!(heard(early).await, ["a", " b", "(response)"]);
}

#[tokio::test]
async fn deltas_after_the_response_are_ignored() {
    let (late, kept) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let keeps = Arc::clone(&late);
    let model = Counted::new(move |_, request| {
        *keeps.lock().unwrap() = Some(request);
        ready(Ok(ModelResponse::text("done")))
    });
    let hears = Arc::clone(&kept);
    let agent = agent(model).watch(move |event| hears.lock().unwrap().push(format!("{event:?}")));
    let _ = agent.run("go").await.unwrap();
    late.lock().unwrap().take().unwrap().text_delta("and another thing");
    assert_eq!(kept.lock().unwrap().len(), 2, "{kept:?}");
}

// "Requests take turns at being admitted and then run side by side, so that services that cannot be cloned
// (`RateLimit`) need no `buffer`."
#[tokio::test(start_paused = true)]
async fn a_rate_limit_spreads_requests_out_and_they_run_side_by_side() {
    let model = Counted::taking(Duration::from_secs(30));
    let per_minute = ServiceBuilder::new().rate_limit(2, Duration::from_secs(60));
    let agent = agent(model.clone().layered(per_minute));
    let start = Instant::now();
    let runs = futures::future::join_all((0..4).map(|_| agent.run("go").into_future())).await;
    assert!(runs.iter().all(|run| run.as_ref().unwrap().text() == Some("done")));
    assert_eq!((model.asked(), model.peak()), (4, 2));
    assert_eq!(start.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_bounds_concurrent_requests() {
    let model = Counted::taking(Duration::from_secs(10));
    let agent = agent(model.clone().layered(ServiceBuilder::new().concurrency_limit(2)));
    let start = Instant::now();
    let runs = futures::future::join_all((0..5).map(|_| agent.run("go").into_future())).await;
    assert!(runs.iter().all(Result::is_ok));
    assert_eq!((model.asked(), model.peak(), start.elapsed().as_secs()), (5, 2, 30));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_in_the_queue_blocks_no_other() {
    let model = Counted::taking(Duration::from_secs(10));
    let agent = agent(model.clone().layered(ServiceBuilder::new().concurrency_limit(1)));
    let impatient = |secs| tokio::time::timeout(Duration::from_secs(secs), agent.run("go"));
    let (first, second, third, last) =
        tokio::join!(agent.run("go"), impatient(3), impatient(4), agent.run("go"));
    assert!(first.is_ok() && last.is_ok());
    assert!(second.is_err() && third.is_err());
    assert_eq!((model.asked(), model.peak()), (2, 1), "who gave up was never asked for");
    // And one that is dropped while it runs gives its place back.
    assert!(impatient(3).await.is_err());
    assert!(impatient(11).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_buffer_works_and_a_stack_of_layers_does() {
    let model = Counted::taking(Duration::ZERO);
    let stack = ServiceBuilder::new()
        .buffer(8)
        .retry(Again(1))
        .concurrency_limit(2)
        .timeout(Duration::from_secs(5));
    let agent = agent(model.clone().layered(stack));
    let runs = futures::future::join_all((0..4).map(|_| agent.run("go").into_future())).await;
    assert!(runs.iter().all(|run| run.as_ref().unwrap().text() == Some("done")));
    assert_eq!(model.asked(), 4);
}

/// A service of the user's own: not `Clone`, not always ready, and with an error of its own.
struct Own {
    inner: ModelService,
    ready: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("called without being ready")]
struct NotReady;

impl Service<ModelRequest> for Own {
    type Response = ModelResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ModelResponse, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if std::mem::replace(&mut self.ready, true) {
            return self.inner.poll_ready(cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, request: ModelRequest) -> Self::Future {
        if !std::mem::take(&mut self.ready) {
            return Box::pin(ready(Err(NotReady.into())));
        }
        self.inner.call(request)
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_cloned_is_called_when_it_is_ready_and_layered_once() {
    static LAYERED: AtomicUsize = AtomicUsize::new(0);
    let layer = tower::layer::layer_fn(|inner| {
        LAYERED.fetch_add(1, Ordering::Relaxed);
        Own { inner, ready: false }
    });
    let model = Counted::taking(Duration::ZERO);
    let agent = agent(model.clone().layered(layer));
    assert_eq!(LAYERED.load(Ordering::Relaxed), 0, "layers are applied at the first request");
    let runs = futures::future::join_all((0..3).map(|_| agent.run("go").into_future())).await;
    assert!(runs.iter().all(Result::is_ok), "{runs:?}");
    assert_eq!((LAYERED.load(Ordering::Relaxed), model.asked()), (1, 3));
}

// A layer whose service fails for good fails the requests, and nothing hangs.
#[tokio::test]
async fn a_service_that_is_never_ready_again_is_an_error_of_the_model() {
    struct Broken;
    impl Service<ModelRequest> for Broken {
        type Response = ModelResponse;
        type Error = BoxError;
        type Future = Ready<Result<ModelResponse, BoxError>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Err("gone".into()))
        }
        fn call(&mut self, _: ModelRequest) -> Self::Future {
            ready(Err("called".into()))
        }
    }
    let model = Counted::taking(Duration::ZERO);
    let agent = agent(model.clone().layered(tower::layer::layer_fn(|_: ModelService| Broken)));
    for _ in 0..2 {
        let error = agent.run("go").await.unwrap_err();
        let Error::Model(source) = error.error() else { panic!("{error:?}") };
        assert_eq!(source.to_string(), "gone");
    }
    assert_eq!(model.asked(), 0);
}

#[tokio::test]
async fn a_model_is_a_service_and_a_layered_model_a_model() {
    let model = Counted::taking(Duration::ZERO);
    let request = ModelRequest::new(vec![Message::user("go")]);
    let response = ModelService::new(model.clone()).oneshot(request.clone()).await.unwrap();
    assert_eq!(response.parts.len(), 1);
    let heard = Arc::new(AtomicBool::new(false));
    let hears = Arc::clone(&heard);
    let twice = model
        .clone()
        .layered(ServiceBuilder::new().timeout(Duration::from_secs(1)))
        .layered(ServiceBuilder::new().map_request(move |request: ModelRequest| {
            hears.store(true, Ordering::Relaxed);
            request.with_instructions("Be brief.")
        }));
    let _ = Model::respond(&twice, request).await.unwrap();
    assert!(heard.load(Ordering::Relaxed));
    assert_eq!(model.asked(), 2);
}
