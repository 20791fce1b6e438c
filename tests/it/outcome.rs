//! Errors of tools: by default an ordinary one fails its call, and the run continues (rule T8).

use std::error::Error as _;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::handler::Stopped;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::outcome::{
    ApprovalRequired, CallDeferred, DeferralKind, FatalError, ModelRetry, ToolFailed,
};
use countersign::testing::ScriptedModel;
use countersign::toolset::{Tool, blocking_tool_fn};
use countersign::turn::CallReport;
use countersign::{
    Agent, BoxError, DeferredToolResults, Error, FunctionToolset, RunContext, ToolCall, ToolError,
    Tools, ToolsExt, Turn, handler_fn, schemars, tool_fn,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{Recorder, call, content, results, words};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    says: String,
}

/// An error with a source, as applications have them.
#[derive(Debug)]
struct Outage(std::io::Error);

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bank cannot be reached")
    }
}

impl std::error::Error for Outage {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn outage() -> Outage {
    Outage(std::io::Error::other("secret-host.internal: connection refused"))
}

/// What a body says, as an error of the application's own kind.
fn said(what: &str) -> Result<Value, BoxError> {
    match what {
        "retry" => Err(ModelRetry::new("one digit, please").into()),
        "failed" => Err(ToolFailed::new("the account is closed").into()),
        "ask" => Err(ApprovalRequired::because("spends money").into()),
        "defer" => Err(CallDeferred::question().into()),
        "fatal" => Err(FatalError::new(outage()).into()),
        "deps" => Err(RunContext::default().deps::<u8>().unwrap_err().into()),
        "outage" => Err(outage().into()),
        "text" => Err("no such account".into()),
        _ => Ok(json!("done")),
    }
}

fn as_anyhow(error: BoxError) -> anyhow::Error {
    let error = match error.downcast::<ModelRetry>() {
        Ok(error) => return anyhow::Error::new(*error).context("while paying"),
        Err(error) => error,
    };
    let error = match error.downcast::<ApprovalRequired>() {
        Ok(error) => return anyhow::Error::new(*error),
        Err(error) => error,
    };
    match error.downcast::<FatalError>() {
        Ok(error) => anyhow::Error::new(*error).context("while paying"),
        Err(error) => anyhow::anyhow!("{error}"),
    }
}

/// The same tool in each of the forms that a tool may have.
fn tools() -> Vec<(&'static str, Tool)> {
    async fn own(args: What) -> Result<Value, ToolError> {
        Ok(said(&args.says)?)
    }
    async fn boxed(_: RunContext, args: What) -> Result<Value, BoxError> {
        said(&args.says)
    }
    async fn any(args: What) -> anyhow::Result<Value> {
        said(&args.says).map_err(as_anyhow)
    }
    let blocking = |_: RunContext, args: What| said(&args.says);
    vec![
        ("ToolError", tool_fn("say", "", own)),
        ("BoxError", tool_fn("say", "", boxed)),
        ("anyhow", tool_fn("say", "", any)),
        ("blocking", blocking_tool_fn("say", "", blocking)),
    ]
}

async fn say(tool: &Tool, says: &str) -> Result<CallReport, Error> {
    let turn = Turn::new(FunctionToolset::new().tool(tool.clone()));
    let report = turn.run(vec![call("c1", "say", json!({"says": says}))]).await;
    match report {
        Ok(report) => Ok(report.calls()[0].clone()),
        Err(error) => {
            let report = error.report().calls()[0].clone();
            assert!(report.error().is_none(), "the error of the run says it");
            assert_eq!(report.outcome().text().unwrap(), "The tool failed with an internal error.");
            let kind = match error.error() {
                Error::Tool { id, tool, source } => {
                    let source = source.to_string().into();
                    Error::Tool { id: id.clone(), tool: tool.clone(), source }
                }
                other => panic!("{other:?}"),
            };
            Err(kind)
        }
    }
}

// T8: "An ordinary error of a tool, in whatever form it is returned, fails its call: the model is told its `Display`,
// without its sources, and the run continues … An error type with a meaning … is recognised in every form."
#[tokio::test]
async fn an_ordinary_error_fails_its_call_and_control_values_keep_their_meaning_in_every_form() {
    for (form, tool) in tools() {
        for (says, word, told) in [
            ("nothing", "returned", "done"),
            ("outage", "failed", "the bank cannot be reached"),
            ("text", "failed", "no such account"),
            ("failed", "failed", "the account is closed"),
            ("retry", "retry", "one digit, please"),
        ] {
            let report = say(&tool, says).await.unwrap();
            assert_eq!(
                (report.outcome().word(), report.outcome().text().unwrap().as_str()),
                (word, told),
                "{form} {says}"
            );
            assert!(report.execution().started());
        }
        let asks = say(&tool, "ask").await.unwrap();
        assert_eq!(asks.outcome().word(), "deferred", "{form}");
        assert_eq!(asks.asked()[0].reason(), "spends money", "{form}");

        let fatal = say(&tool, "fatal").await.unwrap_err();
        let says = |source: &dyn std::error::Error| source.to_string();
        assert!(
            fatal
                .source()
                .is_some_and(|it| says(it).ends_with("the bank cannot be reached")
                    || says(it) == "while paying"),
            "{form}: {fatal:?}"
        );
    }
}

#[tokio::test]
async fn a_deferred_call_and_a_missing_dependency_are_found_in_a_box() {
    for (form, tool) in tools().into_iter().filter(|(form, _)| *form != "anyhow") {
        let defers = say(&tool, "defer").await.unwrap();
        let countersign::Outcome::Deferred(deferral) = defers.outcome() else { panic!("{form}") };
        assert_eq!(deferral.kind(), DeferralKind::Question);
        // A missing dependency is an error of the host.
        let deps = say(&tool, "deps").await.unwrap_err();
        let says = deps.source().map(ToString::to_string).unwrap_or_default();
        assert!(says.starts_with("the run has no dependency of type `u8`"), "{form}: {says}");
    }
}

// "Its `Display`, no chain, no `Debug`": the host has the rest.
#[tokio::test]
async fn the_host_finds_the_error_with_its_sources_and_no_debug_shows_it() {
    let tool = tool_fn("say", "", async |_: What| -> anyhow::Result<()> {
        Err(anyhow::Error::new(outage()).context("the refund failed"))
    });
    let report = say(&tool, "").await.unwrap();
    assert_eq!(report.outcome().text().unwrap(), "the refund failed");
    let chain = std::iter::successors(report.error(), |&error| error.source());
    let chain: Vec<_> = chain.map(ToString::to_string).collect();
    assert_eq!(
        chain,
        [
            "the refund failed",
            "the bank cannot be reached",
            "secret-host.internal: connection refused"
        ]
    );
    let debug = format!("{report:?}");
    assert!(!debug.contains("refund failed") && !debug.contains("secret-host"), "{debug}");

    let report = say(&tools()[0].1, "outage").await.unwrap();
    assert!(report.error().is_some_and(|error| error.is::<Outage>()));
}

// anyhow keeps what `context` was given apart from the sources of the error.
#[tokio::test]
async fn control_errors_are_found_in_the_context_of_an_anyhow_error() {
    let tool = tool_fn("say", "", async |what: What| -> anyhow::Result<()> {
        let failed = anyhow::Error::new(outage());
        Err(match what.says.as_str() {
            "fatal" => {
                failed.context(FatalError::new("the books are closed")).context("while paying")
            }
            _ => failed.context(ModelRetry::new("one digit, please")),
        })
    });
    let ended = say(&tool, "fatal").await.unwrap_err();
    assert!(ended.source().is_some_and(|it| it.to_string() == "the books are closed"), "{ended:?}");
    let retried = say(&tool, "retry").await.unwrap();
    assert!(matches!(retried.outcome(), countersign::Outcome::Retry(_)), "{retried:?}");
}

// "What was wrong in the latest execution": an idempotent tool may run again after an error.
#[tokio::test]
async fn a_call_that_is_repeated_with_success_has_no_error() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let tool = tool_fn("say", "", async |_: What| match RUNS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(outage()),
        _ => Ok("done"),
    })
    .idempotent();
    let again = tower::layer::layer_fn(|inner: Tools| {
        tower::service_fn(move |call: ToolCall| {
            let inner = inner.clone();
            async move {
                inner.clone().oneshot(call.clone()).await?;
                inner.oneshot(call).await
            }
        })
    });
    let tools = FunctionToolset::new().tool(tool).layered(again);
    let report = Turn::new(tools).run(vec![call("c1", "say", json!({"says": ""}))]).await.unwrap();
    assert_eq!(content(&report, 0), "done");
    assert!(report.calls()[0].error().is_none());
}

