//! Histories that come from outside. Row ids (B20) are those of PydanticAI's conformance table.

use countersign::agent::{RunError, text};
use countersign::handler::danger_approve_all;
use countersign::message::ReturnKind;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, DeferredToolRequests, DeferredToolResults, Error, Message, RunContext,
    SuspendedRun, ToolCall, UserError, handler_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, every_kind, results};

/// A history in PydanticAI's JSON, with the fields that only PydanticAI has.
fn read(messages: Value) -> Vec<Message> {
    serde_json::from_value(messages).unwrap()
}

fn said(prompt: &str) -> Value {
    json!({
        "parts": [{"content": prompt, "timestamp": "2026-11-21T12:00:00Z", "part_kind": "user-prompt"}],
        "timestamp": "2026-11-21T12:00:00Z", "instructions": null, "kind": "request", "run_id": "r-1",
        "conversation_id": "c-1", "metadata": null, "state": "complete",
    })
}

/// Calls by id, each of the tool that its id begins with.
fn called<const N: usize>(ids: [&str; N]) -> Value {
    let part = |id: &str| {
        let tool = id.split('.').next();
        json!({
            "tool_name": tool, "args": {}, "tool_call_id": id, "tool_kind": null, "id": null, "provider_name": null,
            "provider_details": null, "part_kind": "tool-call",
        })
    };
    json!({
        "parts": ids.map(part).as_slice(), "usage": {"input_tokens": 52, "output_tokens": 7, "details": {}},
        "model_name": "m", "model_id": "function:m", "timestamp": "2026-11-21T12:00:00Z", "kind": "response",
        "provider_name": null, "provider_details": null, "provider_response_id": null, "finish_reason": null,
        "run_id": "r-1", "conversation_id": "c-1", "metadata": null, "state": "complete",
    })
}

fn answered(text: &str) -> Value {
    json!({
        "parts": [{"content": text, "id": null, "provider_name": null, "provider_details": null, "part_kind": "text"}],
        "model_id": "function:m", "timestamp": "2026-11-21T12:00:00Z", "kind": "response", "state": "complete",
    })
}

fn result(id: &str, outcome: &str) -> Value {
    json!({
        "tool_name": id.split('.').next(), "content": format!("{id}'s result"), "tool_call_id": id, "metadata": null,
        "timestamp": "2026-11-21T12:00:00Z", "outcome": outcome, "part_kind": "tool-return", "content_file_digests": [],
    })
}

fn told<const N: usize>(results: [Value; N]) -> Value {
    json!({"parts": Vec::from(results), "timestamp": "2026-11-21T12:00:00Z", "kind": "request", "state": "complete"})
}

fn agent(model: &ScriptedModel) -> (Recorder, Agent) {
    let (recorder, tools) = every_kind();
    (recorder, Agent::new(model.clone(), tools))
}

fn done() -> ScriptedModel {
    ScriptedModel::new([]).then(ModelResponse::text("Done."))
}

fn bare(messages: Value) -> SuspendedRun {
    SuspendedRun::from_trusted_history(read(messages))
}

fn ids(requests: &DeferredToolRequests) -> Vec<&str> {
    requests.iter().map(ToolCall::id).collect()
}

/// The calls that the error about a history names.
fn history_error(error: &RunError) -> (&str, Vec<String>) {
    match error.error() {
        Error::User(UserError::History { problem, ids }) => (problem, ids.clone()),
        kind => panic!("{kind:?}"),
    }
}

fn open() -> Value {
    json!([said("Clean up"), called(["declared.1", "plain.1", "asked.1", "raises.1"])])
}

// The proposal: "result = await agent.run(message_history=messages, deferred_tool_results=results)", with bare booleans.
#[tokio::test]
async fn a_bare_history_is_continued_with_bare_booleans() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let answers: DeferredToolResults = serde_json::from_value(json!({
        "approvals": {"declared.1": true, "asked.1": false, "raises.1": {"kind": "tool-approved"}},
    }))
    .unwrap();
    let run = agent.resume(bare(open()), answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["declared.1", "plain.1", "raises.1", "raises.1"]);
    let kinds: Vec<_> =
        results(run.history()).into_iter().map(|(id, kind, _)| (id, kind)).collect();
    let expected = [
        ("declared.1", ReturnKind::Success),
        ("plain.1", ReturnKind::Success),
        ("asked.1", ReturnKind::Denied),
        ("raises.1", ReturnKind::Success),
    ];
    assert_eq!(kinds, expected.map(|(id, kind)| (id.to_owned(), kind)));
    assert_eq!(run.history().len(), 4);
}

