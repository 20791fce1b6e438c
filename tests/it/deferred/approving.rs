//! Approving: A1–A7, D3, D7.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use countersign::call::{Phase, ToolKind};
use countersign::deferred::{ToolApproved, metadata};
use countersign::{
    AnswerError, Args, Decision, DeferredToolResults, FunctionToolset, Outcome, RunContext,
    SuspendedTurn, ToolCall, ToolDefinition, ToolError, Tools, ToolsExt, Turn, TurnReport,
    decide_fn, schemars, tool_fn,
};
use serde_json::json;
use tower::{ServiceBuilder, ServiceExt as _};

use crate::support::{Inside, Recorder, call, content, relay, run_one, stored, words};

fn one() -> Vec<ToolCall> {
    vec![call("c1", "pay", json!({"n": 1}))]
}

async fn suspend(tools: impl Into<Tools>) -> SuspendedTurn {
    Turn::new(tools).run(one()).await.unwrap().into_suspended().unwrap()
}

async fn resume(
    tools: impl Into<Tools>,
    suspended: SuspendedTurn,
    answers: DeferredToolResults,
) -> TurnReport {
    Turn::new(tools).resume(suspended, answers).await.unwrap()
}

fn asks(
    key: &'static str,
) -> impl Clone + Fn(&RunContext, &ToolCall) -> Decision + Send + Sync + 'static {
    move |_, _| Decision::ask(key)
}

#[tokio::test]
async fn an_approval_covers_the_questions_it_was_shown_or_a_subset() {
    // A1: … and the questions it was shown or a subset of them.
    let pay = Recorder::new(["pay"]);
    let both = pay
        .clone()
        .layered(decide_fn(asks("a")).named("A"))
        .layered(decide_fn(asks("b")).named("B"));
    let suspended = suspend(both).await;
    let keys: Vec<_> =
        suspended.requests().questions("c1").iter().map(|it| it.key().to_owned()).collect();
    assert_eq!(keys, ["b", "a"], "outermost first");
    let yes = suspended.requests().answer().approve("c1").build().unwrap();

    let fewer = pay.clone().layered(decide_fn(asks("a")).named("A"));
    assert_eq!(words(&resume(fewer, suspended.clone(), yes.clone()).await), ["returned"]);
    assert_eq!(words(&resume(pay.clone(), suspended.clone(), yes.clone()).await), ["returned"]);
    assert_eq!(pay.ran().len(), 2);

    for more in [
        pay.clone().layered(decide_fn(asks("c")).named("A")),
        pay.clone().layered(decide_fn(asks("a")).named("another layer")),
        pay.clone()
            .layered(decide_fn(|_, _| Decision::ask("a").with_pin("file", "digest")).named("A")),
    ] {
        let report = resume(more, suspended.clone(), yes.clone()).await;
        assert_eq!(words(&report), ["deferred"]);
        let changed = report.deferred().unwrap().changed("c1").unwrap().to_owned();
        assert!(changed.contains("a question that was not shown"), "{changed}");
    }
    assert_eq!(pay.ran().len(), 2);
}

#[tokio::test]
async fn a_person_who_is_asked_again_is_told_what_has_changed() {
    let pay = Recorder::new(["pay"]);
    let about = |digest: &'static str| {
        let asks = decide_fn(move |_, _| {
            Decision::ask("writes").with_pin("preview of todo.txt", digest).with_pin("user", "ann")
        });
        pay.clone().layered(asks.named("A"))
    };
    let suspended = suspend(about("old")).await;
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let report = resume(about("new"), suspended, yes).await;
    let changed = report.deferred().unwrap().changed("c1").unwrap().to_owned();
    assert_eq!(changed, "`todo.txt` has changed since it was approved");
}

