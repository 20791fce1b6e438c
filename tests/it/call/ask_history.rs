//! A NO is remembered, and asking is bounded (rule D11).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use countersign::agent::text;
use countersign::call::{AskHistory, ToolKind};
use countersign::handler::{DenyAll, Stopped, handler_fn_sync};
use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
use countersign::model::ModelResponse;
use countersign::outcome::ApprovalRequired;
use countersign::show::{CallView, Limits};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, Args, Decision, DeferredToolRequests, DeferredToolResults, FunctionToolset,
    RunContext, SuspendedRun, SuspendedTurn, ToolCall, ToolDefinition, ToolError, Tools, ToolsExt,
    Turn, decide_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, content, stored, words};

fn delete(id: &str) -> ToolCall {
    call(id, "delete", json!({"path": "/etc/x", "force": true}))
}

/// A model that makes this call again and again, each time with another id.
fn insists(times: usize) -> ScriptedModel {
    let same = (0..times).map(|n| {
        // The order of the keys is no difference, and neither is the form of a number.
        let args = match n % 2 {
            0 => r#"{"path":"/etc/x","force":true,"n":1}"#,
            _ => r#"{"n":1.0,"force":true,"path":"/etc/x"}"#,
        };
        ModelResponse::calls([call(&format!("c{n}"), "delete", args.into())])
    });
    ScriptedModel::new(same)
}

fn delete_tool() -> Recorder {
    Recorder::new(["delete"])
}

/// The earlier denials that each request shows.
type Shown = Arc<Mutex<Vec<Option<String>>>>;

/// Answers each batch by a function of its number, and records the batches.
fn person(
    shown: &Shown,
    by: &'static str,
    approves: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> impl countersign::DeferredToolHandler {
    let shown = Arc::clone(shown);
    handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
        let mut shown = shown.lock().unwrap();
        let mut answers = requests.answer();
        let yes = approves(shown.len());
        for call in &requests.approvals {
            shown.push(requests.denied_before(call.id()).map(ToString::to_string));
            answers = match yes {
                true => answers.approve(call.id()),
                false => answers.deny(call.id(), "keep it"),
            };
        }
        answers.answered_by(by).build()
    })
}

fn shown(shown: &Shown) -> Vec<Option<String>> {
    shown.lock().unwrap().clone()
}

fn says(text: &str) -> Option<String> {
    Some(text.to_owned())
}

// D11: "A call that repeats one a person denied in this run (same tool, equal arguments) is shown with the count and the
// person's words; after `max_repeats` (default 3) it is denied by itself."
#[tokio::test]
async fn a_repeated_denied_call_is_shown_with_the_count_and_then_denied_without_asking() {
    let (recorder, seen) = (delete_tool(), Shown::default());
    let agent = Agent::new(insists(5), recorder.clone().approval_required())
        .deferred_tool_handler(person(&seen, "ann", |_| false));
    let run = agent.run("go").await.unwrap();
    assert_eq!(
        shown(&seen),
        [None, says("denied once before: keep it"), says("denied twice before: keep it")]
    );
    let told = |at: usize| content(&run.turns()[at], 0);
    assert_eq!(told(2), "keep it");
    for at in [3, 4] {
        assert_eq!(told(at), "Denied without asking again: denied 3 times before: keep it");
        let report = &run.turns()[at].calls()[0];
        assert_eq!(report.denied_by(), Some("max_repeats"));
        assert!(report.answered().is_none());
    }
    assert!(recorder.ran().is_empty());

    let seen = Shown::default();
    let agent = Agent::new(insists(5), recorder.approval_required())
        .deferred_tool_handler(person(&seen, "ann", |_| false))
        .max_repeats(1);
    let _ = agent.run("go").await.unwrap();
    assert_eq!(shown(&seen), [None]);
}