#[tokio::test]
async fn calls_with_results_in_a_history_do_not_run_again() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let results_so_far = told([result("plain.1", "success"), result("retried.1", "retried")]);
    let history = json!([
        said("Clean up"),
        called(["declared.1", "plain.1", "retried.1", "plain.2"]),
        results_so_far,
    ]);
    let answers = DeferredToolResults::new().approve("declared.1");
    let run = agent.resume(bare(history), answers).await.unwrap();
    assert_eq!(recorder.ids(), ["declared.1", "plain.2"], "ordinary unanswered calls run once");
    let told = results(run.history());
    let order: Vec<_> = told.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(order, ["declared.1", "plain.1", "retried.1", "plain.2"], "T3: in model order");
    assert_eq!(told[1].2, "plain.1's result");
    assert_eq!(told[2].1, ReturnKind::Retried);
    assert_eq!(run.history().len(), 4, "one message has all results");
}

// B23: "history ends in an approval call; no prompt, no results: model is NOT called; same requests returned again".
#[tokio::test]
async fn b23_without_answers_or_a_handler_the_same_requests_come_back() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let agent = agent.output(text().or_deferred());
    let history = json!([said("Clean up"), called(["declared.1", "asked.1"])]);
    let first = agent.ask(bare(history.clone())).await.unwrap().into_suspended().unwrap();
    assert_eq!(ids(&first.requests()), ["declared.1", "asked.1"]);
    assert_eq!(first.history(), read(history));
    let second = agent.ask(first.clone()).await.unwrap().into_suspended().unwrap();
    assert_eq!((second.requests(), second.history()), (first.requests(), first.history()));
    assert!(model.requests().is_empty() && recorder.ran().is_empty());
    let run = agent.ask(second).deferred_tool_handler(danger_approve_all()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["asked.1", "declared.1"]);
}

// B22: "One ModelRequest: tool return first, user prompt after; model sees both".
#[tokio::test]
async fn b22_a_prompt_can_come_with_the_answers() {
    let model = done();
    let (_, agent) = agent(&model);
    let answers = DeferredToolResults::new().approve("declared.1");
    let history = json!([said("Clean up"), called(["declared.1"])]);
    let run = agent.resume(bare(history), answers).saying("And be quick.").await.unwrap();
    let last = serde_json::to_value(&run.history()[2]).unwrap();
    assert_eq!(last["parts"][0]["part_kind"], "tool-return");
    assert_eq!(last["parts"][1]["content"], "And be quick.");
    assert_eq!(last["parts"].as_array().unwrap().len(), 2);
}

// B24: "new `run_id`", and the same history gives other fingerprints.
#[tokio::test]
async fn b24_a_bare_history_is_a_new_run() {
    let (_, agent) = agent(&done());
    let agent = agent.output(text().or_deferred());
    let history = json!([said("Clean up"), called(["declared.1"])]);
    let one = agent.ask(bare(history.clone())).await.unwrap().into_suspended().unwrap();
    let other = agent.ask(bare(history)).await.unwrap().into_suspended().unwrap();
    assert_ne!(one.run_id(), other.run_id());
    let answers = one.requests().answer().approve("declared.1").build().unwrap();
    let error = agent.resume(other, answers).await.unwrap_err();
    assert!(matches!(error.error(), Error::Answers(AnswerError::OtherBatch { .. })));
}

