//! The builder of a run, and the ways to run it.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Agent;
use super::blocking::block_on;
use super::iter::RunIter;
use super::output::Output;
use super::reading::RunReading;
use super::result::{RunError, RunResult};
use super::run_loop::{Next, RunLoop};
use super::stream::{RunStream, RunStreamSync};
use crate::call::{Extensions, Meter};
use crate::deferred::DeferredToolResults;
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::ledger::LeaseKeeper;
use crate::message::Message;
use crate::model::TokenUsage;
use crate::origin::ReadRecord;
use crate::turn::{Retries, RunEvent, SuspendedRun, Turn, Watchers};

/// A run that has not started: change its settings, then choose how to run it.
///
/// | | |
/// |---|---|
/// | `.await` | to its end |
/// | [`sync`](Self::sync) | to its end, in a program without an async runtime |
/// | [`stream`](Self::stream), [`stream_sync`](Self::stream_sync) | as events, up to the first streamed answer |
/// | [`stream_events`](Self::stream_events) | as events, to the end of the run |
/// | [`iter`](Self::iter) | step by step |
///
/// ```
/// # use countersign::agent::RunError;
/// # use countersign::handler::DenyAll;
/// # use countersign::Agent;
/// # async fn example(agent: Agent) -> Result<(), RunError> {
/// let run = agent.run("Clean up the logs").deferred_tool_handler(DenyAll::default()).deps(7_u32).await?;
/// # let _ = run; Ok(()) }
/// ```
#[must_use = "a run does nothing until it is awaited"]
pub struct Run<'a> {
    agent: &'a Agent,
    state: SuspendedRun,
    answers: Option<DeferredToolResults>,
    resumes: bool,
    handler: Option<Arc<dyn ErasedHandler>>,
    deps: Extensions,
    output: Output,
    watchers: Watchers,
    ends_with_text: bool,
    is_saved_by_caller: bool,
    /// The lease that the caller has on the run.
    lease: Option<LeaseKeeper>,
    /// The texts that a person typed, to be added to the record of the run's reads.
    said: Vec<String>,
}

impl<'a> Run<'a> {
    pub(super) fn prompt(agent: &'a Agent, prompt: String) -> Self {
        let state = SuspendedRun::from_trusted_history(Vec::new());
        Self { resumes: false, ..Self::resume(agent, state, None) }.saying(prompt)
    }

    pub(super) fn resume(
        agent: &'a Agent,
        state: SuspendedRun,
        answers: Option<DeferredToolResults>,
    ) -> Self {
        let (handler, deps) = (agent.handler.clone(), agent.deps.clone());
        let (output, watchers) = (agent.output.clone(), agent.turn.watchers().clone());
        Self {
            agent,
            state,
            answers,
            resumes: true,
            handler,
            deps,
            output,
            watchers,
            ends_with_text: false,
            is_saved_by_caller: false,
            lease: None,
            said: Vec::new(),
        }
    }

    /// Sets the handler that answers deferred calls inline, in place of the agent's.
    pub fn deferred_tool_handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Runs without a handler, even if the agent has one: deferred calls end the run or are an error, according to its
    /// [output](Self::output).
    ///
    /// Use it for a service whose agent asks at a terminal in development, while people answer elsewhere
    /// in production.
    pub fn without_deferred_tool_handler(mut self) -> Self {
        self.handler = None;
        self
    }

