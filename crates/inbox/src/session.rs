//! The login of an inbox without accounts: one secret, which a browser exchanges for a session (rule S14).
//!
//! The secret reaches the server in the body of one request. So it is in no request line, no `Referer` and no log of a
//! proxy. From then on the browser has a session, in two halves:
//!
//! | half | where the browser has it | who else could get it |
//! |---|---|---|
//! | the cookie | `HttpOnly`, `SameSite=Strict` | servers at other ports of the same host, as cookies do not know ports |
//! | the token | the storage of the page's origin | a script of this very origin |
//!
//! A request needs both. So if a browser sends the cookie to a server at another port, it is worth nothing there. We
//! make both of the secret: nothing is stored, and a new secret voids every session at once, in every process.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::header::COOKIE;
use axum::http::request::Parts;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use super::authorize_error::AuthorizeError;
use super::public_url::PublicUrl;
use countersign::args::hex;
use countersign::ledger::Approver;

/// The time for which a session lasts. After it the secret is needed again.
const VALID: Duration = Duration::from_secs(30 * 24 * 3600);
/// The fewest characters of a secret.
pub(crate) const SHORTEST: usize = 32;
/// The header with the half of a session that the page has.
const TOKEN: &str = "countersign-session";
/// The event stream. A browser opens it without headers of the page, so it needs only the cookie.
/// Its events carry nothing.
const EVENTS: &str = "/api/changes";

type ReadSecret = dyn Fn() -> io::Result<String> + Send + Sync;

/// The secret of an inbox, and the person who has it.
pub(super) struct SecretLogin {
    read: Arc<ReadSecret>,
    approver: Approver,
}

/// A secret as it is now, with which sessions are made and checked.
struct Secret {
    text: String,
    mac: Hmac<Sha256>,
}

impl SecretLogin {
    pub(super) fn new(
        read: impl Fn() -> io::Result<String> + Send + Sync + 'static,
        approver: Approver,
    ) -> Self {
        Self { read: Arc::new(read), approver }
    }

    /// The person who sends a request with a session.
    pub(super) fn authorize(&self, parts: &Parts) -> Result<Approver, AuthorizeError> {
        let secret = self.secret()?;
        let token = parts.headers.get(TOKEN).and_then(|it| it.to_str().ok());
        let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        // A page at another port can set a cookie of this name, too. It must not hide the right one.
        let named = secret.name();
        let sessions =
            cookies.flat_map(|line| line.split("; ")).filter_map(|it| it.split_once('='));
        let mut sessions = sessions.filter(|(name, _)| name.ends_with(&named));
        let listens = parts.uri.path() == EVENTS;
        let now = seconds();
        let is_own = |(_, session): (&str, &str)| {
            secret.made(session, now)
                && (listens || token.is_some_and(|token| secret.pairs(session, token)))
        };
        if sessions.any(is_own) {
            return Ok(self.approver.clone());
        }
        let problem = "This browser is not logged in. Open the address that the inbox has shown, or enter its secret.";
        Err(AuthorizeError::unauthorized(problem))
    }

    /// The name in which a person decides who has the secret.
    pub(super) fn name(&self) -> &str {
        self.approver.name()
    }

    /// Exchanges the secret for a session: the header that sets the cookie, and the token of the page.
    pub(super) fn exchange(
        &self,
        sent: &str,
        place: Option<&PublicUrl>,
    ) -> Result<(String, String), AuthorizeError> {
        let secret = self.secret()?;
        match secret.same(sent.trim(), &secret.text) {
            true => Ok(secret.open(place, seconds())),
            false => Err(AuthorizeError::unauthorized(
                "This is not the secret of the inbox, or not any more: `countersign inbox --new-secret` shows a new one.",
            )),
        }
    }

    /// The secret as it is at this moment, so that a new one counts at once.
    fn secret(&self) -> Result<Secret, AuthorizeError> {
        self.current().map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the secret of the inbox cannot be read"
            );
            let problem = "The secret of this inbox cannot be read: its log says why.";
            AuthorizeError::new(503, problem)
        })
    }

    fn current(&self) -> io::Result<Secret> {
        let text = (self.read)()?.trim().to_owned();
        if text.len() < SHORTEST {
            let problem = format!("a secret of fewer than {SHORTEST} characters can be guessed");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let mac = Hmac::new_from_slice(text.as_bytes()).map_err(io::Error::other)?;
        Ok(Secret { text, mac })
    }
}

impl Secret {
    /// A text that only this secret gives, for one purpose.
    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        for part in [purpose, text] {
            mac.update(&part.len().to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }

    fn hex_of(&self, purpose: &str, text: &str) -> String {
        hex(&self.mac(purpose, text).finalize().into_bytes())
    }

    /// Compares in a time that says nothing about the texts.
    fn same(&self, one: &str, other: &str) -> bool {
        self.mac("compare", one).verify(&self.mac("compare", other).finalize().into_bytes()).is_ok()
    }

    /// The name of the cookie: the inboxes of two users of a machine are at one host.
    fn name(&self) -> String {
        self.hex_of("name", "").chars().take(8).collect::<String>()
    }

    /// Returns `true` if this secret has made the session, and it is not over.
    fn made(&self, session: &str, now: u64) -> bool {
        let Some((about, mac)) = session.rsplit_once('.') else { return false };
        let until = about.rsplit_once('.').and_then(|(_, until)| until.parse().ok());
        self.same(mac, &self.hex_of("cookie", about)) && until.is_some_and(|until: u64| now < until)
    }

    /// Returns `true` if the token is the other half of the session.
    fn pairs(&self, session: &str, token: &str) -> bool {
        let (about, _) = session.rsplit_once('.').unwrap_or_default();
        self.same(token, &self.hex_of("token", about))
    }

    /// A new session: the header that sets the cookie, and the token of the page.
    fn open(&self, place: Option<&PublicUrl>, now: u64) -> (String, String) {
        let about = format!("{}.{}", Uuid::new_v4().simple(), now + VALID.as_secs());
        let session = format!("{about}.{}", self.hex_of("cookie", &about));
        let path = place.map_or("/", PublicUrl::path);
        // Browsers take a cookie with such a name only if it is as the name says. So no other page can replace
        // it.
        let (prefix, secure) = match place.is_some_and(PublicUrl::is_secure) {
            true if path == "/" => ("__Host-", "; Secure"),
            true => ("__Secure-", "; Secure"),
            false => ("", ""),
        };
        let name = format!("{prefix}countersign-{}", self.name());
        let age = VALID.as_secs();
        let cookie = format!(
            "{name}={session}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        );
        (cookie, self.hex_of("token", &about))
    }
}

/// The time of this machine, in seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
