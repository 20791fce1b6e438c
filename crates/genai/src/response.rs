//! Converts the client's stream or response into a [`ModelResponse`].
//!
//! A short answer and a broken one look the same in a stream, but for its end. So only a stream that ends with a stop
//! reason is a response. Without this rule, a call whose arguments were cut off at `{"path": "/tmp` could be repaired
//! by some parser into a call that no one has made.

use std::collections::HashMap;

use ::genai::chat::{
    ChatResponse, ChatStream, ChatStreamEvent, ContentPart, MessageContent, StopReason, StreamEnd,
    ToolCall as ClientCall, Usage,
};
use futures::StreamExt as _;
use serde_json::Value;

use super::error::{GenaiError, Whose};
use countersign::call::ToolCall;
use countersign::message::ResponsePart;
use countersign::model::{ModelRequest, ModelResponse, TokenUsage};

/// The id of reasoning that the provider redacted, both in our parts and in Anthropic's blocks.
pub(super) const REDACTED: &str = "redacted_thinking";

/// The id of a signature that belongs to the call with this number in its response. Calls are counted because their ids
/// may be replaced.
pub(super) fn call_of(number: usize) -> String {
    format!("call:{number}")
}

/// The text of the arguments of each call, as the model wrote it.
///
/// The client parses arguments itself and keeps one of two equal keys. With the text as it came, the turn can refuse
/// such arguments.
type Written = HashMap<String, String>;

/// Reads the stream to its end, and forwards text deltas as they arrive.
pub(super) async fn streamed(
    mut stream: ChatStream,
    request: &ModelRequest,
    whose: &Whose,
) -> Result<ModelResponse, GenaiError> {
    let mut written = Written::new();
    while let Some(event) = stream.next().await {
        // The client's stream continues after an error, but nothing after it belongs to a complete response.
        match event.map_err(|error| GenaiError::of(whose, error))? {
            ChatStreamEvent::Chunk(chunk) => request.text_delta(&chunk.content),
            ChatStreamEvent::ToolCallChunk(chunk) => {
                // Each chunk repeats the arguments from their beginning.
                if let Value::String(text) = chunk.tool_call.fn_arguments {
                    written.insert(chunk.tool_call.call_id, text);
                }
            }
            ChatStreamEvent::End(end) => return ended(end, &written, whose),
            ChatStreamEvent::Start
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => {}
        }
    }
    Err(GenaiError::no_end(whose))
}

fn ended(end: StreamEnd, written: &Written, whose: &Whose) -> Result<ModelResponse, GenaiError> {
    // For some providers the client synthesises an end event when the connection closes. That event has no stop reason.
    let Some(reason) = end.captured_stop_reason else { return Err(GenaiError::no_end(whose)) };
    let content = end.captured_content.unwrap_or_default();
    let answer =
        ResponseEnd { reasoning: end.captured_reasoning_content, reason: Some(reason), whose };
    let tokens = end.captured_usage.as_ref().and_then(tokens);
    let model = Some(whose.model.to_string());
    Ok(ModelResponse { tokens, model, ..answer.parts(content, written)? })
}

/// The tokens of a request, if the provider has counted them.
fn tokens(usage: &Usage) -> Option<TokenUsage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let (input, output) = (count(usage.prompt_tokens), count(usage.completion_tokens));
    (input.is_some() || output.is_some())
        .then(|| TokenUsage { input: input.unwrap_or(0), output: output.unwrap_or(0) })
}

/// Converts a response that was not streamed.
pub(super) fn whole(response: ChatResponse, whose: &Whose) -> Result<ModelResponse, GenaiError> {
    let ChatResponse {
        content, reasoning_content, stop_reason, usage, provider_model_iden, ..
    } = response;
    let answer = ResponseEnd { reasoning: reasoning_content, reason: stop_reason, whose }
        .parts(content, &Written::new())?;
    let model = Some(provider_model_iden.model_name.to_string());
    Ok(ModelResponse { tokens: tokens(&usage), model, ..answer })
}

struct ResponseEnd<'a> {
    reasoning: Option<String>,
    reason: Option<StopReason>,
    whose: &'a Whose,
}

