//! Random stacks and calls, and what they would decide, as plain functions.

use std::sync::{Arc, Mutex};

use countersign::middleware::{Chain, ToolCallError};
use countersign::outcome::{ApprovalRequired, CallDeferred, ModelRetry, ToolFailed};
use countersign::{
    BoxError, Decision, Outcome, RunContext, ToolCall, ToolError, ToolMiddleware,
    ToolMiddlewareExt, Tools, ToolsExt, decide_fn,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::Recorder;
use crate::support::foreign::{Foreign, Mischief, Reach};

/// What a middleware says about a call whose argument `n` is this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Says {
    Allow,
    Ask,
    Deny,
    Rewrite(u8),
    AskAndRewrite(u8),
}

/// One middleware: what it says for each `n` from 0 to 5.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table(pub(crate) [Says; 6]);

impl Table {
    pub(crate) fn says(&self, n: u8) -> Says {
        self.0[usize::from(n % 6)]
    }

    /// Returns `true` if it changes other arguments into these.
    pub(crate) fn makes(&self, n: u8) -> bool {
        let makes =
            |says: &Says| matches!(says, Says::Rewrite(to) | Says::AskAndRewrite(to) if *to == n);
        self.0.iter().enumerate().any(|(from, says)| from != usize::from(n) && makes(says))
    }

    fn decide(&self, call: &ToolCall) -> Decision {
        let n = number(call);
        match self.says(n) {
            Says::Allow => Decision::allow(),
            Says::Ask => Decision::ask("sure?").with_key(format!("ask {n}")),
            Says::Deny => Decision::deny("no"),
            Says::Rewrite(to) => Decision::allow().with_args(call.args().clone().with("n", to)),
            Says::AskAndRewrite(to) => Decision::ask("sure?")
                .with_key(format!("ask {n}"))
                .with_args(call.args().clone().with("n", to)),
        }
    }
}

pub(crate) fn number(call: &ToolCall) -> u8 {
    call.args()["n"].as_u64().and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
}

/// The same table as an async middleware.
struct Slow(Table, String);

impl ToolMiddleware for Slow {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        self.1.clone().into()
    }

    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        tokio::task::yield_now().await;
        self.0.decide(call)
    }
}

/// Sends the call to the gate before it decides.
struct Eager(Tools);

impl ToolMiddleware for Eager {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        let _ = self.0.clone().oneshot(call.clone()).await;
        Decision::allow()
    }
}

/// D8: sees outcomes of executions only, and may change what the model is told, not the record.
struct Hooks(Log);

impl ToolMiddleware for Hooks {
    async fn after_tool_call(&self, _: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        assert!(!matches!(outcome, Outcome::Denied(_) | Outcome::Deferred(_)), "D8: {outcome:?}");
        let ran = self.0.executions().iter().any(|execution| execution.id == call.id());
        assert!(ran, "D8: {} was never executed", call.id());
        Outcome::denied("a hook cannot deny what ran")
    }

    async fn on_tool_error(
        &self,
        _: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        let ran = self.0.executions().iter().any(|execution| execution.id == call.id());
        assert!(ran || !error.execution.started(), "D8: the record says more than happened");
        Ok(Outcome::failed("mended"))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Level {
    Sync(Table),
    Async(Table),
    Chain(Vec<Table>),
    Parallel(Vec<Table>),
    /// Changes what it is told after the call.
    Hooks,
    /// Sends the call to the gate from its hook.
    Eager,
    Foreign(Mischief),
}

impl Level {
    fn around(&self, tools: Tools, at: usize, log: &Log, reach: &Reach) -> Tools {
        let name = |member: usize| format!("level {at}.{member}");
        let sync = |table: &Table, member| {
            let table = table.clone();
            decide_fn(move |_, call| table.decide(call)).named(name(member))
        };
        let chain = |tables: &[Table]| {
            let members = tables.iter().enumerate();
            members.fold(Chain::new(), |chain, (member, table)| {
                chain.with(Slow(table.clone(), name(member)))
            })
        };
        match self {
            Self::Sync(table) => tools.layered(sync(table, 0)),
            Self::Async(table) => tools.layered(Slow(table.clone(), name(0)).into_layer()),
            Self::Chain(tables) => tools.layered(chain(tables).into_layer()),
            Self::Parallel(tables) => tools.layered(chain(tables).parallel().into_layer()),
            Self::Hooks => tools.layered(Hooks(log.clone()).into_layer()),
            Self::Eager => tools.layered(Eager(reach.gate.clone()).into_layer()),
            Self::Foreign(mischief) => tools.layered(Foreign::new(*mischief).reaching(reach)),
        }
    }

    pub(crate) fn tables(&self) -> &[Table] {
        match self {
            Self::Sync(table) | Self::Async(table) => std::slice::from_ref(table),
            Self::Chain(tables) | Self::Parallel(tables) => tables,
            Self::Hooks | Self::Eager | Self::Foreign(_) => &[],
        }
    }
}

/// How the body of a tool ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    Returned,
    Failed,
    Retry,
    Fatal,
    Panics,
    /// Asks an own question, and returns when it was approved for it.
    AsksItself,
    /// Hands its call out, always.
    HandsOut,
}

/// One execution of a body, numbered in the order of everything that happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Execution {
    pub(crate) at: usize,
    pub(crate) id: String,
    pub(crate) n: u8,
    pub(crate) approved: bool,
    /// `true` if it asked for an approval or handed its call out.
    pub(crate) deferred: bool,
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: usize,
    executions: Vec<Execution>,
}

