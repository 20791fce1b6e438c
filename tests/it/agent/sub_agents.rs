//! Agents as tools of agents (rule T7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::agent::{RunResult, text};
use countersign::call::UsageLimits;
use countersign::handler::{Stopped, danger_approve_all, handler_fn_sync};
use countersign::middleware::ToolRateLimit;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::turn::RunEvent;
use countersign::{
    Agent, AnswerError, Decision, DeferredToolRequests, DeferredToolResults, Error, Outcome,
    RunContext, SuspendedRun, Tools, ToolsExt, decide_fn, from_fn,
};
use countersign::{FunctionToolset, ToolError, ToolMiddlewareExt};
use serde_json::json;
use tower::ServiceBuilder;

use crate::support::{Recorder, call, content, stored};

/// A model that makes these calls, and is done.
fn calls<const N: usize>(calls: [(&str, &str); N]) -> ScriptedModel {
    let calls = calls.map(|(id, tool)| call(id, tool, args(tool)));
    ScriptedModel::new([ModelResponse::calls(calls)])
}

fn args(tool: &str) -> serde_json::Value {
    match tool {
        "cleaner" | "scanner" | "deep" => json!({"prompt": "work"}),
        _ => json!({"path": "a.log"}),
    }
}

/// A cleaner that deletes a file, which needs an approval, and lists the folder, which does not.
fn cleaner(recorder: &Recorder) -> Agent {
    let model = calls([("c1", "delete_file"), ("c2", "list_files")]);
    Agent::new(model, asks_to_delete(recorder))
}

fn asks_to_delete(recorder: &Recorder) -> Tools {
    recorder.clone().approval_required_if(|_, call| call.name() == "delete_file")
}

fn files() -> Recorder {
    Recorder::new(["delete_file", "list_files", "read_file"])
}

fn with_agent(name: &str, agent: &Agent) -> FunctionToolset {
    FunctionToolset::new().tool(agent.as_tool(name, "Works"))
}

fn ids(requests: &DeferredToolRequests) -> Vec<&str> {
    requests.iter().map(countersign::ToolCall::id).collect()
}

#[tokio::test]
async fn the_parents_handler_answers_for_the_calls_of_its_sub_agent() {
    let recorder = files();
    let tools = with_agent("cleaner", &cleaner(&recorder));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let seen = Arc::clone(&seen);
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            for call in requests.iter() {
                let path = requests.path(call.id()).unwrap();
                seen.lock().unwrap().push((call.id().to_owned(), call.name().to_owned(), path));
            }
            requests.answer().approve("p1/c1").answered_by("ann").build()
        })
    };
    let root = Agent::new(calls([("p1", "cleaner")]), tools).deferred_tool_handler(handler);
    let run = root.run("go").await.unwrap();

    let expected =
        ("p1/c1".to_owned(), "delete_file".to_owned(), "root/cleaner/delete_file".to_owned());
    assert_eq!(*seen.lock().unwrap(), [expected]);
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let call = &run.turns()[0].calls()[0];
    assert_eq!(call.outcome().content().unwrap(), "Done.");
    let inner = call.turns().last().unwrap().calls()[0].answered().unwrap().by();
    assert_eq!(inner, Some("ann"));
}

#[tokio::test]
async fn an_agent_that_continues_after_an_answer_is_not_counted_again() {
    // D3: what is counted once for each call is counted where `is_repeat` is false.
    let recorder = files();
    let limit = ToolRateLimit::new(1, Duration::from_secs(3600));
    let tools = with_agent("cleaner", &cleaner(&recorder)).layered(limit.for_tools(["cleaner"]));
    let root = Agent::new(calls([("p1", "cleaner")]), tools).output(text().or_deferred());
    let run = root.run("go").await.unwrap();
    let suspended = stored(run.suspended().unwrap());
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.turns()[0].calls()[0].outcome().content().unwrap(), "Done.");
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

