//! The ways to run: all give the same run. Row ids (H121) are those of PydanticAI's conformance table.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::agent::{Run, RunError, RunResult, RunStep, structured, text};
use countersign::handler::{DenyAll, danger_approve_all};
use countersign::model::{ModelExt, ModelRequest, ModelResponse};
use countersign::testing::ScriptedModel;
use countersign::turn::RunEvent;
use countersign::{
    Agent, BoxError, DeferredToolResults, Error, Message, Model, RunContext, UserError, handler_fn,
};
use futures::StreamExt as _;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Recorder, call, every_kind, results, stored};

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

type Variant = fn(Run<'_>) -> Result<RunResult, RunError>;

/// Every way to run, to its end.
const VARIANTS: [(&str, Variant); 6] = [
    ("run", |run| wait(async { run.await })),
    ("run_sync", |run| run.sync()),
    ("run_stream", |run| {
        wait(async {
            let mut stream = run.stream();
            while stream.next().await.is_some() {}
            stream.finish().await
        })
    }),
    ("run_stream_sync", |run| {
        let mut stream = run.stream_sync()?;
        for _ in &mut stream {}
        stream.finish()
    }),
    ("stream_events", |run| {
        wait(async {
            let mut stream = run.stream_events();
            while stream.next().await.is_some() {}
            stream.finish().await
        })
    }),
    ("iter", |run| {
        wait(async {
            let mut run = run.iter();
            loop {
                if let RunStep::End(result) = run.next().await?.unwrap() {
                    assert!(run.next().await?.is_none(), "the run is over");
                    return Ok(result);
                }
            }
        })
    }),
];

/// A response with a call of each of these tools, whose ids are their names.
fn calling<const N: usize>(tools: [&str; N]) -> ModelResponse {
    ModelResponse::calls(tools.map(|tool| call(tool, tool, json!({}))))
}

fn script(response: ModelResponse) -> ScriptedModel {
    ScriptedModel::new([]).then(response).then(ModelResponse::text("Done."))
}

/// Approves everything, later.
fn slowly() -> impl countersign::DeferredToolHandler {
    handler_fn(async |_: RunContext, requests: countersign::DeferredToolRequests| {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let answers = requests.approvals.iter().map(|call| call.id().to_owned());
        let answers = answers.fold(requests.answer(), |answers, id| answers.approve(id));
        requests.calls.iter().fold(answers, |answers, call| answers.result(call.id(), 7)).build()
    })
}

// The proposal: "works uniformly across `run()`, `run_sync()`, `run_stream()`, `run_stream_sync()`, and `iter()`".
#[test]
fn every_way_to_run_gives_the_same_history() {
    let every = ["plain", "declared", "raises", "external", "defers", "asked", "denied", "retried"];
    let seen = VARIANTS.map(|(name, variant)| {
        let (recorder, tools) = every_kind();
        let agent = Agent::new(script(calling(every)), tools).deferred_tool_handler(slowly());
        let result = variant(agent.run("go")).unwrap();
        assert_eq!(result.text(), Some("Done."), "{name}");
        assert_eq!(result.turns().len(), 1, "{name}");
        assert_eq!(result.usage().requests, 2, "{name}");
        (name, serde_json::to_value(result.history()).unwrap(), recorder.ids())
    });
    let (_, history, ran) = &seen[0];
    assert_eq!(ran.iter().filter(|id| *id == "declared").count(), 1);
    for (name, other, also) in &seen {
        assert_eq!((other, also), (history, ran), "{name}");
    }
}

// The proposal: "If a handler is provided to `run()`/`run_sync()`/`run_stream()`/`run_stream_sync()`/`iter()`, it overrides
// the `Agent` default. If a handler is not provided, the `Agent` default is used." And: "async handlers work fine".
#[test]
fn every_way_to_run_takes_a_handler_or_switches_it_off() {
    for (name, variant) in VARIANTS {
        let (recorder, tools) = every_kind();
        let agent = |output| {
            let model = script(calling(["declared"]));
            Agent::new(model, tools.clone())
                .output(output)
                .deferred_tool_handler(DenyAll::new("no"))
        };
        let told = |result: RunResult| result.turns()[0].calls()[0].outcome().content().unwrap();
        assert_eq!(told(variant(agent(text()).run("go")).unwrap()), "no", "{name}");
        assert!(recorder.ran().is_empty(), "{name}");
        let own = variant(agent(text()).run("go").deferred_tool_handler(slowly())).unwrap();
        assert_eq!(told(own), "declared ran", "{name}");
        let off =
            variant(agent(text().or_deferred()).run("go").without_deferred_tool_handler()).unwrap();
        assert_eq!(off.suspended().unwrap().requests().approvals[0].id(), "declared", "{name}");
        let error = variant(agent(text()).run("go").without_deferred_tool_handler()).unwrap_err();
        assert!(
            matches!(error.error(), Error::User(UserError::DeferredNotExpected { ids, .. }) if ids == &["declared"]),
            "{name}: {error:?}"
        );
    }
}

// T9, and "an event handler on any variant": a watcher cannot affect the run.
#[test]
fn every_way_to_run_survives_a_panicking_watcher_and_resumes_after_an_error() {
    for (name, variant) in VARIANTS {
        let (recorder, tools) = every_kind();
        let (heard, hear) = ears();
        let agent = Agent::new(script(calling(["plain", "broken"])), tools);
        let error =
            variant(agent.run("go").watch(hear).watch(|_| panic!("broken pipe"))).unwrap_err();
        assert!(matches!(error.error(), Error::Tool { id, .. } if id == "broken"), "{name}");
        assert!(lines(&heard).contains(&"function_tool_result plain".to_owned()), "{name}");
        let run = agent.resume(error.into_suspended(), DeferredToolResults::new());
        assert_eq!(variant(run).unwrap().text(), Some("Done."), "{name}");
        assert_eq!(recorder.ids(), ["broken", "plain"], "{name}");
    }
}

#[tokio::test]
async fn a_blocking_run_inside_a_runtime_is_an_error_that_says_what_to_do() {
    let (recorder, tools) = every_kind();
    let agent = Agent::new(script(calling(["plain"])), tools);
    for error in [
        agent.run_sync("go").unwrap_err(),
        agent.run("go").sync().unwrap_err(),
        agent.run_stream_sync("go").unwrap_err(),
        agent.run_with_blocking_approval("go", |_| true).unwrap_err(),
    ] {
        assert!(matches!(error.error(), Error::User(UserError::InsideRuntime)), "{error:?}");
        assert!(error.to_string().contains("await the run instead"), "{error}");
        assert!(recorder.ran().is_empty());
    }
    let state = agent.run_sync("go").unwrap_err().into_suspended();
    let run = agent.resume(state, DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.history()[0], Message::user("go"), "what was to be said is not lost");
}

// A task that a layer spawned for the first run is there for the second.
#[test]
fn blocking_runs_share_the_workers_of_their_layers() {
    let says = |text| ModelResponse::text(text);
    let model = ScriptedModel::new([]).then(says("one")).then(says("two")).then(says("three"));
    let model = model.layered(tower::ServiceBuilder::new().buffer(4));
    let agent = Agent::new(model, Recorder::new(["plain"]));
    assert_eq!(agent.run_sync("go").unwrap().text(), Some("one"));
    assert_eq!(agent.run_sync("go").unwrap().text(), Some("two"));
    let elsewhere =
        std::thread::spawn(move || agent.run_sync("go").unwrap().text() == Some("three"));
    assert!(elsewhere.join().unwrap());
}

type Heard = Arc<Mutex<Vec<RunEvent>>>;

fn ears() -> (Heard, impl Fn(&RunEvent) + Send + Sync + 'static) {
    let heard = Heard::default();
    let ears = Arc::clone(&heard);
    (heard, move |event: &RunEvent| ears.lock().unwrap().push(event.clone()))
}

/// An event as one line: its kind, whose it is, whether the arguments are valid.
fn line(event: &RunEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    let kind = json["event_kind"].as_str().unwrap();
    match (&json["part"]["tool_call_id"], json.get("args_valid")) {
        (Value::String(id), Some(valid)) => format!("{kind} {id} {valid}"),
        (Value::String(id), None) => format!("{kind} {id}"),
        _ => kind.to_owned(),
    }
}

fn lines(heard: &Heard) -> Vec<String> {
    heard.lock().unwrap().iter().map(line).collect()
}

async fn all(mut stream: countersign::agent::RunStream<'_>) -> (Vec<RunEvent>, RunResult) {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    (events, stream.finish().await.unwrap())
}

// H123: "function_tool_call, deferred_tool_requests, deferred_tool_results, function_tool_result".
#[tokio::test]
async fn events_of_a_call_come_in_order() {
    let (_, tools) = every_kind();
    let agent = Agent::new(script(calling(["plain", "raises", "declared", "external"])), tools)
        .deferred_tool_handler(slowly());
    let (events, _) = all(agent.run("go").stream_events()).await;
    let events: Vec<_> = events.iter().map(line).collect();
    assert_eq!(
        events,
        [
            "response",
            "function_tool_call plain true",
            "function_tool_call raises true",
            "function_tool_call declared true",
            "function_tool_call external null",
            "function_tool_result plain",
            "deferred_tool_requests",
            "deferred_tool_results",
            "function_tool_result external",
            "function_tool_result raises",
            "function_tool_result declared",
            "tool_calls_done",
            "text_delta",
            "response",
        ]
    );
}

// H125, H126: on a resume an approved call is told with `args_valid` true, a denied one with null, and its result
// carries the message; no events of a batch, as no handler is asked.
#[tokio::test]
async fn a_resumed_run_has_events_of_the_answered_calls() {
    let (_, tools) = every_kind();
    let agent = Agent::new(script(calling(["plain", "raises", "declared", "asked"])), tools);
    let run = agent.run("go").output(text().or_deferred()).await.unwrap().into_suspended().unwrap();
    let requests = run.requests();
    let answers =
        requests.answer().approve("declared").deny("raises", "not today").approve("asked");
    let answers = answers.build().unwrap();
    let (events, _) = all(agent.resume(run, answers).stream_events()).await;
    let heard: Vec<_> = events.iter().map(line).collect();
    assert_eq!(
        heard,
        [
            "function_tool_call raises null",
            "function_tool_result raises",
            "function_tool_call declared true",
            "function_tool_call asked true",
            "function_tool_result declared",
            "function_tool_result asked",
            "tool_calls_done",
            "text_delta",
            "response",
        ]
    );
    let told = serde_json::to_value(&events[1]).unwrap();
    assert_eq!(
        (&told["part"]["outcome"], &told["part"]["content"]),
        (&json!("denied"), &json!("not today"))
    );
}

#[tokio::test]
async fn events_report_invalid_arguments_and_denials_by_layers() {
    let (_, tools) = every_kind();
    let calls = [
        call("bad", "plain", json!({"invalid": 1})),
        call("missing", "nothing", json!({})),
        call("text", "plain", json!("no json")),
        call("no", "denied", json!({})),
    ];
    let (heard, hear) = ears();
    let agent = Agent::new(script(ModelResponse::calls(calls)), tools).watch(hear);
    assert_eq!(agent.run("go").await.unwrap().text(), Some("Done."));
    let expected = [
        "function_tool_call bad false",
        "function_tool_call missing false",
        "function_tool_call text false",
        "function_tool_call no true",
        "function_tool_result bad",
        "function_tool_result missing",
        "function_tool_result text",
        "function_tool_result no",
    ];
    assert_eq!(lines(&heard)[1..9], expected);
}

// H128: "event JSON discriminated by `event_kind`; round-trips".
#[test]
fn events_round_trip_as_json() {
    let (heard, hear) = ears();
    let (_, tools) = every_kind();
    let response = calling(["plain", "declared", "external", "denied"]).saying("Let me see.");
    let agent = Agent::new(script(response), tools).deferred_tool_handler(slowly()).watch(hear);
    let _ = agent.run_sync("go").unwrap();
    let heard = heard.lock().unwrap();
    assert!(heard.len() > 10);
    for event in heard.iter() {
        let json = serde_json::to_string(event).unwrap();
        let read: RunEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
    let done = heard.iter().find_map(|event| match event {
        RunEvent::ToolCallsDone { report } => Some(report.calls().len()),
        _ => None,
    });
    assert_eq!(done, Some(4));
}

/// Streams its text in pieces, and waits before the last one.
struct Speaker {
    bits: [&'static str; 3],
    go_on: Arc<Notify>,
    calls: Vec<countersign::ToolCall>,
}

impl Model for Speaker {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        assert!(request.is_streamed());
        let (last, first) = self.bits.split_last().unwrap();
        for bit in first {
            request.text_delta(bit);
        }
        self.go_on.notified().await;
        request.text_delta(last);
        Ok(ModelResponse::calls(self.calls.clone()).saying(self.bits.concat()))
    }
}

// "More of the text of a response that is being made."
#[tokio::test]
async fn text_is_streamed_before_the_response_is_complete() {
    let go_on = Arc::new(Notify::new());
    let model =
        Speaker { bits: ["Once ", "upon ", "a time"], go_on: Arc::clone(&go_on), calls: vec![] };
    let agent = Agent::new(model, Recorder::new(["plain"]));
    let mut stream = agent.run_stream("Tell me a story");
    let mut heard = String::new();
    for _ in 0..2 {
        let Some(RunEvent::TextDelta { text }) = stream.next().await else { panic!() };
        heard += &text;
    }
    assert_eq!(heard, "Once upon ");
    tokio::select! {
        biased;
        event = stream.next() => panic!("{event:?} before the model continued"),
        () = tokio::task::yield_now() => {}
    }
    go_on.notify_one();
    let (rest, result) = all(stream).await;
    assert_eq!(rest.iter().map(line).collect::<Vec<_>>(), ["text_delta", "response"]);
    assert_eq!(result.text(), Some("Once upon a time"));
}

#[tokio::test]
async fn a_model_that_does_not_stream_gives_its_text_at_the_end() {
    let agent = Agent::new(
        ScriptedModel::new([]).then(ModelResponse::text("How do you do?")),
        Recorder::new(["plain"]),
    );
    let (events, _) = all(agent.run_stream("Hello")).await;
    let [RunEvent::TextDelta { text }, RunEvent::Response { parts }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((text.as_str(), parts.len()), ("How do you do?", 1));
}

// No event is lost when tokio's cooperative budget of the task is used up.
#[tokio::test]
async fn the_last_events_arrive_when_the_budget_of_the_task_is_used_up() {
    struct Busy(usize);
    impl Model for Busy {
        async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
            for _ in 0..self.0 {
                tokio::task::consume_budget().await;
            }
            Ok(ModelResponse::text("Done."))
        }
    }
    for busy in 0..300 {
        let agent = Agent::new(Busy(busy), Recorder::new(["plain"]));
        tokio::task::yield_now().await;
        let (events, _) = all(agent.run_stream("go")).await;
        assert_eq!(events.len(), 2, "after {busy}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_cancels_the_run() {
    let recorder = Recorder::new(["slow"]).taking(Duration::from_secs(9));
    let model = script(calling(["slow"]));
    let agent = Agent::new(model.clone(), recorder.clone());
    let mut stream = agent.run("go").stream_events();
    let Some(RunEvent::Response { .. }) = stream.next().await else { panic!() };
    while tokio::time::timeout(Duration::from_secs(1), stream.next()).await.is_ok() {}
    assert_eq!(recorder.ids(), ["slow"]);
    drop(stream);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(recorder.ended().is_empty(), "its body was given up");
    assert_eq!(model.requests().len(), 1);
    drop(agent.run_stream("go"));
    assert_eq!(model.requests().len(), 1, "a run does nothing until its stream is polled");
}

#[tokio::test]
async fn a_partly_read_stream_can_be_finished() {
    let (recorder, tools) = every_kind();
    let agent = Agent::new(script(calling(["plain", "declared"])), tools)
        .deferred_tool_handler(danger_approve_all());
    let mut stream = agent.run_stream("go");
    assert_eq!(line(&stream.next().await.unwrap()), "response");
    assert_eq!(stream.finish().await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["declared", "plain"]);
}

// The proposal: "They stop after the first final output"; "If a final output has already been streamed, deferred tool calls
// in that response are not handled inline and the handler is not invoked; they are effectively skipped and not returned
// as `DeferredToolRequests`."
#[tokio::test]
async fn a_streamed_text_ends_the_run_and_deferred_calls_are_skipped() {
    let (recorder, tools) = every_kind();
    let skipped = ["declared", "raises", "external", "defers", "asked"];
    let every = ["plain", "declared", "raises", "external", "defers", "asked", "denied", "retried"];
    let model = ScriptedModel::new([])
        .then(calling(every).saying("All is tidy."))
        .then(ModelResponse::text("still tidy"));
    let never = handler_fn(async |_: RunContext, _: countersign::DeferredToolRequests| {
        Err::<DeferredToolResults, BoxError>("the handler must not be asked".into())
    });
    let agent = Agent::new(model.clone(), tools).deferred_tool_handler(never);
    let (events, result) = all(agent.run_stream("go")).await;
    assert_eq!(result.text(), Some("All is tidy."));
    assert_eq!(model.requests().len(), 1);
    assert!(!events.iter().any(|event| line(event).starts_with("deferred_tool")), "{events:?}");
    let calls = result.turns()[0].calls();
    let named = calls.iter().filter(|call| call.is_skipped()).map(|call| call.call().id());
    assert_eq!(named.collect::<Vec<_>>(), skipped);
    assert!(result.turns()[0].suspended().is_none());
    // T3: "Every call ends with one result, in model order."
    let told = results(result.history());
    assert_eq!(told.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), every);
    for (_, _, content) in told.iter().filter(|(id, ..)| skipped.contains(&id.as_str())) {
        assert_eq!(content, "Not executed: a final answer was already given.");
    }
    assert!(recorder.ran().iter().all(|ran| !ran.approved), "{:?}", recorder.ran());
    let history = result.history().to_vec();
    let next = agent.run("And now?").history(history).await.unwrap();
    assert_eq!(next.text(), Some("still tidy"));
}

// The proposal: "The handler is invoked only when the run continues to tool execution (i.e., before any final output has
// been streamed)."
#[tokio::test]
async fn the_handler_is_asked_if_no_text_was_streamed() {
    let (recorder, tools) = every_kind();
    let model = ScriptedModel::new([])
        .then(calling(["declared"]))
        .then(ModelResponse::calls([call("late", "asked", json!({}))]).saying("That was all."));
    let agent = Agent::new(model, tools).deferred_tool_handler(danger_approve_all());
    let (_, result) = all(agent.run_stream("go")).await;
    assert_eq!(result.text(), Some("That was all."));
    assert_eq!(recorder.ids(), ["declared"]);
    // The whole run continues, and asks.
    let (recorder, tools) = every_kind();
    let model = script(calling(["declared"]).saying("Let me see."));
    let agent = Agent::new(model, tools).deferred_tool_handler(danger_approve_all());
    let (_, result) = all(agent.run("go").stream_events()).await;
    assert_eq!((result.text(), recorder.ids()), (Some("Done."), vec!["declared".to_owned()]));
}

fn names(steps: &[RunStep]) -> Vec<String> {
    let name = |step: &RunStep| match step {
        RunStep::ModelRequest => "ask".to_owned(),
        RunStep::ToolCalls(calls) => {
            calls.iter().map(countersign::ToolCall::id).collect::<Vec<_>>().join("+")
        }
        RunStep::End(_) => "end".to_owned(),
        _ => "?".to_owned(),
    };
    steps.iter().map(name).collect()
}

#[tokio::test]
async fn iter_announces_every_step_before_it_runs() {
    let (recorder, tools) = every_kind();
    let model = script(calling(["plain", "declared"]));
    let agent = Agent::new(model.clone(), tools).deferred_tool_handler(danger_approve_all());
    let mut run = agent.iter("go");
    let mut steps = vec![run.next().await.unwrap().unwrap()];
    assert_eq!((run.history().len(), model.requests().len()), (1, 0));
    steps.push(run.next().await.unwrap().unwrap());
    assert_eq!((run.history().len(), model.requests().len()), (2, 1));
    assert!(recorder.ran().is_empty(), "what is announced has not run");
    while let Some(step) = run.next().await.unwrap() {
        steps.push(step);
    }
    assert_eq!(names(&steps), ["ask", "plain+declared", "ask", "end"]);
    assert!(run.next().await.unwrap().is_none());
}

// "Calls that were announced and not taken up have not run."
#[tokio::test]
async fn a_run_that_stops_between_two_steps_continues_in_another_process() {
    for stop_after in 0..4 {
        let (recorder, tools) = every_kind();
        let model = script(calling(["plain", "declared"]));
        let agent = Agent::new(model.clone(), tools).deferred_tool_handler(danger_approve_all());
        let mut run = agent.iter("go");
        for _ in 0..stop_after {
            let _ = run.next().await.unwrap();
        }
        let state = stored(&run.suspended());
        drop(run);
        let result = agent.ask(state).await.unwrap();
        assert_eq!(result.text(), Some("Done."), "{stop_after}");
        assert_eq!(recorder.ids(), ["declared", "plain"], "{stop_after}");
        assert_eq!((result.history().len(), model.requests().len()), (4, 2), "{stop_after}");
        assert_eq!(result.usage().requests, 2, "{stop_after}");
    }
}

// T6, T9: "what ran is settled and does not run again".
#[tokio::test(start_paused = true)]
async fn a_step_that_is_dropped_ends_the_run_and_started_calls_do_not_run_again() {
    let recorder = Recorder::new(["slow"]).taking(Duration::from_secs(9));
    let model = script(calling(["slow"]));
    let agent = Agent::new(model.clone(), recorder.clone());
    let mut run = agent.iter("go");
    assert_eq!(names(&[run.next().await.unwrap().unwrap()]), ["ask"]);
    assert_eq!(names(&[run.next().await.unwrap().unwrap()]), ["slow"]);
    assert!(tokio::time::timeout(Duration::from_secs(1), run.next()).await.is_err());
    assert!(run.next().await.unwrap().is_none(), "the run is over");
    let state = stored(&run.suspended());
    let result = agent.resume(state, DeferredToolResults::new()).await.unwrap();
    assert_eq!(result.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["slow"], "it ran once");
    let [(id, kind, _)] = results(result.history()).try_into().unwrap();
    assert_eq!((id.as_str(), kind), ("slow", countersign::message::ReturnKind::Interrupted));
    // Dropped while the model is asked, nothing is lost.
    struct Silent;
    impl Model for Silent {
        async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
            std::future::pending().await
        }
    }
    let silent = Agent::new(Silent, recorder);
    let mut run = silent.iter("go");
    let _ = run.next().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), run.next()).await.is_err());
    assert_eq!(run.suspended().history(), [Message::user("go")]);
}

