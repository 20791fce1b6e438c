//! The outputs that a run may end with. Row ids (B25) are those of PydanticAI's conformance table.

use std::collections::BTreeMap;

use countersign::agent::{Output, RunOutput, RunResult, structured, text};
use countersign::handler::danger_approve_all;
use countersign::message::ReturnKind;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, BoxError, DeferredToolRequests, DeferredToolResults, Error, Message,
    RunContext, SuspendedRun, ToolCall, Tools, UserError, handler_fn, schemars,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Recorder, call, every_kind, results, stored};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Report {
    deleted: Vec<String>,
    size: Size,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Size {
    bytes: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Good,
    Bad,
}

/// A type that contains itself, and is no object.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Tree {
    Leaf(u32),
    Node(Vec<Tree>),
}

fn answer(id: &str, args: Value) -> ToolCall {
    call(id, "final_result", args)
}

fn good(id: &str) -> ToolCall {
    answer(id, json!({"bytes": 7}))
}

fn bad(id: &str) -> ToolCall {
    answer(id, json!({"bytes": "s3cret"}))
}

fn of(tool: &str) -> ToolCall {
    call(tool, tool, json!({}))
}

/// A model that makes these calls, response by response, and then says "Done.".
fn script<const N: usize>(responses: [Vec<ToolCall>; N]) -> ScriptedModel {
    let script = responses
        .into_iter()
        .fold(ScriptedModel::new([]), |script, calls| script.then(ModelResponse::calls(calls)));
    script.then(ModelResponse::text("Done."))
}

fn agent(model: &ScriptedModel, output: Output) -> (Recorder, Agent) {
    let (recorder, tools) = every_kind();
    (recorder, Agent::new(model.clone(), tools).output(output))
}

fn kinds(history: &[Message]) -> Vec<(String, ReturnKind)> {
    results(history).into_iter().map(|(id, kind, _)| (id, kind)).collect()
}

fn is_taken(run: &RunResult) -> bool {
    run.structured::<Size>() == Some(Size { bytes: 7 })
}

/// The answer of a run whose model gives these arguments.
async fn given<T>(args: Value) -> (Option<T>, Value)
where
    T: serde::de::DeserializeOwned + JsonSchema + 'static,
{
    let model = SchemaKeeper::new(args);
    let agent = Agent::new(model.clone(), Tools::none()).output(structured::<T>());
    let run = agent.run("go").await.unwrap();
    assert!(matches!(run.output(), RunOutput::Structured(_)), "{run:?}");
    assert_eq!(kinds(run.history()), [("o".to_owned(), ReturnKind::Success)]);
    let schema = model.schema.lock().unwrap().clone();
    (run.structured(), schema)
}

/// Gives an answer, and keeps the schema that it was shown.
#[derive(Clone)]
struct SchemaKeeper {
    args: Value,
    schema: std::sync::Arc<std::sync::Mutex<Value>>,
}

impl SchemaKeeper {
    fn new(args: Value) -> Self {
        Self { args, schema: std::sync::Arc::default() }
    }
}

impl countersign::Model for SchemaKeeper {
    async fn respond(
        &self,
        request: countersign::model::ModelRequest,
    ) -> Result<ModelResponse, BoxError> {
        let tool = request.tools().iter().find(|tool| tool.name() == "final_result").unwrap();
        *self.schema.lock().unwrap() = tool.parameters().clone();
        Ok(ModelResponse::calls([answer("o", self.args.clone())]))
    }
}

// "A run ends with a value that deserialises as `T`. The model gives it by calling a tool named `final_result` whose
// arguments have the schema of `T`."
#[tokio::test]
async fn an_answer_has_the_shape_of_its_type_and_other_values_are_wrapped_in_an_object() {
    let report = json!({"deleted": ["a.log"], "size": {"bytes": 7}});
    let (given_report, schema) = given::<Report>(report).await;
    assert_eq!(given_report.unwrap().size.bytes, 7);
    assert_eq!(schema["type"], "object");
    assert!(schema["$defs"]["Size"].is_object(), "{schema}");

    let (list, schema) =
        given::<Vec<Size>>(json!({"response": [{"bytes": 1}, {"bytes": 2}]})).await;
    assert_eq!(list.unwrap().len(), 2);
    assert_eq!(schema["required"], json!(["response"]));
    assert_eq!(schema["properties"]["response"]["items"]["$ref"], "#/$defs/Size");
    assert!(schema["$defs"]["Size"].is_object(), "references are to the root: {schema}");

    let (mood, _) = given::<Mood>(json!({"response": "bad"})).await;
    assert_eq!(mood, Some(Mood::Bad));
    let (number, _) = given::<u8>(json!({"response": 255})).await;
    assert_eq!(number, Some(255));
    let (nothing, _) = given::<Option<Size>>(json!({"response": null})).await;
    assert_eq!(nothing, Some(None));
    let (map, _) = given::<BTreeMap<String, u8>>(json!({"a": 1})).await;
    assert_eq!(map.unwrap()["a"], 1);
    let (any, _) = given::<Value>(json!({"response": [1]})).await;
    assert_eq!(any, Some(json!([1])));

    let (tree, schema) = given::<Tree>(json!({"response": [1, [2]]})).await;
    assert_eq!(tree, Some(Tree::Node(vec![Tree::Leaf(1), Tree::Node(vec![Tree::Leaf(2)])])));
    assert_every_reference_resolves(&schema, &schema);
    assert!(!schema.to_string().contains("\"#\""), "the root is no longer the type: {schema}");
}

