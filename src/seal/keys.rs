//! Keys that seal claims into tokens and open them again.

use std::fmt;
use std::time::SystemTime;

use hmac::{Hmac, KeyInit as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::Sha256;

use super::SealError;
use super::token::{self, Envelope};
use crate::ledger::Millis;

/// The minimum length of a secret in bytes: that of an HMAC-SHA256.
const MIN_SECRET: usize = 32;

/// The prefix of purposes that are reserved for the library.
const RESERVED: &str = "countersign";

/// The maximum length of a key's name in bytes.
const MAX_NAME: usize = 32;

/// One key that seals, and any number of keys that open. `Debug` shows the names of the keys and nothing else.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use countersign::seal::{SealError, SealKeys};
/// use serde_json::{Value, json};
///
/// # let secret: Vec<u8> = (0..32).collect();
/// let keys = SealKeys::new("2026-11", secret)?;
/// let now = SystemTime::now();
/// let token = keys.seal("unsubscribe", &json!({"user": "ann"}), now + Duration::from_secs(3600))?;
/// assert_eq!(keys.open::<Value>("unsubscribe", &token, now)?["user"], "ann");
/// assert!(matches!(keys.open::<Value>("log in", &token, now), Err(SealError::Forged)));
/// # Ok::<(), SealError>(())
/// ```
#[derive(Clone)]
pub struct SealKeys {
    /// The first key seals; all of them open.
    keys: Vec<Key>,
    audience: Option<String>,
}

#[derive(Clone)]
struct Key {
    name: String,
    mac: Hmac<Sha256>,
}

impl SealKeys {
    /// Seals with this key, and opens tokens that were sealed with it. The name is part of each token: letters, digits,
    /// `-` and `_`, at most 32 of them. The secret is at least 32 random bytes.
    ///
    /// # Errors
    /// [`SealError::UnusableKey`] when the secret is too short or consists of one repeated byte, or when the name is
    /// empty, too long, or has other characters.
    pub fn new(name: impl Into<String>, secret: impl AsRef<[u8]>) -> Result<Self, SealError> {
        Self { keys: Vec::new(), audience: None }.and_accept(name, secret)
    }

    /// As [`new`](Self::new), but accepts a secret of one repeated byte, which is easy to guess: for tests, and for
    /// tokens that were sealed before such secrets were refused. A person who guesses the secret can decide.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn danger_with_guessable_secret(
        name: impl Into<String>,
        secret: impl AsRef<[u8]>,
    ) -> Result<Self, SealError> {
        Self { keys: Vec::new(), audience: None }.accept(name.into(), secret.as_ref())
    }

    /// Binds tokens to an audience, such as the name of a service and its ledger: a token for one audience is refused
    /// by another that has the same key. Without an audience, a token is accepted wherever its key is.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use countersign::seal::{SealError, SealKeys};
    /// # let secret: Vec<u8> = (0..32).collect();
    /// # let (now, claims) = (SystemTime::now(), true);
    /// let staging = SealKeys::new("2026-11", &secret)?.audience("staging");
    /// let production = SealKeys::new("2026-11", &secret)?.audience("production");
    /// let token = staging.seal("p", &claims, now + Duration::from_secs(60))?;
    /// assert!(matches!(production.open::<bool>("p", &token, now), Err(SealError::Forged)));
    /// # Ok::<(), SealError>(())
    /// ```
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Also opens tokens that were sealed with this key.
    ///
    /// # Errors
    /// [`SealError::UnusableKey`] as for [`new`](Self::new), or when another key has this name.
    ///
    /// You can rotate a key without a moment in which tokens are refused: first accept the new key everywhere, then
    /// seal with it everywhere, then stop accepting the old one.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use countersign::seal::SealKeys;
    ///
    /// let (old, new): (Vec<u8>, Vec<u8>) = ((0..32).collect(), (100..132).collect());
    /// let now = SystemTime::now();
    /// let token = SealKeys::new("2026-10", &old)?.seal("login", "ann", now + Duration::from_secs(60))?;
    /// let keys = SealKeys::new("2026-11", &new)?.and_accept("2026-10", &old)?;
    /// assert_eq!(keys.open::<String>("login", &token, now)?, "ann");
    /// # Ok::<(), countersign::seal::SealError>(())
    /// ```
    pub fn and_accept(
        self,
        name: impl Into<String>,
        secret: impl AsRef<[u8]>,
    ) -> Result<Self, SealError> {
        let (key, secret) = (name.into(), secret.as_ref());
        if secret.len() >= MIN_SECRET && secret.iter().all(|byte| Some(byte) == secret.first()) {
            let problem = "its secret is one byte, repeated: use random bytes".to_owned();
            return Err(SealError::UnusableKey { key, problem });
        }
        self.accept(key, secret)
    }

    fn accept(mut self, name: String, secret: &[u8]) -> Result<Self, SealError> {
        let unusable = |problem: String| SealError::UnusableKey { key: name.clone(), problem };
        if !is_name(&name) {
            let problem =
                format!("its name has to be of 1 to {MAX_NAME} letters, digits, `-` and `_`");
            return Err(unusable(problem));
        }
        if secret.len() < MIN_SECRET {
            let problem = format!(
                "its secret has {} bytes, and at least {MIN_SECRET} random ones are needed",
                secret.len()
            );
            return Err(unusable(problem));
        }
        if self.keys.iter().any(|key| key.name == name) {
            return Err(unusable("another one has its name: give each secret its own".to_owned()));
        }
        let mac = Hmac::new_from_slice(secret).map_err(|error| unusable(error.to_string()))?;
        self.keys.push(Key { name, mac });
        Ok(self)
    }

    /// Seals claims until `expires_at`. The purpose is not in the token: to open it, the caller has to name the same
    /// purpose, so that a token for one purpose cannot be used for another. Purposes that begin with `countersign` are
    /// the library's.
    ///
    /// # Errors
    /// [`SealError::Unsealable`] when the claims cannot be serialised as JSON or are too large for a token, or when the
    /// purpose is the library's.
    ///
    /// The claims are signed and not encrypted: anyone who has the token can read them.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use countersign::seal::{SealError, SealKeys};
    ///
    /// let secret: Vec<u8> = (0..32).collect();
    /// let keys = SealKeys::new("k1", &secret)?;
    /// let now = SystemTime::now();
    /// let token = keys.seal("login", "ann", now + Duration::from_secs(60))?;
    /// assert_eq!(keys.open::<String>("login", &token, now)?, "ann");
    /// assert!(matches!(keys.open::<String>("reset", &token, now), Err(SealError::Forged)), "another purpose");
    /// let later = now + Duration::from_secs(61);
    /// assert!(matches!(keys.open::<String>("login", &token, later), Err(SealError::Expired { .. })));
    /// # Ok::<(), SealError>(())
    /// ```
    pub fn seal<T: Serialize + ?Sized>(
        &self,
        purpose: &str,
        claims: &T,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        if purpose.starts_with(RESERVED) {
            let problem =
                format!("purposes that begin with `{RESERVED}` are the library's: use another");
            return Err(SealError::Unsealable { problem });
        }
        self.seal_own(purpose, claims, expires_at)
    }

    /// As [`seal`](Self::seal), also for purposes that begin with `countersign`, which are reserved for this library and
    /// its adapters, so that no application seals claims that open as theirs.
    ///
    /// # Errors
    /// [`SealError::Unsealable`] when the claims cannot be serialised as JSON or are too large for a token.
    pub fn seal_own<T: Serialize + ?Sized>(
        &self,
        purpose: &str,
        claims: &T,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        let unsealable = |problem: String| SealError::Unsealable { problem };
        let claims = serde_json::to_value(claims).map_err(|error| unsealable(error.to_string()))?;
        let envelope = Envelope { claims, expires_at: token::millis(expires_at) };
        let first = self.keys.first().ok_or_else(|| unsealable("there is no key".to_owned()))?;
        let audience = self.audience.as_deref();
        token::write(&first.name, &first.mac, (purpose, audience), &envelope)
    }

    /// Verifies a token that was sealed for this purpose and has not expired at `now`, and gives its claims.
    ///
    /// # Errors
    /// [`SealError`] says what is wrong: no token, an unknown key, a seal that does not match, expired, other claims.
    pub fn open<T: DeserializeOwned>(
        &self,
        purpose: &str,
        token: &str,
        now: SystemTime,
    ) -> Result<T, SealError> {
        let (claims, expires_at) = self.open_at_any_time(purpose, token)?;
        still_holds(expires_at, token::millis(now))?;
        Ok(claims)
    }

    /// The claims of a token and its expiry, unchecked: for a caller that learns the store's time only within a
    /// transaction.
    ///
    /// A caller has to compare the expiry, by a clock that is read in the transaction of the decision (rule
    /// L4).
    pub(super) fn open_at_any_time<T: DeserializeOwned>(
        &self,
        purpose: &str,
        token: &str,
    ) -> Result<(T, Millis), SealError> {
        let mac = |name: &str| self.keys.iter().find(|key| key.name == name).map(|key| &key.mac);
        let Envelope { claims, expires_at } =
            token::read::<Value>(token, (purpose, self.audience.as_deref()), is_name, mac)?;
        let claims = serde_path_to_error::deserialize(claims).map_err(|error| {
            let problem = format!("`{}` does not fit", error.path());
            SealError::OtherClaims { problem }
        })?;
        Ok((claims, expires_at))
    }
}

/// An error if a token that expires at `expires_at` has expired at `now`.
pub(super) fn still_holds(expires_at: Millis, now: Millis) -> Result<(), SealError> {
    if now < expires_at {
        return Ok(());
    }
    Err(SealError::Expired { expired_at: token::time(expires_at), now: token::time(now) })
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits)
}

impl fmt::Debug for SealKeys {
    /// Lists the names of the keys, never a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.name)).finish()
    }
}
