//! Responses that are being made: told to whoever listens, from their first chunk on.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use tokio::sync::watch;

use super::chunk::Chunk;
use super::refusal::Refusal;
use super::sse::{DONE, KEEP_ALIVE, encode};

/// The responses that this process makes, by principal and chat: nobody is kept from a chat by others who name it.
#[derive(Default)]
pub(super) struct Lives(Mutex<ByChat>);

type ByChat = HashMap<(String, String), Arc<Live>>;

/// Whether a request may begin a response.
pub(super) enum Begun {
    /// It may.
    New(Arc<Live>),
    /// The chat has one that is being made.
    There(Arc<Live>),
}

impl Lives {
    pub(super) fn begin(&self, chat: &str, principal: &str, request: &str) -> Begun {
        let mut lives = self.lock();
        let key = (principal.to_owned(), chat.to_owned());
        if let Some(live) = lives.get(&key) {
            return Begun::There(Arc::clone(live));
        }
        let live = Arc::new(Live::new(principal, request));
        lives.insert(key, Arc::clone(&live));
        Begun::New(live)
    }

    pub(super) fn get(&self, chat: &str, principal: &str) -> Option<Arc<Live>> {
        self.lock().get(&(principal.to_owned(), chat.to_owned())).cloned()
    }

    /// The chat can begin another response than this one.
    pub(super) fn end(&self, chat: &str, live: &Live) {
        let mut lives = self.lock();
        let key = (live.principal.clone(), chat.to_owned());
        if lives.get(&key).is_some_and(|it| std::ptr::eq(&**it, live)) {
            lives.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByChat> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One response that is being made.
pub(super) struct Live {
    principal: String,
    /// What was asked for: whoever asks for the same again is told the same.
    pub(super) request: String,
    events: Mutex<Vec<Bytes>>,
    state: watch::Sender<State>,
    stopped: watch::Sender<bool>,
    listeners: AtomicUsize,
}

/// How far a response is.
#[derive(Clone, PartialEq)]
enum State {
    /// The request is looked at.
    Read,
    /// It is made: there are so many events.
    Told(usize),
    /// It is complete: so many events.
    Over(usize),
    /// The request was refused.
    Refused(Refusal),
}

impl Live {
    fn new(principal: &str, request: &str) -> Self {
        Self {
            principal: principal.to_owned(),
            request: request.to_owned(),
            events: Mutex::default(),
            state: watch::Sender::new(State::Read),
            stopped: watch::Sender::new(false),
            listeners: AtomicUsize::new(0),
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.state.send_replace(State::Refused(refusal));
    }

    pub(super) fn tell(&self, chunk: &Chunk) {
        let mut event = Vec::with_capacity(128);
        encode(chunk, &mut event);
        let told = self.push(event.into());
        self.state.send_replace(State::Told(told));
    }

    /// The response is complete, unless it was refused.
    pub(super) fn end(&self) {
        if matches!(&*self.state.borrow(), State::Refused(_)) {
            return;
        }
        let told = self.push(Bytes::from_static(DONE.as_bytes()));
        self.state.send_replace(State::Over(told));
    }

    fn push(&self, event: Bytes) -> usize {
        let mut events = self.events();
        events.push(event);
        events.len()
    }

    fn events(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until the response is to be stopped.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until it is known whether the request is refused.
    pub(super) async fn accepted(&self) -> Result<(), Refusal> {
        let mut state = self.state.subscribe();
        match state.wait_for(|state| *state != State::Read).await.as_deref() {
            Ok(State::Refused(refusal)) => Err(refusal.clone()),
            _ => Ok(()),
        }
    }

    /// The events from the first on.
    pub(super) fn listen(self: Arc<Self>, keep_alive: Duration, stops: bool) -> Events {
        self.listeners.fetch_add(1, Ordering::AcqRel);
        let state = self.state.subscribe();
        Events(Listener { live: self, state, next: 0, keep_alive, stops })
    }
}

/// The events of a response, from its first one on, as the bytes of the body.
pub struct Events(Listener);

struct Listener {
    live: Arc<Live>,
    state: watch::Receiver<State>,
    next: usize,
    keep_alive: Duration,
    /// Whether the response is stopped when nobody listens any more.
    stops: bool,
}

impl Events {
    /// The next events; `None` when the response is complete.
    pub async fn next(&mut self) -> Option<Bytes> {
        let Self(it) = self;
        loop {
            let next = it.live.events().get(it.next).cloned();
            if let Some(event) = next {
                it.next += 1;
                return Some(event);
            }
            let seen = it.next;
            let more = |state: &State| match state {
                State::Read => false,
                State::Told(told) => *told > seen,
                State::Over(_) | State::Refused(_) => true,
            };
            match tokio::time::timeout(it.keep_alive, it.state.wait_for(more)).await {
                Err(_) => return Some(Bytes::from_static(KEEP_ALIVE.as_bytes())),
                Ok(Ok(state)) => match &*state {
                    State::Over(told) if *told > seen => {}
                    State::Told(_) => {}
                    _ => return None,
                },
                Ok(Err(_)) => return None,
            }
        }
    }

    /// As a stream, for the body of an HTTP response.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
        futures::stream::unfold(self, |mut events| async move {
            let event = events.next().await?;
            Some((Ok(event), events))
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.live.listeners.fetch_sub(1, Ordering::AcqRel) == 1 && self.stops {
            self.live.stop();
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.0.next).finish_non_exhaustive()
    }
}