// D11: "Only a person's denials count": not a policy's, and not those of a handler without a person.
#[tokio::test]
async fn denials_of_a_policy_do_not_count() {
    for by in ["policy", "policy: no writes at night", "policy: no terminal"] {
        let seen = Shown::default();
        let agent = Agent::new(insists(5), delete_tool().approval_required())
            .deferred_tool_handler(person(&seen, by, |_| false));
        let _ = agent.run("go").await.unwrap();
        assert_eq!(shown(&seen), vec![None; 5]);
    }
    let night = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
        assert!(requests.approvals.iter().all(|call| requests.denied_before(call.id()).is_none()));
        requests.answer().deny_rest("no writes at night").answered_by_policy("night").build()
    });
    let agent = Agent::new(insists(5), delete_tool().approval_required());
    let run = agent.deferred_tool_handler(night).run("go").await.unwrap();
    assert!(run.turns()[..5].iter().all(|turn| content(turn, 0) == "no writes at night"));
    let agent = Agent::new(insists(5), delete_tool().approval_required())
        .deferred_tool_handler(DenyAll::new("no approver is available"));
    let run = agent.run("go").await.unwrap();
    assert!(run.turns()[..5].iter().all(|turn| content(turn, 0) == "no approver is available"));
}

// D11: "a later yes resets the count".
#[tokio::test]
async fn a_later_approval_resets_the_count() {
    let (recorder, seen) = (delete_tool(), Shown::default());
    let agent = Agent::new(insists(5), recorder.clone().approval_required())
        .deferred_tool_handler(person(&seen, "ann", |before| before == 2));
    let _ = agent.run("go").await.unwrap();
    let (once, twice) = ("denied once before: keep it", "denied twice before: keep it");
    assert_eq!(shown(&seen), [None, says(once), says(twice), None, says(once)]);
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test]
async fn an_approval_of_other_arguments_does_not_reset_the_count() {
    let seen: Shown = Shown::default();
    let noted = Arc::clone(&seen);
    let edits = handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
        let id = requests.approvals[0].id();
        let mut noted = noted.lock().unwrap();
        noted.push(requests.denied_before(id).map(ToString::to_string));
        match noted.len() {
            2 => requests.answer().approve_with(id, Args::new().with("path", "/tmp/x")).build(),
            _ => requests.answer().deny(id, "keep it").build(),
        }
    });
    let agent =
        Agent::new(insists(3), delete_tool().approval_required()).deferred_tool_handler(edits);
    let _ = agent.run("go").await.unwrap();
    let once = says("denied once before: keep it");
    assert_eq!(shown(&seen), [None, once.clone(), once]);
}

// D11: "ALLOW stays ALLOW".
#[tokio::test]
async fn an_allowed_call_runs_after_any_number_of_denials() {
    let (recorder, seen) = (delete_tool(), Shown::default());
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let tools =
        recorder.clone().layered(decide_fn(move |_, _| match gate.load(Ordering::SeqCst) {
            true => Decision::allow(),
            false => Decision::ask("delete?"),
        }));
    let history = AskHistory::default();
    let turn =
        Turn::new(tools).deferred_tool_handler(person(&seen, "ann", |_| false)).max_repeats(1);
    let turn = |response| turn.clone().of_run("run", response).ask_history(&history);
    for (response, told) in
        [(0, "keep it"), (1, "Denied without asking again: denied once before: keep it")]
    {
        let report = turn(response).run(vec![delete("c")]).await.unwrap();
        assert_eq!(content(&report, 0), told);
    }
    open.store(true, Ordering::SeqCst);
    assert_eq!(words(&turn(2).run(vec![delete("c")]).await.unwrap()), ["returned"]);
    assert_eq!(recorder.ids(), ["c"]);
    assert_eq!(shown(&seen), [None]);
}

#[tokio::test]
async fn equal_calls_that_are_denied_in_one_batch_count_once() {
    let seen = Shown::default();
    let batch =
        |from: usize| ModelResponse::calls((from..from + 4).map(|n| delete(&format!("c{n}"))));
    let agent =
        Agent::new(ScriptedModel::new([batch(0), batch(4)]), delete_tool().approval_required())
            .deferred_tool_handler(person(&seen, "ann", |_| false));
    let _ = agent.run("go").await.unwrap();
    let once = says("denied once before: keep it");
    assert_eq!(shown(&seen), [vec![None; 4], vec![once; 4]].concat());
}