// T3 beside a sub-agent: settled results are in the history. An agent without a result begins anew from a bare history,
// as the documentation of `from_trusted_history` says: its state is in the run, not in the history of its parent.
#[tokio::test]
async fn the_history_beside_a_suspended_sub_agent_has_the_settled_results() {
    let recorder = files();
    let own = recorder.clone().id("own").filtered(|_, it| it.name() == "read_file");
    let cleaner = || {
        Agent::new(calls([("c1", "delete_file"), ("c2", "list_files")]), asks_to_delete(&recorder))
    };
    let root = |model, cleaner: &Agent| {
        let tools = Tools::combined([with_agent("cleaner", cleaner).into(), own.clone()]);
        Agent::new(model, tools).output(text().or_deferred())
    };
    let first = root(calls([("p1", "cleaner"), ("p2", "read_file")]), &cleaner());
    let suspended = first.run("go").await.unwrap().into_suspended().unwrap();
    let told = |history: &[countersign::Message]| -> Vec<String> {
        crate::support::results(history).into_iter().map(|(id, ..)| id).collect()
    };
    assert_eq!(told(suspended.history()), ["p2"]);
    assert_eq!(stored(&suspended), suspended);

    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let run = first.resume(suspended.clone(), answers).await.unwrap();
    assert_eq!((run.text(), told(run.history())), (Some("Done."), vec!["p1".into(), "p2".into()]));
    assert_eq!(recorder.ids(), ["c1", "c2", "p2"]);

    let bare = SuspendedRun::from_trusted_history(suspended.history().to_vec());
    let again = root(ScriptedModel::new([]), &cleaner());
    let waits = again.ask(bare).await.unwrap().into_suspended().unwrap();
    assert_eq!(ids(&waits.requests()), ["p1/c1"]);
    assert_eq!(told(waits.history()), ["p2"]);
    assert_eq!(recorder.ids().iter().filter(|id| *id == "p2").count(), 1);
}

#[tokio::test]
async fn stopping_ends_the_tree_of_agents_and_denies_nothing() {
    // S8: "Stop is not no", at the root's handler and at the sub-agent's own.
    let stops = || handler_fn_sync(|_, _| Err::<DeferredToolResults, _>(Stopped));
    for own in [false, true] {
        let recorder = files();
        let mut cleaner = cleaner(&recorder);
        if own {
            cleaner = cleaner.deferred_tool_handler(stops());
        }
        let tools = with_agent("cleaner", &cleaner);
        let root = Agent::new(calls([("p1", "cleaner")]), tools);
        let error = root.run("go").deferred_tool_handler(stops()).await.unwrap_err();
        assert!(error.error().is_stopped(), "{error:?}");
        let suspended = stored(error.suspended());
        assert!(suspended.requests().is_empty(), "nothing is open any more");
        let run = root.resume(suspended, DeferredToolResults::new()).await.unwrap();
        assert_eq!(run.text(), Some("Done."));
        assert_eq!(recorder.ids(), ["c2"], "what was asked about has not run");
    }
}

#[tokio::test]
async fn a_suspended_sub_agent_resumes_where_it_stopped() {
    // T7: "its state rides in the `SuspendedRun`, and it resumes where it stopped".
    let recorder = files();
    let model = calls([("c1", "delete_file"), ("c2", "list_files")]);
    let cleaner = Agent::new(model.clone(), asks_to_delete(&recorder));
    let root_model = calls([("p1", "cleaner"), ("p2", "read_file")]);
    let tools = Tools::combined([
        with_agent("cleaner", &cleaner).into(),
        recorder.clone().id("own").filtered(|_, it| it.name() == "read_file"),
    ]);
    let root = Agent::new(root_model.clone(), tools).output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    assert_eq!(recorder.ids(), ["c2", "p2"]);
    assert_eq!((root_model.requests().len(), model.requests().len()), (1, 1));

    let suspended = stored(&suspended);
    let requests = suspended.requests();
    assert_eq!(ids(&requests), ["p1/c1"]);
    let json = serde_json::to_value(&requests).unwrap();
    let there: DeferredToolRequests = serde_json::from_value(json).unwrap();
    assert_eq!(there.path("p1/c1").unwrap(), "root/cleaner/delete_file");
    let answers = there.answer().approve("p1/c1").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2", "p2"]);
    assert_eq!((root_model.requests().len(), model.requests().len()), (2, 2));
    let told = serde_json::to_value(&run.history()[2]).unwrap();
    assert_eq!(told["parts"][0]["content"], "Done.");
    assert_eq!(told["parts"][0]["tool_call_id"], "p1");
}

