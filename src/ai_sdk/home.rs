//! Where chats are kept between two requests.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chat::Chat;
use super::chunk::{Chunk, DataChunk};
use super::message::{Role, UiMessage, UiPart};
use super::refusal::Refusal;
use crate::args::digest;
use crate::error::ErrorKind;
use crate::ledger::{Ledger, LedgerError, RunWrite, Saved, Taken};
use crate::seal::SealKeys;

/// The type of the part that carries a sealed chat.
const STATE: &str = "data-countersign";

/// What is sealed: a chat of one principal, and nothing else.
const PURPOSE: &str = "countersign ai-sdk chat 1";

/// How long a sealed chat can last: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Where chats are kept.
#[derive(Debug, Clone)]
pub(super) enum Home {
    /// In a ledger, where one process at a time holds a chat.
    Ledger(Ledger),
    /// With the client, sealed.
    Client(Sealed),
}

/// How chats are sealed that the client keeps.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) keys: SealKeys,
    pub(super) lasts: Duration,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    chat: String,
    principal: String,
    state: String,
}

/// A chat that this process holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) chat: Chat,
    token: u64,
}

impl Home {
    /// The chat as it stands; `None` where there is none.
    pub(super) async fn look(
        &self,
        (id, principal): (&str, &str),
        messages: &[UiMessage],
    ) -> Result<Option<Chat>, Refusal> {
        let chat = match self {
            Self::Ledger(ledger) => {
                match ledger.get_chat(id).await.map_err(|error| unreadable(&error))? {
                    None | Some(Value::Null) => return Ok(None),
                    Some(state) => Chat::read(state).map_err(|problem| unread(&problem))?,
                }
            }
            Self::Client(sealed) => match sealed.open(id, principal, messages)? {
                None => return Ok(None),
                Some(chat) => chat,
            },
        };
        if chat.principal != principal {
            return Err(Refusal::unknown_chat());
        }
        Ok(Some(chat))
    }

    /// Takes the chat, or a new one, for as long as the lease.
    pub(super) async fn hold(
        &self,
        (id, principal): (&str, &str),
        messages: &[UiMessage],
    ) -> Result<Held, Refusal> {
        let Self::Ledger(ledger) = self else {
            let chat = self.look((id, principal), messages).await?;
            return Ok(Held { chat: chat.unwrap_or_else(|| Chat::new(principal)), token: 0 });
        };
        let lease = ledger.get_lease();
        match ledger.hold_chat(id, lease).await.map_err(|error| unreadable(&error))? {
            Taken::Taken { token, state } => {
                let chat = match state {
                    Value::Null => Ok(Chat::new(principal)),
                    state => Chat::read(state).map_err(|problem| unread(&problem)),
                };
                let other = |chat: Chat| match chat.principal == principal {
                    true => Ok(chat),
                    false => Err(Refusal::unknown_chat()),
                };
                match chat.and_then(other) {
                    Ok(chat) => Ok(Held { chat, token }),
                    Err(refusal) => {
                        self.give_back(id, token).await;
                        Err(refusal)
                    }
                }
            }
            _ => Err(Refusal::busy(lease / 3)),
        }
    }

    /// Gives a chat back as it was.
    pub(super) async fn release(&self, id: &str, held: &Held) {
        self.give_back(id, held.token).await;
    }

    async fn give_back(&self, id: &str, token: u64) {
        self.renew(id, token, Duration::ZERO).await;
    }

    pub(super) fn lease(&self) -> Duration {
        match self {
            Self::Ledger(ledger) => ledger.get_lease(),
            Self::Client(_) => Duration::MAX,
        }
    }

    pub(super) async fn keep_hold(&self, id: &str, held: u64) -> Option<Saved> {
        self.renew(id, held, self.lease()).await
    }

    async fn renew(&self, id: &str, token: u64, lease: Duration) -> Option<Saved> {
        let Self::Ledger(ledger) = self else { return None };
        let renewed = ledger.renew_chat(id, token, lease).await;
        let warn = |error: &LedgerError| {
            tracing::warn!(chat = id, %error, "the hold of a chat could not be changed");
        };
        renewed.inspect_err(warn).ok()
    }

