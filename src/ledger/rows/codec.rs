//! The stored form of asks and runs, and the comparison of a row with the log (rules L7, L8).
//!
//! # The row and the log
//!
//! The last log entry about a row contains the digest of that row. We compare the two when we read: nothing acts on a
//! row that another program has written, or that came back from a backup. Three values are outside of the digest:
//!
//! | value | why | what covers it |
//! |---|---|---|
//! | the end of a lease | it is renewed without a log entry | a seal of its own, with the row and the token |
//! | `due_at` | follows from the document | compared when the row is read |
//! | `requester` | follows from the document | compared when the row is read |
//!
//! # The text of a document
//!
//! The lease is the last member of the document, as text: `{…,"lease":{"until":…,"seal":"…"}}`. The digest is of the
//! text before it, byte for byte. We parse and write nothing again for a comparison, as another version of a JSON
//! library may write the same value differently, and every row of the store would be refused.
//!
//! # Limits
//!
//! A document may have 64 MiB and 160 levels, the id of a run 1 KiB. They are the strictest of all stores, so that a
//! ledger can move from one to another; a value beyond them is refused when it is written, with a text that says what
//! to do (rule L7). Reading has no recursion limit of serde_json's, since the depth of the text was counted before.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::args::depth;
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::metrics::EndedAsk;
use crate::ledger::asks::record::{AskRecord, AskState, ClaimRecord};
use crate::ledger::asks::transitions;
use crate::ledger::error::LedgerError;
use crate::ledger::stores::entry::about;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Draft, Dropped, Found, Lookup, Row, RowKind, Writes};

/// The version of the stored form that this build writes.
pub(in crate::ledger) const VERSION: u64 = 3;

/// The versions that this build reads. In version 1 the end of a lease was part of the claim, and an entry contained a
/// digest of the ask, or of the state of the run, in place of the digest of the row. In version 2 a document could not
/// say what it [needs](NEEDS), and an entry not which row it is about.
const KNOWN: [u64; 3] = [1, 2, VERSION];

/// The additions to a document that this build knows, of those that change its meaning.
///
/// Since version 3 a document can have the member `needs`, a list of names. A build that does not know one of them
/// refuses the row, and names it: it might let a call run that another person had to approve. An addition that may be
/// left out without such a harm is an optional field, and in no list.
const NEEDS: [&str; 1] = [PEOPLE];

/// An ask that certain people have to approve, which its questions name.
const PEOPLE: &str = "people";

/// The text between a document and its lease. The end of a lease is renewed without a log entry, so it cannot be
/// covered by the digest of the row, which the last entry contains: it comes last in the document, with a seal of its
/// own.
const LEASE: &str = ",\"lease\":";

/// The largest document of an ask or a run, in bytes: a size that every store can keep.
const MAX_BYTES: usize = 64 << 20;

/// The levels to which the values of a document may be nested. serde_json reads at most 128 levels, so any value that
/// was read from text fits, also inside of the levels that the document adds.
pub(super) const MAX_DEPTH: usize = 160;

/// The longest id of a run, in bytes. It is in indexes, and PostgreSQL has the strictest limit: 2704 bytes for all
/// columns of an index entry, where a byte that has to be escaped takes two.
const MAX_ID: usize = 1 << 10;

/// The JSON pointer to the claim in the document of an ask.
const CLAIM: &str = "/ask/claim";

/// Collects the writes of one change: a row for each record, and a log entry for each event.
pub(in crate::ledger) struct Writing<'l> {
    linker: &'l Linker,
    pub(in crate::ledger) now: Millis,
    writes: Writes,
    /// The asks that end with these writes, for the metrics.
    ended: Vec<EndedAsk>,
}

impl<'l> Writing<'l> {
    pub(in crate::ledger) fn new(linker: &'l Linker, now: Millis) -> Self {
        Self { linker, now, writes: Writes::default(), ended: Vec::new() }
    }

