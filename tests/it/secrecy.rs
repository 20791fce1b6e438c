//! S2: logs, spans, errors and `Debug` show names, types and lengths; argument values only when asked for.

use std::fmt::Write as _;

use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::outcome::{ModelRetry, ToolFailed};
use countersign::{
    Args, Decision, DeferredToolResults, FunctionToolset, Outcome, ToolCall, ToolError, Tools,
    ToolsExt, Turn, UserError, decide_fn, from_fn, schemars, tool_fn,
};
use serde_json::json;

use crate::support::{Buffer, Recorder, call, subscriber};

const MARKER: &str = "hunter2";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Typed {
    n: u32,
}

/// A stack for every way to fail.
fn stacks() -> Vec<(&'static str, Tools)> {
    let tool = || Recorder::new(["tool"]);
    let typed = tool_fn("tool", "", async |args: Typed| Ok::<_, ToolError>(args.n));
    let evil = |call: ToolCall| {
        call.clone().with_args(call.args().clone().with("secret", format!("{MARKER}{MARKER}")))
    };
    vec![
        ("returns", tool().into()),
        ("invalid arguments", FunctionToolset::new().tool(typed).into()),
        (
            "retry",
            tool().body(|_, call| Err(ModelRetry::new(call.args().to_string()).into())).into(),
        ),
        (
            "failed",
            tool().body(|_, call| Err(ToolFailed::new(call.args().to_string()).into())).into(),
        ),
        ("panics", tool().body(|_, call| panic!("{}", call.args())).into()),
        (
            "middleware panics",
            tool().layered(decide_fn(|_, call| -> Decision { panic!("{}", call.args()) })),
        ),
        (
            "async middleware panics",
            tool().layered(from_fn(async |_, call: ToolCall| -> Decision {
                panic!("{}", call.args())
            })),
        ),
        ("denied", tool().layered(decide_fn(|_, _| Decision::deny("no")))),
        (
            "asked",
            tool().layered(decide_fn(|_, call| {
                Decision::ask("ok?").with_args(call.args().clone().with("x", MARKER))
            })),
        ),
        (
            "rewritten",
            tool()
                .layered(tower::util::MapRequestLayer::new(evil))
                .layered(decide_fn(|_, _| Decision::allow())),
        ),
        (
            "rebuilt",
            tool().layered(tower::util::MapRequestLayer::new(|call: ToolCall| {
                ToolCall::new("x", "tool", call.args().to_value())
            })),
        ),
        ("unknown", Recorder::new(["other"]).into()),
    ]
}

/// A test runs every failure with a marker in the args and greps.
#[test]
fn no_argument_value_reaches_a_log_an_error_or_debug() {
    let buffer = Buffer::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut shown = String::new();
    let sent = [
        json!({"secret": MARKER, "n": MARKER}),
        json!(format!("{{\"secret\": \"{MARKER}\"")),
        json!([MARKER]),
    ];
    tracing::subscriber::with_default(subscriber(&buffer), || {
        for (name, tools) in stacks() {
            for args in &sent {
                let forgets =
                    handler_fn_sync(|_, _| Ok::<_, UserError>(DeferredToolResults::new()));
                let turns = [
                    Turn::new(tools.clone()),
                    Turn::new(tools.clone()).deferred_tool_handler(danger_approve_all()),
                    Turn::new(tools.clone()).deferred_tool_handler(forgets).explain(),
                ];
                for turn in turns {
                    let call = call("c1", "tool", args.clone());
                    let _ = writeln!(shown, "{name}: {call:?} {turn:?}");
                    match runtime.block_on(turn.run(vec![call])) {
                        Ok(report) => {
                            let _ = write!(shown, "{report:?} {:?}", report.deferred());
                        }
                        Err(error) => {
                            let _ = write!(
                                shown,
                                "{error} {error:?} {:?} {:?}",
                                error.suspended(),
                                error.report()
                            );
                        }
                    }
                }
            }
        }
    });
    let log = buffer.text();
    assert!(
        log.contains("execute_tool") && log.contains("gen_ai.tool.call.id"),
        "there is a span per call: {log}"
    );
    assert!(log.contains("decision=\"deny\""), "there is an event per decision: {log}");
    assert!(!log.contains(MARKER), "{}", line(&log));
    assert!(!shown.contains(MARKER), "{}", line(&shown));
    let args = Args::new().with("secret", MARKER);
    let types =
        format!("{args:?} {:?} {:?}", Outcome::returned(MARKER), Decision::from(args.clone()));
    assert!(!types.contains(MARKER), "{types}");
}

fn line(text: &str) -> &str {
    text.lines().find(|line| line.contains(MARKER)).unwrap_or_default()
}

#[test]
fn errors_about_arguments_do_not_quote_the_value() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let typed = tool_fn("tool", "", async |args: Typed| Ok::<_, ToolError>(args.n));
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let known = countersign::ToolDefinition::new("tool", schema);
    let known =
        countersign::toolset::schema_tool_fn(known, async |_, _| Ok::<_, ToolError>(1)).unwrap();
    for tool in [typed, known] {
        let turn = Turn::new(FunctionToolset::new().tool(tool.requires_approval()));
        let calls =
            vec![call("c1", "tool", json!({"n": 1})), call("c2", "tool", json!({"n": MARKER}))];
        let report = runtime.block_on(turn.run(calls)).unwrap();
        let told = report.calls()[1].outcome().content().unwrap().to_string();
        assert!(told.contains("`n`") || told.contains("/n"), "{told}");
        assert!(!told.contains(MARKER), "{told}");

        let suspended = report.into_suspended().unwrap();
        let requests = suspended.requests();
        let edited =
            requests.answer().approve_with("c1", Args::new().with("n", MARKER)).build().unwrap();
        let error = runtime.block_on(turn.resume(suspended, edited)).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(MARKER), "{error} {error:?}");
    }
}

#[test]
fn argument_values_are_traced_when_asked_for_and_answers_are_events() {
    let buffer = Buffer::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber(&buffer), || {
        let turn = Turn::new(Recorder::new(["tool"]).approval_required())
            .deferred_tool_handler(danger_approve_all());
        let calls = vec![call("c1", "tool", json!({"secret": MARKER}))];
        runtime.block_on(turn.danger_trace_arguments().run(calls)).unwrap();
    });
    let log = buffer.text();
    assert!(log.contains(MARKER), "{log}");
    assert!(log.contains("answer=\"approved\"") && log.contains("by=\"approve all\""), "{log}");
}
