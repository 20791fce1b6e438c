//! The chats of an agent, for any HTTP server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::chat::Chat;
use super::config::ChatConfig;
use super::home::{Held, Home, Sealed};
use super::live::{Begun, Events, Listening, Live, Lives, Replay};
use super::making::Making;
use super::message::UiMessage;
use super::plan::{Plan, plan};
use super::principal::Principal;
use super::refusal::Refusal;
use super::request::ChatRequest;
use super::version::ClientVersion;
use crate::agent::{Agent, Keeper, Run, RunError};
use crate::ledger::{Ledger, MemoryStore};
use crate::seal::SealKeys;

/// How long an idle stream is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a sealed chat can be gone on with.
const SEALED_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a client is told of an error that is nobody's business outside.
const ERROR: &str = "Something went wrong. What was said so far is kept: try again.";

/// The chats of an agent: what an unmodified `useChat` talks to. Cheap to clone; the clones are the same chats.
///
/// History, what waits, and what was asked live at the server, in the agent's ledger. Of what the client posts only the
/// last message is read, and of that only what the user says, decides, or gives as the result of a call that the client
/// was asked to execute: a decision counts once, for exactly what this chat was shown, and what runs is what the server
/// has kept (rules A1 to A6, L1 to L5).
///
/// ```
/// use countersign::ai_sdk::{Chats, Principal};
/// # use countersign::{Agent, BoxError, FunctionToolset, Model, ModelRequest, ModelResponse};
/// # struct Polite;
/// # impl Model for Polite {
/// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let chats = Chats::new(Agent::new(Polite, FunctionToolset::new()));
/// let body = br#"{"id":"c1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hello"}]}]}"#;
/// let mut events = chats.post(&Principal::new("ann"), body).await?;
/// let mut said = String::new();
/// while let Some(event) = events.next().await {
///     said += std::str::from_utf8(&event).unwrap();
/// }
/// assert!(said.contains(r#""delta":"Hi""#) && said.ends_with("data: [DONE]\n\n"));
/// # Ok::<(), countersign::ai_sdk::Refusal>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Chats(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    config: ChatConfig,
    listening: Listening,
    lives: Arc<Lives>,
}

