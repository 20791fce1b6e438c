//! The gate: the only place where a call becomes executable.
//!
//! There is one below the layers of each toolset, and no code names it: `layered` and [`Turn`](crate::Turn) make it. A call
//! without a record of its pass is refused, so that tools cannot be called around it.
//!
//! ```
//! use countersign::{FunctionToolset, ToolCall, Tools};
//! use serde_json::json;
//! use tower::ServiceExt;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let tools: Tools = FunctionToolset::new().into();
//! let by_hand = ToolCall::new("c1", "delete_file", json!({}));
//! assert!(tools.oneshot(by_hand).await.is_err(), "no turn has made a record for this call");
//! # });
//! ```
//!
//! # The order of the checks
//!
//! A gate asks the cheap and final questions first, and the person's last. Each step ends the call, or hands it on:
//!
//! | step | refuses | with |
//! |---|---|---|
//! | 1 | a call without a record, or with a closed one | an error for the host (rule T6) |
//! | 2 | a call that any layer has denied | the denial (rule D1) |
//! | 3 | a call whose tool is not behind this gate | a denial |
//! | 4 | a call that has skipped a layer | an error for the host (rule D9) |
//! | 5 | arguments on which not every layer has decided | nothing: the turn repeats the pass (rule D3) |
//! | 6 | changed arguments that do not fit the tool | a denial (rule T5) |
//! | 7 | an open question that no approval covers | a deferral (rule A1) |
//! | 8 | an external tool, an agent | a deferral: they are executed elsewhere |
//! | 9 | a second execution | the recorded outcome |
//! | 10 | a call that the journal knows | its recorded outcome, or "may have run" (rule L2) |
//!
//! Step 7 comes before step 8: people are asked about an external call, like any other, before it leaves the
//! process. Step 9 comes before step 10, as the journal is a transaction and the cell is not.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::args::{Args, ArgsError};
use crate::call::{
    Approval, BodyToken, CallRecord, Claim, ExecutionGuard, ExecutionJournal, JournalClaim,
    JournalToken, JournaledCall, Leaf, Rerun, RunContext, SharedError, ToolCall, ToolDefinition,
    ToolKind, Validate, keeping, tool_layer,
};
use crate::decision::{Preview, Question};
use crate::error::{BoxError, UserError};
use crate::outcome::{ApprovalRequired, Deferral, Outcome, ToolError};
use crate::panic::{Panicked, catch, catch_panic, catch_within};
use crate::toolset::{Permit, Toolset};

/// The text for the model when a tool was started and its end was not seen.
pub(crate) const MAY_HAVE_RUN: &str =
    "The tool was started and its end was not seen: it may have run.";

/// Wraps a [`Toolset`] directly: one gate per toolset, made by `Tools::from`. Everything above the gate decides;
/// only the gate executes, at most once per pass.
///
/// The gate refuses a call without a call record or with a closed one, a call that was denied or that skipped a layer
/// (rule D9), and arguments that do not fit the tool. It defers a call with an open question that no approval covers.
/// Where arguments were changed after a layer had decided on them, the turn repeats the pass (rule D3). A second
/// attempt at a call gets the recorded outcome; only an idempotent tool, and a failed call without a question, may run
/// again.
pub struct Gate<T> {
    toolset: Arc<T>,
    /// The id of the toolset. Gates are compared by its address.
    id: Arc<str>,
    /// `true` if the toolset has panicked in place of giving its id. Its tools cannot be listed then.
    has_no_id: bool,
}

impl<T> Clone for Gate<T> {
    fn clone(&self) -> Self {
        let (toolset, id) = (Arc::clone(&self.toolset), Arc::clone(&self.id));
        Self { toolset, id, has_no_id: self.has_no_id }
    }
}

impl<T: Toolset> Gate<T> {
    pub(crate) fn new(toolset: T) -> Self {
        let id = catch(|| Arc::from(toolset.id()));
        let has_no_id = id.is_err();
        Self { toolset: Arc::new(toolset), id: id.unwrap_or_default(), has_no_id }
    }

    /// The definitions of the toolset, each tied to this gate, so that no other gate executes its calls.
    pub(crate) async fn definitions(
        &self,
        cx: &RunContext,
    ) -> Result<Vec<ToolDefinition>, BoxError> {
        if self.has_no_id {
            return Err("a toolset panicked in place of giving its id".into());
        }
        let definitions = self.toolset.definitions(cx).await?;
        Ok(definitions.into_iter().map(|definition| self.tie(definition)).collect())
    }

