//! Linking the entries of logs, and telling whether an entry was made with the key of this process (rule L8).
//!
//! The hash of an entry covers its run, its place, the hash before it and its text. With a key the hash is an HMAC:
//! one look at one entry tells whether a holder of the key has made it, and we need not read the log before it.
//!
//! Entries that were written before the store had this key have another hash. Those are known by the
//! [`Vouched`] part: the entry with which a key is added names the end of every log, and what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::entry::{ABOUT, Draft, Entry};
use crate::ledger::asks::ask::Millis;

/// The error of a log whose last entry was not made with the key of this process: nothing is linked to it.
///
/// A [`Store`](crate::ledger::Store) gets it from [`Linker::link`] and returns it as the source of its
/// [`StoreError`](crate::ledger::StoreError), after it has rolled its transaction back.
///
/// ```
/// use countersign::ledger::{Draft, Linker};
/// use serde_json::json;
///
/// let draft = Draft { run: "run-1".into(), row: None, body: json!({"event": "parked"}) };
/// let first = Linker::with_key(b"a key").link(None, &draft)?;
/// let error = Linker::default().link(Some(&first), &draft).unwrap_err();
/// assert_eq!(error.to_string(), "the last entry of its log, number 1, was not made with the audit key of this process");
/// # Ok::<(), countersign::ledger::Unlinked>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the last entry of its log, number {seq}, was not made with the audit key of this process")]
pub struct Unlinked {
    pub(in crate::ledger) run: String,
    pub(in crate::ledger) seq: i64,
}

/// Links the entries of a log by SHA-256, or by HMAC-SHA256 where there is a key.
///
/// ```
/// use countersign::ledger::{Draft, Linker};
/// use serde_json::json;
///
/// let linker = Linker::with_key(b"secret");
/// let draft = |event: &str| Draft { run: "run-1".into(), row: None, body: json!({"event": event}) };
/// let first = linker.link(None, &draft("parked"))?;
/// let second = linker.link(Some(&first), &draft("decided"))?;
/// assert_eq!((second.seq, &second.prev), (2, &first.hash));
/// assert!(linker.has_made(&second));
/// assert!(!Linker::default().has_made(&second), "another key, another hash");
/// # Ok::<(), countersign::ledger::Unlinked>(())
/// ```
#[derive(Clone, Default)]
pub struct Linker {
    key: Option<Arc<[u8]>>,
    vouched: Vouched,
}

impl Linker {
    /// A linker with a key: without the key, no one can make a log that verifies.
    #[must_use]
    pub fn with_key(key: &[u8]) -> Self {
        Self { key: Some(key.into()), vouched: Vouched::default() }
    }

    /// The entry that a draft becomes behind the last entry of a log; `None` for an empty log. The id of the
    /// [row](Draft::row) becomes `about` in the body.
    ///
    /// The hash of an entry covers its run, its place, the hash before it and its text, so an entry cannot be moved,
    /// removed or changed without changing all that follow.
    ///
    /// # Errors
    /// [`Unlinked`] when the last entry was not made with the key of this linker, or was changed.
    ///
    /// ```
    /// use countersign::ledger::{Draft, Linker};
    /// use serde_json::json;
    ///
    /// let linker = Linker::with_key(b"a key that the store does not have");
    /// let draft = |row: &str| Draft { run: "run-1".into(), row: Some(row.into()), body: json!({"event": "parked"}) };
    /// let first = linker.link(None, &draft("ask-1"))?;
    /// let mut second = linker.link(Some(&first), &draft("ask-2"))?;
    /// assert_eq!((second.seq, &second.prev), (2, &first.hash));
    /// assert_eq!(second.about().as_deref(), Some("ask-2"));
    /// second.body = second.body.replace("ask-2", "ask-1");
    /// assert!(linker.link(Some(&second), &draft("ask-3")).is_err(), "it was changed");
    /// # Ok::<(), countersign::ledger::Unlinked>(())
    /// ```
    pub fn link(&self, last: Option<&Entry>, draft: &Draft) -> Result<Entry, Unlinked> {
        if let Some(last) = last
            && !self.knows(last)
        {
            return Err(Unlinked { run: last.run.clone(), seq: last.seq });
        }
        Ok(self.append(last.map(|last| (last.seq, &*last.hash)), draft))
    }

