//! The URL of a store, and the ledger that it opens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use countersign::ledger::{Ledger, MemoryStore};
use serde::Deserialize;

use super::error::StoreUrlError;

/// The URL of a store: `memory:`, `sqlite:PATH`, `sqlite:///absolute/path`, a path that has a `/` or ends in `.db`, or
/// `postgres://…`. `Display` leaves out passwords.
///
/// ```
/// use countersign_stores::StoreUrl;
///
/// let file: StoreUrl = "sqlite:///srv/asks.db".parse()?;
/// assert_eq!(file, "/srv/asks.db".parse()?);
/// let server: StoreUrl = "postgres://ann:secret@db/asks".parse()?;
/// assert_eq!(server.to_string(), "postgres://db/asks");
/// assert!("mysql://db/asks".parse::<StoreUrl>().is_err());
/// # Ok::<(), countersign_stores::StoreUrlError>(())
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
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let refused = |problem: &str| {
            let shown = shown(text);
            Err(StoreUrlError::NoUrl(format!("`{}` {problem}", shown.escape_debug())))
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
    type Error = StoreUrlError;

    fn try_from(text: String) -> Result<Self, StoreUrlError> {
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
    /// Tells whether other accounts may write to the store, so that a name that is only given says nothing about who decides.
    ///
    /// ```
    /// use countersign_stores::StoreUrl;
    ///
    /// assert!(!StoreUrl::Memory.is_shared());
    /// assert!("postgres://db/asks".parse::<StoreUrl>()?.is_shared());
    /// # Ok::<(), countersign_stores::StoreUrlError>(())
    /// ```
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Memory | Self::Sqlite(_) => false,
            Self::Postgres(_) => true,
        }
    }

    /// Opens the store as a ledger. If the file does not exist, it is created, and only this user can read or write it.
    /// An existing one may be shared with a group, as you have named it on purpose.
    ///
    /// # Errors
    /// [`StoreUrlError::Store`] when the store cannot be reached or opened; [`StoreUrlError::NotBuilt`] when the feature of
    /// its kind is off.
    ///
    /// ```
    /// use countersign_stores::StoreUrl;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let url: StoreUrl = dir.path().join("asks.db").to_string_lossy().parse()?;
    /// let ledger = url.open().await?;
    /// assert!(ledger.list(None, 1).await.unwrap().records.is_empty());
    /// # Ok::<(), countersign_stores::StoreUrlError>(()) }).unwrap();
    /// ```
    pub async fn open(&self) -> Result<Ledger, StoreUrlError> {
        match self {
            Self::Memory => Ok(Ledger::new(MemoryStore::new())),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                // SQLite gives the files beside it the permissions of this one. A problem here is one of the path, which
                // the store reports with its own words.
                if !super::file::is_name(path) {
                    let _ = super::create_private(path);
                }
                Ok(Ledger::new(countersign_sqlite::SqliteStore::open(path).await?))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                Ok(Ledger::new(countersign_postgres::PostgresStore::connect(url).await?))
            }
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            other => Err(other.not_built()),
        }
    }

    /// Opens a store as [`open`](Self::open) does, and creates none: neither a file nor tables.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`StoreUrlError::NoStore`].
    ///
    /// ```
    /// use countersign_stores::{StoreUrl, StoreUrlError};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let missing = StoreUrl::Sqlite("/there/is/none.db".into()).open_existing().await;
    /// assert!(matches!(missing, Err(StoreUrlError::NoStore { .. })));
    /// # });
    /// ```
    pub async fn open_existing(&self) -> Result<Ledger, StoreUrlError> {
        match self {
            Self::Memory => self.open().await,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                if !super::file::is_name(path) && !path.exists() {
                    return Err(StoreUrlError::NoStore { store: self.to_string() });
                }
                Ok(Ledger::new(countersign_sqlite::SqliteStore::open_existing(path).await?))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                let store = countersign_postgres::PostgresStore::builder(url).existing();
                Ok(Ledger::new(store.connect().await?))
            }
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            other => Err(other.not_built()),
        }
    }

    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    fn not_built(&self) -> StoreUrlError {
        let feature = match self {
            Self::Postgres(_) => "postgres",
            Self::Sqlite(_) | Self::Memory => "sqlite",
        };
        StoreUrlError::NotBuilt { store: self.to_string(), feature }
    }
}
