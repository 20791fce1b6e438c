//! A client like `useChat`: it stores messages, makes parts of chunks, answers, and posts all messages again.

use std::collections::HashMap;

use countersign_ai_sdk::{Chats, DONE, Events, KEEP_ALIVE, Principal, Rejection};
use serde_json::{Value, json};

use super::order::{self, Response};

/// A browser with one chat.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) chats: Chats,
    pub(crate) principal: Principal,
    pub(crate) chat: String,
    pub(crate) messages: Vec<Value>,
    /// The parts with approval requests.
    pub(crate) asks: HashMap<String, String>,
    /// The message that is being streamed.
    pub(crate) message: Value,
    /// `true` if the client keeps an answer that did not count.
    pub(crate) differs: bool,
    pub(crate) users: usize,
}

impl Client {
    pub(crate) fn new(chats: Chats, principal: Principal, chat: &str) -> Self {
        let (chat, messages) = (chat.to_owned(), Vec::new());
        let (asks, message, differs) = (HashMap::new(), Value::Null, false);
        Self { chats, principal, chat, messages, asks, message, differs, users: 0 }
    }

    /// Adds a message of the user.
    pub(crate) fn write(&mut self, text: &str) -> &mut Self {
        self.users += 1;
        let parts = json!([{"type": "text", "text": text}]);
        let id = format!("{}-{}-u{}", self.principal, self.chat, self.users);
        self.messages.push(json!({"id": id, "role": "user", "parts": parts}));
        self
    }

    /// Sends a message of the user.
    pub(crate) async fn say(&mut self, text: &str) -> Response {
        self.write(text);
        self.send().await
    }

    /// The body that `useChat` posts now.
    pub(crate) fn body(&self) -> Value {
        let mut body =
            json!({"id": self.chat, "messages": self.messages, "trigger": "submit-message"});
        if let Some(last) = self.last().filter(|last| last["role"] == "assistant") {
            body["messageId"] = last["id"].clone();
        }
        body
    }

    /// Posts the messages, and reads the response.
    pub(crate) async fn send(&mut self) -> Response {
        self.post(&self.body()).await.unwrap()
    }

    /// Posts this body, and reads the response.
    pub(crate) async fn post(&mut self, body: &Value) -> Result<Response, Rejection> {
        let events = self.post_events(body).await?;
        Ok(self.take(events).await)
    }

    pub(crate) async fn post_events(&self, body: &Value) -> Result<Events, Rejection> {
        self.chats.post(&self.principal, body.to_string().as_bytes()).await
    }

    /// Reads a whole response, checks its order, and compares the resulting message with the server's.
    pub(crate) async fn take(&mut self, events: Events) -> Response {
        let chunks = chunks(events).await;
        let id = chunks[0]["messageId"].clone();
        let before = self.messages.iter().find(|message| message["id"] == id).cloned();
        order::check(&chunks, before.as_ref());
        chunks.iter().for_each(|chunk| self.apply(chunk));
        self.note_asks(&chunks);
        let response = Response { chunks };
        if response.is_whole() {
            if !self.differs {
                self.compare(&id).await;
            }
            order::does_not_loop(self.message(&id));
            order::is_settled(self.message(&id), response.reason());
        }
        response
    }

    /// Checks that each ask has an id of its own, of 128 bits, which stays the same in a replay.
    fn note_asks(&mut self, chunks: &[Value]) {
        for chunk in chunks.iter().filter(|chunk| chunk["type"] == "tool-approval-request") {
            let (id, part) = (string(&chunk["approvalId"]), string(&chunk["toolCallId"]));
            let bits = id.strip_prefix("ask-").unwrap_or_default();
            assert!(bits.len() == 32 && bits.chars().all(|it| it.is_ascii_hexdigit()), "{id}");
            let before = self.asks.insert(id.clone(), part.clone());
            assert!(before.is_none_or(|before| before == part), "{id} is asked about two parts");
        }
    }

