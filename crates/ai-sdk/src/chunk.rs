//! The chunks of a UI message stream.
//!
//! The shapes are the AI SDK's, and its clients check them strictly: a field that is `null`, an unknown field or a
//! missing one ends the stream at the client, with an error that names a schema and no field. So each optional field is
//! left out where it has no value.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::message::ToolPart;

/// One chunk of a UI message stream, as the server sends it: every chunk of AI SDK v6 and v7.
///
/// No field is ever written as `null`, which clients refuse. A chunk that this version does not know is read as
/// [`Other`](Self::Other), and written as it was.
///
/// ```
/// use countersign_ai_sdk::Chunk;
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
    /// A stream starts: with a new message, or with more of the one that has this id at the client.
    Start {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// A step starts: one response of the model and the outcomes of its calls.
    StartStep {},
    /// The step is complete: its calls have their outcomes, or are pending.
    FinishStep {},
    /// The parts of the step so far are void. Since 7.0.70.
    ResetStep {},
    /// A text starts, under this id.
    TextStart {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// More of a text: the client appends it.
    TextDelta {
        id: String,
        delta: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A text is complete: no delta follows.
    TextEnd {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
        /// The sources of the text. Since 7.0.138.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
    },
    /// A reasoning text of the model starts, under this id.
    ReasoningStart {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// More of a reasoning text: the client appends it.
    ReasoningDelta {
        id: String,
        delta: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A reasoning text is complete: no delta follows.
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
        /// The encoding of the argument text: `json` or `text`. Since 7.0.142.
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
    /// A call waits for the user's approval. The chunk follows the `tool-input-available` of the call.
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
        /// The signature that the AI SDK's own server makes for the request. Since 6.0.202 and 7.0.0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// Since 6.0.274 and 7.0.87.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_descriptor: Option<Value>,
        /// Since 6.0.290 and 7.0.113.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_schema_input: Option<Value>,
        /// The reason that a person is shown. Since 7.0.82.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// `true` if the client answers by itself. Since 7.0.0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_automatic: Option<bool>,
    },
    /// A call was approved or denied without the user. Since 7.0.0; a client of v6 fails on this chunk.
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
    /// A call has returned: this is its result.
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
    /// A call failed, or was denied by another person or a layer.
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
    /// The user has denied a call. The client has the reason already, as the user gave it there.
    ToolOutputDenied { tool_call_id: String },
    /// A web page that the model has used as a source.
    SourceUrl {
        source_id: String,
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A document that the model has used as a source.
    SourceDocument {
        source_id: String,
        media_type: String,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A file that the model has made.
    File {
        url: String,
        media_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A file that belongs to the reasoning of the model. Since 7.0.0.
    ReasoningFile {
        url: String,
        media_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A part that only this provider has. Since 7.0.0.
    Custom {
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Value>,
    },
    /// A message that the user sent while the response was being made. Since 7.0.163.
    SteeringMessage { id: String, parts: Vec<Value> },
    /// Metadata of the message, merged into the metadata that the client has.
    MessageMetadata { message_metadata: Value },
    /// The stream ends with an error, which the client shows.
    Error { error_text: String },
    /// The stream ends because the response was stopped.
    Abort {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The stream is complete. A later stream may continue the message.
    Finish {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Value>,
    },
    /// Data of an application: `data-…`. A later chunk with the same type and id replaces the earlier one.
    #[serde(untagged)]
    Data(DataChunk),
    /// A chunk of a type that this version does not know, unchanged.
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

/// Data of an application, which becomes a part of the message.
///
/// ```
/// use countersign_ai_sdk::{Chunk, DataChunk};
///
/// let data = serde_json::json!({"done": 3, "of": 10});
/// let progress = DataChunk { kind: "data-progress".into(), id: Some("p1".into()), data, transient: None };
/// let chunk = serde_json::to_value(Chunk::Data(progress))?;
/// assert_eq!((&chunk["type"], &chunk["id"], &chunk["data"]["done"]), (&"data-progress".into(), &"p1".into(), &3.into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct DataChunk {
    /// The type of the part: `data-` and a name.
    #[serde(rename = "type", deserialize_with = "data_kind")]
    pub kind: String,
    /// The id by which a later chunk of the same type replaces this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The data itself, of any shape.
    pub data: Value,
    /// `true` if the client passes it to `onData` only, and keeps no part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<bool>,
}

/// Reads the type of a data chunk, and fails for every other type: other chunks may have a field `data`, too.
fn data_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    if kind.starts_with("data-") { Ok(kind) } else { Err(D::Error::custom("it is no data")) }
}

/// The reason why a stream is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model has finished its answer.
    Stop,
    /// The answer was cut at the limit of its length.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// There are pending calls: for approval by the user, or for execution by the client.
    ToolCalls,
    /// The run has failed with an error.
    Error,
    /// A reason that has no value of its own.
    Other,
    /// The response was stopped. Since 7.0.149.
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