#[tokio::test]
async fn a_changed_reason_under_a_stable_key_is_the_same_question() {
    // A1: the key is the reason unless a stable one is given.
    let balance = Arc::new(AtomicU32::new(100));
    let policy = |stable: bool| {
        let balance = Arc::clone(&balance);
        decide_fn(move |_, _| {
            let ask =
                Decision::ask(format!("balance is {}", balance.fetch_add(1, Ordering::Relaxed)));
            if stable { ask.with_key("pay") } else { ask }
        })
    };
    for (stable, word) in [(true, "returned"), (false, "deferred")] {
        let tools = Recorder::new(["pay"]).layered(policy(stable));
        let suspended = suspend(tools.clone()).await;
        let yes = suspended.requests().answer().approve("c1").build().unwrap();
        assert_eq!(words(&resume(tools, suspended, yes).await), [word]);
    }
}

#[tokio::test]
async fn on_the_approved_pass_a_new_denial_denies_and_changed_arguments_are_asked_about_again() {
    // A1: On the approved pass all middleware run again: a new DENY denies; changed args … defers again, saying what
    // changed.
    let pay = Recorder::new(["pay"]);
    let suspended = suspend(pay.clone().approval_required()).await;
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let denies = pay.clone().approval_required().layered(decide_fn(|_, call: &ToolCall| {
        assert_eq!(call.context().phase(), Phase::Approved);
        Decision::deny("frozen")
    }));
    let report = resume(denies, suspended.clone(), yes.clone()).await;
    assert_eq!(content(&report, 0), "frozen");

    let rewrites =
        || decide_fn(|_, call: &ToolCall| Decision::from(call.args().clone().with("n", 7)));
    let changed = pay.clone().approval_required().layered(rewrites());
    let report = resume(changed.clone(), suspended, yes).await;
    assert_eq!(words(&report), ["deferred"]);
    let again = report.into_suspended().unwrap();
    let requests = again.requests();
    assert_eq!(requests.approvals[0].args()["n"], 7, "it shows what would run now");
    assert!(requests.changed("c1").unwrap().contains("the arguments"));
    let yes = requests.answer().approve("c1").build().unwrap();
    assert_eq!(words(&resume(changed, again, yes).await), ["returned"]);
    assert_eq!(pay.ran()[0].args["n"], 7);
    assert_eq!(pay.ran().len(), 1);
}

#[tokio::test]
async fn an_approval_is_for_one_tool_with_its_schema() {
    // A1: … one leaf tool (identity and schema).
    let definition = |schema| ToolDefinition::new("pay", schema).with_kind(ToolKind::Unapproved);
    let before = Recorder::of([definition(json!({"type": "object"}))]);
    let after = Recorder::of([definition(
        json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    )]);
    let suspended = suspend(before).await;
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let report = resume(after.clone(), suspended, yes).await;
    assert_eq!(words(&report), ["deferred"]);
    assert!(report.deferred().unwrap().changed("c1").unwrap().contains("the tool is not the one"));
    assert!(after.ran().is_empty());
}

#[tokio::test]
async fn questions_of_a_pass_remain_when_it_is_repeated() {
    // D3: … the call passes the stack again with the changed ones …; what was asked stays asked.
    let pay = Recorder::new(["pay"]);
    let tools = pay
        .clone()
        .layered(decide_fn(|_, call: &ToolCall| Decision::from(call.args().clone().with("n", 2))))
        .layered(
            decide_fn(|_, call: &ToolCall| match call.args().u64("n") {
                Some(1) => Decision::ask("one?"),
                _ => Decision::allow(),
            })
            .named("asks"),
        );
    let suspended = suspend(tools.clone()).await;
    let requests = suspended.requests();
    assert_eq!(requests.questions("c1")[0].reason(), "one?");
    assert_eq!(requests.approvals[0].args()["n"], 2);
    let yes = requests.answer().approve("c1").build().unwrap();
    assert_eq!(words(&resume(tools, suspended, yes).await), ["returned"]);
    assert_eq!(pay.ran()[0].args["n"], 2);
}