fn assert_every_reference_resolves(schema: &Value, root: &Value) {
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = to.strip_prefix('#').unwrap();
        assert!(root.pointer(pointer).is_some(), "{to} in {root}");
    }
    match schema {
        Value::Object(map) => {
            map.values().for_each(|value| assert_every_reference_resolves(value, root));
        }
        Value::Array(values) => {
            values.iter().for_each(|value| assert_every_reference_resolves(value, root));
        }
        _ => {}
    }
}

// "What does not fit goes back to the model, at the cost of a retry of that tool."  T9: the error carries the run.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_tried_again_within_the_budget() {
    let model = script([vec![bad("o1")], vec![good("o2")]]);
    let (_, once) = agent(&model, structured::<Size>());
    let run = once.run("go").await.unwrap();
    assert!(is_taken(&run));
    assert_eq!(run.text(), None);
    assert_eq!(run.structured::<Report>(), None, "it is not of this type");

    let model = script([vec![bad("o1")], vec![bad("o2")], vec![good("o3")]]);
    let (_, twice) = agent(&model, structured::<Size>());
    let error = twice.run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &["o2"]));
    assert!(is_taken(&twice.ask(stored(error.suspended())).await.unwrap()));
}

// S2: "Logs, spans, errors and `Debug` show names, types and lengths; argument values only when asked for."
#[tokio::test]
async fn an_error_about_an_answer_names_the_field_and_quotes_no_value() {
    let wrong = [
        json!({"bytes": "s3cret"}),
        json!({"bytes": -5_123_456}),
        json!("{\"bytes\": s3cret}"),
        json!({"bites": "s3cret"}),
        json!([5_123_456]),
    ];
    for args in wrong {
        let model = script([vec![answer("o1", args.clone())], vec![bad("o2")]]);
        let error = agent(&model, structured::<Size>()).1.run("go").await.unwrap_err();
        let told = serde_json::to_string(&results(model.requests()[1].messages())).unwrap();
        assert!(told.contains("does not fit"), "{told}");
        for text in [told, error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("s3cret") && !text.contains("5123456"), "{args}: {text}");
        }
    }
    let model = script([vec![bad("o1")], vec![good("o2")]]);
    let _ = agent(&model, structured::<Size>()).1.run("go").await.unwrap();
    assert_eq!(
        results(model.requests()[1].messages())[0].2,
        "The final answer does not fit: `bytes` does not fit."
    );
}

#[tokio::test]
async fn text_is_an_answer_only_where_the_output_allows_it() {
    let (_, either) = agent(&script([]), structured::<Size>().or_text());
    assert_eq!(either.run("go").await.unwrap().text(), Some("Done."));

    let says = |text| ModelResponse::text(text);
    let model =
        ScriptedModel::new([]).then(says("I think…")).then(ModelResponse::calls([good("o1")]));
    let (_, strict) = agent(&model, structured::<Size>());
    assert!(is_taken(&strict.run("go").await.unwrap()));
    let asked = serde_json::to_string(model.requests()[1].messages().last().unwrap()).unwrap();
    assert!(asked.contains("by calling `final_result`"), "{asked}");

    let model = ScriptedModel::new([]).then(says("I think…")).then(says("Well…"));
    let model = model.then(ModelResponse::calls([good("o1")]));
    let (_, strict) = agent(&model, structured::<Size>());
    let error = strict.run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { .. }), "{error:?}");
    assert!(
        !error.to_string().contains("()") && !error.to_string().contains("(calls )"),
        "{error}"
    );
    // A request never ends with the model's own text.
    assert!(matches!(error.suspended().history().last(), Some(Message::Request { .. })));
    assert!(is_taken(&strict.ask(stored(error.suspended())).await.unwrap()));
}

