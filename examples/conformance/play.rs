//! Plays a scenario: its runs, one after the other, on one conversation.

use std::sync::Arc;

use countersign::agent::{RunError, RunOutput, RunResult, text};
use countersign::{Agent, BoxError, Error, Message, SuspendedRun};
use serde_json::{Map, Value, json};

use crate::handlers::{answers, chain};
use crate::log::{Log, shown};
use crate::model::Script;
use crate::scenario::{Run, Scenario};
use crate::tools::tools;

/// The state between two runs: finished, or suspended.
enum Conversation {
    Over(Vec<Message>),
    Waiting(Box<SuspendedRun>),
}

/// Plays all runs. Returns the outcome of the scenario.
pub(crate) async fn play(scenario: Scenario) -> Result<Value, BoxError> {
    let (scenario, log) = (Arc::new(scenario), Log::default());
    let mut conversation = Conversation::Over(Vec::new());
    let mut results = Vec::new();
    for (index, run) in scenario.runs.iter().enumerate() {
        let agent = agent(&scenario, index, &log)?;
        let mut result = match go(&agent, run, index, &conversation, &log).await {
            Ok(ended) => {
                let (result, next) = end(ended)?;
                conversation = next;
                result
            }
            // The conversation stays as it was before the run.
            Err(error) => failed(&error),
        };
        result.extend(log.lock().take().map(|(key, value)| (key.to_owned(), value)));
        results.push(Value::Object(result));
    }
    Ok(json!({"name": scenario.name, "runs": results}))
}

/// The agent with the tools of this run.
fn agent(scenario: &Arc<Scenario>, run: usize, log: &Log) -> Result<Agent, BoxError> {
    let model = Script { scenario: Arc::clone(scenario), log: log.clone() };
    let agent = Agent::new(model, tools(scenario, run, log)?)
        .max_retries(scenario.max_retries)
        .tell_edits(false);
    // As in PydanticAI.
    let agent = agent.tool_errors_end_run();
    let deferred = scenario.output.iter().any(|output| output == "deferred");
    let agent = agent.output(if deferred { text().or_deferred() } else { text() });
    Ok(match scenario.handlers.as_slice() {
        [] => agent,
        handlers => agent.deferred_tool_handler(chain("the agent", handlers, log)),
    })
}

async fn go(
    agent: &Agent,
    run: &Run,
    index: usize,
    conversation: &Conversation,
    log: &Log,
) -> Result<RunResult, RunError> {
    let prompt = run.prompt.as_deref();
    let mut started = match (&run.resume, conversation) {
        (Some(written), conversation) => {
            let suspended = match conversation {
                Conversation::Over(history) => SuspendedRun::from_trusted_history(history.clone()),
                Conversation::Waiting(suspended) => SuspendedRun::clone(suspended),
            };
            let resumed = agent.resume(suspended, answers(written));
            prompt.into_iter().fold(resumed, countersign::agent::Run::saying)
        }
        (None, Conversation::Over(history)) => {
            agent.run(prompt.unwrap_or_default()).history(history.clone())
        }
        (None, Conversation::Waiting(suspended)) => {
            let history = SuspendedRun::clone(suspended).close("there is a new message");
            agent.run(prompt.unwrap_or_default()).history(history)
        }
    };
    if let Some(handlers) = &run.handlers {
        started = started.deferred_tool_handler(chain(&format!("run {index}"), handlers, log));
    }
    started.await
}

/// The end of a run, and the state with which the next one continues.
fn end(ended: RunResult) -> Result<(Map<String, Value>, Conversation), BoxError> {
    let result = match ended.output() {
        RunOutput::Text(text) => json!({"end": "text", "text": text}),
        RunOutput::Deferred(suspended) => {
            json!({"end": "deferred", "deferred": shown(&suspended.requests())})
        }
        RunOutput::Structured(_) => {
            return Err("a run ended in a way that scenarios do not know".into());
        }
    };
    let history = ended.history().to_vec();
    let next = match ended.into_suspended() {
        Some(suspended) => Conversation::Waiting(Box::new(suspended)),
        None => Conversation::Over(history),
    };
    Ok((object(result), next))
}

fn failed(error: &RunError) -> Map<String, Value> {
    let kind = match error.error() {
        Error::User(_) | Error::Answers(_) => "user_error",
        Error::ModelBehavior { .. } => "model_behavior",
        Error::Tool { .. } => "tool_error",
        Error::Handler { .. } => {
            return object(json!({"end": "error", "error": {"kind": "handler_error"}}));
        }
        _ => "error",
    };
    let mut ids = error.error().ids();
    ids.sort();
    object(json!({"end": "error", "error": {"kind": kind, "ids": ids}}))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
