//! The workflow: the loop of a model and its tools, each step of which is in Restate's journal.
//!
//! | step | journaled | if the process dies in it |
//! |---|---|---|
//! | `model` | the response | the model is asked again |
//! | `first pass` | the results, or the suspended turn with its asks | allowed calls that have run give their recorded outcomes, and no ask is parked twice |
//! | a promise for each ask | that the ask is over | it is resolved again |
//! | `approved pass` | the results | a call that has run gives its recorded outcome, one that was in its body *may have run* |
//!
//! The decisions of the policy are made in the passes, so that a replay of the workflow decides nothing anew, also where
//! a policy reads a clock.

use std::sync::Arc;
use std::time::Duration;

use countersign::call::AskHistory;
use countersign::error::ErrorKind;
use countersign::ledger::{AskState, Ledger};
use countersign::message::{RequestPart, ResponsePart};
use countersign::model::ModelRequest;
use countersign::turn::{TurnError, admit};
use countersign::{BoxError, Message, Model as _, SuspendedTurn, ToolCall, Turn, TurnReport};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::agent::Script;
use crate::asks::{AskObjectClient, PREFIX, pending, until};
use crate::steps::{Step, Steps};

/// After so many responses with calls the run ends with an error.
const MAX_RESPONSES: u32 = 20;

/// The workflow of a run; its key is the name of the run.
pub(crate) struct RunWorkflow {
    /// The stack, with the ledger.
    pub(crate) turn: Turn,
    pub(crate) ledger: Ledger,
    pub(crate) steps: Arc<Steps>,
    /// The version of the stack: what was begun by one is not finished by another.
    pub(crate) version: String,
}

/// The progress of a response.
#[derive(Serialize, Deserialize)]
struct Progress {
    /// The results, one for each call, once all are there.
    results: Vec<RequestPart>,
    /// Otherwise the state to resume from.
    suspended: Option<SuspendedTurn>,
    /// The asks to wait for.
    asks: Vec<String>,
    /// The time until the claims of dead processes end.
    claimed: Duration,
    /// The calls that people have denied in this run (rule D11).
    denied: AskHistory,
}

#[restate_sdk::workflow(
    name = "Run",
    client_visibility = "pub(crate)",
    invocation_retry_policy(initial_interval = "100ms", factor = 2.0, max_interval = "2s")
)]
impl RunWorkflow {
    /// Works on a task until the model has a final answer.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, task: String) -> HandlerResult<String> {
        let run = format!("{PREFIX}{}", ctx.key());
        let version = ctx.run(|| async { Ok(self.version.clone()) }).name("version").await?;
        let this = Begun { workflow: self, run, version };
        let mut history = vec![Message::user(task)];
        let mut denied = AskHistory::default();
        for response in 0..MAX_RESPONSES {
            let said = ctx.run(|| this.clone().model(history.clone())).name("model").await?;
            let said = said.into_inner();
            let calls: Vec<_> = said.tool_calls().cloned().collect();
            if calls.is_empty() {
                return Ok(text(&said));
            }
            history.push(said);
            let first = ctx.run(|| this.clone().first_pass(response, calls, denied.clone()));
            let mut progress = first.name("first pass").await?.into_inner();
            while let Some(suspended) = progress.suspended.take() {
                for ask in &progress.asks {
                    ctx.object_client::<AskObjectClient<'_>>(ask.as_str()).look().send();
                    ctx.promise::<()>(ask).await?;
                }
                if !progress.claimed.is_zero() {
                    ctx.sleep(progress.claimed).await?;
                }
                let again = ctx.run(|| this.clone().approved_pass(suspended, progress.denied));
                progress = again.name("approved pass").await?.into_inner();
            }
            history.push(Message::Request { parts: progress.results });
            denied = progress.denied;
        }
        Err(TerminalError::new(format!("no final answer after {MAX_RESPONSES} responses")).into())
    }

    /// Says that an ask is over, to the run that waits for it. Saying it twice changes nothing.
    #[handler]
    async fn over(&self, ctx: SharedWorkflowContext<'_>, ask: String) -> HandlerResult<()> {
        if ctx.peek_promise::<()>(&ask).await?.is_none() {
            ctx.resolve_promise(&ask, ());
        }
        Ok(())
    }

    /// The pending calls of the run, for the people who decide: what each would do, and the fingerprint that a decision
    /// has to have.
    #[handler]
    async fn pending(
        &self,
        ctx: SharedWorkflowContext<'_>,
    ) -> HandlerResult<Json<Vec<serde_json::Value>>> {
        let run = format!("{PREFIX}{}", ctx.key());
        let read = || async move { Ok(Json(pending(&self.ledger, &run).await?)) };
        Ok(ctx.run(read).name("pending").await?)
    }
}

