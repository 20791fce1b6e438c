//! Runs as streams of events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{Stream, StreamExt as _};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::blocking::runtime;
use super::result::{RunError, RunResult};
use crate::error::UserError;
use crate::turn::{RunEvent, Watchers};

/// The events of a run, as they happen; see [`Run::stream`](crate::agent::Run::stream). The run proceeds while the stream is
/// polled, and is cancelled when it is dropped.
///
/// The queue of events has no limit, and the run does not wait for the reader. The queue holds at most what one poll
/// of the run produces.
#[must_use = "a run does nothing until its stream is polled"]
pub struct RunStream<'a> {
    run: State<'a>,
    events: UnboundedReceiver<RunEvent>,
}

enum State<'a> {
    Runs(BoxFuture<'a, Result<RunResult, RunError>>),
    Over(Result<RunResult, RunError>),
}

impl<'a> RunStream<'a> {
    pub(super) fn listen(watchers: &mut Watchers) -> UnboundedReceiver<RunEvent> {
        let (tell, events) = unbounded_channel();
        watchers.add(move |event| {
            // Fails only after the stream was dropped, and the run with it.
            let _ = tell.send(event.clone());
        });
        events
    }

    pub(super) fn new(
        run: BoxFuture<'a, Result<RunResult, RunError>>,
        events: UnboundedReceiver<RunEvent>,
    ) -> Self {
        Self { run: State::Runs(run), events }
    }

    /// Runs to the end without the remaining events, and returns the result.
    ///
    /// # Errors
    /// The errors of awaiting the run.
    ///
    /// Call it, too, to stop reading early and let the run continue. If you drop the stream
    /// instead, you cancel the run.
    pub async fn finish(self) -> Result<RunResult, RunError> {
        match self.run {
            State::Runs(run) => run.await,
            State::Over(result) => result,
        }
    }
}

impl Stream for RunStream<'_> {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let this = &mut *self;
        if let Ok(event) = this.events.try_recv() {
            return Poll::Ready(Some(event));
        }
        if let State::Runs(run) = &mut this.run
            && let Poll::Ready(result) = run.as_mut().poll(cx)
        {
            this.run = State::Over(result);
        }
        match this.events.poll_recv(cx) {
            // The run is over, but `poll_recv` may return pending although events are left: tokio's cooperative budget
            // of the task may be used up.
            Poll::Pending if matches!(this.run, State::Over(_)) => {
                Poll::Ready(this.events.try_recv().ok())
            }
            polled => polled,
        }
    }
}

/// The events of a run as a blocking iterator; see [`Run::stream_sync`](crate::agent::Run::stream_sync).
#[must_use = "a run does nothing until it is iterated"]
pub struct RunStreamSync<'a> {
    runtime: &'static Runtime,
    stream: RunStream<'a>,
}

impl<'a> RunStreamSync<'a> {
    pub(super) fn new(stream: RunStream<'a>) -> Result<Self, UserError> {
        Ok(Self { runtime: runtime()?, stream })
    }

    /// Runs to the end without the remaining events, and returns the result.
    ///
    /// # Errors
    /// The errors of awaiting the run.
    pub fn finish(self) -> Result<RunResult, RunError> {
        self.runtime.block_on(self.stream.finish())
    }
}

impl Iterator for RunStreamSync<'_> {
    type Item = RunEvent;

    fn next(&mut self) -> Option<RunEvent> {
        self.runtime.block_on(self.stream.next())
    }
}

impl fmt::Debug for RunStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("over", &matches!(self.run, State::Over(_)))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunStreamSync<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}
