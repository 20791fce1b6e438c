//! The files that the program `countersign` keeps about its inbox: the secret with which a person logs in, and the address at which
//! the page is, which has no secret.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use countersign_inbox::{Inbox, Webhook, WebhookForm};
use serde::Deserialize;

use super::{Config, ConfigError, Directories, key, private};

/// The place where a person answers an ask, as we tell it to a model: no link decides.
///
/// ```
/// use countersign_cli::config::answering;
///
/// assert!(answering("").contains("`countersign asks review`"));
/// assert!(answering(" at http://127.0.0.1:8788/").contains("inbox` at http://127.0.0.1:8788/, or"));
/// ```
#[must_use]
pub fn answering(place: &str) -> String {
    format!(
        "A person answers it in `countersign inbox`{place}, or on a terminal with `countersign asks review`: tell them so."
    )
}

/// The table `[inbox]` of a configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct InboxConfig {
    /// The address that the page is served on; by default the port of the last time, or else a free one, of the loopback
    /// interface.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// The address by which browsers reach the page, where a proxy is in front of it.
    #[serde(default)]
    pub public_url: Option<String>,
    /// A private file with the secret by which a proxy proves itself, which logs people in and sends their names. Then no
    /// other request reaches the page, and the names count as people.
    #[serde(default)]
    pub proxy_secret_file: Option<PathBuf>,
    /// The webhook that is told of new asks, a table of its own.
    #[serde(default)]
    pub webhook: Option<WebhookConfig>,
    /// The header in which that proxy sends the name of a person; `X-Forwarded-User` by default.
    #[serde(default)]
    pub proxy_user_header: Option<String>,
}

/// The table `[inbox.webhook]`: a service that is told of new, expiring and decided asks, without their arguments.
///
/// ```toml
/// [inbox.webhook]
/// url_file = "/users/ann/.config/countersign/webhook.url"   # or `url`, where the address itself is no secret
/// form = "ntfy"                                             # or slack, teams, json; slack by default
/// expiring_before_s = 600                                   # the default
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookConfig {
    /// The address that messages are posted to.
    #[serde(default)]
    pub url: Option<String>,
    /// A private file with the address: anyone who knows that of a Slack or Teams webhook can write there.
    #[serde(default)]
    pub url_file: Option<PathBuf>,
    /// The service, which decides what its messages look like.
    #[serde(default)]
    pub form: WebhookForm,
    /// The number of seconds before its deadline at which an ask is told as expiring.
    #[serde(default)]
    pub expiring_before_s: Option<u64>,
}

/// The longest address that is believed.
const LONGEST: usize = 2_000;

impl Config {
    /// The file of the inbox's secret: `inbox.secret` in the state directory.
    #[must_use]
    pub fn inbox_secret_file(&self, directories: &Directories) -> PathBuf {
        directories.state().join("inbox.secret")
    }

    /// The secret with which a person logs in to the inbox of this user. It is 32 random bytes in hexadecimal. We make
    /// it at the first use, in a file that only this user can read.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change the file; [`ConfigError::File`] when it cannot be
    /// read or created, is no text, or has less than 32 characters, as a file has that was cut off. No error repeats it.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let (directories, config) = (Directories::below(home.path()), Config::default());
    /// let secret = config.inbox_secret(&directories)?; // made
    /// assert_eq!((secret.len(), config.inbox_secret(&directories)?), (64, secret.clone())); // and read again
    /// assert_ne!(config.new_inbox_secret(&directories)?, secret);
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn inbox_secret(&self, directories: &Directories) -> Result<String, ConfigError> {
        private::directory(directories.state())?;
        let file = self.inbox_secret_file(directories);
        let secret = key::text(&file)?;
        let (length, least) = (secret.len(), Inbox::SHORTEST_SECRET);
        if length < least {
            let problem = format!(
                "the secret in it has {length} characters, and at least {least} random ones are needed: \
                 `countersign inbox --new-secret` makes one"
            );
            return Err(ConfigError::file(&file, problem));
        }
        Ok(secret)
    }