#[tokio::test]
async fn a_denied_call_of_a_sub_agent_does_not_run_and_the_agent_continues() {
    let recorder = files();
    let tools = with_agent("cleaner", &cleaner(&recorder));
    let root = Agent::new(calls([("p1", "cleaner")]), tools).output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let answers = suspended.requests().answer().deny("p1/c1", "not today").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c2"]);
    let inner = run.turns()[0].calls()[0].turns().last().unwrap().calls()[0].clone();
    assert_eq!(inner.outcome(), &Outcome::denied("not today"));
}

#[tokio::test]
async fn pending_calls_of_several_levels_of_agents_form_one_batch() {
    // T7: "Its asks join the parent's batch under library-made path ids".
    let recorder = files();
    let tools_of_scanner = Tools::combined([
        asks_to_delete(&recorder).filtered(|_, it| it.name() == "delete_file"),
        with_agent("deep", &cleaner(&recorder)).into(),
    ]);
    let scanner = Agent::new(calls([("c1", "delete_file"), ("c2", "deep")]), tools_of_scanner);
    let tools = FunctionToolset::new()
        .tool(scanner.as_tool("scanner", "Scans"))
        .tool(cleaner(&recorder).as_tool("cleaner", "Cleans"));
    let model = calls([("p1", "scanner"), ("p2", "cleaner"), ("p3", "cleaner")]);
    let root = Agent::new(model, tools).output(text().or_deferred());
    let run = root.run("go").await.unwrap();
    let mut suspended = stored(run.suspended().unwrap());
    // The second cleaner shares its scripted model with the first, and has nothing to say any more.
    assert_eq!(ids(&suspended.requests()), ["p1/c1", "p1/c2/c1", "p2/c1"]);
    let paths: Vec<_> =
        suspended.requests().iter().map(|it| suspended.requests().path(it.id()).unwrap()).collect();
    assert_eq!(
        paths,
        ["root/scanner/delete_file", "root/scanner/deep/delete_file", "root/cleaner/delete_file"]
    );

    // Answered one by one, each from the stored form: what is left waits, what is answered runs once.
    for (id, left) in [("p1/c2/c1", 2), ("p2/c1", 1)] {
        let answers = suspended.requests().answer().approve(id).leave_rest().build().unwrap();
        let run = root.resume(suspended, answers).await.unwrap();
        suspended = stored(run.suspended().unwrap());
        assert_eq!(suspended.requests().iter().count(), left);
    }
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c1", "c1", "c2", "c2"]);
}

#[tokio::test]
async fn a_sub_agent_cannot_approve_its_own_calls() {
    // T7: "its own handlers may deny or leave, only the root's approve".
    let recorder = files();
    let cleaner = cleaner(&recorder).deferred_tool_handler(danger_approve_all());
    let tools = with_agent("cleaner", &cleaner);
    let root = Agent::new(calls([("p1", "cleaner")]), tools).output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    assert_eq!(ids(&suspended.requests()), ["p1/c1"]);
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test]
async fn the_handler_of_a_sub_agent_may_deny() {
    let recorder = files();
    let cleaner = cleaner(&recorder).deferred_tool_handler(handler_fn_sync(
        |_: &RunContext, requests: &DeferredToolRequests| {
            requests.answer().deny_rest("the cleaner says no").build()
        },
    ));
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner))
        .deferred_tool_handler(danger_approve_all());
    let run = root.run("go").await.unwrap();
    assert_eq!(recorder.ids(), ["c2"]);
    let inner = run.turns()[0].calls()[0].turns()[0].calls()[0].clone();
    assert_eq!(inner.outcome(), &Outcome::denied("the cleaner says no"));
}