#[tokio::test]
async fn an_error_in_a_step_ends_the_run_which_can_be_resumed() {
    let (recorder, tools) = every_kind();
    let agent = Agent::new(script(calling(["plain", "broken"])), tools);
    let mut run = agent.iter("go");
    let _ = (run.next().await.unwrap(), run.next().await.unwrap());
    let error = run.next().await.unwrap_err();
    assert!(run.next().await.unwrap().is_none());
    assert_eq!(&run.suspended(), error.suspended());
    let result = agent.ask(stored(error.suspended())).await.unwrap();
    assert_eq!(result.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["broken", "plain"]);
}

// T5: "ids that repeat within one are refused", also between two steps.
#[tokio::test]
async fn calls_that_share_an_id_run_in_no_way_to_run() {
    for (name, variant) in VARIANTS {
        let (recorder, tools) = every_kind();
        let same = ["plain", "asked"].map(|tool| call("c", tool, json!({})));
        let agent = Agent::new(script(ModelResponse::calls(same)), tools);
        let error = std::thread::scope(|scope| {
            scope.spawn(|| variant(agent.run("go")).unwrap_err()).join().unwrap()
        });
        assert!(
            matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &["c"]),
            "{name}: {error:?}"
        );
        assert_eq!(error.suspended().history(), [Message::user("go")], "{name}");
        let run = agent.ask(stored(error.suspended())).await.unwrap();
        assert_eq!((run.text(), recorder.ran().len()), (Some("Done."), 0), "{name}");
    }
    // Steps announce no such calls, so that none are stored.
    let (_, tools) = every_kind();
    let same = ["plain", "asked"].map(|tool| call("c", tool, json!({})));
    let agent = Agent::new(script(ModelResponse::calls(same)), tools);
    let mut run = agent.iter("go");
    assert_eq!(names(&[run.next().await.unwrap().unwrap()]), ["ask"]);
    assert!(run.next().await.is_err());
    assert_eq!(agent.ask(stored(&run.suspended())).await.unwrap().text(), Some("Done."));
}