// B20: seven misuses, each a typed error with the ids; A4: "no deferred call has run".
#[tokio::test]
async fn b20_answers_that_do_not_fit_a_history_name_the_calls() {
    type Is = fn(&AnswerError) -> bool;
    let unknown: Is = |error| matches!(error, AnswerError::Unknown { .. });
    let missing: Is = |error| matches!(error, AnswerError::Missing { .. });
    let two = json!([
        said("go"),
        called(["declared.1", "declared.2", "plain.1"]),
        told([result("plain.1", "success")]),
    ]);
    let retried = json!([
        said("go"),
        called(["declared.1", "retried.1"]),
        told([result("retried.1", "retried")]),
    ]);
    let over = json!([
        said("go"),
        called(["declared.1"]),
        told([result("declared.1", "success")]),
        answered("Done."),
    ]);
    let yes = |ids: &[&str]| {
        ids.iter().fold(DeferredToolResults::new(), |answers, id| answers.approve(*id))
    };
    let cases: [(&str, Value, DeferredToolResults, Is, &[&str]); 9] = [
        ("empty history", json!([]), yes(&["declared.1"]), unknown, &["declared.1"]),
        ("no response", json!([said("go")]), yes(&["declared.1"]), unknown, &["declared.1"]),
        ("no call is pending", over, yes(&["declared.1"]), unknown, &["declared.1"]),
        ("one is missing", two.clone(), yes(&["declared.1"]), missing, &["declared.2"]),
        ("all are missing", two.clone(), yes(&[]), missing, &["declared.1", "declared.2"]),
        ("one is unknown", two.clone(), yes(&["declared.1", "declared.2", "x"]), unknown, &["x"]),
        (
            "has a result",
            two.clone(),
            yes(&["declared.1", "declared.2", "plain.1"]),
            unknown,
            &["plain.1"],
        ),
        ("was retried", retried, yes(&["declared.1", "retried.1"]), unknown, &["retried.1"]),
        (
            "wrong kind",
            two,
            yes(&["declared.1"]).result("declared.2", "made up"),
            |error| matches!(error, AnswerError::WrongKind { .. }),
            &["declared.2"],
        ),
    ];
    for (name, history, answers, is, ids) in cases {
        let model = done();
        let (recorder, agent) = agent(&model);
        let error = agent.resume(bare(history.clone()), answers).await.unwrap_err();
        let Error::Answers(kind) = error.error() else { panic!("{name}: {error:?}") };
        assert!(is(kind), "{name}: {kind:?}");
        assert_eq!(kind.ids(), ids, "{name}");
        assert!(recorder.ran().is_empty() && model.requests().is_empty(), "{name}");
        let kept = results(&error.into_suspended().close("no answer came"));
        assert!(results(&read(history)).iter().all(|result| kept.contains(result)), "{name}");
    }
    let value = serde_json::from_value::<DeferredToolResults>(json!({"approvals": {"c1": "yes"}}));
    assert!(value.is_err());
}

/// Refused in a new run and in a resumed one, with the history as it was and nothing run.
async fn refused(history: Value) -> (String, Vec<String>) {
    let model = done();
    let (recorder, agent) = agent(&model);
    let resumed = agent.ask(bare(history.clone())).await.unwrap_err();
    let prompted = agent.run("never mind").history(read(history.clone())).await.unwrap_err();
    for error in [&resumed, &prompted] {
        assert_eq!(error.suspended().history(), read(history.clone()), "{error}");
        for id in error.error().ids() {
            assert!(error.to_string().contains(&format!("`{id}`")), "{error}");
        }
    }
    assert!(recorder.ran().is_empty() && model.requests().is_empty());
    assert_eq!(history_error(&resumed), history_error(&prompted));
    let (problem, ids) = history_error(&resumed);
    (problem.to_owned(), ids)
}