    /// Adds the row of an ask, and an entry for an event, with the digest of the row.
    pub(in crate::ledger) fn note(
        &mut self,
        record: &AskRecord,
        event: &str,
        by: Option<&str>,
    ) -> Result<(), LedgerError> {
        let row = keepable(row_of(record, self.linker))?;
        if event == "claimed" {
            self.writes.until = transitions::approved_until(record);
        }
        let body = json!({
            "ask": record.ask.id(),
            "at": self.now,
            "by": by,
            "event": event,
            "fingerprint": record.fingerprint,
            "row": digest(&row),
            "state": record.state,
            "token": record.token,
            "tool": record.ask.tool(),
        });
        self.ended.extend(EndedAsk::of(record, event, self.now));
        self.append(row, body);
        Ok(())
    }

    /// Adds a row, and an entry about it.
    pub(in crate::ledger) fn append(&mut self, row: Row, body: Value) {
        self.writes.log.push(Draft { run: row.run.clone(), row: Some(row.id.clone()), body });
        self.replace(row);
    }

    /// Adds the row of an ask without an entry, as only the end of its lease has changed.
    pub(in crate::ledger) fn renew(&mut self, record: &AskRecord) -> Result<(), LedgerError> {
        self.replace(keepable(row_of(record, self.linker))?);
        Ok(())
    }

    /// Adds a row, in place of an earlier write of the same row.
    pub(in crate::ledger) fn replace(&mut self, row: Row) {
        self.writes.rows.retain(|earlier| earlier.id != row.id);
        self.writes.rows.push(row);
    }

    /// Limits the writes to the time before this one, by the store's clock: later they are not made at all.
    ///
    /// A store may need long to get its transaction through, and an approval or a grant may be over by then. So the
    /// writes carry the last time at which they may be made. A store that is later runs the work again, with the new
    /// time.
    pub(in crate::ledger) fn not_after(&mut self, over: Millis) {
        let last = over.saturating_sub(1);
        self.writes.until = Some(self.writes.until.map_or(last, |until| until.min(last)));
    }

    /// Adds an entry that is about no row.
    pub(in crate::ledger) fn entry(&mut self, run: &str, body: Value) {
        self.writes.log.push(Draft { run: run.to_owned(), row: None, body });
    }

    /// Removes the earlier rows and entries of a run.
    pub(in crate::ledger) fn remove(&mut self, dropped: Dropped) {
        self.writes.drop = Some(dropped);
    }

    pub(in crate::ledger) fn linker(&self) -> &'l Linker {
        self.linker
    }

    /// The writes, and the asks that end with them.
    pub(in crate::ledger) fn finish(self) -> (Writes, Vec<EndedAsk>) {
        (self.writes, self.ended)
    }
}

/// The row of an ask in the version that this build writes.
fn row_of(record: &AskRecord, linker: &Linker) -> Row {
    let mut doc = json!({"version": VERSION, "ask": record});
    if let (false, Value::Object(doc)) = (record.ask.people().is_empty(), &mut doc) {
        doc.insert("needs".to_owned(), json!([PEOPLE]));
    }
    Row {
        id: record.ask.id().to_owned(),
        kind: RowKind::Ask,
        run: record.ask.run().to_owned(),
        state: record.state.as_str().to_owned(),
        created_at: record.parked_at,
        due_at: record.due_at(),
        requester: counted(record.ask.principal()).to_owned(),
        doc: document(doc, CLAIM, (record.ask.id(), record.token), linker),
    }
}

/// The text of a document: the end of the lease is moved from the claim to the end of the text, with a seal.
pub(in crate::ledger) fn document(
    mut doc: Value,
    claim: &str,
    (row, token): (&str, u64),
    linker: &Linker,
) -> String {
    let claim = doc.pointer_mut(claim).and_then(Value::as_object_mut);
    let until = claim.and_then(|claim| claim.remove("until")).and_then(|until| until.as_i64());
    let mut text = doc.to_string();
    if let Some(until) = until {
        let seal = linker.lease(row, token, until);
        text.pop();
        text.push_str(&format!("{LEASE}{{\"until\":{until},\"seal\":\"{seal}\"}}}}"));
    }
    text
}