// "It holds over suspend and resume, and over stored runs."
#[tokio::test]
async fn a_stored_run_keeps_its_denials() {
    let (recorder, model) = (delete_tool(), insists(5));
    let agent = || {
        // Another process each time.
        Agent::new(model.clone(), recorder.clone().approval_required()).output(text().or_deferred())
    };
    let mut run = agent().run("go").await.unwrap();
    let mut shown = Vec::new();
    while let Some(suspended) = run.into_suspended() {
        let suspended: SuspendedRun = stored(&suspended);
        let requests = suspended.requests();
        let id = requests.approvals[0].id().to_owned();
        let [view] = &CallView::all(&requests, Limits::default())[..] else { panic!("one call") };
        let before = requests.denied_before(&id).map(ToString::to_string);
        assert_eq!(view.denied_before, before);
        assert!(before.is_none_or(|before| view.to_string().contains(&format!("! {before}\n"))));
        // What is shown is part of what is stored, and of the JSON of the requests.
        let requests: DeferredToolRequests = stored(&requests);
        shown.push(
            requests.denied_before(&id).map(|before| (before.times(), before.reason().to_owned())),
        );
        let answers = requests.answer().deny(id, "keep it").answered_by("ann").build().unwrap();
        run = agent().resume(suspended, answers).await.unwrap();
    }
    let reason = || "keep it".to_owned();
    assert_eq!(shown, [None, Some((1, reason())), Some((2, reason()))]);
    assert_eq!(model.requests().len(), 6, "the other two were denied without asking");
    assert!(recorder.ran().is_empty());
}

// "A denied call stays denied after an error", too: the state is in the error.
#[tokio::test]
async fn a_failed_run_keeps_its_denials() {
    let seen = Shown::default();
    let agent = |model| {
        Agent::new(model, delete_tool().approval_required()).deferred_tool_handler(person(
            &seen,
            "ann",
            |_| false,
        ))
    };
    let error = agent(insists(2).then_error("the line is dead")).run("go").await.unwrap_err();
    let _ = agent(insists(1)).ask(stored(error.suspended())).await.unwrap();
    assert_eq!(shown(&seen)[2], says("denied twice before: keep it"));
}

#[tokio::test]
async fn a_custom_loop_keeps_the_ask_history_itself_or_in_the_suspended_turn() {
    let turn = Turn::new(delete_tool().approval_required());
    let first = turn.run(vec![delete("c1")]).await.unwrap().into_suspended().unwrap();
    let no = |suspended: &SuspendedTurn| {
        suspended.requests().answer().deny("c1", "keep it").build().unwrap()
    };

    // Two turns of one run, of which the second is another process.
    let history = AskHistory::default();
    let report =
        turn.clone().ask_history(&history).resume(first.clone(), no(&first)).await.unwrap();
    assert_eq!(words(&report), ["denied"]);
    let history: AskHistory = stored(&history);
    let second = turn.clone().of_run(first.run_id(), 1).ask_history(&history);
    let second = second.run(vec![delete("c1")]).await.unwrap().into_suspended().unwrap();
    let before = |it: &SuspendedTurn| it.requests().denied_before("c1").map(ToString::to_string);
    assert_eq!(before(&second), says("denied once before: keep it"));

    // What is suspended needs nothing beside it.
    let third = stored(&second);
    assert_eq!(before(&third), before(&second));
    let fourth = turn.clone().max_repeats(2).resume(third.clone(), no(&third)).await.unwrap();
    assert_eq!(content(&fourth, 0), "keep it");

    // Without either, a turn is a run of its own.
    let alone = turn.run(vec![delete("c1")]).await.unwrap().into_suspended().unwrap();
    assert_eq!(before(&alone), None);
}

/// A root with the tool itself, and with an agent that has it, too.
fn tree(recorder: &Recorder, root: ScriptedModel, child: ScriptedModel) -> Agent {
    let own: Tools = recorder.clone().approval_required();
    let child = Agent::new(child, own.clone());
    let agents = FunctionToolset::new().tool(child.as_tool("child", "Works"));
    Agent::new(root, Tools::combined([own, agents.into()]))
}

fn work(id: &str) -> ToolCall {
    call(id, "child", json!({"prompt": "work"}))
}