// B21: "history has the id twice: cannot be matched unambiguously". T3: "Every call ends with one result".
#[tokio::test]
async fn b21_histories_that_no_provider_takes_are_refused_with_the_ids() {
    let (go, ok) = (said("go"), |id: &str| result(id, "success"));
    let cases: [(&str, &[&str], Value); 9] = [
        ("share an id", &["plain.1"], json!([go, called(["plain.1", "plain.1"])])),
        (
            "share their id with earlier",
            &["plain.1"],
            json!([go, called(["plain.1"]), told([ok("plain.1")]), called(["plain.1"])]),
        ),
        (
            "several results",
            &["plain.1"],
            json!([go, called(["plain.1"]), told([ok("plain.1"), ok("plain.1")])]),
        ),
        (
            "several results",
            &["plain.1"],
            json!([go, called(["plain.1"]), told([ok("plain.1")]), told([ok("plain.1")])]),
        ),
        (
            "no call of the response before",
            &["plain.2"],
            json!([go, called(["plain.1"]), told([ok("plain.1"), ok("plain.2")])]),
        ),
        (
            "no call of the response before",
            &["plain.1"],
            json!([
                go,
                called(["plain.1"]),
                told([ok("plain.1")]),
                answered("ok"),
                told([ok("plain.1")])
            ]),
        ),
        ("belong to no call", &["plain.1"], json!([told([ok("plain.1")]), go])),
        ("belong to no call", &["plain.1"], json!([go, told([ok("plain.1")]), answered("ok")])),
        (
            "every call needs one before the next response",
            &["plain.2"],
            json!([go, called(["plain.1", "plain.2"]), told([ok("plain.1")]), answered("ok")]),
        ),
    ];
    for (problem, ids, history) in cases {
        let (said, named) = refused(history).await;
        assert!(said.contains(problem), "{said} does not say {problem}");
        assert_eq!(named, ids, "{problem}");
    }
    let (said, named) =
        refused(json!([go, called(["plain.1", "declared.1"]), told([ok("plain.1")]), go])).await;
    assert!(said.contains("`saying`"), "{said}");
    assert_eq!(named, ["declared.1"]);
}

// B20: "new prompt with unprocessed calls". The results that are there are not lost with the error.
#[tokio::test]
async fn a_new_prompt_beside_open_calls_is_refused_and_loses_nothing() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let history = json!([
        said("go"),
        called(["plain.1", "declared.1"]),
        told([result("plain.1", "success")]),
    ]);
    let error = agent.run("never mind").history(read(history.clone())).await.unwrap_err();
    let (problem, ids) = history_error(&error);
    assert!(problem.contains("`resume`") && problem.contains("`close`"), "{problem}");
    assert_eq!(ids, ["declared.1"]);
    assert_eq!(error.suspended().history(), read(history));
    let run =
        agent.resume(error.into_suspended(), DeferredToolResults::new().approve("declared.1"));
    let run = run.await.unwrap();
    assert_eq!(recorder.ids(), ["declared.1"], "what has its result does not run again");
    let last = serde_json::to_value(&run.history()[2]).unwrap();
    assert_eq!(last["parts"][2]["content"], "never mind");
}

// T3: "a new user message (`SuspendedRun::close`)"; B33.
#[tokio::test]
async fn open_calls_of_any_history_can_be_closed_to_continue() {
    let partly = told([result("plain.1", "success")]);
    let calls = called(["plain.1", "declared.1"]);
    for history in [
        json!([said("go"), calls, partly]),
        json!([said("go"), calls, partly, said("never mind")]),
        json!([said("go"), calls, {"kind": "request", "parts": [partly["parts"][0], said("never mind")["parts"][0]]}]),
    ] {
        let model = done();
        let (recorder, agent) = agent(&model);
        let closed = bare(history).close("the user said something else");
        let run = agent.run("continue").history(closed).await.unwrap();
        assert_eq!(run.text(), Some("Done."));
        assert!(recorder.ran().is_empty());
        let parts = serde_json::to_value(&model.requests()[0].messages()[2]).unwrap();
        assert_eq!(parts["parts"][0]["outcome"], "success");
        assert_eq!(parts["parts"][1]["tool_call_id"], "declared.1");
        assert_eq!(parts["parts"][1]["outcome"], "failed");
        assert_eq!(
            parts["parts"][1]["content"],
            "The tool did not run: the user said something else."
        );
    }
    let nothing = json!([said("go"), answered("Done.")]);
    assert_eq!(bare(nothing.clone()).close("x"), read(nothing));
    assert_eq!(bare(json!([])).close("x"), []);
    let untouched = bare(json!([said("go"), called(["plain.1"])])).close("x");
    assert_eq!(results(&untouched).len(), 1);
}

#[tokio::test]
async fn a_suspended_run_can_be_closed_and_continues_with_a_prompt() {
    let model =
        ScriptedModel::calls([call("c1", "plain", json!({})), call("c2", "declared", json!({}))]);
    let (recorder, agent) = agent(&model);
    let run = agent.run("go").output(text().or_deferred()).await.unwrap();
    let history = run.into_suspended().unwrap().close("no answer came");
    let run = agent.run("never mind").history(history).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1"]);
    let kinds: Vec<_> = results(run.history()).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, [ReturnKind::Success, ReturnKind::Failed]);
}

