//! The decision about a call: a turn over one tool that records with which arguments it may run.
//!
//! The layers run as in any turn, around a tool that only records its arguments. So everything that holds for layers
//! (their order, edits, questions and their coverage) holds here, and we need not write it again. The innermost layer
//! asks about what the hook is not certain of. It stands behind all others, so no rule can allow that away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::change;
use super::environment::{Environment, EnvironmentDoubt};
use super::shells;
use super::vocabulary::Normal;
use crate::hook::payload::HookCall;
use countersign::args::Args;
use countersign::call::{RepeatedRequest, RunContext, ToolCall, ToolDefinition};
use countersign::decision::{Decision, Preview};
use countersign::error::{BoxError, with_causes};
use countersign::middleware::decide_fn;
use countersign::outcome::{Outcome, ToolError, ToolReturn};
use countersign::tools::{Tools, ToolsExt as _};
use countersign::toolset::{Permit, Toolset};
use countersign::turn::{SuspendedTurn, Turn, TurnReport};
use countersign_rules::JournaledAnswer;
use countersign_rules::readings::tools::toolset_of;

/// The id of the one call in its turn.
pub(crate) const ID: &str = "call";

/// The layers around one call.
#[derive(Clone, Copy)]
pub(crate) struct CallStack<'a> {
    pub(crate) outer: Option<&'a Arc<dyn Fn(Tools) -> Tools + Send + Sync>>,
    pub(crate) call: &'a HookCall,
    pub(crate) normal: &'a Normal,
    /// The variables of the environment that are a reason to ask.
    pub(crate) environment: &'a Environment,
    /// The home folder of the person, where it is not that of the account.
    pub(crate) home: Option<&'a Path>,
    /// The run of the turn. A limit that counts calls counts one for each run.
    pub(crate) run: &'a str,
}

/// Suspends the counting of a call until we know whether it repeats one that was counted.
///
/// The layers decide first as if the call did. If one of them would have counted it, and the decision is not a question
/// that an earlier call has asked, they decide again, and count.
#[derive(Clone, Default)]
pub(crate) struct SuspendedCount(Arc<AtomicBool>);

impl SuspendedCount {
    /// Returns `true` if a layer would have counted the call.
    pub(crate) fn was_used(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn request(&self) -> RepeatedRequest {
        let used = Arc::clone(&self.0);
        RepeatedRequest::new(move |_| {
            used.store(true, Ordering::Relaxed);
            Box::pin(std::future::ready(true))
        })
    }
}

/// The decision of the layers.
pub(crate) enum StackRuling {
    /// The call may run, with these arguments.
    Allow(Args),
    /// A person has to answer.
    Ask(Box<SuspendedTurn>),
}

impl CallStack<'_> {
    /// Lets the layers decide. The error is the reason of a denial.
    pub(crate) async fn decide(
        &self,
        suspended: Option<&SuspendedCount>,
    ) -> Result<StackRuling, String> {
        let Normal { tool, args, .. } = self.normal;
        let call = ToolCall::new(ID, tool.as_str(), args.to_value());
        let (turn, permitted) = self.turn();
        let turn = match suspended {
            Some(suspended) => turn.deps(suspended.request()),
            None => turn,
        };
        let report = turn.run(vec![call]).await.map_err(|error| with_causes(&error))?;
        ruling(report, &permitted)
    }

    /// Lets the layers decide about an approved call: everything that an approval does not cover is asked or denied.
    pub(crate) async fn approved(
        &self,
        pending: SuspendedTurn,
        edited: Option<Args>,
        (by, journaled): (&str, Option<JournaledAnswer>),
    ) -> Result<StackRuling, String> {
        let requests = pending.requests();
        let answers = match edited {
            Some(args) => requests.answer().approve_with(ID, args),
            None => requests.answer().approve(ID),
        };
        let answers = answers.answered_by(by).build().map_err(|error| with_causes(&error))?;
        let (turn, permitted) = self.turn();
        let turn = journaled.into_iter().fold(turn, Turn::deps);
        let report = turn.resume(pending, answers).await.map_err(|error| with_causes(&error))?;
        ruling(report, &permitted)
    }

    /// Lets the layers decide about a call that a person has denied, so that their journal has the denial. The call is not
    /// counted again.
    pub(crate) async fn record_denial(&self) {
        let Normal { tool, args, .. } = self.normal;
        let call = ToolCall::new(ID, tool.as_str(), args.to_value());
        let (turn, _) = self.turn();
        let turn = turn.deps(SuspendedCount::default().request()).deps(JournaledAnswer::Denied);
        // The call is denied, whatever they say now.
        let _ = turn.run(vec![call]).await;
    }