#[tokio::test]
async fn a_denial_sees_the_arguments_that_a_layer_inside_has_changed() {
    // D3: Every middleware decides on the args that will run (by us or by a foreign layer).
    let guard = || {
        decide_fn(|_, call: &ToolCall| match call.args().str("path") {
            Some("/etc/passwd") => Decision::deny("not /etc"),
            _ => Decision::allow(),
        })
    };
    let evil = |call: ToolCall| {
        let args = call.args().clone().with("path", "/etc/passwd");
        call.with_args(args)
    };
    let pay = Recorder::new(["pay"]);
    let foreign = pay.clone().layered(tower::util::MapRequestLayer::new(evil)).layered(guard());
    let ours = pay
        .clone()
        .layered(decide_fn(move |_, call: &ToolCall| evil(call.clone()).args().clone()))
        .layered(guard());
    for tools in [foreign, ours] {
        let report = Turn::new(tools).run(one()).await.unwrap();
        assert_eq!(content(&report, 0), "not /etc");
    }
    assert!(pay.ran().is_empty());
}

#[tokio::test]
async fn arguments_that_change_again_are_denied_naming_the_layers() {
    // D3: … args that change again are denied, naming the layers.
    let pay = Recorder::new(["pay"]);
    let grows = decide_fn(|_, call: &ToolCall| {
        Decision::from(call.args().clone().with("n", call.args()["n"].as_u64().unwrap_or(0) + 1))
    });
    let tools =
        pay.clone().layered(grows.named("grows")).layered(decide_fn(|_, _| Decision::allow()));
    let report = Turn::new(tools).run(one()).await.unwrap();
    assert_eq!(words(&report), ["denied"]);
    assert!(content(&report, 0).as_str().unwrap().contains("`grows`"));
    assert!(pay.ran().is_empty());
}

// D3: of a layer that has no name it is said where it stands.
#[tokio::test]
async fn an_unnamed_layer_that_changes_arguments_again_is_named_by_its_position() {
    let pay = Recorder::new(["pay"]);
    let grows = relay(async |call: ToolCall, inside: Inside| {
        let more = call.args()["n"].as_u64().unwrap_or(0) + 1;
        let args = call.args().clone().with("n", more);
        inside.oneshot(call.with_args(args)).await
    });
    let allow = |name| decide_fn(|_, _| Decision::allow()).named(name);
    let middle = ServiceBuilder::new().layer(allow("outer")).layer(grows).layer(allow("inner"));
    let tools = pay.clone().layered(allow("innermost")).layered(middle);
    let report = Turn::new(tools).run(one()).await.unwrap();
    assert_eq!(
        content(&report, 0),
        "Not executed: a layer that is no middleware, outside of `inner`, changed the arguments again after they had \
         been decided on."
    );
    assert!(pay.ran().is_empty());
}

#[tokio::test]
async fn invalid_arguments_of_a_layer_are_an_error_of_that_layer() {
    // T5: Args a layer made are validated at the gate: invalid is that layer's error (D4).
    let pay = Recorder::new(["pay"]);
    let breaks =
        decide_fn(|_, call: &ToolCall| Decision::from(call.args().clone().with("invalid", 1)))
            .named("breaks");
    let report = Turn::new(pay.clone().layered(breaks)).run(one()).await.unwrap();
    assert_eq!(words(&report), ["denied"]);
    assert!(content(&report, 0).as_str().unwrap().contains("`breaks`"));
    assert!(pay.ran().is_empty());
}

#[tokio::test]
async fn edited_arguments_run_as_typed_or_are_asked_about_again() {
    // A2: `override_args` replace the model's args and go through the whole stack; … if the stack changes them the call
    // is asked about again, and never runs with arguments that no person has seen.
    let pay = Recorder::new(["pay"]);
    let tools = pay.clone().approval_required();
    let suspended = suspend(tools.clone()).await;
    let edit = |suspended: &SuspendedTurn, args| {
        suspended.requests().answer().approve_with("c1", args).build().unwrap()
    };
    let report = resume(tools, suspended.clone(), edit(&suspended, Args::new().with("n", 5))).await;
    assert_eq!(pay.ran()[0].args, Args::new().with("n", 5));
    assert_eq!(report.calls()[0].call().args()["n"], 1, "the history keeps what the model sent");
    assert_eq!(report.calls()[0].answered().unwrap().word(), "edited");

    let sandbox =
        pay.clone().approval_required().layered(decide_fn(|_, call: &ToolCall| {
            match call.args()["n"].as_u64() {
                Some(n) if n < 10 => Decision::from(call.args().clone().with("n", n + 10)),
                _ => Decision::allow(),
            }
        }));
    let suspended = suspend(sandbox.clone()).await;
    let report =
        resume(sandbox.clone(), suspended.clone(), edit(&suspended, Args::new().with("n", 5)))
            .await;
    assert_eq!(words(&report), ["deferred"]);
    let again = report.into_suspended().unwrap();
    assert_eq!(again.requests().approvals[0].args()["n"], 15);
    let yes = again.requests().answer().approve("c1").build().unwrap();
    assert_eq!(words(&resume(sandbox, again, yes).await), ["returned"]);
    assert_eq!(pay.ran().last().unwrap().args["n"], 15);
}

