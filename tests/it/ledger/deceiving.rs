//! L8, against a program that can write to the store and does not have the key: whatever it edits, cuts, moves or puts
//! back, `verify` with a checkpoint that is kept elsewhere says so, before and after honest work, and no edit of a row
//! alone takes a denial back or has a call run twice.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign::ledger::{
    Ask, Checkpoint, Claimed, Decided, Entry, Filter, Ledger, Linker, MemoryStore, Row, RowKind,
    Store,
};
use serde_json::{Value, json};

use crate::support::place::{Place, no, park, yes};
use crate::support::{Dice, one_row_of};

const KEY: &[u8] = b"the key that the attacker lacks";
const LEASE: Duration = Duration::from_secs(3600);

/// What a store held at one moment.
#[derive(Clone, PartialEq)]
struct Dump {
    rows: Vec<Row>,
    log: Vec<Entry>,
}

async fn dump(store: &dyn Store) -> Dump {
    let rows = store.list(&Filter::default()).await.unwrap();
    let rows = rows.into_iter().map(|found| found.row).collect();
    let mut log = Vec::new();
    for run in store.logs("", 100).await.unwrap() {
        log.extend(store.log(&run, 0, 1000).await.unwrap());
    }
    Dump { rows, log }
}

/// The store of a small firm, and its earlier states.
struct Firm {
    denied: String,
    executed: String,
    fingerprint: String,
    kept: Checkpoint,
    before: Vec<Dump>,
    now: Dump,
}

async fn firm(ledger: &Ledger, store: &dyn Store) -> Firm {
    let (denied, executed) = (park(ledger, "r1", "c1").await, park(ledger, "r1", "c2").await);
    let (pending, claimed) = (park(ledger, "r1", "c3").await, park(ledger, "r2", "c1").await);
    let mut before = vec![dump(store).await];
    let id = executed.ask.id();
    ledger.decide(id, &executed.fingerprint, "ann", yes()).await.unwrap();
    before.push(dump(store).await);
    assert_eq!(ledger.claim(id, "w", LEASE).await.unwrap(), Claimed::Claimed { token: 1 });
    before.push(dump(store).await);
    ledger.settle(id, 1, json!("paid")).await.unwrap();
    let denied_id = denied.ask.id();
    ledger.decide(denied_id, &denied.fingerprint, "ann", no("never")).await.unwrap();
    before.push(dump(store).await);
    ledger.decide(claimed.ask.id(), &claimed.fingerprint, "ann", yes()).await.unwrap();
    ledger.claim(claimed.ask.id(), "w", LEASE).await.unwrap();
    ledger.count_call("refunds", "call 1", 3, LEASE).await.unwrap();
    ledger.save_run("r3", json!({"step": 1}), None).await.unwrap();
    ledger.cancel(pending.ask.id(), "ann").await.unwrap();
    let kept = ledger.checkpoint().await.unwrap();
    Firm {
        denied: denied_id.to_owned(),
        executed: id.to_owned(),
        fingerprint: denied.fingerprint.clone(),
        kept,
        before,
        now: dump(store).await,
    }
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn number(value: Option<i64>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn insert_row(row: &Row, id: &str) -> String {
    let Row { kind, run, state, created_at, due_at, requester, doc, .. } = row;
    format!(
        "INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc, requester) \
         VALUES ({}, '{}', {}, {}, {created_at}, {}, {}, {});",
        text(id),
        kind.as_str(),
        text(run),
        text(state),
        number(*due_at),
        text(doc),
        text(requester)
    )
}

fn put_back(row: &Row) -> String {
    format!(
        "DELETE FROM countersign_rows WHERE id = {};{}",
        text(&row.id),
        insert_row(row, &row.id)
    )
}

fn pick<'a, T>(dice: &mut Dice, of: &'a [T]) -> &'a T {
    &of[usize::try_from(dice.roll(of.len() as u64)).unwrap()]
}

/// An edit of a row alone.
fn edit_of_rows(dice: &mut Dice, firm: &Firm) -> String {
    let row = pick(dice, &firm.now.rows).clone();
    let other = pick(dice, &firm.now.rows).clone();
    let older = pick(dice, &firm.before).clone();
    let at = format!("WHERE id = {};", text(&row.id));
    let set = |column: &str, value: String| {
        format!("UPDATE countersign_rows SET {column} = {value} {at}")
    };
    match dice.roll(11) {
        0 => set("state", text(pick::<&str>(dice, &["pending", "decided", "executed", "waiting"]))),
        1 => set("doc", text(&other.doc)),
        2 => set("doc", text(&row.doc.replace("deny", "approve").replace("never", "yes"))),
        3 => set("doc", text(&row.doc.replace("\"token\":1", "\"token\":0"))),
        4 => set("created_at", (row.created_at + 1).to_string()),
        5 => set("due_at", "1".to_owned()),
        6 => set("requester", text("eve")),
        7 => set("run", text("r9")),
        8 => format!("DELETE FROM countersign_rows {at}"),
        9 => insert_row(&row, "another id"),
        _ => older.rows.iter().filter(|it| it.kind != RowKind::Key).map(put_back).collect(),
    }
}

