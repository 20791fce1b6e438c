//! The format of a token.
//!
//! ```text
//!  cs1 . name of the key . base64url(canonical JSON of {claims, expires_at}) . base64url(HMAC-SHA256)
//! ```
//!
//! The HMAC is over four parts, or five if the keys have an audience: the format, the purpose, the name of the key, the
//! bytes of the JSON, and the audience. Each part is preceded by its length, so that no two ways to divide a text give
//! the same input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, Mac as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use super::SealError;
use crate::ledger::Millis;

/// The format, with which a token begins; a later one has a higher number (rule L7).
const FORM: &str = "cs1";

/// The maximum length of a token in bytes: 16 KiB, short enough for an HTTP header.
const MAX_BYTES: usize = 16 << 10;

/// The sealed payload.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Envelope<T> {
    pub(super) claims: T,
    pub(super) expires_at: Millis,
}

pub(super) fn write(
    key: &str,
    mac: &Hmac<Sha256>,
    purpose: (&str, Option<&str>),
    envelope: &Envelope<Value>,
) -> Result<String, SealError> {
    let payload = crate::args::canonical(&json!(envelope));
    let seal = over(mac, purpose, key, payload.as_bytes()).finalize().into_bytes();
    let token = format!("{FORM}.{key}.{}.{}", BASE64.encode(payload), BASE64.encode(seal));
    if token.len() > MAX_BYTES {
        let problem = format!(
            "the token would have {} bytes, and at most {MAX_BYTES} are sealed: seal a digest instead",
            token.len()
        );
        return Err(SealError::Unsealable { problem });
    }
    Ok(token)
}

/// Before the HMAC is verified, only the format and the name of the key are read from a token.
pub(super) fn read<'k, T: DeserializeOwned>(
    token: &str,
    purpose: (&str, Option<&str>),
    is_name: impl Fn(&str) -> bool,
    key: impl Fn(&str) -> Option<&'k Hmac<Sha256>>,
) -> Result<Envelope<T>, SealError> {
    let malformed = |problem| SealError::Malformed { problem };
    if token.len() > MAX_BYTES {
        return Err(malformed("it is too long"));
    }
    let mut parts = token.split('.');
    let form = parts.next().unwrap_or_default();
    if form != FORM {
        return Err(match form.strip_prefix("cs").map(str::parse::<u16>) {
            Some(Ok(number)) => SealError::UnknownVersion { version: format!("cs{number}") },
            _ => malformed("it does not begin as one"),
        });
    }
    let (Some(name), Some(payload), Some(seal), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed("it does not have four parts"));
    };
    if !is_name(name) {
        return Err(malformed("its second part does not name a key"));
    }
    let not_base64 = |_| malformed("its last parts are not base64url");
    let payload = BASE64.decode(payload).map_err(not_base64)?;
    let seal = BASE64.decode(seal).map_err(not_base64)?;
    let mac = key(name).ok_or_else(|| SealError::UnknownKey { key: name.to_owned() })?;
    over(mac, purpose, name, &payload).verify_slice(&seal).map_err(|_| SealError::Forged)?;
    serde_json::from_slice(&payload)
        .map_err(|_| SealError::OtherClaims { problem: "they are not of this form".to_owned() })
}

/// The HMAC over a token's parts, each preceded by its length as a big-endian `u64`.
fn over(
    mac: &Hmac<Sha256>,
    (purpose, audience): (&str, Option<&str>),
    key: &str,
    payload: &[u8],
) -> Hmac<Sha256> {
    let mut mac = mac.clone();
    let form = format!("countersign seal {FORM}");
    let parts = [form.as_bytes(), purpose.as_bytes(), key.as_bytes(), payload];
    for part in parts.into_iter().chain(audience.map(str::as_bytes)) {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part);
    }
    mac
}

/// A time as it is sealed: whole milliseconds since 1970, at least 0.
pub(super) fn millis(time: SystemTime) -> Millis {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// A sealed time. A time that this platform cannot represent is shown as 1970.
pub(super) fn time(millis: Millis) -> SystemTime {
    let since = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}
