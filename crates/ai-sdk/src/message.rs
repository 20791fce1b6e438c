//! UI messages, as a client shows them and posts them back.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// One message of a chat, as a client shows it and posts it back.
///
/// ```
/// use countersign_ai_sdk::UiMessage;
///
/// let message: UiMessage = serde_json::from_str(r#"{"id": "m1", "role": "assistant", "parts": [
///     {"type": "text", "text": "Let me look."},
///     {"type": "tool-search", "toolCallId": "c1", "state": "output-available", "input": {"for": "tower"}, "output": 3}
/// ]}"#)?;
/// assert_eq!(message.text(), "Let me look.");
/// assert!(message.tools().all(|call| call.tool_name == "search" && call.is_over()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UiMessage {
    /// The id of the message, which is the same at the server and the client.
    pub id: String,
    /// The author: the application, the user or the model.
    pub role: Role,
    /// Metadata that the application adds, of any shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The parts, in the order in which they are shown.
    pub parts: Vec<UiPart>,
}

/// The author of a message, as the AI SDK names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The application: the message has instructions for the model.
    System,
    /// The person in front of the client.
    User,
    /// The model: the message has its texts and tool calls.
    Assistant,
}

/// One part of a message. Parts that are neither text, step nor tool call are kept as they are.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum UiPart {
    /// A text of the user or the model.
    Text {
        /// The text, or as much of it as has been streamed.
        text: String,
        /// `true` if the text is not complete yet.
        streaming: bool,
    },
    /// The start of a step: the parts of one response of the model follow.
    StepStart,
    /// A tool call with its state.
    Tool(Box<ToolPart>),
    /// Any other part: `data-…`, `file`, `reasoning`, `source-url`, and what later versions add.
    Other(Map<String, Value>),
}

/// A tool call in a message, with its arguments, its approval and its outcome.
///
/// We read it leniently where a later version may add something (`rest`), and strictly where a decision depends
/// on it: `approved` is a boolean or absent, and we refuse `"true"`.
///
/// ```
/// use countersign_ai_sdk::UiMessage;
///
/// let part = |approved: &str| {
///     let text = r#"{"id": "m1", "role": "assistant", "parts": [{"type": "tool-pay", "toolCallId": "c1",
///         "state": "approval-responded", "input": {}, "approval": {"id": "ask-1", "approved": APPROVED}}]}"#;
///     serde_json::from_str::<UiMessage>(&text.replace("APPROVED", approved))
/// };
/// assert!(part("true").is_ok() && part("\"true\"").is_err() && part("1").is_err());
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolPart {
    /// The id of the call. A call that is asked about again has a second part, with a number behind the id: `c1#2`.
    pub tool_call_id: String,
    /// The name of the tool that is called.
    pub tool_name: String,
    /// `true` if the type of the part is `dynamic-tool`, which a page shows without knowing the tool.
    pub dynamic: bool,
    /// The state of the call, as the AI SDK names it: `input-streaming`, `input-available`, `approval-requested`,
    /// `approval-responded`, `output-available`, `output-error` or `output-denied`.
    pub state: String,
    /// The arguments of the call; `None` until they are known.
    pub input: Option<Value>,
    /// The result of the call, in the state `output-available`.
    pub output: Option<Value>,
    /// The error of the call, in the state `output-error`.
    pub error_text: Option<String>,
    /// The approval that the user is asked for, with the answer.
    pub approval: Option<PartApproval>,
    /// Fields that this version does not know.
    pub rest: Map<String, Value>,
}

/// The approval of a call that the user is asked for, with the answer.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PartApproval {
    /// The id of the approval, which the answer carries back.
    pub id: String,
    /// The answer; `None` until the user has answered. Any JSON value but a boolean is refused.
    pub approved: Option<bool>,
    /// The reason that the user gives for the answer.
    pub reason: Option<String>,
    /// Fields that this version does not know.
    pub rest: Map<String, Value>,
}

impl UiMessage {
    /// A message without parts or metadata.
    ///
    /// ```
    /// use countersign_ai_sdk::{Role, UiMessage};
    /// let message = UiMessage::new("m1", Role::User);
    /// assert!(message.text().is_empty() && message.tools().next().is_none());
    /// ```
    #[must_use]
    pub fn new(id: impl Into<String>, role: Role) -> Self {
        Self { id: id.into(), role, metadata: None, parts: Vec::new() }
    }

    /// The text parts of the message, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            UiPart::Text { text, .. } => Some(text.as_str()),
            UiPart::StepStart | UiPart::Tool(_) | UiPart::Other(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The tool calls of the message, in order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolPart> {
        self.parts.iter().filter_map(UiPart::tool)
    }

    /// The tool call with this id.
    pub(super) fn tool(&self, id: &str) -> Option<&ToolPart> {
        self.tools().find(|tool| tool.tool_call_id == id)
    }

    pub(super) fn tool_mut(&mut self, id: &str) -> Option<&mut ToolPart> {
        self.tools_mut().find(|tool| tool.tool_call_id == id)
    }

    pub(super) fn tools_mut(&mut self) -> impl Iterator<Item = &mut ToolPart> {
        self.parts.iter_mut().filter_map(|part| match part {
            UiPart::Tool(tool) => Some(&mut **tool),
            UiPart::Text { .. } | UiPart::StepStart | UiPart::Other(_) => None,
        })
    }
}

impl UiPart {
    pub(super) fn tool(&self) -> Option<&ToolPart> {
        match self {
            Self::Tool(tool) => Some(tool),
            Self::Text { .. } | Self::StepStart | Self::Other(_) => None,
        }
    }