// `max_retries`: "before anything of the response runs when the call itself cannot be used"; also when it is taken up
// again.
#[tokio::test]
async fn after_one_failure_too_many_siblings_do_not_run_in_a_resumed_step() {
    let (recorder, tools) = every_kind();
    let calls = [call("bad", "plain", json!({"invalid": 1})), call("ok", "plain", json!({}))];
    let agent = Agent::new(script(ModelResponse::calls(calls)), tools).max_retries(0);
    let mut run = agent.iter("go");
    let _ = (run.next().await.unwrap(), run.next().await.unwrap());
    let error = agent.ask(stored(&run.suspended())).await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &["bad"]));
    assert!(recorder.ran().is_empty());
    let run = agent.ask(stored(error.suspended())).await.unwrap();
    assert_eq!((run.text(), recorder.ids()), (Some("Done."), vec!["ok".to_owned()]));
}

#[tokio::test]
async fn announced_calls_keep_the_name_of_their_agent() {
    let (_, tools) = every_kind();
    let agent =
        Agent::new(script(calling(["declared"])), tools).turns(|turn| turn.agent("cleaner"));
    let agent = agent.output(text().or_deferred());
    let mut run = agent.iter("go");
    let _ = (run.next().await.unwrap(), run.next().await.unwrap());
    let waits = agent.ask(stored(&run.suspended())).await.unwrap().into_suspended().unwrap();
    assert_eq!(waits.context().agent_path(), "cleaner");
    let steps = run.next().await.unwrap();
    let Some(RunStep::End(whole)) = steps else { panic!() };
    assert_eq!(whole.suspended().unwrap().requests(), waits.requests(), "and their questions");
}

