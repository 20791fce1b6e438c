//! Opening a store: whether this process has the audit key that the store says, and whether the store is behind the
//! last checkpoint that is kept elsewhere (rule L8).
//!
//! ```text
//!  the store says   this process has
//!  key K            key K              opened
//!  no key           no key             opened
//!  anything else                       refused, before anything is read or written
//!  nothing, empty   any                the first write says which key it is
//!  nothing, 0.1     any                opened where its first log was made with the same key, or with none
//! ```
//!
//! A handle is made without waiting, so the first operation opens the store, and so does [`Ledger::open`].

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::rekey;
use super::rekey::Rekeyed;
use crate::ledger::asks::record::AskRecord;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::anchor;
use crate::ledger::logs::vouching;
use crate::ledger::rows::codec::{self, Writing, there};
use crate::ledger::rows::key;
use crate::ledger::rows::listing::Listed;
use crate::ledger::stores::ends::Opening;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Entry, Filter, Found, Lookup, RowKind, Store, Writes};

impl Ledger {
    /// Opens the store: compares what it says about its [audit key](Self::audit_key) with the key of this handle, and its
    /// checkpoints with the [anchor](Self::anchor). Every operation does that before its first reading; a program that
    /// serves others calls this when it starts, so that a missing key is noticed then.
    ///
    /// # Errors
    /// [`LedgerError::AuditKey`] when the store has another key, a key that this handle has not, or none;
    /// [`LedgerError::Behind`] when it is behind the anchor; the others when it cannot be read. Nothing was written.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, LedgerError, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// Ledger::new(store.clone()).audit_key(b"the key").park(Ask::new("run-1", "root/c1", "rm")).await?;
    ///
    /// let forgot_the_key = Ledger::new(store).open().await;
    /// assert!(matches!(forgot_the_key, Err(LedgerError::AuditKey { .. })));
    /// # Ok::<(), LedgerError>(()) }).unwrap();
    /// ```
    pub async fn open(&self) -> Result<(), LedgerError> {
        self.opened().await?;
        Ok(())
    }

    /// Has the store note at once which [audit key](Self::audit_key) it has, and not only with its first ask. A program that makes a
    /// store for others calls this, so that no process without the key is the first to write into it.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when the store cannot be written.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, LedgerError, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// Ledger::new(store.clone()).audit_key(b"the key").note_key().await?;
    ///
    /// let without = Ledger::new(store).open().await;
    /// assert!(matches!(without, Err(LedgerError::AuditKey { .. })));
    /// # Ok::<(), LedgerError>(()) }).unwrap();
    /// ```
    pub async fn note_key(&self) -> Result<(), LedgerError> {
        self.opened().await?;
        if self.has_said() { Ok(()) } else { self.say().await }
    }

    /// The store, once it is known to be one for this handle.
    pub(in crate::ledger) async fn opened(&self) -> Result<&dyn Store, LedgerError> {
        if !self.opening.is_opened() {
            self.look().await?;
        }
        Ok(&*self.unopened)
    }

    /// Looks at what the store says. Returns whether it says anything.
    async fn look(&self) -> Result<bool, LedgerError> {
        let store = &self.unopened;
        let own = self.linker.key_id();
        let said = match there(store.get(key::ROW).await?)? {
            Some(found) => {
                let said = key::said(&found)?;
                if said.id != own {
                    return Err(refused(said.id.as_deref(), own.as_deref()));
                }
                key::read(&found, &self.linker)?;
                true
            }
            // It is empty, or an earlier version has written it.
            None => {
                let first = store.heads("", 1).await?.pop();
                if first.is_some_and(|first| !self.linker.knows(&first)) {
                    return Err(unsaid(own.as_deref()));
                }
                false
            }
        };
        if let Some(path) = &self.opening.anchor {
            anchor::check(&**store, path).await?;
        }
        self.opening.set_opened(said);
        Ok(said)
    }

    /// Has the store say which key it has, unless it says so already.
    pub(in crate::ledger) async fn say(&self) -> Result<(), LedgerError> {
        let mut noted = Ok(());
        let mut work = |now, found: Vec<Lookup>| {
            let mut writing = Writing::new(&self.linker, now);
            if found.first() == Some(&Lookup::Nothing) {
                noted = key::note(&mut writing, self.worker_name());
            }
            if noted.is_ok() { writing.finish().0 } else { Writes::default() }
        };
        self.unopened.transact(&[key::ROW.to_owned()], &self.linker, &mut work).await?;
        noted?;
        // Another process may have been first.
        self.look().await.map(drop)
    }