/// Splits a document into the text before its lease, and the end and the seal of the lease.
///
/// A user's text in the document may contain `,"lease":`. So we split at the last one only, and only if the rest has
/// exactly the form of a lease: a text of a user would have to end the document, which a JSON string cannot.
fn without_lease(doc: &str) -> (&str, Option<(Millis, &str)>) {
    let split = || {
        let (body, lease) = doc.rsplit_once(LEASE)?;
        let lease = lease.strip_prefix("{\"until\":")?.strip_suffix("\"}}")?;
        let (until, seal) = lease.split_once(",\"seal\":\"")?;
        let is_seal = seal.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_seal.then_some((body, (until.parse().ok()?, seal)))
    };
    split().map_or((doc, None), |(body, lease)| (body, Some(lease)))
}

/// The digest of a row: of everything but the end of its lease, and the two columns that follow from the document.
pub(in crate::ledger) fn digest(row: &Row) -> String {
    let Row { id, kind, run, state, created_at, due_at: _, requester: _, doc } = row;
    let (created_at, doc) = (created_at.to_string(), without_lease(doc).0);
    let mut hash = Sha256::new();
    for part in ["row 1", id, kind.as_str(), run, state, &created_at, doc] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    crate::args::hex(&hash.finalize())
}

/// The row of a lookup, if there is one. A row that was removed while the log has entries about it is an error: created
/// anew, a denied call would be asked about again, or an executed one run again (rule L8).
pub(in crate::ledger) fn there(lookup: Lookup) -> Result<Option<Found>, LedgerError> {
    match lookup {
        Lookup::Found(found) => Ok(Some(found)),
        Lookup::Removed { id } => {
            Err(LedgerError::changed(&id, "it was removed, and the log still has entries about it"))
        }
        Lookup::Nothing => Ok(None),
    }
}

/// Compares a row with the last entry about it (rule L8). Returns the entry when version 1 wrote it, which contains no
/// digest of the row, so that the caller has to compare the record with it; `Null` when there is no entry.
///
/// The entry itself is looked at first: it has to be made with the key of this process, and be about this row by its own
/// words, whatever the store found it by.
pub(super) fn as_logged(found: &Found, by: &Linker) -> Result<Option<Value>, LedgerError> {
    let Some(entry) = &found.entry else { return Ok(Some(Value::Null)) };
    let changed = |problem| LedgerError::changed(&found.row.id, problem);
    if !by.knows(entry) {
        return Err(changed(FOREIGN));
    }
    let body: Value = serde_json::from_str(&entry.body)
        .map_err(|_| changed("the last entry about it is not JSON"))?;
    if entry.run != found.row.run || about(&entry.run, &body).as_ref() != Some(&found.row.id) {
        return Err(changed("the entry that it was found with is about another row"));
    }
    match body.get("row").and_then(Value::as_str) {
        Some(logged) if logged == digest(&found.row) => Ok(None),
        Some(_) => Err(LedgerError::changed(&found.row.id, DIFFERS)),
        None => Ok(Some(body)),
    }
}

/// Reads the record of a row of this kind, which its document has under the name of the kind, after the row was compared
/// with the last log entry about it (rule L8). For the kinds without a lease, all of whose entries have a digest.
pub(in crate::ledger) fn logged<T: DeserializeOwned>(
    found: &Found,
    kind: RowKind,
    by: &Linker,
) -> Result<T, LedgerError> {
    let (row, name) = (&found.row, kind.as_str());
    if as_logged(found, by)?.is_some() {
        return Err(LedgerError::changed(&row.id, "it is not in the log"));
    }
    if row.kind != kind {
        return Err(LedgerError::unreadable(&row.id, &format!("it is not the row of a {name}")));
    }
    let mut doc = value(row, "/no-claim")?;
    let record = doc.get_mut(name).map(Value::take).unwrap_or_default();
    serde_json::from_value(record).map_err(|error| LedgerError::unreadable(&row.id, &error))
}

/// The problem of a row whose last entry was made without the key, or changed.
pub(super) const FOREIGN: &str =
    "the last entry about it was changed, or made without the audit key of this process";

/// The problem of a row that does not match the last entry about it.
pub(super) const DIFFERS: &str = "it is not what the last entry about it in the log says";

/// The problem of a row whose lease ends at another time than its seal says.
pub(super) const LEASE_DIFFERS: &str = "the end of its lease is not the one that was sealed";

