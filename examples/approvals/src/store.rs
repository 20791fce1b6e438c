//! The store that a URL means.

use countersign::BoxError;
use countersign::ledger::Ledger;
use countersign_sqlite::SqliteStore;

/// Opens the store.
pub(crate) async fn open(url: &str) -> Result<Ledger, BoxError> {
    if let Some(path) = url.strip_prefix("sqlite:").map(|it| it.strip_prefix("//").unwrap_or(it)) {
        if path.is_empty() || path.contains('\0') {
            return Err(format!("`{}` names no file: `sqlite:PATH`", url.escape_debug()).into());
        }
        return Ok(Ledger::new(SqliteStore::open(path).await?));
    }
    if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return on_a_server(url).await;
    }
    // A URL of another kind may contain a password, too.
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).escape_debug();
    Err(format!("`{scheme}:` is no store: `sqlite:PATH` or `postgres://…`").into())
}

#[cfg(feature = "postgres")]
async fn on_a_server(url: &str) -> Result<Ledger, BoxError> {
    Ok(Ledger::new(countersign_postgres::PostgresStore::connect(url).await?))
}

#[cfg(not(feature = "postgres"))]
async fn on_a_server(_: &str) -> Result<Ledger, BoxError> {
    Err("this build has no PostgreSQL: `cargo run -p approvals --features postgres -- …`".into())
}
