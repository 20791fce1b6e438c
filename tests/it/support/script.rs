//! A model that replays scripted responses and records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use countersign::message::{RequestPart, ReturnKind};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{BoxError, Message, Model, ToolCall};
use serde_json::Value;

/// A model with a script. A request beyond its end is an error.
#[derive(Clone, Default)]
pub(crate) struct Script {
    says: Arc<Mutex<VecDeque<ModelResponse>>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// One request to the model.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<String>,
}

impl Script {
    /// A script that makes these calls in one response, and then answers "done".
    pub(crate) fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::default().then(ModelResponse::calls(calls)).then(ModelResponse::text("done"))
    }

    pub(crate) fn then(self, says: ModelResponse) -> Self {
        self.says.lock().unwrap().push_back(says);
        self
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Model for Script {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let tools = request.tools().iter().map(|tool| tool.name().to_owned()).collect();
        self.heard.lock().unwrap().push(Heard { messages: request.messages().to_vec(), tools });
        Ok(self.says.lock().unwrap().pop_front().ok_or("the script is at its end")?)
    }
}

/// The results in the last request of a history, in order: call id, kind and content.
pub(crate) fn results(history: &[Message]) -> Vec<(String, ReturnKind, Value)> {
    let parts = history.iter().rev().find_map(|message| match message {
        Message::Request { parts } => Some(parts),
        _ => None,
    });
    let result = |part: &RequestPart| match part {
        RequestPart::ToolReturn { tool_call_id, outcome, content, .. } => {
            Some((tool_call_id.clone(), *outcome, content.clone()))
        }
        _ => None,
    };
    parts.into_iter().flatten().filter_map(result).collect()
}

/// A model with a script, which may end with an error. A request beyond its end is answered "done".
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    responses: Arc<Mutex<VecDeque<Result<ModelResponse, String>>>>,
    seen: Arc<Mutex<Vec<Vec<Message>>>>,
}

impl Scripted {
    pub(crate) fn new(responses: impl IntoIterator<Item = ModelResponse>) -> Self {
        let responses = responses.into_iter().map(Ok).collect();
        Self { responses: Arc::new(Mutex::new(responses)), ..Self::default() }
    }

    pub(crate) fn then_fails(self) -> Self {
        self.responses.lock().unwrap().push_back(Err("the line is dead".into()));
        self
    }

    pub(crate) fn last_seen(&self) -> Vec<Message> {
        self.seen.lock().unwrap().last().cloned().unwrap_or_default()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Model for Scripted {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.seen.lock().unwrap().push(request.messages().to_vec());
        let next = self.responses.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Ok(ModelResponse::text("done"))).map_err(Into::into)
    }
}
