//! Strict parsing of an ask, and of other JSON that people type, with a limit.
//!
//! An ask comes from a program in another language, and a person is shown what we have read. So we guess nothing. An
//! unknown field is an error: a misspelt `quorum` would be no quorum. A key that is there twice is an error, and so
//! is a number that loses digits.

use std::io::Read as _;
use std::time::Duration;

use countersign::Args;
use countersign::decision::Question;
use countersign::ledger::{Ask, Quorum};
use serde_json::{Map, Value, json};

use crate::output::CommandError;

/// The maximum size of an ask in bytes: 1 MiB.
const LIMIT: u64 = 1 << 20;

/// Reads an ask from stdin.
pub(crate) fn ask() -> Result<Ask, CommandError> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(LIMIT + 1).read_to_end(&mut text);
    read.map_err(|error| CommandError::Usage(format!("the ask cannot be read: {error}")))?;
    if text.len() as u64 > LIMIT {
        return Err(CommandError::Usage(format!("the ask has more than {LIMIT} bytes")));
    }
    let text = String::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned());
    text.and_then(|text| parse(&text))
        .map_err(|problem| CommandError::Usage(format!("the ask cannot be used: {problem}")))
}

fn parse(text: &str) -> Result<Ask, String> {
    let mut fields = object(text)?;
    let tool = name(fields.remove("tool"), "tool")?.ok_or("it has no `tool`")?;
    let args = match fields.remove("args") {
        Some(Value::Object(args)) => Args::from(args),
        Some(_) => return Err("`args` must be an object".to_owned()),
        None => return Err("it has no `args`".to_owned()),
    };
    let questions = match fields.remove("questions") {
        Some(Value::Array(questions)) => questions.into_iter().map(question).collect(),
        Some(_) => Err("`questions` must be a list".to_owned()),
        None => Ok(Vec::new()),
    }?;
    let principal = name(fields.remove("principal"), "principal")?;
    let idempotent = match fields.remove("idempotent") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(idempotent)) => idempotent,
        Some(_) => return Err("`idempotent` must be true or false".to_owned()),
    };
    let quorum = quorum(fields.remove("quorum"))?;
    if quorum.not_the_requester && principal.is_none() {
        return Err("`not_the_requester` needs a `principal`, which names the requester".to_owned());
    }
    let expires_in = seconds(fields.remove("expires_in_s"))?;
    // Each ask has a run of its own, so that no two asks wait for the same log.
    let key = name(fields.remove("key"), "key")?
        .map_or_else(|| format!("fresh {}", uuid::Uuid::now_v7()), |key| format!("key {key}"));
    nothing_left(&fields)?;
    let run = Ask::new(key, "", "").id().to_owned();
    let mut ask = Ask::new(run, "shell", tool).with_args(args).with_questions(questions);
    ask = ask.with_idempotent(idempotent).with_quorum(quorum);
    if let Some(principal) = principal {
        ask = ask.with_principal(principal);
    }
    Ok(expires_in.into_iter().fold(ask, Ask::with_expires_in))
}

fn name(value: Option<Value>, field: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("`{field}` must be a text that is not blank")),
    }
}

fn seconds(value: Option<Value>) -> Result<Option<Duration>, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let seconds = value.as_f64().ok_or("`expires_in_s` must be a number")?;
    let time = Duration::try_from_secs_f64(seconds);
    time.map(Some).map_err(|error| format!("`expires_in_s`: {error}"))
}

fn quorum(value: Option<Value>) -> Result<Quorum, String> {
    let problem = "`quorum` must be a number of people, from 1, or \
        `{\"approvals\":n,\"not_the_requester\":bool}`";
    let (approvals, not_the_requester) = match value {
        None | Some(Value::Null) => return Ok(Quorum::default()),
        Some(Value::Object(mut fields)) => {
            let not_the_requester = match fields.remove("not_the_requester") {
                None => false,
                Some(Value::Bool(it)) => it,
                Some(_) => return Err(problem.to_owned()),
            };
            let approvals = fields.remove("approvals").unwrap_or_else(|| json!(1));
            nothing_left(&fields)?;
            (approvals, not_the_requester)
        }
        Some(approvals) => (approvals, false),
    };
    let approvals = approvals.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    approvals
        .map(|approvals| Quorum { approvals, not_the_requester })
        .ok_or_else(|| problem.to_owned())
}

/// A string is the reason of a question; an object may set its other fields.
fn question(value: Value) -> Result<Question, String> {
    let mut fields = match value {
        Value::String(reason) => Map::from_iter([("reason".to_owned(), reason.into())]),
        Value::Object(fields) => fields,
        _ => return Err("a question must be a text or an object".to_owned()),
    };
    let key = fields.get("key").or(fields.get("reason")).cloned();
    let key = key.ok_or("a question has a `key` or a `reason`")?;
    fields.entry("key").or_insert(key);
    fields.entry("layer").or_insert_with(|| "".into());
    let mut rest = fields.clone();
    for known in ["key", "layer", "reason", "pins", "metadata"] {
        rest.remove(known);
    }
    nothing_left(&rest)?;
    serde_json::from_value(fields.into()).map_err(|error| format!("a question: {error}"))
}

fn nothing_left(fields: &Map<String, Value>) -> Result<(), String> {
    match fields.keys().next() {
        None => Ok(()),
        Some(field) => Err(format!("there is no field `{}`", field.escape_debug())),
    }
}

/// Parses arguments, which must be an object without repeated keys and without numbers that lose digits.
pub(crate) fn args(text: &str) -> Result<Args, CommandError> {
    object(text)
        .map(Args::from)
        .map_err(|problem| CommandError::Usage(format!("`--args`: {problem}")))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    let args = Args::parse(text).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.trim_start_matches("the arguments are not valid JSON: ");
        problem.replacen("the arguments are nested", "its values are nested", 1)
    })?;
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| args.as_map().clone()).ok_or_else(|| "it is not a JSON object".to_owned())
}

/// Parses any value, without repeated keys and without numbers that lose digits.
pub(crate) fn value(text: &str, option: &str) -> Result<Value, CommandError> {
    let usage = |problem: String| CommandError::Usage(format!("`{option}`: {problem}"));
    // Checks first that the text is one complete value, so that it can be parsed as the only field of an object.
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| usage(error.to_string()))?;
    let mut fields = object(&format!("{{\"value\":{text}}}")).map_err(usage)?;
    Ok(fields.remove("value").unwrap_or_default())
}