/// Returns whether the lease of a row has a valid seal, and is there exactly when the record has a claim.
///
/// The seal of a lease that was taken under an earlier key says nothing to this one: the entry that added the key names the
/// ends of the leases that were open then.
pub(super) fn lease_fits(
    found: &Found,
    claim: Option<&ClaimRecord>,
    (token, is_open): (u64, bool),
    by: &Linker,
) -> bool {
    let row = &found.row;
    let is_older = || found.entry.as_ref().is_some_and(|entry| !by.has_made(entry));
    let is_named = |until| !is_open || by.vouched().names_lease(&row.id, until);
    match (claim, without_lease(&row.doc).1) {
        (Some(claim), Some((until, seal))) => {
            let is_own = seal == by.lease(&row.id, token, until);
            until == claim.until && (is_own || is_older() && is_named(until))
        }
        // Version 1 wrote the end of the lease as a part of the claim, without a seal.
        (Some(_), None) => true,
        (None, lease) => lease.is_none(),
    }
}

/// Refuses a row that is too large, or nested too deep, to be read again.
pub(in crate::ledger) fn keepable(row: Row) -> Result<Row, LedgerError> {
    let problem = if row.doc.len() > MAX_BYTES {
        let bytes = row.doc.len();
        format!("it has {bytes} bytes, and at most {MAX_BYTES} are kept: keep the value elsewhere")
    } else if depth::of_text(&row.doc) > MAX_DEPTH {
        format!("its values are nested more than {MAX_DEPTH} levels deep: flatten them")
    } else {
        return Ok(row);
    };
    Err(LedgerError::Unkeepable { id: row.id, problem })
}

/// Refuses the id of a run that is too long for the indexes of some store.
pub(in crate::ledger) fn check_run(run: &str) -> Result<(), LedgerError> {
    if run.len() <= MAX_ID {
        return Ok(());
    }
    let problem = format!(
        "the id of its run has {} bytes, and at most {MAX_ID} are kept: use a shorter one, or its digest",
        run.len()
    );
    let id = run.chars().take(32).chain(['…']).collect();
    Err(LedgerError::Unkeepable { id, problem })
}

/// Reads an ask from its row, after the row was compared with the last log entry about it (rule L8).
pub(in crate::ledger) fn read(found: &Found, by: &Linker) -> Result<AskRecord, LedgerError> {
    let row = &found.row;
    let unreadable = |problem: &dyn std::fmt::Display| LedgerError::unreadable(&row.id, problem);
    let earlier = as_logged(found, by)?;
    let mut doc = value(row, CLAIM)?;
    let ask = doc.get_mut("ask").map(Value::take).unwrap_or_default();
    let record: AskRecord = serde_json::from_value(ask).map_err(|error| unreadable(&error))?;
    if record.ask.id() != row.id {
        return Err(LedgerError::changed(&row.id, "it holds another ask"));
    }
    // Lists use these columns, which the digest of the row does not cover.
    if record.due_at() != row.due_at {
        return Err(LedgerError::changed(&row.id, "it is due at another time than it says"));
    }
    if counted(record.ask.principal()) != row.requester {
        return Err(LedgerError::changed(&row.id, "it has another requester than it says"));
    }
    let lease = (record.token, record.state == AskState::Claimed);
    if !lease_fits(found, record.claim.as_ref(), lease, by) {
        return Err(LedgerError::changed(&row.id, LEASE_DIFFERS));
    }
    let Some(body) = earlier else { return Ok(record) };
    let said = body.get("record").and_then(Value::as_str);
    let columns = (row.kind, &*row.run, &*row.state, row.created_at);
    let recorded = (RowKind::Ask, record.ask.run(), record.state.as_str(), record.parked_at);
    match said {
        None => Err(LedgerError::changed(&row.id, "it is not in the log")),
        Some(said) if said == earlier_digest(&record) && columns == recorded => Ok(record),
        Some(_) => Err(LedgerError::changed(&row.id, DIFFERS)),
    }
}

/// The digest of an ask as entries of version 1 contain it: of the record without the end of its lease.
fn earlier_digest(record: &AskRecord) -> String {
    let mut value = json!(record);
    if let Some(claim) = value.get_mut("claim").and_then(Value::as_object_mut) {
        claim.remove("until");
    }
    crate::args::digest(&value)
}