// PydanticAI puts the results of a resumed run into a new request, so its histories have several in a row.
#[tokio::test]
async fn a_history_with_results_in_several_requests_is_continued() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let history = json!([
        said("go"),
        called(["retried.1", "declared.1"]),
        told([result("retried.1", "retried")]),
        told([result("declared.1", "success")]),
        called(["plain.1"]),
        told([result("plain.1", "success")]),
        answered("Done."),
    ]);
    let run = agent.run("And now?").history(read(history)).await.unwrap();
    assert_eq!((run.text(), run.history().len()), (Some("Done."), 9));
    assert!(recorder.ran().is_empty());
    // Also while a call of the last response still waits.
    let history = json!([
        said("go"),
        called(["retried.1", "declared.1", "plain.1"]),
        told([result("retried.1", "retried")]),
        told([result("plain.1", "success")]),
    ]);
    let (recorder, agent) = self::agent(&done());
    let answers = DeferredToolResults::new().approve("declared.1");
    let run = agent.resume(bare(history), answers).await.unwrap();
    assert_eq!(recorder.ids(), ["declared.1"]);
    assert_eq!(results(run.history()).len(), 3);
}

#[tokio::test]
async fn a_history_that_ends_with_an_answer_needs_a_prompt() {
    let (_, agent) = agent(&done());
    let nothing = agent.ask(bare(json!([]))).await.unwrap_err();
    assert!(history_error(&nothing).0.contains("empty"), "{nothing}");
    let over = agent.ask(bare(json!([said("go"), answered("Done.")]))).await.unwrap_err();
    assert!(history_error(&over).0.contains("`saying`"), "{over}");
    // A request that was never answered is asked again.
    let run = agent.ask(bare(json!([said("go")]))).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
}

#[tokio::test]
async fn a_suspended_run_takes_no_other_history() {
    let model = ScriptedModel::calls([call("c1", "declared", json!({}))]);
    let (recorder, agent) = agent(&model);
    let run = agent.run("go").output(text().or_deferred()).await.unwrap();
    let waits = run.into_suspended().unwrap();
    let answers = waits.requests().answer().approve("c1").build().unwrap();
    let other = read(json!([said("something else")]));
    let error = agent.resume(waits, answers).history(other).await.unwrap_err();
    assert_eq!(history_error(&error).1, ["c1"]);
    assert!(recorder.ran().is_empty());
}

// The order of T1 holds for a bare history, too: ordinary calls run before the handler is asked.
#[tokio::test]
async fn a_handler_answers_for_a_bare_history_after_the_ordinary_calls_have_run() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let seen = recorder.clone();
    let handler = handler_fn(move |_: RunContext, requests: DeferredToolRequests| {
        let ran = seen.ids();
        async move {
            assert_eq!(ran, ["plain.1", "raises.1"]);
            requests
                .answer()
                .approve("declared.1")
                .approve("asked.1")
                .deny("raises.1", "no")
                .build()
        }
    });
    let run = agent.ask(bare(open())).deferred_tool_handler(handler).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["asked.1", "declared.1", "plain.1", "raises.1"]);
}

