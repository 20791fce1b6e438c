//! A response: T1–T6, A4, and the ready-made handlers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::call::ToolKind;
use countersign::handler::{
    DenyAll, FailClosed, HandlerChain, Stopped, channel, danger_approve_all, handler_fn_sync,
    permission_handler,
};
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::outcome::{CallDeferred, DeferralKind, ModelRetry, ToolFailed};
use countersign::toolset::blocking_tool_fn;
use countersign::turn::TurnError;
use countersign::{
    AnswerError, Decision, DeferredToolRequests, DeferredToolResults, Error, FunctionToolset,
    RunContext, ToolDefinition, ToolError, Turn, decide_fn, handler_fn, schemars, tool_fn,
};
use countersign::{ToolCall, ToolsExt};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, content, words};

fn kinds() -> Recorder {
    let of = |name, kind| ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind);
    Recorder::of([
        of("read", ToolKind::Function),
        of("delete", ToolKind::Unapproved),
        of("search", ToolKind::External),
    ])
}

fn mixed() -> Vec<ToolCall> {
    vec![
        call("d1", "delete", json!({"n": 1})),
        call("r1", "read", json!({"n": 2})),
        call("s1", "search", json!({"n": 3})),
        call("d2", "delete", json!({"n": 4})),
    ]
}

fn refused(error: &TurnError) -> &AnswerError {
    match error.error() {
        Error::Answers(error) => error,
        other => panic!("expected answers that do not fit, not {other:?}"),
    }
}

#[tokio::test]
async fn the_handler_sees_every_deferred_call_of_a_response_before_any_of_them_executes() {
    // The proposal: "The key invariant is that the handler sees all deferred calls from a single model response before any
    // of those deferred calls execute."  T1, T2.
    let tools = kinds();
    let (seen, ran) = (Arc::new(Mutex::new(Vec::new())), tools.clone());
    let handler = {
        let seen = Arc::clone(&seen);
        handler_fn_sync(move |cx: &RunContext, requests: &DeferredToolRequests| {
            let ids: Vec<_> = requests.iter().map(|call| call.id().to_owned()).collect();
            seen.lock().unwrap().push((ids, ran.ids()));
            assert_eq!(cx.tool_name(), None);
            requests.answer().approve("d1").deny("d2", "no").result("s1", json!([1])).build()
        })
    };
    let report =
        Turn::new(tools.clone()).deferred_tool_handler(handler).run(mixed()).await.unwrap();
    let expected = (vec!["d1".to_owned(), "d2".into(), "s1".into()], vec!["r1".to_owned()]);
    assert_eq!(*seen.lock().unwrap(), [expected], "asked once, ordinary calls have run");
    assert_eq!(
        words(&report),
        ["returned", "returned", "returned", "denied"],
        "T3: in model order"
    );
    assert_eq!(tools.ids(), ["d1", "r1"]);
    assert_eq!(content(&report, 2), json!([1]));
}