    fn turn(&self) -> (Turn, Arc<Mutex<Option<Args>>>) {
        let Normal { tool, server, is_known, .. } = self.normal;
        let mut definition = ToolDefinition::new(tool.as_str(), json!({"type": "object"}));
        if let Some(server) = server {
            definition = definition.with_server(server.as_str());
        }
        let permitted = Arc::default();
        let set = OneTool {
            id: toolset_of(self.call.client.name(), *is_known),
            definition,
            // A tool of a server may have any name.
            is_own: *is_known && server.is_none(),
            directory: self.call.directory.clone(),
            permitted: Arc::clone(&permitted),
        };
        let tools = match self.outer {
            Some(stack) => stack(Tools::from(set)),
            None => Tools::from(set).layered(
                decide_fn(|_, _| Decision::ask("there are no rules").with_key("no-rules"))
                    .named("no rules"),
            ),
        };
        let (doubts, demands) = (self.normal.doubts.clone(), self.normal.demands.clone());
        let title = self.normal.title().map(str::to_owned);
        // A tool of a server runs in the environment of that server.
        let environment = match server {
            Some(_) => Environment::default(),
            None => self.environment.clone(),
        };
        let directory = self.call.directory.clone();
        let types_unasked = self.call.client.spec().tools.types_unasked;
        let doubt = decide_fn(move |_, call: &ToolCall| {
            let found = environment.doubt(call.name(), call.args(), &directory);
            let doubted = doubt(call, &doubts, found, types_unasked);
            let asked = demands.iter().cloned().fold(doubted, Decision::and);
            match &title {
                Some(title) => asked.with_title(title),
                None => asked,
            }
        });
        let doubt = doubt.named("hook");
        (Turn::new(tools.layered(doubt)).of_run(self.run, 0), permitted)
    }
}

/// Asks about what the hook itself is not certain of.
///
/// We judge the arguments of the moment again, as a layer may have put another command there.
fn doubt(
    call: &ToolCall,
    doubts: &[(&'static str, String)],
    environment: Option<EnvironmentDoubt>,
    types_unasked: bool,
) -> Decision {
    let mut doubts = doubts.to_vec();
    // A layer inside may have changed the command.
    let command = call.args().str("command").filter(|_| call.name() == "shell");
    let changed =
        command.and_then(|it| shells::doubt(it, shells::has_terminal(call.args()), types_unasked));
    if let Some(changed) = changed.filter(|found| doubts.iter().all(|doubt| doubt.0 != found.0)) {
        doubts.push(changed);
    }
    let mut pins = Vec::new();
    if let Some(found) = environment {
        doubts.push(("environment", found.reason));
        pins = found.pins;
    }
    if doubts.is_empty() {
        return Decision::allow();
    }
    let (keys, reasons): (Vec<_>, Vec<_>) = doubts.into_iter().unzip();
    let asked = Decision::ask(reasons.join("; ")).with_key(keys.join(" "));
    pins.into_iter().fold(asked, |asked, (name, digest)| asked.with_pin(name, digest))
}

fn ruling(report: TurnReport, permitted: &Mutex<Option<Args>>) -> Result<StackRuling, String> {
    let unclear = || "the decision about this call is not known".to_owned();
    let outcome = report.calls().first().map(|call| call.outcome().clone());
    match outcome.ok_or_else(unclear)? {
        Outcome::Returned(_) => {
            let args = permitted.lock().unwrap_or_else(PoisonError::into_inner).take();
            args.map(StackRuling::Allow).ok_or_else(unclear)
        }
        outcome if outcome.is_deferred() => {
            report.into_suspended().map(|it| StackRuling::Ask(Box::new(it))).ok_or_else(unclear)
        }
        outcome => Err(outcome.text().unwrap_or_else(unclear)),
    }
}

/// A tool that records the arguments with which it may run. The client runs it.
struct OneTool {
    id: String,
    definition: ToolDefinition,
    /// `true` if it is a tool of the client itself.
    is_own: bool,
    directory: PathBuf,
    permitted: Arc<Mutex<Option<Args>>>,
}

impl Toolset for OneTool {
    fn id(&self) -> &str {
        &self.id
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Ok(vec![self.definition.clone()])
    }

    async fn preview(
        &self,
        _: &RunContext,
        tool: &str,
        args: &Args,
    ) -> Result<Vec<Preview>, BoxError> {
        Ok(if self.is_own { change::previews(tool, args, &self.directory) } else { Vec::new() })
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        let args = permit.args().clone();
        *self.permitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(args);
        Ok(ToolReturn::new(true))
    }
}