/// An edit of the log, by a program that knows how it is chained and has no key.
fn edit_of_the_log(dice: &mut Dice, firm: &Firm) -> String {
    let of_asks: Vec<_> = firm.now.log.iter().filter(|it| it.run != "countersign/key").collect();
    let entry = (*pick(dice, &of_asks)).clone();
    let at = format!("WHERE run = {} AND seq = {};", text(&entry.run), entry.seq);
    let set = |column: &str, value: &str| {
        format!("UPDATE countersign_log SET {column} = {} {at}", text(value))
    };
    match dice.roll(9) {
        0 => set("body", &entry.body.replace("\"state\":\"", "\"state\":\"x")),
        1 => set("body", &entry.body.replace("\"about\":\"", "\"about\":\"x")),
        2 => set("body", "{}"),
        3 => set("hash", &Linker::default().hash(&entry.run, entry.seq, &entry.prev, &entry.body)),
        4 => set("prev", "x"),
        5 => set("run", "r9"),
        6 => format!("UPDATE countersign_log SET seq = seq + 1000 {at}"),
        7 => format!("DELETE FROM countersign_log {at}"),
        _ => format!(
            "DELETE FROM countersign_log WHERE run = {} AND seq >= {};",
            text(&entry.run),
            entry.seq
        ),
    }
}

/// An older genuine state of the rows and the logs, put back together.
fn older_state(dice: &mut Dice, firm: &Firm) -> String {
    let older = pick(dice, &firm.before);
    let ends: BTreeMap<_, _> = older.log.iter().map(|entry| (&entry.run, entry.seq)).collect();
    let mut sql: String =
        older.rows.iter().filter(|it| it.kind != RowKind::Key).map(put_back).collect();
    for (run, end) in ends.iter().filter(|(run, _)| !run.starts_with("countersign/")) {
        sql += &format!("DELETE FROM countersign_log WHERE run = {} AND seq > {end};", text(run));
    }
    if dice.roll(2) == 0 {
        sql += "DELETE FROM countersign_log WHERE run = 'countersign/checkpoints';";
    }
    sql
}

/// Returns `true` if a denial was taken back, or a call that was executed may run again.
async fn is_deceived(ledger: &Ledger, firm: &Firm) -> bool {
    let decided = ledger.decide(&firm.denied, &firm.fingerprint, "bob", yes()).await;
    let approved = matches!(decided, Ok(Decided::Won { .. }));
    let claimed = ledger.claim(&firm.denied, "w2", LEASE).await;
    let ran = matches!(claimed, Ok(Claimed::Claimed { .. }));
    let again = ledger.claim(&firm.executed, "w2", LEASE).await;
    let token = match again {
        Ok(Claimed::Claimed { token }) => Some(token),
        _ => None,
    };
    if let Some(token) = token {
        let _ = ledger.settle(&firm.executed, token, json!("paid twice")).await;
    }
    approved || ran || token.is_some()
}

