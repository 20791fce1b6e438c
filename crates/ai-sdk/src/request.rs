//! The requests that a client posts.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::grant::ChosenGrant;
use super::message::{Role, UiMessage};
use super::rejection::Rejection;
use countersign::args::{Args, strict_object, without_value};

/// The longest id of a chat or a message, in bytes.
///
/// Ids are keys of the store, and are chosen by the client.
const LONGEST_ID: usize = 256;

/// The request that `useChat` posts: the id of the chat, its messages or only the last one, and the trigger.
///
/// Fields that an application adds are in [`rest`](Self::rest).
///
/// ```
/// use countersign_ai_sdk::ChatRequest;
///
/// let body = br#"{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hi"}]}]}"#;
/// let request = ChatRequest::read(body)?;
/// assert_eq!(request.messages[0].text(), "Hi");
/// # Ok::<(), countersign_ai_sdk::Rejection>(())
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The id of the chat: 1 to 256 bytes.
    pub id: String,
    /// The messages as the client has them, or only the last one. [`Chats`](super::Chats) reads the one that the
    /// request is about, and executes nothing of it.
    pub messages: Vec<UiMessage>,
    /// The user's action that caused the request.
    pub trigger: Trigger,
    /// The id of the message that the request is about: a message of the assistant to continue, or a message of the
    /// user that was edited.
    pub message_id: Option<String>,
    /// Arguments to run instead of the ones that were shown, by approval id: `overrideArgs`. The AI SDK has no such
    /// field, as it has no edits.
    pub override_args: BTreeMap<String, Args>,
    /// Grants to make with approvals, by approval id: `approvalGrants`. Only a page that shows the offers of
    /// `data-approval` has this field.
    pub approval_grants: BTreeMap<String, ChosenGrant>,
    /// The fields that the application adds.
    pub rest: Map<String, Value>,
}

/// The user's action that caused a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Trigger {
    /// Submitted a message, or answered pending calls.
    #[default]
    SubmitMessage,
    /// Asked for another response in place of the last one.
    RegenerateMessage,
}

impl ChatRequest {
    /// Reads the body of a request, which is strict JSON: no object may have a key twice, as two readers would keep
    /// different values.
    ///
    /// # Errors
    /// [`Rejection`] with status 400 for a body that is not such JSON, lacks a field, or has an id that is empty or
    /// longer than 256 bytes.
    ///
    /// ```
    /// use countersign_ai_sdk::ChatRequest;
    ///
    /// // Two readers would disagree about which id this is.
    /// let twice = br#"{"id":"c1","id":"c2","messages":[]}"#;
    /// assert_eq!(ChatRequest::read(twice).err().map(|rejection| rejection.status), Some(400));
    /// ```
    pub fn read(body: &[u8]) -> Result<Self, Rejection> {
        let mut json = serde_json::Deserializer::from_slice(body);
        let mut body = strict_object(&mut json).map_err(|error| malformed(&error))?;
        json.end().map_err(|error| malformed(&error))?;
        let mut messages: Vec<UiMessage> = take(&mut body, "messages")?;
        if let Some(last) = take::<Option<UiMessage>>(&mut body, "message")? {
            messages.push(last);
        }
        let request = Self {
            id: take(&mut body, "id")?,
            messages,
            trigger: take::<Option<_>>(&mut body, "trigger")?.unwrap_or_default(),
            message_id: take(&mut body, "messageId")?,
            override_args: take(&mut body, "overrideArgs")?,
            approval_grants: take(&mut body, "approvalGrants")?,
            rest: body,
        };
        let ids = request.messages.iter().map(|message| &message.id).chain(&request.message_id);
        if ids.chain([&request.id]).any(|id| id.is_empty() || id.len() > LONGEST_ID) {
            return Err(Rejection::bad_request(format!(
                "an `id` is missing or empty, or longer than {LONGEST_ID} bytes"
            )));
        }
        Ok(request)
    }

    /// The message that the request is about: the message of the assistant that it names, which need not be the last
    /// one, or else the last message.
    pub(super) fn subject(&self) -> Result<&UiMessage, Rejection> {
        let named = |message: &&UiMessage| {
            message.role == Role::Assistant && Some(&message.id) == self.message_id.as_ref()
        };
        let subject = self.messages.iter().find(named).or(self.messages.last());
        subject.ok_or_else(|| {
            Rejection::bad_request("there is no message: post `messages`, or `message`")
        })
    }
}

impl fmt::Debug for ChatRequest {
    /// Of the fields that the application adds only the names are shown, not the values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("id", &self.id)
            .field("messages", &self.messages)
            .field("trigger", &self.trigger)
            .field("message_id", &self.message_id)
            .field("override_args", &self.override_args)
            .field("approval_grants", &self.approval_grants)
            .field("rest", &self.rest.keys())
            .finish()
    }
}

fn take<T: serde::de::DeserializeOwned + Default>(
    body: &mut Map<String, Value>,
    key: &str,
) -> Result<T, Rejection> {
    let Some(value) = body.remove(key) else { return Ok(T::default()) };
    serde_json::from_value(value).map_err(|error| {
        let problem = without_value(&error.to_string());
        Rejection::bad_request(format!("the body is not what a chat posts: `{key}`: {problem}"))
    })
}

fn malformed(error: &serde_json::Error) -> Rejection {
    Rejection::bad_request(format!("the body is not what a chat posts: {error}"))
}