    /// Keeps what the user has said, before it is answered.
    pub(super) async fn keep(&self, id: &str, held: &Held) -> Result<(), ErrorKind> {
        let Self::Ledger(ledger) = self else { return Ok(()) };
        match ledger.keep_chat(id, held.token, json!(held.chat)).await {
            Ok(Saved::Saved) => Ok(()),
            Ok(Saved::StaleToken) => {
                Err(ErrorKind::Ledger("another server has taken the chat over".into()))
            }
            Err(error) => Err(ErrorKind::Ledger(error.into())),
        }
    }

    /// Keeps a chat, with the asks of calls that have got their results closed in the same transaction, and gives it up.
    /// Gives what the client has to be told.
    pub(super) async fn save(
        &self,
        id: &str,
        held: &Held,
        closes: &[String],
    ) -> Result<Option<Chunk>, Refusal> {
        let state = json!(held.chat);
        match self {
            Self::Ledger(ledger) => {
                let write = RunWrite { state, token: Some(held.token), over: false, closes };
                match ledger.write_chat(id, write).await.map_err(|error| unreadable(&error))? {
                    Saved::Saved => Ok(None),
                    Saved::StaleToken => Err(Refusal::conflict(
                        "another server has taken the chat over: load it again",
                    )),
                }
            }
            Self::Client(sealed) => sealed.seal(id, &held.chat.principal, &state).map(Some),
        }
    }
}

impl Held {
    pub(super) fn token(&self) -> u64 {
        self.token
    }
}

impl Sealed {
    fn seal(&self, chat: &str, principal: &str, state: &Value) -> Result<Chunk, Refusal> {
        let text = state.to_string();
        let claims = Claims {
            chat: chat.to_owned(),
            principal: principal.to_owned(),
            state: digest(&text.as_str().into()),
        };
        let until = SystemTime::now() + self.lasts.min(LONGEST);
        let seal = self.keys.seal_own(PURPOSE, &claims, until);
        let seal = seal.map_err(|error| Refusal::internal("a chat could not be sealed", &error))?;
        Ok(Chunk::Data(DataChunk {
            kind: STATE.to_owned(),
            id: Some(STATE.to_owned()),
            data: json!({"state": text, "seal": seal}),
            transient: None,
        }))
    }

    /// The chat as the latest message has it.
    fn open(
        &self,
        chat: &str,
        principal: &str,
        messages: &[UiMessage],
    ) -> Result<Option<Chat>, Refusal> {
        let Some((text, seal)) = messages.iter().rev().find_map(sealed) else {
            if messages.iter().any(|message| message.role == Role::Assistant) {
                return Err(Refusal::conflict(
                    "the messages do not carry the chat: post all of them, with their data parts",
                ));
            }
            return Ok(None);
        };
        let claims: Claims = self.keys.open(PURPOSE, seal, SystemTime::now()).map_err(|error| {
            Refusal::conflict(format!("the chat that the messages carry does not hold: {error}"))
        })?;
        if (claims.chat.as_str(), claims.principal.as_str()) != (chat, principal) {
            return Err(Refusal::unknown_chat());
        }
        if claims.state != digest(&text.into()) {
            return Err(Refusal::conflict("the chat that the messages carry was changed"));
        }
        let state = serde_json::from_str(text).map_err(|error| unread(&error))?;
        Chat::read(state).map(Some).map_err(|problem| unread(&problem))
    }
}

/// The sealed chat that a message carries.
fn sealed(message: &UiMessage) -> Option<(&str, &str)> {
    message.parts.iter().rev().find_map(|part| {
        let UiPart::Other(part) = part else { return None };
        part.get("type").filter(|kind| *kind == STATE)?;
        let data = part.get("data")?;
        Some((data.get("state")?.as_str()?, data.get("seal")?.as_str()?))
    })
}

fn unreadable(error: &LedgerError) -> Refusal {
    Refusal::internal("a chat could not be read or written", error)
}

fn unread(problem: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%problem, "a chat cannot be read");
    Refusal::new(500, "the chat was written by another version of the server: begin a new one")
}
