//! The ledger in PostgreSQL, as `pg_dump` writes it.

use std::path::Path;
use std::process::Command;

use countersign_postgres::PostgresStore;

use super::read;
use super::stores::{check_continues, load};
use crate::support::postgres::Server;

/// The schema, as the file calls it.
const SCHEMA: &str = "of_the_corpus.";

/// The schema of a URL of the tests' server.
fn schema(url: &str) -> String {
    format!("{}.", url.rsplit("%3D").next().unwrap())
}

pub(super) async fn write_all(to: &Path) {
    let server = Server::shared();
    let url = server.url().await;
    load(&PostgresStore::connect(&url).await.unwrap(), to).await;
    let of = schema(&url);
    // It is where the server's other programs are, which need not be on the path.
    let find =
        "PATH=\"$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)\"";
    let dump =
        format!("{find} exec pg_dump -h \"$0\" -U postgres -n \"$1\" -O -x --inserts postgres");
    let out = Command::new("sh")
        .args(["-c", &dump, server.folder(), of.trim_end_matches('.')])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    // Settings of the program and its server, and not of the tables.
    let about = ["--", "SET ", "SELECT pg_catalog.", "\\", "CREATE SCHEMA "];
    let kept = text.lines().filter(|line| !line.is_empty());
    let kept = kept.filter(|line| !about.iter().any(|it| line.starts_with(it)));
    let sql: String = kept.map(|line| line.replace(&of, SCHEMA) + "\n").collect();
    std::fs::write(to.join("ledger.sql"), sql).unwrap();
}

/// A URL of the tables that a version has made.
pub(super) async fn tables(version: &Path) -> String {
    let server = Server::shared();
    let url = server.url().await;
    let sql = read(version, "ledger.sql").replace(SCHEMA, &schema(&url));
    server.sql(&url, &sql).await;
    url
}

pub(super) async fn check_postgres(version: &Path) {
    let url = tables(version).await;
    check_continues(PostgresStore::connect(&url).await.unwrap(), version).await;
}
