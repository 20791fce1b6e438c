//! A person whose answers are fixed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::RunContext;
use crate::deferred::{Answer, DeferredToolRequests, DeferredToolResults};
use crate::error::BoxError;
use crate::handler::{DeferredToolHandler, deny_blocked};
use crate::outcome::DeferralKind;

/// A person in a test: answers each call by its tool, leaves those of other tools pending, and records what was asked.
/// Calls that a layer has blocked are denied, as by every ready-made handler (rule A5). Clones share the record.
///
/// ```
/// use countersign::testing::ScriptedHandler;
/// use countersign::{Decision, FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, decide_fn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct NoArgs {}
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let done = async |_: NoArgs| Ok::<_, ToolError>("done");
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("deploy", "Deploys", done))
///     .tool(tool_fn("delete", "Deletes", done))
///     .tool(tool_fn("look", "Looks around", done))
///     .layered(decide_fn(|_, call: &ToolCall| match call.name() {
///         "look" => Decision::allow(),
///         _ => Decision::ask("changes production"),
///     }));
/// let ann = ScriptedHandler::new("ann").approve("deploy").deny("delete", "keep it");
/// let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
/// let calls = vec![call("c1", "deploy"), call("c2", "delete"), call("c3", "look")];
/// let report = Turn::new(tools).deferred_tool_handler(ann.clone()).run(calls).await?;
///
/// // One batch with both calls; the third one was never asked about.
/// assert_eq!(ann.asked(), [["deploy", "delete"]]);
/// assert_eq!(report.calls()[0].answered().and_then(|answered| answered.by()), Some("ann"));
/// assert_eq!(report.calls()[1].outcome().text().as_deref(), Some("keep it"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedHandler {
    by: Arc<str>,
    answers: BTreeMap<String, Answer>,
    batches: Arc<Mutex<Vec<DeferredToolRequests>>>,
}

impl ScriptedHandler {
    /// A person of this name, who leaves every call pending so far.
    #[must_use]
    pub fn new(by: impl Into<Arc<str>>) -> Self {
        Self { by: by.into(), answers: BTreeMap::new(), batches: Arc::default() }
    }

    /// Approves the calls of this tool.
    #[must_use]
    pub fn approve(self, tool: impl Into<String>) -> Self {
        self.answer(tool, Answer::Approve { args: None })
    }

    /// Denies the calls of this tool with a message, which the model gets.
    #[must_use]
    pub fn deny(self, tool: impl Into<String>, message: impl Into<String>) -> Self {
        self.answer(tool, Answer::Deny { message: message.into() })
    }

    /// Gives the calls of this tool an answer of any kind: an approval with other arguments, or a result for a tool that
    /// is executed elsewhere.
    #[must_use]
    pub fn answer(mut self, tool: impl Into<String>, answer: Answer) -> Self {
        self.answers.insert(tool.into(), answer);
        self
    }

    /// The batches that the person was shown, each with the names of its tools, in the order of the model.
    #[must_use]
    pub fn asked(&self) -> Vec<Vec<String>> {
        let tools = |batch: &DeferredToolRequests| {
            batch.iter().map(|call| call.name().to_owned()).collect()
        };
        self.batches().iter().map(tools).collect()
    }

    /// The batches that the person was shown, with all that a surface would show.
    #[must_use]
    pub fn batches(&self) -> Vec<DeferredToolRequests> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DeferredToolHandler for ScriptedHandler {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).push(requests.clone());
        let mut answers = deny_blocked(requests).unchecked();
        for call in requests.iter() {
            let id = call.id();
            let external = requests.calls.iter().any(|call| call.id() == id);
            let kind = if external { DeferralKind::External } else { DeferralKind::Approval };
            match self.answers.get(call.name()) {
                _ if answers.answer_to(id).is_some() => {}
                Some(answer) => answers.set_answer(id, kind, answer, &self.by),
                None => answers = answers.leave(id),
            }
        }
        Ok(answers)
    }
}