// "It holds over a tree of sub-agents."
#[tokio::test]
async fn a_denial_to_one_agent_counts_for_all_agents_of_the_run() {
    let (recorder, seen) = (delete_tool(), Shown::default());
    let root = ScriptedModel::new([
        ModelResponse::calls([work("r1")]),
        ModelResponse::calls([delete("r2")]),
        ModelResponse::calls([work("r3")]),
        ModelResponse::calls([delete("r4")]),
    ]);
    let child = ScriptedModel::new([
        ModelResponse::calls([delete("c1")]),
        ModelResponse::text("Done."),
        ModelResponse::calls([delete("c2")]),
        ModelResponse::calls([delete("c3")]),
    ]);
    let agent = tree(&recorder, root.clone(), child.clone()).deferred_tool_handler(person(
        &seen,
        "ann",
        |_| false,
    ));
    let run = agent.run("go").await.unwrap();
    let asked = [None, says("denied once before: keep it"), says("denied twice before: keep it")];
    assert_eq!(shown(&seen), asked);
    assert_eq!(
        content(&run.turns()[3], 0),
        "Denied without asking again: denied 3 times before: keep it"
    );

    // The same with a store between all of it.
    let root = ScriptedModel::new([
        ModelResponse::calls([work("r1")]),
        ModelResponse::calls([delete("r2")]),
        ModelResponse::calls([work("r3")]),
    ]);
    let child = ScriptedModel::new([
        ModelResponse::calls([delete("c1")]),
        ModelResponse::text("Done."),
        ModelResponse::calls([delete("c2")]),
    ]);
    let agent = || tree(&recorder, root.clone(), child.clone()).output(text().or_deferred());
    let mut run = agent().run("go").await.unwrap();
    let mut asked_later = Vec::new();
    while let Some(suspended) = run.into_suspended() {
        let requests = suspended.requests();
        let id = requests.approvals[0].id().to_owned();
        asked_later.push(requests.denied_before(&id).map(ToString::to_string));
        let no = requests.answer().deny(id, "keep it").build().unwrap();
        run = agent().resume(stored(&suspended), no).await.unwrap();
    }
    assert_eq!(asked_later, asked);
    assert!(recorder.ran().is_empty());
}

// D11: "Open asks are bounded per run (default 1 000; the rest is denied, saying so)."
#[tokio::test]
async fn calls_beyond_the_pending_limit_of_a_run_are_denied() {
    let recorder = delete_tool();
    let turn = Turn::new(recorder.clone().approval_required());
    let flood =
        |count: usize| (0..count).map(|n| call(&format!("c{n}"), "delete", json!({"n": n})));
    let report = turn.run(flood(1_001).collect()).await.unwrap();
    assert_eq!(report.deferred().unwrap().approvals.len(), 1_000);
    let last = &report.calls()[1_000];
    assert_eq!(
        last.outcome().text().unwrap(),
        "Denied without asking: 1000 calls of this run are pending already."
    );
    assert_eq!(last.denied_by(), Some("max_pending"));

    // Answered, they make room again, also for what an approval brings up.
    let turn = turn.max_pending(2);
    let report = turn.run(flood(3).collect()).await.unwrap();
    assert_eq!(words(&report), ["deferred", "deferred", "denied"]);
    let suspended = stored(report.suspended().unwrap());
    let partly = suspended.requests().answer().deny("c0", "no").leave_rest().build().unwrap();
    let report = turn.resume(suspended, partly).await.unwrap();
    assert_eq!(words(&report), ["denied", "deferred", "denied"]);
    assert!(recorder.ran().is_empty());

    // External calls and questions are asks as well.
    let search =
        ToolDefinition::new("search", json!({"type": "object"})).with_kind(ToolKind::External);
    let turn = Turn::new(Recorder::of([search])).max_pending(1);
    let calls = ["c1", "c2"].map(|id| call(id, "search", json!({})));
    assert_eq!(words(&turn.run(calls.to_vec()).await.unwrap()), ["deferred", "denied"]);
}

// D11 and S8: a tool that has begun, and then asks, is never said to have done nothing.
#[tokio::test]
async fn a_denied_started_tool_is_reported_as_started() {
    let asks = || {
        Recorder::new(["delete"])
            .body(|_, _| Err(ToolError::ApprovalRequired(ApprovalRequired::new())))
    };
    let report = Turn::new(asks()).max_pending(0).run(vec![delete("c1")]).await.unwrap();
    assert_eq!(
        content(&report, 0),
        "The tool had begun its work, and asked before continuing. Denied without asking: 0 calls of this run are \
         pending already."
    );
    let stops = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>(Stopped));
    let error =
        Turn::new(asks()).deferred_tool_handler(stops).run(vec![delete("c1")]).await.unwrap_err();
    assert_eq!(content(error.report(), 0), "Stopped: a person stopped the run.");
}