#[tokio::test]
async fn a_sub_agent_inherits_the_decisions_of_every_ancestor() {
    // T7: "It inherits the ancestors' middleware (decisions only), so it can only be narrower".
    let recorder = files();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let deep = Agent::new(
        calls([("c1", "delete_file"), ("c2", "list_files"), ("c3", "read_file")]),
        recorder.clone(),
    );
    let paths = {
        let seen = Arc::clone(&seen);
        decide_fn(move |_, call| {
            seen.lock().unwrap().push((call.context().agent_path(), call.name().to_owned()));
            Decision::allow()
        })
        .named("paths")
    };
    let no_delete = decide_fn(|_, call| match call.name() {
        "delete_file" => Decision::deny("never, says the root"),
        _ => Decision::allow(),
    });
    let middle_asks = from_fn(|_, call: countersign::ToolCall| async move {
        match call.name() {
            "read_file" => Decision::ask("read?"),
            _ => Decision::allow(),
        }
    })
    .named("middle");
    let middle =
        Agent::new(calls([("m1", "deep")]), with_agent("deep", &deep).layered(middle_asks));
    let stack =
        with_agent("scanner", &middle).layered(ServiceBuilder::new().layer(paths).layer(no_delete));
    let root = Agent::new(calls([("p1", "scanner")]), stack).output(text().or_deferred());
    let run = root.run("go").await.unwrap();
    assert_eq!(recorder.ids(), ["c2"]);
    let suspended = stored(run.suspended().unwrap());
    assert_eq!(ids(&suspended.requests()), ["p1/m1/c3"]);
    assert_eq!(suspended.requests().questions("p1/m1/c3")[0].reason(), "read?");
    let seen = seen.lock().unwrap().clone();
    let at = |path: &str, tool: &str| (path.to_owned(), tool.to_owned());
    assert_eq!(seen[..2], [at("root", "scanner"), at("root/scanner", "deep")]);
    assert!(seen.contains(&at("root/scanner/deep", "delete_file")), "{seen:?}");

    // In another process the stack has become stricter: an approval does not help against a new denial.
    let strict = with_agent("scanner", &middle).layered(decide_fn(|_, call| match call.name() {
        "read_file" => Decision::deny("no more reading"),
        _ => Decision::allow(),
    }));
    let root = Agent::new(calls([]), strict).output(text().or_deferred());
    let answers = suspended.requests().answer().approve("p1/m1/c3").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some(""));
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test(start_paused = true)]
async fn limits_and_timeouts_of_a_parent_do_not_apply_to_its_sub_agents() {
    // T7: "An agent as a tool runs *outside* the parent's stack (else it deadlocks on the parent's limits and dies by
    // its timeouts)."
    let recorder = files().taking(Duration::from_secs(60));
    let inner = Agent::new(calls([("c1", "list_files")]), recorder.clone());
    let middle = Agent::new(calls([("m1", "deep")]), with_agent("deep", &inner));
    let stack = with_agent("cleaner", &middle).layered(
        ServiceBuilder::new()
            .layer(tower::limit::GlobalConcurrencyLimitLayer::new(1))
            .layer(tower::timeout::TimeoutLayer::new(Duration::from_secs(1))),
    );
    let run = Agent::new(calls([("p1", "cleaner"), ("p2", "cleaner")]), stack).run("go").await;
    assert_eq!(run.unwrap().turns()[0].calls()[0].outcome().content().unwrap(), "Done.");
    assert_eq!(recorder.ended(), ["c1"]);
}