    /// The check of arguments captures the name and the toolset. The turn validates a call before it passes the stack,
    /// by the definition alone, and a wrapper may have renamed that.
    fn tie(&self, definition: ToolDefinition) -> ToolDefinition {
        let validate = (definition.kind() != ToolKind::External).then(|| {
            let (toolset, name) = (Arc::clone(&self.toolset), Arc::clone(definition.shared_name()));
            let validate: Validate = Arc::new(move |args: &Args| {
                let checked = catch_unwind(AssertUnwindSafe(|| toolset.validate(&name, args)));
                checked.unwrap_or_else(|_| Err("they could not be checked".to_owned()))
            });
            validate
        });
        definition.at_gate(&self.id, validate)
    }

    /// Returns `true` if the tool is behind this gate.
    pub(crate) fn is(&self, leaf: &Leaf) -> bool {
        Arc::ptr_eq(&self.id, &leaf.gate)
    }

    pub(crate) async fn enter(self, call: ToolCall) -> Result<Outcome, BoxError> {
        let record = Arc::clone(call.record()?);
        if record.is_closed() {
            return Err(UserError::PassClosed { id: call.id().into() }.into());
        }
        if let Some(denial) = record.denied() {
            return Ok(Outcome::denied(denial.reason()));
        }
        let Some(leaf) =
            record.definition().leaf().filter(|leaf| self.is(leaf) && *leaf.name == *call.name())
        else {
            return Ok(refuse(
                &record,
                format!("Not executed: `{}` is not a tool of this set.", call.name()),
                None,
            ));
        };
        record.refuse_skipped(&call)?;
        if record.arrives(call.args()).is_err() {
            // The turn repeats the pass, and ignores this outcome.
            return Ok(Outcome::Deferred(Deferral::approval(Vec::new())));
        }
        if let Some(refused) = Self::refuse_invalid(&record, leaf, &call) {
            return Ok(refused);
        }
        let asked = match self.open_questions(&record, leaf, &call).await {
            Ok(asked) => asked,
            Err(deferral) => return Ok(Outcome::Deferred(record.defer(deferral))),
        };
        if record.definition().kind() == ToolKind::External {
            let deferral =
                Deferral::external(crate::outcome::DeferralKind::External, serde_json::Map::new());
            return Ok(Outcome::Deferred(record.defer(deferral)));
        }
        if leaf.behind.is_some() {
            // The turn runs an agent itself, outside of the stack (rule T7).
            record.delegate();
            return Ok(Outcome::Deferred(Deferral::of_agent()));
        }
        let journal = record.context().run().journal.clone();
        let journal = journal.filter(|_| asked || leaf.journaled);
        let rerun = match journal {
            // With a journal the first recorded outcome is final: no attempt of this pass runs again, not even of an
            // idempotent tool.
            Some(_) => Rerun { idempotent: false, unasked: false },
            None => Rerun { idempotent: leaf.idempotent, unasked: !asked },
        };
        self.execute(&record, leaf, call, rerun, journal).await
    }

    /// Validates arguments that layers have changed. The model's own were validated when the response entered the turn
    /// (rule T5).
    fn refuse_invalid(record: &CallRecord, leaf: &Leaf, call: &ToolCall) -> Option<Outcome> {
        if record.knows(call.args()) {
            return None;
        }
        let problem = match &leaf.validate {
            _ if call.args().are_too_deep() => ArgsError::too_deep().to_string(),
            validate => validate.as_ref()?(call.args()).err()?,
        };
        let rewriters = record.rewriters();
        let text = format!("Not executed: {rewriters} made arguments that do not fit the tool.");
        Some(refuse(record, text, Some(problem)))
    }

    /// `Ok(true)` if an approval covers the call, `Ok(false)` if there is no question; `Err` is the deferral of a call
    /// with an open question (rule A1).
    async fn open_questions(
        &self,
        record: &CallRecord,
        leaf: &Leaf,
        call: &ToolCall,
    ) -> Result<bool, Deferral> {
        record.ask(record.definition().declared_question());
        if record.approval().is_none() && record.with_questions(<[_]>::is_empty) {
            return Ok(false);
        }
        // Boxed, as are the other futures of asked calls: most calls are not, and their futures would have room for it.
        Box::pin(self.add_previews(record, call.name(), call.args())).await;
        let changed = match record.approval() {
            None => None,
            Some(approval) => {
                let not_covered = |all: &[_]| not_covered(approval, leaf, call.args(), all);
                match record.with_questions(not_covered) {
                    None => return Ok(true),
                    changed => changed,
                }
            }
        };
        Err(Deferral { changed, ..Deferral::approval(record.questions()) })
    }