impl Log {
    pub(crate) fn tick(&self) -> usize {
        let mut inner = self.0.lock().unwrap();
        inner.next += 1;
        inner.next
    }

    pub(crate) fn executions(&self) -> Vec<Execution> {
        self.0.lock().unwrap().executions.clone()
    }

    fn record(&self, execution: Execution) {
        self.0.lock().unwrap().executions.push(execution);
    }
}

/// The stack, outermost level first, around tools whose bodies write to the log.
pub(crate) fn build(levels: &[Level], log: &Log) -> Tools {
    let own = log.clone();
    let tools = Recorder::new([
        "returned",
        "failed",
        "retry",
        "fatal",
        "panics",
        "asks_itself",
        "hands_out",
    ]);
    let tools = tools.body(move |cx, call| body(&own, cx, call));
    let gate: Tools = tools.into();
    let reach = Reach { gate: gate.clone(), kept: Arc::default() };
    let around = |tools, (at, level): (usize, &Level)| level.around(tools, at, log, &reach);
    levels.iter().enumerate().rev().fold(gate, around)
}

fn body(log: &Log, cx: &RunContext, call: &ToolCall) -> Result<Value, ToolError> {
    let result = match call.name() {
        "failed" => Err(ToolFailed::new("failed").into()),
        "retry" => Err(ModelRetry::new("again").into()),
        "fatal" => Err(ToolError::fatal("broken")),
        "asks_itself" => cx.approved_for("myself").map_err(ToolError::from).map(|()| json!("done")),
        "hands_out" => Err(CallDeferred::new().into()),
        _ => Ok(json!("done")),
    };
    let deferred = matches!(
        result,
        Err(ToolError::ApprovalRequired(ApprovalRequired { .. }) | ToolError::CallDeferred(_))
    );
    log.record(Execution {
        at: log.tick(),
        id: call.id().to_owned(),
        n: number(call),
        approved: cx.tool_call_approved(),
        deferred,
    });
    assert_ne!(call.name(), "panics", "as it should");
    result
}

impl Ends {
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed => "failed",
            Self::Retry => "retry",
            Self::Fatal => "fatal",
            Self::Panics => "panics",
            Self::AsksItself => "asks_itself",
            Self::HandsOut => "hands_out",
        }
    }
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        5 => Just(Says::Allow),
        3 => Just(Says::Ask),
        1 => Just(Says::Deny),
        1 => (0..6_u8).prop_map(Says::Rewrite),
        1 => (0..6_u8).prop_map(Says::AskAndRewrite),
    ]
}

fn table() -> impl Strategy<Value = Table> {
    prop::array::uniform6(says()).prop_map(Table)
}

fn mischief() -> impl Strategy<Value = Mischief> {
    prop_oneof![
        Just(Mischief::Rebuild),
        Just(Mischief::Clear),
        Just(Mischief::Replay),
        Just(Mischief::ReplayToo),
        Just(Mischief::Duplicate),
        Just(Mischief::Retry),
        Just(Mischief::Hedge),
        Just(Mischief::Detach),
        Just(Mischief::DetachAndLeave),
        Just(Mischief::GiveUp),
        Just(Mischief::GoRound),
        Just(Mischief::TryRound),
        Just(Mischief::Keep),
        Just(Mischief::SendKept),
        (0..6_u8).prop_map(Mischief::Rewrite),
        Just(Mischief::RewriteDifferently),
        Just(Mischief::Swallow),
        Just(Mischief::Cache),
        Just(Mischief::Panic),
    ]
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![
        3 => table().prop_map(Level::Sync),
        3 => table().prop_map(Level::Async),
        1 => prop::collection::vec(table(), 0..3).prop_map(Level::Chain),
        1 => prop::collection::vec(table(), 0..3).prop_map(Level::Parallel),
        1 => Just(Level::Hooks),
        1 => Just(Level::Eager),
        4 => mischief().prop_map(Level::Foreign),
    ]
}

pub(crate) fn levels() -> impl Strategy<Value = Vec<Level>> {
    prop::collection::vec(level(), 0..6)
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![
        6 => Just(Ends::Returned),
        1 => Just(Ends::Failed),
        1 => Just(Ends::Retry),
        1 => Just(Ends::Fatal),
        1 => Just(Ends::Panics),
        1 => Just(Ends::AsksItself),
        1 => Just(Ends::HandsOut),
    ]
}

/// The calls of a response: which tool, and its `n`.
pub(crate) fn calls() -> impl Strategy<Value = Vec<(Ends, u8)>> {
    prop::collection::vec((ends(), 0..6_u8), 1..6)
}
