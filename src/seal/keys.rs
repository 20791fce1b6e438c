//! The keys that seal and open.

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

/// How many bytes a secret has at least: as many as the seal.
const MIN_SECRET: usize = 32;

/// How purposes begin that are the library's.
const RESERVED: &str = "countersign";

/// How long the name of a key may be.
const MAX_NAME: usize = 32;

/// One key that seals, and any number that open. `Debug` shows their names alone.
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
    /// The first one seals.
    keys: Vec<Key>,
    audience: Option<String>,
}

#[derive(Clone)]
struct Key {
    name: String,
    mac: Hmac<Sha256>,
}

impl SealKeys {
    /// Seals with this key, and opens what it has sealed. The name stands in each token: letters, digits, `-` and `_`,
    /// at most 32 of them. The secret is at least 32 random bytes.
    ///
    /// # Errors
    /// [`SealError::UnusableKey`] when the secret is too short or one byte repeated, or the name cannot stand in a token.
    pub fn new(name: impl Into<String>, secret: impl AsRef<[u8]>) -> Result<Self, SealError> {
        Self { keys: Vec::new(), audience: None }.and_accept(name, secret)
    }

    /// As [`new`](Self::new), for a secret that anybody can guess: one byte, repeated. For tests, and for tokens that were
    /// sealed before such secrets were refused; whoever guesses it decides.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn danger_with_guessable_secret(
        name: impl Into<String>,
        secret: impl AsRef<[u8]>,
    ) -> Result<Self, SealError> {
        Self { keys: Vec::new(), audience: None }.accept(name.into(), secret.as_ref())
    }

    /// Binds what is sealed to an audience, such as the name of a service and its ledger: a token for one is refused by
    /// another that has the same key. Without it, a token is good wherever the key is, and the same ask.
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

    /// Opens what this key has sealed, too.
    ///
    /// # Errors
    /// [`SealError::UnusableKey`] as [`new`](Self::new), or when there is a key of this name.
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

    /// Seals claims until this time. The purpose is not in the token: whoever opens it has to name the same, so that what
    /// was sealed for one thing cannot be used for another. Purposes that begin with `countersign` are the library's.
    ///
    /// # Errors
    /// [`SealError::Unsealable`] when the claims are not JSON, or too large for a token, or the purpose is the library's.
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

    /// Seals for any purpose.
    pub(crate) fn seal_own<T: Serialize + ?Sized>(
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

    /// The claims of a token that was sealed for this purpose, and is not over yet.
    ///
    /// # Errors
    /// [`SealError`] says what is wrong: no token, an unknown key, forged, expired, other claims.
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

    /// The claims of a token, and when it expires: for whoever knows the time only later.
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

/// Whether a token that expires then may still be used.
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
    /// Names, not secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.name)).finish()
    }
}