#[test]
fn a_history_of_pydantic_ai_is_read_with_its_additional_fields() {
    let fields = json!([
        said("go"),
        called(["plain.1", "declared.1"]),
        told([result("plain.1", "success"), result("declared.1", "denied")]),
        answered("Done."),
    ]);
    let history = read(fields);
    let ours = serde_json::to_value(&history).unwrap();
    assert_eq!(ours[2]["parts"][1]["outcome"], "denied");
    assert_eq!(ours[1]["parts"][0]["args"], json!({}));
    assert_eq!(read(ours.clone()), history, "what is written is read again");
    assert_eq!(serde_json::to_value(read(ours.clone())).unwrap(), ours);
    // Arguments as providers send them: a text, blank, or nothing.
    for args in [json!("{\"n\":1}"), json!(""), json!(null)] {
        let part =
            json!({"tool_name": "t", "args": args, "tool_call_id": "c", "part_kind": "tool-call"});
        let [message] = read(json!([{"kind": "response", "parts": [part]}])).try_into().unwrap();
        assert!(message.tool_calls().all(|call| call.args().get("n").is_none_or(|n| n == 1)));
    }
    // Histories that were written elsewhere have the model's instructions; an outcome may be null.
    let system = json!([{"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "Be brief."}]}]);
    assert_eq!(serde_json::to_value(read(system.clone())).unwrap(), system);
    let null = json!([{"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "t", "content": 1, "tool_call_id": "c", "outcome": null},
    ]}]);
    assert_eq!(serde_json::to_value(read(null)).unwrap()[0]["parts"][0]["outcome"], "success");
    // The content of a prompt may be a list; what no run of ours understands is an error that says so.
    let list = json!([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["a", {"url": "b"}]}]}]);
    assert_eq!(serde_json::to_value(read(list.clone())).unwrap(), list);
    let strange = json!([{"kind": "response", "parts": [{"part_kind": "video", "content": "x"}]}]);
    let error = serde_json::from_value::<Vec<Message>>(strange).unwrap_err();
    assert!(error.to_string().contains("part of kind"), "{error}");
}

// L7, with results in front of the answers: what a bare history became is stored like any other run.
#[tokio::test]
async fn a_suspended_bare_history_is_stored_and_resumed_in_another_process() {
    let model = done();
    let (recorder, agent) = agent(&model);
    let agent = agent.output(text().or_deferred());
    let history = json!([
        said("go"),
        called(["plain.1", "declared.1", "external.1"]),
        told([result("plain.1", "success")]),
    ]);
    let waits = agent.ask(bare(history)).await.unwrap().into_suspended().unwrap();
    let stored: SuspendedRun =
        serde_json::from_str(&serde_json::to_string(&waits).unwrap()).unwrap();
    let requests = stored.requests();
    assert_eq!(ids(&requests), ["declared.1", "external.1"]);
    let answers = requests.answer().approve("declared.1").result("external.1", 7).build().unwrap();
    let run = agent.resume(stored, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["declared.1"]);
    let contents: Vec<_> =
        results(run.history()).into_iter().map(|(.., content)| content).collect();
    assert_eq!(contents, [json!("plain.1's result"), json!("declared ran"), json!(7)]);
}

/// A run that waits after these calls, and the answers are left to the caller.
async fn waiting(ids: &[&str]) -> (Recorder, Agent, SuspendedRun) {
    let calls = ids.iter().map(|id| call(id, id.split('.').next().unwrap(), json!({})));
    let (recorder, agent) = agent(&ScriptedModel::calls(calls.collect::<Vec<_>>()));
    let agent = agent.output(text().or_deferred());
    let run = agent.run("go").await.unwrap();
    assert_eq!(run.history(), run.suspended().unwrap().history());
    (recorder, agent, run.into_suspended().unwrap())
}

/// The results in a history, by the ids of their calls.
fn told_ids(history: &[Message]) -> Vec<String> {
    results(history).into_iter().map(|(id, ..)| id).collect()
}

// The proposal: "Message history contains the `get_price` result already." T3: resumed from that history alone, nothing that
// is settled runs again.
#[tokio::test]
async fn the_history_of_a_suspended_run_has_the_results_of_its_settled_calls() {
    let (recorder, agent, suspended) = waiting(&["declared.1", "plain.1", "denied.1"]).await;
    let history = suspended.history().to_vec();
    assert_eq!((history.len(), told_ids(&history)), (3, vec!["plain.1".into(), "denied.1".into()]));
    assert_eq!(results(&history)[1].1, ReturnKind::Denied);
    let history = read(serde_json::to_value(&history).unwrap());

    let bare = SuspendedRun::from_trusted_history(history);
    let run = agent.resume(bare, DeferredToolResults::new().approve("declared.1")).await.unwrap();
    assert_eq!(recorder.ids(), ["declared.1", "plain.1"], "each of them once");
    assert_eq!(told_ids(run.history()), ["declared.1", "plain.1", "denied.1"]);
    assert_eq!(run.history().len(), 4, "one message has all results");

    // Resumed with its snapshot it has the same result.
    let (recorder, agent, suspended) = waiting(&["declared.1", "plain.1", "denied.1"]).await;
    let suspended: SuspendedRun = crate::support::stored(&suspended);
    assert_eq!(told_ids(suspended.history()), ["plain.1", "denied.1"]);
    let answers = suspended.requests().answer().approve("declared.1").build().unwrap();
    let whole = agent.resume(suspended, answers).await.unwrap();
    assert_eq!(whole.history(), run.history());
    assert_eq!(recorder.ids(), ["declared.1", "plain.1"]);
}

