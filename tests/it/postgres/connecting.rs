//! URLs, tables, versions.

use std::error::Error;

use countersign::ledger::{Ask, Ledger};
use countersign_postgres::PostgresStore;
use futures::future::join_all;

use crate::support::postgres::Server;

/// The text of an error, with its causes.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_concurrent_connections_create_the_tables_once() {
    let url = Server::shared().url().await;
    let stores = join_all((0..8).map(|_| PostgresStore::connect(&url))).await;
    for store in stores {
        let ledger = Ledger::new(store.expect("all are served"));
        ledger.park(Ask::new("run", "root/c1", "delete_file")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_newer_version_are_left_alone() {
    let server = Server::shared();
    let url = server.url().await;
    drop(PostgresStore::connect(&url).await.unwrap());
    server.sql(&url, "UPDATE countersign_version SET version = 99").await;
    let error = PostgresStore::connect(&url).await.unwrap_err();
    assert!(text(&error).contains("version 99, made by a newer countersign"), "{}", text(&error));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_create_tables_uses_the_existing_ones() {
    let server = Server::shared();
    let url = server.url().await;
    drop(PostgresStore::connect(&url).await.unwrap());
    let schema = url.rsplit("%3D").next().unwrap();
    let sql = format!(
        "CREATE ROLE clerk_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO clerk_{schema};
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO clerk_{schema}"
    );
    server.sql(&url, &sql).await;
    let url = url.replace("postgres@", &format!("clerk_{schema}@"));
    let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
    ledger.park(Ask::new("run", "root/c1", "delete_file")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_bad_url_says_why_and_hides_the_password() {
    let server = Server::shared();
    server.sql("", "DROP ROLE IF EXISTS locked; CREATE ROLE locked LOGIN PASSWORD 'right'").await;
    let socket = server.folder().replace('/', "%2F");
    for (url, says) in [
        ("hunter2".to_owned(), "not of the form postgres://"),
        ("mysql://ann:hunter2@localhost/db".to_owned(), "not of the form postgres://"),
        ("postgres://ann:hun/hunter2@localhost/db".to_owned(), ""),
        ("postgres://ann:x@hunter2@localhost/db".to_owned(), ""),
        ("postgres://ann:hunter2@localhost:99999/db".to_owned(), "not of the form postgres://"),
        ("postgres://ann:hunter2@localhost:1/db".to_owned(), "`db` at localhost:1"),
        ("postgres://ann:hunter2@nowhere.invalid/db".to_owned(), "`db` at nowhere.invalid:5432"),
        ("postgres://ann:hunter2@%2Fnowhere/db".to_owned(), "/nowhere"),
        (format!("postgres://locked:hunter2@{socket}/postgres"), "password authentication failed"),
        (
            format!("postgres://postgres:hunter2@{socket}/no_such_db"),
            "\"no_such_db\" does not exist",
        ),
        (format!("postgres://nobody:hunter2@{socket}/postgres"), "role \"nobody\" does not exist"),
        (format!("postgres://postgres:hunter2@{socket}/postgres?sslmode=require"), "TLS"),
        (
            format!(
                "postgres://postgres:hunter2@{socket}/postgres?options=-csearch_path%3Dno_schema"
            ),
            "no schema has been selected",
        ),
    ] {
        let builder = PostgresStore::builder(&url);
        assert!(!format!("{builder:?}").contains("hunter2"));
        let error = builder.connect().await.unwrap_err();
        let said = text(&error);
        assert!(said.contains(says), "{url}: {said}");
        assert!(!said.contains("hun/") && !format!("{error:?}").contains("hun/"), "{said}");
        // A password with an `@` that is not escaped is the name of a host.
        if !url.contains("x@hunter2") {
            assert!(
                !said.contains("hunter2") && !format!("{error:?}").contains("hunter2"),
                "{said}"
            );
        }
    }
    let store = PostgresStore::connect(&format!(
        "postgres://locked:right@{socket}/postgres?options=-csearch_path%3Dpg_temp"
    ))
    .await;
    if let Err(error) = &store {
        assert!(!text(error).contains("password"), "{}", text(error));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_shares_connections_is_refused_by_name() {
    let server = Server::start();
    for (mode, url) in server.pooled() {
        let connected = PostgresStore::connect(&url).await;
        if mode == "session" {
            let ledger = Ledger::new(connected.unwrap());
            ledger.park(Ask::new("run", "root/c1", "delete_file")).await.unwrap();
            continue;
        }
        let error = text(&connected.expect_err("it is refused"));
        assert!(error.contains("`pool_mode = session`"), "{mode}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_is_only_read() {
    let url = Server::shared().url().await;
    let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
    let ask = ledger.park(Ask::new("run", "root/c1", "delete_file")).await.unwrap();
    let read_only = format!("{url}%20-cdefault_transaction_read_only%3Don");
    let reader = Ledger::new(PostgresStore::connect(&read_only).await.unwrap());
    assert_eq!(reader.get(ask.ask.id()).await.unwrap(), Some(ask.clone()));
    for error in [
        reader.cancel(ask.ask.id(), "ann").await.map(drop).unwrap_err(),
        reader.park(Ask::new("another", "root/c1", "delete_file")).await.map(drop).unwrap_err(),
    ] {
        assert!(text(&error).contains("read-only transaction"), "{}", text(&error));
    }
    assert_eq!(ledger.get(ask.ask.id()).await.unwrap(), Some(ask), "nothing has changed");
}
