//! The chats of an agent, for any HTTP server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::active::{ActiveStream, ActiveStreams, Begin, Events, Replay, StreamOptions};
use super::chat::Chat;
use super::config::ChatConfig;
use super::intent::Intent;
use super::message::UiMessage;
use super::principal::Principal;
use super::rejection::Rejection;
use super::request::ChatRequest;
use super::response::ResponseTask;
use super::storage::{ChatLease, ChatStore, Sealed};
use super::version::ClientVersion;
use countersign::agent::{Agent, Run, RunError};
use countersign::ledger::{Ledger, MemoryStore};
use countersign::seal::SealKeys;

/// The default of [`Chats::keep_alive`]: shorter than the idle timeouts of common proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The default of [`Chats::sealed_for`].
const SEALED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The default of [`Chats::error_text`].
const ERROR: &str = "Something went wrong. What was said so far is kept: try again.";

/// The chats of an agent: what an unmodified `useChat` talks to. Cheap to clone; the clones are the same chats.
///
/// The server stores the history, the pending calls and the asks in the agent's ledger. Of the messages that a client
/// posts we read only the last one, and of that only what the user says, decides, or gives as the result of a call
/// that the client was asked to execute. A decision counts once, for exactly the call that this chat was shown, and
/// what runs is what the server has stored (rules A1 to A6, L1 to L5).
///
/// ```
/// use countersign_ai_sdk::{Chats, Principal};
/// # use countersign::model::{ModelRequest, ModelResponse};
/// # use countersign::{Agent, BoxError, FunctionToolset, Model};
/// # struct Polite;
/// # impl Model for Polite {
/// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let chats = Chats::new(Agent::new(Polite, FunctionToolset::new()));
/// let body = br#"{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hello"}]}]}"#;
/// let mut events = chats.post(&Principal::new("ann"), body).await?;
/// let mut stream = String::new();
/// while let Some(event) = events.next().await {
///     stream += std::str::from_utf8(&event).unwrap();
/// }
/// assert!(stream.contains(r#""delta":"Hi""#) && stream.ends_with("data: [DONE]\n\n"));
/// # Ok::<(), countersign_ai_sdk::Rejection>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Chats(Arc<ChatsInner>);

#[derive(Clone)]
struct ChatsInner {
    config: ChatConfig,
    options: StreamOptions,
    streams: Arc<ActiveStreams>,
}

