//! Streams in flight: we keep every event of a response until the response is complete, so a client that comes
//! later reads it from the beginning.
//!
//! A response is a task of its own with a list of events. The connection of the client that posted is one reader of
//! that list. So a connection that breaks costs nothing, a page that is loaded again reads from the beginning, and a
//! request that the client's library repeats after an error joins the response in flight:
//!
//! | a request comes while a response is made | gets |
//! |---|---|
//! | with the same body | the same events, from the first one |
//! | with another body | 409, to be tried again after a second |
//! | `GET …/stream` | all of the message from its beginning |
//!
//! When the response is complete, the events are dropped with the stream: the chat has what was said.

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
use super::rejection::Rejection;
use super::sse::{DONE, KEEP_ALIVE, encode};

/// The streams that this process has in flight, at most one for each chat.
#[derive(Default)]
pub(super) struct ActiveStreams(Mutex<HashMap<ChatKey, Arc<ActiveStream>>>);

/// The principal is part of the key: a chat of the same id that belongs to another principal is another chat, and must
/// neither block this one nor reveal that it exists.
///
/// Ids of chats are chosen by clients, so two people may have the same.
type ChatKey = (Principal, String);

/// The result of [`ActiveStreams::begin`]: whether the caller makes a response or joins one.
pub(super) enum Begin {
    /// The chat had no stream: this is its new one, and the caller has to make the response.
    New(Arc<ActiveStream>),
    /// The chat has this stream in flight already.
    InFlight(Arc<ActiveStream>),
}

impl ActiveStreams {
    pub(super) fn begin(&self, principal: &Principal, chat: &str, request: String) -> Begin {
        match self.lock().entry((principal.clone(), chat.to_owned())) {
            Entry::Occupied(entry) => Begin::InFlight(Arc::clone(entry.get())),
            Entry::Vacant(entry) => {
                let stream = Arc::new(ActiveStream::new(request));
                Begin::New(Arc::clone(entry.insert(stream)))
            }
        }
    }

    pub(super) fn get(&self, principal: &Principal, chat: &str) -> Option<Arc<ActiveStream>> {
        self.lock().get(&(principal.clone(), chat.to_owned())).cloned()
    }

