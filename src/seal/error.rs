//! The error of a token that is refused, or cannot be made.

use std::time::SystemTime;

use crate::ledger::LedgerError;

/// The error of a token that is refused, or cannot be made. A refused token changes nothing. No message quotes the token.
///
/// ```
/// use std::time::SystemTime;
/// use countersign::seal::{SealError, SealKeys};
///
/// let secret: Vec<u8> = (0..32).collect();
/// let keys = SealKeys::new("k1", &secret)?;
/// assert!(matches!(SealKeys::new("k1", [7; 32]), Err(SealError::UnusableKey { .. })));
/// assert!(matches!(keys.open::<bool>("p", "hello", SystemTime::now()), Err(SealError::Malformed { .. })));
/// # Ok::<(), SealError>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key cannot be used to seal or open.
    #[error("key `{}` cannot be used: {problem}", key.escape_debug())]
    UnusableKey {
        /// The name of the key.
        key: String,
        /// The fault of the key, and what to do about it.
        problem: String,
    },
    /// The claims cannot be put into a token.
    #[error("the claims cannot be sealed: {problem}")]
    Unsealable {
        /// The fault of the claims, and what to do about it.
        problem: String,
    },
    /// The text is no token: truncated, extended, or something else.
    #[error("this is not a sealed token: {problem}")]
    Malformed {
        /// The fault of the text's shape.
        problem: &'static str,
    },
    /// The token's format is of another version of this crate (rule L7).
    #[error(
        "the token is of form `{version}`, which this version does not know: open it with the version that sealed it"
    )]
    UnknownVersion {
        /// The format that the token names, such as `cs2`.
        version: String,
    },
    /// The token was sealed with a key that is not, or no longer, accepted.
    #[error(
        "the token was sealed with key `{key}`, which is not accepted here: ask for a new one, or accept the key"
    )]
    UnknownKey {
        /// The name of the key, as the token gives it.
        key: String,
    },
    /// The HMAC does not match: the token was changed, is for another purpose or audience, or was made with another
    /// secret.
    #[error(
        "the token's seal does not fit: it was changed, is for another purpose or audience, or was sealed with another secret"
    )]
    Forged,
    /// The token has expired.
    #[error("the token is too old: ask for a new one")]
    Expired {
        /// The time when the token expired.
        expired_at: SystemTime,
        /// The time that the expiry was compared with: the store's clock, or the caller's `now`.
        now: SystemTime,
    },
    /// The HMAC matches, but the claims are not of the type that is expected here.
    #[error("the token holds other claims than are expected here: {problem}")]
    OtherClaims {
        /// The field that does not fit, without any value.
        problem: String,
    },
    /// The ask in the ledger differs from the sealed one: another call, other arguments, questions or principal.
    #[error(
        "the token is not for ask `{ask}` as it stands: its {what} changed, so show it again and seal it anew"
    )]
    OtherAsk {
        /// The id of the ask.
        ask: String,
        /// The first part that differs.
        what: &'static str,
    },
    /// The token approves the call as it was shown, and the decision would approve other arguments.
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