// "Equal calls that are denied in one batch count once", in a tree of agents too.
#[tokio::test]
async fn equal_calls_of_several_agents_that_are_denied_in_one_batch_count_once() {
    let (recorder, seen) = (delete_tool(), Shown::default());
    let root = ScriptedModel::new([
        ModelResponse::calls([delete("r1"), work("r2"), work("r3")]),
        ModelResponse::calls([delete("r4")]),
    ]);
    let child = ScriptedModel::new([
        ModelResponse::calls([delete("c1")]),
        ModelResponse::calls([delete("c2")]),
        ModelResponse::text("Done."),
        ModelResponse::text("Done."),
    ]);
    let agent = tree(&recorder, root, child).deferred_tool_handler(person(&seen, "ann", |_| false));
    let _ = agent.run("go").await.unwrap();
    assert_eq!(shown(&seen), [None, None, None, says("denied once before: keep it")]);
}

#[tokio::test]
async fn the_calls_of_sub_agents_count_for_the_run() {
    let recorder = delete_tool();
    let own = |id: &str, n: usize| call(id, "delete", json!({"n": n}));
    let root = ScriptedModel::new([ModelResponse::calls([work("r1"), own("r2", 9), own("r3", 8)])]);
    let child =
        ScriptedModel::new([ModelResponse::calls((0..3).map(|n| own(&format!("c{n}"), n)))]);
    let agent = tree(&recorder, root, child).output(text().or_deferred()).max_pending(4);
    let run = agent.run("go").await.unwrap();
    let requests = run.suspended().unwrap().requests();
    assert_eq!(requests.approvals.len(), 4, "{requests:?}");
    let [turn] = run.turns() else { panic!("one response") };
    let denied = turn.calls().iter().filter(|call| call.denied_by() == Some("max_pending"));
    assert_eq!(denied.count(), 1);
}

fn eves() -> (Ledger, Recorder) {
    let who = |cx: &RunContext, ask: Ask| {
        ask.with_principal(if cx.run_id() == "ann's" { "ann" } else { "eve" })
    };
    (Ledger::new(MemoryStore::new()).ask_policy(who), delete_tool())
}

// D11: "and per requester", which is in the ledger, over all of the requester's runs.
#[tokio::test]
async fn pending_calls_of_a_requester_are_limited_over_all_runs() {
    let (ledger, recorder) = eves();
    let turn = Turn::new(recorder.approval_required()).ledger(ledger.clone()).max_pending(3);
    let calls = |count: usize| {
        (0..count).map(|n| call(&format!("c{n}"), "delete", json!({"n": n}))).collect()
    };
    let first = turn.clone().of_run("one", 0).run(calls(2)).await.unwrap();
    assert_eq!(words(&first), ["deferred"; 2]);
    let second = turn.clone().of_run("two", 0).run(calls(3)).await.unwrap();
    assert_eq!(words(&second), ["deferred", "denied", "denied"]);
    assert_eq!(
        content(&second, 1),
        "Denied without asking: 3 calls of its requester are pending already."
    );
    // A flood does not affect other requesters.
    let other = turn.clone().of_run("ann's", 0).run(calls(3)).await.unwrap();
    assert_eq!(words(&other), ["deferred"; 3]);
    assert_eq!(ledger.list(Some(AskState::Pending), 100).await.unwrap().records.len(), 6);

    // What was parked before a crash is no new ask.
    let again = turn.clone().of_run("one", 0).run(calls(2)).await.unwrap();
    assert_eq!(words(&again), ["deferred"; 2]);
    let suspended = first.into_suspended().unwrap();
    let report =
        turn.resume(suspended.clone(), suspended.requests().answer().leave_rest().build().unwrap());
    assert_eq!(words(&report.await.unwrap()), ["deferred"; 2]);
}

