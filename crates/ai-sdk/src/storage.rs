//! The storage of chats between two requests, and the lease on a chat while a response is made.
//!
//! | | in the ledger | sealed with the client |
//! |---|---|---|
//! | who has the state | the server | the client, in a data part of the last message |
//! | two servers at once | one has the lease, the other says 409 | both go on |
//! | an old state is posted | refused: the chat has continued | accepted |
//! | needs | a store | keys |
//!
//! Because of the last line but one, the second is called `danger_sealed`: an approval that runs once in the ledger
//! runs once *per posted state* without it.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chat::Chat;
use super::chunk::{Chunk, DataChunk};
use super::message::{Role, UiMessage, UiPart};
use super::rejection::Rejection;
use countersign::args::digest;
use countersign::error::Error;
use countersign::ledger::{Acquired, Lease, LeaseKeeper, Ledger, LedgerError, Saved};
use countersign::seal::SealKeys;

/// The type of the data part that carries a sealed chat.
const STATE: &str = "data-countersign";

/// The purpose that the seal is bound to: no other sealed value opens as a chat.
const PURPOSE: &str = "countersign ai-sdk chat 1";

/// The longest time for which a sealed chat is valid: a hundred years. More could overflow the clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The place where chats are stored between two requests.
#[derive(Debug, Clone)]
pub(super) enum ChatStore {
    /// In a ledger, where one process at a time has the lease of a chat.
    Ledger(Ledger),
    /// With the client, sealed. There is no lease: nothing prevents two servers from continuing from the same state.
    Client(Sealed),
}

/// The settings for chats that the client keeps.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) keys: SealKeys,
    pub(super) valid_for: Duration,
}

/// The claims that the seal of a chat covers.
///
/// The state is beside the seal in clear text, and only its digest is in the seal: a token has a limit of length, and
/// a chat has none.
#[derive(Serialize, Deserialize)]
struct SealedClaims {
    chat: String,
    principal: String,
    /// The digest of the state, which is posted in clear text beside the seal.
    state: String,
}

/// The lease of a chat, with the chat as it was when the lease was acquired.
#[derive(Debug)]
pub(super) struct ChatLease {
    pub(super) chat: Chat,
    /// The lease in the ledger; `None` for a chat that the client stores.
    lease: Option<Lease<()>>,
}

impl ChatStore {
    /// Reads a chat without acquiring its lease. `None` where the chat does not exist.
    pub(super) async fn load(
        &self,
        (id, principal): (&str, &str),
        messages: &[UiMessage],
    ) -> Result<Option<Chat>, Rejection> {
        let chat = match self {
            Self::Ledger(ledger) => match ledger.load_chat(id).await {
                Ok(None | Some(Value::Null)) => None,
                Ok(Some(state)) => Some(read(state)?),
                Err(error) => return Err(unavailable(&error)),
            },
            Self::Client(sealed) => sealed.open(id, principal, messages)?,
        };
        match chat {
            Some(chat) if chat.principal != principal => Err(Rejection::unknown_chat()),
            chat => Ok(chat),
        }
    }

    /// Acquires the lease of a chat, and creates the chat where it does not exist.
    pub(super) async fn acquire(
        &self,
        (id, principal): (&str, &str),
        messages: &[UiMessage],
    ) -> Result<ChatLease, Rejection> {
        let Self::Ledger(ledger) = self else {
            let chat = self.load((id, principal), messages).await?;
            let chat = chat.unwrap_or_else(|| Chat::new(principal));
            return Ok(ChatLease { chat, lease: None });
        };
        let (state, lease) = match ledger.acquire_chat(id).await {
            Ok(Acquired::Lease(lease)) => lease.take_state(),
            Ok(_) => return Err(Rejection::busy(ledger.configured_lease() / 3)),
            Err(error) => return Err(unavailable(&error)),
        };
        let chat = match state {
            Value::Null => Ok(Chat::new(principal)),
            state => read(state),
        };
        match chat {
            Ok(chat) if chat.principal == principal => Ok(ChatLease { chat, lease: Some(lease) }),
            other => {
                lease.keeper().release().await;
                Err(other.err().unwrap_or_else(Rejection::unknown_chat))
            }
        }
    }

