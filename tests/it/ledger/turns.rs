//! Turns and agents with a ledger: decided once and executed once, also when answers arrive twice.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::agent::{TakeUp, text};
use countersign::deferred::Answer;
use countersign::handler::danger_approve_all;
use countersign::ledger::{Ask, AskState, Decided, Ledger, MemoryStore};
use countersign::model::ModelResponse;
use countersign::show::{CallView, Limits};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, Decision, DeferredToolRequests, DeferredToolResults, Error,
    FunctionToolset, Outcome, RunContext, SuspendedRun, SuspendedTurn, ToolCall, ToolDefinition,
    ToolError, ToolsExt, Turn, decide_fn, handler_fn,
};
use serde_json::json;

use crate::support::failing_store::Failing;
use crate::support::{Recorder, call, results, stored};

fn ledger() -> Ledger {
    Ledger::new(MemoryStore::new())
}

async fn waiting(turn: &Turn) -> SuspendedTurn {
    let report = turn.run(vec![call("c1", "pay", json!({"n": 1}))]).await.unwrap();
    report.into_suspended().unwrap()
}

fn yes(suspended: &SuspendedTurn) -> DeferredToolResults {
    suspended.requests().answer().approve("c1").answered_by("ann").build().unwrap()
}

#[tokio::test]
async fn an_approval_that_arrives_twice_runs_once_and_replays_the_outcome() {
    // L3: "Asking again after a lost response returns the recorded outcome."
    let recorder = Recorder::new(["pay"]).body(|_, _| Ok("paid".into()));
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    for _ in 0..3 {
        // The same stored value, as after a crash, or in another process.
        let report = turn.resume(stored(&suspended), yes(&suspended)).await.unwrap();
        assert_eq!(report.calls()[0].outcome(), &Outcome::returned("paid"));
    }
    assert_eq!(recorder.ids(), ["c1"]);
    let [ask] = &ledger.list(None, 10).await.unwrap().records[..] else { panic!("one ask") };
    assert_eq!(ask.state, AskState::Executed);
    assert_eq!(ask.decision.as_ref().unwrap().by, ["ann"]);
    assert!(ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn the_first_of_two_answers_counts() {
    // L1: "of any number of processes one wins, each loser is told who won and what". A3: a NO is final.
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    let no = suspended.requests().answer().deny("c1", "too much").answered_by("bob").build();
    let report = turn.resume(stored(&suspended), no.unwrap()).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::denied("too much"));
    let report = turn.resume(stored(&suspended), yes(&suspended)).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::denied("too much"));
    assert_eq!(report.calls()[0].answered().unwrap().by(), Some("bob"));
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn calls_are_parked_before_the_handler_is_asked_and_its_answer_is_a_decision() {
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let (seen, asks) = std::sync::mpsc::channel();
    let inner = ledger.clone();
    let handler = handler_fn(move |_: RunContext, requests: DeferredToolRequests| {
        let (inner, seen) = (inner.clone(), seen.clone());
        async move {
            let parked = inner.list(Some(AskState::Pending), 10).await.unwrap().records;
            seen.send(parked.len()).unwrap();
            requests.answer().approve("c1").answered_by("policy").build()
        }
    });
    let turn = Turn::new(recorder.clone().approval_required())
        .ledger(ledger.clone())
        .deferred_tool_handler(handler);
    let report = turn.run(vec![call("c1", "pay", json!({"n": 1}))]).await.unwrap();
    assert!(report.calls()[0].outcome().is_returned());
    assert_eq!(asks.recv().unwrap(), 1);
    let ask = ledger.list(None, 10).await.unwrap().records.remove(0);
    assert_eq!(ask.decision.unwrap().by, ["policy"]);
}

#[tokio::test]
async fn a_decision_of_another_process_is_applied() {
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let agent = |model: ScriptedModel| {
        Agent::new(model, recorder.clone().approval_required())
            .output(text().or_deferred())
            .ledger(ledger.clone())
    };
    let calls = ModelResponse::calls([
        call("c1", "pay", json!({"n": 1})),
        call("c2", "pay", json!({"n": 2})),
    ]);
    let run = agent(ScriptedModel::new([calls])).run("go").await.unwrap();
    let suspended = run.into_suspended().unwrap();

    // An inbox decides one of them.
    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records;
    let ask = ask.iter().find(|ask| ask.ask.args()["n"] == 1).unwrap();
    let edit = Answer::Approve { args: Some(countersign::Args::new().with("n", 7)) };
    let won = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", edit).await.unwrap();
    assert_eq!(won, Decided::Won { again: false });

    // The resuming process does not know the decision yet.
    let agent = agent(ScriptedModel::new([]));
    let answers = agent.decisions(&suspended).await.unwrap();
    assert!(answers.is_left("c2"));
    let suspended = agent.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
    assert_eq!(recorder.ran()[0].args["n"], 7);
    let ids: Vec<_> = suspended.requests().iter().map(|call| call.id().to_owned()).collect();
    assert_eq!(ids, ["c2"]);
}

#[tokio::test]
async fn an_expired_ask_is_not_a_persons_denial() {
    // L4: "Expiry is a denial recorded as expiry, not as a human's no."
    let recorder = Recorder::new(["pay"]);
    let time = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&time);
    let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::Relaxed)))
        .ask_policy(|_, ask| ask.with_principal("root").with_expires_in(Duration::from_secs(60)));
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    time.fetch_add(60_000, Ordering::Relaxed);
    let report = turn.resume(stored(&suspended), yes(&suspended)).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::denied("No decision was made in time."));
    assert!(recorder.ran().is_empty());
    let ask = ledger.list(None, 10).await.unwrap().records.remove(0);
    assert_eq!((ask.state, ask.decision), (AskState::Expired, None));
}

