//! Values of every kind, and lists.

use countersign::Args;
use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, Decided, Draft, Filter, Ledger, Linker, Lookup, MemoryStore, Row, RowKind, Store, Writes,
};
use serde_json::json;

use crate::support::postgres::Server;

const ODD: &[&str] = &[
    "'; DROP TABLE countersign_rows; --",
    "\\'\"$1 $$ {} %s \\x00",
    "grüße 😀 \u{202e} \u{feff}",
    "a\0b",
    "\0",
    "\u{1}",
    "\u{1}0\0\u{1}",
    "",
    " ",
    "line\nline\r\t\u{7f}\u{1b}[0m",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_text_is_read_back_unchanged() {
    let ledger = Ledger::new(Server::shared().store().await);
    for (n, odd) in ODD.iter().copied().enumerate() {
        let ask = Ask::new(format!("run{odd}"), format!("root/{odd}"), odd)
            .with_args(Args::new().with(odd, odd))
            .with_principal(odd);
        let record = ledger.park(ask.clone()).await.unwrap();
        assert_eq!(record.ask, ask);
        let denied = Answer::Deny { message: odd.into() };
        let by = format!("by {odd}");
        let decided = ledger.decide(ask.id(), &record.fingerprint, &by, denied.clone()).await;
        assert_eq!(decided.unwrap(), Decided::Won { again: false });
        let found = ledger.get(ask.id()).await.unwrap().unwrap();
        let decision = found.decision.unwrap();
        assert_eq!((&found.ask, decision.answer, decision.by), (&ask, denied, vec![by]));
        assert_eq!(
            ledger.decide(odd, odd, "ann", Answer::Approve { args: None }).await.unwrap(),
            Decided::UnknownAsk
        );
        assert_eq!(ledger.get(odd).await.unwrap(), None);
        assert_eq!(ledger.list(None, 100).await.unwrap().records.len(), n + 1);
    }
    ledger.verify(&Default::default()).await.expect("the log is whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_document_is_a_document() {
    let ledger = Ledger::new(Server::shared().store().await);
    let large: String = (0..4 << 20)
        .map(|n: u32| char::from(b'!' + (n.wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
        .collect();
    let ask = Ask::new("run", "root/c1", "write").with_args(Args::new().with("text", large));
    let record = ledger.park(ask.clone()).await.unwrap();
    let yes = Answer::Approve { args: None };
    assert_eq!(
        ledger.decide(ask.id(), &record.fingerprint, "ann", yes).await.unwrap(),
        Decided::Won { again: false }
    );
    assert_eq!(ledger.get(ask.id()).await.unwrap().unwrap().ask, ask);
}

/// The ledger refuses such an id before (its contract has that); a program that writes rows by the store alone gets an
/// error of the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_too_long_for_an_index_is_refused_and_nothing_is_written() {
    let store = Server::shared().store().await;
    let noise = (0..40_000_u32)
        .map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26));
    let row = Row {
        id: "id".into(),
        kind: RowKind::Ask,
        run: noise.collect(),
        state: "pending".into(),
        created_at: 1,
        due_at: None,
        requester: String::new(),
        doc: "{}".into(),
    };
    let mut work = |_, _| Writes { rows: vec![row.clone()], ..Writes::default() };
    let error = store.transact(&["id".into()], &Linker::default(), &mut work).await.unwrap_err();
    let source = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(source.contains("index row"), "{source}");
    assert_eq!(store.get("id").await.unwrap(), Lookup::Nothing);
}

/// Writes rows that differ in every column that lists use.
async fn fill(store: &dyn Store) {
    let states = ["pending", "decided", "exec\0uted"];
    let rows = (0..60).map(|n: i64| Row {
        id: format!("{:03}", (n * 37) % 60),
        kind: if n % 5 == 0 { RowKind::Run } else { RowKind::Ask },
        run: format!("run-{}", n % 4),
        state: states[usize::try_from(n % 3).unwrap()].into(),
        created_at: n / 7,
        due_at: (n % 2 == 0).then_some(if n % 4 == 0 { i64::MAX } else { n }),
        requester: ["", "ann", "a\0n"][usize::try_from(n % 9 / 3).unwrap()].into(),
        doc: format!("{{\"n\":{n}}}"),
    });
    let rows: Vec<_> = rows.collect();
    let log = rows.iter().map(|row| Draft {
        run: row.run.clone(),
        row: Some(row.id.clone()),
        body: json!(row.id),
    });
    let writes = Writes { log: log.collect(), rows, ..Writes::default() };
    let ids: Vec<_> = writes.rows.iter().map(|row| row.id.clone()).collect();
    let mut work = |_, _| writes.clone();
    store.transact(&ids, &Linker::default(), &mut work).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_those_of_the_store_in_memory() {
    let (here, memory) = (Server::shared().store().await, MemoryStore::new());
    fill(&here).await;
    fill(&memory).await;
    let states: &[&[&str]] = &[&[], &["pending"], &["decided", "exec\0uted", "decided"], &["no"]];
    for kind in [None, Some(RowKind::Ask), Some(RowKind::Run)] {
        for states in states {
            for run in [None, Some("run-1"), Some("no")] {
                for limit in [None, Some(0), Some(7), Some(1_000)] {
                    let states = states.iter().map(|it| (*it).to_owned()).collect();
                    let filter = Filter { kind, states, run: run.map(Into::into), limit };
                    let (ours, theirs) =
                        (here.list(&filter).await.unwrap(), memory.list(&filter).await.unwrap());
                    assert!(ours == theirs, "{filter:?}");
                }
            }
        }
    }
    let due = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(due(here.due(100).await.unwrap()), due(memory.due(100).await.unwrap()));
    assert_eq!(here.due(3).await.unwrap().len(), 3);
    let counts = |mut counts: Vec<(String, u64)>| {
        counts.sort();
        counts
    };
    let (ours, theirs) = (here.requesters().await.unwrap(), memory.requesters().await.unwrap());
    assert_eq!(counts(ours.clone()), counts(theirs));
    assert_eq!(ours.len(), 3, "{ours:?}");
    assert_eq!(here.logs("", 10).await.unwrap(), memory.logs("", 10).await.unwrap());
    assert_eq!(here.logs("run-1", 1).await.unwrap(), ["run-2"]);
    for run in ["run-0", "run-3", "no"] {
        assert_eq!(here.log(run, 2, 5).await.unwrap(), memory.log(run, 2, 5).await.unwrap());
    }
}
