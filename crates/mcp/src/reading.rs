//! The reading of a text as a message, on stdio and over HTTP alike (rule M6: no line and no request vanishes).
//!
//! The protocol's library has one error for everything that it cannot read. We read a message as far as we can: we repair
//! halves of characters, and find the id of a request that has other faults, so that its client gets an answer.

use std::borrow::Cow;
use std::fmt;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, CustomRequest, ErrorCode, GetPromptRequestParams,
    InitializeRequestParams, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    RequestId, SubscribeRequestParams, SubscriptionsListenRequestParams, UnsubscribeRequestParams,
};
use serde::de::{DeserializeOwned, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use countersign::args::{Args, strict_object};

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 127;
/// The text that replaces half of a character.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";
/// The only field of the result that stands for a response that cannot be read.
const UNREADABLE: &str = "countersign/unreadable";

/// The result of reading a text.
pub(crate) enum MessageReading<M> {
    Message(M),
    /// The message of another text, which is near to it.
    Repaired {
        message: M,
        text: String,
        problem: &'static str,
        what: &'static str,
    },
    Unread(UnreadMessage),
}

/// Reads a text as a message.
pub(crate) fn read<M: DeserializeOwned>(bytes: &[u8]) -> MessageReading<M> {
    let unread = |text: &str, problem| {
        MessageReading::Unread(UnreadMessage { head: MessageHead::of(text), problem })
    };
    let text = String::from_utf8_lossy(bytes);
    if let Cow::Borrowed(text) = text
        && let Ok(message) = serde_json::from_str(text)
    {
        return match ambiguity(text) {
            None => MessageReading::Message(message),
            Some(problem) => unread(text, problem),
        };
    }
    let whole = with_whole_characters(&text);
    if let Ok(message) = serde_json::from_str(&whole) {
        // Two keys may be one, now that halves of characters are repaired.
        if let Some(problem) = ambiguity(&whole) {
            return unread(&whole, problem);
        }
        let problem = "it holds halves of characters";
        let what = "is read with U+FFFD in their place";
        return MessageReading::Repaired { message, text: whole.into_owned(), problem, what };
    }
    if let Some((message, text)) = listed(&whole) {
        let problem = "tools in it are nested too deeply";
        return MessageReading::Repaired {
            message,
            text,
            problem,
            what: "is read without what is too deep",
        };
    }
    let head = MessageHead::of(&whole);
    let problem = match serde_json::from_str::<Value>(&whole) {
        // The text of such an error has a place, and nothing of the message.
        Err(error) if head.is_json => format!("it cannot be read: {error}"),
        Err(_) => "it is no JSON".to_owned(),
        Ok(_) => {
            ambiguity(&whole).filter(|_| head.is_json).unwrap_or_else(|| head.problem().to_owned())
        }
    };
    MessageReading::Unread(UnreadMessage { head, problem })
}

/// Returns `true` if a line of a server that cannot be read as a message is a text which it prints. A message is an object,
/// or a list with one, that has `jsonrpc`. A line that is nested more deeply than JSON is read, or that is no JSON and has
/// `"jsonrpc"` in it, may be a message.
pub(crate) fn is_text_of_server(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = with_whole_characters(&text);
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Array(items)) => !items.iter().any(|item| item.get("jsonrpc").is_some()),
        Ok(value) => value.get("jsonrpc").is_none(),
        Err(error) => {
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let is_deep = is_json && error.to_string().contains("recursion");
            !is_deep && !text.contains("\"jsonrpc\"")
        }
    }
}

/// The parts of a request that are read from its own text. A repeated part is an error.
#[derive(Deserialize)]
struct RequestText<'a> {
    #[serde(default, rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// The parts of the answer to a form.
#[derive(Deserialize)]
struct FormText<'a> {
    #[serde(rename = "action")]
    _action: IgnoredAny,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct ParamsText<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The reason why two readers would understand a request differently (rule T5): a key is repeated, or a number of the
/// arguments would lose digits. The protocol's library reads numbers as floats and keeps the last of two values, so
/// that a person could approve other arguments than the client has sent.
pub(crate) fn ambiguity(text: &str) -> Option<String> {
    let request: RequestText<'_> = match serde_json::from_str(text) {
        Ok(request) => request,
        Err(error) => return error.is_data().then(|| without_place(&error)),
    };
    let Some(method) = request.method else {
        return request.result.and_then(|result| ambiguity_of_form(result.get()));
    };
    let method: String = serde_json::from_str(method.get()).ok()?;
    let params = request.params.filter(|_| is_known(&method))?.get();
    // Params and arguments that are no objects are refused by the method.
    if !params.starts_with('{') {
        return None;
    }
    if let Ok(ParamsText { arguments: Some(arguments) }) = serde_json::from_str(params)
        && arguments.get().starts_with('{')
        && let Err(error) = Args::parse(arguments.get())
    {
        return Some(error.to_string());
    }
    let read = strict_object(&mut serde_json::Deserializer::from_str(params));
    read.err().map(|error| without_place(&error))
}

