//! The people whom a proxy in front of the inbox has logged in.
//!
//! A header says who someone is only if the proxy has set it. Anyone who can connect to the port can send one, too: other
//! users of the machine, and programs of this one. So the proxy proves itself with a secret in each request. A request
//! without the secret reaches nothing.

use axum::http::HeaderName;
use axum::http::request::Parts;
use countersign_cli::config::Config;
use countersign_inbox::{Approver, AuthorizeError};
use sha2::{Digest as _, Sha256};

use crate::output::CommandError;

/// The header with the secret of the proxy.
const SECRET: &str = "countersign-proxy-secret";
/// The header with the name of the person, unless another one is configured.
const USER: &str = "x-forwarded-user";

/// The proxy in front of the inbox, and the secret by which we know it.
pub(crate) struct TrustedProxy {
    config: Config,
    user: HeaderName,
}

impl TrustedProxy {
    /// The proxy of this configuration, if there is one. A secret that cannot be read now is an error.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, CommandError> {
        if config.proxy_secret()?.is_none() {
            return match &config.inbox.proxy_user_header {
                Some(_) => Err(CommandError::Usage(
                    "`proxy_user_header` needs `proxy_secret_file`: without a secret anyone can send the header".into(),
                )),
                None => Ok(None),
            };
        }
        let user = config.inbox.proxy_user_header.as_deref().unwrap_or(USER);
        let user = user.parse().map_err(|_| {
            CommandError::Usage(format!("`{}` is no name of a header", user.escape_debug()))
        })?;
        Ok(Some(Self { config: config.clone(), user }))
    }

    /// The person who sends a request. We read the secret anew each time, so a new one counts at
    /// once.
    pub(crate) fn authorize(&self, parts: &Parts) -> Result<Approver, AuthorizeError> {
        let unready = |_| AuthorizeError::new(503, "The secret of the proxy cannot be read.");
        let secret = self.config.proxy_secret().map_err(unready)?;
        let sent = one(parts, &HeaderName::from_static(SECRET));
        if !secret.zip(sent).is_some_and(|(secret, sent)| is_same(&secret, sent)) {
            let problem =
                "This inbox is reached through its proxy, which has not sent this request.";
            return Err(AuthorizeError::forbidden(problem));
        }
        let name = one(parts, &self.user).map(str::trim).filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| AuthorizeError::unauthorized("The proxy has not said who you are."))?;
        Ok(Approver::new(name).with_audit(true))
    }
}

/// The text of a header that is there once. Where it is there twice, a client may have sent one of them.
fn one<'p>(parts: &'p Parts, name: &HeaderName) -> Option<&'p str> {
    let mut values = parts.headers.get_all(name).iter();
    let first = values.next()?.to_str().ok();
    first.filter(|_| values.next().is_none())
}

/// Compares by digests: the time that this takes says where these differ, and nothing about the texts.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}