    /// The entries that these drafts become, each behind the last one of its run: `last` reads that from the store, once
    /// for each run.
    ///
    /// # Errors
    /// [`Unlinked`], as [`link`](Self::link), or the error of `last`.
    ///
    /// ```
    /// use countersign::ledger::{Draft, Linker, Unlinked};
    /// use serde_json::json;
    ///
    /// let draft = |run: &str| Draft { run: run.into(), row: None, body: json!({"event": "parked"}) };
    /// let drafts = ["run-1", "run-2", "run-1"].map(draft);
    /// let entries = Linker::default().link_all::<Unlinked>(&drafts, |_run| Ok(None))?;
    /// assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 1, 2]);
    /// # Ok::<(), Unlinked>(())
    /// ```
    pub fn link_all<E: From<Unlinked>>(
        &self,
        drafts: &[Draft],
        mut last: impl FnMut(&str) -> Result<Option<Entry>, E>,
    ) -> Result<Vec<Entry>, E> {
        let mut entries: Vec<Entry> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let made = entries.iter().rev().find(|entry| entry.run == draft.run);
            let entry = match made {
                // Its own: there is nothing to check.
                Some(made) => self.append(Some((made.seq, &made.hash)), draft),
                None => self.link(last(&draft.run)?.as_ref(), draft)?,
            };
            entries.push(entry);
        }
        Ok(entries)
    }

    fn append(&self, last: Option<(i64, &str)>, draft: &Draft) -> Entry {
        let (seq, prev) = last.map_or((1, ""), |(seq, hash)| (seq + 1, hash));
        let mut body = draft.body.clone();
        if let (Some(row), Some(body)) = (&draft.row, body.as_object_mut()) {
            body.insert(ABOUT.to_owned(), row.clone().into());
        }
        let body = crate::args::canonical(&body);
        let hash = self.hash(&draft.run, seq, prev, &body);
        Entry { run: draft.run.clone(), seq, prev: prev.to_owned(), hash, body }
    }

    /// Returns `true` if a holder of this linker's key has made the entry, as it is. Without a key anyone can make
    /// one, and this only tells that its hash fits.
    #[must_use]
    pub fn has_made(&self, entry: &Entry) -> bool {
        entry.hash == self.hash(&entry.run, entry.seq, &entry.prev, &entry.body)
    }

    /// Tells whether the entry was made with this key, is older than the key and vouched for by the entry that added it, or was
    /// accepted.
    pub(in crate::ledger) fn knows(&self, entry: &Entry) -> bool {
        self.has_made(entry) || (self.key.is_some() && self.vouched.has(entry)) || self.takes(entry)
    }

    /// A linker that takes these entries, which were made without the key, as they are.
    pub(in crate::ledger) fn taking(&self, entries: &[Entry]) -> Self {
        let mut older = self.vouched.lock().clone();
        older.accepted = entries.iter().map(|entry| content("", entry)).collect();
        Self { key: self.key.clone(), vouched: Vouched(Arc::new(Mutex::new(older))) }
    }

    /// Tells whether a person has accepted the entry.
    pub(in crate::ledger) fn takes(&self, entry: &Entry) -> bool {
        self.vouched.lock().accepted.contains(&content("", entry))
    }

    /// The number of entries that a person has accepted.
    pub(in crate::ledger) fn taken(&self) -> usize {
        self.vouched.lock().accepted.len()
    }

    /// Tells whether the entry was made without a key, where there is one: by a process that had none, or by anyone else.
    pub(in crate::ledger) fn is_keyless(&self, entry: &Entry) -> bool {
        self.key.is_some() && !self.knows(entry) && Self::default().has_made(entry)
    }

    /// The entries that are known to be older than the key.
    pub(in crate::ledger) fn vouched(&self) -> &Vouched {
        &self.vouched
    }

    /// A name of the key, by which it cannot be found out; `None` where there is no key.
    pub(in crate::ledger) fn key_id(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        let mut id = keyed_digest(key, &json!(["the id of an audit key", 1]));
        id.truncate(16);
        Some(id)
    }

    /// The seal over the end of a lease. A lease is renewed without a log entry, so no digest in the log covers its
    /// end.
    pub(in crate::ledger) fn lease(&self, row: &str, token: u64, until: Millis) -> String {
        self.digest(&json!(["lease", 1, row, token, until]))
    }

    /// The hash that an entry with these values must have.
    #[must_use]
    pub fn hash(&self, run: &str, seq: i64, prev: &str, body: &str) -> String {
        self.digest(&json!([1, run, seq, prev, body]))
    }

    fn digest(&self, all: &Value) -> String {
        match &self.key {
            None => crate::args::digest(all),
            Some(key) => keyed_digest(key, all),
        }
    }
}