    /// Adds the question of the tool's previews, if it makes any (rule S7).
    ///
    /// A preview that fails, or takes longer than [`describing_within`](crate::Turn::describing_within), is shown as a failed
    /// one, without a pin, and the question stays open. A missing preview is no reason to run the call, and none to deny it
    /// either. The approver decides, and sees that the tool had nothing to show.
    async fn add_previews(&self, record: &CallRecord, tool: &str, args: &Args) {
        let (cx, toolset) = (record.context(), &self.toolset);
        let limit = cx.run().describing_within();
        let made = catch_within(limit, || toolset.preview(cx, tool, args)).await;
        let previews = match made {
            Ok(Ok(previews)) if previews.is_empty() => return,
            Ok(Ok(previews)) => previews,
            Ok(Err(error)) => vec![no_preview(tool, &told(&error))],
            Err(Panicked(what)) => vec![no_preview(tool, &format!("it {what}"))],
        };
        record.ask([Question::of_previews(&tool_layer(tool), previews)]);
    }

    /// Runs the tool body. A panic is an outcome, as part of the work may be done.
    async fn run(&self, record: &Arc<CallRecord>, call: ToolCall) -> Result<Outcome, SharedError> {
        let tool = Arc::clone(call.shared_name());
        let permit = Permit::new(call.at_body(), record.context().clone(), BodyToken::new(record));
        match catch_panic(|| self.toolset.run(permit)).await {
            Ok(Ok(value)) => Ok(Outcome::Returned(value)),
            Ok(Err(error)) => {
                if let (ToolError::ApprovalRequired(_), Some(args)) =
                    (&error, record.args_at_gate())
                {
                    Box::pin(self.add_previews(record, &tool, &args)).await;
                }
                ended(error, record, &tool)
            }
            Err(Panicked(what)) => {
                tracing::error!(tool = &*tool, "a tool body {what}");
                Ok(Outcome::failed(
                    "The tool stopped in the middle of its work; it may have done part of it.",
                ))
            }
        }
    }

    /// The order is: cell, usage, journal, body. If a limit is reached, we give the cell back: nothing was started,
    /// and the record must not say that the tool may have run. If the journal refuses, we give the count of the usage
    /// back, as nothing was executed. If a body defers itself, we do not count it either, although it was started: it
    /// counts when it runs after its answer.
    async fn execute(
        &self,
        record: &Arc<CallRecord>,
        leaf: &Leaf,
        call: ToolCall,
        rerun: Rerun,
        journal: Option<Arc<dyn ExecutionJournal>>,
    ) -> Result<Outcome, BoxError> {
        let claimed = match record.claim(rerun).await {
            Claim::Go(claimed) => claimed,
            Claim::Recorded(ended) => return ended.map_err(Into::into),
            Claim::Unknown => return Ok(Outcome::unknown(MAY_HAVE_RUN)),
            Claim::Closed => return Err(UserError::PassClosed { id: call.id().into() }.into()),
        };
        let usage = Arc::clone(&record.context().run().usage);
        let first = claimed.is_first();
        if first && let Err(exceeded) = usage.take_tool_call() {
            claimed.give_up();
            return Err(exceeded.into());
        }
        let ended = match journal {
            None => self.run(record, call).await,
            Some(journal) => {
                let cx = record.context();
                let entry = JournaledCall {
                    run_id: cx.run_id(),
                    response: cx.response(),
                    path: &cx.run().path,
                    call_id: cx.tool_call_id().unwrap_or_default(),
                    tool: cx.tool_name().unwrap_or_default(),
                    approval: cx.approval(),
                    identity: leaf.identity(),
                    args: call.args(),
                    idempotent: leaf.idempotent,
                };
                match journal.claim(entry).await {
                    Ok(JournalClaim::Go(token)) => {
                        Box::pin(written_down(&*journal, &token, self.run(record, call))).await
                    }
                    not_now => {
                        usage.give_tool_call_back();
                        return not_executed(not_now, claimed, record);
                    }
                }
            }
        };
        if first && matches!(ended, Ok(Outcome::Deferred(_))) {
            usage.give_tool_call_back();
        }
        claimed.end(ended.clone());
        ended.map_err(Into::into)
    }
}

/// Turns a claim that the journal did not grant into the result of the call.
fn not_executed(
    claim: Result<JournalClaim, BoxError>,
    claimed: ExecutionGuard<CallRecord>,
    record: &CallRecord,
) -> Result<Outcome, BoxError> {
    let outcome = match claim {
        // The call was executed before, and the call record gets the same outcome.
        Ok(JournalClaim::Recorded(outcome)) => outcome,
        Ok(JournalClaim::AskAgain(question, why)) => {
            claimed.give_up();
            record.ask([question]);
            let mut deferral = Deferral::approval(record.questions());
            deferral.changed = Some(why.to_owned());
            return Ok(Outcome::Deferred(record.defer(deferral)));
        }
        Ok(JournalClaim::Unknown(text)) => {
            drop(claimed); // records the execution as unknown
            return Ok(Outcome::unknown(text));
        }
        Ok(JournalClaim::Denied(text)) => {
            claimed.give_up();
            return Ok(Outcome::failed(format!("The tool did not run: {text}")));
        }
        Ok(JournalClaim::Go(_)) | Err(_) => {
            claimed.give_up();
            return Err(claim.err().unwrap_or_else(|| "the claim was not used".into()));
        }
    };
    claimed.end(Ok(outcome.clone()));
    Ok(outcome)
}

