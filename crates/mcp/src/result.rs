//! Results of MCP servers as returns of tools, and back.
//!
//! A guard has two duties that pull apart: an allowed call must have exactly the result that the server gives (rule
//! M1), and a layer may change what the model is told, for example mask a secret. So we keep the result as it came
//! beside its value, and pass it on only while the value is the same. If a layer has changed the value, we build the
//! result anew from it, without the old structured content, images and metadata, in which the secret may still be.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use countersign::outcome::{Outcome, ToolError, ToolReturn};

/// The key of a return's metadata under which the unchanged result is kept.
pub(crate) const RAW: &str = "mcp";

/// A server's result as the return of a tool. `isError` is a failure.
pub(crate) fn returned(result: &CallToolResult) -> Result<ToolReturn, ToolError> {
    if result.is_error == Some(true) {
        return Err(ToolError::Failed(countersign::outcome::ToolFailed::new(text(
            &result.content,
        ))));
    }
    let raw = json!(result);
    Ok(ToolReturn {
        return_value: value(result),
        content: media(&result.content),
        metadata: Some(json!({ RAW: raw })),
    })
}

/// The content for the model: the structured content, or the text of the blocks.
fn value(result: &CallToolResult) -> Value {
    match &result.structured_content {
        Some(structured) => structured.clone(),
        None => Value::String(text(&result.content)),
    }
}

/// The blocks as text; a block of another kind is named with its type and size.
pub(crate) fn text(content: &[ContentBlock]) -> String {
    let blocks: Vec<_> = content.iter().map(block).collect();
    blocks.join("\n")
}

fn block(block: &ContentBlock) -> String {
    let binary = |kind: &str, mime: &str, data: &str| {
        format!("[{kind} {mime}, {} bytes of base64]", data.len())
    };
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, &audio.data),
        other => {
            let value = json!(other);
            let of = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
            match (of("/resource/text"), of("/resource/uri").or_else(|| of("/uri"))) {
                (Some(text), _) => text.to_owned(),
                (None, Some(uri)) => format!("[resource {uri}]"),
                (None, None) => value.to_string(),
            }
        }
    }
}

/// Images and audio for the model, in the form of `BinaryContent`.
fn media(content: &[ContentBlock]) -> Option<Value> {
    let binary =
        |mime: &str, data: &str| json!({"kind": "binary", "media_type": mime, "data": data});
    let parts: Vec<_> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Image(image) => Some(binary(&image.mime_type, &image.data)),
            ContentBlock::Audio(audio) => Some(binary(&audio.mime_type, &audio.data)),
            _ => None,
        })
        .collect();
    (!parts.is_empty()).then_some(Value::Array(parts))
}

/// The outcome of a served call as a result. The result of an upstream server is passed on unchanged, unless a layer
/// has changed the content for the model.
pub(crate) fn result(outcome: &Outcome, has_schema: bool) -> CallToolResult {
    match outcome {
        Outcome::Returned(returned) => {
            let raw = returned.metadata.as_ref().and_then(|it| it.get(RAW));
            if let Some(raw) = raw
                && let Ok(same) = serde_json::from_value::<CallToolResult>(raw.clone())
                && value(&same) == returned.return_value
            {
                return same;
            }
            built(&returned.return_value, has_schema)
        }
        other => failed(other.text().unwrap_or_default()),
    }
}

fn built(value: &Value, has_schema: bool) -> CallToolResult {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if value.is_object() || has_schema {
        result.structured_content = Some(value.clone());
    }
    result
}

/// A result with an explanation in place of content; it has neither structured content nor metadata.
pub(crate) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Returns `true` if the outcome still is what this result says, so that the result may be passed on unchanged.
///
/// We compare by value: it does not matter which layer has changed it, or that one has put the same back.
pub(crate) fn is_of(came: &CallToolResult, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Returned(returned) => {
            came.is_error != Some(true) && value(came) == returned.return_value
        }
        Outcome::Failed(failed) => {
            came.is_error == Some(true) && text(&came.content) == failed.message
        }
        _ => false,
    }
}
