//! The message history of a run, in PydanticAI's JSON shape.
//!
//! ```
//! use countersign::Message;
//!
//! let history = vec![Message::user("Clean up")];
//! let stored = serde_json::to_string(&history)?;
//! let read: Vec<Message> = serde_json::from_str(&stored)?;
//! assert_eq!(read.len(), 1);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::call::ToolCall;
use crate::outcome::Outcome;

/// One message of a history, serialised with `kind` `request` or `response`.
///
/// ```
/// use countersign::message::{RequestPart, ResponsePart, ReturnKind};
/// use countersign::{Message, ToolCall};
/// use serde_json::json;
///
/// let call = ToolCall::new("c1", "list_files", json!({}));
/// let asked = Message::Response { parts: vec![ResponsePart::Text("I look.".into()), ResponsePart::ToolCall(call)] };
/// assert_eq!(asked.tool_calls().map(ToolCall::id).collect::<Vec<_>>(), ["c1"]);
///
/// let result = RequestPart::ToolReturn {
///     tool_name: "list_files".into(),
///     content: json!(["a.log"]),
///     tool_call_id: "c1".into(),
///     outcome: ReturnKind::Success,
/// };
/// let answered = serde_json::to_value(Message::Request { parts: vec![result] })?;
/// assert_eq!(answered["parts"][0]["part_kind"], "tool-return");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Exhaustive on purpose: an adapter for a model has to send every kind of message.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// A message to the model: prompts and the results of calls.
    Request {
        /// The parts, in the order in which the model reads them.
        parts: Vec<RequestPart>,
    },
    /// A message from the model.
    Response {
        /// The parts, in the order in which the model wrote them.
        parts: Vec<ResponsePart>,
    },
}

/// One part of a message to the model.
///
/// Exhaustive on purpose: an adapter for a model has to send every kind of part.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part_kind", rename_all = "kebab-case")]
pub enum RequestPart {
    /// A system prompt, in a history that another program wrote. An agent of this library sends its
    /// [instructions](crate::Agent::instructions) with every request instead, and does not store them.
    SystemPrompt {
        /// The text of the prompt.
        content: String,
    },
    /// A prompt of the user, or additional content of a tool.
    UserPrompt {
        /// A text, or the JSON value that a tool added for the model to read.
        content: Value,
    },
    /// The result of a call.
    ToolReturn {
        /// The name of the tool, as the model called it.
        tool_name: String,
        /// The value that the tool returned, or the text of a denial, an error or a retry.
        content: Value,
        /// The id of the call.
        tool_call_id: String,
        /// The end of the call; a missing value or `null` is read as success.
        #[serde(default, deserialize_with = "or_default")]
        outcome: ReturnKind,
    },
}

/// Deserialises `null` as the default, as serde does for a missing value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The end of a call, as a message states it.
///
/// | outcome of the call | here |
/// |---|---|
/// | [`Returned`](Outcome::Returned) | `Success` |
/// | [`Denied`](Outcome::Denied) | `Denied` |
/// | [`Failed`](Outcome::Failed) | `Failed` |
/// | [`Retry`](Outcome::Retry) | `Retried` |
/// | [`Unknown`](Outcome::Unknown) | `Interrupted` |
///
/// Exhaustive on purpose: a call that was denied must not reach a model as one that has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReturnKind {
    /// The tool returned a value.
    #[default]
    Success,
    /// A layer or a person denied the call.
    Denied,
    /// The call failed, and the model is not asked to repeat it.
    Failed,
    /// The model is asked to make the call again, in another way.
    Retried,
    /// The tool was started, but its end was not observed: it may have run.
    Interrupted,
}

/// One part of a message from the model.
///
/// Reasoning is kept word for word with its signature, as a provider that has signed it refuses a history in which it
/// is missing or changed. A part of another kind is an error when a history is read: what is not understood cannot be
/// sent on.
///
/// Exhaustive on purpose: an adapter has to show or to store every kind of part.
#[derive(Clone, PartialEq)]
pub enum ResponsePart {
    /// Text for the user.
    Text(String),
    /// A call of a tool, not yet checked or decided.
    ToolCall(ToolCall),
    /// Reasoning of the model. People are not shown it; some providers require it back unchanged with the next request.
    Thinking {
        /// The reasoning, or a summary of it. May be empty.
        content: String,
        /// The provider's signature over the reasoning, or the whole reasoning in encrypted form.
        signature: Option<String>,
        /// The provider's id of this part.
        id: Option<String>,
        /// The provider that produced the part. Other providers cannot use its signature.
        provider_name: Option<String>,
    },
}

impl Message {
    /// A message with one prompt of the user.
    #[must_use]
    pub fn user(prompt: impl Into<String>) -> Self {
        Self::Request { parts: vec![RequestPart::UserPrompt { content: prompt.into().into() }] }
    }

    /// The calls in this message; a request has none.
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
    /// The ids of the calls whose results are in this message; a response has none.
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

/// Returns `true` if the last response of a history has calls without results.
pub(crate) fn has_open_calls(history: &[Message]) -> bool {
    let responds = |message: &Message| matches!(message, Message::Response { .. });
    let Some(last) = history.iter().rposition(responds) else { return false };
    let (asked, behind) = history.split_at(last + 1);
    let results: Vec<_> = behind.iter().flat_map(Message::result_ids).collect();
    let mut calls = asked.last().into_iter().flat_map(Message::tool_calls);
    calls.any(|call| !results.contains(&call.id()))
}

impl RequestPart {
    /// The result of a call, as the next request tells it to the model; `None` while the call is deferred. A value that is
    /// nested more than 64 levels deep is told as its JSON text, with a note that says so (rule T5).
    ///
    /// ```
    /// use countersign::message::{RequestPart, ReturnKind};
    /// use countersign::outcome::Outcome;
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "rm", json!({"path": "a.log"}));
    /// let part = RequestPart::result(&call, &Outcome::denied("keep it")).unwrap();
    /// let RequestPart::ToolReturn { outcome, content, .. } = part else { panic!() };
    /// assert_eq!((outcome, content), (ReturnKind::Denied, json!("keep it")));
    /// ```
    #[must_use]
    pub fn result(call: &ToolCall, outcome: &Outcome) -> Option<Self> {
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
            content: outcome.bounded().content()?,
            tool_call_id: call.id().to_owned(),
            outcome: kind,
        })
    }

    /// The result of a call, and the content that its tool added for the model; `None` while the call is deferred.
    ///
    /// The two are apart because providers want every result directly after the calls: what the tools added is appended
    /// behind the last result of the response, as text of the user.
    pub(crate) fn results(call: &ToolCall, outcome: &Outcome) -> Option<(Self, Vec<Self>)> {
        let outcome = outcome.bounded();
        let result = Self::result(call, &outcome)?;
        let added = match &*outcome {
            Outcome::Returned(value) => value.content.clone(),
            Outcome::Denied(_)
            | Outcome::Failed(_)
            | Outcome::Retry(_)
            | Outcome::Unknown(_)
            | Outcome::Deferred(_) => None,
        };
        Some((result, added.into_iter().map(|content| Self::UserPrompt { content }).collect()))
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

/// Shows the kinds and lengths of the parts, never their contents (rule S2).
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
