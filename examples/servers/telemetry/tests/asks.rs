//! The metrics about asks: how many are pending, how long they were, and how they ended, rule by rule.
//!
//! The instruments are made once in a process, from the global meter provider, so that this is one test in a process of
//! its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::deferred::{Answer, metadata};
use countersign::handler::DenyAll;
use countersign::ledger::{Ask, AskState, Grant, GrantScope, Ledger, MemoryStore};
use countersign::{
    Decision, FunctionToolset, ToolCall, ToolError, Tools, ToolsExt as _, Turn, decide_fn,
    handler_fn, schemars, tool_fn,
};
use opentelemetry::KeyValue;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    path: String,
}

/// Asks about deletions under a key, about changes without one, and denies the rest.
fn tools() -> Tools {
    let done = async |file: File| Ok::<_, ToolError>(file.path);
    let policy = decide_fn(|_, call: &ToolCall| {
        let path = call.args().str("path").unwrap_or_default();
        match call.name() {
            "delete" => Decision::ask(format!("deletes {path}"))
                .with_key("deletions")
                .with_metadata(metadata::GRANTABLE, true),
            "write" => Decision::ask(format!("writes {path}")),
            _ => Decision::deny(format!("{path} is secret")).with_key("secrets"),
        }
    });
    FunctionToolset::new()
        .tool(tool_fn("delete", "Deletes a file", done))
        .tool(tool_fn("write", "Writes a file", done))
        .tool(tool_fn("read", "Reads a file", done))
        .layered(policy.named("files"))
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new("c1", tool, json!({"path": "payroll.csv"}))
}

/// The points of the last export, by metric and attributes. A point of a histogram is the number and the sum.
#[derive(Clone, Default)]
struct Exported(Arc<Mutex<BTreeMap<String, BTreeMap<String, String>>>>);

impl Exported {
    fn points(&self, metric: &str) -> BTreeMap<String, String> {
        self.0.lock().unwrap().get(metric).cloned().unwrap_or_default()
    }
}

impl PushMetricExporter for Exported {
    async fn export(&self, all: &ResourceMetrics) -> OTelSdkResult {
        let metrics = all.scope_metrics().flat_map(|scope| scope.metrics());
        let points = metrics.map(|metric| (metric.name().to_owned(), points(metric.data())));
        *self.0.lock().unwrap() = points.collect();
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

fn points(data: &AggregatedMetrics) -> BTreeMap<String, String> {
    match data {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            sum.data_points().map(|it| (text(it.attributes()), it.value().to_string())).collect()
        }
        AggregatedMetrics::U64(MetricData::Gauge(gauge)) => {
            gauge.data_points().map(|it| (text(it.attributes()), it.value().to_string())).collect()
        }
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let sums = histogram.data_points();
            sums.map(|it| (text(it.attributes()), format!("{}x {}", it.count(), it.sum())))
                .collect()
        }
        _ => panic!("a kind of metric that the library does not have"),
    }
}

/// The attributes as one text, with the last part of each name.
fn text<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let short = |key: &str| key.rsplit_once('.').map_or(key, |(_, last)| last).to_owned();
    let mut each: Vec<_> =
        attributes.map(|it| format!("{}={}", short(it.key.as_str()), it.value)).collect();
    each.sort();
    each.join(" ")
}

fn of<const N: usize>(points: [(&str, &str); N]) -> BTreeMap<String, String> {
    points.into_iter().map(|(at, value)| (at.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn the_metrics_say_what_is_pending_how_long_and_how_it_ended() {
    let exported = Exported::default();
    let meters = SdkMeterProvider::builder().with_periodic_exporter(exported.clone()).build();
    opentelemetry::global::set_meter_provider(meters.clone());
    let now = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&now);
    let store = MemoryStore::with_clock(move || clock.load(Ordering::SeqCst));
    let policy = |_: &_, ask: Ask| ask.with_expires_in(Duration::from_secs(3_600));
    let ledger = Ledger::new(store).ask_policy(policy);
    let turn = || Turn::new(tools()).ledger(ledger.clone());
    let pending = async || ledger.list(Some(AskState::Pending), 10).await.unwrap().records;

    // A minute and a half later, a person approves; the same answer again is not another one.
    turn().run(vec![call("delete")]).await.unwrap();
    now.store(90_000, Ordering::SeqCst);
    for _ in 0..2 {
        for ask in pending().await {
            let yes = Answer::Approve { args: None };
            ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
        }
    }
    // The next call is answered by a grant of hers, for the session.
    let ask = ledger.list(None, 1).await.unwrap().records.remove(0).ask;
    let session = ledger.clone().session("s1");
    let grant = Grant::of(&ask, GrantScope::Session("s1".into())).unwrap();
    session.make_grant(grant, &["ann"]).await.unwrap();
    Turn::new(tools()).ledger(session).run(vec![call("delete")]).await.unwrap();
    // A rule of the program denies one at once, a layer denies another, and a third one expires.
    turn().deferred_tool_handler(DenyAll::default()).run(vec![call("write")]).await.unwrap();
    turn().run(vec![call("read")]).await.unwrap();
    turn().run(vec![call("write")]).await.unwrap();
    now.store(3_700_000, Ordering::SeqCst);
    // The questions of a process without a ledger are counted there, with the time that its handler took.
    let handler = handler_fn(async |_, requests: countersign::DeferredToolRequests| {
        requests.answer().deny_rest("no").answered_by("bob").build()
    });
    Turn::new(tools()).deferred_tool_handler(handler).run(vec![call("delete")]).await.unwrap();
    // One is pending.
    turn().run(vec![call("write")]).await.unwrap();
    let expired = ledger.expire().await.unwrap();
    assert_eq!(expired.changed.len(), 1);
    meters.force_flush().unwrap();

    each_ask_has_its_end(&exported);
    // S2: "Logs, spans, errors and `Debug` show names, types and lengths; argument values only on request."
    assert!(!format!("{:?}", exported.0.lock().unwrap()).contains("payroll"));
}

fn each_ask_has_its_end(exported: &Exported) {
    assert_eq!(exported.points("countersign.asks.pending"), of([("", "1")]));
    let answers = exported.points("countersign.answers");
    assert_eq!(
        answers,
        of([
            ("answer=approved answered_by=person key=deletions layer=files", "1"),
            ("answer=approved answered_by=grant key=deletions layer=files", "1"),
            ("answer=denied answered_by=policy layer=files", "1"),
            ("answer=denied answered_by=person key=deletions layer=files", "1"),
            ("answer=expired layer=files", "1"),
        ])
    );
    let asks = exported.points("countersign.ask.duration");
    assert_eq!(asks["answer=approved answered_by=person name=delete"], "1x 90");
    assert_eq!(asks["answer=approved answered_by=grant name=delete"], "1x 0");
    assert_eq!(asks["answer=expired name=write"], "1x 3610");
    assert!(asks.contains_key("answer=denied answered_by=person name=delete"), "{asks:?}");
    let decisions = exported.points("countersign.decisions");
    assert_eq!(decisions["decision=deny key=secrets layer=files"], "1");
    assert_eq!(decisions["decision=ask layer=files"], "3", "{decisions:?}");
}