#[tokio::test]
async fn an_empty_response_is_an_empty_text() {
    let empty = || ScriptedModel::new([]).then(ModelResponse::default());
    let (_, lax) = agent(&empty(), text());
    let run = lax.run("go").await.unwrap();
    assert_eq!((run.text(), run.history()), (Some(""), [Message::user("go")].as_slice()));
    let model = empty().then(ModelResponse::text("")).then(ModelResponse::calls([good("o1")]));
    let (_, strict) = agent(&model, structured::<Size>());
    assert!(is_taken(&strict.max_retries(2).run("go").await.unwrap()));
    let requests = model.requests();
    let messages = requests[2].messages();
    assert_eq!(messages.len(), 1, "nothing empty is sent to a provider: {messages:?}");
}

#[tokio::test]
async fn the_first_fitting_answer_of_a_response_counts() {
    let model = script([vec![good("o1"), answer("o2", json!({"bytes": 8}))]]);
    let run = agent(&model, structured::<Size>()).1.run("go").await.unwrap();
    assert!(is_taken(&run));
    let told = kinds(run.history());
    assert_eq!(told, [("o1".into(), ReturnKind::Success), ("o2".into(), ReturnKind::Failed)]);
    // The one that does not fit costs nothing when another does.
    let model = script([vec![bad("o1"), good("o2")]]);
    let run = agent(&model, structured::<Size>()).1.max_retries(0).run("go").await.unwrap();
    assert!(is_taken(&run));
    let told = kinds(run.history());
    assert_eq!(told, [("o1".into(), ReturnKind::Failed), ("o2".into(), ReturnKind::Success)]);
}

async fn never(_: RunContext, _: DeferredToolRequests) -> Result<DeferredToolResults, BoxError> {
    Err("the handler must not be asked".into())
}

// "Other calls in the same response run if they need no decision. Those that would be deferred are not executed, say so
// in their results, and are named in the report." (As PydanticAI's end strategy `graceful`; the order of the calls has
// no effect.)
#[tokio::test]
async fn beside_an_answer_ordinary_calls_run_and_deferred_ones_are_skipped() {
    let skipped = ["declared", "raises", "external", "defers", "asked"];
    for first in [true, false] {
        let others = ["plain", "denied"].into_iter().chain(skipped).map(of);
        let mut calls: Vec<_> = others.collect();
        calls.insert(if first { 0 } else { calls.len() }, good("o1"));
        let ids: Vec<_> = calls.iter().map(|call| call.id().to_owned()).collect();
        let model = script([calls]);
        let (recorder, agent) = agent(&model, structured::<Size>());
        let run = agent.run("go").deferred_tool_handler(handler_fn(never)).await.unwrap();
        assert!(is_taken(&run));
        assert_eq!(model.requests().len(), 1);
        let report = &run.turns()[0];
        let named = report.calls().iter().filter(|call| call.is_skipped());
        assert_eq!(named.map(|call| call.call().id()).collect::<Vec<_>>(), skipped);
        // T3: "Every call ends with one result, in model order." Theirs leaves `raises` without any.
        let told = kinds(run.history());
        assert_eq!(told.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), ids);
        for (id, kind) in told {
            let expected = match id.as_str() {
                "plain" | "o1" => ReturnKind::Success,
                "denied" => ReturnKind::Denied,
                _ => ReturnKind::Failed,
            };
            assert_eq!(kind, expected, "{id}");
        }
        let ran: Vec<_> = recorder.ran().into_iter().map(|ran| ran.tool).collect();
        assert!(ran.contains(&"plain".to_owned()) && !ran.contains(&"asked".to_owned()), "{ran:?}");
    }
}