#[tokio::test]
async fn a_call_to_an_agent_is_decided_like_every_other_call() {
    let recorder = files();
    let asks = with_agent("cleaner", &cleaner(&recorder))
        .approval_required_if(|_, call| call.name() == "cleaner");
    let root = Agent::new(calls([("p1", "cleaner")]), asks).output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    assert_eq!(ids(&suspended.requests()), ["p1"]);
    assert!(recorder.ran().is_empty());

    // Its approval does not authorise what the agent does.
    let answers = suspended.requests().answer().approve("p1").build().unwrap();
    let suspended = root.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
    let suspended = stored(&suspended);
    assert_eq!(ids(&suspended.requests()), ["p1/c1"]);
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let run = root.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);

    let denied = with_agent("cleaner", &cleaner(&recorder))
        .layered(decide_fn(|_, _| Decision::deny("no agents")));
    let run = Agent::new(calls([("p1", "cleaner")]), denied).run("go").await.unwrap();
    assert_eq!(run.turns()[0].calls()[0].outcome(), &Outcome::denied("no agents"));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

#[tokio::test]
async fn every_later_response_of_a_sub_agent_is_a_new_response_for_the_handler() {
    // T7: "each of its later responses is a new response for T2"; T4: a call that defers again is not offered again.
    let recorder = files();
    let twice = ModelResponse::calls([call("c1", "delete_file", json!({"path": "a"}))]);
    let again = ModelResponse::calls([call("c2", "delete_file", json!({"path": "b"}))]);
    let cleaner = Agent::new(ScriptedModel::new([twice, again]), asks_to_delete(&recorder));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let asked = Arc::clone(&asked);
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            asked.lock().unwrap().push(ids(requests).join(" "));
            let answers = requests
                .approvals
                .iter()
                .fold(requests.answer(), |answers, call| answers.approve(call.id()));
            answers.build()
        })
    };
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner))
        .deferred_tool_handler(handler);
    assert_eq!(root.run("go").await.unwrap().text(), Some("Done."));
    assert_eq!(*asked.lock().unwrap(), ["p1/c1", "p1/c2"]);
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

#[tokio::test]
async fn answers_for_sub_agents_are_strict() {
    // A4 and A2, through two levels.
    let recorder = typed();
    let deep = Agent::new(calls([("c1", "delete_file")]), recorder.1.clone().approval_required());
    let middle = Agent::new(calls([("m1", "deep")]), with_agent("deep", &deep));
    let root = Agent::new(calls([("p1", "scanner")]), with_agent("scanner", &middle))
        .output(text().or_deferred());
    let mut suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let id = "p1/m1/c1";
    let bare = DeferredToolResults::new;
    type Fits = fn(&AnswerError) -> bool;
    let wrong: [(DeferredToolResults, Fits); 5] = [
        (bare(), |it| matches!(it, AnswerError::Missing { .. })),
        (bare().approve("c1"), |it| matches!(it, AnswerError::Several { .. })),
        (bare().result(id, 1), |it| {
            matches!(it, AnswerError::WrongKind { .. } | AnswerError::Several { .. })
        }),
        (bare().approve(id).leave(id), |it| matches!(it, AnswerError::Contradictory { .. })),
        (
            bare().approval(
                id,
                countersign::deferred::ToolApproved::with_args(
                    countersign::Args::new().with("path", 7),
                ),
            ),
            |it| matches!(it, AnswerError::InvalidArgs { ids, .. } if ids == &["p1/m1/c1"]),
        ),
    ];
    for (answers, fits) in wrong {
        let error = root.resume(suspended.clone(), answers.clone()).await.unwrap_err();
        let Error::Answers(kind) = error.error() else { panic!("{error:?}") };
        assert!(fits(kind), "{answers:?}: {kind:?}");
        assert!(recorder.0.lock().unwrap().is_empty());
        suspended = stored(error.suspended());
        assert_eq!(ids(&suspended.requests()), [id]);
    }
    let edited = countersign::Args::new().with("path", "b.log");
    let answers = suspended.requests().answer().approve_with(id, edited).build().unwrap();
    let run = root.resume(suspended.clone(), answers.clone()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(*recorder.0.lock().unwrap(), ["b.log"]);
}

/// A typed tool that records its paths.
fn typed() -> (Arc<Mutex<Vec<String>>>, FunctionToolset) {
    #[derive(serde::Deserialize, countersign::schemars::JsonSchema)]
    struct File {
        path: String,
    }
    let ran = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&ran);
    let tool = countersign::tool_fn("delete_file", "Deletes", move |file: File| {
        log.lock().unwrap().push(file.path);
        async { Ok::<_, ToolError>("deleted") }
    });
    (ran, FunctionToolset::new().tool(tool))
}