impl ResponseEnd<'_> {
    fn parts(
        self,
        content: MessageContent,
        written: &Written,
    ) -> Result<ModelResponse, GenaiError> {
        let mut parts = Vec::new();
        let last_call = content.parts().iter().filter(|part| part.as_tool_call().is_some()).count();
        let mut calls = 0;
        for part in content.into_parts() {
            match part {
                ContentPart::Text(text) if text.is_empty() => {}
                ContentPart::Text(text) => parts.push(ResponsePart::Text(text)),
                ContentPart::ToolCall(call) => {
                    self.sign(&mut parts, calls, &call);
                    calls += 1;
                    let cut_off = calls == last_call && self.was_cut_off();
                    parts.push(ResponsePart::ToolCall(call_from(call, written, cut_off)));
                }
                ContentPart::ThoughtSignature(signature) => {
                    parts.push(self.thinking(String::new(), Some(signature), None));
                }
                ContentPart::ReasoningContent(text) => self.think(&mut parts, text),
                ContentPart::Custom(custom) if custom.typ() == Some(REDACTED) => {
                    let data =
                        custom.data().get("data").and_then(Value::as_str).unwrap_or_default();
                    let id = Some(REDACTED.to_owned());
                    parts.push(self.thinking(String::new(), Some(data.to_owned()), id));
                }
                // Images and the provider's built-in tools have no counterpart in a run.
                ContentPart::Binary(_) | ContentPart::ToolResponse(_) | ContentPart::Custom(_) => {}
            }
        }
        self.keep_reasoning(&mut parts);
        self.check(&parts)?;
        Ok(ModelResponse { parts, ..ModelResponse::default() })
    }

    fn thinking(
        &self,
        content: String,
        signature: Option<String>,
        id: Option<String>,
    ) -> ResponsePart {
        let provider_name = self.whose.kind.map(|kind| kind.as_lower_str().to_owned());
        ResponsePart::Thinking { content, signature, id, provider_name }
    }

    /// Adds reasoning text: to the signature directly before it, or as a part of its own.
    fn think(&self, parts: &mut Vec<ResponsePart>, text: String) {
        match parts.last_mut() {
            Some(ResponsePart::Thinking { content, signature: Some(_), id: None, .. })
                if content.is_empty() =>
            {
                *content = text;
            }
            _ => parts.push(self.thinking(text, None, None)),
        }
    }

    /// Records which signatures belong to this call. The same signature may have arrived before as a part of its own.
    fn sign(&self, parts: &mut Vec<ResponsePart>, number: usize, call: &ClientCall) {
        for signature in call.thought_signatures.iter().flatten() {
            let known = parts.iter_mut().find_map(|part| match part {
                ResponsePart::Thinking { signature: Some(known), id, .. } if known == signature => {
                    Some(id)
                }
                _ => None,
            });
            match known {
                Some(id) => drop(id.get_or_insert_with(|| call_of(number))),
                None => {
                    let id = Some(call_of(number));
                    parts.push(self.thinking(String::new(), Some(signature.clone()), id));
                }
            }
        }
    }

    /// Some providers give the reasoning in a separate field. It goes first, unless the parts contain it already.
    fn keep_reasoning(&self, parts: &mut Vec<ResponsePart>) {
        let thought = |part: &ResponsePart| matches!(part, ResponsePart::Thinking { content, .. } if !content.is_empty());
        if let Some(text) = self.reasoning.as_ref().filter(|text| !text.is_empty())
            && !parts.iter().any(thought)
        {
            parts.insert(0, self.thinking(text.clone(), None, None));
        }
    }

    fn was_cut_off(&self) -> bool {
        matches!(self.reason, Some(StopReason::MaxTokens(_)))
    }

    /// Checks that the response is complete and not empty.
    fn check(&self, parts: &[ResponsePart]) -> Result<(), GenaiError> {
        let calls = parts.iter().any(|part| matches!(part, ResponsePart::ToolCall(_)));
        let says = parts
            .iter()
            .any(|part| matches!(part, ResponsePart::Text(text) if !text.trim().is_empty()));
        match &self.reason {
            Some(StopReason::ContentFilter(reason)) => {
                Err(GenaiError::withheld(self.whose, reason))
            }
            Some(StopReason::MaxTokens(reason)) if !calls => {
                Err(GenaiError::cut_off(self.whose, reason))
            }
            Some(StopReason::Other(reason)) if !calls && !says => {
                Err(GenaiError::nothing(self.whose, reason))
            }
            _ => Ok(()),
        }
    }
}