// G117: "function retry beside a valid output: output suppressed (model must retry)".
#[tokio::test]
async fn an_answer_is_void_when_a_call_beside_it_has_to_be_retried() {
    let model = script([vec![good("o1"), of("retried")], vec![good("o2")]]);
    let (_, plain) = agent(&model, structured::<Size>());
    let run = plain.run("go").await.unwrap();
    assert!(is_taken(&run));
    let told = kinds(model.requests()[1].messages());
    assert_eq!(told, [("o1".into(), ReturnKind::Failed), ("retried".into(), ReturnKind::Retried)]);
    // Then nothing is skipped for it either: deferred calls are asked about.
    let model = script([vec![good("o1"), of("retried"), of("declared")], vec![good("o2")]]);
    let (recorder, asking) = agent(&model, structured::<Size>());
    let run = asking.run("go").deferred_tool_handler(danger_approve_all()).await.unwrap();
    assert!(is_taken(&run));
    assert_eq!(recorder.ids(), ["declared", "retried"]);
    let told = kinds(model.requests()[1].messages());
    assert_eq!(told[0], ("o1".into(), ReturnKind::Failed));
    assert_eq!(told[2], ("declared".into(), ReturnKind::Success));
    // Also over a suspension.
    let model = script([vec![good("o1"), of("retried"), of("declared")], vec![good("o2")]]);
    let (recorder, waiting) = agent(&model, structured::<Size>().or_deferred());
    let run = waiting.run("go").await.unwrap();
    let state = stored(run.suspended().unwrap());
    let answers = state.requests().answer().approve("declared").build().unwrap();
    assert!(is_taken(&waiting.resume(state, answers).await.unwrap()));
    assert_eq!((recorder.ids().len(), model.requests().len()), (2, 2));
    assert_eq!(kinds(model.requests()[1].messages())[0], ("o1".into(), ReturnKind::Failed));
}

// B25: "run defers; output call's retry stays in history; resume executes the approved call and continues; only the
// pending call needs a result".
#[tokio::test]
async fn b25_an_invalid_answer_is_retried_after_the_pending_calls_beside_it() {
    let model = script([vec![bad("o1"), of("declared")], vec![good("o2")]]);
    let (recorder, agent) = agent(&model, structured::<Size>().or_deferred());
    let run = agent.run("go").await.unwrap();
    let state = stored(run.suspended().unwrap());
    assert_eq!(state.requests().iter().map(ToolCall::id).collect::<Vec<_>>(), ["declared"]);
    assert!(recorder.ran().is_empty());
    let answers = state.requests().answer().approve("declared").build().unwrap();
    assert!(is_taken(&agent.resume(state, answers).await.unwrap()));
    assert_eq!(recorder.ids(), ["declared"]);
    let told = kinds(model.requests()[1].messages());
    assert_eq!(
        told,
        [("o1".into(), ReturnKind::Retried), ("declared".into(), ReturnKind::Success)]
    );
}

// T9, and "a final answer was already given" is only said of an answer that is given.
#[tokio::test]
async fn an_answer_survives_a_failed_call_beside_it_and_a_stop_between_steps() {
    let model = script([vec![good("o1"), of("broken"), of("declared")]]);
    let (recorder, failing) = agent(&model, structured::<Size>());
    let error = failing.run("go").await.unwrap_err();
    let run = failing.ask(stored(error.suspended())).await.unwrap();
    assert!(is_taken(&run));
    assert_eq!((recorder.ids(), model.requests().len()), (vec!["broken".to_owned()], 1));
    assert!(run.turns()[0].calls()[2].is_skipped());

    let model = script([vec![of("plain"), good("o1")]]);
    let (recorder, stopped) = agent(&model, structured::<Size>());
    let mut steps = stopped.iter("go");
    let _ = (steps.next().await.unwrap(), steps.next().await.unwrap());
    let state = stored(&steps.suspended());
    drop(steps);
    let run = stopped.resume(state, DeferredToolResults::new()).await.unwrap();
    assert!(is_taken(&run));
    assert_eq!((recorder.ids(), model.requests().len()), (vec!["plain".to_owned()], 1));
}

// The same for a history that comes from outside.
#[tokio::test]
async fn an_answer_in_a_bare_history_is_the_answer() {
    let history = vec![
        Message::user("go"),
        serde_json::from_value(json!({"kind": "response", "parts": [good("o1"), of("declared")]}))
            .unwrap(),
    ];
    let model = script([]);
    let (recorder, agent) = agent(&model, structured::<Size>());
    let run = agent.ask(SuspendedRun::from_trusted_history(history)).await.unwrap();
    assert!(is_taken(&run));
    assert!(recorder.ran().is_empty() && model.requests().is_empty());
}

#[tokio::test]
async fn a_tool_with_the_name_of_the_answer_is_a_conflict_before_the_model_is_asked() {
    let model = script([vec![good("o1")]]);
    let agent = Agent::new(model.clone(), Recorder::new(["final_result"]));
    let error = agent.run("go").output(structured::<Size>()).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::User(UserError::ToolConflict { name, .. }) if name == "final_result")
    );
    assert!(error.to_string().contains("its output"), "{error}");
    assert_eq!((model.requests().len(), error.suspended().usage().requests), (0, 0));
    assert_eq!(agent.run("go").await.unwrap().text(), Some("Done."), "without one it is a tool");
}

