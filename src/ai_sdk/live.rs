//! Responses that are being made: told to whoever listens, from their first chunk on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use tokio::sync::watch;

use super::chunk::Chunk;
use super::principal::Principal;
use super::refusal::Refusal;
use super::sse::{DONE, KEEP_ALIVE, encode};

/// The responses that this process makes, by chat.
#[derive(Default)]
pub(super) struct Lives(Mutex<HashMap<Key, Arc<Live>>>);

/// Whose chat, and which: nobody is kept waiting by what somebody else calls the same.
type Key = (Principal, String);

/// Whether a request may begin a response.
pub(super) enum Begun {
    /// It may.
    New(Arc<Live>),
    /// The chat has one that is being made.
    There(Arc<Live>),
}

impl Lives {
    pub(super) fn begin(&self, principal: &Principal, chat: &str, request: String) -> Begun {
        let mut lives = self.lock();
        match lives.entry((principal.clone(), chat.to_owned())) {
            Entry::Occupied(live) => Begun::There(Arc::clone(live.get())),
            Entry::Vacant(place) => {
                Begun::New(Arc::clone(place.insert(Arc::new(Live::new(request)))))
            }
        }
    }

    pub(super) fn get(&self, principal: &Principal, chat: &str) -> Option<Arc<Live>> {
        self.lock().get(&(principal.clone(), chat.to_owned())).cloned()
    }

    /// The chat can begin another response than this one.
    pub(super) fn end(&self, principal: &Principal, chat: &str, live: &Live) {
        let key = (principal.clone(), chat.to_owned());
        let mut lives = self.lock();
        if lives.get(&key).is_some_and(|it| std::ptr::eq(&**it, live)) {
            lives.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One response that is being made.
pub(super) struct Live {
    /// What was asked for: whoever asks for the same again is told the same.
    pub(super) request: String,
    events: Mutex<Vec<Event>>,
    /// The message that is being made.
    message: OnceLock<String>,
    state: watch::Sender<State>,
    stopped: watch::Sender<bool>,
    listeners: AtomicUsize,
}

/// One event, as it is told to whoever has posted, and to whoever listens again.
#[derive(Clone)]
struct Event {
    posted: Option<Bytes>,
    replayed: Option<Bytes>,
}

/// What whoever listens again is told. A client that resumes has nothing of the message that is being made.
pub(super) enum Replay<'a> {
    /// The same.
    Same,
    /// Nothing.
    No,
    /// This.
    As(&'a Chunk),
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
    fn new(request: String) -> Self {
        Self {
            request,
            events: Mutex::default(),
            message: OnceLock::new(),
            state: watch::Sender::new(State::Read),
            stopped: watch::Sender::new(false),
            listeners: AtomicUsize::new(0),
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.state.send_replace(State::Refused(refusal));
    }

    pub(super) fn tell(&self, chunk: &Chunk, replay: &Replay<'_>) {
        let posted = event(chunk);
        let replayed = match replay {
            Replay::Same => Some(posted.clone()),
            Replay::No => None,
            Replay::As(chunk) => Some(event(chunk)),
        };
        self.push(Event { posted: Some(posted), replayed }, State::Told);
    }

    /// What only whoever listens again is told.
    pub(super) fn tell_again(&self, chunk: &Chunk) {
        self.push(Event { posted: None, replayed: Some(event(chunk)) }, State::Told);
    }

    /// The response is complete, unless it was refused.
    pub(super) fn end(&self) {
        if matches!(&*self.state.borrow(), State::Refused(_)) {
            return;
        }
        let done = Some(Bytes::from_static(DONE.as_bytes()));
        self.push(Event { posted: done.clone(), replayed: done }, State::Over);
    }

    fn push(&self, event: Event, state: fn(usize) -> State) {
        let told = {
            let mut events = self.events();
            events.push(event);
            events.len()
        };
        self.state.send_replace(state(told));
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which message it makes.
    pub(super) fn makes(&self, message: &str) {
        self.message.get_or_init(|| message.to_owned());
    }

    pub(super) fn message(&self) -> Option<String> {
        self.message.get().cloned()
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

    /// The events from the first on, as for whoever has posted, or for whoever listens again.
    pub(super) fn listen(self: Arc<Self>, how: Listening, again: bool) -> Events {
        self.listeners.fetch_add(1, Ordering::AcqRel);
        let state = self.state.subscribe();
        Events(Listener { live: self, state, next: 0, how, again })
    }
}

/// The events of a response, from its first one on, as the bytes of the body.
pub struct Events(Listener);

struct Listener {
    live: Arc<Live>,
    state: watch::Receiver<State>,
    next: usize,
    how: Listening,
    /// Whoever listens has nothing of the message yet.
    again: bool,
}

/// How a response is listened to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listening {
    /// How long an idle stream is silent.
    pub(super) keep_alive: Duration,
    /// Whether the response is stopped when nobody listens any more.
    pub(super) stops: bool,
}

fn event(chunk: &Chunk) -> Bytes {
    let mut event = Vec::with_capacity(128);
    encode(chunk, &mut event);
    event.into()
}

impl Events {
    /// The next events; `None` when the response is complete.
    pub async fn next(&mut self) -> Option<Bytes> {
        let Self(it) = self;
        loop {
            let next = it.live.events().get(it.next).cloned();
            if let Some(Event { posted, replayed }) = next {
                it.next += 1;
                match if it.again { replayed } else { posted } {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let seen = it.next;
            let more = |state: &State| match state {
                State::Read => false,
                State::Told(told) => *told > seen,
                State::Over(_) | State::Refused(_) => true,
            };
            match tokio::time::timeout(it.how.keep_alive, it.state.wait_for(more)).await {
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
        if self.live.listeners.fetch_sub(1, Ordering::AcqRel) == 1 && self.how.stops {
            self.live.stop();
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.0.next).finish_non_exhaustive()
    }
}
