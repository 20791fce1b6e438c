//! Why a token is refused, or cannot be made.

use std::time::SystemTime;

use crate::ledger::LedgerError;

/// Why a token is refused, or cannot be made. Where one is refused, nothing has changed. No message quotes the token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key cannot be used to seal or open.
    #[error("key `{}` cannot be used: {problem}", key.escape_debug())]
    UnusableKey {
        /// The name of the key.
        key: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The claims cannot be put into a token.
    #[error("the claims cannot be sealed: {problem}")]
    Unsealable {
        /// What is wrong with them, and what to do.
        problem: String,
    },
    /// It is no token: cut off, added to, or something else.
    #[error("this is not a sealed token: {problem}")]
    Malformed {
        /// What is wrong with its shape.
        problem: &'static str,
    },
    /// It is a token of another version of this crate (rule L7).
    #[error(
        "the token is of form `{version}`, which this version does not know: open it with the version that sealed it"
    )]
    UnknownVersion {
        /// The version that the token names.
        version: String,
    },
    /// It was sealed with a key that is not, or no longer, accepted.
    #[error(
        "the token was sealed with key `{key}`, which is not accepted here: ask for a new one, or accept the key"
    )]
    UnknownKey {
        /// The key that it names.
        key: String,
    },
    /// The seal does not fit: it was changed, is for another purpose or audience, or was made with another secret.
    #[error(
        "the token's seal does not fit: it was changed, is for another purpose or audience, or was sealed with another secret"
    )]
    Forged,
    /// Its time is over.
    #[error("the token is too old: ask for a new one")]
    Expired {
        /// When the token has expired.
        expired_at: SystemTime,
        /// The time that it was compared with.
        now: SystemTime,
    },
    /// The seal fits, and what was sealed is not what is expected here.
    #[error("the token holds other claims than are expected here: {problem}")]
    OtherClaims {
        /// What does not fit, without its values.
        problem: String,
    },
    /// The ask in the ledger is not the one that was sealed: another call, other arguments or questions.
    #[error(
        "the token is not for ask `{ask}` as it stands: its {what} changed, so show it again and seal it anew"
    )]
    OtherAsk {
        /// The id of the ask.
        ask: String,
        /// The first thing that differs.
        what: &'static str,
    },
    /// The token is for the call as it was shown, and other arguments were to be approved with it.
    #[error(
        "the token for ask `{ask}` does not approve other arguments than were shown: seal it with edits, or approve it as it is"
    )]
    NoEdits {
        /// The id of the ask.
        ask: String,
    },
    /// The ledger could not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