#[tokio::test]
async fn edited_arguments_are_validated_before_anything_executes() {
    // A2: they are validated when answers are applied, before anything executes.
    let pay = Recorder::new(["pay"]);
    let turn = Turn::new(pay.clone().approval_required());
    let calls = vec![call("c1", "pay", json!({})), call("c2", "pay", json!({}))];
    let suspended = turn.run(calls).await.unwrap().into_suspended().unwrap();
    let requests = suspended.requests();
    let answers =
        requests.answer().approve("c1").approve_with("c2", Args::new().with("invalid", 1));
    let unfit = answers.clone();
    let error = turn.resume(suspended.clone(), answers.build().unwrap()).await.unwrap_err();
    assert!(
        matches!(error.error(), countersign::Error::Answers(AnswerError::InvalidArgs { ids, .. }) if ids == &["c2"])
    );
    assert!(pay.ran().is_empty());
    assert_eq!(error.suspended(), Some(&suspended), "bad input loses nothing");
    // A4: the error names the ids, all of them.
    let both =
        unfit.unchecked().approval("c1", ToolApproved::with_args(Args::new().with("invalid", 1)));
    let error = turn.resume(suspended, both).await.unwrap_err();
    assert_eq!(error.error().ids(), ["c1", "c2"]);
    assert!(pay.ran().is_empty());
}

#[tokio::test]
async fn metadata_reaches_the_tool_only_through_the_answers() {
    // A5: No metadata passes from request to execution by itself; only `DeferredToolResults.metadata` reaches the tool.
    let pay = Recorder::new(["pay"]);
    let tools = pay
        .clone()
        .layered(
            decide_fn(|_, _| {
                Decision::ask("inner").with_metadata("k", "inner").with_metadata("inner", 1)
            })
            .named("I"),
        )
        .layered(decide_fn(|_, _| Decision::ask("outer").with_metadata("k", "outer")).named("O"));
    let suspended = suspend(tools.clone()).await;
    let requests = suspended.requests();
    assert_eq!(
        requests.metadata["c1"]["k"], "outer",
        "outermost first, first writer of a key wins"
    );
    assert_eq!(requests.metadata["c1"]["inner"], 1);
    assert_eq!(requests.questions("c1")[1].metadata()["k"], "inner", "each entry knows its author");

    let yes = requests.answer().approve("c1").build().unwrap();
    resume(tools.clone(), suspended.clone(), yes.clone()).await;
    resume(tools, suspended, yes.copy_metadata(&requests)).await;
    assert_eq!(pay.ran()[0].metadata, None);
    assert_eq!(pay.ran()[1].metadata, Some(json!({"k": "outer", "inner": 1})));
}