    /// Compares what the store says in a transaction with the key of this handle. `has_said` is whether it said so before.
    pub(in crate::ledger) fn still_says(
        &self,
        has_said: bool,
        said: Lookup,
    ) -> Result<(), LedgerError> {
        let own = self.linker.key_id();
        let problem = match there(said)? {
            Some(found) => match key::said(&found)?.id {
                said if said == own => return Ok(()),
                said => refused(said.as_deref(), own.as_deref()),
            },
            None if has_said => LedgerError::changed(key::ROW, key::GONE),
            None => return Ok(()),
        };
        // The next reading is refused, too.
        self.opening.set_opened(false);
        Err(problem)
    }

    pub(in crate::ledger) fn has_said(&self) -> bool {
        self.opening.is_opened()
    }

    /// Reads the row with this id, which is compared with its last entry.
    pub(in crate::ledger) async fn one<T>(
        &self,
        id: &str,
        read: impl Fn(&Found, &Linker) -> Result<Option<T>, LedgerError>,
    ) -> Result<Option<T>, LedgerError> {
        let Some(found) = there(self.opened().await?.get(id).await?)? else { return Ok(None) };
        match read(&found, &self.linker) {
            Err(error) => {
                match vouching::vouch(self, std::slice::from_ref(&found.row.run)).await? {
                    true => read(&found, &self.linker),
                    false => Err(error),
                }
            }
            read => read,
        }
    }

    /// Lists the rows that match the filter, each of which is compared with its last entry.
    pub(in crate::ledger) async fn listed<T>(
        &self,
        filter: &Filter,
        read: impl Fn(&Found, &Linker) -> Result<T, LedgerError>,
    ) -> Result<Listed<T>, LedgerError> {
        let rows = self.opened().await?.list(filter).await?;
        let listed = Listed::of(&rows, |found| read(found, &self.linker));
        if listed.refused.is_empty() {
            return Ok(listed);
        }
        let runs: Vec<_> = rows.iter().map(|found| found.row.run.clone()).collect();
        match vouching::vouch(self, &runs).await? {
            true => Ok(Listed::of(&rows, |found| read(found, &self.linker))),
            false => Ok(listed),
        }
    }

    /// Adds an audit key to the store, or exchanges the one that it has: verifies the whole store with the key of this
    /// handle, and writes one entry under the new key that names the end of every log. The entries before count as they
    /// did; pending asks are decided and claimed by processes with the new key.
    ///
    /// End the other processes that use the store first: what they write after this with the earlier key is refused. This
    /// handle is refused from then on, too.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// let without = Ledger::new(store.clone());
    /// let ask = without.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// assert_eq!(without.rekey(b"a key of 32 bytes, from a secret", "ann").await?.entries, 1);
    ///
    /// let keyed = Ledger::new(store).audit_key(b"a key of 32 bytes, from a secret");
    /// let yes = Answer::Approve { args: None };
    /// let decided = keyed.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await?;
    /// assert_eq!(decided, Decided::Won { again: false });
    /// assert!(without.get(ask.ask.id()).await.is_err(), "the store has a key now");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError::Broken`] when the store does not verify, and [`LedgerError::AuditKey`] when it has this key already
    /// or was written to meanwhile. Nothing has changed then, unless the error says so.
    pub async fn rekey(&self, key: &[u8], by: &str) -> Result<Rekeyed, LedgerError> {
        rekey::rekey(self, key, by).await
    }