#[tokio::test]
async fn answers_are_strict_and_total() {
    // A4: a missing answer …, both given and left, an unknown id, the wrong category …, is a `AnswerError` naming the
    // ids, and nothing deferred has executed.
    let answers = DeferredToolResults::new;
    let all = || answers().approve("d1").approve("d2").result("s1", 1);
    let cases: Vec<(DeferredToolResults, AnswerError)> = vec![
        (answers().approve("d1"), AnswerError::Missing { ids: vec!["d2".into(), "s1".into()] }),
        (all().leave("d1"), AnswerError::Contradictory { ids: vec!["d1".into()] }),
        (all().result("d2", 1), AnswerError::Contradictory { ids: vec!["d2".into()] }),
        (all().approve("zzz"), AnswerError::Unknown { ids: vec!["zzz".into()] }),
        (all().approve("r1"), AnswerError::Unknown { ids: vec!["r1".into()] }),
        (all().leave("zzz"), AnswerError::Unknown { ids: vec!["zzz".into()] }),
        (
            answers().approve("d1").result("d2", 1).approve("s1"),
            AnswerError::WrongKind { ids: vec!["d2".into(), "s1".into()] },
        ),
        (
            answers().approve("zzz").result("d1", 1).approve("d2").leave("d2"),
            AnswerError::Several {
                problems: vec![
                    AnswerError::Unknown { ids: vec!["zzz".into()] },
                    AnswerError::Contradictory { ids: vec!["d2".into()] },
                    AnswerError::WrongKind { ids: vec!["d1".into()] },
                    AnswerError::Missing { ids: vec!["s1".into()] },
                ],
            },
        ),
    ];
    let tools = kinds();
    for (given, expected) in cases {
        let inline = given.clone();
        let handler = handler_fn_sync(move |_, _| Ok::<_, AnswerError>(inline.clone()));
        let error =
            Turn::new(tools.clone()).deferred_tool_handler(handler).run(mixed()).await.unwrap_err();
        assert_eq!(refused(&error), &expected, "inline");

        // On resume alike; and the value that the error carries can still be answered rightly.
        let suspended = error.suspended().unwrap().clone();
        let error = Turn::new(tools.clone()).resume(suspended, given).await.unwrap_err();
        assert_eq!(refused(&error), &expected, "on resume");
        assert!(tools.ran().iter().all(|ran| ran.id == "r1"), "nothing deferred has executed");
        let suspended = error.suspended().unwrap().clone();
        let report = Turn::new(kinds()).resume(suspended, all()).await.unwrap();
        assert_eq!(words(&report), ["returned"; 4]);
    }
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_ends_the_response_and_loses_nothing() {
    let tools = kinds();
    let fails = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>("the line is dead"));
    let panics =
        handler_fn(async |_, _| -> Result<DeferredToolResults, AnswerError> { panic!("oh") });
    for turn in [
        Turn::new(tools.clone()).deferred_tool_handler(fails),
        Turn::new(tools.clone()).deferred_tool_handler(panics),
    ] {
        let error = turn.run(mixed()).await.unwrap_err();
        assert!(matches!(error.error(), Error::Handler { .. }), "{error:?}");
        assert_eq!(
            error.report().calls()[1].outcome().word(),
            "returned",
            "what ran is in the report"
        );
        assert_eq!(error.suspended().unwrap().requests().iter().count(), 3);
    }
    assert_eq!(tools.ids(), ["r1", "r1"]);
}

#[tokio::test]
async fn a_stop_ends_the_response_without_denials() {
    // S8: "Stop is not no": "without one the calls are cancelled".
    let stops = || handler_fn_sync(|_, _| Err::<DeferredToolResults, _>(Stopped));
    let answers =
        handler_fn_sync(|_, requests| requests.answer().approve("d1").leave_rest().build());
    let tools = kinds();
    for turn in [
        Turn::new(tools.clone()).deferred_tool_handler(stops()),
        Turn::new(tools.clone()).deferred_tool_handler(FailClosed::new(stops())),
        Turn::new(tools.clone())
            .deferred_tool_handler(HandlerChain::new().with(answers).with(stops())),
    ] {
        let error = turn.run(mixed()).await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error:?}");
        assert_eq!(words(error.report()), ["failed", "returned", "failed", "failed"]);
        assert!(error.report().calls().iter().all(|call| call.answered().is_none()));
        let told = content(error.report(), 0);
        assert_eq!(told, "Not executed: a person stopped the run.");
        let suspended = error.into_suspended().unwrap();
        assert!(suspended.requests().is_empty(), "nothing is open any more");
        let report = Turn::new(tools.clone()).ask(suspended).await.unwrap();
        assert_eq!(words(&report), ["failed", "returned", "failed", "failed"]);
    }
    assert_eq!(tools.ids(), ["r1"; 3], "nothing that was asked about has run");
}

#[tokio::test]
async fn a_stop_in_a_ledger_leaves_the_asks_open() {
    // S8: "with a ledger its asks stay open and can be taken up".
    let ledger = Ledger::new(MemoryStore::new());
    let stops = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>(Stopped));
    let turn = Turn::new(kinds()).ledger(ledger.clone());
    let error = turn.clone().deferred_tool_handler(stops).run(mixed()).await.unwrap_err();
    assert!(error.error().is_stopped());
    assert_eq!(ledger.list(Some(AskState::Pending), 10).await.unwrap().records.len(), 3);
    let given = DeferredToolResults::new().approve("d1").approve("d2").result("s1", 1);
    let report = turn.resume(error.into_suspended().unwrap(), given).await.unwrap();
    assert_eq!(words(&report), ["returned"; 4]);
}