async fn deceive(place: &Place, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let store = place.store().await;
    let firm = firm(&place.open().await.audit_key(KEY), &*store).await;
    let heads = firm.kept.to_heads();
    let mut edits = Vec::new();
    let only_rows = dice.roll(3) == 0;
    for _ in 0..=dice.roll(2) {
        edits.push(match dice.roll(5) {
            _ if only_rows => edit_of_rows(&mut dice, &firm),
            0 | 1 => edit_of_rows(&mut dice, &firm),
            2 | 3 => edit_of_the_log(&mut dice, &firm),
            _ => older_state(&mut dice, &firm),
        });
    }
    let said = format!("seed {seed}: {edits:#?}");
    for edit in &edits {
        // Two edits may contradict each other, such as a row that is inserted twice.
        if !place.try_sql(edit).await {
            return;
        }
    }
    if dump(&*store).await == firm.now {
        return;
    }
    let ledger = place.open().await.audit_key(KEY);
    assert!(ledger.verify(&heads).await.is_err(), "verify sees nothing: {said}");
    let deceived = is_deceived(&ledger, &firm).await;
    assert!(!(deceived && only_rows), "an edit of rows alone is acted upon: {said}");
    assert!(ledger.verify(&heads).await.is_err(), "honest work has healed it: {said}");
    // A process that has forgotten the key changes nothing.
    let (before, keyless) = (dump(&*store).await, place.open().await);
    assert!(keyless.decide(&firm.denied, &firm.fingerprint, "eve", yes()).await.is_err(), "{said}");
    assert!(keyless.park(Ask::new("r7", "c", "pay")).await.is_err(), "{said}");
    assert!(dump(&*store).await == before, "a process without the key has written: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_edit_of_a_file_is_silent() {
    for seed in (1..=120).step_by(one_row_of()) {
        deceive(&Place::sqlite(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_edit_of_a_database_is_silent() {
    for seed in (200..=225).step_by(one_row_of()) {
        deceive(&Place::postgres().await, seed).await;
    }
}

/// A store in memory cannot be edited, but a wrapper may answer with something else than it holds: with an older entry, with
/// one about another row, or with one that was edited.
#[tokio::test]
async fn a_store_that_answers_with_another_entry_is_not_believed() {
    let inner = MemoryStore::new();
    let ledger = Ledger::new(inner.clone()).audit_key(KEY);
    let firm = firm(&ledger, &inner).await;
    for (what, lie) in lies() {
        let lying = Ledger::new(super::lying::Lying { inner: inner.clone(), lie }).audit_key(KEY);
        let got = lying.get(&firm.denied).await;
        assert!(got.is_err(), "{what}: {got:?}");
        let listed = lying.list(None, 9).await.unwrap();
        assert!(listed.records.iter().all(|it| it.ask.id() != firm.denied), "{what}");
        assert!(!is_deceived(&lying, &firm).await, "{what}");
    }
    assert!(ledger.verify(&firm.kept.to_heads()).await.is_ok(), "nothing was written");
}

fn lies() -> Vec<(&'static str, super::lying::Lie)> {
    let edit =
        |edit: fn(&mut Entry)| -> super::lying::Lie { Box::new(move |_, entry| edit(entry)) };
    vec![
        ("a body", edit(|it| it.body = it.body.replace("denied", "x").replace("pay", "buy"))),
        ("a place", edit(|it| it.seq += 1)),
        ("a run", edit(|it| "r2".clone_into(&mut it.run))),
        (
            "a hash without the key",
            edit(|it| {
                it.hash = Linker::default().hash(&it.run, it.seq, &it.prev, &it.body);
            }),
        ),
        (
            "an older entry",
            Box::new(|log: &[Entry], entry: &mut Entry| {
                let about = entry.about();
                let first = log.iter().find(|it| it.about() == about);
                first.unwrap().clone_into(entry);
            }),
        ),
        (
            "an entry about another row",
            Box::new(|log: &[Entry], entry: &mut Entry| {
                let about = entry.about();
                let other = log.iter().find(|it| it.about() != about);
                other.unwrap().clone_into(entry);
            }),
        ),
    ]
}

/// The documents of rows say what a reader has to know.
#[tokio::test]
async fn what_a_reader_has_to_know_is_refused_by_one_that_does_not() {
    let place = Place::sqlite();
    let ledger = place.open().await;
    let ask = park(&ledger, "r", "c").await;
    let store = place.store().await;
    let row = store.get(ask.ask.id()).await.unwrap().found().unwrap().row;
    let mut doc: Value = serde_json::from_str(&row.doc).unwrap();
    doc["needs"] = json!(["approvers"]);
    place.sql(&put_back(&Row { doc: doc.to_string(), ..row })).await;
    // As a later version would have written it, with its entry.
    let found = store.get(ask.ask.id()).await.unwrap().found().unwrap();
    let entry = found.entry.unwrap();
    let mut body: Value = serde_json::from_str(&entry.body).unwrap();
    body["row"] = json!(digest(&found.row));
    let draft = countersign::ledger::Draft { run: entry.run, row: None, body };
    let made = Linker::default().link(None, &draft).unwrap();
    place
        .sql(&format!(
            "UPDATE countersign_log SET body = {}, hash = {} WHERE run = 'r'",
            text(&made.body),
            text(&made.hash)
        ))
        .await;
    let error = ledger.get(ask.ask.id()).await.unwrap_err().to_string();
    assert!(error.contains("it needs \"approvers\", which this build does not know"), "{error}");
}

/// What an entry says of its row.
fn digest(row: &Row) -> String {
    use sha2::Digest as _;
    let mut hash = sha2::Sha256::new();
    let (kind, created) = (row.kind.as_str(), row.created_at.to_string());
    for part in ["row 1", &row.id, kind, &row.run, &row.state, &created, &row.doc] {
        hash.update(u64::try_from(part.len()).unwrap().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
