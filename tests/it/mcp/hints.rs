//! A server's hints make a call stricter, and nothing else (rule M4).

use countersign::ledger::{Ledger, MemoryStore};
use countersign::{Decision, ToolDefinition, ToolMiddlewareExt, Tools, ToolsExt, Turn, decide_fn};
use countersign_mcp::{AskByHints, Guard};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{Client, told};
use super::guarding::upstream;
use super::process::Desk;
use crate::support::{Recorder, call, run_one};

const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// What a layer of the user decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Decides {
    Allow,
    Ask,
    Deny,
}

fn layers(tools: impl Into<Tools>, decides: Decides, hints: Option<AskByHints>) -> Tools {
    let decide = decide_fn(move |_, _| match decides {
        Decides::Allow => Decision::allow(),
        Decides::Ask => Decision::ask("a rule asks"),
        Decides::Deny => Decision::deny("a rule denies"),
    });
    let tools = tools.into().layered(decide);
    hints.map_or(tools.clone(), |hints| tools.layered(hints.into_layer()))
}

fn tool(annotations: &Value) -> Recorder {
    let definition = ToolDefinition::new("write", json!({"type": "object"}));
    Recorder::of([definition.with_metadata("mcp", json!({"annotations": annotations}))])
}

/// What becomes of a call, and how often the tool has run.
async fn decided(annotations: &Value, decides: Decides, hints: Option<AskByHints>) -> Decides {
    let tool = tool(annotations);
    let turn = Turn::new(layers(tool.clone(), decides, hints));
    let report = run_one(&turn, call("c", "write", json!({}))).await;
    let outcome = report.calls()[0].outcome();
    let decided = match (outcome.is_returned(), outcome.is_deferred()) {
        (true, false) => Decides::Allow,
        (false, true) => Decides::Ask,
        _ => Decides::Deny,
    };
    assert_eq!(tool.ran().len(), usize::from(decided == Decides::Allow));
    decided
}

fn annotations() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        3 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Null),
        1 => Just(json!("true")),
        1 => Just(json!(1)),
        1 => Just(json!({"value": true})),
    ];
    let map = proptest::collection::btree_map(prop::sample::select(HINTS.to_vec()), value, 0..=4);
    prop_oneof![
        8 => map.prop_map(|map| json!(map)),
        1 => Just(Value::Null),
        1 => Just(json!("readOnlyHint")),
        1 => Just(json!([{"readOnlyHint": true}])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // "`readOnlyHint: true` never makes a call run that would be asked about without it"; "annotations only tighten".
    #[test]
    fn no_hint_makes_a_call_laxer(
        annotations in annotations(),
        decides in prop::sample::select(vec![Decides::Allow, Decides::Ask, Decides::Deny]),
        hints in prop::sample::select(vec![
            None,
            Some(AskByHints::destructive()),
            Some(AskByHints::open_world()),
            Some(AskByHints::destructive().or(AskByHints::open_world())),
        ]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let now = runtime.block_on(decided(&annotations, decides, hints));
        prop_assert!(now >= decides, "{now:?} in place of {decides:?}");
        prop_assert!(now <= decides.max(Decides::Ask), "a hint asks, and denies nothing");
        prop_assert!(hints.is_some() || now == decides, "without the layer hints change nothing");
        // Without hints a tool counts as what the protocol takes it for: the strictest.
        let without = runtime.block_on(decided(&json!({}), decides, hints));
        prop_assert!(without >= now);
    }
}

#[tokio::test]
async fn a_tool_is_asked_about_unless_its_server_says_that_it_is_harmless() {
    for (annotations, destructive, open_world) in [
        (json!({}), true, true),
        (Value::Null, true, true),
        (json!({"readOnlyHint": true}), false, true),
        (json!({"readOnlyHint": true, "destructiveHint": true}), false, true),
        (json!({"destructiveHint": true}), true, true),
        (json!({"destructiveHint": false}), false, true),
        (json!({"destructiveHint": false, "openWorldHint": false}), false, false),
        (json!({"openWorldHint": false}), true, false),
        (json!({"readOnlyHint": "true", "openWorldHint": 0}), true, true),
    ] {
        for (hints, asks) in
            [(AskByHints::destructive(), destructive), (AskByHints::open_world(), open_world)]
        {
            let decided = decided(&annotations, Decides::Allow, Some(hints)).await;
            assert_eq!(decided == Decides::Ask, asks, "{hints:?} {annotations}");
        }
    }
}

#[tokio::test]
async fn the_tools_of_a_guarded_server_carry_their_hints() {
    let harmless = json!({"readOnlyHint": true});
    for (annotations, asks) in [(harmless, false), (json!({"destructiveHint": true}), true)] {
        let ledger = Ledger::new(MemoryStore::new());
        let guard = Guard::new("files", upstream(tool(&annotations)).await, ledger.clone());
        let guard = guard
            .danger_accept_all_tools()
            .layers(|tools| layers(tools, Decides::Allow, Some(AskByHints::destructive())));
        let server = guard.server().wait(std::time::Duration::ZERO);
        let mut client = Client::earlier(server, "2025-11-25", json!({})).await;
        let (text, error) = told(&client.call("write", json!({})).await);
        assert_eq!((error, text.contains("waits for an approval")), (asks, asks), "{text}");
    }
}

#[tokio::test]
async fn the_program_asks_by_hints_where_the_rules_allow() {
    let desk = Desk::new();
    let object = json!({"type": "object"});
    let mut server = desk.told();
    server["tools"] = json!([
        {"name": "read", "inputSchema": object, "annotations": {"readOnlyHint": true, "openWorldHint": false}},
        {"name": "fetch", "inputSchema": object, "annotations": {"readOnlyHint": true}},
        {"name": "write", "inputSchema": object},
    ]);
    let rules = desk.user.home().join("rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:files/*'\n[[rule]]\nid = 'no'\ndeny = 'mcp:files/never'\n";
    std::fs::write(&rules, text).unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "files", "--wait", "0", "--rules", &rules];
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &[]),
        (&["--ask-destructive"], &["write"]),
        (&["--ask-open-world"], &["fetch", "write"]),
        (&["--ask-destructive", "--ask-open-world"], &["fetch", "write"]),
    ];
    for (more, asked) in cases {
        let command = desk.guard_of("ann", &[&options[..], more].concat(), &server);
        let mut client = Client::earlier(command, "2025-11-25", json!({})).await;
        for record in desk.pending().await {
            if record.ask.tool() == countersign_mcp::ACCEPT_TOOLS {
                desk.approve(&record, "ann").await;
            }
        }
        for tool in ["read", "fetch", "write"] {
            let (text, error) = told(&client.call(tool, json!({})).await);
            assert_eq!(error, asked.contains(&tool), "{more:?} {tool}: {text}");
        }
    }
}
