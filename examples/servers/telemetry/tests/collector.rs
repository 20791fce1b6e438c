//! The example against an OTLP collector: the two processes export spans, a link between them, and metrics.

use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::Uri;
use axum::{Json, Router};
use serde_json::{Value, json};

/// The requests that the collector has received, each with its path.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

async fn receive(
    State(received): State<Received>,
    uri: Uri,
    Json(body): Json<Value>,
) -> Json<Value> {
    received.lock().unwrap().push((uri.path().to_owned(), body));
    Json(json!({}))
}

/// Every object below `value` that is an element of an array under this key.
fn below<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let (true, Value::Array(items)) = (name == key, value) {
                    found.extend(items);
                }
                below(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| below(item, key, found)),
        _ => {}
    }
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let attributes = span["attributes"].as_array()?;
    attributes.iter().find(|it| it["key"] == key).map(|it| &it["value"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approved_call_is_linked_to_the_span_of_its_ask_in_another_process() {
    let received = Received::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = Router::new().fallback(receive).with_state(Arc::clone(&received));
    tokio::spawn(async move { axum::serve(listener, collector).await });

    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("run.json");
    for command in ["ask", "approve"] {
        let (endpoint, state) = (endpoint.clone(), state.clone());
        let output = tokio::task::spawn_blocking(move || {
            Command::new(env!("CARGO_BIN_EXE_telemetry"))
                .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
                .args([command.as_ref(), state.as_os_str()])
                .output()
        });
        let output = output.await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    let received = received.lock().unwrap();
    let bodies = |path: &str| -> Vec<Value> {
        received.iter().filter(|(at, _)| at == path).map(|(_, body)| body.clone()).collect()
    };
    let traces = Value::Array(bodies("/v1/traces"));
    let mut spans = Vec::new();
    below(&traces, "spans", &mut spans);
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();

    let [asked, approved] = named("execute_tool delete_file")[..] else { panic!("{traces:#}") };
    assert_eq!(attribute(asked, "countersign.outcome").unwrap()["stringValue"], "deferred");
    assert_eq!(attribute(approved, "countersign.outcome").unwrap()["stringValue"], "returned");
    assert_ne!(asked["traceId"], approved["traceId"], "two processes, two traces");
    assert_eq!(approved["links"][0]["traceId"], asked["traceId"]);
    assert_eq!(approved["links"][0]["spanId"], asked["spanId"]);
    assert!(attribute(asked, "gen_ai.tool.call.arguments").is_none(), "arguments stay out");
    let mut events = Vec::new();
    below(asked, "events", &mut events);
    assert!(
        events
            .iter()
            .any(|it| attribute(it, "decision").is_some_and(|it| it["stringValue"] == "ask")),
        "the ask is an event at INFO: {asked:#}"
    );

    let chats = named("chat");
    assert_eq!(chats.len(), 2);
    assert_eq!(attribute(chats[0], "gen_ai.usage.input_tokens").unwrap()["intValue"], "120");
    let agents = named("invoke_agent root");
    assert_eq!(agents.len(), 2);
    assert!(agents.iter().any(|agent| agent["spanId"] == asked["parentSpanId"]), "{traces:#}");

    each_decision_and_call_is_counted(&Value::Array(bodies("/v1/metrics")));
}

fn each_decision_and_call_is_counted(metrics: &Value) {
    let mut found = Vec::new();
    below(metrics, "metrics", &mut found);
    let names: Vec<_> = found.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"countersign.decisions"), "{names:?}");
    assert!(names.contains(&"gen_ai.execute_tool.duration"), "{names:?}");
    // Each decision is counted, a plain ALLOW at any level of the log, too.
    let (decisions, mut points) = (json!(found), Vec::new());
    below(&decisions, "dataPoints", &mut points);
    for word in ["ask", "allow"] {
        let counted = |point: &&Value| {
            attribute(point, "countersign.decision").is_some_and(|it| it["stringValue"] == word)
        };
        assert!(points.iter().any(counted), "{word}: {metrics:#}");
    }
}