#[tokio::test]
async fn a_call_whose_end_was_not_seen_may_have_run_and_does_not_run_again() {
    // L2: "A crash between leaves *unknown*, never silently run again unless the tool is idempotent".
    let time = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&time);
    let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::Relaxed)));
    for (idempotent, runs) in [(false, 1), (true, 2)] {
        let definition =
            ToolDefinition::new("pay", json!({"type": "object"})).with_idempotent(idempotent);
        let recorder = Recorder::of([definition]).taking(Duration::from_secs(3_600));
        let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
        let suspended = waiting(&turn).await;
        {
            let lost = turn.resume(stored(&suspended), yes(&suspended));
            let lost = tokio::time::timeout(Duration::from_millis(50), lost).await;
            assert!(lost.is_err(), "the worker dies in the middle of the tool");
        }
        // Its lease is still valid: no other worker may claim it.
        let other = Turn::new(
            Recorder::of([
                ToolDefinition::new("pay", json!({"type": "object"})).with_idempotent(idempotent)
            ])
            .approval_required(),
        )
        .ledger(ledger.clone());
        let held = other.resume(stored(&suspended), yes(&suspended)).await.unwrap();
        assert!(matches!(held.calls()[0].outcome(), Outcome::Unknown(_)));
        time.fetch_add(31_000, Ordering::Relaxed);
        let report = tokio::time::timeout(
            Duration::from_millis(50),
            turn.resume(stored(&suspended), yes(&suspended)),
        );
        match report.await {
            Ok(report) => {
                assert!(!idempotent);
                assert!(matches!(report.unwrap().calls()[0].outcome(), Outcome::Unknown(_)));
            }
            Err(_) => assert!(idempotent, "an idempotent tool runs again"),
        }
        assert_eq!(recorder.ran().len(), runs, "idempotent: {idempotent}");
        time.fetch_add(31_000, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_journaled_tool_without_a_question_runs_once() {
    let recorder =
        Recorder::of([ToolDefinition::new("pay", json!({"type": "object"})).with_journaled(true)])
            .body(|_, _| Ok("paid".into()));
    let ledger = ledger();
    for _ in 0..2 {
        // The same call of the same response of the same run, in two processes.
        let turn = Turn::new(recorder.clone()).of_run("run", 0).ledger(ledger.clone());
        let report = turn.run(vec![call("c1", "pay", json!({"n": 1}))]).await.unwrap();
        assert_eq!(report.calls()[0].outcome(), &Outcome::returned("paid"));
    }
    assert_eq!(recorder.ids(), ["c1"]);
}

// A person who decides in that moment would be told that the policy was faster, about a call that was never a question.
#[tokio::test]
async fn an_allowed_call_is_recorded_and_never_pending() {
    let pay = ToolDefinition::new("pay", json!({"type": "object"})).with_journaled(true);
    let recorder = Recorder::of([pay]).body(|_, _| Ok("paid".into()));
    let memory = MemoryStore::new();
    let store = Failing::at(&memory, None);
    let (ledger, seen) = (Ledger::new(memory), Arc::new(AtomicI64::new(0)));
    let (shown, looks) = (ledger.clone(), Arc::clone(&seen));
    store.before(move |_| {
        let (shown, looks) = (shown.clone(), Arc::clone(&looks));
        Box::pin(async move {
            let all = shown.list(None, 10).await.unwrap().records;
            looks.fetch_add(i64::try_from(all.len()).unwrap(), Ordering::SeqCst);
            assert!(all.iter().all(|record| record.state != AskState::Pending), "{all:?}");
        })
    });
    let turn = Turn::new(recorder).of_run("run", 0).ledger(Ledger::new(store));
    let report = turn.run(vec![call("c1", "pay", json!({"n": 1}))]).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::returned("paid"));
    assert!(
        seen.load(Ordering::SeqCst) >= 2,
        "it was seen before the claim and before the outcome"
    );
    let mut record = ledger.list(None, 10).await.unwrap().records.remove(0);
    assert_eq!(record.decision.take().unwrap().by, ["policy"]);
    ledger.verify(&Default::default()).await.unwrap();
}

// Rule L4: `get`, the decisions about a run and a decision that comes too late agree.
#[tokio::test]
async fn an_ask_is_read_as_it_is_by_the_clock() {
    let ledger = ledger();
    let due = Ask::new("run", "root/due", "pay").with_expires_in(Duration::ZERO);
    let due = ledger.park(due).await.unwrap();
    let lost = ledger.park(Ask::new("run", "root/lost", "pay")).await.unwrap();
    let yes = || Answer::Approve { args: None };
    ledger.decide(lost.ask.id(), &lost.fingerprint, "ann", yes()).await.unwrap();
    ledger.claim(lost.ask.id(), "worker", Duration::ZERO).await.unwrap();
    let state = async |id: &str| ledger.get(id).await.unwrap().unwrap().state;
    let asks = [(due.ask.id(), AskState::Expired), (lost.ask.id(), AskState::Unknown)];
    for (id, now) in asks {
        assert_eq!(state(id).await, now);
    }
    let entries = async || ledger.export(drop).await.unwrap();
    let log = entries().await;
    let listed = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
    assert_eq!(listed.len(), 1, "reading has written nothing");
    let late = ledger.decide(due.ask.id(), &due.fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(late, Decided::Expired);
    assert_eq!(ledger.expire().await.unwrap().changed, [lost.ask.id()]);
    assert_eq!(entries().await, log + 2);
    for (id, now) in asks {
        assert_eq!(state(id).await, now);
    }
}

// Metrics are best effort: only the count of the pending asks has failed.
#[tokio::test]
async fn asks_expire_although_the_pending_ones_cannot_be_counted() {
    let store = Failing::at(&MemoryStore::new(), None);
    store.counts_nothing();
    let ledger = Ledger::new(store);
    let due = Ask::new("run", "root/c1", "pay").with_expires_in(Duration::ZERO);
    let due = ledger.park(due).await.unwrap();
    assert_eq!(ledger.expire().await.unwrap().changed, [due.ask.id()]);
}

#[tokio::test]
async fn a_body_that_defers_again_gets_another_ask() {
    // L1: "released (the body deferred)".
    let recorder = Recorder::new(["pay"]).body(|cx, _| {
        cx.approved_for("really")?;
        Ok("paid".into())
    });
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    let report = turn.resume(stored(&suspended), yes(&suspended)).await.unwrap();
    let again = report.into_suspended().unwrap();
    let report = turn.resume(stored(&again), yes(&again)).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::returned("paid"));
    let mut states: Vec<_> =
        ledger.list(None, 10).await.unwrap().records.iter().map(|ask| ask.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["executed", "released"]);
}

#[tokio::test]
async fn asks_of_sub_agents_are_in_the_ledger_of_their_parent() {
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let model = ScriptedModel::new([ModelResponse::calls([call("c1", "pay", json!({"n": 1}))])]);
    let worker = Agent::new(model, recorder.clone().approval_required());
    let tools = FunctionToolset::new().tool(worker.as_tool("worker", "Works"));
    let model = ScriptedModel::new([ModelResponse::calls([call(
        "p1",
        "worker",
        json!({"prompt": "pay"}),
    )])]);
    let root = Agent::new(model, tools).output(text().or_deferred()).ledger(ledger.clone());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let approve = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", approve).await.unwrap();
    let stored: SuspendedRun =
        serde_json::from_str(&serde_json::to_string(&suspended).unwrap()).unwrap();
    for suspended in [stored, suspended] {
        let answers = root.decisions(&suspended).await.unwrap();
        let run = root.resume(suspended, answers).await.unwrap();
        assert!(run.turns()[0].calls()[0].outcome().is_returned());
    }
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn a_call_that_is_settled_without_running_closes_its_ask() {
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    let strict = Turn::new(
        recorder.clone().approval_required().layered(decide_fn(|_, _| Decision::deny("closed"))),
    )
    .ledger(ledger.clone())
    .deferred_tool_handler(danger_approve_all());
    let report = strict.resume(stored(&suspended), yes(&suspended)).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::denied("closed"));
    assert_eq!(ledger.list(None, 10).await.unwrap().records[0].state, AskState::Closed);
    assert!(recorder.ran().is_empty());
}

/// A tool's error that is not for the model is written down as a failure.
#[tokio::test]
async fn a_fatal_error_is_an_outcome_too() {
    let recorder = Recorder::new(["pay"]).body(|_, _| Err(ToolError::fatal("broken")));
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    assert!(turn.resume(stored(&suspended), yes(&suspended)).await.is_err());
    let report = turn.resume(stored(&suspended), yes(&suspended)).await.unwrap();
    assert!(matches!(report.calls()[0].outcome(), Outcome::Failed(_)));
    assert_eq!(recorder.ids(), ["c1"]);
    let unknown = turn.resume(suspended, DeferredToolResults::new().approve("c9").approve("c1"));
    let error = unknown.await.unwrap_err();
    assert!(matches!(error.error(), Error::Answers(AnswerError::Unknown { .. })));
}

#[tokio::test]
async fn a_run_that_is_suspended_is_parked_and_one_worker_resumes_it() {
    // L5: "A run is resumed by one worker (lease, fencing token, state version); the loser is told."
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let agent = |model: ScriptedModel, worker: &str| {
        Agent::new(model, recorder.clone().approval_required())
            .output(text().or_deferred())
            .ledger(ledger.clone().worker(worker))
    };
    let pay = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let run = agent(ScriptedModel::new([pay]), "front").run("go").await.unwrap();
    let run_id = run.run_id().to_owned();
    drop(run);
    assert_eq!(ledger.waiting_runs(10).await.unwrap().records[0].run, run_id);

    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let approve = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", approve).await.unwrap();
    let workers = ["w1", "w2", "w3"].map(|name| agent(ScriptedModel::new([]), name));
    let ended = futures::future::join_all(workers.iter().map(|it| it.take_up(&run_id))).await;
    let mut resumed = 0;
    for ended in ended {
        match ended.unwrap() {
            TakeUp::Resumed(run) => {
                resumed += 1;
                assert_eq!(run.unwrap().text(), Some("Done."));
            }
            TakeUp::Over(text) => assert_eq!(text, "Done."),
            TakeUp::Held { by, .. } => assert!(by.starts_with('w')),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((resumed, recorder.ids()), (1, vec!["c1".to_owned()]));
    assert!(
        matches!(workers[0].take_up(&run_id).await.unwrap(), TakeUp::Over(text) if text == "Done.")
    );
    assert!(matches!(workers[0].take_up("nowhere").await.unwrap(), TakeUp::UnknownRun));
    assert!(ledger.waiting_runs(10).await.unwrap().records.is_empty());
    assert!(ledger.verify(&Default::default()).await.is_ok());
}

// L5: "One worker at a time takes it up …; the others are told": by whom and since when, so that a server can answer 409.
#[tokio::test]
async fn the_second_of_two_workers_learns_which_one_has_the_run() {
    let recorder = Recorder::new(["pay"]).taking(Duration::from_millis(50));
    let ledger = Ledger::new(MemoryStore::with_clock(|| 1_000)).worker("front");
    let pay = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let agent = Agent::new(ScriptedModel::new([pay]), recorder.clone().approval_required())
        .output(text().or_deferred())
        .ledger(ledger);
    let suspended = agent.run("go").await.unwrap().into_suspended().unwrap();
    let yes = || suspended.requests().answer().approve("c1").answered_by("ann").build().unwrap();
    let resume = || agent.resume(stored(&suspended), yes()).into_future();
    let (one, other) = futures::future::join(resume(), resume()).await;
    assert_eq!(one.unwrap().text(), Some("Done."));
    let error = other.unwrap_err();
    assert!(
        matches!(
            error.error(),
            Error::RunTaken { run, by, since: Some(1_000) } if run == suspended.run_id() && by == "front"
        ),
        "{error:?}"
    );
    assert!(error.error().is_conflict() && error.to_string().contains("`front`"), "{error}");
    assert_eq!((error.suspended(), recorder.ids()), (&suspended, vec!["c1".to_owned()]));
}

// L7: "a run that would wait with it ends with the error, and the state in it": the newest one, in which what has run is
// settled (T9), and not the one that the ledger still has.
#[tokio::test]
async fn a_run_with_a_state_too_deep_for_its_ledger_returns_the_newest_state() {
    let nested = (0..130).fold(json!(0), |value, _| json!([value]));
    let recorder = Recorder::new(["pay", "list"]);
    let tools = recorder.clone().layered(decide_fn(move |_, call: &ToolCall| {
        match call.args()["n"].as_u64() {
            Some(1) => Decision::ask("sure?"),
            Some(_) => Decision::ask("sure?").with_metadata("deep", nested.clone()),
            None => Decision::allow(),
        }
    }));
    let first = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let calls = [call("c2", "list", json!({})), call("c3", "pay", json!({"n": 2}))];
    let model = ScriptedModel::new([first, ModelResponse::calls(calls)]);
    let ledger = ledger();
    let alone = Agent::new(model, tools).output(text().or_deferred());
    let agent = alone.clone().ledger(ledger.clone());

    let before = agent.run("go").await.unwrap().into_suspended().unwrap();
    let yes = |run: &SuspendedRun, id: &str| run.requests().answer().approve(id).build().unwrap();
    let error = agent.resume(stored(&before), yes(&before, "c1")).await.unwrap_err();
    assert!(matches!(error.error(), Error::Ledger(_)), "{error:?}");
    let newest = error.into_suspended();
    let told = |run: &SuspendedRun| {
        results(run.history()).into_iter().map(|(id, ..)| id).collect::<Vec<_>>()
    };
    assert_eq!((told(&before), told(&newest)), (vec![], vec!["c2".to_owned()]));
    let waits: Vec<_> = newest.requests().iter().map(|call| call.id().to_owned()).collect();
    assert_eq!(waits, ["c3"]);
    assert!(!ledger.load_run(before.run_id()).await.unwrap().unwrap().over);

    let answers = yes(&newest, "c3");
    assert_eq!(alone.resume(newest, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2", "c3"], "T9: what ran does not run again");
}

// L2: the outcome of a call in execution is unknown; the text for the model does not name this worker as another one.
#[tokio::test]
async fn a_call_that_this_worker_already_executes_may_have_run() {
    let recorder = Recorder::new(["pay"]).taking(Duration::from_millis(50));
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger());
    let suspended = waiting(&turn).await;
    let resume = || turn.resume(stored(&suspended), yes(&suspended));
    let (one, other) = futures::future::join(resume(), resume()).await;
    assert_eq!(one.unwrap().calls()[0].outcome().word(), "returned");
    let told = other.unwrap().calls()[0].outcome().clone();
    let text = told.content().unwrap().to_string();
    assert_eq!(told.word(), "unknown");
    assert!(text.contains("being executed already") && !text.contains("nother worker"), "{text}");
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn a_run_of_a_dead_worker_is_resumed_by_another_and_runs_nothing_twice() {
    let time = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&time);
    let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::Relaxed)));
    let recorder = Recorder::new(["pay"]);
    let pay = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let agent = |model: ScriptedModel| {
        Agent::new(model, recorder.clone().approval_required())
            .output(text().or_deferred())
            .ledger(ledger.clone())
    };
    let run = agent(ScriptedModel::new([pay])).run("go").await.unwrap();
    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let approve = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", approve).await.unwrap();

    // The first worker runs the tool and dies while it asks the model.
    struct Never;
    impl countersign::Model for Never {
        async fn respond(
            &self,
            _: countersign::model::ModelRequest,
        ) -> Result<ModelResponse, countersign::BoxError> {
            std::future::pending().await
        }
    }
    let dying = Agent::new(Never, recorder.clone().approval_required())
        .output(text().or_deferred())
        .ledger(ledger.clone());
    let lost = tokio::time::timeout(Duration::from_millis(50), dying.take_up(run.run_id())).await;
    assert!(lost.is_err());
    assert_eq!(recorder.ids(), ["c1"]);
    let second = agent(ScriptedModel::new([]));
    assert!(matches!(second.take_up(run.run_id()).await.unwrap(), TakeUp::Held { .. }));
    time.fetch_add(31_000, Ordering::Relaxed);
    let TakeUp::Resumed(ended) = second.take_up(run.run_id()).await.unwrap() else { panic!() };
    assert_eq!(ended.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn a_claimed_call_stays_pending_when_its_run_is_resumed() {
    // L2: "never silently run again, unless the tool is idempotent." The lease of the call is the later one here.
    let time = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&time);
    let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::Relaxed)));
    let pay = || ToolDefinition::new("pay", json!({"type": "object"})).with_idempotent(true);
    let slow = Recorder::of([pay()]).taking(Duration::from_secs(3_600));
    let quick = Recorder::of([pay()]).body(|_, _| Ok("paid".into()));
    let agent = |model: ScriptedModel, recorder: &Recorder, worker: &str| {
        let passes = Arc::clone(&time);
        let takes_time = decide_fn(move |_, _| {
            passes.fetch_add(5_000, Ordering::Relaxed);
            Decision::allow()
        });
        Agent::new(model, recorder.clone().approval_required().layered(takes_time))
            .output(text().or_deferred())
            .ledger(ledger.clone().worker(worker))
    };
    let calls = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let run = agent(ScriptedModel::new([calls]), &slow, "front").run("go").await.unwrap();
    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let approve = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", approve).await.unwrap();
    let dying = agent(ScriptedModel::new([]), &slow, "first");
    let lost = tokio::time::timeout(Duration::from_millis(50), dying.take_up(run.run_id())).await;
    assert!(lost.is_err(), "the worker dies in the middle of the tool");

    let second = agent(ScriptedModel::new([]), &quick, "second");
    time.fetch_add(27_000, Ordering::Relaxed);
    let ledger_says = ledger.load_run(run.run_id()).await.unwrap().unwrap().claim.unwrap();
    assert!(ledger_says.until < time.load(Ordering::Relaxed), "the run itself is free");
    let TakeUp::Resumed(waits) = second.take_up(run.run_id()).await.unwrap() else { panic!() };
    assert!(waits.unwrap().suspended().is_some(), "the first worker may still settle it");
    time.fetch_add(5_000, Ordering::Relaxed);
    let TakeUp::Resumed(ended) = second.take_up(run.run_id()).await.unwrap() else { panic!() };
    let ended = ended.unwrap();
    assert_eq!(ended.turns()[0].calls()[0].outcome(), &Outcome::returned("paid"));
    assert_eq!((slow.ids(), quick.ids()), (vec!["c1".to_owned()], vec!["c1".to_owned()]));
    assert!(ledger.load_run(run.run_id()).await.unwrap().unwrap().over);
    assert_eq!(ledger.load_run("nowhere").await.unwrap(), None);
}

