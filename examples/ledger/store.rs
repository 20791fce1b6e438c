//! Which store a URL means.

use countersign::SqliteStore;
use countersign::ledger::Ledger;

use crate::{Failed, chain};

/// Opens the store.
pub(crate) async fn open(url: &str) -> Result<Ledger, Failed> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return Err(Failed::Usage(format!("`{url}` names no file: `sqlite:PATH`")));
        }
        let store = SqliteStore::open(path).await;
        return store.map(Ledger::new).map_err(|error| Failed::Store(chain(&error)));
    }
    Err(Failed::Usage(format!("`{}` is no store: `sqlite:PATH`", url.escape_debug())))
}