    /// Adds a dependency to this run, in place of the agent's of the same type.
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.deps.insert(value);
        self
    }

    /// Sets what this run may end with, in place of the agent's [output](Agent::output).
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Adds a watcher of this run, beside the agent's.
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Sets the history that the run continues. It is checked: a call without a result, or a result without a call, is
    /// an error that names the call. A suspended run has a history of its own and accepts no other.
    ///
    /// The error names the call:
    ///
    /// ```
    /// use countersign::message::{Message, ResponsePart};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset, ToolCall};
    /// use serde_json::json;
    ///
    /// let call = ResponsePart::ToolCall(ToolCall::new("c7", "delete_file", json!({})));
    /// let answer = ResponsePart::Text("Done.".to_owned());
    /// let history = vec![Message::Response { parts: vec![call] }, Message::Response { parts: vec![answer] }];
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    /// let error = agent.run("And now?").history(history).sync().unwrap_err();
    /// assert!(error.to_string().contains("c7"));
    /// ```
    pub fn history(mut self, history: Vec<Message>) -> Self {
        self.state.history = Arc::new(history);
        self
    }

    /// Adds a prompt of the user; on a resume it follows the results of the answered calls. If the run suspends first,
    /// the prompt is dropped: add it again when the run is resumed.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    /// let stopped = agent.iter("Hello").suspended();
    /// let run = agent.ask(stopped).saying("And be brief").await?;
    /// assert_eq!(run.text(), Some("Done."));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn saying(mut self, prompt: impl Into<String>) -> Self {
        self.state.prompts.push(prompt.into());
        self
    }

    /// Says that a person typed this text, so that its values are targets that the user has named (rule O1), and records
    /// what the run reads. The text is not added to the prompt. We do not take a prompt for the user's words, as it may
    /// be a template, or have documents in it.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    /// let typed = "Write to ann@example.com";
    /// let run = agent.run(format!("Be polite. {typed}")).user_said(typed).await?;
    /// let record = run.reads().expect("it is recorded");
    /// assert!(record.origin().named_by(&["user"], &"ann@example.com".into()));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn user_said(mut self, text: impl Into<String>) -> Self {
        self.said.push(text.into());
        self
    }

    /// Continues the record of an earlier run, whose history this one continues.
    pub fn origins(mut self, record: &ReadRecord) -> Self {
        self.state.reads = Some(record.clone());
        self
    }

    /// Allows the run to end with deferred calls, in addition to its other outputs.
    pub fn or_deferred(mut self) -> Self {
        self.output = self.output.or_deferred();
        self
    }

    /// Leaves saving the run to the caller: the run does not park itself in the agent's [ledger](Agent::ledger), takes
    /// no lease on itself, and closes no asks. The caller saves its end, and closes the asks of its
    /// [turns](crate::TurnReport::closed_asks) with it.
    pub fn saved_by_caller(mut self) -> Self {
        self.is_saved_by_caller = true;
        self
    }

    /// Runs under a lease of the caller, who saves the run ([`saved_by_caller`](Self::saved_by_caller)). Where the
    /// lease is found lost, the run finishes the calls it has started, and ends before its next step with
    /// [`ErrorKind::RunGoneOn`](crate::error::ErrorKind::RunGoneOn). The caller renews the lease:
    ///
    /// ```
    /// # use countersign::agent::{RunError, RunResult};
    /// # use countersign::{Agent, SuspendedRun};
    /// # use countersign::ledger::Lease;
    /// # async fn example(agent: &Agent, lease: Lease<SuspendedRun>) -> Result<RunResult, RunError> {
    /// let (run, lease) = lease.take_state();
    /// let keeper = lease.keeper();
    /// keeper.keep(agent.ask(run).under_lease(keeper).into_future()).await
    /// # }
    /// ```
    pub fn under_lease(mut self, lease: &LeaseKeeper) -> Self {
        self.lease = Some(lease.clone());
        self.saved_by_caller()
    }

    /// Runs to the end, blocking this thread, for programs without an async runtime. Async handlers work.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// assert_eq!(agent.run("Hello").sync()?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of awaiting the run, and [`UserError::InsideRuntime`](crate::UserError::InsideRuntime) within an
    /// async runtime.
    pub fn sync(self) -> Result<RunResult, RunError> {
        let running = self.start();
        let state = running.state.clone();
        block_on(running.run_to_end())
            .unwrap_or_else(|error| Err(RunError::new(error.into(), state, Vec::new())))
    }

    /// Runs step by step: nothing runs between two calls of [`next`](RunIter::next).
    ///
    /// ```
    /// # use countersign::agent::RunStep;
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut run = agent.run("Hello").without_deferred_tool_handler().iter();
    /// assert!(matches!(run.next().await?, Some(RunStep::ModelRequest)));
    /// let stopped = run.suspended(); // stop here, store it, and continue elsewhere
    /// assert_eq!(agent.ask(stopped).await?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    #[must_use = "a run does nothing until its first step"]
    pub fn iter(self) -> RunIter<'a> {
        RunIter::new(self.start())
    }

    /// Streams the events of the run up to the first answer: text ends the run as soon as its response is complete.
    /// Allowed calls of that response run. Calls that would be deferred are neither executed nor asked about, and the
    /// report [marks them](crate::turn::CallReport::is_skipped). For the events of a whole run, use
    /// [`stream_events`](Self::stream_events) or [`watch`](Self::watch).
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::turn::RunEvent;
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut stream = agent.run("Hello").stream();
    /// let mut heard = String::new();
    /// while let Some(event) = stream.next().await {
    ///     match event {
    ///         RunEvent::TextDelta { text } => heard += &text,
    ///         RunEvent::ResponseRestarted => heard.clear(),
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!(stream.finish().await?.text(), Some(heard.as_str()));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn stream(mut self) -> RunStream<'a> {
        self.ends_with_text = true;
        self.stream_events()
    }

    /// Streams the events of the whole run, which is the same run as when it is awaited: handlers are asked, approved
    /// calls run, and the model continues.
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::turn::RunEvent;
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let stream = agent.run("Hello").stream_events();
    /// let events: Vec<_> = stream.collect().await;
    /// assert!(matches!(events.last(), Some(RunEvent::Response { .. })));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn stream_events(mut self) -> RunStream<'a> {
        let events = RunStream::listen(&mut self.watchers);
        RunStream::new(Box::pin(self.start().run_to_end()), events)
    }

    /// Like [`stream`](Self::stream), but returns an iterator that blocks this thread, for programs without an async
    /// runtime. The iterator must not be used inside a runtime either.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::turn::RunEvent;
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut stream = agent.run("Hello").stream_sync()?;
    /// assert!(matches!(stream.next(), Some(RunEvent::TextDelta { .. })));
    /// assert_eq!(stream.finish()?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// [`UserError::InsideRuntime`](crate::UserError::InsideRuntime) within an async runtime.
    pub fn stream_sync(self) -> Result<RunStreamSync<'a>, RunError> {
        let state = self.state.clone();
        RunStreamSync::new(self.stream())
            .map_err(|error| RunError::new(error.into(), state, Vec::new()))
    }

    fn start(self) -> RunLoop<'a> {
        let turn = self.agent.turn.clone().shared_handler(self.handler.clone());
        let turn = turn.with_deps(self.deps.clone());
        self.start_with(turn, None)
    }

    /// Starts the run with this turn. Its usage also counts for `above`, the run that called this agent as a tool.
    pub(super) fn start_with(self, turn: Turn, above: Option<Arc<Meter>>) -> RunLoop<'a> {
        let Self { agent, state, answers, resumes, output, watchers, ends_with_text, .. } = self;
        // A sub-agent's run is saved with its parent's.
        let turn = if turn.is_root() && turn.configured_ledger().is_some() {
            turn.closing_later()
        } else {
            turn
        };
        let meter = Arc::new(Meter::new(agent.limits, state.usage, above));
        // A sub-agent shares the ask history of the root run, which its turn has already.
        let asks = turn.own_ask_history().cloned().unwrap_or_default();
        asks.extend(&state.denied);
        let reads = RunReading::begin(&turn, agent.records_origins, &state, &self.said);
        let turn = match &reads.record {
            Some(record) => turn.origins(record),
            None => turn,
        };
        let turn = turn.with_asks(asks).with_usage(Arc::clone(&meter)).watched_by(watchers.clone());
        let agent_name = turn.agent_path().last().map_or("root", String::as_str);
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = format!("invoke_agent {agent_name}"),
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = agent_name,
            gen_ai.conversation.id = state.run_id.as_str(),
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            error.type = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        RunLoop {
            agent,
            state,
            answers,
            resumes,
            turn,
            output,
            ends_with_text,
            watchers,
            meter,
            retries: Retries::new(agent.max_retries),
            turns: Vec::new(),
            is_saved_by_caller: self.is_saved_by_caller,
            lease: self.lease,
            next: Next::Start,
            span,
            tokens: TokenUsage::default(),
            reads,
        }
    }

    /// Adds these watchers.
    pub(super) fn watched_by(mut self, watchers: &Watchers) -> Self {
        self.watchers.extend(watchers);
        self
    }
}

impl<'a> IntoFuture for Run<'a> {
    type Output = Result<RunResult, RunError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start().run_to_end())
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("state", &self.state).finish_non_exhaustive()
    }
}