impl fmt::Debug for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linker(keyed: {})", self.key.is_some())
    }
}

/// The HMAC-SHA256 of the canonical text, in hexadecimal.
fn keyed_digest(key: &[u8], value: &Value) -> String {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => crate::args::hex(
            &mac.chain_update(crate::args::canonical(value).as_bytes()).finalize().into_bytes(),
        ),
        // Unreachable: HMAC takes keys of any length.
        Err(_) => String::new(),
    }
}

/// A digest of the content of a log up to an entry, which no key is needed for.
pub(in crate::ledger) fn content(before: &str, entry: &Entry) -> String {
    let Entry { run, seq, prev, hash, body } = entry;
    crate::args::digest(&json!([before, run, seq, prev, hash, body]))
}

/// The entries that are older than the key, by run and place, as far as they were read and compared with the entry that
/// added the key. Shared by all clones of a ledger.
#[derive(Clone, Default)]
pub(in crate::ledger) struct Vouched(Arc<Mutex<Older>>);

#[derive(Clone, Default)]
struct Older {
    /// The digest of each entry, by run and place.
    entries: BTreeMap<String, BTreeMap<i64, String>>,
    /// The ends of the leases that were open when the key was added, by row; `None` where an entry does not say them.
    leases: Option<BTreeMap<String, Millis>>,
    /// The digests of the entries that were made without the key, and that a person has accepted.
    accepted: BTreeSet<String>,
}

impl Vouched {
    fn lock(&self) -> MutexGuard<'_, Older> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, entry: &Entry) -> bool {
        let older = self.lock();
        let known = older.entries.get(&entry.run).and_then(|known| known.get(&entry.seq));
        known.is_some_and(|known| *known == content("", entry))
    }

    /// Returns `true` if the log of this run was looked at.
    pub(in crate::ledger) fn has_read(&self, run: &str) -> bool {
        self.lock().entries.contains_key(run)
    }

    /// Adds the older entries of a log; none where they are not those that the key was added to.
    pub(in crate::ledger) fn add(&self, run: &str, entries: &[Entry]) {
        let known = entries.iter().map(|entry| (entry.seq, content("", entry))).collect();
        self.lock().entries.insert(run.to_owned(), known);
    }

    /// Sets the ends of the leases that were open when the key was added.
    pub(in crate::ledger) fn set_leases(&self, leases: Option<BTreeMap<String, Millis>>) {
        self.lock().leases = leases;
    }

    /// Returns `true` if the lease of this row was open when the key was added, and ended then.
    pub(in crate::ledger) fn names_lease(&self, row: &str, until: Millis) -> bool {
        let older = self.lock();
        older.leases.as_ref().is_none_or(|leases| leases.get(row) == Some(&until))
    }
}