#[tokio::test]
async fn left_calls_go_to_the_next_handler_and_then_to_the_caller() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let only = |id: &'static str| {
        let seen = Arc::clone(&seen);
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            seen.lock()
                .unwrap()
                .push(requests.iter().map(|call| call.id().to_owned()).collect::<Vec<_>>());
            requests.answer().approve(id).leave_rest().build()
        })
    };
    let tools = kinds();
    let turn = Turn::new(tools.clone())
        .deferred_tool_handler(HandlerChain::new().with(only("d2")).with(only("d1")));
    let report = turn.run(mixed()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [vec!["d1", "d2", "s1"], vec!["d1", "s1"]]);
    assert_eq!(words(&report), ["returned", "returned", "deferred", "returned"]);
    assert_eq!(report.deferred().unwrap().kind("s1"), Some(DeferralKind::External));

    // A handler that forgets is an error, also in the middle of a chain.
    let forgets = handler_fn_sync(|_, _| Ok::<_, AnswerError>(DeferredToolResults::new()));
    let turn = Turn::new(kinds())
        .deferred_tool_handler(HandlerChain::new().with(forgets).with(danger_approve_all()));
    assert!(matches!(refused(&turn.run(mixed()).await.unwrap_err()), AnswerError::Missing { .. }));
}

#[tokio::test]
async fn fail_closed_denies_what_the_inner_handler_leaves_forgets_or_fails_on() {
    let leaves =
        handler_fn_sync(|_, requests| requests.answer().approve("d1").leave_rest().build());
    let forgets = handler_fn_sync(|_, requests| {
        Ok::<_, AnswerError>(requests.answer().approve("d1").unchecked())
    });
    let report = |turn: Turn| async move { words(&turn.run(mixed()).await.unwrap()) };
    assert_eq!(
        report(Turn::new(kinds()).deferred_tool_handler(FailClosed::new(leaves))).await,
        ["returned", "returned", "failed", "denied"]
    );
    assert_eq!(
        report(Turn::new(kinds()).deferred_tool_handler(FailClosed::new(forgets))).await,
        ["returned", "returned", "failed", "denied"]
    );
    let wrong = handler_fn_sync(|_, _| {
        Ok::<_, AnswerError>(DeferredToolResults::new().approve("d1").approve("who?"))
    });
    let fails = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>("dead"));
    let panics =
        handler_fn_sync(|_, _| -> Result<DeferredToolResults, AnswerError> { panic!("oh") });
    for turn in [
        Turn::new(kinds()).deferred_tool_handler(FailClosed::new(wrong)),
        Turn::new(kinds()).deferred_tool_handler(FailClosed::new(fails)),
        Turn::new(kinds()).deferred_tool_handler(FailClosed::new(panics)),
        Turn::new(kinds()).deferred_tool_handler(DenyAll::default()),
    ] {
        assert_eq!(report(turn).await, ["denied", "returned", "failed", "denied"]);
    }
}

#[tokio::test]
async fn the_per_call_handler_is_asked_with_context_call_and_reason() {
    // The proposal: `permission_handler(name, args, reason) -> bool`.
    let asked = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let asked = Arc::clone(&asked);
        permission_handler(move |cx: RunContext, call: ToolCall, reason: String| {
            let told = format!("{} {} {} {reason}", cx.agent_path(), call.name(), call.args());
            asked.lock().unwrap().push(told);
            std::future::ready(call.args()["n"] == 1)
        })
    };
    let tools = kinds().layered(decide_fn(|_, call: &ToolCall| match call.name() {
        "delete" => Decision::ask(format!("Delete {}?", call.args()["n"])),
        _ => Decision::allow(),
    }));
    let report = Turn::new(tools).deferred_tool_handler(handler).run(mixed()).await.unwrap();
    assert_eq!(
        *asked.lock().unwrap(),
        ["root delete {\"n\":1} Delete 1?", "root delete {\"n\":4} Delete 4?"]
    );
    assert_eq!(words(&report), ["returned", "returned", "deferred", "denied"]);
}

