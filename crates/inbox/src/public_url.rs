//! The address by which browsers reach an inbox, and the addresses of its asks.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// The address by which browsers reach an inbox: that of its own server, or that of a proxy in front of it. It names no
/// person and holds no secret, so you may write it into messages, logs and links.
///
/// ```
/// use countersign_inbox::PublicUrl;
///
/// let url: PublicUrl = "https://example.org/inbox".parse()?;
/// assert_eq!(url.to_string(), "https://example.org/inbox/");
/// assert_eq!(url.ask("0198-7f"), "https://example.org/inbox/#ask=0198-7f");
///
/// // A query and a user name are kept in logs, so neither is part of such an address.
/// assert!("https://example.org/?token=1".parse::<PublicUrl>().is_err());
/// # Ok::<(), countersign_inbox::PublicUrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(Url);

/// The error of a text that is no address of an inbox. It does not repeat the text, which may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the public address of an inbox is `https://HOST/PATH/`, or `http://`, without a user, a query and a fragment"
)]
pub struct PublicUrlError;

impl PublicUrl {
    /// The address of an ask on the page. It decides nothing, and a person who is not logged in sees nothing there.
    #[must_use]
    pub fn ask(&self, id: &str) -> String {
        self.with_fragment(&format!("ask={id}"))
    }

    /// The address that logs a browser in, once, with the secret of [`Inbox::with_secret`](super::Inbox::with_secret).
    /// The secret is in the fragment, which browsers send to no server. Show this address to the person alone.
    ///
    /// ```
    /// use countersign_inbox::PublicUrl;
    /// let url: PublicUrl = "http://127.0.0.1:8788".parse()?;
    /// assert_eq!(url.login("5ec2e7"), "http://127.0.0.1:8788/#secret=5ec2e7");
    /// # Ok::<(), countersign_inbox::PublicUrlError>(())
    /// ```
    #[must_use]
    pub fn login(&self, secret: &str) -> String {
        self.with_fragment(&format!("secret={secret}"))
    }

    /// The path at which browsers find the page; it begins and ends with a slash.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The name that browsers send in `Host`, with the port where it is not the usual one.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns `true` if browsers reach it by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    fn with_fragment(&self, fragment: &str) -> String {
        let mut url = self.0.clone();
        url.set_fragment(Some(fragment));
        url.into()
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let mut url = Url::parse(text).map_err(|_| PublicUrlError)?;
        let plain = url.query().is_none() && url.fragment().is_none();
        let unnamed = url.username().is_empty() && url.password().is_none();
        if !["http", "https"].contains(&url.scheme())
            || url.host_str().is_none()
            || !plain
            || !unnamed
        {
            return Err(PublicUrlError);
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self(url))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}