#[tokio::test]
async fn a_withdrawn_call_does_not_run_and_is_not_pending() {
    let recorder = Recorder::new(["pay"]);
    let ledger = ledger();
    let turn = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let suspended = waiting(&turn).await;
    let ask = ledger.list(None, 10).await.unwrap().records.remove(0);
    ledger.cancel(ask.ask.id(), "ann").await.unwrap();
    for answers in [turn.decisions(&suspended).await.unwrap(), yes(&suspended)] {
        let report = turn.resume(stored(&suspended), answers).await.unwrap();
        let withdrawn = Outcome::denied("The request was withdrawn.");
        assert_eq!(report.calls()[0].outcome(), &withdrawn);
    }
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn an_ask_from_the_ledger_is_shown_like_the_pending_call() {
    // S1: "What an approver sees is made from the call that will run." A1: "anything else that is new is asked about,
    // saying what changed."
    let digest = Arc::new(AtomicI64::new(1));
    let now = Arc::clone(&digest);
    let policy = move |_: &RunContext, call: &ToolCall| match call.name() {
        "pay" => Decision::ask("pays")
            .with_key("pay")
            .with_pin("accounts", now.load(Ordering::Relaxed).to_string())
            .with_metadata("approval_description", "as agreed"),
        _ => Decision::allow(),
    };
    let ledger = ledger();
    let model = ScriptedModel::new([ModelResponse::calls([call("c1", "pay", json!({"n": 1}))])]);
    let worker = Agent::new(model, Recorder::new(["pay"]));
    let tools = FunctionToolset::new().tool(worker.as_tool("worker", "Works"));
    let calls = [call("p1", "worker", json!({"prompt": "pay"}))];
    let root = Agent::new(
        ScriptedModel::new([ModelResponse::calls(calls)]),
        tools.layered(decide_fn(policy)),
    )
    .output(text().or_deferred())
    .ledger(ledger.clone());
    let mut suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    for changed in [false, true] {
        let asks = root.asks(&suspended).await.unwrap();
        let [(id, record)] = &asks[..] else { panic!("{asks:?}") };
        let requests = suspended.requests();
        let mut shown = CallView::of(&requests, id, Limits::default()).unwrap();
        assert_eq!((shown.changed.is_some(), shown.notes.len()), (changed, 1));
        assert_eq!(requests.fingerprint(id), Some(&*record.fingerprint));
        let [alone] = &CallView::all(&record.ask.requests(), Limits::default())[..] else {
            panic!()
        };
        shown.id.clone_from(&alone.id); // which names only the call of its own agent
        assert_eq!(&shown, alone);
        assert_eq!(shown.agent.as_deref(), Some("root/worker"));
        assert_eq!(record.ask.path(), "root/worker/c1");

        let yes = Answer::Approve { args: None };
        ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes).await.unwrap();
        digest.fetch_add(1, Ordering::Relaxed);
        let answers = root.decisions(&suspended).await.unwrap();
        suspended = root.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
    }
}

#[tokio::test]
async fn the_asks_of_one_run_are_listed_alone() {
    let ledger = ledger();
    for (run, path) in [("r1", "root/a"), ("r2", "root/a"), ("r1", "root/b")] {
        ledger.park(Ask::new(run, path, "pay")).await.unwrap();
    }
    let paths = async |limit| {
        let asks = ledger.list_run("r1", limit).await.unwrap().records;
        let mut paths: Vec<_> = asks.iter().map(|it| it.ask.path().to_owned()).collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(10).await, ["root/a", "root/b"]);
    assert_eq!(paths(1).await.len(), 1);
    assert!(ledger.list_run("r3", 10).await.unwrap().records.is_empty());
}