#[tokio::test]
async fn the_shortcuts_of_the_agent_are_the_ways_to_run() {
    let agent = || Agent::new(script(calling(["plain"])), every_kind().1);
    let (_, streamed) = all(agent().run_stream("go")).await;
    assert_eq!(streamed.text(), Some("Done."));
    let blocking = std::thread::spawn(move || {
        let streamed = agent();
        let mut stream = streamed.run_stream_sync("go").unwrap();
        assert_eq!(line(&stream.next().unwrap()), "response");
        assert_eq!(stream.by_ref().count(), 5);
        assert_eq!(stream.finish().unwrap().text(), Some("Done."));
        agent().run_sync("go").unwrap().text() == Some("Done.")
    });
    assert!(blocking.join().unwrap());
}

/// The result of a run: its answer, its history, and the executed calls.
type Came = (String, Value, Vec<String>);

fn came(result: &RunResult, recorder: &Recorder) -> Came {
    let history = serde_json::to_value(result.history()).unwrap();
    (format!("{:?}", result.output()), history, recorder.ids())
}

/// Stopped before every step, stored, and taken up by another process.
async fn step_by_step(agent: &Agent) -> RunResult {
    let mut run = agent.iter("go");
    run.next().await.unwrap();
    let mut state = stored(&run.suspended());
    loop {
        let mut run = agent.ask(state).iter();
        run.next().await.unwrap();
        if let Some(RunStep::End(result)) = run.next().await.unwrap() {
            return result;
        }
        state = stored(&run.suspended());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // "the same run in each": whichever way, and however often it is stopped.
    #[test]
    fn any_run_has_one_result_in_every_way_to_run_and_number_of_processes(
        responses in vec(vec(0_usize..11, 1..5), 0..4),
    ) {
        let tools = [
            "plain", "declared", "raises", "external", "defers", "asked", "denied", "retried", "nothing",
            "final_result", "invalid",
        ];
        let script = || {
            let responses = responses.iter().enumerate().map(|(at, tools_of)| {
                let calls = tools_of.iter().enumerate().map(|(nth, tool)| {
                    let id = format!("c{at}.{nth}");
                    match tools[*tool] {
                        "final_result" if nth % 2 == 0 => call(&id, "final_result", json!({"response": nth})),
                        "final_result" => call(&id, "final_result", json!({"response": "no number"})),
                        "invalid" => call(&id, "plain", json!({"invalid": true})),
                        tool => call(&id, tool, json!({})),
                    }
                });
                ModelResponse::calls(calls)
            });
            responses.fold(ScriptedModel::new([]), ScriptedModel::then).then(ModelResponse::text("Done."))
        };
        let agent = || {
            let (recorder, tools) = every_kind();
            let agent = Agent::new(script(), tools).deferred_tool_handler(slowly());
            (recorder, agent.max_retries(100).output(structured::<u8>().or_text()))
        };
        let whole = {
            let (recorder, agent) = agent();
            came(&wait(agent.run("go").into_future()).unwrap(), &recorder)
        };
        for (name, variant) in VARIANTS {
            let (recorder, agent) = agent();
            prop_assert_eq!(&came(&variant(agent.run("go")).unwrap(), &recorder), &whole, "{}", name);
        }
        let (recorder, agent) = agent();
        let stopped = wait(step_by_step(&agent));
        prop_assert_eq!(came(&stopped, &recorder), whole);
    }
}
