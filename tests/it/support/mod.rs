//! Shared test helpers: a recording toolset, and shorthands for calls and turns.

#![allow(
    dead_code,
    unused_imports,
    reason = "each of the two binaries of tests uses a part of them"
)]

pub(crate) mod clients;
pub(crate) mod commands;
mod dice;
pub(crate) mod failing_store;
pub(crate) mod foreign;
mod inner_store;
mod kinds;
mod layers;
mod logs;
pub(crate) mod place;
pub(crate) mod postgres;
pub(crate) mod program;
mod told;
#[cfg(unix)]
mod written;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::outcome::ToolReturn;
use countersign::{
    Args, BoxError, Permit, RunContext, ToolCall, ToolDefinition, ToolError, Toolset, Turn,
    TurnReport,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use dice::Dice;
pub(crate) use inner_store::inner_store;
pub(crate) use kinds::every_kind;
pub(crate) use layers::{Inside, Retries, by_name, relay};
pub(crate) use logs::{Buffer, subscriber};
pub(crate) use program::program;
pub(crate) use told::{last_seen, results};
#[cfg(unix)]
pub(crate) use written::write_program;

/// Of how many rows of a sweep a test takes one: `.ci/test` sets `COUNTERSIGN_SWEEP`, and `.ci/long` takes all.
pub(crate) fn one_row_of() -> usize {
    std::env::var("COUNTERSIGN_SWEEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// How many cases a property is tried with: all of them, or a share in the short form.
pub(crate) fn cases(all: u32) -> u32 {
    all.div_ceil(u32::try_from(one_row_of()).unwrap_or(1))
}

/// Serialises a value to JSON and back, as if another process loaded it.
pub(crate) fn stored<T: Serialize + DeserializeOwned>(waiting: &T) -> T {
    serde_json::from_str(&serde_json::to_string(waiting).unwrap()).unwrap()
}

/// One execution of a tool body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ran {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) args: Args,
    pub(crate) approved: bool,
    pub(crate) metadata: Option<Value>,
}

type Body = Arc<dyn Fn(&RunContext, &ToolCall) -> Result<Value, ToolError> + Send + Sync>;

/// A toolset that records each execution, so that a test can assert that a tool was not called as strictly as that it
/// was.
#[derive(Clone)]
pub(crate) struct Recorder {
    id: String,
    ran: Arc<Mutex<Vec<Ran>>>,
    ended: Arc<Mutex<Vec<String>>>,
    running: Arc<Mutex<(usize, usize)>>,
    takes: Option<Duration>,
    tools: Vec<ToolDefinition>,
    body: Body,
}

impl Recorder {
    /// Tools with these names, which accept any arguments and return them.
    pub(crate) fn new<const N: usize>(names: [&str; N]) -> Self {
        let tools =
            names.into_iter().map(|name| ToolDefinition::new(name, json!({"type": "object"})));
        Self::of(tools)
    }

    pub(crate) fn of(tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        Self {
            id: "recorder".into(),
            ran: Arc::default(),
            ended: Arc::default(),
            running: Arc::default(),
            takes: None,
            tools: tools.into_iter().collect(),
            body: Arc::new(|_, call| Ok(call.args().to_value())),
        }
    }

    /// Sets the body of every tool.
    pub(crate) fn body(
        mut self,
        body: impl Fn(&RunContext, &ToolCall) -> Result<Value, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.body = Arc::new(body);
        self
    }

    /// Sets the id of the toolset.
    pub(crate) fn id(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// Makes every body take this long, by tokio's clock.
    pub(crate) fn taking(mut self, takes: Duration) -> Self {
        self.takes = Some(takes);
        self
    }

    /// The ids of the calls whose bodies ran to their end, in that order.
    pub(crate) fn ended(&self) -> Vec<String> {
        self.ended.lock().unwrap().clone()
    }

    /// The maximum number of bodies that ran at the same time.
    pub(crate) fn peak(&self) -> usize {
        self.running.lock().unwrap().1
    }

    fn count(&self, change: isize) {
        let mut running = self.running.lock().unwrap();
        running.0 = running.0.checked_add_signed(change).unwrap();
        running.1 = running.1.max(running.0);
    }

    pub(crate) fn ran(&self) -> Vec<Ran> {
        self.ran.lock().unwrap().clone()
    }

    /// The ids of the calls that ran, sorted.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.ran().into_iter().map(|ran| ran.id).collect();
        ids.sort();
        ids
    }
}

impl Toolset for Recorder {
    fn id(&self) -> &str {
        &self.id
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Ok(self.tools.clone())
    }

    fn validate(&self, _: &str, args: &Args) -> Result<(), String> {
        if args.get("invalid").is_some() { Err("`invalid` is not allowed".into()) } else { Ok(()) }
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        let cx = permit.context();
        self.ran.lock().unwrap().push(Ran {
            id: permit.call().id().to_owned(),
            tool: permit.tool().to_owned(),
            args: permit.args().clone(),
            approved: cx.tool_call_approved(),
            metadata: cx.tool_call_metadata().map(|map| Value::Object(map.clone())),
        });
        let result = (self.body)(cx, permit.call());
        self.count(1);
        match self.takes {
            Some(takes) => tokio::time::sleep(takes).await,
            None => tokio::task::yield_now().await,
        }
        self.count(-1);
        self.ended.lock().unwrap().push(permit.call().id().to_owned());
        result.map(ToolReturn::new)
    }
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> ToolCall {
    ToolCall::new(id, tool, args)
}

/// The outcomes as words, in model order.
pub(crate) fn words(report: &TurnReport) -> Vec<&'static str> {
    report.calls().iter().map(|call| call.outcome().word()).collect()
}

/// The content of the outcome at this index, as the model receives it; `null` for a deferred call.
pub(crate) fn content(report: &TurnReport, at: usize) -> Value {
    report.calls()[at].outcome().content().unwrap_or(Value::Null)
}

/// Runs a turn with this one call.
pub(crate) async fn run_one(turn: &Turn, call: ToolCall) -> TurnReport {
    turn.run(vec![call]).await.unwrap()
}
