//! The JSON of requests and answers: what is read and what is refused, and its schema. Answers of two people.

use countersign::deferred::ToolApproved;
use countersign::outcome::{ModelRetry, ToolFailed, ToolReturn};
use countersign::toolset::ExternalToolset;
use countersign::{
    AnswerError, Args, Decision, DeferredToolRequests, DeferredToolResults, ToolCall,
    ToolDefinition, Tools, ToolsExt, Turn, decide_fn, schemars,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call};

/// Reads answers with this value for `c1` in one of the maps.
fn read(map: &str, said: &str) -> Result<DeferredToolResults, serde_json::Error> {
    serde_json::from_str(&format!("{{\"{map}\":{{\"c1\":{said}}}}}"))
}

/// Why it is refused.
fn refused(map: &str, said: &str) -> String {
    let Err(error) = read(map, said) else { panic!("{said} was taken") };
    error.to_string()
}

// A4, and PydanticAI's table of strictness: `true` and `false`, and nothing that merely looks like them.
#[test]
fn an_approval_is_a_bool_or_an_object_of_its_kind() {
    let approved = |said: &str| read("approvals", said).unwrap().approvals["c1"].clone();
    assert_eq!(approved("true"), true.into());
    assert_eq!(approved("false"), false.into());
    assert_eq!(approved(r#"{"kind":"tool-approved"}"#), ToolApproved::new().into());
    assert_eq!(
        approved(r#"{"kind":"tool-approved","override_args":null}"#),
        ToolApproved::new().into()
    );
    let edited = ToolApproved::with_args(Args::new().with("x", 2));
    assert_eq!(approved(r#"{"override_args":{"x":2},"kind":"tool-approved"}"#), edited.into());
    assert_eq!(approved(r#"{"kind":"tool-denied"}"#), false.into());
    assert_eq!(
        approved(r#"{"kind":"tool-denied","message":"m"}"#),
        countersign::outcome::ToolDenied::new("m").into()
    );

    for said in [
        "1",
        "0",
        "1.0",
        "\"true\"",
        "\"yes\"",
        "null",
        "[true]",
        r#"{"kind":"bogus"}"#,
        r#"{"kind":true}"#,
    ] {
        assert!(refused("approvals", said).contains("expected true, false"), "{said}");
    }
    assert!(refused("approvals", r#"{"override_args":{}}"#).contains("expected true, false"));
}

// In PydanticAI a misshapen typed result becomes a success. Here it is an error.
#[test]
fn a_result_that_claims_a_kind_has_its_shape() {
    let result = |said: &str| read("calls", said).unwrap().calls["c1"].clone();
    assert_eq!(result(r#"{"kind":"tool-return","return_value":3}"#), 3.into());
    let all = r#"{"return_value":1,"content":"note","metadata":{"m":1},"tools":null,"content_file_digests":[],"kind":"tool-return"}"#;
    let noted = ToolReturn {
        content: Some(json!("note")),
        metadata: Some(json!({"m": 1})),
        ..ToolReturn::new(1)
    };
    assert_eq!(result(all), noted.into());
    assert_eq!(result(r#"{"kind":"model-retry","message":"m"}"#), ModelRetry::new("m").into());
    assert_eq!(result(r#"{"kind":"tool-failed","message":"m"}"#), ToolFailed::new("m").into());
    for plain in [
        json!({"kind": "other", "a": 1}),
        json!({"message": "x"}),
        json!({"kind": 1}),
        json!(null),
        json!("s"),
    ] {
        assert_eq!(result(&plain.to_string()), plain.into());
    }

    for said in [
        r#"{"kind":"model-retry"}"#,
        r#"{"kind":"model-retry","message":null}"#,
        r#"{"kind":"tool-failed"}"#,
        r#"{"kind":"tool-failed","message":1}"#,
        r#"{"kind":"tool-return"}"#,
    ] {
        assert!(read("calls", said).is_err(), "{said}");
    }
    // A kind that says that a call did not run, or should run again, is no value.
    for kind in ["tool-denied", "tool-approved", "tool-unknown"] {
        assert!(refused("calls", &json!({"kind": kind}).to_string()).contains(kind));
    }
    assert!(
        refused("calls", r#"{"content":"again","part_kind":"retry-prompt"}"#)
            .contains("model-retry")
    );
}

#[test]
fn a_repeated_key_is_refused_wherever_it_is() {
    let cases = [
        ("approvals", r#"true,"c1":false"#),
        ("approvals", r#"{"kind":"tool-denied","kind":"tool-approved"}"#),
        ("approvals", r#"{"kind":"tool-approved","override_args":{"x":1},"override_args":{}}"#),
        ("approvals", r#"{"kind":"tool-approved","override_args":{"path":"a","p\u0061th":"b"}}"#),
        ("calls", r#"1,"c1":2"#),
        ("calls", r#"{"paid":{"eur":1,"eur":2}}"#),
        ("metadata", r#"{},"c1":{}"#),
        ("metadata", r#"{"may":{"write":true,"write":false}}"#),
        ("answered_by", r#""ann","c1":"bob""#),
    ];
    for (map, said) in cases {
        assert!(refused(map, said).contains("appears twice"), "{map}: {said}");
    }
    assert!(
        serde_json::from_str::<DeferredToolResults>(r#"{"approvals":{},"approvals":{}}"#).is_err()
    );
    assert!(
        serde_json::from_str::<DeferredToolResults>(
            r#"{"_countersign":{"batch":"b","batch":"c"}}"#
        )
        .is_err()
    );

    let shown =
        r#"{"approvals":[{"tool_name":"rm","tool_call_id":"c1","args":{"path":"a","path":"b"}}]}"#;
    let error = serde_json::from_str::<DeferredToolRequests>(shown).unwrap_err().to_string();
    assert!(error.contains("`path` appears twice"), "{error}");
}

// A misspelt `override_args` would run what the approver has changed. Elsewhere a newer writer may say more, and what
// is not read is an answer that is missing, which is an error too.
#[test]
fn an_unknown_key_is_an_error_in_an_approval_and_ignored_elsewhere() {
    for said in [
        r#"{"kind":"tool-approved","overrideArgs":{"x":1}}"#,
        r#"{"kind":"tool-denied","reason":"no"}"#,
        r#"{"kind":"tool-approved","message":"yes"}"#,
    ] {
        assert!(refused("approvals", said).contains("has no"), "{said}");
    }
    for args in ["\"\"", "\"{}\"", "[]", "true"] {
        let said = format!("{{\"kind\":\"tool-approved\",\"override_args\":{args}}}");
        assert!(refused("approvals", &said).contains("an object or null"), "{said}");
    }
    let more: DeferredToolResults =
        serde_json::from_str(r#"{"approvals":{"c1":true},"new_in_3":{}}"#).unwrap();
    assert_eq!(more, DeferredToolResults::new().approve("c1"));

    // What binds answers is ours alone.
    for garbled in [r#"{"fingerprints":{"c1":"f"}}"#, r#"{"batch":"b","lft":["c1"]}"#, "null"] {
        let text = format!("{{\"_countersign\":{garbled}}}");
        assert!(serde_json::from_str::<DeferredToolResults>(&text).is_err(), "{text}");
    }
    for text in [
        "null",
        "[]",
        r#"{"approvals":null}"#,
        r#"{"approvals":[true]}"#,
        r#"{"metadata":{"c1":1}}"#,
    ] {
        assert!(serde_json::from_str::<DeferredToolResults>(text).is_err(), "{text}");
    }
}

/// Answers with everything that can be in them.
fn rich() -> DeferredToolResults {
    let noted = ToolReturn {
        content: Some(json!("note")),
        metadata: Some(json!([1])),
        ..ToolReturn::new(true)
    };
    DeferredToolResults::new()
        .approve("yes")
        .deny("no", "not today")
        .approval(
            "edited",
            ToolApproved::with_args(Args::new().with("x", json!({"y": [1.5, null]}))),
        )
        .result("null", json!(null))
        .result("looks typed", json!({"kind": "model-retry"}))
        .result("looks denied", json!({"kind": "tool-denied"}))
        .result("looks old", json!({"part_kind": "retry-prompt"}))
        .result("noted", noted)
        .result("retry", ModelRetry::new("again"))
        .result("failed", ToolFailed::new("broken"))
        .leave("later")
        .metadata("yes", json!({"limit": 3}).as_object().unwrap().clone())
}

#[test]
fn b28_answers_survive_a_round_trip() {
    let written = serde_json::to_string(&rich()).unwrap();
    assert_eq!(serde_json::from_str::<DeferredToolResults>(&written).unwrap(), rich());
}

/// A batch with everything that can be in one, as a turn makes it.
async fn batch() -> DeferredToolRequests {
    let asks = decide_fn(|_, _| {
        Decision::ask("sure?")
            .with_key("sure")
            .with_metadata("why", "it is large")
            .with_pin("f", "1")
    });
    let asking = Recorder::new(["ask"]).layered(asks);
    let outside = ExternalToolset::new("ext", [ToolDefinition::new("search", json!({}))]);
    let person = Recorder::new(["question"]).id("person").body(|_, _| {
        Err(countersign::outcome::CallDeferred::question().with_metadata("text", "which?").into())
    });
    let tools = Tools::combined([asking, outside.into(), person.into()]);
    let calls = ["ask", "search", "question"].map(|tool| call(tool, tool, json!({"n": 1})));
    Turn::new(tools).run(calls.to_vec()).await.unwrap().deferred().unwrap()
}

fn validator<T: schemars::JsonSchema>() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::to_value(schemars::schema_for!(T)).unwrap()).unwrap()
}

// Every instance that is written fits the schema, and what would not be read does not.
#[tokio::test]
async fn a19_requests_and_answers_have_a_json_schema() {
    let (requests, answers) =
        (validator::<DeferredToolRequests>(), validator::<DeferredToolResults>());
    let shown = serde_json::to_value(batch().await).unwrap();
    for map in ["calls", "approvals", "metadata", "_kinds", "_countersign"] {
        assert!(
            shown.get(map).is_some_and(|map| !map.as_array().is_some_and(Vec::is_empty)),
            "{map}"
        );
        let mut garbled = shown.clone();
        garbled[map] = json!("garbled");
        assert!(requests.is_valid(&shown) && !requests.is_valid(&garbled), "{map}");
        assert!(serde_json::from_value::<DeferredToolRequests>(garbled).is_err(), "{map}");
    }
    let mut nameless = shown.clone();
    nameless["approvals"][0].as_object_mut().unwrap().remove("tool_name");
    assert!(!requests.is_valid(&nameless));
    let one = validator::<ToolCall>();
    for args in [json!({"a": 1}), json!("{\"a\":1}"), json!(null), json!([1])] {
        assert!(one.is_valid(&serde_json::to_value(call("c1", "rm", args)).unwrap()));
    }

    let bound =
        batch().await.answer().approve("ask").leave_rest().answered_by("ann").build().unwrap();
    for given in [bound, rich(), DeferredToolResults::new()] {
        assert!(answers.is_valid(&serde_json::to_value(given).unwrap()));
    }
    let said = |map: &str, said: Value| json!({ map: {"c1": said} });
    let cases = [
        (said("approvals", json!(true)), true),
        (said("approvals", json!({"kind": "tool-denied"})), true),
        (said("calls", json!({"kind": "other"})), true),
        (said("approvals", json!("true")), false),
        (said("approvals", json!(1)), false),
        (said("approvals", json!({"override_args": {}})), false),
        (said("approvals", json!({"kind": "tool-approved", "overrideArgs": {}})), false),
        (said("approvals", json!({"kind": "tool-approved", "override_args": []})), false),
        (said("calls", json!({"kind": "model-retry"})), false),
        (said("calls", json!({"kind": "tool-denied", "message": "no"})), false),
        (said("calls", json!({"part_kind": "retry-prompt"})), false),
        (said("metadata", json!(1)), false),
        (said("answered_by", json!(1)), false),
    ];
    for (text, fits) in cases {
        assert_eq!(answers.is_valid(&text), fits, "{text}");
        assert_eq!(
            serde_json::from_value::<DeferredToolResults>(text.clone()).is_ok(),
            fits,
            "{text}"
        );
    }
}

/// Two calls that wait for an approval, and one that is executed elsewhere.
fn requests() -> DeferredToolRequests {
    DeferredToolRequests::new(
        ["a", "b"].map(|id| call(id, "rm", json!({}))),
        [call("x", "search", json!({}))],
    )
}

fn contradict(ids: &[&str]) -> Result<DeferredToolResults, AnswerError> {
    Err(AnswerError::Contradictory { ids: ids.iter().map(ToString::to_string).collect() })
}

// A3: an answer is never overturned by a second one, not even by the same answer.
#[test]
fn answers_of_two_people_join_and_never_overturn_each_other() {
    let requests = requests();
    let ann = requests.answer().deny("a", "no").leave("b").answered_by("ann").unchecked();
    let bob = requests.answer().result("x", 1).approve("b").answered_by("bob").unchecked();
    let both = ann.clone().merge(bob.clone()).unwrap();
    assert_eq!(both, bob.clone().merge(ann.clone()).unwrap());
    let whole = requests
        .answer()
        .deny("a", "no")
        .answered_by("ann")
        .approve("b")
        .result("x", 1)
        .answered_by("bob");
    assert_eq!(both, whole.build().unwrap());

    for again in [ann.clone(), requests.answer().approve("a").approve("b").unchecked()] {
        assert_eq!(
            both.clone().merge(again.clone()),
            contradict(if again == ann { &["a"] } else { &["a", "b"] })
        );
    }
    // Also when it is answered in the other map, which is found to be wrong later.
    assert_eq!(ann.clone().merge(DeferredToolResults::new().result("a", 1)), contradict(&["a"]));
    assert_eq!(ann.clone().merge(DeferredToolResults::new()), Ok(ann));
}

#[test]
fn metadata_and_name_beside_an_answer_come_from_its_author() {
    let said = |key: &str| json!({ key: true }).as_object().unwrap().clone();
    let requests = requests();
    let ann = requests
        .answer()
        .leave("a")
        .metadata("a", said("ann"))
        .metadata("b", said("ann"))
        .unchecked();
    let bob = requests.answer().approve("a").approve("b").metadata("a", said("bob")).unchecked();
    let both = ann.clone().merge(bob).unwrap();
    assert_eq!((&both.metadata["a"], &both.metadata["b"]), (&said("bob"), &said("ann")));
    assert!(!both.is_left("a"));
    // A set that only leaves a call has not answered it.
    let mut left = requests.answer().leave("a").unchecked();
    left.answered_by.insert("a".into(), "ann".into());
    let bob = requests.answer().approve("a").unchecked();
    for both in [left.clone().merge(bob.clone()), bob.merge(left)] {
        assert!(both.unwrap().answered_by.is_empty());
    }
    let eve = requests.answer().metadata("a", said("eve")).unchecked();
    assert_eq!(ann.merge(eve), contradict(&["a"]), "neither answers, and their metadata differ");
}

// A6: answers are joined only with answers to the same questions.
#[tokio::test]
async fn answers_to_different_batches_are_not_joined() {
    let suspended = |n: u32| async move {
        let turn = Turn::new(Recorder::new(["rm"]).approval_required());
        let calls = ["a", "b"].map(|id| call(id, "rm", json!({"n": n})));
        turn.of_run("run", 0).run(calls.to_vec()).await.unwrap().deferred().unwrap()
    };
    let (one, other) = (suspended(1).await, suspended(2).await);
    let ann = one.answer().approve("a").unchecked();
    let bob = other.answer().deny("b", "no").unchecked();
    assert_eq!(
        ann.clone().merge(bob.clone()),
        Err(AnswerError::OtherBatch { ids: vec!["a".into(), "b".into()] })
    );
    // Bare answers would get fingerprints that their author did not give.
    let bare = DeferredToolResults::new().approve("b");
    assert_eq!(ann.clone().merge(bare.clone()), Err(AnswerError::NotBound));
    assert_eq!(bare.merge(ann.clone()), Err(AnswerError::NotBound));
    let mut forged = serde_json::to_value(&bob).unwrap();
    forged["_countersign"]["batch"] =
        serde_json::to_value(&ann).unwrap()["_countersign"]["batch"].clone();
    let forged: DeferredToolResults = serde_json::from_value(forged).unwrap();
    assert!(matches!(ann.merge(forged), Err(AnswerError::OtherBatch { .. })));
}

// A6: what a handler answers without fingerprints does not get them from the one before it.
#[tokio::test]
async fn bare_answers_stay_bare_after_bound_ones() {
    use countersign::handler::{HandlerChain, handler_fn_sync};

    let recorder = Recorder::new(["rm"]);
    let chain = |bare: bool| {
        let second = handler_fn_sync(move |_, requests| match bare {
            true => Ok(DeferredToolResults::new().approve("b")),
            false => requests.answer().approve("b").build(),
        });
        HandlerChain::new()
            .with(handler_fn_sync(|_, requests| requests.answer().approve("a").leave("b").build()))
            .with(second)
    };
    let turn = || Turn::new(recorder.clone().approval_required());
    let calls = || ["a", "b"].map(|id| call(id, "rm", json!({}))).to_vec();
    let error = turn()
        .require_bound_answers()
        .deferred_tool_handler(chain(true))
        .run(calls())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no fingerprints"), "{error}");
    assert!(recorder.ran().is_empty());
    assert!(
        turn()
            .require_bound_answers()
            .deferred_tool_handler(chain(false))
            .run(calls())
            .await
            .is_ok()
    );
    assert!(turn().deferred_tool_handler(chain(true)).run(calls()).await.is_ok());
}
