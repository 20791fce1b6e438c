//! Sealed tokens (feature `seal`): authorisations that leave the program and come back unchanged, or are refused (rule
//! L6).
//!
//! An approval that is requested by mail, in a browser or over a queue leaves the program and comes back from outside.
//! A token states, in a text that is valid in a URL, who may decide about which ask and until when. It carries an
//! HMAC-SHA256 under a key that never leaves the program.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use countersign::{Args, ledger::{Ask, Decided, Ledger, MemoryStore, Answer}, seal::{SealError, SealKeys}};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let (secret, last_years) = ((0..32).collect::<Vec<u8>>(), (1..33).collect::<Vec<u8>>());
//! let keys = SealKeys::new("2026-11", secret)?.and_accept("2025-11", last_years)?;
//! let ledger = Ledger::new(MemoryStore::new());
//! let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file").with_args(Args::new().with("path", "a.log"))).await?;
//!
//! let token = keys.seal_ask(&ask, "ann", SystemTime::now() + Duration::from_secs(3600))?;
//! let link = format!("https://example.com/approve/{token}");
//!
//! // The person who opens the link decides as Ann, about this call with these arguments, for an hour.
//! # let token = link.rsplit('/').next().unwrap();
//! let yes = Answer::Approve { args: None };
//! assert_eq!(ledger.decide_sealed(&keys, token, yes).await?, Decided::Won { again: false });
//!
//! // It counts once: the first decision is final.
//! let no = Answer::Deny { message: "not today".into() };
//! assert!(matches!(ledger.decide_sealed(&keys, token, no).await?, Decided::Lost(first) if first.by == ["ann"]));
//! assert!(matches!(keys.open_ask(&token[1..], SystemTime::now()), Err(SealError::Malformed { .. })));
//! # Ok::<(), SealError>(()) }).unwrap();
//! ```
//!
//! # What a seal guarantees, and what it does not
//!
//! - **A token cannot be forged, but it can be read.** Its claims are base64, not cipher text. Those about an ask
//!   contain names and a fingerprint, never arguments; keep secrets out of claims of your own.
//! - **Possession is enough.** A token names the person who decides, and does not check who presents it. Send it where
//!   only that person reads, or compare the name with the person who is logged in: [`SealKeys::open_ask`] returns it.
//! - **A token decides about the call as it was shown**: approve, deny, or answer. A person who may also approve other
//!   arguments gets a token of [`SealKeys::seal_ask_with_edits`].
//! - **A token is valid wherever its key is accepted**: give each service and ledger an
//!   [`audience`](SealKeys::audience) or a key of its own.
//! - **A token can be replayed.** For asks that has no effect, as the ledger decides once (rule L1). For claims of your
//!   own, store which tokens have been used.
//! - **Keys rotate.** One key seals, several open, and a token names its key. Put a new key first and keep the old one
//!   with [`and_accept`](SealKeys::and_accept) until the last token that it sealed has expired; without the old key,
//!   its tokens are refused.

mod ask;
mod error;
mod keys;
mod token;

pub use ask::AskClaims;
pub use error::SealError;
pub use keys::SealKeys;
