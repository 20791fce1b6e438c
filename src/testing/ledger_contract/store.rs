//! The documented behaviour of [`Store`], without a ledger above it.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{MANY, SharedStore, ok};
use crate::ledger::{Draft, Dropped, Filter, Found, Linker, Lookup, Row, RowKind, Writes};

pub(super) async fn check(place: &SharedStore) {
    kept_as_it_is(place).await;
    one_after_the_other(place).await;
    lists(place).await;
    logs(place).await;
    dropping(place).await;
    removed(place).await;
    earlier(place).await;
    requesters(place).await;
}

fn row(id: &str, state: &str, created_at: i64) -> Row {
    let (id, run, state) = (id.to_owned(), "a run".to_owned(), state.to_owned());
    let (doc, requester) = ("{}".to_owned(), String::new());
    Row { id, kind: RowKind::Ask, run, state, created_at, due_at: None, doc, requester }
}

fn draft(run: &str, row: Option<&str>, body: Value) -> Draft {
    Draft { run: run.to_owned(), row: row.map(str::to_owned), body }
}

async fn write(place: &SharedStore, n: usize, writes: Writes) {
    let ids: Vec<_> = writes.rows.iter().map(|row| row.id.clone()).collect();
    let mut work = |_, _| writes.clone();
    ok(place.store(n).transact(&ids, &Linker::default(), &mut work).await);
}

async fn kept_as_it_is(place: &SharedStore) {
    let texts = [
        "",
        "'; DROP TABLE countersign_rows; --",
        "\" OR 1=1",
        "$1 ?1 %s",
        "é\u{202e}🦀\n\t\\",
        &"x".repeat(100_000),
    ];
    for (n, text) in texts.iter().enumerate() {
        let mut row = row(&format!("text {n} {}", &text.get(..20).unwrap_or(text)), text, -1);
        (row.run, row.due_at) =
            (format!("run {}", &text.get(..20).unwrap_or(text)), Some(i64::MAX));
        row.doc = json!({"text": text, "nul": "\0"}).to_string();
        row.requester = text.get(..20).unwrap_or(text).to_owned();
        let body = json!({"text": text, "number": u64::MAX});
        let about = Some(row.id.clone());
        let log = vec![Draft { run: row.run.clone(), row: about, body }];
        let writes = Writes { rows: vec![row.clone()], log: log.clone(), ..Writes::default() };
        write(place, 0, writes).await;
        let stored = ok(place.store(1).get(&row.id).await);
        let expected: Vec<_> =
            log.iter().map(|draft| ok(Linker::default().link(None, draft))).collect();
        let entry = expected.first().cloned();
        let as_written = Found { row: row.clone(), entry };
        assert_eq!(
            stored,
            Lookup::Found(as_written),
            "a row is read back unchanged, with its entry"
        );
        let entries = ok(place.store(1).log(&row.run, 0, 10).await);
        assert_eq!(entries, expected, "an entry is read back unchanged");
        let due = ok(place.store(1).due(10).await);
        assert!(due.is_empty(), "an ask whose deadline is the largest time is never due: {due:?}");
        row.due_at = None;
        write(place, 1, Writes { rows: vec![row.clone()], ..Writes::default() }).await;
        let stored = ok(place.store(0).get(&row.id).await).found().map(|found| found.row);
        assert_eq!(stored, Some(row), "a row replaces the one with its id");
    }
    let none = ok(place.store(0).get("not there").await);
    assert_eq!(none, Lookup::Nothing, "an unknown id has no row");
}