/// The reason why two readers would understand the answer to a form differently: one takes the first `decision`, the
/// other the last.
fn ambiguity_of_form(result: &str) -> Option<String> {
    let form: FormText<'_> = match serde_json::from_str(result) {
        Ok(form) => form,
        // It is no answer to a form, or says something twice.
        Err(error) => {
            return error.to_string().contains("duplicate").then(|| without_place(&error));
        }
    };
    let read = strict_object(&mut serde_json::Deserializer::from_str(form.content.get()));
    read.err().filter(|_| form.content.get().starts_with('{')).map(|error| without_place(&error))
}

/// The text of an error without its line and column, which are those of a part of the message.
fn without_place(error: &serde_json::Error) -> String {
    let at = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().trim_end_matches(&at).to_owned()
}

/// A message that cannot be read.
pub(crate) struct UnreadMessage {
    pub(crate) head: MessageHead,
    pub(crate) problem: String,
}

impl UnreadMessage {
    /// A response in place of this one: a result of a form that no request has.
    pub(crate) fn in_place_of_response(&self, id: &RequestId) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "result": {UNREADABLE: self.problem}})
    }

    /// The error that its sender is answered.
    pub(crate) fn refusal(&self) -> Refusal {
        let head = &self.head;
        let error = match head.method.as_deref() {
            Some(method) if head.is_request() && is_known(method) => {
                bad_params(method, &self.problem)
            }
            _ => {
                let text = format!("The message was not taken: {}. Nothing has run.", self.problem);
                ErrorData::invalid_request(text, None)
            }
        };
        Refusal { jsonrpc: "2.0", id: head.answered_id(), error }
    }
}

/// An error of JSON-RPC whose id is that of the request as it came, also where the protocol has no such ids.
#[derive(Serialize)]
pub(crate) struct Refusal {
    jsonrpc: &'static str,
    /// `null` where there is none.
    id: Option<Box<RawValue>>,
    error: ErrorData,
}

impl Refusal {
    /// The error that answers the request with this id.
    pub(crate) fn of(id: &RequestId, error: ErrorData) -> Self {
        Self { jsonrpc: "2.0", id: to_raw_value(id).ok(), error }
    }
}

/// The parts of a message by which it is known who waits for what, as far as they can be read.
#[derive(Default)]
pub(crate) struct MessageHead {
    pub(crate) id: Option<RequestId>,
    /// The id as it came, whatever it is.
    sent_id: Option<Box<RawValue>>,
    /// Its method: it is a request, or a notification.
    method: Option<String>,
    /// `true` if it has a key for a method, also where that is no text.
    requests: bool,
    /// `true` if it has a result or an error.
    pub(crate) responds: bool,
    /// `true` if it says that it is of JSON-RPC 2.0.
    is_versioned: bool,
    /// `true` if all of it is JSON, also where its values cannot be read.
    pub(crate) is_json: bool,
}

impl MessageHead {
    /// We skip values without reading them: neither their numbers nor their depth count.
    fn of(text: &str) -> Self {
        let mut head = Self::default();
        let mut json = serde_json::Deserializer::from_str(text);
        head.is_json = json.deserialize_map(&mut head).is_ok() && json.end().is_ok();
        head
    }

    /// The head of a message of which an [outline](crate::outline::Outline) was kept. Where that has its id, it is known
    /// who waits for what.
    pub(crate) fn of_outline(text: &str) -> Self {
        let mut head = Self::of(text);
        head.is_json |= head.sent_id.is_some();
        head
    }

    pub(crate) fn requests(&self) -> bool {
        self.requests
    }

    /// Tells whether it is a response, which answers a request.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_json && self.responds && !self.requests
    }

    /// Tells whether no one waits for an answer.
    pub(crate) fn notifies(&self) -> bool {
        self.is_json && self.requests && self.sent_id.is_none()
    }

    /// Tells whether it is a request but for its params.
    fn is_request(&self) -> bool {
        self.is_json && self.is_versioned && !self.responds && self.id.is_some()
    }

    /// The id of the error that answers it. A response is answered without one, as its id is not of a request.
    fn answered_id(&self) -> Option<Box<RawValue>> {
        let sent = self.sent_id.as_ref().filter(|_| self.requests || !self.responds)?;
        let is_scalar =
            sent.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        is_scalar.then(|| sent.clone())
    }

    /// The fault of a message that is JSON.
    fn problem(&self) -> &'static str {
        let is_known = self.method.as_deref().is_some_and(is_known);
        match () {
            () if !self.is_json => "it is no message of this protocol",
            () if self.sent_id.is_some() && self.id.is_none() => {
                "its `id` has to be a text or a whole number of 64 bits"
            }
            () if !self.is_versioned => "its `jsonrpc` has to be `2.0`",
            () if is_known && self.is_request() => "they have to be an object",
            () => "it is no message of this protocol",
        }
    }
}