    /// Removes a stream, so that its chat can begin another one. A stream that has taken its place stays.
    ///
    /// We compare by identity and not by key: a response that ends late must not remove its
    /// successor.
    pub(super) fn remove(&self, principal: &Principal, chat: &str, stream: &ActiveStream) {
        let key = (principal.clone(), chat.to_owned());
        let mut streams = self.lock();
        if streams.get(&key).is_some_and(|current| std::ptr::eq(&**current, stream)) {
            streams.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChatKey, Arc<ActiveStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of one response: its events so far, its state, and how many clients read it.
pub(super) struct ActiveStream {
    /// The digest of the request body: a request with the same body joins the stream instead of being rejected.
    pub(super) request: String,
    events: Mutex<Vec<StreamEvent>>,
    /// The id of the message that the response is part of, once it is known.
    message: OnceLock<String>,
    state: watch::Sender<StreamState>,
    stopped: watch::Sender<bool>,
    subscribers: AtomicUsize,
}

/// One event in its two forms. A form is `None` where its clients do not get the event.
///
/// The client that posted shows its own answers already, and one that resumes has nothing. If a chunk would be wrong
/// for one of them, the two forms differ.
#[derive(Clone)]
struct StreamEvent {
    /// For the client that has posted the request, and so has the message up to where the response begins.
    posted: Option<Bytes>,
    /// For a client that resumes the stream, and so has nothing of the message.
    replayed: Option<Bytes>,
}

/// The chunk that a client which resumes the stream is sent in place of this one.
pub(super) enum Replay<'a> {
    /// The chunk that the client of the request gets.
    Same,
    /// No chunk, as the replay has chunks of its own for this content.
    Skip,
    /// Another chunk, as this one would be wrong at a client that has not posted the request.
    Instead(&'a Chunk),
}

#[derive(Clone, PartialEq)]
enum StreamState {
    /// The request is being checked: it may still be rejected.
    Pending,
    /// The response is being made, with this many events so far.
    Open(usize),
    /// The response is complete, with this many events.
    Complete(usize),
    Rejected(Rejection),
}

impl ActiveStream {
    fn new(request: String) -> Self {
        Self {
            request,
            events: Mutex::default(),
            message: OnceLock::new(),
            state: watch::Sender::new(StreamState::Pending),
            stopped: watch::Sender::new(false),
            subscribers: AtomicUsize::new(0),
        }
    }

    pub(super) fn reject(&self, rejection: Rejection) {
        self.state.send_replace(StreamState::Rejected(rejection));
    }

    pub(super) fn send(&self, chunk: &Chunk, replay: &Replay<'_>) {
        let posted = event(chunk);
        let replayed = match replay {
            Replay::Same => Some(posted.clone()),
            Replay::Skip => None,
            Replay::Instead(chunk) => Some(event(chunk)),
        };
        self.push(StreamEvent { posted: Some(posted), replayed }, StreamState::Open);
    }

    /// Sends a chunk only to clients that resume the stream.
    pub(super) fn send_replay(&self, chunk: &Chunk) {
        self.push(StreamEvent { posted: None, replayed: Some(event(chunk)) }, StreamState::Open);
    }

    /// Completes the stream, unless the request was rejected.
    ///
    /// A rejected request was answered with a status, and its readers get no events.
    pub(super) fn complete(&self) {
        if matches!(&*self.state.borrow(), StreamState::Rejected(_)) {
            return;
        }
        let done = Some(Bytes::from_static(DONE.as_bytes()));
        self.push(StreamEvent { posted: done.clone(), replayed: done }, StreamState::Complete);
    }

    /// The number of events is published after the event is in the list, so a reader that is woken finds it.
    fn push(&self, event: StreamEvent, state: fn(usize) -> StreamState) {
        let count = {
            let mut events = self.events();
            events.push(event);
            events.len()
        };
        self.state.send_replace(state(count));
    }

    fn events(&self) -> MutexGuard<'_, Vec<StreamEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the id of the message. Only the first call counts.
    pub(super) fn set_message(&self, message: &str) {
        self.message.get_or_init(|| message.to_owned());
    }

    pub(super) fn message(&self) -> Option<String> {
        self.message.get().cloned()
    }

    pub(super) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Waits until [`stop`](Self::stop) is called.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the request is accepted or rejected.
    pub(super) async fn accepted(&self) -> Result<(), Rejection> {
        let mut state = self.state.subscribe();
        match state.wait_for(|state| *state != StreamState::Pending).await.as_deref() {
            Ok(StreamState::Rejected(rejection)) => Err(rejection.clone()),
            _ => Ok(()),
        }
    }

    /// Subscribes to the events, from the first one on. With `replay`, to those for a client that resumes the stream.
    pub(super) fn subscribe(self: Arc<Self>, options: StreamOptions, replay: bool) -> Events {
        self.subscribers.fetch_add(1, Ordering::AcqRel);
        let state = self.state.subscribe();
        Events(Subscription { stream: self, state, next: 0, options, replay })
    }
}

/// The events of a response as the bytes of an HTTP body, from the first event on.
///
/// Each item is one server-sent event, encoded as [`encode`] does it; the last one is [`DONE`]. While the response is
/// idle, [`KEEP_ALIVE`] comes at the interval of [`Chats::keep_alive`](super::Chats::keep_alive). Dropping the events
/// does not stop the response, except with [`Chats::stop_on_disconnect`](super::Chats::stop_on_disconnect).
pub struct Events(Subscription);

struct Subscription {
    stream: Arc<ActiveStream>,
    state: watch::Receiver<StreamState>,
    /// The index of the next event.
    next: usize,
    options: StreamOptions,
    /// `true` if the events are those for a client that resumes.
    replay: bool,
}

/// The behaviour of the subscriptions of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamOptions {
    /// For how long an idle subscription is silent.
    pub(super) keep_alive: Duration,
    /// `true` if the response is stopped when its last subscription is dropped.
    pub(super) stop_on_disconnect: bool,
}

fn event(chunk: &Chunk) -> Bytes {
    let mut event = Vec::with_capacity(128);
    encode(chunk, &mut event);
    event.into()
}

impl Events {
    /// Waits for the next event. Returns `None` when the response is complete.
    ///
    /// This method is cancel safe: dropping the future loses no event.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, or in one whose timer is not enabled.
    ///
    /// ```
    /// use countersign_ai_sdk::{Chats, DONE, Principal};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let chats = Chats::new(Agent::new(ScriptedModel::new([]), FunctionToolset::new()));
    /// let body = br#"{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hello"}]}]}"#;
    /// let mut events = chats.post(&Principal::new("ann"), body).await?;
    /// let mut last = None;
    /// while let Some(event) = events.next().await {
    ///     last = Some(event);
    /// }
    /// assert_eq!(last.as_deref(), Some(DONE.as_bytes()));
    /// # Ok::<(), countersign_ai_sdk::Rejection>(()) }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Option<Bytes> {
        let Self(it) = self;
        loop {
            let next = it.stream.events().get(it.next).cloned();
            if let Some(StreamEvent { posted, replayed }) = next {
                it.next += 1;
                match if it.replay { replayed } else { posted } {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let seen = it.next;
            let has_more = |state: &StreamState| match state {
                StreamState::Pending => false,
                StreamState::Open(count) => *count > seen,
                StreamState::Complete(_) | StreamState::Rejected(_) => true,
            };
            match tokio::time::timeout(it.options.keep_alive, it.state.wait_for(has_more)).await {
                Err(_) => return Some(Bytes::from_static(KEEP_ALIVE.as_bytes())),
                Ok(Ok(state)) => match &*state {
                    StreamState::Complete(count) if *count > seen => {}
                    StreamState::Open(_) => {}
                    _ => return None,
                },
                Ok(Err(_)) => return None,
            }
        }
    }

    /// Turns the events into a [`Stream`] for the body of an HTTP response.
    ///
    /// ```
    /// use axum::body::Body;
    /// use countersign_ai_sdk::{Chats, Principal, Rejection};
    ///
    /// async fn answer(chats: &Chats, body: &[u8]) -> Result<Body, Rejection> {
    ///     let events = chats.post(&Principal::new("ann"), body).await?;
    ///     Ok(Body::from_stream(events.into_stream()))
    /// }
    /// ```
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
        futures::stream::unfold(self, |mut events| async move {
            let event = events.next().await?;
            Some((Ok(event), events))
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let was_last = self.stream.subscribers.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last && self.options.stop_on_disconnect {
            self.stream.stop();
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.0.next).finish_non_exhaustive()
    }
}
