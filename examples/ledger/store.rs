//! Opening a store by its URL.

use countersign::ledger::Ledger;
use countersign::sqlite::SqliteStore;

use crate::{Failed, chain};

/// Opens the store that a URL names: `sqlite:PATH` or `postgres://…`.
pub(crate) async fn open(url: &str) -> Result<Ledger, Failed> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return Err(Failed::Usage(format!("`{url}` names no file: `sqlite:PATH`")));
        }
        let store = SqliteStore::open(path).await;
        return store.map(Ledger::new).map_err(|error| Failed::Store(chain(&error)));
    }
    if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return on_a_server(url).await;
    }
    let shown = url.escape_debug();
    Err(Failed::Usage(format!("`{shown}` is no store: `sqlite:PATH` or `postgres://…`")))
}

#[cfg(feature = "postgres")]
async fn on_a_server(url: &str) -> Result<Ledger, Failed> {
    let store = countersign::postgres::PostgresStore::connect(url).await;
    store.map(Ledger::new).map_err(|error| Failed::Store(chain(&error)))
}

#[cfg(not(feature = "postgres"))]
async fn on_a_server(_: &str) -> Result<Ledger, Failed> {
    Err(Failed::Usage("this build has no PostgreSQL: add `--features postgres`".to_owned()))
}