    /// The secret by which the proxy in front of the inbox proves itself: the line in `proxy_secret_file`. `None` where
    /// none is configured. We never generate it: the proxy has to have the same.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change the file; [`ConfigError::File`] when it cannot be read,
    /// or has fewer than 32 characters. No error repeats it.
    ///
    /// ```
    /// use countersign_cli::config::Config;
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let mut config = Config::default();
    /// assert_eq!(config.proxy_secret()?, None);
    /// config.inbox.proxy_secret_file = Some(home.path().join("missing"));
    /// assert!(config.proxy_secret().is_err(), "a proxy that cannot prove itself is none");
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn proxy_secret(&self) -> Result<Option<String>, ConfigError> {
        self.inbox.proxy_secret_file.as_deref().map(key::shared).transpose()
    }

    /// The webhook of the inbox, which links to the page at this address; `None` where none is configured. Messages are
    /// signed with `webhook.secret` of the state directory, which is made at the first use.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change one of its files; [`ConfigError::File`] when a file
    /// cannot be read; [`ConfigError::Setting`] when there is no address, or two, or it is none. No error repeats it.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// let mut config = Config::default();
    /// assert!(config.webhook(&directories, "http://127.0.0.1:8788/")?.is_none());
    /// config.inbox.webhook = Some(Default::default());
    /// assert!(config.webhook(&directories, "http://127.0.0.1:8788/").is_err(), "it has no address");
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn webhook(
        &self,
        directories: &Directories,
        inbox: &str,
    ) -> Result<Option<Webhook>, ConfigError> {
        let Some(configured) = &self.inbox.webhook else { return Ok(None) };
        let wrong = |problem: String| ConfigError::Setting(format!("`[inbox.webhook]`: {problem}"));
        let url = match (&configured.url, &configured.url_file) {
            (Some(url), None) => url.clone(),
            (None, Some(file)) => key::line(file)?,
            _ => return Err(wrong("it has either `url` or `url_file`".to_owned())),
        };
        private::directory(directories.state())?;
        let secret = key::text(&directories.state().join("webhook.secret"))?;
        let webhook = Webhook::new(&url, secret.as_bytes());
        let webhook = webhook.map_err(|error| wrong(error.to_string()))?;
        let webhook = webhook.form(configured.form).link(inbox);
        let lead = configured.expiring_before_s.map(Duration::from_secs);
        Ok(Some(lead.into_iter().fold(webhook, Webhook::expiring_before)))
    }

    /// Makes another secret of the inbox. Every session that the one before has opened is void from then on, also in
    /// inboxes that run.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can change the state directory; [`ConfigError::File`] when the file
    /// cannot be written.
    pub fn new_inbox_secret(&self, directories: &Directories) -> Result<String, ConfigError> {
        key::replace(&self.inbox_secret_file(directories))
    }

    /// The address of the inbox, without its secret: the one that an inbox has noted when it started, or else
    /// the `public_url` of this configuration. We ignore a note that others could have changed.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let (directories, config) = (Directories::below(home.path()), Config::default());
    /// assert_eq!(config.inbox_url(&directories), None);
    /// config.note_inbox_url(&directories, "http://127.0.0.1:8788/")?;
    /// assert_eq!(config.inbox_url(&directories).as_deref(), Some("http://127.0.0.1:8788/"));
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn inbox_url(&self, directories: &Directories) -> Option<String> {
        let noted = || {
            let path = url_file(directories);
            private::check_unchangeable(&path).ok()?;
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned()).filter(|url| !url.is_empty() && url.len() < LONGEST)
        };
        noted().or_else(|| self.inbox.public_url.clone())
    }

    /// Notes where the inbox is, for programs that send a person there.
    ///
    /// # Errors
    /// As [`new_inbox_secret`](Self::new_inbox_secret).
    pub fn note_inbox_url(&self, directories: &Directories, url: &str) -> Result<(), ConfigError> {
        private::write(&url_file(directories), &format!("{url}\n"))
    }
}

fn url_file(directories: &Directories) -> PathBuf {
    directories.state().join("inbox.url")
}