impl Chats {
    /// Chats with this agent, kept in its ledger; in the memory of this process, where it has none.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        let (agent, ledger) = match agent.get_ledger().cloned() {
            Some(ledger) => (agent, ledger),
            None => {
                let ledger = Ledger::new(MemoryStore::new());
                (agent.ledger(ledger.clone()), ledger)
            }
        };
        Self::at(agent, Home::Ledger(ledger))
    }

    /// Chats that the client keeps, sealed: the server keeps nothing, and any server with the keys goes on with them.
    ///
    /// What was changed, made up, too old, or made for another chat or principal, is refused. **What cannot be stopped
    /// without a ledger is using it twice**: whoever keeps an earlier state of a chat can go on from it again, so that one
    /// approval can run its call several times, and a denial can be followed by an approval. Where that matters, use
    /// [`new`](Self::new) with a ledger. The client can read what it keeps, and has to post all of its messages, as
    /// `useChat` does by default: one that posts only the last begins a new chat.
    #[must_use]
    pub fn sealed(agent: Agent, keys: SealKeys) -> Self {
        Self::at(agent, Home::Client(Sealed { keys, lasts: SEALED_FOR }))
    }

    fn at(agent: Agent, home: Home) -> Self {
        Self(Arc::new(Inner {
            config: ChatConfig {
                agent,
                home,
                client: ClientVersion::default(),
                approvals: true,
                error_text: Arc::new(|_| ERROR.to_owned()),
                each_run: Arc::new(|run, _, _| run),
            },
            listening: Listening { keep_alive: KEEP_ALIVE, stops: false },
            lives: Arc::default(),
        }))
    }

    fn set(mut self, set: impl FnOnce(&mut Inner)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }

    /// The oldest client that is served: newer ones are told more.
    #[must_use]
    pub fn client(self, client: ClientVersion) -> Self {
        self.set(|inner| inner.config.client = client)
    }

    /// Whether approvals are asked for and taken in the chat; they are by default. Without, a call that waits stays
    /// pending, for whoever decides about it elsewhere.
    #[must_use]
    pub fn tool_approval(self, approvals: bool) -> Self {
        self.set(|inner| inner.config.approvals = approvals)
    }

    /// Sets what each run needs beside what its agent has, by who talks and in which chat: dependencies, say.
    ///
    /// ```
    /// # use countersign::{Agent, ai_sdk::Chats};
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

    /// What the client is told when a run fails; by default nothing of the error itself.
    #[must_use]
    pub fn error_text(self, text: impl Fn(&RunError) -> String + Send + Sync + 'static) -> Self {
        self.set(|inner| inner.config.error_text = Arc::new(text))
    }

    /// How long an idle stream is silent before it says that it is alive; 15 seconds by default.
    #[must_use]
    pub fn keep_alive(self, after: Duration) -> Self {
        self.set(|inner| inner.listening.keep_alive = after)
    }

    /// Stops a run when nobody listens to its stream any more, as `stop()` of an unmodified client wants it. By default
    /// it goes on, so that a page that was loaded again hears the rest; [`stop`](Self::stop) stops it.
    #[must_use]
    pub fn stop_on_disconnect(self) -> Self {
        self.set(|inner| inner.listening.stops = true)
    }

    /// How long a [sealed](Self::sealed) chat can be gone on with; 7 days by default.
    #[must_use]
    pub fn sealed_for(self, time: Duration) -> Self {
        self.set(|inner| {
            if let Home::Client(sealed) = &mut inner.config.home {
                sealed.lasts = time;
            }
        })
    }

    /// Takes what a client posts, and gives the events of the response. The response is made to its end, whether or not
    /// anybody listens. Needs a tokio runtime.
    ///
    /// A request that is repeated, as after a lost response, is told again what came of it: nothing runs twice.
    ///
    /// # Errors
    /// [`Refusal`], with the status to answer: nothing has run, and the chat is as it was.
    pub async fn post(&self, principal: &Principal, body: &[u8]) -> Result<Events, Refusal> {
        let request = ChatRequest::read(body)?;
        let asked_for = digest_of(body);
        let live = match self.0.lives.begin(principal, &request.id, asked_for.clone()) {
            Begun::New(live) => live,
            Begun::There(live) if live.request == asked_for => {
                live.accepted().await?;
                return Ok(live.listen(self.0.listening, false));
            }
            Begun::There(_) => return Err(Refusal::busy(Duration::from_secs(1))),
        };
        let events = Arc::clone(&live).listen(self.0.listening, false);
        let (this, principal, making) = (self.clone(), principal.clone(), Arc::clone(&live));
        // On a task of its own: whoever has posted may be gone before the chat is given back.
        tokio::spawn(async move { this.respond(principal, request, making).await });
        live.accepted().await?;
        Ok(events)
    }

    /// The events of the response that is being made, with all of its message, also where it goes on with one that the
    /// client had; `None` when this process makes none.
    #[must_use]
    pub fn resume(&self, principal: &Principal, chat: &str) -> Option<Events> {
        let live = self.0.lives.get(principal, chat)?;
        Some(live.listen(self.0.listening, true))
    }

    /// Stops the response that this process makes. Says whether there was one.
    #[expect(clippy::must_use_candidate, reason = "it is called to stop")]
    pub fn stop(&self, principal: &Principal, chat: &str) -> bool {
        let live = self.0.lives.get(principal, chat);
        live.inspect(|live| live.stop()).is_some()
    }

    /// The messages of a chat, as the client has them; `None` where there is no such chat, or it is somebody else's. The
    /// one that this process is making is left out: [`resume`](Self::resume) has all of it.
    ///
    /// # Errors
    /// [`Refusal`] when the store cannot be read.
    pub async fn messages(
        &self,
        principal: &Principal,
        chat: &str,
    ) -> Result<Option<Vec<UiMessage>>, Refusal> {
        let made = self.0.lives.get(principal, chat).and_then(|live| live.message());
        match self.0.config.home.look((chat, principal.as_str()), &[]).await {
            Ok(None) => Ok(None),
            Ok(Some(chat)) => {
                let messages = chat.messages.into_iter().map(|kept| kept.message);
                Ok(Some(messages.filter(|message| Some(&message.id) != made.as_ref()).collect()))
            }
            Err(refusal) if refusal.status == 404 => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    async fn respond(self, principal: Principal, request: ChatRequest, live: Arc<Live>) {
        let (id, home) = (request.id.clone(), &self.0.config.home);
        // Whatever happens, a panic too: the chat can be gone on with, and nobody waits for ever.
        let ending = Ending { lives: &self.0.lives, whose: (&principal, &id), live: &live };
        let made = match self.begin(&principal, request).await {
            Ok((held, plan)) => {
                let (token, keeper) = (held.token(), Keeper::default());
                let (config, who) = (&self.0.config, principal.clone());
                let making = Making::new(config, &id, who, held, &live, keeper.clone());
                let renew = || home.keep_hold(&id, token);
                keeper.keeping(home.lease(), making.make(plan), renew).await
            }
            Err(refusal) => Err(refusal),
        };
        // The client may answer as soon as it hears the end.
        ending.free();
        match made {
            Ok(last) => last.iter().for_each(|chunk| live.tell(chunk, &Replay::Same)),
            Err(refusal) => live.refuse(refusal),
        }
        drop(ending);
    }

    /// Looks what a request is about, and takes the chat. A request that does not fit changes nothing.
    async fn begin(
        &self,
        principal: &Principal,
        request: ChatRequest,
    ) -> Result<(Held, Plan), Refusal> {
        let whose = (request.id.as_str(), principal.as_str());
        let chat = self.0.config.home.look(whose, &request.messages).await?;
        let chat = chat.unwrap_or_else(|| Chat::new(principal.as_str()));
        plan(&chat, &request, self.0.config.approvals)?;
        let held = self.0.config.home.hold(whose, &request.messages).await?;
        match plan(&held.chat, &request, self.0.config.approvals) {
            Ok(plan) => Ok((held, plan)),
            Err(refusal) => {
                self.0.config.home.release(whose.0, &held).await;
                Err(refusal)
            }
        }
    }
}

/// Ends a response, however it was left.
struct Ending<'a> {
    lives: &'a Lives,
    whose: (&'a Principal, &'a str),
    live: &'a Live,
}

impl Ending<'_> {
    fn free(&self) {
        self.lives.end(self.whose.0, self.whose.1, self.live);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.free();
        self.live.end();
    }
}

fn digest_of(body: &[u8]) -> String {
    crate::args::digest(&String::from_utf8_lossy(body).into())
}

impl fmt::Debug for Chats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chats")
            .field("agent", &self.0.config.agent)
            .field("home", &self.0.config.home)
            .field("client", &self.0.config.client)
            .finish_non_exhaustive()
    }
}
