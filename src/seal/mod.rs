//! Sealed tokens (feature `seal`): what travels through other hands comes back as it was sent, or is refused (rule L6).
//!
//! An approval that is asked for by mail, in a browser or over a queue leaves the program and comes back from outside. A
//! token says, in a text that may stand in a URL, what somebody may decide about, who, and until when, and carries an
//! HMAC-SHA256 under a key that never leaves.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use countersign::{Args, ledger::{Ask, Decided, Ledger, MemoryStore, Answer}, seal::{SealError, SealKeys}};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let (secret, last_years) = ((0..32).collect::<Vec<u8>>(), (1..33).collect::<Vec<u8>>());
//! let keys = SealKeys::new("2026-11", secret)?.and_accept("2025-11", last_years)?;
//! let ledger = Ledger::new(MemoryStore::new());
//! let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file").args(Args::new().with("path", "a.log"))).await?;
//!
//! let token = keys.seal_ask(&ask, "ann", SystemTime::now() + Duration::from_secs(3600))?;
//! let link = format!("https://example.com/approve/{token}");
//!
//! // Whoever has the link answers as Ann, about this call with these arguments, for an hour.
//! # let token = link.rsplit('/').next().unwrap();
//! let yes = Answer::Approve { args: None };
//! assert_eq!(ledger.decide_sealed(&keys, token, yes).await?, Decided::Won { again: false });
//!
//! // Once: what was decided stays decided.
//! let no = Answer::Deny { message: "not today".into() };
//! assert!(matches!(ledger.decide_sealed(&keys, token, no).await?, Decided::Lost(first) if first.by == ["ann"]));
//! assert!(matches!(keys.open_ask(&token[1..], SystemTime::now()), Err(SealError::Malformed { .. })));
//! # Ok::<(), SealError>(()) }).unwrap();
//! ```
//!
//! # What a seal is, and what it is not
//!
//! - **It cannot be forged, and can be read.** Its claims are base64, not cipher text. Those about an ask hold names and
//!   a fingerprint, never arguments; keep secrets out of claims of your own.
//! - **Whoever has it, has it.** It names who answers, and does not check who brings it. Send it where only they read,
//!   or compare with who is logged in: [`SealKeys::open_ask`] tells the name.
//! - **It decides about the call as it was shown**: yes, no, or an answer. Whoever may also approve other arguments gets a
//!   token of [`SealKeys::seal_ask_with_edits`].
//! - **It is good wherever its key is**: give each service and ledger an [`audience`](SealKeys::audience), or a key, of its
//!   own.
//! - **It can be sent twice.** That it counts once is the ledger's doing, which decides once (rule L1); claims of your
//!   own need a place of their own where they are used up.
//! - **Keys rotate.** One seals, several open, and a token names its key. Put a new key first and keep the old one with
//!   [`and_accept`](SealKeys::and_accept) until what it sealed is over; without it, its tokens are refused.

mod ask;
mod error;
mod keys;
mod token;

pub use ask::AskClaims;
pub use error::SealError;
pub use keys::SealKeys;