    /// The type of the part on the wire; `tool` for every tool call, whose type also has the tool's name.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Text { .. } => "text",
            Self::StepStart => "step-start",
            Self::Tool(_) => "tool",
            Self::Other(part) => part.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

impl ToolPart {
    pub(super) fn new(id: &str, tool: &str, dynamic: Option<bool>, state: &str) -> Self {
        Self {
            tool_call_id: id.to_owned(),
            tool_name: tool.to_owned(),
            dynamic: dynamic.unwrap_or_default(),
            state: state.to_owned(),
            input: None,
            output: None,
            error_text: None,
            approval: None,
            rest: Map::new(),
        }
    }

    /// Returns `true` if the call has its outcome: a result, an error or a denial.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "output-available" | "output-error" | "output-denied")
    }
}

impl Serialize for UiPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            part.extend(value.map(|value| (key.to_owned(), value)));
        };
        match self {
            Self::Text { text, streaming } => {
                put("type", Some("text".into()));
                put("text", Some(text.as_str().into()));
                put("state", Some(if *streaming { "streaming" } else { "done" }.into()));
            }
            Self::StepStart => put("type", Some("step-start".into())),
            Self::Tool(tool) => {
                put("type", Some(tool.kind().into()));
                put("toolName", tool.dynamic.then(|| tool.tool_name.as_str().into()));
                put("toolCallId", Some(tool.tool_call_id.as_str().into()));
                put("state", Some(tool.state.as_str().into()));
                put("input", tool.input.clone());
                put("output", tool.output.clone());
                put("errorText", tool.error_text.clone().map(Value::from));
                put("approval", tool.approval.as_ref().map(PartApproval::to_value));
                part.extend(tool.rest.clone());
            }
            Self::Other(other) => part.clone_from(other),
        }
        part.serialize(serializer)
    }
}

impl ToolPart {
    fn kind(&self) -> String {
        if self.dynamic { "dynamic-tool".to_owned() } else { format!("tool-{}", self.tool_name) }
    }
}

impl<'de> Deserialize<'de> for UiPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut part = Map::deserialize(deserializer)?;
        let kind =
            text(&mut part, "type").ok_or_else(|| D::Error::custom("a part has no `type`"))?;
        match kind.as_str() {
            "text" => {
                let streaming = part.get("state").is_some_and(|state| state == "streaming");
                let text = text(&mut part, "text").ok_or_else(|| missing::<D>(&kind, "text"))?;
                Ok(Self::Text { text, streaming })
            }
            "step-start" => Ok(Self::StepStart),
            "dynamic-tool" => {
                let name = text(&mut part, "toolName");
                let name = name.ok_or_else(|| missing::<D>(&kind, "toolName"))?;
                tool::<D>(&kind, name, true, part)
            }
            _ => match kind.strip_prefix("tool-") {
                Some(name) => tool::<D>(&kind, name.to_owned(), false, part),
                None => {
                    part.insert("type".to_owned(), kind.into());
                    Ok(Self::Other(part))
                }
            },
        }
    }
}

fn tool<'de, D: Deserializer<'de>>(
    kind: &str,
    tool_name: String,
    dynamic: bool,
    mut part: Map<String, Value>,
) -> Result<UiPart, D::Error> {
    let tool_call_id = text(&mut part, "toolCallId");
    let state = text(&mut part, "state");
    let approval = part.remove("approval").map(PartApproval::read).transpose();
    Ok(UiPart::Tool(Box::new(ToolPart {
        tool_call_id: tool_call_id.ok_or_else(|| missing::<D>(kind, "toolCallId"))?,
        tool_name,
        dynamic,
        state: state.ok_or_else(|| missing::<D>(kind, "state"))?,
        input: part.remove("input"),
        output: part.remove("output"),
        error_text: text(&mut part, "errorText"),
        approval: approval.map_err(D::Error::custom)?,
        rest: part,
    })))
}

impl PartApproval {
    fn to_value(&self) -> Value {
        let mut value = self.rest.clone();
        value.insert("id".to_owned(), self.id.as_str().into());
        value.extend(self.approved.map(|approved| ("approved".to_owned(), approved.into())));
        value.extend(self.reason.as_ref().map(|it| ("reason".to_owned(), it.as_str().into())));
        value.into()
    }

    fn read(value: Value) -> Result<Self, &'static str> {
        let Value::Object(mut rest) = value else {
            return Err("`approval` of a part is no object");
        };
        let id = text(&mut rest, "id").ok_or("`approval` of a part has no text `id`")?;
        let approved = match rest.remove("approved") {
            Some(Value::Bool(approved)) => Some(approved),
            Some(_) => return Err("`approved` of an approval is neither true nor false"),
            None => None,
        };
        Ok(Self { id, approved, reason: text(&mut rest, "reason"), rest })
    }
}

fn text(part: &mut Map<String, Value>, key: &str) -> Option<String> {
    match part.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn missing<'de, D: Deserializer<'de>>(kind: &str, key: &str) -> D::Error {
    D::Error::custom(format_args!("a part of type `{}` has no text `{key}`", kind.escape_debug()))
}

impl fmt::Debug for UiMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiMessage")
            .field("id", &self.id)
            .field("role", &self.role)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UiPart {
    /// Kinds and lengths, not contents (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, .. } => write!(f, "Text({} bytes)", text.len()),
            Self::StepStart => f.write_str("StepStart"),
            Self::Tool(tool) => tool.fmt(f),
            Self::Other(_) => write!(f, "Other({})", self.kind().escape_debug()),
        }
    }
}

impl fmt::Debug for ToolPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolPart")
            .field("tool_call_id", &self.tool_call_id)
            .field("tool_name", &self.tool_name)
            .field("state", &self.state)
            .field("approval", &self.approval)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PartApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartApproval({}, {:?})", self.id.escape_debug(), self.approved)
    }
}
