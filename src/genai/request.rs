//! A conversation as the client takes it, in an order that every provider accepts.

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    ChatMessage, ChatRequest, ContentPart, CustomPart, MessageContent, Tool,
    ToolCall as ClientCall, ToolName, ToolResponse,
};
use serde_json::{Value, json};

use super::ids::Ids;
use super::response::{REDACTED, call_of};
use crate::call::ToolDefinition;
use crate::message::{Message, RequestPart, ResponsePart, ReturnKind};
use crate::model::ModelRequest;

/// What one side says until the other one does.
enum Speech<'a> {
    /// Results, and texts behind them.
    User {
        results: Vec<&'a RequestPart>,
        texts: Vec<String>,
    },
    Model(Vec<&'a ResponsePart>),
}

pub(super) fn chat(request: &ModelRequest, kind: AdapterKind) -> ChatRequest {
    let ids = Ids::of(request, kind);
    let messages = speeches(request.messages()).into_iter().flat_map(|speech| match speech {
        Speech::User { results, texts } => user(&results, texts, &ids, kind),
        Speech::Model(parts) => vec![model(&parts, &ids, kind)],
    });
    let mut chat = ChatRequest::new(messages.collect());
    let said: Vec<_> = request.instructions().into_iter().chain(system_prompts(request)).collect();
    let said: Vec<_> = said.into_iter().filter(|text| !is_blank(text)).collect();
    chat.system = (!said.is_empty()).then(|| said.join("\n\n"));
    // A list without tools is refused by some.
    chat.tools = (!request.tools().is_empty()).then(|| request.tools().iter().map(tool).collect());
    chat
}

/// What the model is there for, as a history says it that was written elsewhere.
fn system_prompts(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let parts = request.messages().iter().flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        Message::Response { .. } => &[],
    });
    parts.filter_map(|part| match part {
        RequestPart::SystemPrompt { content } => Some(content.as_str()),
        RequestPart::UserPrompt { .. } | RequestPart::ToolReturn { .. } => None,
    })
}

/// Who said what, in turns. What has nothing to say is left out, and what it stood between becomes one.
fn speeches(messages: &[Message]) -> Vec<Speech<'_>> {
    let mut speeches: Vec<Speech<'_>> = Vec::new();
    for message in messages {
        match message {
            Message::Request { parts } => {
                let (mut new_results, mut new_texts) = (Vec::new(), Vec::new());
                for part in parts {
                    match part {
                        RequestPart::ToolReturn { .. } => new_results.push(part),
                        // It goes in front of everything.
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

/// Providers refuse texts of nothing but white space.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A text as it is, a value as JSON.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn user(
    results: &[&RequestPart],
    texts: Vec<String>,
    ids: &Ids<'_>,
    kind: AdapterKind,
) -> Vec<ChatMessage> {
    let results: Vec<_> = results.iter().filter_map(|part| result(part, ids, kind)).collect();
    let texts: Vec<_> = texts.into_iter().map(ContentPart::Text).collect();
    let message = |parts: Vec<ContentPart>, of: fn(MessageContent) -> ChatMessage| {
        (!parts.is_empty()).then(|| of(MessageContent::from_parts(parts)))
    };
    if has_blocks(kind) {
        // For these, results are what the user says, and the user speaks once at a time.
        let parts = results.into_iter().chain(texts).collect();
        return message(parts, ChatMessage::user).into_iter().collect();
    }
    [message(results, ChatMessage::tool), message(texts, ChatMessage::user)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether results and texts of the user are blocks of one message.
fn has_blocks(kind: AdapterKind) -> bool {
    is_anthropic(kind) || kind == AdapterKind::BedrockApi
}

/// Whether the provider speaks Anthropic's language and nothing else.
fn is_anthropic(kind: AdapterKind) -> bool {
    matches!(kind, AdapterKind::Anthropic | AdapterKind::MiniMax)
}

/// What became of a call.
fn result(part: &RequestPart, ids: &Ids<'_>, kind: AdapterKind) -> Option<ContentPart> {
    let RequestPart::ToolReturn { tool_name, content, tool_call_id, outcome } = part else {
        return None;
    };
    let (id, name) = (ids.id(tool_call_id), ids.name(tool_name));
    if is_anthropic(kind) && *outcome != ReturnKind::Success {
        // The client has no word for this, but passes a block on as it is.
        let data = json!({
            "type": "tool_result", "tool_use_id": id, "content": visible(content), "is_error": true,
        });
        return Some(ContentPart::Custom(CustomPart { model_iden: None, data }));
    }
    let said = match outcome {
        // What comes next cannot be told from a result by its text alone.
        ReturnKind::Failed | ReturnKind::Retried => json!({ "error": content }).to_string(),
        ReturnKind::Success | ReturnKind::Denied | ReturnKind::Interrupted => visible(content),
    };
    Some(ContentPart::ToolResponse(ToolResponse::new(id, said).with_fn_name(name)))
}

/// The text of a result. An empty one is shown as `""`, as providers refuse nothing at all.
fn visible(content: &Value) -> String {
    let said = text(content);
    if is_blank(&said) { content.to_string() } else { said }
}

/// What the model said, thoughts first.
fn model(parts: &[&ResponsePart], ids: &Ids<'_>, kind: AdapterKind) -> ChatMessage {
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

/// A thought, for the provider that had it, if that needs it.
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
            // Anthropic's come in pairs, also when there is nothing to read; Bedrock takes a lone one for a hidden
            // thought.
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

/// Whether the provider wants to read its plain thoughts again. Others refuse a field they do not know.
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

/// The signature of this call, which Gemini wants on the call itself.
fn signature_of(part: &ResponsePart, call: usize, kind: AdapterKind) -> Option<String> {
    match part {
        ResponsePart::Thinking {
            signature, id: Some(id), provider_name: Some(provider), ..
        } if provider == kind.as_lower_str() && *id == call_of(call) => signature.clone(),
        _ => None,
    }
}

fn tool(definition: &ToolDefinition) -> Tool {
    // Not by conversion: a tool of the host's is never one of the provider's.
    let tool = Tool::new(ToolName::Custom(definition.name().to_owned()));
    let tool = tool.with_schema(definition.get_parameters().clone());
    match definition.get_description() {
        "" => tool,
        text => tool.with_description(text),
    }
}