#[tokio::test]
async fn blocked_calls_are_denied_by_every_ready_made_handler() {
    // A5: `approval_policy: blocked` from anyone denies in every ready-made handler, the approve-all one too.
    let pay = Recorder::new(["pay"]);
    let tools = pay
        .clone()
        .layered(
            decide_fn(|_, _| {
                Decision::ask("frozen").with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED)
            })
            .named("I"),
        )
        .layered(
            decide_fn(|_, _| {
                Decision::ask("").with_metadata(metadata::APPROVAL_POLICY, metadata::NEEDS_APPROVAL)
            })
            .named("O"),
        );
    let approves = countersign::handler::permission_handler(async |_, _, _| true);
    let (channel, batches) = countersign::handler::channel(1);
    let turns = [
        Turn::new(tools.clone()).deferred_tool_handler(countersign::handler::danger_approve_all()),
        Turn::new(tools.clone()).deferred_tool_handler(approves),
        Turn::new(tools.clone()).deferred_tool_handler(countersign::handler::DenyAll::default()),
        Turn::new(tools).deferred_tool_handler(channel),
    ];
    for turn in turns {
        let report = turn.run(one()).await.unwrap();
        assert_eq!(words(&report), ["denied"], "{turn:?}");
        assert_eq!(content(&report, 0), "Blocked by policy: frozen");
    }
    assert!(pay.ran().is_empty());
    assert!(batches.is_empty(), "the handler is not asked");
}

// A5: "A call with `approval_policy: \"blocked\"` … is denied": and approving all calls of its tool does not approve
// it.
#[tokio::test]
async fn approving_a_tool_leaves_its_blocked_calls_unanswered() {
    let pay = Recorder::new(["pay"]);
    let tools = pay.clone().layered(decide_fn(|_, call| match call.args()["n"].as_i64() {
        Some(1) => Decision::ask("small"),
        _ => Decision::ask("frozen").with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED),
    }));
    let calls = vec![call("c1", "pay", json!({"n": 1})), call("c2", "pay", json!({"n": 2}))];
    let suspended = Turn::new(tools.clone()).run(calls).await.unwrap().into_suspended().unwrap();
    let requests = suspended.requests();
    let error = requests.answer().approve_tool("pay").build().unwrap_err();
    assert_eq!(error, AnswerError::Missing { ids: vec!["c2".into()] });
    let answers = requests.answer().approve_tool("pay").leave_rest().build().unwrap();
    assert_eq!(words(&resume(tools, suspended, answers).await), ["returned", "deferred"]);
    assert_eq!(pay.ids(), ["c1"]);
}

// A6: "Requests carry fingerprints and a batch id …, which are checked against them": the fingerprint of each call too.
#[tokio::test]
async fn answers_of_the_right_batch_with_another_fingerprint_for_a_call_are_refused() {
    let pay = Recorder::new(["pay"]);
    let tools = pay.clone().approval_required();
    let calls = || vec![call("c1", "pay", json!({"n": 1})), call("c2", "pay", json!({"n": 2}))];
    let suspended = Turn::new(tools.clone()).run(calls()).await.unwrap().into_suspended().unwrap();
    let answers = suspended.requests().answer().approve("c1").approve("c2").build().unwrap();
    let bound = serde_json::to_value(&answers).unwrap();
    let of_c1 = bound["_countersign"]["fingerprints"]["c1"].clone();
    for other in [Some(of_c1), Some(json!("")), None] {
        let mut changed = bound.clone();
        let fingerprints = changed["_countersign"]["fingerprints"].as_object_mut().unwrap();
        match other {
            Some(other) => _ = fingerprints.insert("c2".into(), other),
            None => _ = fingerprints.remove("c2"),
        }
        let changed = serde_json::from_value(changed).unwrap();
        let error = Turn::new(tools.clone()).resume(suspended.clone(), changed).await.unwrap_err();
        assert!(
            matches!(
                error.error(),
                countersign::Error::Answers(AnswerError::OtherBatch { ids }) if ids == &["c2"]
            ),
            "{error}"
        );
    }
    assert!(pay.ran().is_empty(), "A4: nothing deferred has run");
    assert_eq!(words(&resume(tools, suspended, answers).await), ["returned", "returned"]);
}

mod mail {
    use super::{ToolError, Update};

    pub(super) async fn go(args: Update) -> Result<String, ToolError> {
        Ok(format!("mailed {}", args.path))
    }
}

mod shred {
    use super::{ToolError, Update};

    pub(super) async fn go(args: Update) -> Result<String, ToolError> {
        Ok(format!("shredded {}", args.path))
    }
}