#[tokio::test]
async fn a_channel_sends_batches_and_receives_answers() {
    let (handler, mut batches) = channel(1);
    let turn = Turn::new(kinds()).deferred_tool_handler(handler);
    let answers = async {
        let batch = batches.recv().await.unwrap();
        assert!(!batch.is_abandoned());
        let answers = batch.requests().answer().approve("d1").deny_rest("no").build().unwrap();
        assert!(batch.answer(answers));
        drop(batches.recv().await);
        batches
    };
    let (first, batches) = tokio::join!(
        async {
            let first = turn.run(mixed()).await;
            (first, turn.run(mixed()).await)
        },
        answers
    );
    assert_eq!(words(&first.0.unwrap()), ["returned", "returned", "failed", "denied"]);
    assert!(
        matches!(first.1.unwrap_err().error(), Error::Handler { .. }),
        "a dropped batch is an error"
    );
    drop(batches);
    assert!(
        matches!(turn.run(mixed()).await.unwrap_err().error(), Error::Handler { .. }),
        "a dropped receiver is an error"
    );
}

#[tokio::test]
async fn a_call_that_defers_again_is_returned_and_the_handler_is_not_asked_again() {
    // T4: A call that defers again after approval is returned, not offered to handlers again; what ran is not rolled
    // back.
    let asked = Arc::new(AtomicUsize::new(0));
    let handler = {
        let asked = Arc::clone(&asked);
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok::<_, AnswerError>(
                requests
                    .iter()
                    .fold(DeferredToolResults::new(), |all, call| all.approve(call.id())),
            )
        })
    };
    let tools =
        Recorder::new(["wire"]).body(|cx, call| match (call.id(), cx.tool_call_approved()) {
            ("w1", true) => Err(CallDeferred::new().with_metadata("task", 7).into()),
            (_, false) => {
                Err(countersign::outcome::ApprovalRequired::new().with_metadata("stage", 1).into())
            }
            (_, true) => Ok(json!("done")),
        });
    let calls = vec![call("w1", "wire", json!({})), call("w2", "wire", json!({}))];
    let report = Turn::new(tools.clone()).deferred_tool_handler(handler).run(calls).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(words(&report), ["deferred", "returned"]);
    let requests = report.deferred().unwrap();
    assert_eq!(requests.metadata["w1"]["task"], 7);
    assert!(
        !requests.metadata["w1"].contains_key("stage"),
        "it carries the metadata of its last deferral"
    );
    assert_eq!(tools.ids(), ["w1", "w1", "w2", "w2"]);
}

#[tokio::test]
async fn calls_run_concurrently_and_sequential_ones_alone() {
    // T1: `sequential` tools are barriers on both passes, held until the body has ended.
    for approval in [false, true] {
        let running = Arc::new(Mutex::new((0_usize, 0_usize)));
        let tool = |name: &'static str| {
            let running = Arc::clone(&running);
            tool_fn(name, "", move |_: Nothing| {
                let running = Arc::clone(&running);
                async move {
                    {
                        let mut now = running.lock().unwrap();
                        now.0 += 1;
                        now.1 = now.1.max(now.0);
                    }
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                    }
                    let seen = std::mem::replace(&mut running.lock().unwrap().1, 0);
                    running.lock().unwrap().0 -= 1;
                    Ok::<_, ToolError>(seen)
                }
            })
        };
        let tools = FunctionToolset::new().tool(tool("together")).tool(tool("alone").sequential());
        let tools = if approval { tools.approval_required() } else { tools.into() };
        let names = ["together", "together", "alone", "together", "alone", "alone", "together"];
        let calls = names
            .iter()
            .enumerate()
            .map(|(at, name)| call(&format!("c{at}"), name, json!({})))
            .collect();
        let report =
            Turn::new(tools).deferred_tool_handler(danger_approve_all()).run(calls).await.unwrap();
        for (at, name) in names.iter().enumerate().filter(|(_, name)| **name == "alone") {
            assert_eq!(content(&report, at), 1, "{name} overlapped another call");
        }
        assert_eq!(content(&report, 0), 2, "the others run together");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_barrier_waits_for_a_blocking_body_whose_call_was_given_up() {
    let (start, started) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(AtomicUsize::new(0));
    let slow = {
        let (started, ended) = (Mutex::new(started), Arc::clone(&ended));
        blocking_tool_fn("slow", "", move |_, _: Nothing| {
            started.lock().unwrap().recv().unwrap();
            ended.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("done")
        })
    };
    let seen = Arc::clone(&ended);
    let alone = tool_fn("alone", "", move |_: Nothing| {
        std::future::ready(Ok::<_, ToolError>(seen.load(Ordering::SeqCst)))
    });
    let tools = FunctionToolset::new().tool(slow).tool(alone.sequential());
    let tools = tools.layered(tower::timeout::TimeoutLayer::new(Duration::from_millis(5)));
    let calls = vec![call("c1", "slow", json!({})), call("c2", "alone", json!({}))];
    let turn = Turn::new(tools);
    let release = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        start.send(()).unwrap();
    };
    let (report, ()) = tokio::join!(turn.run(calls), release);
    let report = report.unwrap();
    assert_eq!(words(&report), ["unknown", "returned"]);
    assert_eq!(content(&report, 1), 1, "the barrier was held until the body had ended");
}