/// The body of an entry about the counter row.
fn body_of(n: u32) -> String {
    format!(r#"{{"about":"counter","n":{n}}}"#)
}

/// Many tasks increment one counter row, and each increment writes an entry about the row.
async fn one_after_the_other(place: &SharedStore) {
    const TIMES: usize = 8;
    let mut tasks = JoinSet::new();
    for n in 0..MANY {
        let store = place.store(n);
        tasks.spawn(async move {
            for _ in 0..TIMES {
                let ids = ["counter".to_owned(), "not there".to_owned()];
                let mut work = |_, rows: Vec<Lookup>| {
                    assert_eq!(rows.len(), 2, "there is one result for each id");
                    let last = rows.last();
                    assert_eq!(last, Some(&Lookup::Nothing), "an id without a row gives `Nothing`");
                    let found = rows.into_iter().next().and_then(Lookup::found);
                    let entry = found.as_ref().and_then(|found| found.entry.clone());
                    let count: u32 =
                        found.map_or(0, |found| found.row.doc.parse().unwrap_or_default());
                    let last = count.checked_sub(1).map(body_of);
                    let entry = entry.map(|entry| entry.body);
                    assert_eq!(entry, last, "a row is read with the last entry about it");
                    let doc = (count + 1).to_string();
                    let log = vec![draft("count", Some("counter"), json!({"n": count}))];
                    let rows = vec![Row { doc, ..row("counter", "s", 0) }];
                    Writes { rows, log, ..Writes::default() }
                };
                ok(store.transact(&ids, &Linker::default(), &mut work).await);
            }
        });
    }
    tasks.join_all().await;
    let counted = ok(place.store(0).get("counter").await).found().map(|found| found.row.doc);
    let all = MANY * TIMES;
    assert_eq!(counted, Some(all.to_string()), "two transactions over one row never interleave");
    let entries = ok(place.store(1).log("count", 0, u32::MAX).await);
    let bodies: Vec<_> = entries.iter().map(|entry| entry.body.clone()).collect();
    let all = u32::try_from(all).unwrap_or_default();
    let expected: Vec<_> = (0..all).map(body_of).collect();
    assert_eq!(bodies, expected, "the log is written with the rows, without a gap");
}

async fn lists(place: &SharedStore) {
    let mut rows = vec![row("b", "x", 1), row("a", "x", 2), row("c", "y", 2), row("d", "z", 3)];
    rows.push(Row { kind: RowKind::Run, run: "another".to_owned(), ..row("e", "x", 9) });
    for row in &mut rows {
        row.run.push_str(" listed");
    }
    write(place, 0, Writes { rows, ..Writes::default() }).await;
    let run = Some("a run listed".to_owned());
    let ids = async |filter: Filter| -> Vec<String> {
        ok(place.store(1).list(&filter).await).into_iter().map(|found| found.row.id).collect()
    };
    let asks = Filter { kind: Some(RowKind::Ask), run: run.clone(), ..Filter::default() };
    assert_eq!(ids(asks.clone()).await, ["d", "c", "a", "b"], "newest first, then by id");
    let states = vec!["x".to_owned(), "y".to_owned()];
    let some = Filter { states: states.clone(), ..asks.clone() };
    assert_eq!(ids(some.clone()).await, ["c", "a", "b"], "filtered by states");
    assert_eq!(ids(Filter { limit: Some(2), ..some }).await, ["c", "a"], "up to the limit");
    let all = Filter { states, limit: Some(1), ..Filter::default() };
    assert_eq!(ids(all).await, ["e"], "without a kind or run");
    let runs = Filter { kind: Some(RowKind::Run), run, ..Filter::default() };
    assert_eq!(ids(runs).await, [""; 0], "filtered by kind and run");

    let due = |id: &str, at| Row { due_at: Some(at), ..row(id, "x", 0) };
    let rows = vec![due("due a", 3), due("due b", 1), due("due c", 2), due("not due", i64::MAX)];
    write(place, 0, Writes { rows, ..Writes::default() }).await;
    let ids = ok(place.store(1).due(2).await);
    assert_eq!(ids, ["due b", "due c"], "the earliest deadline first, up to the limit");
}

async fn logs(place: &SharedStore) {
    let draft = |run: &str| draft(run, None, json!({"run": run}));
    let runs = ["~ B", "~ a", "~ a", "~ \u{e4}", "~ Z", "~ a"];
    write(place, 0, Writes { log: runs.map(draft).to_vec(), ..Writes::default() }).await;
    let smuggled = Row { run: "~ only rows".to_owned(), ..row("smuggled", "x", 0) };
    write(place, 0, Writes { rows: vec![smuggled], ..Writes::default() }).await;
    let logs = async |after: &str, limit| ok(place.store(1).logs(after, limit).await);
    let all = ["~ B", "~ Z", "~ a", "~ only rows", "~ \u{e4}"];
    assert_eq!(logs("~", 10).await, all, "in the order of bytes, with runs that have only rows");
    assert_eq!(logs("~ Z", 2).await, ["~ a", "~ only rows"], "after this one, up to the limit");
    assert_eq!(logs("~ \u{e4}", 2).await, [""; 0], "there is none after the last");
    let heads = async |after: &str, limit| {
        let heads = ok(place.store(1).heads(after, limit).await);
        heads.into_iter().map(|head| (head.run, head.seq)).collect::<Vec<_>>()
    };
    let head = |run: &str, seq| (run.to_owned(), seq);
    let all = [head("~ B", 1), head("~ Z", 1), head("~ a", 3), head("~ \u{e4}", 1)];
    assert_eq!(heads("~", 10).await, all, "the last entry of each log, in the order of bytes");
    assert_eq!(heads("~ B", 2).await, all[1..3], "after this one, up to the limit");
    assert_eq!(heads("~ a", 1).await, all[3..], "runs without a log are skipped");
    assert_eq!(heads("~ \u{e4}", 2).await, [], "there is none after the last");
    let log = async |after, limit| {
        let entries = ok(place.store(1).log("~ a", after, limit).await);
        entries.into_iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    assert_eq!((log(0, 2).await, log(2, 2).await), (vec![1, 2], vec![3]), "in order, page by page");
    assert_eq!(log(3, 2).await, [0; 0], "there is none after the last");
}

async fn requesters(place: &SharedStore) {
    let named = |id: &str, requester: &str, due_at| Row {
        requester: requester.to_owned(),
        due_at,
        ..row(&format!("~ requested {id}"), "pending", 0)
    };
    let rows = vec![
        named("1", "~ ann", None),
        named("2", "~ ann", Some(i64::MAX)),
        named("over", "~ ann", Some(1)),
        named("3", "~ bob", None),
        named("only over", "~ cid", Some(1)),
        Row { state: "decided".to_owned(), ..named("decided", "~ ann", None) },
        Row { kind: RowKind::Run, ..named("a run", "~ ann", None) },
    ];
    write(place, 0, Writes { rows, ..Writes::default() }).await;
    let mut counts = ok(place.store(1).requesters().await);
    counts.retain(|(who, _)| who.starts_with('~'));
    counts.sort_unstable();
    let expected = [("~ ann".to_owned(), 2), ("~ bob".to_owned(), 1)];
    assert_eq!(counts, expected, "pending asks that have not expired are counted by requester");
}

/// An entry about a row that does not exist.
async fn removed(place: &SharedStore) {
    let log = vec![draft("~ removed", Some("~ removed row"), json!({"n": 1}))];
    write(place, 0, Writes { log, ..Writes::default() }).await;
    let id = "~ removed row".to_owned();
    let removed = Lookup::Removed { id: id.clone() };
    let says = "an entry without its row means that the row was removed";
    assert_eq!(ok(place.store(1).get(&id).await), removed, "{says}");
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (linker, ids) = (Linker::default(), [id, "not there".to_owned()]);
    let mut read = |_, rows| {
        one = rows;
        Writes::default()
    };
    ok(place.store(0).transact(ids.get(..1).unwrap_or_default(), &linker, &mut read).await);
    let mut read = |_, rows| {
        two = rows;
        Writes::default()
    };
    ok(place.store(1).transact(&ids, &linker, &mut read).await);
    assert_eq!(one, std::slice::from_ref(&removed), "{says}, in a transaction");
    assert_eq!(two, [removed, Lookup::Nothing], "{says}, beside another one");
}

/// Entries of 0.1, which do not say what they are about, and texts that only look like them.
async fn earlier(place: &SharedStore) {
    let said = |body| draft("~ earlier \"run\"", None, body);
    let log = vec![
        said(json!({"ask": "~ask", "at": 1, "by": ",\"event\":\"grant_made\"", "event": "parked"})),
        said(
            json!({"answered": null, "at": 1, "by": "\"", "event": "grant_made", "grant": "~1", "row": "x"}),
        ),
        said(json!({"at": 1, "call": "x", "counter": "~2", "event": "call_counted", "row": "x"})),
        said(json!({"at": 1, "event": "run_saved", "row": "x", "worker": "w"})),
        said(
            json!({"at": 1, "by": "{\"ask\":\"~none\"}", "event": "checkpoint", "heads": {"ask": 1}}),
        ),
    ];
    write(place, 0, Writes { log, ..Writes::default() }).await;
    for id in ["~ask", "grant:~1", "counter:~2", "run:~ earlier \"run\""] {
        let found = ok(place.store(1).get(id).await);
        let removed = Lookup::Removed { id: id.to_owned() };
        assert_eq!(found, removed, "an entry of an earlier version is found by what it says: {id}");
    }
    assert_eq!(
        ok(place.store(1).get("~none").await),
        Lookup::Nothing,
        "a text in a text says nothing"
    );
}

async fn dropping(place: &SharedStore) {
    let named = |id: &str| Row { run: "~ dropped".to_owned(), ..row(id, "x", 0) };
    let entry = |row: &str, n| draft("~ dropped", Some(row), json!({"n": n}));
    let rows = ["gone", "stays"].map(named).to_vec();
    let log = vec![entry("gone", 1), entry("stays", 2)];
    write(place, 0, Writes { rows, log, ..Writes::default() }).await;
    let entries = async || ok(place.store(1).log("~ dropped", 0, 10).await);
    let before = entries().await;
    let end = |n: usize| before.get(n).map(|it| (it.seq, it.hash.clone())).unwrap_or_default();
    let dropping = |end| Writes {
        rows: vec![named("tomb")],
        log: vec![entry("tomb", 3)],
        drop: Some(Dropped { run: "~ dropped".to_owned(), end, rows: vec!["gone".to_owned()] }),
        ..Writes::default()
    };
    write(place, 0, dropping(end(0))).await;
    assert_eq!(
        entries().await,
        before,
        "a log with a newer entry is not dropped, and nothing is written"
    );
    write(place, 1, dropping(end(1))).await;
    let after = entries().await;
    let seqs: Vec<_> = after.iter().map(|entry| (entry.seq, entry.prev.clone())).collect();
    assert_eq!(seqs, [(3, end(1).1)], "the log continues after the dropped part");
    for (id, is_there) in [("gone", false), ("stays", true), ("tomb", true)] {
        let lookup = ok(place.store(0).get(id).await);
        let is_dropped = lookup == Lookup::Nothing;
        assert_eq!(!is_dropped, is_there, "exactly the dropped rows are removed: {id}");
    }
}