    /// The messages of the chat as the server keeps them; none for a chat that the client keeps.
    pub(crate) async fn at_the_server(&self) -> Vec<Value> {
        let server = self.chats.messages(&self.principal, &self.chat).await.unwrap();
        let messages = server.into_iter().flatten();
        messages.map(|message| serde_json::to_value(message).unwrap()).collect()
    }

    /// The server has the same messages.
    async fn compare(&self, id: &Value) {
        let server = self.at_the_server().await;
        if server.is_empty() {
            return;
        }
        let ours = server.iter().find(|message| message["id"] == *id);
        assert_eq!(plain(ours.unwrap()), plain(self.message(id)), "the server's, and the client's");
    }

    /// Applies a chunk as clients do.
    pub(crate) fn apply(&mut self, chunk: &Value) {
        if chunk["type"] == "start" {
            let id = &chunk["messageId"];
            if !self.messages.iter().any(|message| message["id"] == *id) {
                self.messages.push(json!({"id": id, "role": "assistant", "parts": []}));
            }
            self.message.clone_from(id);
            return;
        }
        let message = self.messages.iter_mut().find(|it| it["id"] == self.message).unwrap();
        reduce(message["parts"].as_array_mut().unwrap(), chunk);
    }

    pub(crate) fn last(&self) -> Option<&Value> {
        self.messages.last()
    }

    pub(crate) fn message(&self, id: &Value) -> &Value {
        self.messages.iter().find(|message| message["id"] == *id).unwrap()
    }

    /// The tool parts of the last message.
    pub(crate) fn tools(&self) -> Vec<&Value> {
        let parts = self.last().and_then(|last| last["parts"].as_array());
        parts.into_iter().flatten().filter(|part| part.get("toolCallId").is_some()).collect()
    }

    /// The states of the calls of the last message.
    pub(crate) fn states(&self) -> Vec<&str> {
        self.tools().iter().map(|part| part["state"].as_str().unwrap()).collect()
    }

    /// The ids of the pending approvals, in order.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let asked = |part: &&&Value| part["state"] == "approval-requested";
        self.tools().iter().filter(asked).map(|part| string(&part["approval"]["id"])).collect()
    }

    /// The data parts about asks of the last message.
    pub(crate) fn shown(&self) -> Vec<Value> {
        let parts = self.last().unwrap()["parts"].as_array().unwrap();
        let data = parts.iter().filter(|part| part["type"] == "data-approval");
        data.map(|part| part["data"].clone()).collect()
    }

    /// Answers the pending approval with this index, in the client's copy only.
    pub(crate) fn note(
        &mut self,
        approval: &str,
        approved: bool,
        reason: Option<&str>,
    ) -> &mut Self {
        let parts = self.messages.iter_mut().flat_map(|it| it["parts"].as_array_mut().unwrap());
        let part = parts.into_iter().find(|part| part["approval"]["id"] == approval).unwrap();
        part["state"] = "approval-responded".into();
        part["approval"]["approved"] = approved.into();
        if let Some(reason) = reason {
            part["approval"]["reason"] = reason.into();
        }
        self
    }

    /// Answers all pending approvals in one request.
    pub(crate) async fn answer(&mut self, approved: bool) -> Response {
        let waiting = self.waiting();
        assert!(!waiting.is_empty(), "no call is pending");
        for id in &waiting {
            self.note(id, approved, None);
        }
        self.send().await
    }

    /// Gives the result of a call that the client executes, in the client's copy only.
    pub(crate) fn output(&mut self, output: &Value) -> &mut Self {
        let last = self.messages.last_mut().unwrap();
        let parts = last["parts"].as_array_mut().unwrap();
        let waits = |part: &&mut Value| part["state"] == "input-available";
        let part = parts.iter_mut().find(waits).unwrap();
        (part["state"], part["output"]) = ("output-available".into(), output.clone());
        self
    }

    /// Asks for another response, as `regenerate()` does.
    pub(crate) async fn regenerate(&mut self) -> Response {
        let last = self.messages.pop().unwrap();
        assert_eq!(last["role"], "assistant");
        let mut body = self.body();
        (body["trigger"], body["messageId"]) = ("regenerate-message".into(), last["id"].clone());
        self.post(&body).await.unwrap()
    }
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

