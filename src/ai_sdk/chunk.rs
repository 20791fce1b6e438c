//! The chunks of a UI message stream.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::message::ToolPart;

/// One chunk of a UI message stream: what the server tells the client, all of AI SDK v6 and v7. No field is ever
/// written as `null`, which clients refuse. What this version does not know is read as [`Other`](Self::Other).
///
/// ```
/// use countersign::ai_sdk::Chunk;
///
/// let chunk = Chunk::ToolOutputDenied { tool_call_id: "call_1".into() };
/// assert_eq!(serde_json::to_string(&chunk)?, r#"{"type":"tool-output-denied","toolCallId":"call_1"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the AI SDK's, and named as it names them")]
pub enum Chunk {
    /// A message begins, or goes on where the client has one with this id.
    Start {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// A response of the model begins.
    StartStep {},
    /// A response of the model, with what became of its calls, is over.
    FinishStep {},
    /// What was told of the response is void. Since 7.0.70.
    ResetStep {},
    /// A text begins.
    TextStart {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// More of a text.
    TextDelta {
        id: String,
        delta: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A text is complete.
    TextEnd {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        /// Since 7.0.138.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
    },
    /// The model begins to think.
    ReasoningStart {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// More of a thought.
    ReasoningDelta {
        id: String,
        delta: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A thought is complete.
    ReasoningEnd {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// The model begins to call a tool.
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Value>,
        /// `json` or `text`; since 7.0.142.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_encoding: Option<String>,
    },
    /// More of the text of the arguments.
    ToolInputDelta { tool_call_id: String, input_text_delta: String },
    /// The arguments of a call are complete.
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Value>,
    },
    /// The arguments of a call cannot be used.
    ToolInputError {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        error_text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Value>,
    },
    /// A call waits for the user. It stands behind `tool-input-available` of the call.
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
        /// Since 6.0.202 and 7.0.0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// Since 6.0.274 and 7.0.87.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_descriptor: Option<Value>,
        /// Since 6.0.290 and 7.0.113.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_schema_input: Option<Value>,
        /// Since 7.0.82.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Since 7.0.0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_automatic: Option<bool>,
    },
    /// A call was decided about without the user. Since 7.0.0; it ends every client of v6.
    ToolApprovalResponse {
        approval_id: String,
        approved: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A call has its result.
    ToolOutputAvailable {
        tool_call_id: String,
        output: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preliminary: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Value>,
    },
    /// A call failed, or was denied by somebody else than the user.
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dynamic: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<Value>,
    },
    /// The user has denied a call. The client has the reason.
    ToolOutputDenied { tool_call_id: String },
    /// A page that was used.
    SourceUrl {
        source_id: String,
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A document that was used.
    SourceDocument {
        source_id: String,
        media_type: String,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A file that was made.
    File {
        url: String,
        media_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A file that belongs to a thought. Since 7.0.0.
    ReasoningFile {
        url: String,
        media_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// Something of a provider's own. Since 7.0.0.
    Custom {
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// What the user said while the response was made. Since 7.0.163.
    SteeringMessage { id: String, parts: Vec<Value> },
    /// More about the message, merged into what the client has.
    MessageMetadata { message_metadata: Value },
    /// The stream ends with an error.
    Error { error_text: String },
    /// The stream was stopped.
    Abort {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The message is complete for now.
    Finish {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// Data of an application: `data-…`. A later one with the same type and id takes the place of the earlier one.
    #[serde(untagged)]
    Data(DataChunk),
    /// Any other chunk, as it came.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl Chunk {
    pub(super) fn tool_input_start(call: &ToolPart) -> Self {
        Self::ToolInputStart {
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            dynamic: call.dynamic.then_some(true),
            provider_executed: None,
            title: None,
            provider_metadata: None,
            tool_metadata: None,
            input_encoding: None,
        }
    }

    pub(super) fn tool_input_available(call: &ToolPart, input: Value) -> Self {
        Self::ToolInputAvailable {
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            input,
            dynamic: call.dynamic.then_some(true),
            provider_executed: None,
            title: None,
            provider_metadata: None,
            tool_metadata: None,
        }
    }

    pub(super) fn tool_output_error(part: &str, text: &str) -> Self {
        Self::ToolOutputError {
            tool_call_id: part.to_owned(),
            error_text: text.to_owned(),
            dynamic: None,
            provider_executed: None,
            provider_metadata: None,
            tool_metadata: None,
        }
    }
}

/// Data of an application.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct DataChunk {
    /// `data-` and a name.
    #[serde(rename = "type", deserialize_with = "data_kind")]
    pub kind: String,
    /// What a later chunk replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The data.
    pub data: Value,
    /// Whether it is no part of the message, and only told to `onData`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<bool>,
}

/// Other chunks may have data too, and are no parts.
fn data_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    if kind.starts_with("data-") { Ok(kind) } else { Err(D::Error::custom("it is no data")) }
}

/// Why a message is complete for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model has said what it had to say.
    Stop,
    /// The answer is too long.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// Calls wait for the user, or are executed by the client.
    ToolCalls,
    /// The run has failed.
    Error,
    /// Something else.
    Other,
    /// It was stopped. Since 7.0.149.
    Interrupted,
}

impl fmt::Debug for Chunk {
    /// The type and ids, not the contents (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = serde_json::to_value(self).unwrap_or_default();
        let said =
            |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        write!(f, "Chunk({}", said("type"))?;
        for key in ["toolCallId", "approvalId", "id"] {
            if value.get(key).is_some() {
                write!(f, " {key}={}", said(key).escape_debug())?;
            }
        }
        f.write_str(")")
    }
}

impl fmt::Debug for DataChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataChunk")
            .field("kind", &self.kind)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
