//! The conversation around a call: the messages of the run before the call was asked about (rule S9).
//!
//! A person who sees only some asks of a run gets no conversation: what the model has read and said mentions the other
//! calls. We cannot mask parts of a text by who may see which call.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawPathParams, State};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::app::{App, Visitor};
use super::refused::{ApiError, ApiReply};
use super::view::Looker;
use countersign::call::ToolCall;
use countersign::ledger::RunRecord;
use countersign::message::{Message, RequestPart, ResponsePart, ReturnKind};
use countersign::show::{self, CallView, Field, Limits};
use countersign::turn::SuspendedRun;

/// The number of asks of a run that are listed, newest first.
const ASKS: u32 = 500;
/// The number of parts of a conversation that are shown, the latest ones.
const PARTS: usize = 200;
/// The number of characters of a text that are shown.
const LONGEST: usize = 8_000;

/// The conversation of a run, and its asks.
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    params: RawPathParams,
) -> ApiReply {
    let run = params.iter().find(|(name, _)| *name == "run").map_or("", |(_, run)| run);
    // An ask is parked before the run is saved with its call, so this conversation has no call that is not listed.
    let record = app.ledger.load_run(run).await?;
    let all = app.ledger.list_run(run, ASKS).await?;
    let seen: Vec<_> = all.records.iter().filter(|record| who.sees(record)).collect();
    if seen.is_empty() {
        return Err(ApiError::unknown_run());
    }
    // A conversation shows all calls of its run, so this person has to be allowed to see all of them: also those that
    // cannot be read, and those that are older than the listed ones.
    let are_listed = all.refused.is_empty() && all.records.len() < ASKS as usize;
    let sees_all = who.sees_all() || are_listed && seen.len() == all.records.len();
    let record = record.filter(|_| sees_all);
    let looker = Looker::new(&app.ledger, &who).await?;
    let asks: Vec<_> = seen.iter().map(|record| looker.ask(record)).collect();
    Ok(Json(json!({
        "run": show::escape_name(run),
        "over": record.as_ref().is_some_and(|record| record.over),
        "conversation": record.as_ref().map_or(Value::Null, conversation),
        "asks": asks,
        "now": looker.now(),
    })))
}

/// The parts of the conversation, earliest first, or the reason why it cannot be shown.
fn conversation(record: &RunRecord) -> Value {
    if record.over {
        return json!({"why": "The run is over; its conversation is not stored any more."});
    }
    let Ok(run) = SuspendedRun::deserialize(&record.state) else {
        return json!({"why": "The stored conversation cannot be read by this version."});
    };
    let parts: Vec<_> = run.history().iter().flat_map(of_message).collect();
    let left_out = parts.len().saturating_sub(PARTS);
    json!({"left_out": left_out, "parts": parts.into_iter().skip(left_out).collect::<Vec<_>>()})
}

fn of_message(message: &Message) -> Vec<Value> {
    match message {
        Message::Request { parts } => parts.iter().filter_map(of_request).collect(),
        Message::Response { parts } => parts.iter().filter_map(of_response).collect(),
    }
}

/// We show a result through the view of a call: only that masks by the names of fields.
fn of_request(part: &RequestPart) -> Option<Value> {
    Some(match part {
        RequestPart::SystemPrompt { content } => said("system", content),
        RequestPart::UserPrompt { content } => {
            let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            said("user", &text)
        }
        RequestPart::ToolReturn { tool_name, content, outcome, .. } => {
            // As an argument, so that secrets in it are masked.
            let shown = ToolCall::new("", tool_name.as_str(), json!({"result": content}));
            let view = CallView::of_call(&shown, Limits::default());
            let how = match outcome {
                ReturnKind::Success => "returned",
                ReturnKind::Denied => "denied",
                ReturnKind::Failed => "failed",
                ReturnKind::Retried => "asked to try again",
                ReturnKind::Interrupted => "may have run",
            };
            let text: Vec<_> = view.args.iter().map(Field::value).collect();
            json!({"from": "tool", "tool": view.tool, "how": how, "text": text.join("\n")})
        }
    })
}

fn of_response(part: &ResponsePart) -> Option<Value> {
    match part {
        ResponsePart::Text(text) if text.trim().is_empty() => None,
        ResponsePart::Text(text) => Some(said("agent", text)),
        ResponsePart::ToolCall(call) => {
            let view = CallView::of_call(call, Limits::default());
            Some(json!({"from": "call", "tool": view.tool, "text": view.headline}))
        }
        // People are not shown the reasoning of a model.
        ResponsePart::Thinking { .. } => None,
    }
}

fn said(from: &str, text: &str) -> Value {
    let all = text.chars().count();
    let mut shown = show::escape(&text.chars().take(LONGEST).collect::<String>());
    if all > LONGEST {
        shown += &format!(r" \{{{} characters left out}}", all - LONGEST);
    }
    json!({"from": from, "text": shown})
}