/// The chunks of a whole response; each event is one line of JSON, and the last one marks the end.
pub(crate) async fn chunks(mut events: Events) -> Vec<Value> {
    let mut chunks = Vec::new();
    let mut last = Vec::new();
    while let Some(event) = events.next().await {
        last = event.to_vec();
        let text = std::str::from_utf8(&event).unwrap();
        if text == KEEP_ALIVE || text == DONE {
            continue;
        }
        let json = text.strip_prefix("data: ").and_then(|text| text.strip_suffix("\n\n"));
        let json = json.unwrap_or_else(|| panic!("{text:?}"));
        assert!(!json.contains('\n'), "{json:?}");
        chunks.push(serde_json::from_str(json).unwrap());
    }
    assert_eq!(last, DONE.as_bytes());
    chunks
}

fn reduce(parts: &mut Vec<Value>, chunk: &Value) {
    let kind = chunk["type"].as_str().unwrap();
    match kind {
        "start-step" => parts.push(json!({"type": "step-start"})),
        "text-start" => parts.push(json!({"type": "text", "text": "", "state": "streaming"})),
        "text-delta" | "text-end" => {
            let open = |part: &&mut Value| part["type"] == "text" && part["state"] == "streaming";
            let part = parts.iter_mut().rev().find(open).unwrap();
            match kind {
                "text-end" => part["state"] = "done".into(),
                _ => part["text"] = (string(&part["text"]) + &string(&chunk["delta"])).into(),
            }
        }
        "tool-input-start" => {
            let name = string(&chunk["toolName"]);
            let mut part = json!({"type": format!("tool-{name}"), "state": "input-streaming"});
            if chunk["dynamic"] == true {
                (part["type"], part["toolName"]) = ("dynamic-tool".into(), name.into());
            }
            part["toolCallId"] = chunk["toolCallId"].clone();
            parts.push(part);
        }
        _ if kind.starts_with("data-") => {
            let same = |it: &&mut Value| it["type"] == kind && it["id"] == chunk["id"];
            match parts.iter_mut().find(same) {
                Some(part) => *part = chunk.clone(),
                None => parts.push(chunk.clone()),
            }
        }
        _ if chunk.get("toolCallId").is_some() => {
            let same = |part: &&mut Value| part["toolCallId"] == chunk["toolCallId"];
            tool(parts.iter_mut().find(same).unwrap(), kind, chunk);
        }
        _ => {}
    }
}

fn tool(part: &mut Value, kind: &str, chunk: &Value) {
    let state = match kind {
        "tool-input-available" => {
            part["input"] = chunk["input"].clone();
            "input-available"
        }
        "tool-approval-request" => {
            part["approval"] = json!({"id": chunk["approvalId"]});
            "approval-requested"
        }
        "tool-output-available" => {
            part["output"] = chunk["output"].clone();
            "output-available"
        }
        "tool-output-error" => {
            part["errorText"] = chunk["errorText"].clone();
            "output-error"
        }
        "tool-output-denied" => "output-denied",
        _ => return,
    };
    part["state"] = state.into();
}

/// A message without data that only one side has: reasons of answers, answers that did not count, and steps of replays.
fn plain(message: &Value) -> Value {
    let mut message = message.clone();
    message["parts"].as_array_mut().unwrap().retain(|part| part["type"] != "step-start");
    for part in message["parts"].as_array_mut().unwrap() {
        let failed = part["state"] == "output-error";
        if let Some(approval) = part.get_mut("approval").and_then(Value::as_object_mut) {
            approval.retain(|key, _| key == "id" || key == "approved" && !failed);
        }
        // A call that has its result without an answer of the client's is kept without the question.
        if failed || part["state"] == "output-available" && part["approval"]["approved"].is_null() {
            part.as_object_mut().unwrap().remove("approval");
        }
    }
    message
}