/// Runs a body under a claim of the journal: renews the claim's lease while the body runs, then settles the claim with
/// the outcome. An error that ends the run is recorded as a failure, without its text.
///
/// If a body has ended and cannot be settled, that is an error for the host, and we withhold its outcome. The store may
/// have recorded it or not, and what we told the model could contradict what every other process reads later.
async fn written_down(
    journal: &dyn ExecutionJournal,
    token: &JournalToken,
    body: impl Future<Output = Result<Outcome, SharedError>>,
) -> Result<Outcome, SharedError> {
    let renew = || async {
        if let Err(error) = journal.renew(token).await {
            tracing::warn!(ask = token.id, %error, "a claim could not be renewed");
        }
    };
    let ended = keeping(journal.lease(), body, renew).await;
    let failed;
    let outcome = match &ended {
        Ok(outcome) => outcome,
        Err(_) => {
            failed = Outcome::failed("The tool failed with an internal error.");
            &failed
        }
    };
    match journal.settle(token, outcome).await {
        Ok(recorded) => ended.map(|ended| if ended.is_deferred() { ended } else { recorded }),
        Err(error) => Err(SharedError(Arc::new(error))),
    }
}

/// The difference of the call from what was approved; `None` if the approval covers it.
///
/// The texts are for the approver, who is asked a second time and wants to know why. The strongest reason comes
/// first, and one is enough.
pub(crate) fn not_covered(
    approval: &Approval,
    leaf: &Leaf,
    args: &Args,
    questions: &[Question],
) -> Option<String> {
    if !leaf.is(&approval.tool) {
        return Some(
            "the tool is not the one that was approved: its set or its schema has changed"
                .to_owned(),
        );
    }
    if !approval.args.equal(args) {
        return Some("the arguments are not the ones that were approved".to_owned());
    }
    if !approval.answers(questions) {
        return Some(approval.unanswered(questions));
    }
    None
}

fn refuse(record: &CallRecord, reason: String, detail: Option<String>) -> Outcome {
    tracing::error!(tool = record.context().tool_name(), reason, "the gate refuses a call");
    Outcome::denied(record.deny_at_gate(reason, detail).reason())
}

/// Maps the error of a tool body to an outcome, or to an error that ends the run.
fn ended(error: ToolError, record: &CallRecord, tool: &str) -> Result<Outcome, SharedError> {
    match error {
        ToolError::Retry(it) => Ok(Outcome::Retry(it)),
        ToolError::Failed(it) => Ok(Outcome::Failed(it)),
        ToolError::Unknown(it) => Ok(Outcome::Unknown(it)),
        ToolError::ApprovalRequired(it) => {
            record.ask([own_question(it, tool)]);
            let mut deferral = Deferral::approval(record.questions());
            deferral.changed = record.approval().map(|_| "the tool asks again".to_owned());
            Ok(Outcome::Deferred(deferral))
        }
        ToolError::CallDeferred(it) => {
            Ok(Outcome::Deferred(Deferral::external(it.kind, it.metadata)))
        }
        ToolError::Fatal(error) => Err(SharedError(Arc::new(error))),
        ToolError::Other(error) if record.context().run().tool_errors_end_run => {
            Err(SharedError(Arc::new(error)))
        }
        ToolError::Other(error) => {
            tracing::warn!(tool, "a tool failed with an error, which the model is told");
            let outcome = Outcome::failed(told(&error));
            record.failed(SharedError(Arc::new(error)));
            Ok(outcome)
        }
    }
}

/// The text of an error for the model: its `Display` without its sources, or a default if that is empty or panics.
fn told(error: &BoxError) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| error.to_string())).unwrap_or_default();
    if text.trim().is_empty() { "The tool failed without saying why.".to_owned() } else { text }
}

/// A preview that says why there is none.
fn no_preview(tool: &str, why: &str) -> Preview {
    tracing::warn!(tool, "a tool could not show what a call would do");
    Preview::text("no preview", why).without_pin()
}

fn own_question(required: ApprovalRequired, tool: &str) -> Question {
    let ApprovalRequired { key, reason, metadata } = required;
    Question::of(tool_layer(tool), key).with_reason(reason).with_metadata(metadata)
}

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({})", self.id)
    }
}