impl<'de> Visitor<'de> for &mut MessageHead {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "id" => {
                    let id = map.next_value::<Box<RawValue>>()?;
                    self.id = serde_json::from_str(id.get()).ok();
                    self.sent_id = Some(id);
                }
                "method" => {
                    self.requests = true;
                    let method = map.next_value::<Box<RawValue>>()?;
                    self.method = serde_json::from_str(method.get()).ok();
                }
                "jsonrpc" => {
                    self.is_versioned = map.next_value::<Box<RawValue>>()?.get() == "\"2.0\"";
                }
                _ => {
                    self.responds |= key == "result" || key == "error";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads params, and says what is wrong with them.
type ReadParams = fn(Value) -> Option<String>;

fn of<T: DeserializeOwned>(params: Value) -> Option<String> {
    serde_json::from_value::<T>(params).err().map(|error| error.to_string())
}

/// The requests of clients that are known, each with its params.
#[expect(deprecated, reason = "clients of earlier revisions send `logging/setLevel`")]
const REQUESTS: [(&str, ReadParams); 14] = [
    ("completion/complete", of::<CompleteRequestParams>),
    ("initialize", of::<InitializeRequestParams>),
    ("logging/setLevel", of::<rmcp::model::SetLevelRequestParams>),
    ("ping", of::<Value>),
    ("prompts/get", of::<GetPromptRequestParams>),
    ("prompts/list", of::<PaginatedRequestParams>),
    ("resources/list", of::<PaginatedRequestParams>),
    ("resources/read", of::<ReadResourceRequestParams>),
    ("resources/subscribe", of::<SubscribeRequestParams>),
    ("resources/templates/list", of::<PaginatedRequestParams>),
    ("resources/unsubscribe", of::<UnsubscribeRequestParams>),
    ("subscriptions/listen", of::<SubscriptionsListenRequestParams>),
    ("tools/call", of::<CallToolRequestParams>),
    ("tools/list", of::<PaginatedRequestParams>),
];

/// The methods that the revision 2026-07-28 has removed.
const REMOVED: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

fn is_known(method: &str) -> bool {
    REQUESTS.iter().any(|(known, _)| *known == method)
}

fn bad_params(method: &str, problem: &str) -> ErrorData {
    let text = format!("The params of `{method}` cannot be read: {problem}. Nothing has run.");
    ErrorData::new(ErrorCode::INVALID_PARAMS, text, None)
}

/// The error for a request of a known method whose params are not its own: the library takes it for one that is not
/// known. `None` for a method that is not known.
pub(crate) fn unread_params(request: &CustomRequest) -> Option<ErrorData> {
    let (method, read) = REQUESTS.iter().find(|(known, _)| *known == request.method)?;
    let problem = match &request.params {
        None => Some("there are none".to_owned()),
        Some(params @ Value::Object(_)) => read(params.clone()),
        Some(_) => Some("they have to be an object".to_owned()),
    };
    let problem = problem.unwrap_or_else(|| "they are not of this method".to_owned());
    Some(bad_params(method, &problem))
}

/// The error for a request that the library takes for one of an unknown method, in the revision of its client.
pub(crate) fn refusal_of(request: CustomRequest, revision: Option<&ProtocolVersion>) -> ErrorData {
    let is_newest = revision.is_some_and(|it| *it >= ProtocolVersion::V_2026_07_28);
    let was_removed = is_newest && REMOVED.contains(&&*request.method);
    let unread = unread_params(&request).filter(|_| !was_removed);
    unread.unwrap_or_else(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
}

/// A list of tools without what is nested too deeply; `None` for another message.
fn listed<M: DeserializeOwned>(text: &str) -> Option<(M, String)> {
    let (pruned, was_deep) = pruned(text.as_bytes());
    let list: Value = serde_json::from_slice(&pruned).ok().filter(|_| was_deep)?;
    list.pointer("/result/tools").is_some_and(Value::is_array).then_some(())?;
    let message = serde_json::from_value(list).ok()?;
    Some((message, String::from_utf8(pruned).ok()?))
}

/// A text of JSON with `null` in place of what is nested too deeply, and whether there was any.
fn pruned(json: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(json.len());
    let (mut depth, mut is_text, mut is_escaped, mut was_deep) = (0_usize, false, false, false);
    for byte in json {
        let outside = !is_text;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if outside => depth = depth.saturating_add(1),
            b']' | b'}' if outside => {
                depth = depth.saturating_sub(1);
                if depth == MAX_DEPTH {
                    out.extend_from_slice(b"null");
                    continue;
                }
            }
            _ => {}
        }
        match depth > MAX_DEPTH {
            true => was_deep = true,
            false => out.push(*byte),
        }
    }
    (out, was_deep)
}

/// A text of JSON with U+FFFD in place of escapes that are half of a character.
///
/// A text that JavaScript has cut within an emoji ends with one: `"\ud83d"`.
fn with_whole_characters(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at.checked_add(6)?)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut copied, mut at) = (Vec::new(), 0, 0);
    // Outside of a text there is no backslash.
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|it| *it == b'\\'))
    {
        at += found;
        let next = |units: usize| at.saturating_add(6 * units);
        match (unit(at), unit(next(1))) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = next(2),
            (Some(0xD800..=0xDFFF), _) => {
                out.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
                out.extend_from_slice(REPLACEMENT);
                at = next(1);
                copied = at;
            }
            _ => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    String::from_utf8(out).map_or(Cow::Borrowed(json), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rule M6: "half of a character is read as U+FFFD".
    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else_is() {
        for (json, expected) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"x\uDE00y\uD83D\u0041"}"#, r#"{"a":"x\ufffdy\ufffd\u0041"}"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"{"\udc00":1}"#, r#"{"\ufffd":1}"#),
        ] {
            assert_eq!(with_whole_characters(json), expected);
            serde_json::from_str::<Value>(expected).unwrap();
        }
        for same in
            [r#"["\ud83d\ude00"]"#, r#"["\\ud83d"]"#, r#"["\\\\udc00\n"]"#, r#"["\u12"#, "\\"]
        {
            assert_eq!(with_whole_characters(same), same);
        }
    }

    // Rule M6: "a tool that cannot be read is not offered, and the others are".
    #[test]
    fn a_list_is_read_without_what_is_nested_too_deeply() {
        let deep = format!("{}[1]{}", r#"{"x\"]":"#.repeat(200), "}".repeat(200));
        let list = format!(
            r#"{{"id":1,"result":{{"tools":[{{"name":"a","d":{deep}}},{{"name":"b"}}]}}}}"#
        );
        let (read, _) = listed::<Value>(&list).unwrap();
        assert_eq!(read.pointer("/result/tools/1/name"), Some(&json!("b")));
        assert!(listed::<Value>(&list.replace("tools", "content")).is_none());
        assert!(listed::<Value>(r#"{"id":1,"result":{"tools":[]}}"#).is_none());
    }

    // Rule T5: two readers of an answer to a form must not understand it differently.
    #[test]
    fn an_answer_to_a_form_that_says_two_things_is_not_read() {
        let is_read = |result: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            matches!(read::<Value>(text.as_bytes()), MessageReading::Message(_))
        };
        assert!(is_read(r#"{"action":"accept","content":{"decision":"approve"}}"#));
        assert!(is_read(r#"{"action":"cancel"}"#));
        assert!(is_read(r#"{"content":[{"type":"text","text":"{}"}]}"#));
        for twice in [
            r#"{"action":"accept","content":{"decision":"deny","decision":"approve"}}"#,
            r#"{"action":"accept","content":{"decision":"approve","decision":"deny"}}"#,
            r#"{"action":"accept","content":{"decision":"deny","\u0064ecision":"approve"}}"#,
            r#"{"action":"decline","action":"accept","content":{"decision":"approve"}}"#,
            r#"{"action":"accept","content":{},"content":{"decision":"approve"}}"#,
        ] {
            assert!(!is_read(twice), "{twice}");
        }
    }

    #[test]
    fn the_head_of_a_message_is_read_where_its_values_cannot_be() {
        let head = MessageHead::of(r#"{"jsonrpc":"2.0","id":7,"result":{"x":1e400}}"#);
        assert!(head.is_json && head.responds && !head.requests());
        assert_eq!(head.id, Some(RequestId::Number(7)));
        let head = MessageHead::of(r#"{"id":"a","method":"x","params":{"y"#);
        assert!(!head.is_json && head.requests());
        assert_eq!(head.id, Some(RequestId::String("a".into())));
        assert!(MessageHead::of("[{\"id\":1}]").id.is_none());
    }
}
