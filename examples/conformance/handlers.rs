//! Scripted handlers, and the answers of scenarios.

use std::borrow::Cow;

use countersign::deferred::{CallResult, ToolApproval, ToolApproved};
use countersign::handler::HandlerChain;
use countersign::outcome::{ModelRetry, ToolDenied, ToolFailed};
use countersign::{
    BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext, ToolCall,
};
use serde_json::{Value, json};

use crate::log::{Log, shown};
use crate::scenario::{Answers, Approval, Handler, Leave, Reply};

/// A handler that answers as its scenario says.
struct Scripted {
    /// Distinguishes the handler from those of the agent and of other runs.
    whose: String,
    index: usize,
    handler: Handler,
    log: Log,
}

/// These handlers in a row, each asked about what the ones before it leave.
pub(crate) fn chain(whose: &str, handlers: &[Handler], log: &Log) -> HandlerChain {
    let scripted = |(index, handler): (usize, &Handler)| Scripted {
        whose: whose.to_owned(),
        index,
        handler: handler.clone(),
        log: log.clone(),
    };
    handlers.iter().enumerate().map(scripted).fold(HandlerChain::new(), HandlerChain::with)
}

impl DeferredToolHandler for Scripted {
    fn name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("handler {}", self.index))
    }

    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut seen = self.log.lock();
        let mut entry = shown(requests);
        entry["handler"] = json!(self.index);
        seen.handlers_saw.push(entry);
        let nth = seen.count(format!("handler {} of {}", self.index, self.whose)) as usize;
        let reply = match &self.handler {
            Handler::Always(reply) => reply,
            Handler::Script { script } => {
                script.get(nth - 1).ok_or("the script of a handler is at its end")?
            }
        };
        replied(reply, requests)
    }
}

fn replied(
    reply: &Reply,
    requests: &DeferredToolRequests,
) -> Result<DeferredToolResults, BoxError> {
    if let Some(message) = &reply.raises {
        return Err(message.clone().into());
    }
    let left: Vec<&str> = match &reply.leave {
        None | Some(Leave::Everything(false)) => Vec::new(),
        Some(Leave::Everything(true)) => requests.iter().map(ToolCall::id).collect(),
        Some(Leave::These(ids)) => ids.iter().map(String::as_str).collect(),
    };
    let mut results = reply.answers.as_ref().map(answers).unwrap_or_default();
    let all: Option<ToolApproval> = match &reply.deny_all {
        Some(message) => Some(ToolDenied::new(message).into()),
        None => reply.approve_all.then(|| true.into()),
    };
    if let Some(all) = all {
        for call in requests.approvals.iter().filter(|call| !left.contains(&call.id())) {
            results = results.approval(call.id(), all.clone());
        }
    }
    Ok(left.into_iter().fold(results, |results, id| results.leave(id)))
}

/// Answers, matched by id.
pub(crate) fn answers(written: &Answers) -> DeferredToolResults {
    let mut results = DeferredToolResults::new();
    for (id, answer) in &written.approvals {
        results = results.approval(id, approval(answer));
    }
    for (id, value) in &written.calls {
        results = results.result(id, result(value));
    }
    for (id, metadata) in &written.metadata {
        results = results.metadata(id, metadata.clone());
    }
    results
}

fn approval(written: &Approval) -> ToolApproval {
    match written {
        Approval::Bool(approved) | Approval::Approved { approved } => (*approved).into(),
        Approval::Override { override_args } => {
            ToolApproved::with_args(override_args.clone()).into()
        }
        Approval::Denied { denied: None } => ToolDenied::default().into(),
        Approval::Denied { denied: Some(message) } => ToolDenied::new(message).into(),
    }
}

/// The result of a call that was executed elsewhere: a request to retry, a failure, or any value.
fn result(written: &Value) -> CallResult {
    let only = written.as_object().filter(|map| map.len() == 1);
    let message = |key: &str| only.and_then(|map| map.get(key)).and_then(Value::as_str);
    match (message("model_retry"), message("tool_failed")) {
        (Some(message), _) => ModelRetry::new(message).into(),
        (None, Some(message)) => ToolFailed::new(message).into(),
        (None, None) => written.clone().into(),
    }
}
