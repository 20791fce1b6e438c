//! Tools that are Rust functions: typed, blocking, known by a schema.

use countersign::outcome::ToolReturn;
use countersign::toolset::{blocking_tool_fn, schema_tool_fn};
use countersign::{
    FunctionToolset, RunContext, ToolDefinition, ToolError, Turn, schemars, tool_fn,
};
use serde_json::{Value, json};

use crate::support::{call, content, words};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Copy {
    /// Where from.
    from: String,
    to: Vec<Target>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Target {
    path: String,
    #[serde(default)]
    times: u8,
}

async fn copy(args: Copy) -> Result<String, ToolError> {
    let to: Vec<_> = args.to.iter().map(|to| format!("{}x{}", to.path, to.times)).collect();
    Ok(format!("{} to {}", args.from, to.join(", ")))
}

#[tokio::test]
async fn a_typed_tool_has_the_schema_of_its_arguments_and_names_invalid_ones() {
    let tools = FunctionToolset::new().tool(tool_fn("copy", "Copies", copy));
    let turn = Turn::new(tools.clone());
    let definitions =
        countersign::Tools::from(tools).definitions(&RunContext::default()).await.unwrap();
    let schema = definitions[0].parameters();
    assert_eq!(schema["properties"]["from"]["description"], "Where from.");
    assert_eq!(schema["required"], json!(["from", "to"]));

    let calls = vec![
        call("c1", "copy", json!({"from": "a", "to": [{"path": "b", "times": 2}]})),
        call("c2", "copy", json!({"from": "a", "to": [{"path": "b"}, {"path": 7}]})),
        call("c3", "copy", json!({"from": "a", "to": [], "also": 1})),
        call("c4", "copy", json!({"to": []})),
    ];
    let report = turn.run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "retry", "retry", "retry"]);
    assert_eq!(content(&report, 0), "a to bx2");
    for (at, says) in
        [(1, "`to[1].path`"), (2, "unknown field `also`"), (3, "missing field `from`")]
    {
        let told = content(&report, at).to_string();
        assert!(told.contains(says), "{told}");
    }
}

/// Pays a bill.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bill {
    euros: u32,
}

#[tokio::test]
async fn a_tool_without_a_description_has_that_of_its_arguments() {
    for (given, described) in [("", "Pays a bill."), ("Pays at once", "Pays at once")] {
        let pay = tool_fn("pay", given, async |bill: Bill| Ok::<_, ToolError>(bill.euros));
        let tools = countersign::Tools::from(FunctionToolset::new().tool(pay));
        let definitions = tools.definitions(&RunContext::default()).await.unwrap();
        assert_eq!(definitions[0].description(), described);
    }
    let bare = tool_fn("waits", "", async |_: Nothing| Ok::<_, ToolError>(()));
    let tools = countersign::Tools::from(FunctionToolset::new().tool(bare));
    let definitions = tools.definitions(&RunContext::default()).await.unwrap();
    assert_eq!(definitions[0].description(), "", "there is none anywhere");
}

#[tokio::test]
async fn a_tool_known_by_its_schema_is_validated_by_it() {
    // D4: tools known only by a schema need feature `schema` and cannot be built without it.
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let definition = ToolDefinition::new("count", schema).with_description("Counts");
    let double = async |_: RunContext, args: countersign::Args| {
        Ok::<_, ToolError>(args["n"].as_u64().map(|n| 2 * n))
    };
    let turn = Turn::new(FunctionToolset::new().tool(schema_tool_fn(definition, double).unwrap()));
    let sent =
        [json!({"n": 4}), json!({"n": 0}), json!({"n": "4"}), json!({}), json!({"n": 1, "m": 1})];
    let calls = sent
        .into_iter()
        .enumerate()
        .map(|(at, args)| call(&format!("c{at}"), "count", args))
        .collect();
    let report = turn.run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "retry", "retry", "retry", "retry"]);
    assert_eq!(content(&report, 0), 8);

    let broken = ToolDefinition::new("broken", json!({"type": "no such type"}));
    assert!(schema_tool_fn(broken, double).is_err());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_blocking_tool_leaves_the_others_running_and_sees_its_context() {
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    let waits = blocking_tool_fn("waits", "", move |cx: RunContext, _: Nothing| {
        let received: u32 = receive.lock().unwrap().recv().map_err(ToolError::fatal)?;
        Ok::<_, ToolError>((cx.tool_call_id().unwrap_or_default().to_owned(), received))
    });
    let sends = tool_fn("sends", "", move |_: Nothing| {
        let sent = send.send(7).map_err(ToolError::fatal);
        std::future::ready(sent)
    });
    let turn = Turn::new(FunctionToolset::new().tool(waits).tool(sends));
    let report = turn
        .run(vec![call("c1", "waits", json!({})), call("c2", "sends", json!({}))])
        .await
        .unwrap();
    assert_eq!(content(&report, 0), json!(["c1", 7]));
    assert_eq!(content(&report, 1), Value::Null);
}

#[tokio::test]
async fn a_tool_can_return_content_and_metadata_with_its_value() {
    let rich = tool_fn("rich", "", async |_: Nothing| {
        Ok::<_, ToolError>(ToolReturn {
            metadata: Some(json!({"for": "the host"})),
            ..ToolReturn::new("value")
        })
    });
    let report = Turn::new(FunctionToolset::new().tool(rich))
        .run(vec![call("c1", "rich", json!({}))])
        .await
        .unwrap();
    let countersign::Outcome::Returned(returned) = report.calls()[0].outcome() else { panic!() };
    assert_eq!(
        (returned.return_value.clone(), returned.metadata.clone()),
        (json!("value"), Some(json!({"for": "the host"})))
    );
}
