//! Stores by their URLs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::{ConfigError, Directories, private};
use crate::ledger::{Ledger, MemoryStore};
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;

/// The URL of a store: `memory:`, `sqlite:PATH`, `sqlite:///absolute/path`, a path that has a `/` or ends in `.db`, or
/// `postgres://…`. `Display` leaves out passwords.
///
/// ```
/// use countersign::config::StoreUrl;
///
/// let file: StoreUrl = "sqlite:///srv/asks.db".parse()?;
/// assert_eq!(file, "/srv/asks.db".parse()?);
/// let server: StoreUrl = "postgres://ann:secret@db/asks".parse()?;
/// assert_eq!(server.to_string(), "postgres://db/asks");
/// assert!("mysql://db/asks".parse::<StoreUrl>().is_err());
/// # Ok::<(), countersign::config::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum StoreUrl {
    /// A store in the memory of this process, which ends with it.
    Memory,
    /// An SQLite file at this path.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database, by its URL.
    Postgres(String),
}

impl FromStr for StoreUrl {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = |problem: &str| {
            let shown = shown(text);
            Err(ConfigError::Setting(format!("`{}` {problem}", shown.escape_debug())))
        };
        if text.is_empty() || text.contains('\0') {
            return refused("is no store: give `memory:`, `sqlite:PATH` or `postgres://…`");
        }
        if text == "memory" || text == "memory:" {
            return Ok(Self::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.is_empty() {
                true => refused("names no file: `sqlite:PATH`"),
                false => Ok(Self::Sqlite(path.into())),
            };
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let is_path = text.contains(std::path::MAIN_SEPARATOR) || text.ends_with(".db");
        if is_path && !text.contains("://") {
            return Ok(Self::Sqlite(text.into()));
        }
        refused("is no store: give `memory:`, `sqlite:PATH`, a path or `postgres://…`")
    }
}

impl TryFrom<String> for StoreUrl {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

/// A URL without its user, its password and its parameters, which may be a password, too.
fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    format!("{scheme}://{rest}")
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&shown(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl StoreUrl {
    /// Opens the store as a ledger. A file that does not exist is created, so that only this user can read or write it;
    /// an existing one may be shared with a group, as it was named on purpose.
    ///
    /// # Errors
    /// [`ConfigError::Store`] when the store cannot be reached or opened.
    ///
    /// ```
    /// use countersign::config::StoreUrl;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let url: StoreUrl = dir.path().join("asks.db").to_string_lossy().parse()?;
    /// let ledger = url.open().await?;
    /// assert!(ledger.list(None, 1).await.unwrap().records.is_empty());
    /// # Ok::<(), countersign::config::ConfigError>(()) }).unwrap();
    /// ```
    pub async fn open(&self) -> Result<Ledger, ConfigError> {
        Ok(match self {
            Self::Memory => Ledger::new(MemoryStore::new()),
            Self::Sqlite(path) => Ledger::new(open_file(path).await?),
            Self::Postgres(url) => Ledger::new(PostgresStore::connect(url).await?),
        })
    }
}

async fn open_file(path: &Path) -> Result<SqliteStore, ConfigError> {
    // SQLite gives the files beside it the permissions of this one. A problem here is one of the path, which the store
    // reports with its own words.
    let text = path.to_string_lossy();
    // `:memory:` and `file:` URIs are SQLite's own names, and no paths.
    let is_name = text.starts_with(':') || text.starts_with("file:");
    if !is_name {
        let _ = private::create(path);
    }
    Ok(SqliteStore::open(path).await?)
}

/// The file of the default store.
pub(super) fn default_file(directories: &Directories) -> PathBuf {
    directories.state().join("asks.db")
}

/// Opens `asks.db` in the state directory, which only this user can change.
pub(super) async fn open_default(directories: &Directories) -> Result<Ledger, ConfigError> {
    private::directory(directories.state())?;
    let path = default_file(directories);
    private::create(&path).map_err(|error| ConfigError::file(&path, error))?;
    private::check_unchangeable(&path)?;
    Ok(Ledger::new(open_file(&path).await?))
}
