//! A run that is about to start.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Agent;
use super::blocking::block_on;
use super::iter::RunIter;
use super::output::Output;
use super::parked::Keeper;
use super::result::{RunError, RunResult};
use super::running::{Next, Running};
use super::stream::{RunStream, RunStreamSync};
use crate::call::{Extensions, Meter};
use crate::deferred::DeferredToolResults;
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::message::Message;
use crate::turn::{Retries, RunEvent, SuspendedRun, Turn, Watchers};

/// A run that is about to start: set more, then choose how to run it.
///
/// | | |
/// |---|---|
/// | `.await` | to its end |
/// | [`sync`](Self::sync) | to its end, in a program without an async runtime |
/// | [`stream`](Self::stream), [`stream_sync`](Self::stream_sync) | what happens, as it happens, up to the first streamed answer |
/// | [`stream_events`](Self::stream_events) | what happens, as it happens, to the end of the run |
/// | [`iter`](Self::iter) | step by step |
///
/// ```
/// # use countersign::{Agent, DenyAll, RunError};
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
    /// Who saves it, if it does not do so itself.
    keeper: Option<Keeper>,
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
            keeper: None,
        }
    }

    /// Answers deferred calls inline, in place of the agent's handler.
    pub fn deferred_tool_handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Asks nobody inline, also where the agent has a handler.
    pub fn without_handler(mut self) -> Self {
        self.handler = None;
        self
    }

    /// Adds a dependency, or replaces the agent's of the same type.
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.deps.insert(value);
        self
    }

    /// What this run may end with, in place of what the agent's may.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Watches this run, as it happens, beside whoever watches the agent.
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Goes on with this conversation. It is checked: a call without a result, or a result without a call, is an
    /// error that names it. A run that waits has its own, and takes no other.
    pub fn history(mut self, history: Vec<Message>) -> Self {
        self.state.history = Arc::new(history);
        self
    }

    /// Says something to the model; on a resume, behind the results of the answered calls. A run that ends with calls
    /// that wait has not said it: say it again with their answers.
    pub fn saying(mut self, prompt: impl Into<String>) -> Self {
        self.state.prompts.push(prompt.into());
        self
    }

    /// Runs to the end on this thread, for programs without an async runtime. Async handlers work.
    ///
    /// ```
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// assert_eq!(agent.run("Hello").sync()?.text(), Some("Hi"));
    /// # Ok::<(), countersign::RunError>(())
    /// ```
    ///
    /// # Errors
    /// As awaiting the run; [`UserError::InsideRuntime`](crate::UserError::InsideRuntime) within an async runtime.
    pub fn sync(self) -> Result<RunResult, RunError> {
        let running = self.start();
        let state = running.state.clone();
        block_on(running.run_to_end())
            .unwrap_or_else(|error| Err(RunError::new(error.into(), state, Vec::new())))
    }

    /// Runs step by step: nothing happens between two calls of [`next`](RunIter::next).
    ///
    /// ```
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse, RunStep};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut run = agent.run("Hello").without_handler().iter();
    /// assert!(matches!(run.next().await?, Some(RunStep::ModelRequest)));
    /// let stopped = run.suspended(); // stop here, store it, and go on elsewhere
    /// assert_eq!(agent.ask(stopped).await?.text(), Some("Hi"));
    /// # Ok::<(), countersign::RunError>(()) }).unwrap();
    /// ```
    #[must_use = "a run does nothing until its first step"]
    pub fn iter(self) -> RunIter<'a> {
        RunIter::new(self.start())
    }

    /// Streams what happens, up to the first answer: text ends the run as soon as the response it belongs to is over.
    /// Ordinary calls beside it run; what would wait is not executed, nobody is asked, and the report
    /// [names it](crate::CallReport::is_skipped). To hear everything of a run that goes on to its end, use
    /// [`stream_events`](Self::stream_events) or [`watch`](Self::watch).
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse, RunEvent};
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
    /// # Ok::<(), countersign::RunError>(()) }).unwrap();
    /// ```
    pub fn stream(mut self) -> RunStream<'a> {
        self.ends_with_text = true;
        self.stream_events()
    }

    /// Streams what happens in the whole run, which is the one that awaiting it would be: handlers are asked, approved
    /// calls run, the model goes on.
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse, RunEvent};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let stream = agent.run("Hello").stream_events();
    /// let events: Vec<_> = stream.collect().await;
    /// assert!(matches!(events.last(), Some(RunEvent::Response { .. })));
    /// # Ok::<(), countersign::RunError>(()) }).unwrap();
    /// ```
    pub fn stream_events(mut self) -> RunStream<'a> {
        let events = RunStream::listen(&mut self.watchers);
        RunStream::new(Box::pin(self.start().run_to_end()), events)
    }

    /// The same as [`stream`](Self::stream), as an iterator, for programs without an async runtime. Iterate it outside
    /// of any, too.
    ///
    /// ```
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse, RunEvent};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut stream = agent.run("Hello").stream_sync()?;
    /// assert!(matches!(stream.next(), Some(RunEvent::TextDelta { .. })));
    /// assert_eq!(stream.finish()?.text(), Some("Hi"));
    /// # Ok::<(), countersign::RunError>(())
    /// ```
    ///
    /// # Errors
    /// [`UserError::InsideRuntime`](crate::UserError::InsideRuntime) within an async runtime.
    pub fn stream_sync(self) -> Result<RunStreamSync<'a>, RunError> {
        let state = self.state.clone();
        RunStreamSync::new(self.stream())
            .map_err(|error| RunError::new(error.into(), state, Vec::new()))
    }

    fn start(self) -> Running<'a> {
        let turn = self.agent.turn.clone().shared_handler(self.handler.clone());
        let turn = turn.with_deps(self.deps.clone());
        self.start_with(turn, None)
    }

    /// Starts with this turn, counting for the run above as well.
    pub(super) fn start_with(self, turn: Turn, above: Option<Arc<Meter>>) -> Running<'a> {
        let Self { agent, state, answers, resumes, output, watchers, ends_with_text, .. } = self;
        // A sub-agent's run is saved with its parent's.
        let turn =
            if turn.is_root() && turn.get_ledger().is_some() { turn.closing_later() } else { turn };
        let meter = Arc::new(Meter::new(agent.limits, state.usage, above));
        // A sub-agent's run asks in its parent's.
        let asks = turn.get_asks().cloned().unwrap_or_default();
        asks.extend(&state.denied);
        let turn = turn.with_asks(asks).with_usage(Arc::clone(&meter)).watched_by(watchers.clone());
        Running {
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
            keeper: self.keeper,
            next: Next::Start,
        }
    }

    /// May end with calls that wait, whatever else it may end with.
    #[cfg(feature = "ai-sdk")]
    pub(crate) fn or_deferred(mut self) -> Self {
        self.output = self.output.or_deferred();
        self
    }

    /// Leaves it to somebody else to save the run.
    pub(crate) fn kept_by(mut self, keeper: Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Watched by these as well.
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