    /// The entries that were made without the audit key of this handle, whatever the store says about its key: by a process
    /// that had none, or by any program that can write to the store. A store with such entries is
    /// [broken](LedgerError::Broken). Show them to a person: [`rekey_accepting`](Self::rekey_accepting) takes those that
    /// the person knows.
    ///
    /// Entries that were changed are not among them, nor those of another key. Without a key there are none.
    ///
    /// # Errors
    /// [`LedgerError::Store`] when the store cannot be read.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new()).audit_key(b"the key");
    /// assert!(ledger.keyless_entries().await?.is_empty());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn keyless_entries(&self) -> Result<Vec<Entry>, LedgerError> {
        rekey::keyless_entries(self).await
    }

    /// The asks that these entries are about, as they would count if the entries were accepted: what an entry says of itself
    /// is not what would run.
    ///
    /// # Errors
    /// [`LedgerError::Broken`] when a row is not in the state that its last entry says.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// Ledger::new(store.clone()).park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// let keyed = Ledger::new(store).audit_key(b"the key");
    /// let keyless = keyed.keyless_entries().await?;
    /// assert_eq!(keyed.asks_of(&keyless).await?[0].ask.tool(), "rm");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn asks_of(&self, keyless: &[Entry]) -> Result<Vec<AskRecord>, LedgerError> {
        let linker = self.linker.taking(keyless);
        let about: BTreeSet<_> = keyless.iter().filter_map(Entry::about).collect();
        let mut asks = Vec::new();
        for id in about {
            let Some(found) = there(self.unopened.get(&id).await?)? else { continue };
            if found.row.kind == RowKind::Ask {
                asks.push(codec::read(&found, &linker)?);
            }
        }
        Ok(asks)
    }

    /// Exchanges the audit key as [`rekey`](Self::rekey) does, and takes these entries as they are, which were made without
    /// the key of this handle. They count from then on as if they had been made with it, so a person has to know each of
    /// them: anyone who can write to the store can have made them.
    ///
    /// Only these entries, as they are now: one that was written since they were [listed](Self::keyless_entries) is refused.
    ///
    /// # Errors
    /// As [`rekey`](Self::rekey).
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// let ledger = Ledger::new(store.clone()).audit_key(b"the key");
    /// ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// let shown = ledger.keyless_entries().await?;
    /// ledger.rekey_accepting(b"another key", "ann", &shown).await?;
    /// assert!(Ledger::new(store).audit_key(b"another key").verify(&Default::default()).await.is_ok());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn rekey_accepting(
        &self,
        key: &[u8],
        by: &str,
        keyless: &[Entry],
    ) -> Result<Rekeyed, LedgerError> {
        let mut ledger = self.clone();
        ledger.linker = self.linker.taking(keyless);
        rekey::rekey(&ledger, key, by).await
    }

    /// Keeps the last [checkpoint](Self::checkpoint) in a file, and refuses a store that is behind it: one that was
    /// restored from an earlier copy, or whose log of the checkpoints was cut or rewritten. Keep the file where a program
    /// that can write to the store cannot write, such as on another machine's disk.
    ///
    /// The file is written by each checkpoint of this handle, and read when the store is [opened](Self::open). Where it
    /// does not exist yet there is nothing to compare with; its directory has to exist.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, LedgerError, MemoryStore};
    ///
    /// # let elsewhere = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let file = elsewhere.path().join("anchor.json");
    /// let ledger = Ledger::new(MemoryStore::new()).anchor(&file);
    /// ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// ledger.checkpoint().await?;
    ///
    /// let emptied = Ledger::new(MemoryStore::new()).anchor(&file);
    /// assert!(matches!(emptied.open().await, Err(LedgerError::Behind { .. })));
    /// # Ok::<(), LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn anchor(mut self, path: impl AsRef<Path>) -> Self {
        self.opening = Arc::new(Opening::anchored(Some(path.as_ref().to_owned())));
        self
    }
}

const NAME_IT: &str =
    "name its file with `--audit-key-file`, or as `audit_key_file` in the configuration";
const ADD_IT: &str = "`countersign asks rekey`, which a person runs on a terminal";

/// The error of a process whose key is not the one of the store.
fn refused(said: Option<&str>, own: Option<&str>) -> LedgerError {
    let problem = match (said, own) {
        (Some(said), None) => {
            format!("the store has the audit key `{said}`, and this process has none: {NAME_IT}")
        }
        (Some(said), Some(own)) => format!(
            "the store has the audit key `{said}`, and this process has the key `{own}`: {NAME_IT}. The key of a store is \
             changed with {ADD_IT}"
        ),
        (None, own) => format!(
            "the store says that it has no audit key, and this process has the key `{}`. If it ever had one, another program \
             has rewritten the store, and nothing in it counts: put back a backup. If it never had one, leave the key out, or \
             add it to the store with {ADD_IT}",
            own.unwrap_or_default()
        ),
    };
    LedgerError::AuditKey { problem }
}

/// The error about a store that does not say which key it has, and was written with another one.
fn unsaid(own: Option<&str>) -> LedgerError {
    let problem = match own {
        None => format!(
            "the log of the store was written with an audit key, or changed, and this process has no key: {NAME_IT}"
        ),
        Some(own) => format!(
            "the log of the store was not written with the audit key of this process, `{own}`: leave the key out, or add it \
             to the store with {ADD_IT}"
        ),
    };
    LedgerError::AuditKey { problem }
}
