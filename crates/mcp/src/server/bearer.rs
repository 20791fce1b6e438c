//! The secret that requests over HTTP have to carry.
//!
//! The server keeps a digest of it, keyed by the secret itself, and compares digests in constant time: neither a dump of
//! its memory nor the time of an answer tells the secret, or how much of a guess is right.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::McpError;

/// The least length of a secret, in characters: that of 128 random bits in hexadecimal.
const MIN: usize = 32;
/// The subject of the digests.
const ABOUT: &[u8] = b"countersign mcp bearer 1";

/// The digest of a secret.
pub(crate) struct Bearer(Vec<u8>);

impl Bearer {
    /// A secret that a header can carry (`b68token` of RFC 6750). An error does not repeat it.
    pub(crate) fn new(secret: &str) -> Result<Self, McpError> {
        let problem = |problem: String| McpError::Config { problem };
        if secret.len() < MIN {
            return Err(problem(format!(
                "the secret of the server has {} characters, and at least {MIN} random ones are needed",
                secret.len()
            )));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        if !secret.trim_end_matches('=').chars().all(is_plain) {
            return Err(problem(
                "the secret of the server has characters that a header may not carry: use letters, digits and \
                 `-._~+/`, and `=` at its end"
                    .to_owned(),
            ));
        }
        let mac = digest(secret).ok_or_else(|| problem("the secret is no key".to_owned()))?;
        Ok(Self(mac.finalize().into_bytes().to_vec()))
    }

    /// Returns `true` if a request carries the secret, in its only `Authorization` header.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().filter(|_| values.next().is_none());
        let given = value.and_then(|value| value.to_str().ok()?.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let mac = given.and_then(|(_, secret)| digest(secret.trim_matches(' ')));
        mac.is_some_and(|mac| mac.verify_slice(&self.0).is_ok())
    }
}

fn digest(secret: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(ABOUT);
    Some(mac)
}
