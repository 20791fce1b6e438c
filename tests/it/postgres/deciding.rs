//! Concurrent operations: one wins, and the others get its result (rule L1, on real connections).

use std::collections::BTreeMap;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, Claimed, Decided, Draft, Ledger, Linker, Lookup, Row, RowKind, Store as _, Writes,
};
use countersign_postgres::PostgresStore;
use futures::future::join_all;
use serde_json::json;

use crate::support::postgres::Server;

const LEASE: Duration = Duration::from_secs(60);

fn yes() -> Answer {
    Answer::Approve { args: None }
}

/// Ledgers in as many processes, as far as the server can tell.
async fn ledgers(url: &str, count: usize) -> Vec<Ledger> {
    let stores = join_all((0..count).map(|_| PostgresStore::connect(url))).await;
    stores.into_iter().map(|store| Ledger::new(store.unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_sixteen_concurrent_parks_decisions_and_claims_wins() {
    let ledgers = ledgers(&Server::shared().url().await, 16).await;
    for round in 0..20 {
        // All asks are of one run, so that they share a log.
        let ask = Ask::new("run", format!("root/c{round}"), "delete_file");
        let parked = join_all(ledgers.iter().map(|ledger| ledger.park(ask.clone()))).await;
        let parked: Vec<_> = parked.into_iter().map(Result::unwrap).collect();
        assert!(parked.iter().all(|record| *record == parked[0]), "parked once");
        let (id, fingerprint) = (ask.id(), &*parked[0].fingerprint);

        let decided = join_all(ledgers.iter().enumerate().map(async |(n, ledger)| {
            let answer = if n % 2 == 0 { yes() } else { Answer::Deny { message: "no".into() } };
            ledger.decide(id, fingerprint, &format!("person-{n}"), answer).await.unwrap()
        }))
        .await;
        let won: Vec<_> =
            (0..16).filter(|n| decided[*n] == Decided::Won { again: false }).collect();
        let [winner] = won[..] else { panic!("one wins: {decided:?}") };
        for (n, decided) in decided.iter().enumerate().filter(|(n, _)| *n != winner) {
            let Decided::Lost(told) = decided else { panic!("{n}: {decided:?}") };
            assert_eq!(told.by, [format!("person-{winner}")]);
        }

        let claimed = join_all(ledgers.iter().enumerate().map(async |(n, ledger)| {
            ledger.claim(id, &format!("worker-{n}"), LEASE).await.unwrap()
        }))
        .await;
        let claims = claimed.iter().filter(|it| matches!(it, Claimed::Claimed { .. })).count();
        assert_eq!(claims, usize::from(winner % 2 == 0), "{claimed:?}");
        if let Some(Claimed::Claimed { token }) =
            claimed.iter().find(|it| matches!(it, Claimed::Claimed { .. }))
        {
            ledgers[0].settle(id, *token, json!(round)).await.unwrap();
        }
    }
    let verified = ledgers[0].verify(&BTreeMap::new()).await.expect("the log is whole");
    assert!(verified.entries >= 40);
}

/// A row that says who made it.
fn row(id: &str, by: usize) -> Row {
    Row {
        id: id.to_owned(),
        kind: RowKind::Run,
        run: "run".into(),
        state: "made".into(),
        created_at: 1,
        due_at: None,
        requester: String::new(),
        doc: by.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_creations_of_a_row_are_serialized() {
    let url = Server::shared().url().await;
    let stores = join_all((0..8).map(|_| PostgresStore::connect(&url))).await;
    let stores: Vec<_> = stores.into_iter().map(Result::unwrap).collect();
    let linker = Linker::default();
    for round in 0..20 {
        // Each reads a row that is never created, beside the one that it creates; some in the other order.
        let mut ids = [format!("none-{round}"), format!("some-{round}")];
        let made = join_all(stores.iter().enumerate().map(|(n, store)| {
            if n % 2 == 0 {
                ids.reverse();
            }
            let (ids, linker) = (ids.clone(), &linker);
            async move {
                let mut made = false;
                let mut work = |_, rows: Vec<Lookup>| {
                    made = rows.iter().all(|row| *row == Lookup::Nothing);
                    let id = ids.iter().find(|id| id.starts_with("some")).unwrap();
                    let rows = made.then(|| row(id, n)).into_iter().collect();
                    let log = made.then(|| Draft {
                        run: "run".into(),
                        row: Some("row".into()),
                        body: json!(n),
                    });
                    Writes { rows, log: log.into_iter().collect(), ..Writes::default() }
                };
                store.transact(&ids, linker, &mut work).await.unwrap();
                made
            }
        }))
        .await;
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "round {round}: {made:?}");
    }
    let log = stores[0].log("run", 0, 100).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_over_many_rows_at_once_loses_nothing() {
    let url = Server::shared().url().await;
    let stores = join_all((0..8).map(|_| PostgresStore::connect(&url))).await;
    let stores: Vec<_> = stores.into_iter().map(Result::unwrap).collect();
    let linker = Linker::default();
    let ids: Vec<_> = (0..4).map(|n| format!("row-{n}")).collect();
    join_all(stores.iter().enumerate().map(|(n, store)| {
        // Some name them in another order, which must not lock them up.
        let mut ids = ids.clone();
        ids.rotate_left(n % 4);
        let linker = &linker;
        async move {
            for _ in 0..10 {
                let mut work = |_, rows: Vec<Lookup>| {
                    let count = |it: Lookup| it.found().map_or(0, |it| it.row.doc.parse().unwrap());
                    let counts = rows.into_iter().map(count).collect::<Vec<usize>>();
                    let rows = ids.iter().zip(counts).map(|(id, count)| row(id, count + 1));
                    let runs = ["one", "two"].map(|run| Draft {
                        run: run.into(),
                        row: None,
                        body: json!(n),
                    });
                    Writes { rows: rows.collect(), log: runs.into(), ..Writes::default() }
                };
                store.transact(&ids, linker, &mut work).await.unwrap();
            }
        }
    }))
    .await;
    for id in &ids {
        assert_eq!(stores[0].get(id).await.unwrap().found().unwrap().row.doc, "80");
    }
    for run in ["one", "two"] {
        let log = stores[0].log(run, 0, 1000).await.unwrap();
        assert!(log.iter().map(|entry| entry.seq).eq(1..=80));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_with_and_without_a_log_loses_nothing() {
    let url = Server::shared().url().await;
    let stores = join_all((0..8).map(|_| PostgresStore::connect(&url))).await;
    let stores: Vec<_> = stores.into_iter().map(Result::unwrap).collect();
    let (linker, ids) = (Linker::default(), ["row".to_owned()]);
    let log = |n: usize| vec![Draft { run: "run".into(), row: Some("row".into()), body: json!(n) }];
    let mut first = |_, _| Writes { rows: vec![row("row", 0)], log: log(0), ..Writes::default() };
    stores[0].transact(&ids, &linker, &mut first).await.unwrap();
    // Two tasks on each store, so that some go to the server together.
    join_all((0..16).map(|n| {
        let (store, ids, linker) = (&stores[n / 2], &ids, &linker);
        async move {
            for round in 0..20 {
                let mut work = |_, rows: Vec<Lookup>| {
                    let count: usize = rows[0].clone().found().unwrap().row.doc.parse().unwrap();
                    // A renewal changes a row and is not worth an entry.
                    let log = if (n + round) % 2 == 0 { log(n) } else { Vec::new() };
                    Writes { rows: vec![row("row", count + 1)], log, ..Writes::default() }
                };
                store.transact(ids, linker, &mut work).await.unwrap();
            }
        }
    }))
    .await;
    assert_eq!(stores[0].get("row").await.unwrap().found().unwrap().row.doc, "320");
    let log = stores[0].log("run", 0, 1000).await.unwrap();
    assert!(log.iter().map(|entry| entry.seq).eq(1..=161));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_concurrent_request_on_one_store_gets_its_own_result() {
    // They go to the server together; asks of the same run and stale clicks are among them.
    let ledger = Ledger::new(Server::shared().store().await);
    let asks = join_all((0..60).map(async |n| {
        ledger.park(Ask::new(format!("run-{}", n / 2), format!("root/c{n}"), "pay")).await.unwrap()
    }))
    .await;
    let decided = join_all(asks.iter().enumerate().map(async |(n, record)| {
        let (id, name) = (record.ask.id(), format!("person-{n}"));
        let fingerprint = if n % 10 == 3 { "stale" } else { &*record.fingerprint };
        (n, ledger.decide(id, fingerprint, &name, yes()).await.unwrap())
    }))
    .await;
    for (n, decided) in decided {
        let found = ledger.get(asks[n].ask.id()).await.unwrap().unwrap();
        if n % 10 == 3 {
            assert_eq!(decided, Decided::Mismatch { fingerprint: asks[n].fingerprint.clone() });
            assert_eq!(found.decision, None);
        } else {
            assert_eq!(decided, Decided::Won { again: false });
            assert_eq!(found.decision.unwrap().by, [format!("person-{n}")]);
        }
    }
    let verified = ledger.verify(&BTreeMap::new()).await.expect("the log is whole");
    assert_eq!(verified.entries, 60 + 54);
}