#[tokio::test]
async fn an_error_in_a_sub_agent_ends_the_run_which_can_be_resumed() {
    // T9: "Every error after something ran carries the suspended run, with settled calls settled, so that resuming
    // runs nothing twice."
    let recorder = files();
    let first = ModelResponse::calls([call("c1", "list_files", json!({}))]);
    let model = ScriptedModel::new([first]).then_error("the line is dead");
    let cleaner = Agent::new(model, recorder.clone());
    let root_model = calls([("p1", "cleaner"), ("p2", "read_file")]);
    let tools = Tools::combined([
        with_agent("cleaner", &cleaner).into(),
        recorder.clone().id("own").filtered(|_, it| it.name() == "read_file"),
    ]);
    let root = Agent::new(root_model, tools);
    let error = root.run("go").await.unwrap_err();
    let Error::Agent { id, agent, source } = error.error() else { panic!("{error:?}") };
    assert_eq!((id.as_str(), agent.as_str()), ("p1", "cleaner"));
    assert!(matches!(**source, Error::Model(_)));
    assert_eq!(recorder.ids(), ["c1", "p2"]);

    let suspended = stored(error.suspended());
    let run = root.resume(suspended, DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "p2"]);
    assert_eq!(run.turns()[0].calls()[0].outcome().content().unwrap(), "Done.");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_cancels_its_sub_agents() {
    let recorder = files().taking(Duration::from_secs(60));
    let inner = Agent::new(calls([("c1", "list_files"), ("c2", "read_file")]), recorder.clone());
    let middle = Agent::new(calls([("m1", "deep")]), with_agent("deep", &inner));
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &middle));
    let run = root.run("go").into_future();
    assert!(tokio::time::timeout(Duration::from_secs(30), run).await.is_err());
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(recorder.ran().len(), 2);
    assert!(recorder.ended().is_empty());
}

#[tokio::test]
async fn ids_of_calls_and_of_sub_agents_calls_never_collide() {
    // A response whose ids look like those of a sub-agent's calls gets other ids where it enters.
    let recorder = files();
    let tools = Tools::combined([
        with_agent("cleaner", &cleaner(&recorder)).into(),
        recorder.clone().id("own").approval_required().filtered(|_, it| it.name() == "read_file"),
    ]);
    let model = calls([("p1", "cleaner"), ("p1/c1", "read_file")]);
    let root = Agent::new(model, tools).output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let requests = suspended.requests();
    let waiting = ids(&requests);
    assert_eq!((waiting.len(), waiting[0]), (2, "p1/c1"));
    assert_eq!(requests.get("p1/c1").unwrap().name(), "delete_file");
    assert!(!waiting[1].contains('/'));

    // A loop of one's own that does not take its calls in with `admit` is told.
    let turn = countersign::Turn::new(with_agent("cleaner", &cleaner(&recorder)));
    let error = turn.run(vec![call("p1/c1", "cleaner", args("cleaner"))]).await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { ids, .. } if ids == &["p1/c1"]));
}