    /// Saves the chat and ends its lease. The asks whose calls have their results are closed in the same transaction.
    /// Returns the chunk with the sealed chat, where the client stores it.
    pub(super) async fn save_and_release(
        &self,
        id: &str,
        lease: &ChatLease,
        closed_asks: &[String],
    ) -> Result<Option<Chunk>, Rejection> {
        let state = json!(lease.chat);
        if let Self::Client(sealed) = self {
            return sealed.seal(id, &lease.chat.principal, &state).map(Some);
        }
        let Some(lease) = &lease.lease else { return Ok(None) };
        match lease.save_and_release(state, closed_asks).await {
            Ok(Saved::Saved) => Ok(None),
            Ok(_) => {
                Err(Rejection::conflict("another server has taken the chat over: load it again"))
            }
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl ChatLease {
    /// The handle that renews the lease; `None` for a chat that the client stores.
    pub(super) fn keeper(&self) -> Option<&LeaseKeeper> {
        self.lease.as_ref().map(Lease::keeper)
    }

    /// Ends the lease without changing the chat, so that the next request need not wait until the lease has expired.
    pub(super) async fn release(&self) {
        if let Some(keeper) = self.keeper() {
            keeper.release().await;
        }
    }

    /// Saves the chat and keeps its lease. This happens before the model is asked, so that the user's message is not
    /// lost when this process dies.
    pub(super) async fn save(&self) -> Result<(), Error> {
        let Some(lease) = &self.lease else { return Ok(()) };
        match lease.save(json!(self.chat)).await {
            Ok(Saved::Saved) => Ok(()),
            Ok(_) => Err(Error::Ledger("another server has taken the chat over".into())),
            Err(error) => Err(Error::Ledger(error.into())),
        }
    }
}

impl Sealed {
    fn seal(&self, chat: &str, principal: &str, state: &Value) -> Result<Chunk, Rejection> {
        let text = state.to_string();
        let claims = SealedClaims {
            chat: chat.to_owned(),
            principal: principal.to_owned(),
            state: digest(&text.as_str().into()),
        };
        let until = SystemTime::now() + self.valid_for.min(LONGEST);
        let seal = self.keys.seal_own(PURPOSE, &claims, until);
        let seal =
            seal.map_err(|error| Rejection::internal("a chat could not be sealed", &error))?;
        Ok(Chunk::Data(DataChunk {
            kind: STATE.to_owned(),
            id: Some(STATE.to_owned()),
            data: json!({"state": text, "seal": seal}),
            transient: None,
        }))
    }

    /// Opens the chat in the latest sealed part of the messages. `None` for a new chat, whose messages have no such
    /// part.
    fn open(
        &self,
        chat: &str,
        principal: &str,
        messages: &[UiMessage],
    ) -> Result<Option<Chat>, Rejection> {
        let Some((text, seal)) = messages.iter().rev().find_map(sealed) else {
            if messages.iter().any(|message| message.role == Role::Assistant) {
                return Err(Rejection::conflict(
                    "the messages do not carry the chat: post all of them, with their data parts",
                ));
            }
            return Ok(None);
        };
        let claims: SealedClaims =
            self.keys.open(PURPOSE, seal, SystemTime::now()).map_err(|error| {
                Rejection::conflict(format!(
                    "the chat that the messages carry does not hold: {error}"
                ))
            })?;
        if (claims.chat.as_str(), claims.principal.as_str()) != (chat, principal) {
            return Err(Rejection::unknown_chat());
        }
        if claims.state != digest(&text.into()) {
            return Err(Rejection::conflict("the chat that the messages carry was changed"));
        }
        let state = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        read(state).map(Some)
    }
}

/// The state and the seal of the last sealed chat in a message.
///
/// The last one of the last message that has any: earlier messages carry earlier states.
fn sealed(message: &UiMessage) -> Option<(&str, &str)> {
    message.parts.iter().rev().find_map(|part| {
        let UiPart::Other(part) = part else { return None };
        part.get("type").filter(|kind| *kind == STATE)?;
        let data = part.get("data")?;
        Some((data.get("state")?.as_str()?, data.get("seal")?.as_str()?))
    })
}

fn read(state: Value) -> Result<Chat, Rejection> {
    Chat::read(state).map_err(|problem| unreadable(&problem))
}

fn unavailable(error: &LedgerError) -> Rejection {
    Rejection::internal("a chat could not be read or written", error)
}

fn unreadable(problem: &dyn std::fmt::Display) -> Rejection {
    tracing::error!(%problem, "a chat cannot be read");
    Rejection::new(500, "the chat was written by another version of the server: begin a new one")
}
