//! Converts a conversation into the client's request, in an order that every provider accepts.
//!
//! The strictest provider decides the shape for all:
//!
//! - messages of the two roles alternate, so neighbours of one role are merged;
//! - the results of a response follow directly after it, before any text;
//! - no text is blank, and no list of tools is empty;
//! - reasoning goes back only to the provider that has produced it.
//!
//! ```text
//! history                             sent
//! user "Hi", user "Delete a.log"      user "Hi" + "Delete a.log"
//! model (blank), call c1              model call c1
//! result of c1, user "And now?"       results: c1 | user "And now?"   (one message at Anthropic)
//! ```

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    ChatMessage, ChatRequest, ContentPart, CustomPart, MessageContent, Tool,
    ToolCall as ClientCall, ToolName, ToolResponse,
};
use serde_json::{Value, json};

use super::ids::SentIds;
use super::response::{REDACTED, call_of};
use countersign::call::ToolDefinition;
use countersign::message::{Message, RequestPart, ResponsePart, ReturnKind};
use countersign::model::ModelRequest;

/// Consecutive messages of one role, merged.
enum Speech<'a> {
    /// Tool results first, then texts.
    User {
        results: Vec<&'a RequestPart>,
        texts: Vec<String>,
    },
    Model(Vec<&'a ResponsePart>),
}

pub(super) fn chat(request: &ModelRequest, kind: AdapterKind) -> ChatRequest {
    let ids = SentIds::of(request, kind);
    let messages = speeches(request.messages()).into_iter().flat_map(|speech| match speech {
        Speech::User { results, texts } => user(&results, texts, &ids, kind),
        Speech::Model(parts) => vec![model(&parts, &ids, kind)],
    });
    let mut chat = ChatRequest::new(messages.collect());
    let said: Vec<_> = request.instructions().into_iter().chain(system_prompts(request)).collect();
    let said: Vec<_> = said.into_iter().filter(|text| !is_blank(text)).collect();
    chat.system = (!said.is_empty()).then(|| said.join("\n\n"));
    // Some providers refuse an empty list of tools.
    chat.tools = (!request.tools().is_empty()).then(|| request.tools().iter().map(tool).collect());
    chat
}

/// The system prompts in a history that another program wrote; an agent of ours sends instructions instead.
fn system_prompts(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let parts = request.messages().iter().flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        Message::Response { .. } => &[],
    });
    parts.filter_map(|part| match part {
        RequestPart::SystemPrompt { content } => Some(content.as_str()),
        _ => None,
    })
}

/// Groups the messages by role, alternating. Blank messages are left out, and the groups on both sides of one are
/// merged.
fn speeches(messages: &[Message]) -> Vec<Speech<'_>> {
    let mut speeches: Vec<Speech<'_>> = Vec::new();
    for message in messages {
        match message {
            Message::Request { parts } => {
                let (mut new_results, mut new_texts) = (Vec::new(), Vec::new());
                for part in parts {
                    match part {
                        RequestPart::ToolReturn { .. } => new_results.push(part),
                        // System prompts are collected separately and sent first.
                        RequestPart::SystemPrompt { .. } => {}
                        RequestPart::UserPrompt { content } => {
                            new_texts.extend(Some(text(content)).filter(|text| !is_blank(text)));
                        }
                    }
                }
                match speeches.last_mut() {
                    Some(Speech::User { results, texts }) => {
                        results.append(&mut new_results);
                        texts.append(&mut new_texts);
                    }
                    _ if new_results.is_empty() && new_texts.is_empty() => {}
                    _ => speeches.push(Speech::User { results: new_results, texts: new_texts }),
                }
            }
            Message::Response { parts } => match speeches.last_mut() {
                _ if !parts.iter().any(says_something) => {}
                Some(Speech::Model(said)) => said.extend(parts),
                _ => speeches.push(Speech::Model(parts.iter().collect())),
            },
        }
    }
    speeches
}

fn says_something(part: &ResponsePart) -> bool {
    match part {
        ResponsePart::Text(text) => !is_blank(text),
        ResponsePart::ToolCall(_) => true,
        ResponsePart::Thinking { .. } => false,
    }
}