#[tokio::test]
async fn a_watcher_of_the_parent_gets_the_events_of_its_sub_agents() {
    let recorder = files();
    let deep = Agent::new(calls([("c1", "list_files")]), recorder.clone());
    let own = Arc::new(Mutex::new(0));
    let count = Arc::clone(&own);
    let middle = Agent::new(calls([("m1", "deep")]), with_agent("deep", &deep))
        .watch(move |_| *count.lock().unwrap() += 1);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &middle));
    let run = root.run("go").watch(move |event| {
        if let RunEvent::SubAgent { path, tool_call_id, event } = event
            && let RunEvent::FunctionToolResult { .. } = **event
        {
            events.lock().unwrap().push((path.clone(), tool_call_id.clone()));
        }
    });
    let _ = run.await.unwrap();
    let at = |path: &str, id: &str| (path.to_owned(), id.to_owned());
    assert_eq!(
        *heard.lock().unwrap(),
        [at("root/cleaner/deep", "p1/m1"), at("root/cleaner", "p1")]
    );
    assert!(*own.lock().unwrap() > 0);
}

#[tokio::test]
async fn sub_agents_count_towards_the_limits_of_their_parents() {
    let recorder = files();
    let deep = Agent::new(calls([("c1", "list_files"), ("c2", "read_file")]), recorder.clone());
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &deep))
        .usage_limits(UsageLimits::new().tool_calls(1));
    let error = root.run("go").await.unwrap_err();
    let Error::Agent { source, .. } = error.error() else { panic!("{error:?}") };
    assert!(matches!(&**source, Error::UsageLimit { ids, .. } if ids == &["c2"]), "{source:?}");
    assert_eq!(recorder.ids(), ["c1"]);
    assert_eq!(error.suspended().usage().tool_calls, 1);
    assert_eq!(error.suspended().usage().requests, 2);
}

#[tokio::test]
async fn a_sub_agent_has_the_dependencies_of_its_parent_and_its_own() {
    struct Tenant(&'static str);
    struct Tone(&'static str);
    let recorder = files()
        .body(|cx, _| Ok(json!([cx.deps::<Tenant>()?.0, cx.deps::<Tone>()?.0, cx.agent_path()])));
    let deep = Agent::new(calls([("c1", "list_files")]), recorder).deps(Tone("the child's"));
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &deep))
        .deps(Tone("the parent's"));
    let run = root.run("go").deps(Tenant("acme")).await.unwrap();
    let inner = &run.turns()[0].calls()[0].turns()[0].calls()[0];
    assert_eq!(inner.outcome().content().unwrap(), json!(["acme", "the child's", "root/cleaner"]));
}

#[tokio::test]
async fn a_sub_agent_that_a_new_denial_stops_says_so() {
    let recorder = files();
    let cleaner = cleaner(&recorder);
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner))
        .output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let strict =
        with_agent("cleaner", &cleaner).layered(decide_fn(|_, _| Decision::deny("closed")));
    let root = Agent::new(calls([]), strict);
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let run = root.resume(suspended.clone(), answers.clone()).await.unwrap();
    let told = run.turns()[0].calls()[0].outcome().content().unwrap();
    assert_eq!(told, "The agent had begun its work and was stopped: closed");
    assert_eq!(recorder.ids(), ["c2"]);

    // Nor does a tool of the same name that is no agent any more take its place.
    let impostor = Recorder::new(["cleaner"]);
    let root = Agent::new(calls([]), impostor.clone());
    let run = root.resume(suspended, answers).await.unwrap();
    assert!(impostor.ran().is_empty());
    assert!(matches!(run.turns()[0].calls()[0].outcome(), Outcome::Failed(_)));
}

#[tokio::test]
async fn a_new_question_about_an_agent_precedes_those_of_its_calls() {
    let recorder = files();
    let cleaner = cleaner(&recorder);
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner))
        .output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let asks = decide_fn(|_, _| Decision::ask("still?")).for_tools(["cleaner"]);
    let root = Agent::new(calls([]), with_agent("cleaner", &cleaner).layered(asks.into_layer()))
        .output(text().or_deferred());
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let suspended = root.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
    let suspended = stored(&suspended);
    assert_eq!(ids(&suspended.requests()), ["p1"]);
    let answers = suspended.requests().answer().approve("p1").build().unwrap();
    let suspended = root.resume(suspended, answers).await.unwrap().into_suspended().unwrap();
    assert_eq!(ids(&suspended.requests()), ["p1/c1"]);
    assert_eq!(recorder.ids(), ["c2"]);
    let answers = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let _ = root.resume(suspended, answers).await.unwrap();
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