/// A run that was begun by some version of the stack.
#[derive(Clone)]
struct Begun<'w> {
    workflow: &'w RunWorkflow,
    run: String,
    version: String,
}

impl Begun<'_> {
    /// The response of the model, whose calls have ids that were not used before.
    async fn model(self, history: Vec<Message>) -> HandlerResult<Json<Message>> {
        self.same_version()?;
        let used: Vec<_> = history.iter().flat_map(Message::tool_calls).map(ToolCall::id).collect();
        let request = ModelRequest::new(history.clone());
        let response = Script.respond(request).await.map_err(said)?;
        let mut calls = Vec::new();
        for part in &response.parts {
            if let ResponsePart::ToolCall(call) = part {
                calls.push(call.clone());
            }
        }
        let ends = calls.is_empty();
        let mut calls = admit(calls, &used).into_iter();
        let parts = response.parts.into_iter().filter_map(|part| match part {
            ResponsePart::ToolCall(_) => calls.next().map(ResponsePart::ToolCall),
            other => Some(other),
        });
        let message = Message::Response { parts: parts.collect() };
        let step = if ends { Step::Ended } else { Step::Model };
        self.workflow.steps.reached(step, &self.run).await?;
        Ok(Json(message))
    }

    /// Takes the calls of a response through the stack.
    async fn first_pass(
        self,
        response: u32,
        calls: Vec<ToolCall>,
        denied: AskHistory,
    ) -> HandlerResult<Json<Progress>> {
        self.same_version()?;
        let turn = self.workflow.turn.clone().of_run(&self.run, response).ask_history(&denied);
        let report = turn.run(calls).await.map_err(ended)?;
        let progress = self.progress(&turn, report, denied).await?;
        self.workflow.steps.reached(Step::Asked, &self.run).await?;
        Ok(Json(progress))
    }

    /// Resumes a suspended turn with the decisions that are in the ledger.
    async fn approved_pass(
        self,
        suspended: SuspendedTurn,
        denied: AskHistory,
    ) -> HandlerResult<Json<Progress>> {
        self.same_version()?;
        let turn = self.workflow.turn.clone().ask_history(&denied);
        let answers = turn.decisions(&suspended).await?;
        let report = turn.resume(suspended, answers).await.map_err(ended)?;
        let progress = self.progress(&turn, report, denied).await?;
        self.workflow.steps.reached(Step::Settled, &self.run).await?;
        Ok(Json(progress))
    }

    async fn progress(
        &self,
        turn: &Turn,
        report: TurnReport,
        denied: AskHistory,
    ) -> HandlerResult<Progress> {
        let (mut asks, mut claimed) = (Vec::new(), Duration::ZERO);
        if let Some(suspended) = report.suspended() {
            let now = self.workflow.ledger.now().await?;
            for (_, record) in turn.asks(suspended).await? {
                match (record.state, record.due_at()) {
                    // A process has died in the body, or was cut off from the server and still works.
                    (AskState::Claimed, Some(end)) => claimed = claimed.max(until(end, now)),
                    _ => asks.push(record.ask.id().to_owned()),
                }
            }
        }
        let results = report
            .calls()
            .iter()
            .filter_map(|call| RequestPart::result(call.call(), call.outcome()));
        let results = results.collect();
        Ok(Progress { results, suspended: report.into_suspended(), asks, claimed, denied })
    }

    /// Refuses to finish what another version of the stack has begun. A replay must take the same steps, so that this is
    /// said in the next step and not at the beginning.
    fn same_version(&self) -> Result<(), TerminalError> {
        let (began, here) = (&self.version, &self.workflow.version);
        if began == here {
            return Ok(());
        }
        Err(TerminalError::new_with_code(
            409,
            format!(
                "run `{}` was begun by version {began} of the stack, and this is version {here}: finish it with {began}, \
                 registered as a deployment of its own, or begin a new run",
                self.run
            ),
        ))
    }
}

fn text(message: &Message) -> String {
    let Message::Response { parts } = message else { return String::new() };
    let texts = parts.iter().filter_map(|part| match part {
        ResponsePart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The error of a turn. Where the store could not be reached, Restate tries the step again; calls that have run give
/// their recorded outcomes then. Every other error ends the run.
fn ended(error: TurnError) -> HandlerError {
    match error.kind() {
        ErrorKind::Ledger => error.into(),
        _ => TerminalError::new(error.to_string()).into(),
    }
}

/// An error of the model, which is tried again.
fn said(error: BoxError) -> HandlerError {
    std::io::Error::other(error).into()
}
