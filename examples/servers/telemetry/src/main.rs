//! An agent whose traces and metrics go to an OpenTelemetry collector.
//!
//! `telemetry ask FILE` runs the agent until a person has to answer, and stores the run in FILE. `telemetry approve FILE`
//! approves the pending call, possibly hours later on another machine, and ends the run: the span of the approved call
//! has a link to the span in which it was asked about. `OTEL_EXPORTER_OTLP_ENDPOINT` names the collector, by default
//! `http://localhost:4318`.

use anyhow::{Context as _, Result, bail};
use countersign::agent::{RunOutput, text};
use countersign::model::TokenUsage;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{
    Agent, BoxError, Decision, FunctionToolset, Model, SuspendedRun, ToolCall, ToolError,
    ToolsExt as _, decide_fn, schemars, tool_fn,
};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A model that deletes one file and reads another, and then says so.
struct Scripted;

impl Model for Scripted {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let answered = request.messages().len() > 1;
        let response = match answered {
            false => ModelResponse::calls([
                ToolCall::new("call_1", "delete_file", serde_json::json!({"path": "old.log"})),
                ToolCall::new("call_2", "read_file", serde_json::json!({"path": "notes.md"})),
            ]),
            true => ModelResponse::text("The file is gone."),
        };
        let tokens = Some(TokenUsage { input: 120, output: 12 });
        Ok(ModelResponse { tokens, model: Some("scripted".into()), ..response })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    path: String,
}

async fn delete_file(file: File) -> Result<String, ToolError> {
    Ok(format!("deleted {}", file.path))
}

async fn read_file(file: File) -> Result<String, ToolError> {
    Ok(format!("the text of {}", file.path))
}

fn agent() -> Agent {
    let tools = FunctionToolset::new()
        .tool(tool_fn("delete_file", "Delete a file", delete_file))
        .tool(tool_fn("read_file", "Read a file", read_file))
        .layered(decide_fn(|_, call: &ToolCall| match call.name() {
            "delete_file" => Decision::ask("deletes a file").with_key("delete"),
            _ => Decision::allow(),
        }));
    Agent::new(Scripted, tools)
}

/// Sends spans and metrics to the collector. The meter provider has to be set before the first call, as the library
/// keeps its instruments.
fn telemetry() -> Result<(SdkTracerProvider, SdkMeterProvider)> {
    let spans = opentelemetry_otlp::SpanExporter::builder().with_http().build()?;
    let traces = SdkTracerProvider::builder().with_batch_exporter(spans).build();
    let layer = tracing_opentelemetry::layer().with_tracer(traces.tracer("telemetry"));
    tracing_subscriber::registry()
        .with(tracing_subscriber::filter::LevelFilter::INFO)
        .with(layer)
        .init();

    let metrics = opentelemetry_otlp::MetricExporter::builder().with_http().build()?;
    let meters = SdkMeterProvider::builder().with_periodic_exporter(metrics).build();
    opentelemetry::global::set_meter_provider(meters.clone());
    Ok((traces, meters))
}

async fn ask(file: &str) -> Result<()> {
    let output = text().or_deferred();
    let result = agent().run("Delete the old log.").output(output).await?;
    let RunOutput::Deferred(suspended) = result.output() else { bail!("no call was deferred") };
    std::fs::write(file, serde_json::to_string(suspended)?)?;
    println!("asked, and stored in {file}");
    Ok(())
}

async fn approve(file: &str) -> Result<()> {
    let suspended: SuspendedRun = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let answers = suspended.requests().answer().approve("call_1").answered_by("ann").build()?;
    let result = agent().resume(suspended, answers).await?;
    println!("{}", result.text().context("the run has no text")?);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (traces, meters) = telemetry()?;
    let runtime = tokio::runtime::Runtime::new()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ask", file] => runtime.block_on(ask(file))?,
        ["approve", file] => runtime.block_on(approve(file))?,
        _ => bail!("usage: telemetry ask FILE | telemetry approve FILE"),
    }
    // Metrics that were not exported yet are sent before the process ends.
    traces.shutdown()?;
    meters.shutdown()?;
    Ok(())
}