/// The document of a row as JSON, with the end of the lease back in its claim. The version is checked before anything
/// else, as a document of another version may have any form.
pub(in crate::ledger) fn value(row: &Row, claim: &str) -> Result<Value, LedgerError> {
    let unreadable = |problem: &dyn std::fmt::Display| LedgerError::unreadable(&row.id, problem);
    if depth::of_text(&row.doc) > MAX_DEPTH {
        return Err(unreadable(&"it is nested too deep"));
    }
    let mut reader = serde_json::Deserializer::from_str(&row.doc);
    reader.disable_recursion_limit();
    let mut doc = Value::deserialize(&mut reader).map_err(|error| unreadable(&error))?;
    reader.end().map_err(|error| unreadable(&error))?;
    match doc.get("version").and_then(Value::as_u64) {
        Some(found) if KNOWN.contains(&found) => {}
        Some(found) => {
            return Err(unreadable(&format_args!(
                "it is of version {found}, and this build reads versions up to {VERSION}: use the version that wrote it"
            )));
        }
        None => return Err(unreadable(&"it does not say of which version it is")),
    }
    let needs = doc
        .get("needs")
        .map(|needs| needs.as_array().map_or(std::slice::from_ref(needs), Vec::as_slice));
    let is_known = |need: &Value| need.as_str().is_some_and(|need| NEEDS.contains(&need));
    if let Some(need) = needs.unwrap_or_default().iter().find(|need| !is_known(need)) {
        return Err(unreadable(&format_args!(
            "it needs {need}, which this build does not know: use the version that wrote it, or a newer one"
        )));
    }
    let lease = doc.as_object_mut().and_then(|doc| doc.remove("lease"));
    let claim = doc.pointer_mut(claim).and_then(Value::as_object_mut);
    match (claim, lease) {
        (Some(claim), Some(mut lease)) => {
            let until = lease.get_mut("until").map(Value::take);
            claim.insert("until".to_owned(), until.unwrap_or_default());
        }
        (Some(claim), None) if claim.contains_key("until") => {}
        (None, None) => {}
        _ => return Err(LedgerError::changed(&row.id, "its lease is not the one of its claim")),
    }
    Ok(doc)
}

/// The longest requester in a row, in bytes. The column is in an index, and PostgreSQL has the strictest limit on the
/// size of index entries.
const LONGEST: usize = 512;

/// The requester as it is in the column of a row: at most the first 512 bytes of the name. Longer names with the same
/// beginning are counted together.
///
/// We cut the name at a character, so that the column is valid text. The whole name stays in the document, and the
/// column is only for counting.
pub(in crate::ledger) fn counted(requester: Option<&str>) -> &str {
    let name = requester.unwrap_or_default();
    let fits =
        name.char_indices().map(|(at, it)| at + it.len_utf8()).take_while(|end| *end <= LONGEST);
    fits.last().and_then(|end| name.get(..end)).unwrap_or_default()
}

/// The requester in the document of a row, for a store that adds the column [`Row::requester`] to rows which an earlier
/// version has written. Empty for an ask without a requester, for a run, and for a document that cannot be read, as its
/// row is refused when it is read.
///
/// ```
/// use countersign::ledger::{Ask, Filter, Ledger, MemoryStore, Store as _, requester_of};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// Ledger::new(store.clone()).park(Ask::new("run-1", "root/c1", "delete_file").with_principal("ann")).await?;
/// let rows = store.list(&Filter::default()).await?;
/// assert_eq!(requester_of(&rows[0].row.doc), "ann");
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[must_use]
pub fn requester_of(doc: &str) -> String {
    #[derive(Deserialize)]
    struct Stored {
        ask: StoredRecord,
    }
    #[derive(Deserialize)]
    struct StoredRecord {
        ask: Requester,
    }
    #[derive(Deserialize)]
    struct Requester {
        #[serde(default)]
        principal: Option<String>,
    }

    if depth::of_text(doc) > MAX_DEPTH {
        return String::new();
    }
    let mut reader = serde_json::Deserializer::from_str(doc);
    reader.disable_recursion_limit();
    let principal = Stored::deserialize(&mut reader).ok().and_then(|it| it.ask.ask.principal);
    counted(principal.as_deref()).to_owned()
}
