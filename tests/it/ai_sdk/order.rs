//! The order of chunks that every client needs, and its effect on clients.

use std::collections::HashMap;

use serde_json::Value;

use super::client::string;

/// A response as the client got it.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) chunks: Vec<Value>,
}

impl Response {
    pub(crate) fn types(&self) -> Vec<&str> {
        self.chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
    }

    /// The texts of the model.
    pub(crate) fn text(&self) -> String {
        self.of("text-delta").iter().filter_map(|chunk| chunk["delta"].as_str()).collect()
    }

    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|chunk| chunk["type"] == kind).collect()
    }

    /// The reason why the message is complete.
    pub(crate) fn reason(&self) -> &str {
        let last = self.chunks.last().unwrap();
        last["finishReason"].as_str().unwrap_or_else(|| last["type"].as_str().unwrap())
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.chunks.last().is_some_and(|chunk| chunk["type"] == "finish")
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Streaming,
    Available,
    Asked,
    Over,
}

#[derive(Default)]
struct Order {
    step: bool,
    /// `true` if the step has a result.
    full: bool,
    text: Option<String>,
    texts: Vec<String>,
    calls: HashMap<String, Call>,
    over: bool,
}

/// Checks the order, given the message that the response continues.
pub(crate) fn check(chunks: &[Value], before: Option<&Value>) {
    let mut order = Order::default();
    let parts = before.and_then(|message| message["parts"].as_array());
    for part in parts.into_iter().flatten().filter(|part| part.get("toolCallId").is_some()) {
        let call = match part["state"].as_str().unwrap() {
            state if state.starts_with("output-") => Call::Over,
            "input-streaming" => Call::Streaming,
            _ => Call::Available,
        };
        order.calls.insert(string(&part["toolCallId"]), call);
    }
    for (at, chunk) in chunks.iter().enumerate() {
        no_nulls(chunk);
        if let Err(problem) = order.next(chunk, at == 0) {
            panic!("{problem}, at chunk {at}: {chunk}\n{chunks:#?}");
        }
    }
    assert!(order.over, "no end: {chunks:#?}");
}

impl Order {
    fn next(&mut self, chunk: &Value, first: bool) -> Result<(), &'static str> {
        let kind = chunk["type"].as_str().unwrap();
        require(!self.over, "behind the end")?;
        require((kind == "start") == first, "the first chunk is `start`")?;
        match kind {
            "start-step" => {
                require(!self.step, "a step in a step")?;
                (self.step, self.full) = (true, false);
            }
            "finish-step" => {
                require(self.step && self.text.is_none(), "no step, or a text in it")?;
                self.nothing_streams()?;
                self.step = false;
            }
            "text-start" | "text-delta" | "text-end" => self.text(kind, string(&chunk["id"]))?,
            "finish" => {
                require(!self.step && self.text.is_none(), "a step or a text is open")?;
                self.nothing_streams()?;
                self.over = true;
            }
            "error" | "abort" => {
                require(self.text.is_none(), "a text is open")?;
                self.nothing_streams()?;
                self.over = true;
            }
            _ if kind.starts_with("tool-") => {
                self.call(kind, &string(&chunk["toolCallId"]))?;
            }
            _ => require(kind == "start" || kind.starts_with("data-"), "not for every client")?,
        }
        Ok(())
    }

    fn text(&mut self, kind: &str, id: String) -> Result<(), &'static str> {
        require(self.step, "outside of a step")?;
        require(!self.full, "behind a result in its step")?;
        match kind {
            "text-start" => {
                require(self.text.is_none(), "a text in a text")?;
                require(!self.texts.contains(&id), "the id of an earlier text")?;
                self.texts.push(id.clone());
                self.text = Some(id);
            }
            _ => require(self.text.as_ref() == Some(&id), "of a text that is not open")?,
        }
        if kind == "text-end" {
            self.text = None;
        }
        Ok(())
    }

    fn call(&mut self, kind: &str, id: &str) -> Result<(), &'static str> {
        require(self.text.is_none(), "a call in a text")?;
        let call = self.calls.get(id).copied();
        let next = match kind {
            "tool-input-start" => {
                require(self.step, "outside of a step")?;
                require(call.is_none(), "the id of an earlier call")?;
                Call::Streaming
            }
            "tool-input-delta" | "tool-input-available" => {
                require(call == Some(Call::Streaming), "of a call that was not announced")?;
                if kind == "tool-input-delta" { Call::Streaming } else { Call::Available }
            }
            "tool-approval-request" => {
                require(call == Some(Call::Available), "of a call that was not shown, or is over")?;
                Call::Asked
            }
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                let known = matches!(call, Some(Call::Available | Call::Asked));
                require(known, "a result of a call that was not shown, or has one")?;
                self.full |= self.step;
                Call::Over
            }
            _ => return Err("not for every client"),
        };
        self.calls.insert(id.to_owned(), next);
        Ok(())
    }

    fn nothing_streams(&self) -> Result<(), &'static str> {
        let streams = self.calls.values().any(|call| *call == Call::Streaming);
        require(!streams, "arguments are unfinished")
    }
}

fn require(holds: bool, problem: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(problem) }
}

/// No field of a chunk is `null`, but what tools take and give.
fn no_nulls(chunk: &Value) {
    for (key, value) in chunk.as_object().unwrap() {
        let free = matches!(key.as_str(), "input" | "output" | "data");
        assert!(free || !value.is_null(), "`{key}` is null: {chunk}");
    }
}

/// Returns whether clients send by themselves now: because all of the last step is answered, or because it has all
/// results. Both predicates are the ones of the oldest clients.
fn sends(message: &Value) -> (bool, bool) {
    let parts = message["parts"].as_array().unwrap();
    let step = parts.iter().rposition(|part| part["type"] == "step-start").unwrap_or_default();
    let tools = parts[step..].iter().filter(|part| part.get("toolCallId").is_some());
    let states: Vec<_> = tools.map(|part| part["state"].as_str().unwrap()).collect();
    let over = |state: &&str| matches!(*state, "output-available" | "output-error");
    let answered = |state: &&str| *state == "approval-responded";
    let all = states.iter().all(|state| over(state) || answered(state));
    (states.iter().any(answered) && all, !states.is_empty() && states.iter().all(over))
}

/// The user has answered so much that the client sends it.
pub(crate) fn sends_answers(message: &Value) -> bool {
    sends(message).0
}

/// Nothing makes a client send again by itself.
pub(crate) fn does_not_loop(message: &Value) {
    assert_eq!(sends(message), (false, false), "clients send again and again: {message:#}");
}

/// Every call has its outcome when the message is complete; an answer is held only while other calls wait.
pub(crate) fn is_settled(message: &Value, reason: &str) {
    let parts = message["parts"].as_array().unwrap().iter();
    let states: Vec<_> =
        parts.filter_map(|part| part.get("toolCallId").and(part["state"].as_str())).collect();
    let waits = states.iter().any(|it| matches!(*it, "approval-requested" | "input-available"));
    let over = states.iter().all(|it| it.starts_with("output-"));
    assert!(over || waits && reason == "tool-calls", "{reason}: {message:#}");
}