#[tokio::test]
async fn arguments_are_read_once_and_invalid_ones_go_back_before_the_handler_is_asked() {
    // T5: Raw args text is parsed once …; invalid args go back to the model before a human is bothered.
    let tools = kinds();
    let never = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>("must not be asked"));
    let bad = [
        json!("{\"path\":\"safe.txt\",\"path\":\"/etc/passwd\"}"),
        json!("{\"n\":"),
        json!("[]"),
        json!([1]),
        json!(7),
        json!("{\"n\":123456789012345678901234567890}"),
        json!({"invalid": 1}),
    ];
    let calls: Vec<_> = bad
        .into_iter()
        .enumerate()
        .map(|(at, args)| call(&format!("c{at}"), "delete", args))
        .collect();
    let report = Turn::new(tools.clone()).deferred_tool_handler(never).run(calls).await.unwrap();
    assert_eq!(words(&report), ["retry"; 7]);
    assert!(content(&report, 0).as_str().unwrap().contains("`path` appears twice"));

    let fine = [json!(null), json!(""), json!("{}"), json!({}), json!("  ")];
    let calls = fine
        .into_iter()
        .enumerate()
        .map(|(at, args)| call(&format!("c{at}"), "read", args))
        .collect();
    assert_eq!(words(&Turn::new(tools.clone()).run(calls).await.unwrap()), ["returned"; 5]);

    let unknown = Turn::new(tools).run(vec![call("c1", "rm\u{202e}", json!({}))]).await.unwrap();
    assert_eq!(words(&unknown), ["retry"]);
    let told = content(&unknown, 0).as_str().unwrap().to_owned();
    assert!(told.contains("`delete`, `read`, `search`") && told.contains("rm\\u{202e}"), "{told}");
}

#[tokio::test]
async fn external_arguments_are_passed_on_unchanged() {
    let report =
        Turn::new(kinds()).run(vec![call("s1", "search", json!({"invalid": 1}))]).await.unwrap();
    assert_eq!(words(&report), ["deferred"]);
}

#[tokio::test]
async fn duplicate_ids_are_refused_before_anything_runs() {
    // T5: … duplicates within one response are refused.
    let tools = kinds();
    let calls = vec![
        call("same", "read", json!({})),
        call("b", "read", json!({})),
        call("same", "delete", json!({})),
    ];
    let error = Turn::new(tools.clone()).run(calls).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &["same"]),
        "{error:?}"
    );
    assert!(tools.ran().is_empty());
    assert!(error.suspended().is_none());
}

#[tokio::test]
async fn a_fatal_error_ends_the_response_after_its_siblings_and_resuming_runs_nothing_twice() {
    // T8: Any other error: siblings finish, then the run ends with an error. T9: Every error after something ran
    // carries the suspended run, with settled calls settled, so that resuming runs nothing twice.
    let tools = kinds().body(|_, call| match call.args()["n"].as_u64() {
        Some(2) => Err(ToolError::fatal("disk on fire")),
        _ => Ok(json!("fine")),
    });
    let never = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>("must not be asked"));
    let mut calls = mixed();
    calls.push(call("r2", "read", json!({"n": 5})));
    let error = Turn::new(tools.clone()).deferred_tool_handler(never).run(calls).await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { id, .. } if id == "r1"), "{error:?}");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "disk on fire");
    let told: Vec<_> = error.report().calls().iter().map(|call| call.outcome().word()).collect();
    assert_eq!(told, ["deferred", "failed", "deferred", "deferred", "returned"]);

    let suspended = error.suspended().unwrap().clone();
    let answers = suspended.requests().answer().approve("d1").deny_rest("no").build().unwrap();
    let report = Turn::new(tools.clone()).resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["returned", "failed", "failed", "denied", "returned"]);
    assert_eq!(tools.ids(), ["d1", "r1", "r2"]);
}