// A1: "An approval is for one call, one tool (its set and schema)": two sets without an id are two sets.
#[tokio::test]
async fn sets_without_an_id_are_distinguished_by_their_functions() {
    let mail = || FunctionToolset::new().tool(tool_fn("go", "", mail::go)).approval_required();
    let shred = || FunctionToolset::new().tool(tool_fn("go", "", shred::go)).approval_required();
    let calls = vec![call("c1", "go", json!({"path": "a"}))];
    let suspended = Turn::new(mail()).run(calls).await.unwrap().into_suspended().unwrap();
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let report = resume(shred(), suspended.clone(), yes.clone()).await;
    assert_eq!(words(&report), ["deferred"]);
    let requests = report.deferred().unwrap();
    assert!(requests.changed("c1").unwrap().contains("its set or its schema"), "{requests:?}");
    assert_eq!(content(&resume(mail(), suspended.clone(), yes.clone()).await, 0), "mailed a");

    // With an id it is the id that counts.
    let named = |tool| FunctionToolset::new().id("work").tool(tool).approval_required();
    let calls = vec![call("c1", "go", json!({"path": "a"}))];
    let turn = Turn::new(named(tool_fn("go", "", mail::go)));
    let suspended = turn.run(calls).await.unwrap().into_suspended().unwrap();
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let moved = named(tool_fn("go", "", shred::go));
    assert_eq!(content(&resume(moved, suspended, yes).await, 0), "shredded a");
}

