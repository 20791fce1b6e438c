//! The history of a run, in PydanticAI's JSON shape.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::call::ToolCall;
use crate::outcome::Outcome;

/// One message of a history.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// What the model is told: prompts and results.
    Request {
        /// The parts, in this order.
        parts: Vec<RequestPart>,
    },
    /// What the model said.
    Response {
        /// The parts, in this order.
        parts: Vec<ResponsePart>,
    },
}

/// One part of what the model is told.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part_kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RequestPart {
    /// What the model is there for, in histories that were written elsewhere; an agent of ours says it with every
    /// request, as its [instructions](crate::Agent::instructions).
    SystemPrompt {
        /// The text of the prompt.
        content: String,
    },
    /// What the user says.
    UserPrompt {
        /// A text, or what a tool added for the model to read.
        content: Value,
    },
    /// What became of a call.
    ToolReturn {
        /// The tool, by the name the model used.
        tool_name: String,
        /// The value, or a text.
        content: Value,
        /// The id of the call.
        tool_call_id: String,
        /// What kind of result it is.
        #[serde(default, deserialize_with = "or_default")]
        outcome: ReturnKind,
    },
}

/// What is not there, or `null`, is the default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What kind of result the model is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReturnKind {
    /// The tool gave a value.
    #[default]
    Success,
    /// A layer or a person said no.
    Denied,
    /// It failed for good.
    Failed,
    /// The model should try again.
    Retried,
    /// It was started, and its end was not seen.
    Interrupted,
}

/// One part of what the model said.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ResponsePart {
    /// A text for the user.
    Text(String),
    /// A call of a tool.
    ToolCall(ToolCall),
    /// What the model thought before it spoke. Nobody is shown it; some providers have to be given it back, as it was.
    Thinking {
        /// The thoughts, or a summary of them. May be empty.
        content: String,
        /// What the provider proves them by, or all there is of them, encrypted.
        signature: Option<String>,
        /// The provider's name for this piece.
        id: Option<String>,
        /// Whose they are. A signature means nothing to anybody else.
        provider_name: Option<String>,
    },
}

impl Message {
    /// What the user says.
    #[must_use]
    pub fn user(prompt: impl Into<String>) -> Self {
        Self::Request { parts: vec![RequestPart::UserPrompt { content: prompt.into().into() }] }
    }

    /// The calls in it.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = match self {
            Self::Response { parts } => parts.as_slice(),
            Self::Request { .. } => &[],
        };
        parts.iter().filter_map(|part| match part {
            ResponsePart::ToolCall(call) => Some(call),
            ResponsePart::Text(_) | ResponsePart::Thinking { .. } => None,
        })
    }
}

impl Message {
    /// The ids of the calls whose results are in it.
    pub(crate) fn result_ids(&self) -> impl Iterator<Item = &str> {
        let parts = match self {
            Self::Request { parts } => parts.as_slice(),
            Self::Response { .. } => &[],
        };
        parts.iter().filter_map(|part| match part {
            RequestPart::ToolReturn { tool_call_id, .. } => Some(tool_call_id.as_str()),
            RequestPart::UserPrompt { .. } | RequestPart::SystemPrompt { .. } => None,
        })
    }
}

impl RequestPart {
    /// The result of a call; `None` while it waits.
    pub(crate) fn result(call: &ToolCall, outcome: &Outcome) -> Option<Self> {
        let kind = match outcome {
            Outcome::Returned(_) => ReturnKind::Success,
            Outcome::Denied(_) => ReturnKind::Denied,
            Outcome::Failed(_) => ReturnKind::Failed,
            Outcome::Retry(_) => ReturnKind::Retried,
            Outcome::Unknown(_) => ReturnKind::Interrupted,
            Outcome::Deferred(_) => return None,
        };
        Some(Self::ToolReturn {
            tool_name: call.name().to_owned(),
            content: outcome.content()?,
            tool_call_id: call.id().to_owned(),
            outcome: kind,
        })
    }

    /// The result of a call, and what its tool added for the model to read. A call that waits has none.
    pub(crate) fn results(call: &ToolCall, outcome: &Outcome) -> Option<(Self, Vec<Self>)> {
        let result = Self::result(call, outcome)?;
        let beside = match outcome {
            Outcome::Returned(value) => value.content.clone(),
            Outcome::Denied(_)
            | Outcome::Failed(_)
            | Outcome::Retry(_)
            | Outcome::Unknown(_)
            | Outcome::Deferred(_) => None,
        };
        Some((result, beside.into_iter().map(|content| Self::UserPrompt { content }).collect()))
    }
}

impl Serialize for ResponsePart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => {
                json!({"content": content, "part_kind": "text"}).serialize(serializer)
            }
            Self::ToolCall(call) => call.serialize(serializer),
            Self::Thinking { content, signature, id, provider_name } => json!({
                "content": content,
                "id": id,
                "signature": signature,
                "provider_name": provider_name,
                "provider_details": null,
                "part_kind": "thinking",
            })
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResponsePart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = Value::deserialize(deserializer)?;
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let owned = |key: &str| text(key).map(str::to_owned);
        match (text("part_kind"), text("content")) {
            (Some("text"), Some(text)) => Ok(Self::Text(text.to_owned())),
            (Some("tool-call"), _) => {
                ToolCall::deserialize(part).map(Self::ToolCall).map_err(D::Error::custom)
            }
            (Some("thinking"), Some(content)) => Ok(Self::Thinking {
                content: content.to_owned(),
                signature: owned("signature"),
                id: owned("id"),
                provider_name: owned("provider_name"),
            }),
            _ => Err(D::Error::custom("expected a part of kind `text`, `tool-call` or `thinking`")),
        }
    }
}

/// Kinds and lengths, not contents (rule S2).
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { parts } => f.debug_tuple("Request").field(parts).finish(),
            Self::Response { parts } => f.debug_tuple("Response").field(parts).finish(),
        }
    }
}

impl fmt::Debug for RequestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SystemPrompt { content } => write!(f, "SystemPrompt({} bytes)", content.len()),
            Self::UserPrompt { content } => {
                write!(f, "UserPrompt({} bytes)", content.to_string().len())
            }
            Self::ToolReturn { tool_name, tool_call_id, outcome, .. } => {
                write!(f, "ToolReturn({tool_name}, {tool_call_id}, {outcome:?})")
            }
        }
    }
}

impl fmt::Debug for ResponsePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::ToolCall(call) => call.fmt(f),
            Self::Thinking { content, signature, .. } => {
                write!(f, "Thinking({} bytes, signed: {})", content.len(), signature.is_some())
            }
        }
    }
}
