//! The tools of a scenario, and the wrappers around them.

use std::sync::Arc;
use std::time::Duration;

use countersign::call::ToolKind;
use countersign::outcome::{ApprovalRequired, CallDeferred, ModelRetry, ToolFailed};
use countersign::toolset::{ExternalToolset, schema_tool_fn};
use countersign::{
    Args, BoxError, Decision, FunctionToolset, RunContext, ToolCall, ToolDefinition, ToolError,
    Tools, ToolsExt, decide_fn,
};
use serde_json::{Value, json};

use crate::log::Log;
use crate::scenario::{
    Effect, Kind, Raise, Rule, Scenario, Step, Tool, Verdict, Wrap, Wrapper, exists,
};

/// The tools as they are in this run.
pub(crate) fn tools(scenario: &Scenario, run: usize, log: &Log) -> Result<Tools, BoxError> {
    let mut functions = FunctionToolset::new();
    let mut external = Vec::new();
    for tool in &scenario.tools {
        match tool.kind {
            Kind::External => external.push(definition(tool)),
            Kind::Function | Kind::Unapproved => functions = functions.tool(function(tool, log)?),
        }
    }
    let tools =
        Tools::combined([functions.into(), ExternalToolset::new("external", external).into()]);
    let wrappers = scenario.wrappers.iter().enumerate();
    let wrappers = wrappers.filter(|(_, it)| exists(it.only_in_runs.as_ref(), run));
    Ok(wrappers.fold(tools, |tools, (at, wrapper)| wrapped(tools, at, wrapper, run)))
}

fn definition(tool: &Tool) -> ToolDefinition {
    let kind = match tool.kind {
        Kind::Function => ToolKind::Function,
        Kind::Unapproved => ToolKind::Unapproved,
        Kind::External => ToolKind::External,
    };
    ToolDefinition::new(tool.name.as_str(), tool.params.clone())
        .with_kind(kind)
        .with_sequential(tool.sequential)
}

fn function(tool: &Tool, log: &Log) -> Result<countersign::toolset::Tool, BoxError> {
    let (tool, log) = (Arc::new(tool.clone()), log.clone());
    schema_tool_fn(definition(&tool), move |cx: RunContext, args: Args| {
        let (tool, log) = (Arc::clone(&tool), log.clone());
        async move { body(&tool, &log, &cx, &args).await }
    })
}

/// Records the execution, and takes the first step that applies.
async fn body(tool: &Tool, log: &Log, cx: &RunContext, args: &Args) -> Result<Value, ToolError> {
    let (approved, metadata) = (cx.tool_call_approved(), cx.tool_call_metadata());
    let nth = {
        let mut seen = log.lock();
        seen.executed.push(json!({
            "id": cx.tool_call_id(), "tool": tool.name, "args": args, "approved": approved, "metadata": metadata,
        }));
        seen.count(format!("tool {}", tool.name))
    };
    let applies = |step: &&Step| {
        step.when.approved.is_none_or(|when| when == approved)
            && step.when.nth.is_none_or(|when| when == nth)
            && step.when.fits(args.as_map())
    };
    let step = tool.body.iter().find(applies).ok_or_else(|| ToolError::fatal("no step applies"))?;
    match &step.effect {
        Effect::Return(value) => Ok(value.clone()),
        Effect::Echo(_) => Ok(json!({"args": args, "approved": approved, "metadata": metadata})),
        Effect::Ticket(_) => Ok(ticket(log).await.into()),
        Effect::Raise(raise) => Err(raised(*raise, step)),
    }
}

/// Loses counts when two of these overlap.
async fn ticket(log: &Log) -> u64 {
    let next = log.lock().ticket + 1;
    tokio::time::sleep(Duration::from_millis(30)).await;
    log.lock().ticket = next;
    next
}

fn raised(raise: Raise, step: &Step) -> ToolError {
    let metadata = step.metadata.clone().into_iter();
    let message = step.message.as_str();
    match raise {
        Raise::ApprovalRequired => metadata
            .fold(ApprovalRequired::new(), |it, (key, value)| it.with_metadata(key, value))
            .into(),
        Raise::CallDeferred => metadata
            .fold(CallDeferred::new(), |it, (key, value)| it.with_metadata(key, value))
            .into(),
        Raise::ModelRetry => ModelRetry::new(message).into(),
        Raise::ToolFailed => ToolFailed::new(message).into(),
        Raise::Error => ToolError::from(message.to_owned()),
    }
}

fn wrapped(tools: Tools, at: usize, wrapper: &Wrapper, run: usize) -> Tools {
    match wrapper.wrap.clone() {
        Wrap::ApprovalRequired { tools: None } => tools.approval_required(),
        Wrap::ApprovalRequired { tools: Some(names) } => {
            tools.approval_required_if(move |_, call| names.iter().any(|name| name == call.name()))
        }
        Wrap::Prefixed { prefix } => tools.prefixed(&prefix),
        Wrap::Renamed { map } => tools.renamed(map.iter().map(|(new, old)| (&**new, &**old))),
        Wrap::Filtered { hide } => {
            tools.filtered(move |_, it| !hide.iter().any(|name| name == it.name()))
        }
        Wrap::Middleware { mut rules } => {
            rules.retain(|rule| exists(rule.only_in_runs.as_ref(), run));
            // In every run of the scenario it is the same one, for which an approval holds.
            let name = format!("middleware {at}");
            tools.layered(decide_fn(move |_, call: &ToolCall| decide(&rules, call)).named(name))
        }
    }
}

/// The first rule that matches decides.
fn decide(rules: &[Rule], call: &ToolCall) -> Decision {
    let matches = |rule: &&Rule| {
        (rule.tool == "*" || rule.tool == call.name()) && rule.when.fits(call.args().as_map())
    };
    let Some(rule) = rules.iter().find(matches) else { return Decision::allow() };
    let decision = match rule.decision {
        Verdict::Allow => Decision::allow(),
        Verdict::Ask => Decision::ask(&rule.reason),
        Verdict::Deny => Decision::deny(&rule.reason),
    };
    match &rule.modified_args {
        Some(args) => decision.with_args(args.clone()),
        None => decision,
    }
}