// D11: an expired call is not pending, also before its expiry is recorded.
#[tokio::test]
async fn expired_calls_of_a_requester_do_not_count() {
    use std::sync::atomic::AtomicI64;
    use std::time::Duration;

    let time = Arc::new(AtomicI64::new(1));
    let clock = Arc::clone(&time);
    let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::SeqCst)))
        .ask_policy(|_, ask: Ask| {
            ask.with_principal("eve").with_expires_in(Duration::from_secs(1))
        });
    let turn = Turn::new(delete_tool().approval_required()).ledger(ledger).max_pending(2);
    let calls = |count: usize| {
        (0..count).map(|n| call(&format!("c{n}"), "delete", json!({"n": n}))).collect()
    };
    let run = async |run: &str, count| turn.clone().of_run(run, 0).run(calls(count)).await.unwrap();
    assert_eq!(words(&run("one", 2).await), ["deferred"; 2]);
    assert_eq!(words(&run("two", 1).await), ["denied"]);
    time.store(1_001, Ordering::SeqCst);
    assert_eq!(words(&run("three", 3).await), ["deferred", "deferred", "denied"]);
}

// D11 with a ledger: a person's no in it counts, its expiry does not, and an ask says what was denied before it.
#[tokio::test]
async fn a_denial_in_the_ledger_counts_and_an_expiry_does_not() {
    use std::sync::atomic::AtomicI64;
    use std::time::Duration;

    let clock = Arc::new(AtomicI64::new(0));
    let time = Arc::clone(&clock);
    let store = MemoryStore::with_clock(move || time.load(Ordering::SeqCst));
    let ledger =
        Ledger::new(store).ask_policy(|_, ask| ask.with_expires_in(Duration::from_secs(1)));
    let model = insists(4);
    let agent = Agent::new(model.clone(), delete_tool().approval_required())
        .output(text().or_deferred())
        .ledger(ledger.clone());
    let mut run = agent.run("go").await.unwrap();
    let mut shown = Vec::new();
    while let Some(suspended) = run.into_suspended() {
        let (_, ask) = agent.asks(&suspended).await.unwrap().remove(0);
        let before = ask.ask.denied_before().map(ToString::to_string);
        let drawn = ask.ask.requests();
        let id = drawn.approvals[0].id();
        assert_eq!(drawn.denied_before(id).map(ToString::to_string), before);
        shown.push(before);
        if shown.len() == 2 {
            clock.fetch_add(10_000, Ordering::SeqCst);
        } else {
            let no = countersign::deferred::Answer::Deny { message: "keep it".into() };
            ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", no).await.unwrap();
        }
        let decided: DeferredToolResults = agent.decisions(&suspended).await.unwrap();
        run = agent.resume(stored(&suspended), decided).await.unwrap();
    }
    let (once, twice) = ("denied once before: keep it", "denied twice before: keep it");
    assert_eq!(shown, [None, says(once), says(once), says(twice)]);
}

// D11: "Equal calls in one batch are grouped": the data for every surface.
#[tokio::test]
async fn equal_calls_of_a_batch_are_one_group() {
    let tools = delete_tool().layered(decide_fn(|_, call| {
        // Another question makes another group.
        let large = call.args().get("n").and_then(Value::as_f64).is_some_and(|n| n > 5.0);
        if large { Decision::ask(format!("call {}", call.id())) } else { Decision::ask("delete?") }
    }));
    let child = Agent::new(
        ScriptedModel::new([ModelResponse::calls([
            call("c1", "delete", json!({"n": 1})),
            call("c2", "delete", json!({"n": 1})),
        ])]),
        tools.clone(),
    );
    let agents = FunctionToolset::new().tool(child.as_tool("child", "Works"));
    let root = ScriptedModel::new([ModelResponse::calls([
        call("a", "delete", r#"{"n":1,"m":2}"#.into()),
        call("b", "delete", json!({"n": 2})),
        call("c", "delete", r#"{"m":2.0,"n":1}"#.into()),
        work("r"),
        call("d", "delete", json!({"n": 9})),
        call("e", "delete", json!({"n": 9})),
    ])]);
    let agent = Agent::new(root, Tools::combined([tools, agents.into()]));
    let run = agent.output(text().or_deferred()).run("go").await.unwrap();
    let requests = run.suspended().unwrap().requests();
    let groups: Vec<Vec<&str>> = requests
        .groups()
        .iter()
        .map(|group| group.iter().map(|call| call.id()).collect())
        .collect();
    assert_eq!(groups, [vec!["a", "c"], vec!["b"], vec!["r/c1", "r/c2"], vec!["d"], vec!["e"]]);

    // Each of a group is answered by itself.
    let answers = requests.answer().deny("a", "no").leave_rest().build();
    assert_eq!(answers.map_err(|error: AnswerError| error.ids()).map(|_| ()), Ok(()));
}
