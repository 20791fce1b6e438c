//! The record of a grant, and its row: like an ask's, with an entry in a log of its own for each event.
//!
//! Making, using, expiring and revoking a grant each write the row and an entry. So the log alone tells how often a
//! grant was used and by which calls. A grant has a log of its own, as it outlives runs, and pruning a run must not
//! remove it.
//!
//! The state column of a standing grant is `standing` and a key made of the tool and the scope. A store has an index
//! for that column, so it finds the grants that may answer a call without knowing what a grant is.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::grant::Grant;
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::{AskRecord, GrantUse};
use crate::ledger::error::LedgerError;
use crate::ledger::logs::events::GRANTS;
use crate::ledger::rows::codec::{VERSION, Writing, digest, keepable, logged};
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Found, Row, RowKind};

/// The state of a grant.
///
/// ```
/// use countersign::ledger::GrantState;
/// assert_eq!(GrantState::UsedUp.as_str(), "used_up");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantState {
    /// The grant answers calls.
    Standing,
    /// All its uses were taken.
    UsedUp,
    /// Its time is over. A grant whose time is over answers nothing, also before this is recorded.
    Expired,
    /// A person has revoked it.
    Revoked,
}

impl GrantState {
    /// The name of the state in the log and in JSON.
    ///
    /// ```
    /// use countersign::ledger::GrantState;
    /// assert_eq!(GrantState::UsedUp.as_str(), "used_up");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::UsedUp => "used_up",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A grant as the ledger stores it: with its makers, its uses and its state.
///
/// ```
/// use countersign::deferred::metadata::GRANTABLE;
/// use countersign::ledger::{Ask, Grant, GrantScope, GrantState, Ledger, MemoryStore};
/// use countersign::Decision;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new()).session("s1");
/// let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
/// let ask = |run| Ask::new(run, "root/c1", "send_mail").with_questions(asked.questions().to_vec());
/// let once = Grant::of(&ask("run-1"), GrantScope::Session("s1".into()))?.with_uses(1);
/// let made = ledger.make_grant(once, &["ann"]).await?;
/// assert!(made.stands(ledger.now().await?));
///
/// ledger.answer_by_grant(&ask("run-2")).await?.expect("the grant answers it");
/// let used = ledger.grant(&made.id).await?.unwrap();
/// assert_eq!((used.used, used.state), (1, GrantState::UsedUp));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrantRecord {
    version: u64,
    /// The id of the grant, which the approvals that it gives name.
    pub id: String,
    /// The calls that the grant answers.
    pub grant: Grant,
    /// The people whose vote the grant is.
    pub by: Vec<String>,
    /// The time when the grant was made, by the store's clock.
    pub made_at: Millis,
    /// The time when the grant expires, by the store's clock: from then on it answers nothing.
    pub until: Millis,
    /// The number of calls that the grant has answered.
    pub used: u32,
    /// The time when the grant last answered a call, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Millis>,
    /// The state of the grant, as it is recorded.
    pub state: GrantState,
    /// The person who revoked the grant, if it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}

impl GrantRecord {
    pub(in crate::ledger) fn new(id: String, grant: Grant, by: Vec<String>, now: Millis) -> Self {
        Self {
            version: VERSION,
            id,
            by,
            made_at: now,
            until: now.saturating_add(grant.valid_for()),
            used: 0,
            used_at: None,
            state: GrantState::Standing,
            revoked_by: None,
            grant,
        }
    }

    /// Returns `true` if the grant answers calls at the time `now` of the store's clock
    /// ([`Ledger::now`](crate::ledger::Ledger::now)). A grant that is dated in the future does not.
    #[must_use]
    pub fn stands(&self, now: Millis) -> bool {
        self.state == GrantState::Standing && self.is_in_time(now)
    }

    fn is_in_time(&self, now: Millis) -> bool {
        now < self.until && !AskRecord::is_of_future(self.made_at, now)
    }

    /// Returns `true` if an approval that the grant gave earlier may still be claimed at `now`. The use of the
    /// approval is taken, so that a grant which is used up does not withdraw it.
    pub(super) fn supports(&self, now: Millis) -> bool {
        self.is_in_time(now) && matches!(self.state, GrantState::Standing | GrantState::UsedUp)
    }

    /// Takes one use.
    pub(in crate::ledger) fn take(&mut self, now: Millis) {
        self.used = self.used.saturating_add(1);
        self.used_at = Some(now);
        if self.grant.uses().is_some_and(|uses| self.used >= uses) {
            self.state = GrantState::UsedUp;
        }
    }

    /// The mark of the grant on the decisions that it makes.
    pub(super) fn mark(&self) -> GrantUse {
        GrantUse { id: self.id.clone(), made_at: self.made_at }
    }
}

/// The id of the row of a grant.
pub(in crate::ledger) fn row_id(id: &str) -> String {
    format!("grant:{id}")
}

/// The log of a grant, which is also the run of its row.
pub(super) fn log_of(id: &str) -> String {
    format!("{GRANTS}{id}")
}

/// The state column: a standing grant has the key by which a store finds it.
pub(in crate::ledger) fn column(key: &str) -> String {
    format!("standing {key}")
}

fn state_of(record: &GrantRecord) -> String {
    match record.state {
        GrantState::Standing => column(&record.grant.key()),
        state => state.as_str().to_owned(),
    }
}

/// Writes the row of a grant, and a log entry for the event. `ask` is the ask that a use has answered.
pub(in crate::ledger) fn note(
    writing: &mut Writing<'_>,
    record: &GrantRecord,
    event: &str,
    (by, ask): (Option<&str>, Option<&str>),
) -> Result<(), LedgerError> {
    let row = keepable(Row {
        id: row_id(&record.id),
        kind: RowKind::Grant,
        run: log_of(&record.id),
        state: state_of(record),
        created_at: record.made_at,
        due_at: None,
        requester: String::new(),
        doc: json!({"version": VERSION, "grant": record}).to_string(),
    })?;
    let body = json!({
        "answered": ask,
        "at": writing.now,
        "by": by,
        "event": event,
        "grant": record.id,
        "row": digest(&row),
        "state": record.state,
        "tool": record.grant.tool(),
        "used": record.used,
    });
    writing.append(row, body);
    Ok(())
}

/// Reads a grant from its row, after the row was compared with the last log entry about it (rule L8).
pub(in crate::ledger) fn read(found: &Found, by: &Linker) -> Result<GrantRecord, LedgerError> {
    let (row, record) = (&found.row, logged::<GrantRecord>(found, RowKind::Grant, by)?);
    let own = (row_id(&record.id), log_of(&record.id), state_of(&record), record.made_at);
    let columns = (row.id.clone(), row.run.clone(), row.state.clone(), row.created_at);
    if own != columns || row.due_at.is_some() || !row.requester.is_empty() {
        return Err(LedgerError::changed(&row.id, "it holds another grant"));
    }
    Ok(record)
}
