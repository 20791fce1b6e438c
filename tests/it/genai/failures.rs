//! Failures of requests: every error says what happened, and the run can be resumed.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::agent::RunError;
use countersign::model::{ModelExt, ModelRequest, ModelResponse};
use countersign::turn::RunEvent;
use countersign::{Agent, BoxError, DeferredToolResults, Error};
use countersign_genai::{GenaiError, GenaiModel};
use genai::adapter::AdapterKind;
use serde_json::json;
use tower::ServiceBuilder;
use tower::retry::Policy;

use super::conversations::{done, stored};
use super::provider::{BOTH, KEY, Provider, Reply, Wire, calls, model_at, says, writes};
use super::tools;

/// In texts and arguments: no error may show it (rule S2).
const MARKER: &str = "hunter2";

fn genai(error: &RunError) -> &GenaiError {
    let Error::Model(error) = error.error() else { panic!("{error:?}") };
    error.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

/// A call that runs, then this, and then an end: nothing is lost, and nothing runs twice.
async fn survives(wire: Wire, streaming: bool, failure: Reply) -> (String, bool) {
    let call = Reply::Says(vec![calls("c1", "read", json!({"secret": MARKER}))]);
    let provider = Provider::saying(wire, [call, failure, done()]).await;
    let recorder = tools();
    let agent = Agent::new(provider.model().streaming(streaming), recorder.clone());
    let error = agent.run(MARKER).await.unwrap_err();
    assert!(provider.refused().is_empty(), "{:?}", provider.refused());
    let shown = format!("{error} {error:?} {} {:?}", genai(&error), genai(&error));
    assert!(!shown.contains(MARKER) && !shown.contains(KEY), "{shown}");
    let (says, temporary) = (genai(&error).to_string(), genai(&error).is_temporary());
    let run = stored(&error.into_suspended());
    let run = agent.resume(run, DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
    assert_eq!(recorder.ids(), ["c1"], "it ran once");
    (says, temporary)
}

fn limited() -> Reply {
    let message = format!("Too much of {MARKER}, with the key {KEY}.");
    Reply::Fails(429, json!({"error": {"type": "rate_limit_error", "message": message}}))
}

#[tokio::test]
async fn an_error_status_is_shown_with_its_number_and_code() {
    for (wire, whose) in
        [(Wire::OpenAi, "openai (gpt-4o-mini)"), (Wire::Anthropic, "anthropic (claude-sonnet-4-5)")]
    {
        for streaming in [true, false] {
            let told = survives(wire, streaming, limited()).await;
            assert_eq!(told, (format!("{whose}: 429 Too Many Requests (rate_limit_error)"), true));
            // Not JSON, and not to be shown.
            let told = survives(wire, streaming, Reply::Fails(500, json!(MARKER))).await;
            assert_eq!(told, (format!("{whose}: 500 Internal Server Error"), true));
            // A code that is none.
            let told =
                survives(wire, streaming, Reply::Fails(400, json!({"error": {"code": KEY}}))).await;
            assert_eq!(told, (format!("{whose}: 400 Bad Request"), false));
        }
    }
}

#[tokio::test]
async fn the_providers_message_is_available_on_request() {
    let provider = Provider::saying(Wire::OpenAi, [limited()]).await;
    let error = Agent::new(provider.model(), tools()).run("go").await.unwrap_err();
    let error = genai(&error);
    assert_eq!(error.status(), Some(429));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.detail().unwrap().contains(MARKER));
}

#[tokio::test]
async fn a_broken_or_truncated_stream_is_no_response() {
    for wire in BOTH {
        let said = || vec![says("The short answer")];
        let events = wire.events(&said(), None).len();
        // Wherever it happens, also right before the end.
        for n in 0..events {
            let (told, temporary) = survives(wire, true, Reply::Breaks(said(), n)).await;
            assert!(told.contains("the connection was lost"), "{wire:?} {n}: {told}");
            assert!(temporary);
            let (told, temporary) = survives(wire, true, Reply::Ends(said(), n)).await;
            assert!(told.contains("stopped without its end"), "{wire:?} {n}: {told}");
            assert!(temporary);
        }
        let (told, _) = survives(wire, true, Reply::GivesUp(said(), events - 2)).await;
        assert!(told.contains("it failed in the middle of its response"), "{told}");
    }
}

#[tokio::test]
async fn calls_of_a_broken_stream_do_not_run() {
    for wire in BOTH {
        let both = || vec![calls("c1", "read", json!({})), calls("c2", "read", json!({}))];
        for n in 0..wire.events(&both(), None).len() {
            let again = Reply::Says(vec![calls("c3", "read", json!({}))]);
            let provider = Provider::saying(wire, [Reply::Ends(both(), n), again, done()]).await;
            let recorder = tools();
            let agent = Agent::new(provider.model(), recorder.clone());
            let run = agent.run("go").await.unwrap_err().into_suspended();
            assert_eq!(recorder.ids(), [""; 0]);
            let run = agent.resume(stored(&run), DeferredToolResults::new()).await.unwrap();
            assert_eq!(run.text(), Some("done"));
            assert_eq!(recorder.ids(), ["c3"]);
        }
    }
}

#[tokio::test]
async fn a_response_at_the_token_limit_is_incomplete() {
    for (wire, reason) in [(Wire::OpenAi, "length"), (Wire::Anthropic, "max_tokens")] {
        for streaming in [true, false] {
            let (told, temporary) =
                survives(wire, streaming, Reply::Stops(vec![says("The short")], reason)).await;
            assert!(told.contains(&format!("cut off at the token limit ({reason})")), "{told}");
            assert!(!temporary);
        }
        // The arguments of the last call were never begun, or never ended: it is not a call without arguments.
        for cut in ["", "{\"n\""] {
            let parts = vec![calls("c1", "read", json!({})), writes("c2", "read", cut)];
            let provider = Provider::saying(wire, [Reply::Stops(parts, reason), done()]).await;
            let recorder = tools();
            let run = Agent::new(provider.model(), recorder.clone()).run("go").await.unwrap();
            assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
            assert_eq!(recorder.ids(), ["c1"], "{wire:?} {cut:?}");
            assert!(provider.told()[1].content.contains("Not executed"));
        }
    }
}

#[tokio::test]
async fn a_withheld_response_is_an_error() {
    for (wire, reason) in [(Wire::OpenAi, "content_filter"), (Wire::Anthropic, "refusal")] {
        let parts = vec![says("I"), calls("c9", "read", json!({}))];
        let (told, temporary) = survives(wire, true, Reply::Stops(parts, reason)).await;
        assert!(told.ends_with(&format!("the response was withheld ({reason})")), "{told}");
        assert!(!temporary);
    }
}

#[tokio::test]
async fn without_streaming_unreadable_arguments_fail_the_response() {
    let bad = vec![calls("c2", "read", json!({})), writes("c3", "read", &format!("{{\"{MARKER}"))];
    let (told, temporary) = survives(Wire::OpenAi, false, Reply::Says(bad)).await;
    assert_eq!(
        (told.as_str(), temporary),
        ("openai (gpt-4o-mini): the response cannot be read", true)
    );
}

/// A call that runs, and then a model that says this much and no more.
async fn waits_in_vain(wire: Wire, events: usize) {
    let call = Reply::Says(vec![calls("c1", "read", json!({}))]);
    let hangs = Reply::Hangs(vec![says("Hm")], events);
    let provider = Provider::saying(wire, [call, hangs, done()]).await;
    let recorder = tools();
    let timeout = ServiceBuilder::new().timeout(Duration::from_secs(8));
    let agent = Agent::new(provider.model().layered(timeout), recorder.clone());
    let error = agent.run("go").await.unwrap_err();
    let Error::Model(inner) = error.error() else { panic!("{error:?}") };
    assert!(inner.is::<tower::timeout::error::Elapsed>(), "{inner:?}");
    let run = stored(&error.into_suspended());
    let run = agent.resume(run, DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("done"));
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn towers_timeout_measures_the_model() {
    tokio::join!(
        waits_in_vain(Wire::OpenAi, 0),
        waits_in_vain(Wire::OpenAi, 3),
        waits_in_vain(Wire::Anthropic, 0),
        waits_in_vain(Wire::Anthropic, 4),
    );
}

/// Tower's own way of trying again, for what may well succeed.
#[derive(Clone)]
struct Again(usize);

impl Policy<ModelRequest, ModelResponse, BoxError> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut ModelRequest,
        result: &mut Result<ModelResponse, BoxError>,
    ) -> Option<Ready<()>> {
        let error = result.as_ref().err()?.downcast_ref::<GenaiError>()?;
        self.0 = self.0.checked_sub(1).filter(|_| error.is_temporary())?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &ModelRequest) -> Option<ModelRequest> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn a_retry_starts_the_streamed_text_again() {
    for wire in BOTH {
        let short = |n| Reply::Ends(vec![says("wrong")], n);
        let sorry = Reply::Fails(500, json!({}));
        let script = [sorry, short(wire.events(&[says("wrong")], None).len() - 1), done()];
        let provider = Provider::saying(wire, script).await;
        let model = provider.model().layered(ServiceBuilder::new().retry(Again(2)));
        let heard = Arc::new(Mutex::new(String::new()));
        let hear = Arc::clone(&heard);
        let agent = Agent::new(model, tools());
        let run = agent.run("go").watch(move |event| match event {
            RunEvent::TextDelta { text } => *hear.lock().unwrap() += text,
            RunEvent::ResponseRestarted => *hear.lock().unwrap() += " | ",
            _ => {}
        });
        assert_eq!(run.await.unwrap().text(), Some("done"));
        assert_eq!(*heard.lock().unwrap(), "wrong | done");
        assert_eq!(provider.requests().len(), 3);

        // What would fail again is not tried again.
        provider
            .again([Reply::Fails(401, json!({"error": {"type": "authentication_error"}})), done()]);
        let model = provider.model().layered(ServiceBuilder::new().retry(Again(2)));
        let error = Agent::new(model, tools()).run("go").await.unwrap_err();
        assert_eq!(genai(&error).status(), Some(401));
        assert_eq!(provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn no_connection_and_no_key_are_plain_errors() {
    let model = model_at("http://127.0.0.1:1/v1/", AdapterKind::OpenAI, "gpt-4o-mini");
    for streaming in [true, false] {
        let agent = Agent::new(model.clone().streaming(streaming), tools());
        let error = agent.run("go").await.unwrap_err();
        assert_eq!(genai(&error).to_string(), "openai (gpt-4o-mini): no connection");
    }

    // A name that no environment has a key for.
    let model = GenaiModel::new("runcrate::nothing");
    let said = "runcrate (nothing): no key: set RUNCRATE_API_KEY in the environment";
    assert_eq!(model.check().await.unwrap_err().to_string(), said);
    let error = Agent::new(model, tools()).run("go").await.unwrap_err();
    assert_eq!(genai(&error).to_string(), said);
    assert!(!genai(&error).is_temporary());
}
