//! The default store of a user.

use std::path::PathBuf;

use super::{ConfigError, Directories, private};
use countersign::ledger::Ledger;
use countersign_stores::StoreUrl;

/// Says whether a store that does not exist may be created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Creating {
    Allowed,
    No,
}

/// Opens the store of a URL.
pub(super) async fn open(url: &StoreUrl, creating: Creating) -> Result<Ledger, ConfigError> {
    Ok(match creating {
        Creating::Allowed => url.open().await?,
        Creating::No => url.open_existing().await?,
    })
}

/// The file of the default store.
pub(super) fn default_file(directories: &Directories) -> PathBuf {
    directories.state().join("asks.db")
}

/// Opens `asks.db` in the state directory, which only this user can change.
pub(super) async fn open_default(
    directories: &Directories,
    creating: Creating,
) -> Result<Ledger, ConfigError> {
    let path = default_file(directories);
    let url = StoreUrl::Sqlite(path.clone());
    if creating == Creating::No && !path.exists() {
        return Err(ConfigError::NoStore { store: url.to_string() });
    }
    private::directory(directories.state())?;
    private::create(&path).map_err(|error| ConfigError::file(&path, error))?;
    private::check_unchangeable(&path)?;
    Ok(url.open().await?)
}