/// Returns `true` if a text is only white space, which providers refuse.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A string as it is, any other value as JSON.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn user(
    results: &[&RequestPart],
    texts: Vec<String>,
    ids: &SentIds<'_>,
    kind: AdapterKind,
) -> Vec<ChatMessage> {
    let results: Vec<_> = results.iter().filter_map(|part| result(part, ids, kind)).collect();
    let texts: Vec<_> = texts.into_iter().map(ContentPart::Text).collect();
    let message = |parts: Vec<ContentPart>, of: fn(MessageContent) -> ChatMessage| {
        (!parts.is_empty()).then(|| of(MessageContent::from_parts(parts)))
    };
    if has_blocks(kind) {
        // For these providers results belong to the user's message, and two user messages in a row are refused.
        let parts = results.into_iter().chain(texts).collect();
        return message(parts, ChatMessage::user).into_iter().collect();
    }
    [message(results, ChatMessage::tool), message(texts, ChatMessage::user)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns `true` if tool results and user texts are blocks of one message.
fn has_blocks(kind: AdapterKind) -> bool {
    is_anthropic(kind) || kind == AdapterKind::BedrockApi
}

/// Returns `true` if the provider has Anthropic's API and no other.
fn is_anthropic(kind: AdapterKind) -> bool {
    matches!(kind, AdapterKind::Anthropic | AdapterKind::MiniMax)
}

/// The result of a call as a part of the client's message; `None` for a part that is no result.
///
/// A failure has a mark, as "no such file" could be the content of a file.
fn result(part: &RequestPart, ids: &SentIds<'_>, kind: AdapterKind) -> Option<ContentPart> {
    let RequestPart::ToolReturn { tool_name, content, tool_call_id, outcome } = part else {
        return None;
    };
    let (id, name) = (ids.id(tool_call_id), ids.name(tool_name));
    if is_anthropic(kind) && *outcome != ReturnKind::Success {
        // The client has no field for `is_error`, but sends a custom block as it is.
        let data = json!({
            "type": "tool_result", "tool_use_id": id, "content": visible(content), "is_error": true,
        });
        return Some(ContentPart::Custom(CustomPart { model_iden: None, data }));
    }
    let said = match outcome {
        // By its text alone the model could not tell an error from a result.
        ReturnKind::Failed | ReturnKind::Retried => json!({ "error": content }).to_string(),
        ReturnKind::Success | ReturnKind::Denied | ReturnKind::Interrupted => visible(content),
    };
    Some(ContentPart::ToolResponse(ToolResponse::new(id, said).with_fn_name(name)))
}

/// The text of a result. A blank one is sent as JSON (`""`), as providers refuse blank content.
fn visible(content: &Value) -> String {
    let said = text(content);
    if is_blank(&said) { content.to_string() } else { said }
}

/// The parts of a response, reasoning first.
fn model(parts: &[&ResponsePart], ids: &SentIds<'_>, kind: AdapterKind) -> ChatMessage {
    let mut said: Vec<ContentPart> = parts.iter().flat_map(|part| thought(part, kind)).collect();
    let mut number = 0;
    for part in parts {
        match part {
            ResponsePart::Text(text) if is_blank(text) => {}
            ResponsePart::Text(text) => said.push(ContentPart::Text(text.clone())),
            ResponsePart::ToolCall(call) => {
                let signed = parts.iter().filter_map(|part| signature_of(part, number, kind));
                let signed: Vec<String> = signed.collect();
                said.push(ContentPart::ToolCall(ClientCall {
                    call_id: ids.id(call.id()),
                    fn_name: ids.name(call.name()),
                    fn_arguments: call.args().to_value(),
                    thought_signatures: (!signed.is_empty()).then_some(signed),
                }));
                number += 1;
            }
            ResponsePart::Thinking { .. } => {}
        }
    }
    ChatMessage::assistant(MessageContent::from_parts(said))
}

/// A reasoning part, if this provider produced it and needs it back; otherwise nothing.
///
/// Signed reasoning is refused by any other provider, and by the same one where a character of it has changed.
fn thought(part: &ResponsePart, kind: AdapterKind) -> Vec<ContentPart> {
    let ResponsePart::Thinking { content, signature, id, provider_name } = part else {
        return Vec::new();
    };
    if provider_name.as_deref() != Some(kind.as_lower_str()) {
        return Vec::new();
    }
    match signature {
        Some(data) if id.as_deref() == Some(REDACTED) => {
            let data = json!({"type": REDACTED, "data": data});
            vec![ContentPart::Custom(CustomPart { model_iden: None, data })]
        }
        Some(signature) => {
            let mut parts = vec![ContentPart::ThoughtSignature(signature.clone())];
            // Anthropic expects signature and text in pairs, even if the text is empty; Bedrock takes a signature
            // without text for redacted reasoning.
            if !content.is_empty() || is_anthropic(kind) || kind == AdapterKind::Vertex {
                parts.push(ContentPart::ReasoningContent(content.clone()));
            }
            parts
        }
        None if wants_reasoning(kind) && !content.is_empty() => {
            vec![ContentPart::ReasoningContent(content.clone())]
        }
        None => Vec::new(),
    }
}

/// Returns `true` if the provider requires its unsigned reasoning back. Others refuse the unknown field.
fn wants_reasoning(kind: AdapterKind) -> bool {
    matches!(
        kind,
        AdapterKind::BigModel
            | AdapterKind::DeepSeek
            | AdapterKind::Kimi
            | AdapterKind::Mimo
            | AdapterKind::Mistral
            | AdapterKind::Moonshot
            | AdapterKind::Zai
    )
}

/// The reasoning signature of this call, which Gemini expects on the call itself.
fn signature_of(part: &ResponsePart, call: usize, kind: AdapterKind) -> Option<String> {
    match part {
        ResponsePart::Thinking {
            signature, id: Some(id), provider_name: Some(provider), ..
        } if provider == kind.as_lower_str() && *id == call_of(call) => signature.clone(),
        _ => None,
    }
}

fn tool(definition: &ToolDefinition) -> Tool {
    // `Custom` is named instead of converting the text, so that no name of a host's tool can select a built-in tool of
    // the provider, even if the client's conversion changes.
    let tool = Tool::new(ToolName::Custom(definition.name().to_owned()));
    let tool = tool.with_schema(definition.parameters().clone());
    match definition.description() {
        "" => tool,
        text => tool.with_description(text),
    }
}