/// Converts a call, with its arguments as the text that the model wrote: only the text shows repeated keys and every
/// digit, which the client's parser drops (rule T5).
fn call_from(call: ClientCall, written: &Written, cut_off: bool) -> ToolCall {
    let ClientCall { call_id, fn_name, fn_arguments, .. } = call;
    let read = |text: &String| serde_json::from_str::<Value>(text).ok();
    let args = match written.get(&call_id) {
        // Two calls may share an id: the text belongs to the call whose parsed arguments it gives.
        Some(text) if read(text).as_ref() == Some(&fn_arguments) => Value::String(text.clone()),
        _ => fn_arguments,
    };
    // Otherwise a call that was cut off before its arguments would pass for a call without arguments.
    let nothing = args.is_null() || args.as_str().is_some_and(|text| text.trim().is_empty());
    let args = if cut_off && nothing { Value::String("(cut off)".into()) } else { args };
    ToolCall::new(call_id, fn_name, args)
}

#[cfg(test)]
mod tests {
    use ::genai::adapter::AdapterKind;
    use serde_json::json;

    use super::super::request::chat;
    use super::*;
    use countersign::message::{Message, RequestPart, ReturnKind};

    fn whose(kind: AdapterKind) -> Whose {
        Whose { model: "a-model".into(), kind: Some(kind) }
    }

    fn gemini_call(name: &str, signature: Option<&str>) -> ContentPart {
        let signatures = signature.map(|signature| vec![signature.to_owned()]);
        ContentPart::ToolCall(ClientCall {
            call_id: format!("call#{name}#0"),
            fn_name: name.into(),
            fn_arguments: json!({}),
            thought_signatures: signatures,
        })
    }

    #[test]
    fn an_end_event_without_a_reason_is_an_error() {
        // As the client synthesises it for Gemini, Ollama, Bedrock and OpenAI's Responses API.
        let content = Some(MessageContent::from_text("The short"));
        let end = StreamEnd { captured_content: content, ..StreamEnd::default() };
        let error = ended(end, &Written::new(), &whose(AdapterKind::Gemini)).unwrap_err();
        assert!(error.to_string().contains("stopped without its end marker"), "{error}");
    }

    #[test]
    fn signatures_of_calls_find_their_calls_again() {
        let said = [
            ContentPart::ThoughtSignature("of the text".into()),
            ContentPart::ThoughtSignature("of the second".into()),
            ContentPart::from_text("I look."),
            gemini_call("one", None),
            gemini_call("two", Some("of the second")),
            gemini_call("three", Some("of the third")),
        ];
        let whose = whose(AdapterKind::Gemini);
        let answer = ResponseEnd { reasoning: Some("hm".into()), reason: None, whose: &whose };
        let said = MessageContent::from_parts(said.to_vec());
        let mut parts = answer.parts(said, &Written::new()).unwrap().parts;
        // As in a history: the calls come last, with other ids where theirs were used before.
        parts.sort_by_key(|part| matches!(part, ResponsePart::ToolCall(_)));
        for part in &mut parts {
            if let ResponsePart::ToolCall(call) = part {
                let id = format!("other {}", call.name());
                *call = ToolCall::new(id, call.name(), json!(call.args()));
            }
        }
        let results = ["one", "two", "three"].map(|name| RequestPart::ToolReturn {
            tool_name: name.into(),
            content: json!(1),
            tool_call_id: format!("other {name}"),
            outcome: ReturnKind::Success,
        });
        let history = vec![
            Message::user("go"),
            Message::Response { parts },
            Message::Request { parts: results.to_vec() },
        ];
        let request = ModelRequest::new(history);

        let sent = chat(&request, AdapterKind::Gemini).messages;
        let parts = sent[1].content.parts();
        let alone = parts.iter().filter_map(|part| part.as_thought_signature());
        let alone: Vec<_> = alone.collect();
        assert_eq!(alone, ["of the text", "of the second", "of the third"]);
        let calls = parts.iter().filter_map(ContentPart::as_tool_call);
        let calls: Vec<_> = calls.map(|call| call.thought_signatures.clone()).collect();
        let on = |signature: &str| Some(vec![signature.to_owned()]);
        assert_eq!(calls, [None, on("of the second"), on("of the third")]);
        assert!(!parts.iter().any(|part| matches!(part, ContentPart::ReasoningContent(_))));

        // No other provider receives the signatures.
        let sent = chat(&request, AdapterKind::OpenAIResp).messages;
        let parts = sent[1].content.parts();
        assert!(!parts.iter().any(|part| part.as_thought_signature().is_some()));
    }
}