#[tokio::test]
async fn answers_for_another_batch_are_refused_and_bare_ones_can_be() {
    // A6: each request carries its fingerprint and batch id, `requests.answer()` puts them into the results.
    let pay = Recorder::new(["pay"]);
    let tools = pay.clone().approval_required();
    let first = suspend(tools.clone()).await;
    let second =
        Turn::new(tools.clone()).run(vec![call("c1", "pay", json!({"n": 9999}))]).await.unwrap();
    let second = second.into_suspended().unwrap();
    let late = first.requests().answer().approve("c1").build().unwrap();
    let error = Turn::new(tools.clone()).resume(second.clone(), late).await.unwrap_err();
    assert!(
        matches!(error.error(), countersign::Error::Answers(AnswerError::OtherBatch { .. })),
        "{error}"
    );

    let bare = DeferredToolResults::new().approve("c1");
    let strict = Turn::new(tools.clone()).require_bound_answers();
    let error = strict.resume(second.clone(), bare.clone()).await.unwrap_err();
    assert!(matches!(error.error(), countersign::Error::Answers(AnswerError::NotBound)), "{error}");
    assert!(pay.ran().is_empty());
    assert_eq!(words(&resume(tools, second, bare).await), ["returned"]);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Update {
    path: String,
}

async fn update_file(cx: RunContext, args: Update) -> Result<String, ToolError> {
    if args.path == ".env" {
        cx.approved_for("protected file")?;
    }
    Ok(format!("updated {}", args.path))
}

#[tokio::test]
async fn a_tool_asks_its_own_question_until_exactly_it_was_shown() {
    // A7: a tool body asks its own question by `cx.approved_for("protected file")?`, which defers until exactly that
    // was shown.
    let tools = FunctionToolset::new().tool(tool_fn("update_file", "Updates a file", update_file));
    let tools = tools.layered(decide_fn(|_, _| Decision::ask("any file")).named("Files"));
    let turn = Turn::new(tools);
    let calls = vec![
        call("c1", "update_file", json!({"path": ".env"})),
        call("c2", "update_file", json!({"path": "a"})),
    ];
    let suspended = turn.run(calls).await.unwrap().into_suspended().unwrap();
    let yes = suspended.requests().answer().approve("c1").approve("c2").build().unwrap();
    let report = turn.resume(suspended, yes).await.unwrap();
    assert_eq!(
        words(&report),
        ["deferred", "returned"],
        "an approval for another reason opens nothing"
    );
    let again = report.into_suspended().unwrap();
    let asked: Vec<_> =
        again.requests().questions("c1").iter().map(|it| it.reason().to_owned()).collect();
    assert_eq!(asked, ["any file", "protected file"]);
    let yes = again.requests().answer().approve("c1").build().unwrap();
    assert_eq!(content(&turn.resume(again, yes).await.unwrap(), 0), "updated .env");
}

#[tokio::test]
async fn a_call_is_deferred_at_most_so_many_times_and_then_denied() {
    // D7: One call may be deferred at most 16 times (configurable), then it is denied, saying so.
    let restless = Arc::new(AtomicU32::new(0));
    let tools = Recorder::new(["pay"]).layered(decide_fn(move |_, _| {
        Decision::ask(format!("again {}", restless.fetch_add(1, Ordering::Relaxed)))
    }));
    for (turn, max) in
        [(Turn::new(tools.clone()), 16), (Turn::new(tools.clone()).max_deferrals(3), 3)]
    {
        let mut report = turn.run(one()).await.unwrap();
        let mut times = 0;
        while let Some(suspended) = report.suspended().cloned() {
            times += 1;
            let yes = suspended.requests().answer().approve("c1").build().unwrap();
            report = turn.resume(suspended, yes).await.unwrap();
        }
        assert_eq!(times, max);
        assert_eq!(words(&report), ["denied"]);
        assert!(content(&report, 0).as_str().unwrap().contains(&format!("deferred {max} times")));
    }
}

#[tokio::test]
async fn a_no_is_final() {
    // A3: A NO is final for that call: no later predicate, handler or resume turns it into a run.
    let pay = Recorder::new(["pay"]);
    let suspended = suspend(pay.clone().approval_required()).await;
    let no = suspended.requests().answer().deny("c1", "not today").build().unwrap();
    // The predicate has changed: no layer would ask now.
    let report = resume(pay.clone(), suspended, no).await;
    assert_eq!(content(&report, 0), "not today");

    let chain = countersign::handler::HandlerChain::new()
        .with(countersign::handler::handler_fn_sync(|_, requests| {
            requests.answer().deny("c1", "no").build()
        }))
        .with(countersign::handler::danger_approve_all());
    let report = Turn::new(pay.clone().approval_required())
        .deferred_tool_handler(chain)
        .run(one())
        .await
        .unwrap();
    assert_eq!(content(&report, 0), "no");
    assert!(pay.ran().is_empty());
}

#[tokio::test]
async fn only_true_and_approved_objects_are_approvals() {
    // A4: … a non-boolean approval … is an error.
    for bad in [
        "1",
        "0",
        "\"true\"",
        "null",
        "\"yes\"",
        "{\"kind\":\"bogus\"}",
        "{\"override_args\":{}}",
        "[true]",
    ] {
        let text = format!("{{\"approvals\":{{\"c1\":{bad}}}}}");
        assert!(serde_json::from_str::<DeferredToolResults>(&text).is_err(), "{bad}");
    }
    assert!(
        serde_json::from_str::<DeferredToolResults>("{\"approvals\":{\"c1\":false,\"c1\":true}}")
            .is_err()
    );
    for bad in [
        "{\"kind\":\"model-retry\"}",
        "{\"kind\":\"tool-failed\",\"message\":1}",
        "{\"kind\":\"tool-return\"}",
    ] {
        let text = format!("{{\"calls\":{{\"c1\":{bad}}}}}");
        assert!(serde_json::from_str::<DeferredToolResults>(&text).is_err(), "{bad}");
    }
    let ok: DeferredToolResults =
        serde_json::from_str("{\"approvals\":{\"a\":true,\"b\":{\"kind\":\"tool-approved\"},\"c\":{\"kind\":\"tool-denied\"}}}")
            .unwrap();
    assert_eq!(ok.approvals["a"], true.into());
    assert_eq!(ok.approvals["b"], ToolApproved::new().into());
    assert_eq!(ok.approvals["c"], false.into());
}

#[tokio::test]
async fn an_external_tool_with_an_approval_is_not_handed_out_without_it() {
    // D5: a wrapper that makes the tool external does not take the question away.
    let pay = Recorder::of([
        ToolDefinition::new("pay", json!({"type": "object"})).with_kind(ToolKind::Unapproved)
    ]);
    let outside = |definitions: Vec<ToolDefinition>| {
        definitions.into_iter().map(|it| it.with_kind(ToolKind::External)).collect()
    };
    let tools = pay.clone().prepared(move |_, definitions| outside(definitions));
    let suspended = suspend(tools.clone()).await;
    assert_eq!(suspended.requests().approvals.len(), 1);
    let yes = suspended.requests().answer().approve("c1").build().unwrap();
    let report = resume(tools, suspended, yes).await;
    assert_eq!(report.deferred().unwrap().calls.len(), 1, "approved, and now handed out");
    assert!(pay.ran().is_empty());
}

// A1: "A declared approval is an open question also where a layer answered in the tool's place."
#[tokio::test]
async fn a_declared_approval_is_required_also_where_a_layer_answers() {
    let salaries = ToolDefinition::new("salaries", json!({"type": "object"}));
    for declared in [salaries.clone().with_kind(ToolKind::Unapproved), salaries] {
        let recorder = Recorder::of([declared.clone()]);
        let cache = relay(async |_, _| Ok(Outcome::returned("from the cache")));
        let tools = recorder.clone().layered(cache);
        let tools = match declared.kind() {
            ToolKind::Unapproved => tools,
            // As a wrapper declares it.
            _ => tools.prepared(|_, tools| {
                tools.into_iter().map(|tool| tool.with_kind(ToolKind::Unapproved)).collect()
            }),
        };
        let turn = Turn::new(tools);
        let report = run_one(&turn, call("c", "salaries", json!({}))).await;
        assert_eq!(words(&report), ["deferred"]);
        assert_eq!(report.calls()[0].asked().len(), 1);

        let suspended = stored(report.suspended().unwrap());
        let no = suspended.requests().answer().deny("c", "not yours").build().unwrap();
        assert_eq!(words(&turn.resume(suspended.clone(), no).await.unwrap()), ["denied"]);
        let yes = suspended.requests().answer().approve("c").build().unwrap();
        let report = turn.resume(suspended, yes).await.unwrap();
        assert_eq!(content(&report, 0), "from the cache");
        assert_eq!(recorder.ids(), [""; 0]);
    }
}

// A1: what a layer answers in the tool's place is answered for the call that was approved, not for another one.
#[tokio::test]
async fn an_answer_in_the_tools_place_needs_the_approval_that_the_gate_would_need() {
    let recorder = Recorder::new(["salaries"]);
    let hit = Arc::new(AtomicBool::new(false));
    let of = Arc::new(Mutex::new("ann"));
    let (hits, who) = (Arc::clone(&hit), Arc::clone(&of));
    let cache = relay(move |call: ToolCall, inside: Inside| {
        let hit = hits.load(Ordering::Relaxed);
        async move {
            match hit {
                true => Ok(Outcome::returned(format!("cached: {}", call.args()["of"]))),
                false => inside.oneshot(call).await,
            }
        }
    });
    let looks = relay(|call: ToolCall, inside: Inside| inside.oneshot(call));
    let fills = decide_fn(move |_, call: &ToolCall| {
        let of = *who.lock().unwrap();
        Decision::allow().with_args(call.args().clone().with("of", of))
    });
    let asks = decide_fn(|_, _| Decision::ask("may it?"));

    // Inside of the layer that fills in: the person has changed meanwhile.
    let inside = recorder
        .clone()
        .layered(cache.clone())
        .layered(asks.named("asks"))
        .layered(fills.named("fills"))
        .layered(looks);
    let turn = Turn::new(inside);
    let report = run_one(&turn, call("c", "salaries", json!({}))).await;
    let suspended = stored(report.suspended().unwrap());
    hit.store(true, Ordering::Relaxed);
    let yes = suspended.requests().answer().approve("c").build().unwrap();
    let report = turn.resume(suspended.clone(), yes.clone()).await.unwrap();
    assert_eq!(content(&report, 0), "cached: \"ann\"");
    *of.lock().unwrap() = "bob";
    let report = turn.resume(suspended, yes).await.unwrap();
    assert_eq!(words(&report), ["deferred"], "the answer is about others than what was approved");
    assert!(recorder.ran().is_empty());
}