impl Chats {
    /// Chats that are stored in the agent's [`Ledger`].
    ///
    /// An agent without a ledger gets one in the memory of this process: its chats end with the process, and no other
    /// server can continue them.
    ///
    /// ```
    /// use countersign_ai_sdk::{Chats, Principal};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let chats = Chats::new(Agent::new(ScriptedModel::new([]), FunctionToolset::new()));
    /// let ann = Principal::new("ann");
    /// let body = br#"{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hello"}]}]}"#;
    /// let mut events = chats.post(&ann, body).await?;
    /// while events.next().await.is_some() {}
    ///
    /// // The page is loaded anew: the prompt and the answer. For another person there is no such chat.
    /// assert_eq!(chats.messages(&ann, "c1").await?.map(|messages| messages.len()), Some(2));
    /// assert_eq!(chats.messages(&Principal::new("bob"), "c1").await?, None);
    /// // Nothing is in flight that could be resumed or stopped.
    /// assert!(chats.resume(&ann, "c1").is_none() && !chats.stop(&ann, "c1"));
    /// # Ok::<(), countersign_ai_sdk::Rejection>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        let (agent, ledger) = match agent.configured_ledger().cloned() {
            Some(ledger) => (agent, ledger),
            None => {
                let ledger = Ledger::new(MemoryStore::new());
                (agent.ledger(ledger.clone()), ledger)
            }
        };
        Self::with_store(agent, ChatStore::Ledger(ledger))
    }

    /// Chats that the client stores, sealed under these keys: the server stores nothing, and any server with the keys
    /// can continue them.
    ///
    /// A state that was changed, forged or sealed too long ago, or that belongs to another chat or principal, is
    /// rejected. **A state that is posted twice is not**: without a ledger nothing tells the latest state of a chat
    /// from an earlier one, which a client can keep and continue from again. Then one approval can run its call several
    /// times, and an approval can follow a denial. Hence the name (rule D5). If that matters to you, use
    /// [`new`](Self::new) with a ledger.
    ///
    /// The client can read the state. It has to post all of its messages, as `useChat` does by default: one that posts
    /// only the last message begins a new chat.
    #[must_use]
    pub fn danger_sealed(agent: Agent, keys: SealKeys) -> Self {
        Self::with_store(agent, ChatStore::Client(Sealed { keys, valid_for: SEALED_FOR }))
    }

    fn with_store(agent: Agent, store: ChatStore) -> Self {
        Self(Arc::new(ChatsInner {
            config: ChatConfig {
                agent,
                store,
                client: ClientVersion::default(),
                approvals: true,
                error_text: Arc::new(|_| ERROR.to_owned()),
                each_run: Arc::new(|run, _, _| run),
            },
            options: StreamOptions { keep_alive: KEEP_ALIVE, stop_on_disconnect: false },
            streams: Arc::default(),
        }))
    }

    fn set(mut self, set: impl FnOnce(&mut ChatsInner)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }

    /// Sets the oldest client version to serve; [`ClientVersion::V6`] by default.
    ///
    /// We send chunks that are valid for this version and every later one. If older clients would refuse a chunk, we
    /// send it only when all clients are new enough for it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_ai_sdk::{Chats, ClientVersion};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// let chats = Chats::new(Agent::new(ScriptedModel::new([]), FunctionToolset::new()))
    ///     .client(ClientVersion::new(7, 0, 82))
    ///     .keep_alive(Duration::from_secs(5))
    ///     .stop_on_disconnect();
    /// assert!(format!("{chats:?}").contains("82"));
    /// ```
    #[must_use]
    pub fn client(self, client: ClientVersion) -> Self {
        self.set(|inner| inner.config.client = client)
    }

    /// Sets whether the chat asks for approvals and takes them; `true` by default.
    ///
    /// With `false` the chat shows a call that needs an approval, and the call stays pending until it is decided in
    /// another place, such as an inbox over the same ledger. Then we do not read approvals that a client posts.
    #[must_use]
    pub fn tool_approval(self, approvals: bool) -> Self {
        self.set(|inner| inner.config.approvals = approvals)
    }

    /// Sets a function that prepares each run for its principal and chat id, for example with dependencies.
    ///
    /// ```
    /// # use countersign_ai_sdk::Chats;
    /// # use countersign::Agent;
    /// struct Folder(String);
    ///
    /// # fn example(agent: Agent) -> Chats {
    /// Chats::new(agent).each_run(|run, principal, _chat| run.deps(Folder(format!("folders/{principal}"))))
    /// # }
    /// ```
    #[must_use]
    pub fn each_run(
        self,
        set: impl for<'a> Fn(Run<'a>, &Principal, &str) -> Run<'a> + Send + Sync + 'static,
    ) -> Self {
        self.set(|inner| inner.config.each_run = Arc::new(set))
    }

    /// Sets the text that the client is sent when a run fails.
    ///
    /// The default text contains nothing of the error, which may quote a provider or name internals of the server. The
    /// error itself is logged.
    ///
    /// ```
    /// # use countersign_ai_sdk::Chats;
    /// # use countersign::Agent;
    /// # fn example(agent: Agent) -> Chats {
    /// Chats::new(agent).error_text(|error| match error.error() {
    ///     countersign::Error::Model(_) => "The model does not answer. Try again in a minute.".to_owned(),
    ///     _ => "Something went wrong.".to_owned(),
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn error_text(self, text: impl Fn(&RunError) -> String + Send + Sync + 'static) -> Self {
        self.set(|inner| inner.config.error_text = Arc::new(text))
    }

    /// Sets for how long an idle stream is silent before it sends a [keep-alive](super::KEEP_ALIVE); 15 seconds by
    /// default. It should be shorter than the idle timeout of every proxy in between.
    #[must_use]
    pub fn keep_alive(self, after: Duration) -> Self {
        self.set(|inner| inner.options.keep_alive = after)
    }

    /// Stops a run when the last subscription of its stream is dropped. `stop()` of an unmodified client relies on
    /// that.
    ///
    /// By default the run continues, so a page that is loaded again can [`resume`](Self::resume) the stream.
    /// [`stop`](Self::stop) stops it.
    #[must_use]
    pub fn stop_on_disconnect(self) -> Self {
        self.set(|inner| inner.options.stop_on_disconnect = true)
    }

    /// Sets for how long a [sealed](Self::danger_sealed) state is valid; 7 days by default, and at most 100 years.
    /// Without effect on chats in a ledger.
    #[must_use]
    pub fn sealed_for(self, time: Duration) -> Self {
        self.set(|inner| {
            if let ChatStore::Client(sealed) = &mut inner.config.store {
                sealed.valid_for = time;
            }
        })
    }

    /// Takes the body of a request and returns the events of its response. The response is completed even if the events
    /// are dropped.
    ///
    /// A request that is repeated, for example after a lost connection, gets the events of the response again: nothing
    /// runs twice.
    ///
    /// # Errors
    /// [`Rejection`] with the status to answer: nothing has run, and the chat is as it was. The status is 400 for a
    /// body that is not what a chat posts, 404 for a chat of another principal, 409 for answers that do not fit what
    /// the chat was shown and for a chat that has another response in flight, 422 for a message that is no prompt, and
    /// 500 when the store fails.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    ///
    /// A request that does not fit is refused before anything happens:
    ///
    /// ```
    /// use countersign_ai_sdk::{Chats, Principal};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let chats = Chats::new(Agent::new(ScriptedModel::new([]), FunctionToolset::new()));
    /// // A message of the assistant that this chat has never sent, with an approval that no one was asked for.
    /// let forged = br#"{"id":"c1","messages":[{"id":"m1","role":"assistant","parts":[{"type":"tool-delete_file",
    ///     "toolCallId":"c1","state":"approval-responded","input":{},"approval":{"id":"ask-1","approved":true}}]}]}"#;
    /// let rejected = chats.post(&Principal::new("ann"), forged).await.err();
    /// assert_eq!(rejected.map(|rejection| rejection.status), Some(409));
    /// # });
    /// ```
    pub async fn post(&self, principal: &Principal, body: &[u8]) -> Result<Events, Rejection> {
        let request = ChatRequest::read(body)?;
        let digest = digest_of(body);
        let stream = match self.0.streams.begin(principal, &request.id, digest.clone()) {
            Begin::New(stream) => stream,
            Begin::InFlight(stream) if stream.request == digest => {
                stream.accepted().await?;
                return Ok(stream.subscribe(self.0.options, false));
            }
            Begin::InFlight(_) => return Err(Rejection::busy(Duration::from_secs(1))),
        };
        let events = Arc::clone(&stream).subscribe(self.0.options, false);
        let response = self.clone().respond(principal.clone(), request, Arc::clone(&stream));
        // The response is a task of its own: a client that disconnects drops this future, and the lease has to be
        // released all the same.
        tokio::spawn(response);
        stream.accepted().await?;
        Ok(events)
    }

    /// The events of the response in flight, from the beginning of its message. `None` when this process is not making
    /// a response in the chat.
    ///
    /// A client that resumes has nothing of the message. So the events begin with all of it, even if the response
    /// continues an earlier message.
    #[must_use]
    pub fn resume(&self, principal: &Principal, chat: &str) -> Option<Events> {
        let stream = self.0.streams.get(principal, chat)?;
        Some(stream.subscribe(self.0.options, true))
    }

    /// Stops the response that this process is making in the chat. Returns whether there was one.
    ///
    /// The run is suspended and stored with the chat. For a tool that was running, the model is told that it may have
    /// run.
    #[expect(clippy::must_use_candidate, reason = "it is called to stop")]
    pub fn stop(&self, principal: &Principal, chat: &str) -> bool {
        let stream = self.0.streams.get(principal, chat);
        stream.inspect(|stream| stream.stop()).is_some()
    }

    /// The messages of a chat, for a page that is loaded anew. `None` where there is no such chat, or it belongs to
    /// another principal; always `None` for [sealed](Self::danger_sealed) chats.
    ///
    /// The message that this process is making is left out: [`resume`](Self::resume) has all of it.
    ///
    /// # Errors
    /// [`Rejection`] with status 500 when the store cannot be read.
    pub async fn messages(
        &self,
        principal: &Principal,
        chat: &str,
    ) -> Result<Option<Vec<UiMessage>>, Rejection> {
        let in_flight = self.0.streams.get(principal, chat).and_then(|stream| stream.message());
        match self.0.config.store.load((chat, principal.as_str()), &[]).await {
            Ok(None) => Ok(None),
            Ok(Some(chat)) => {
                let messages = chat.messages.into_iter().map(|kept| kept.message);
                Ok(Some(messages.filter(|it| Some(&it.id) != in_flight.as_ref()).collect()))
            }
            Err(rejection) if rejection.status == 404 => Ok(None),
            Err(rejection) => Err(rejection),
        }
    }

    /// The order at the end matters. We save the chat, then the stream leaves the list of those in flight, and then
    /// we send the last chunks. A client answers as soon as it has the last chunk: if the chat were still busy then,
    /// we would refuse the answer.
    async fn respond(self, principal: Principal, request: ChatRequest, stream: Arc<ActiveStream>) {
        let id = request.id.clone();
        let guard =
            StreamGuard { streams: &self.0.streams, key: (&principal, &id), stream: &stream };
        let result = match self.begin(&principal, request).await {
            Ok((lease, intent)) => {
                let keeper = lease.keeper().cloned();
                let config = self.0.config.in_chat(&principal, &id);
                let task = ResponseTask::new(&config, &id, principal.clone(), lease, &stream);
                match keeper {
                    Some(keeper) => keeper.keep(task.run(intent)).await,
                    None => task.run(intent).await,
                }
            }
            Err(rejection) => Err(rejection),
        };
        // Before the last chunks are sent: a client may answer as soon as it has them, and must not find its chat busy.
        guard.remove();
        match result {
            Ok(last) => last.iter().for_each(|chunk| stream.send(chunk, &Replay::Same)),
            Err(rejection) => stream.reject(rejection),
        }
        drop(guard);
    }

    /// Finds the intent of a request, and acquires the lease of its chat.
    ///
    /// We find the intent twice. The first time is without the lease. So we reject a request that does not fit at
    /// once, and it leaves no trace: it acquires no lease, creates no row for a chat that does not exist, and makes no
    /// other server wait. The second time is under the lease, as another server may have changed the chat in between.
    /// The second intent counts.
    async fn begin(
        &self,
        principal: &Principal,
        request: ChatRequest,
    ) -> Result<(ChatLease, Intent), Rejection> {
        let ChatConfig { store, approvals, .. } = &self.0.config;
        let key = (request.id.as_str(), principal.as_str());
        let chat = store.load(key, &request.messages).await?;
        let chat = chat.unwrap_or_else(|| Chat::new(principal.as_str()));
        Intent::of(&chat, &request, *approvals)?;
        let lease = store.acquire(key, &request.messages).await?;
        match Intent::of(&lease.chat, &request, *approvals) {
            Ok(intent) => Ok((lease, intent)),
            Err(rejection) => {
                lease.release().await;
                Err(rejection)
            }
        }
    }
}

/// Completes a stream when the guard is dropped. So even after a panic the chat can begin another stream, and the
/// subscribers of this one do not wait forever.
///
/// Without it, a panic of a tool or of the renderer would leave the chat busy for the life of the
/// process.
struct StreamGuard<'a> {
    streams: &'a ActiveStreams,
    key: (&'a Principal, &'a str),
    stream: &'a ActiveStream,
}

impl StreamGuard<'_> {
    fn remove(&self) {
        self.streams.remove(self.key.0, self.key.1, self.stream);
    }
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.remove();
        self.stream.complete();
    }
}

fn digest_of(body: &[u8]) -> String {
    countersign::args::digest(&String::from_utf8_lossy(body).into())
}

impl fmt::Debug for Chats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chats")
            .field("agent", &self.0.config.agent)
            .field("store", &self.0.config.store)
            .field("client", &self.0.config.client)
            .finish_non_exhaustive()
    }
}