// The proposal: "`DeferredToolRequests` must be included in `output_type`, otherwise raise `UserError`"; where it is
// certain, it comes before anything executes.
#[tokio::test]
async fn a_run_that_is_certain_not_to_end_is_refused_before_anything_executes() {
    let model = script([vec![of("declared"), of("asked")]]);
    let (recorder, agent) = agent(&model, text());
    let waits = agent.run("go").output(text().or_deferred()).await.unwrap();
    let waits = waits.into_suspended().unwrap();
    let requests = waits.requests();
    let left = requests.answer().approve("declared").leave("asked").build().unwrap();
    for error in [
        agent.resume(waits.clone(), left.clone()).await.unwrap_err(),
        agent
            .resume(waits.clone(), left)
            .deferred_tool_handler(danger_approve_all())
            .await
            .unwrap_err(),
    ] {
        let kind = error.error();
        assert!(
            matches!(kind, Error::User(UserError::DeferredNotExpected { ids, .. }) if ids == &["asked"])
        );
        assert!(error.to_string().contains("or_deferred()"), "{error}");
        assert_eq!(error.suspended(), &waits);
    }
    let error = agent.ask(waits.clone()).saying("And?").await.unwrap_err();
    assert_eq!(error.error().ids(), ["declared", "asked"]);
    assert!(recorder.ran().is_empty());
    // The text is said once, behind the results.
    let run = agent.ask(error.into_suspended()).deferred_tool_handler(danger_approve_all());
    assert_eq!(run.await.unwrap().text(), Some("Done."));
    let last = serde_json::to_value(model.requests()[1].messages().last().unwrap()).unwrap();
    assert_eq!(last["parts"].as_array().unwrap().len(), 3);
    assert_eq!(last["parts"][2]["content"], "And?");
}

// The same where it turns out only later: a handler leaves a call, and nothing is applied of its answers.
#[tokio::test]
async fn a_prompt_is_kept_when_calls_turn_out_to_be_pending() {
    let model = script([vec![of("declared"), of("defers")]]);
    let (_, agent) = agent(&model, text());
    let waits = agent.run("go").output(text().or_deferred()).await.unwrap();
    let waits = waits.into_suspended().unwrap();
    let handler = handler_fn(async |_: RunContext, requests: DeferredToolRequests| {
        requests.answer().approve("declared").leave_rest().build()
    });
    let run = agent.ask(waits).saying("And?").deferred_tool_handler(handler);
    let error = run.await.unwrap_err();
    assert_eq!(error.error().ids(), ["defers"]);
    let state = stored(error.suspended());
    let requests = state.requests();
    let answers = requests.answer().approve("declared").result("defers", 1).build().unwrap();
    assert_eq!(agent.resume(state, answers).await.unwrap().text(), Some("Done."));
    let said = serde_json::to_string(model.requests()[1].messages().last().unwrap()).unwrap();
    assert_eq!(said.matches("And?").count(), 1, "{said}");
}

// "A run that ends with calls that wait has not said it: say it again with their answers."
#[tokio::test]
async fn a_run_that_ends_with_pending_calls_has_not_sent_its_prompt() {
    let model = script([vec![of("declared"), of("defers")]]);
    let (_, agent) = agent(&model, text().or_deferred());
    let waits = agent.run("go").await.unwrap().into_suspended().unwrap();
    let requests = waits.requests();
    let answers = requests.answer().approve("declared").leave_rest().build().unwrap();
    let rest = agent.resume(waits, answers).saying("And?").await.unwrap();
    let rest = stored(rest.suspended().unwrap());
    let answers = rest.requests().answer().result("defers", 1).build().unwrap();
    let run = agent.resume(rest, answers).await.unwrap();
    let said = serde_json::to_string(run.history()).unwrap();
    assert!(!said.contains("And?"), "{said}");
}

// A4: "an unknown id … is a `UserError` naming the ids": a call that does not wait cannot be left.
#[tokio::test]
async fn leaving_a_call_that_is_not_pending_is_refused() {
    let model = script([vec![of("declared")]]);
    let (recorder, agent) = agent(&model, text());
    let waits = agent.run("go").await.unwrap_err().into_suspended();
    let answers = DeferredToolResults::new().approve("declared").leave("x");
    let error = agent.resume(waits, answers).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::Answers(AnswerError::Unknown { ids }) if ids == &["x"]),
        "{error:?}"
    );
    assert!(recorder.ran().is_empty());
}