// An application's own error can hold what a tool says.
#[tokio::test]
async fn control_errors_are_found_among_the_sources_of_an_error() {
    #[derive(Debug)]
    struct Own(ApprovalRequired);
    impl fmt::Display for Own {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("not allowed yet")
        }
    }
    impl std::error::Error for Own {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let tool = tool_fn("say", "", async |cx: RunContext, _: What| {
        cx.approved_for("spends money").map_err(Own)
    });
    assert_eq!(say(&tool, "").await.unwrap().outcome().word(), "deferred");
}

#[tokio::test]
async fn text_is_an_error_and_an_empty_error_gets_a_default_text() {
    let owned = tool_fn("say", "", async |_: What| Err::<(), _>(String::from("not today")));
    assert_eq!(say(&owned, "").await.unwrap().outcome().text().unwrap(), "not today");
    let fixed = tool_fn("say", "", async |_: What| Err::<(), &'static str>("not today"));
    assert_eq!(say(&fixed, "").await.unwrap().outcome().text().unwrap(), "not today");
    let silent = tool_fn("say", "", async |_: What| Err::<(), _>(String::new()));
    let report = say(&silent, "").await.unwrap();
    assert_eq!(report.outcome().text().unwrap(), "The tool failed without saying why.");
}

#[tokio::test]
async fn a_value_that_is_no_json_fails_its_call_and_says_that_the_tool_ran() {
    let tool = tool_fn("say", "", async |_: What| {
        Ok::<_, ToolError>(std::collections::BTreeMap::from([((1, 2), 3)]))
    });
    let told = say(&tool, "").await.unwrap().outcome().text().unwrap();
    assert!(
        told.starts_with("The tool ran, and what it gave cannot be written as JSON:"),
        "{told}"
    );
}

// T8: "`Turn::tool_errors_end_run` has every error of a tool end the run, as PydanticAI does."
#[tokio::test]
async fn with_tool_errors_end_run_every_error_ends_the_run() {
    let say = tools().remove(0).1;
    let turn = Turn::new(FunctionToolset::new().tool(say));
    let calls = || {
        vec![
            call("c1", "say", json!({"says": "outage"})),
            call("c2", "say", json!({"says": "retry"})),
            call("c3", "say", json!({"says": "nothing"})),
        ]
    };
    let report = turn.run(calls()).await.unwrap();
    assert_eq!(words(&report), ["failed", "retry", "returned"]);

    let error = turn.tool_errors_end_run().run(calls()).await.unwrap_err();
    let Error::Tool { id, source, .. } = error.error() else { panic!("{error}") };
    assert_eq!((id.as_str(), source.to_string().as_str()), ("c1", "the bank cannot be reached"));
    assert_eq!(words(error.report()), ["failed", "retry", "returned"]);
    assert_eq!(content(error.report(), 0), "The tool failed with an internal error.");
    assert!(error.into_suspended().is_none_or(|state| state.calls().all(|(_, it)| it.is_some())));
}

fn broken() -> Recorder {
    Recorder::new(["broken"]).body(|_, _| Err(outage().into()))
}

// T8: "such an error does not count as a retry": a model may continue after any number of them.
#[tokio::test]
async fn an_ordinary_error_costs_no_retry() {
    let script = ScriptedModel::calls([call("c1", "broken", json!({}))]);
    let run = Agent::new(script.clone(), broken()).max_retries(0).run("go").await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    let told = results(script.requests()[1].messages());
    assert_eq!(told[0].2, "the bank cannot be reached");
}

#[tokio::test]
async fn tool_errors_end_run_applies_to_sub_agents() {
    let child = Agent::new(ScriptedModel::calls([call("c1", "broken", json!({}))]), broken());
    let root = |child: &Agent| {
        let tools = FunctionToolset::new().tool(child.as_tool("child", "Works"));
        Agent::new(ScriptedModel::calls([call("r1", "child", json!({"prompt": "work"}))]), tools)
    };
    assert_eq!(root(&child).run("go").await.unwrap().text(), Some("Done."));

    let child = Agent::new(ScriptedModel::calls([call("c1", "broken", json!({}))]), broken());
    let error = root(&child).tool_errors_end_run().run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::Agent { agent, .. } if agent == "child"), "{error}");
}