#[tokio::test]
async fn the_denial_of_a_started_agent_says_that_it_had_begun() {
    let recorder = files();
    let cleaner = cleaner(&recorder);
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner))
        .output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let asks = || decide_fn(|_, _| Decision::ask("still?")).for_tools(["cleaner"]);
    let tools = || with_agent("cleaner", &cleaner).layered(asks().into_layer());
    let root = || Agent::new(calls([]), tools()).output(text().or_deferred());
    let yes = suspended.requests().answer().approve("p1/c1").build().unwrap();
    let told = |run: &RunResult| run.turns()[0].calls()[0].outcome().content().unwrap();

    // By a person, by the bound of pending calls, and by a stop.
    let waits = root().resume(suspended.clone(), yes.clone()).await.unwrap();
    let waits = waits.into_suspended().unwrap();
    let no = waits.requests().answer().deny("p1", "not now").build().unwrap();
    let run = root().resume(waits, no).await.unwrap();
    assert_eq!(told(&run), "The agent had begun its work and was stopped: not now");

    let run = root().max_pending(0).resume(suspended.clone(), yes.clone()).await.unwrap();
    assert_eq!(
        told(&run),
        "The agent had begun its work and was stopped: Denied without asking: 0 calls of this run are pending already."
    );

    let stops = handler_fn_sync(|_, _| Err::<DeferredToolResults, _>(Stopped));
    let root = root().deferred_tool_handler(stops);
    let error = root.resume(suspended, yes).await.unwrap_err();
    assert!(error.error().is_stopped(), "{error:?}");
    assert!(stored(error.suspended()).requests().is_empty());
    let [turn] = error.turns() else { panic!("{error:?}") };
    assert_eq!(content(turn, 0), "Stopped: a person stopped the run.");
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test]
async fn closing_a_run_closes_its_sub_agents() {
    let recorder = files();
    let root = Agent::new(calls([("p1", "cleaner")]), with_agent("cleaner", &cleaner(&recorder)))
        .output(text().or_deferred());
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    let history = suspended.close("the user sent another message");
    let told = serde_json::to_value(history.last().unwrap()).unwrap();
    assert_eq!(
        told["parts"][0]["content"],
        "The agent was stopped before its end: the user sent another message."
    );
    let run = root.run("more").history(history).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test]
async fn a_handler_is_not_asked_again_about_calls_that_it_left() {
    let recorder = files();
    let first = ModelResponse::calls([call("g1", "list_files", json!({}))]);
    let second = ModelResponse::calls([call("g2", "delete_file", json!({}))]);
    let third = ModelResponse::calls([call("g3", "delete_file", json!({}))]);
    let deep = Agent::new(ScriptedModel::new([first, second, third]), asks_to_delete(&recorder));
    let both = Tools::combined([
        asks_to_delete(&recorder).filtered(|_, it| it.name() == "delete_file"),
        with_agent("deep", &deep).into(),
    ]);
    let middle = Agent::new(calls([("c1", "delete_file"), ("c2", "deep")]), both);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let handler = handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
        log.lock().unwrap().push(ids(requests).join(" "));
        let mut answers = requests.answer();
        for call in requests.iter().filter(|call| call.id() != "p1/c1") {
            answers = answers.approve(call.id());
        }
        answers.leave_rest().build()
    });
    let root = Agent::new(calls([("p1", "scanner")]), with_agent("scanner", &middle))
        .output(text().or_deferred())
        .deferred_tool_handler(handler);
    let suspended = root.run("go").await.unwrap().into_suspended().unwrap();
    assert_eq!(*asked.lock().unwrap(), ["p1/c1 p1/c2/g2", "p1/c2/g3"]);
    assert_eq!(ids(&suspended.requests()), ["p1/c1"]);
    assert_eq!(recorder.ids(), ["g1", "g2", "g3"]);
}