#[tokio::test]
async fn a_panic_fails_its_own_call_only() {
    // T6: A panic fails its own call only.
    let tools = kinds().body(|_, call| {
        assert_ne!(call.args()["n"], 2, "as it should");
        Ok(json!("fine"))
    });
    let report = Turn::new(tools.clone())
        .deferred_tool_handler(danger_approve_all())
        .run(mixed())
        .await
        .unwrap();
    assert_eq!(words(&report), ["returned", "failed", "deferred", "returned"]);
    let blocking = blocking_tool_fn("read", "", |_, _: Nothing| -> Result<(), ToolError> {
        panic!("as it should")
    });
    let report = Turn::new(FunctionToolset::new().tool(blocking))
        .run(vec![call("c", "read", json!({}))])
        .await
        .unwrap();
    assert_eq!(words(&report), ["failed"]);
}

#[tokio::test]
async fn external_results_have_the_kind_that_they_declare() {
    let report = |result: countersign::deferred::CallResult| async move {
        let turn = Turn::new(kinds());
        let suspended = turn
            .run(vec![call("s1", "search", json!({}))])
            .await
            .unwrap()
            .into_suspended()
            .unwrap();
        let requests = suspended.requests();
        let answers =
            requests.answer().result("s1", result).answered_by("worker 3").build().unwrap();
        let report = turn.resume(suspended, answers).await.unwrap();
        assert_eq!(report.calls()[0].answered().unwrap().by(), Some("worker 3"));
        (words(&report)[0], content(&report, 0))
    };
    assert_eq!(report(json!(null).into()).await, ("returned", json!(null)));
    assert_eq!(report(ModelRetry::new("again").into()).await, ("retry", json!("again")));
    assert_eq!(report(ToolFailed::new("broken").into()).await, ("failed", json!("broken")));
}

#[tokio::test]
async fn a_tool_that_is_missing_when_its_call_is_approved_is_an_error_for_the_host() {
    let turn = Turn::new(kinds());
    let suspended = turn.run(mixed()).await.unwrap().into_suspended().unwrap();
    let answers =
        suspended.requests().answer().approve("d1").approve("d2").result("s1", 1).build().unwrap();
    let error = Turn::new(Recorder::new(["read"])).resume(suspended, answers).await.unwrap_err();
    let told = countersign::error::with_causes(&error);
    assert!(told.contains("call `d1` was approved"), "{told}");
}

// T5: "Unusable ids are replaced where a response enters": a turn that is given calls directly refuses the same ones.
#[tokio::test]
async fn ids_that_admit_would_replace_are_refused_before_anything_runs() {
    let tools = kinds();
    for id in ["", &"x".repeat(257), "a\0b", "a\nb", "\u{202e}a", "a\u{2066}", "\u{200f}", "a/b"] {
        let calls = || vec![call("ok", "read", json!({})), call(id, "read", json!({}))];
        let error = Turn::new(tools.clone()).run(calls()).await.unwrap_err();
        assert!(
            matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &[id]),
            "{error:?}"
        );
        assert!(error.to_string().contains("`admit`"), "{error}");
        assert!(tools.ran().is_empty() && error.suspended().is_none());
        let admitted = countersign::turn::admit(calls(), &[]);
        assert_eq!(admitted[0].id(), "ok");
        assert_ne!(admitted[1].id(), id);
        let report = Turn::new(kinds()).run(admitted).await.unwrap();
        assert_eq!(words(&report), ["returned", "returned"]);
    }
    let fine = [call("é €", "read", json!({})), call(&"x".repeat(256), "read", json!({}))];
    assert_eq!(words(&Turn::new(tools).run(fine.into()).await.unwrap()), ["returned", "returned"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // T5: ids empty, too long or already used in this history are replaced where the response enters.
    #[test]
    fn admitted_ids_are_usable_and_new(ids in prop::collection::vec("[ab]{0,2}|c{300}", 0..6), used in prop::collection::vec("[ab]{0,2}", 0..4)) {
        let used: Vec<&str> = used.iter().map(String::as_str).collect();
        let calls = ids.iter().map(|id| call(id, "read", json!({}))).collect();
        for (call, id) in countersign::turn::admit(calls, &used).iter().zip(&ids) {
            prop_assert!(!call.id().is_empty() && call.id().len() <= 256 && !used.contains(&call.id()));
            let kept = !id.is_empty() && id.len() <= 256 && !used.contains(&id.as_str());
            prop_assert_eq!(kept, call.id() == id.as_str());
        }
    }
}