#[tokio::test]
async fn a_ledger_records_the_models_text_of_an_error() {
    let ledger = Ledger::new(MemoryStore::new());
    let turn = Turn::new(broken().approval_required()).ledger(ledger.clone());
    let report = turn.run(vec![call("c1", "broken", json!({}))]).await.unwrap();
    let suspended = report.into_suspended().unwrap();
    let answers = || suspended.requests().answer().approve("c1").build().unwrap();
    for _ in 0..2 {
        // The second one finds it in the ledger.
        let report = turn.resume(suspended.clone(), answers()).await.unwrap();
        assert_eq!(content(&report, 0), "the bank cannot be reached");
    }
    let [record] = &ledger.list(None, 10).await.unwrap().records[..] else { panic!("one ask") };
    assert_eq!(record.state, AskState::Executed);
}

#[tokio::test]
async fn a_missing_dependency_of_a_tool_ends_the_run_and_is_named() {
    async fn needy(cx: RunContext, _: What) -> Result<Value, ToolError> {
        Ok(json!(cx.deps::<u128>()?.to_string()))
    }
    let turn = Turn::new(FunctionToolset::new().tool(tool_fn("say", "", needy)));
    let error = turn.run(vec![call("c1", "say", json!({"says": ""}))]).await.unwrap_err();
    let Error::Tool { id, tool, source } = error.error() else { panic!("{error:?}") };
    assert_eq!((&**id, &**tool), ("c1", "say"));
    assert!(source.to_string().contains("no dependency of type `u128`"), "{source}");
}

#[tokio::test]
async fn stopping_a_turn_inside_a_tool_fails_only_the_tools_call() {
    // S8, as `Stopped` says of tools that run a turn of their own.
    async fn stopped(args: What) -> Result<Value, ToolError> {
        let stop = handler_fn(async |_, _| Err::<DeferredToolResults, _>(Stopped));
        let inner =
            Turn::new(Recorder::new(["delete"]).approval_required()).deferred_tool_handler(stop);
        match inner.run(vec![call("i1", "delete", json!({}))]).await {
            Err(error) if args.says == "fatal" => Err(ToolError::fatal(error)),
            ended => Ok(ended.map(|_| json!("unreachable"))?),
        }
    }
    let turn = Turn::new(FunctionToolset::new().tool(tool_fn("say", "", stopped)));
    let report = turn.run(vec![call("c1", "say", json!({"says": ""}))]).await.unwrap();
    assert_eq!(words(&report), ["failed"]);
    assert!(content(&report, 0).as_str().unwrap().contains("stopped by a person"), "{report:?}");

    let error = turn.run(vec![call("c1", "say", json!({"says": "fatal"}))]).await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { .. }) && !error.error().is_stopped());
}