// T3 under partial answers and over several suspensions: every history has the results settled so far.
#[tokio::test]
async fn the_history_grows_with_every_answer() {
    let ids = ["declared.1", "plain.1", "declared.2", "asked.1"];
    let (recorder, agent, mut suspended) = waiting(&ids).await;
    for (answered, settled) in [
        (None, vec!["plain.1"]),
        (Some("declared.2"), vec!["plain.1", "declared.2"]),
        (Some("asked.1"), vec!["plain.1", "declared.2", "asked.1"]),
    ] {
        if let Some(id) = answered {
            let answers = suspended.requests().answer().approve(id).leave_rest().build().unwrap();
            suspended = agent.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
        }
        assert_eq!(told_ids(suspended.history()), settled);
        assert_eq!(crate::support::stored(&suspended), suspended);
        let closed = suspended.clone().close("no answer came");
        assert_eq!(told_ids(&closed), ids, "and one result for each call when it is given up");
    }
    let bare = SuspendedRun::from_trusted_history(suspended.history().to_vec());
    let run = agent.resume(bare, DeferredToolResults::new().approve("declared.1")).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["asked.1", "declared.1", "declared.2", "plain.1"]);
    assert_eq!(told_ids(run.history()), ids);
}

// T9: "Every error after something ran carries the state to resume from": also in its history.
#[tokio::test]
async fn the_history_of_a_failed_run_has_the_results_of_executed_calls() {
    let calls =
        ["plain.1", "broken.1"].map(|id| call(id, id.split_once('.').unwrap().0, json!({})));
    let (recorder, agent) = agent(&ScriptedModel::calls(calls));
    let error = agent.run("go").await.unwrap_err();
    let history = error.suspended().history().to_vec();
    assert_eq!(told_ids(&history), ["plain.1", "broken.1"]);
    let run = agent.run("never mind").history(history).await.unwrap();
    assert_eq!(
        (run.text(), recorder.ids()),
        (Some("Done."), vec!["broken.1".into(), "plain.1".into()])
    );
}

// Additional content of tools follows the results, also in the history of a suspended run, and is not lost.
#[tokio::test]
async fn additional_content_beside_results_is_kept_when_a_bare_history_is_resumed() {
    let beside = |text: &str| {
        json!({"kind": "request", "parts": [
            result("plain.1", "success"), result("denied.1", "denied"), result("plain.2", "success"),
            {"part_kind": "user-prompt", "content": text}, {"part_kind": "user-prompt", "content": ["a", 1]},
        ]})
    };
    let model = done();
    let (recorder, agent) = agent(&model);
    let calls = called(["plain.1", "declared.1", "denied.1", "plain.2"]);
    let answers = || DeferredToolResults::new().approve("declared.1");
    let history = json!([said("go"), calls, beside("the picture")]);
    let run = agent.resume(bare(history), answers()).await.unwrap();
    assert_eq!(recorder.ids(), ["declared.1"]);
    let last = serde_json::to_value(&run.history()[2]).unwrap();
    let kinds: Vec<_> =
        last["parts"].as_array().unwrap().iter().map(|it| &it["part_kind"]).collect();
    let (told, said_so) = ("tool-return", "user-prompt");
    assert_eq!(kinds, [told, told, told, told, said_so, said_so]);
    assert_eq!(
        (&last["parts"][4]["content"], &last["parts"][5]["content"]),
        (&json!("the picture"), &json!(["a", 1]))
    );

    // Content that the settled calls cannot have added has another source: it is refused, as a prompt is.
    let one = json!({"kind": "request", "parts": [
        result("denied.1", "denied"), {"part_kind": "user-prompt", "content": "never mind"},
    ]});
    let history = json!([said("go"), called(["denied.1", "declared.1"]), one]);
    let error = agent.resume(bare(history), answers()).await.unwrap_err();
    assert!(history_error(&error).0.contains("`saying`"), "{error}");
}
