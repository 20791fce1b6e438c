//! Making, listing, revoking and using grants (rules G1, G2).
//!
//! # Using a grant
//!
//! ```text
//!  the ask is new? ──no──► decided by a grant before: the same answer, no second use (a worker died in between)
//!       │ yes
//!  candidates: standing grants for the tool in the run, the session and the project, that seem to cover it
//!       │
//!  one transaction over ask, run and grant:
//!       the ask is still new, the run is not dropped, the grant still stands and covers it,
//!       the votes of its makers are enough for the quorum
//!         ─► ask parked and decided, use taken, three entries
//! ```
//!
//! We read the list of candidates without a transaction, so it may be old, and look again at everything that counts
//! inside. If the row of a grant is refused (rule L8), we leave it out, log it, and ask a person: a broken row must
//! not stop a run, and must not answer anything either.
//!
//! # Claiming under a grant
//!
//! When the execution is claimed, we look at the answer of the grant again, in the same transaction. In between a
//! person may have revoked the grant, its time may be over, or a pinned file may have changed. A grant that is *used
//! up* still supports the approvals that it gave, as their uses are taken.
//!
//! We read files outside of the transaction, on a blocking thread, as a disk may be slow and a transaction holds
//! locks. So a file may change between the claim and the run: we promise the content at the time of the claim.

use super::grant;
use super::grant::Grant;
use super::record;
use super::record::{GrantRecord, GrantState, column, note, row_id};
use crate::deferred::Answer;
use crate::ledger::asks::ask::{Ask, Millis};
use crate::ledger::asks::record::{AskRecord, AskState};
use crate::ledger::asks::results::{Claimed, Decided};
use crate::ledger::asks::transitions;
use crate::ledger::asks::transitions::Deciding;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::events;
use crate::ledger::rows::change::{refuse_ahead, transact};
use crate::ledger::rows::codec::{Writing, read as read_ask, there};
use crate::ledger::rows::listing::Listed;
use crate::ledger::rows::predecessor::Predecessor;
use crate::ledger::rows::run_record;
use crate::ledger::scope;
use crate::ledger::scope::GrantScope;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Filter, Found, Lookup, RowKind};

/// The result of revoking a grant.
///
/// ```
/// use countersign::ledger::{Ledger, MemoryStore, RevokedGrant};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// assert_eq!(ledger.revoke_grant("no-such-grant", "ann").await?, RevokedGrant::UnknownGrant);
/// assert!(ledger.grants(10).await?.records.is_empty() && ledger.expire_grants().await?.is_empty());
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevokedGrant {
    /// The grant is revoked: it answers nothing more, and an approval that it gave and that is not claimed yet is void.
    Revoked {
        /// `true` if it was revoked before.
        again: bool,
    },
    /// The grant was used up or had expired already.
    Over {
        /// The state that the grant is in.
        state: GrantState,
    },
    /// There is no grant with this id.
    UnknownGrant,
}

impl Ledger {
    /// Makes a grant: an answer in advance by these people, whose votes it gives to each call that it answers. A grant
    /// is never changed afterwards: a narrower or wider one is another grant. It answers later calls; calls that are
    /// pending already stay with the people.
    ///
    /// The caller vouches for the names, as with [`decide`](Self::decide).
    ///
    /// ```
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope, Ledger, MemoryStore};
    /// use countersign::Decision;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "send_mail").with_questions(asked.questions().to_vec());
    /// let made = ledger.make_grant(Grant::of(&ask, GrantScope::Run("run-1".into()))?, &["ann"]).await?;
    /// assert_eq!(ledger.grants(10).await?.records, [made.clone()]);
    /// ledger.revoke_grant(&made.id, "bob").await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError::Unkeepable`] without makers, or with a blank name; [`LedgerError::Store`]. No grant was made.
    pub async fn make_grant(&self, grant: Grant, by: &[&str]) -> Result<GrantRecord, LedgerError> {
        let refused = |problem: &str| LedgerError::Unkeepable {
            id: "grant".to_owned(),
            problem: problem.to_owned(),
        };
        if by.is_empty() || by.iter().any(|name| self.names.is_no_person(name)) {
            return Err(refused("a grant is by people who can be named"));
        }
        let mut makers: Vec<String> = Vec::new();
        for name in by {
            if !makers.iter().any(|maker| self.names.are_one(maker, name)) {
                makers.push((*name).to_owned());
            }
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let id = id.get(..12).unwrap_or(&id).to_owned();
        let ids = [row_id(&id)];
        transact(self, &ids, |writing, rows| {
            if rows.first() != Some(&Lookup::Nothing) {
                return Err(refused("there is a grant with this id: make it again"));
            }
            let record = GrantRecord::new(id.clone(), grant.clone(), makers.clone(), writing.now);
            note(writing, &record, "grant_made", (Some(&makers.join(" and ")), None))?;
            Ok(record)
        })
        .await
    }

    /// The grant with this id, as it is recorded; `None` when there is no such grant.
    ///
    /// # Errors
    /// [`LedgerError`] when the store or the row cannot be read.
    pub async fn grant(&self, id: &str) -> Result<Option<GrantRecord>, LedgerError> {
        let read = |found: &Found, by: &Linker| record::read(found, by).map(Some);
        self.one(&row_id(id), read).await
    }

    /// Lists the grants in every state, newest first.
    ///
    /// # Errors
    /// [`LedgerError::Store`]. A row that cannot be read is among the refused ones, and answers nothing.
    pub async fn grants(&self, limit: u32) -> Result<Listed<GrantRecord>, LedgerError> {
        let filter = Filter { kind: Some(RowKind::Grant), limit: Some(limit), ..Filter::default() };
        self.listed(&filter, record::read).await
    }

    /// A line about the grants that stand, for a surface to print when a session begins; `None` when none does.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// assert_eq!(Ledger::new(MemoryStore::new()).standing_line().await?, None);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    pub async fn standing_line(&self) -> Result<Option<String>, LedgerError> {
        let (listed, now) = (self.grants(u32::MAX).await?, self.now().await?);
        let standing: Vec<_> = listed.records.iter().filter(|grant| grant.stands(now)).collect();
        let Some(oldest) = standing.iter().map(|grant| grant.made_at).min() else {
            return Ok(None);
        };
        let (count, days) = (standing.len(), now.saturating_sub(oldest) / (24 * 3600 * 1000));
        let unused = standing.iter().filter(|grant| grant.used == 0).count();
        let grants = if count == 1 { "grant" } else { "grants" };
        Ok(Some(format!(
            "{count} standing {grants}, the oldest {days} days old, {unused} never used: \
             `countersign grants list` shows them"
        )))
    }

    /// Revokes a grant. From then on it answers nothing, in no process, and approvals that it gave are void unless
    /// their calls have been claimed.
    ///
    /// # Errors
    /// [`LedgerError`]; the grant is unchanged.
    pub async fn revoke_grant(&self, id: &str, by: &str) -> Result<RevokedGrant, LedgerError> {
        self.on_grant(id, |writing, mut record| {
            if writing.now >= record.until && record.state == GrantState::Standing {
                expire(writing, &mut record)?;
            }
            match record.state {
                GrantState::Revoked => return Ok(RevokedGrant::Revoked { again: true }),
                GrantState::Expired => return Ok(RevokedGrant::Over { state: record.state }),
                // Approvals by a grant that is used up may be waiting for their claims.
                GrantState::Standing | GrantState::UsedUp => {}
            }
            record.state = GrantState::Revoked;
            record.revoked_by = Some(by.to_owned());
            note(writing, &record, "grant_revoked", (Some(by), None))?;
            Ok(RevokedGrant::Revoked { again: false })
        })
        .await
        .map(|revoked| revoked.unwrap_or(RevokedGrant::UnknownGrant))
    }

    /// Records of the grants whose time is over that they have expired, and returns their ids. They answer nothing in
    /// any case; a service calls this so that lists and the log show it.
    ///
    /// # Errors
    /// [`LedgerError`]; some grants may have been recorded as expired before the error.
    pub async fn expire_grants(&self) -> Result<Vec<String>, LedgerError> {
        let (mut expired, now) = (Vec::new(), self.now().await?);
        let over =
            |record: &GrantRecord| record.state == GrantState::Standing && now >= record.until;
        for record in self.grants(u32::MAX).await?.records.into_iter().filter(over) {
            let done = self.on_grant(&record.id, |writing, mut record| {
                let is_over = record.state == GrantState::Standing && writing.now >= record.until;
                if is_over {
                    expire(writing, &mut record)?;
                }
                Ok(is_over)
            });
            if done.await? == Some(true) {
                expired.push(record.id);
            }
        }
        Ok(expired)
    }

    /// Answers a new ask by a grant, if one covers it: the ask is parked and decided, and the use is taken, in one
    /// transaction, so that the ask is never pending. Returns the ask that a grant has decided, now or earlier; `None`
    /// leaves it to the people: park it then. A turn does this by itself; it is for surfaces that park asks.
    ///
    /// ```
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope, Ledger, MemoryStore};
    /// use countersign::Decision;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new()).session("s1");
    /// let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
    /// let ask = |run| Ask::new(run, "root/c1", "send_mail").with_questions(asked.questions().to_vec());
    /// assert!(ledger.answer_by_grant(&ask("run-1")).await?.is_none());
    /// ledger.make_grant(Grant::of(&ask("run-1"), GrantScope::Session("s1".into()))?, &["ann"]).await?;
    /// let granted = ledger.answer_by_grant(&ask("run-2")).await?.unwrap();
    /// assert!(granted.decision.unwrap().by_line().starts_with("by grant "));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; nothing has changed.
    pub async fn answer_by_grant(&self, ask: &Ask) -> Result<Option<AskRecord>, LedgerError> {
        self.answer_in_scope(ask, grant::agent_of(ask)).await
    }

    pub(in crate::ledger) async fn answer_in_scope(
        &self,
        ask: &Ask,
        agent: &str,
    ) -> Result<Option<AskRecord>, LedgerError> {
        answer_since(self, ask, agent, &Since::default()).await
    }

    async fn on_grant<T: Send>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut Writing<'_>, GrantRecord) -> Result<T, LedgerError> + Send,
    ) -> Result<Option<T>, LedgerError> {
        transact(self, &[row_id(id)], |writing, rows| match first(rows)? {
            Some(found) => {
                let record = record::read(&found, writing.linker())?;
                change(writing, record).map(Some)
            }
            None => Ok(None),
        })
        .await
    }
}

fn first(rows: Vec<Lookup>) -> Result<Option<Found>, LedgerError> {
    rows.into_iter().next().map_or(Ok(None), there)
}

fn expire(writing: &mut Writing<'_>, record: &mut GrantRecord) -> Result<(), LedgerError> {
    record.state = GrantState::Expired;
    note(writing, record, "grant_expired", (None, None))
}

/// Finds a grant for a new ask, and takes a use of it.
async fn answer(
    ledger: &Ledger,
    ask: &Ask,
    agent: &str,
    since: &Since,
) -> Result<Option<AskRecord>, LedgerError> {
    // An ask that a grant has answered before its worker died was parked then, and takes no second use.
    if let Some(record) = ledger.get(ask.id()).await? {
        let by_grant = record.decision.as_ref().is_some_and(|decision| decision.grant.is_some());
        let same = record.fingerprint == ask.fingerprint();
        // The state of the ask is not checked here: the claim of the approved pass finds out whether the call may run.
        return Ok(Some(record).filter(|_| by_grant && same));
    }
    let mut candidates = candidates(ledger, ask, agent).await?;
    if let Some(denied_at) = since.denied_at {
        candidates.retain(|it| it.made_at > denied_at && it.grant.is_exact());
    }
    for candidate in candidates {
        match use_of(ledger, ask, agent, (&candidate, since.behind.as_ref())).await {
            Ok(Some(record)) => return Ok(Some(record)),
            Ok(None) => {}
            Err(
                error @ (LedgerError::Changed { .. }
                | LedgerError::Unreadable { .. }
                | LedgerError::Broken(_)),
            ) => {
                tracing::warn!(target: "countersign::ledger", grant = candidate.id, %error, "a grant is refused, and a person is asked");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The asks about equal calls before.
#[derive(Default)]
pub(in crate::ledger) struct Since {
    /// The time when a person denied the last one.
    pub(in crate::ledger) denied_at: Option<Millis>,
    /// The ask before this one: while it is open, no grant answers.
    pub(in crate::ledger) behind: Option<Predecessor>,
}

/// The answer of a grant to a call; after a person's denial only that of a grant for exactly this call that was made since.
pub(in crate::ledger) async fn answer_since(
    ledger: &Ledger,
    ask: &Ask,
    agent: &str,
    since: &Since,
) -> Result<Option<AskRecord>, LedgerError> {
    events::refuse_name(ask.run(), ask.id())?;
    let ask = ask.clone().made_in(ledger.session.as_deref(), ledger.project.as_ref());
    answer(ledger, &ask, agent, since).await
}

/// The grants for the tool in the scopes of the ask that seem to cover it. The transaction that takes a use looks again.
async fn candidates(
    ledger: &Ledger,
    ask: &Ask,
    agent: &str,
) -> Result<Vec<GrantRecord>, LedgerError> {
    let run = GrantScope::Run(ask.run().to_owned());
    let session = ledger.session.as_deref().map(|id| GrantScope::Session(id.to_owned()));
    let project = ledger.project.clone().map(GrantScope::Project);
    let scopes = std::iter::once(run).chain(session).chain(project);
    let states = scopes.map(|scope| column(&grant::key(&ask.identity, &scope))).collect();
    let filter = Filter { kind: Some(RowKind::Grant), states, ..Filter::default() };
    let mut all = ledger.listed(&filter, record::read).await?;
    for refused in &all.refused {
        tracing::warn!(target: "countersign::ledger", row = refused.id, error = %refused.error, "a grant is refused");
    }
    all.records.retain(|record| record.grant.covers(ask, agent, &ledger.names));
    Ok(all.records)
}

/// Takes a use of this grant for an ask, if the grant still stands and its makers' votes are enough.
async fn use_of(
    ledger: &Ledger,
    ask: &Ask,
    agent: &str,
    (grant, behind): (&GrantRecord, Option<&Predecessor>),
) -> Result<Option<AskRecord>, LedgerError> {
    if !files_hold(&grant.grant).await {
        return Ok(None);
    }
    let mut ids = vec![ask.id().to_owned(), run_record::row_id(ask.run()), row_id(&grant.id)];
    let own = ids.len();
    ids.extend(behind.iter().flat_map(|behind| behind.ids()));
    transact(ledger, &ids, |writing, mut rows| {
        let (now, before) = (writing.now, rows.split_off(own.min(rows.len())));
        if behind.is_some() && Predecessor::open(writing, before)?.is_some() {
            return Ok(None);
        }
        let mut rows = rows.into_iter();
        let mut next = || rows.next().map_or(Ok(None), there);
        let (parked, run, found) = (next()?, next()?, next()?);
        let dropped = match run {
            Some(run) => run_record::read(&run, writing.linker())?.is_dropped(),
            None => false,
        };
        let Some(found) = found.filter(|_| parked.is_none() && !dropped) else { return Ok(None) };
        let mut grant = record::read(&found, writing.linker())?;
        if !grant.stands(now) || !grant.grant.covers(ask, agent, &ledger.names) {
            return Ok(None);
        }
        let mut record = AskRecord::new(ask.clone(), ledger.valid_for, now);
        let asked = record.clone();
        if !is_decided(ledger, &mut record, &grant, now) {
            return Ok(None);
        }
        let by = record.decision.as_ref().map(|decision| decision.by_line());
        grant.take(now);
        crate::ledger::rows::codec::check_run(ask.run())?;
        writing.note(&asked, "parked", None)?;
        writing.note(&record, "decided", by.as_deref())?;
        note(writing, &grant, "grant_used", (None, Some(ask.id())))?;
        writing.not_after(grant.until);
        Ok(Some(record))
    })
    .await
}

/// Gives the votes of a grant's makers to an ask. Returns whether they are enough for the decision.
///
/// The makers vote one by one, through the same function as people do. For example, a grant of two makers meets a
/// quorum of two, "not the requester" excludes a maker who is the requester, and a name that cannot be compared
/// decides nothing.
fn is_decided(ledger: &Ledger, record: &mut AskRecord, grant: &GrantRecord, now: Millis) -> bool {
    for by in &grant.by {
        let deciding = Deciding {
            fingerprint: record.fingerprint.clone(),
            by: by.clone(),
            answer: Answer::Approve { args: None },
            is_policy: false,
        };
        if let Decided::Won { .. } = transitions::decide(record, &deciding, &ledger.names, now) {
            break;
        }
    }
    match &mut record.decision {
        Some(decision) => {
            decision.grant = Some(grant.mark());
            true
        }
        None => false,
    }
}

/// Returns `true` if the files that the grant is bound to have the content that they had.
async fn files_hold(grant: &Grant) -> bool {
    if grant.files().is_empty() {
        return true;
    }
    let files = grant.files().clone();
    let same = move || {
        files.iter().all(|(path, digest)| scope::digest_of(path.as_ref()).as_ref() == Some(digest))
    };
    tokio::task::spawn_blocking(same).await.unwrap_or(false)
}

/// Claims an ask that a grant has approved: only while the grant holds (rule G2).
pub(in crate::ledger) async fn claim(
    ledger: &Ledger,
    id: &str,
    grant: &str,
    worker: &str,
    lease: Millis,
) -> Result<Claimed, LedgerError> {
    let known = ledger.grant(grant).await?;
    let files = match &known {
        Some(known) => files_hold(&known.grant).await,
        None => false,
    };
    let ids = [id.to_owned(), row_id(grant)];
    transact(ledger, &ids, |writing, rows| {
        let mut rows = rows.into_iter();
        let mut next = || rows.next().map_or(Ok(None), there);
        let (Some(found), given) = (next()?, next()?) else { return Ok(Claimed::UnknownAsk) };
        let given = given.map(|found| record::read(&found, writing.linker())).transpose()?;
        let mut record = read_ask(&found, writing.linker())?;
        if let Some(event) = transitions::pass_time(&mut record, writing.now) {
            writing.note(&record, event, None)?;
        }
        let decision = record.decision.as_ref();
        let by_it = decision.and_then(|it| it.grant.as_ref()).is_some_and(|it| it.id == grant);
        let holds =
            !by_it || files && given.as_ref().is_some_and(|given| given.supports(writing.now));
        let unclaimed = record.state == AskState::Decided;
        let repeats = record.state == AskState::Unknown && record.ask.idempotent;
        if !holds && (unclaimed || repeats) {
            if unclaimed {
                record.state = AskState::Expired;
                record.changed_at = writing.now;
                writing.note(&record, "grant_void", Some(worker))?;
            }
            return Ok(Claimed::Void { grant: grant.to_owned(), may_have_run: repeats });
        }
        refuse_ahead(&record, writing.now)?;
        let before = record.state;
        let claimed = transitions::claim(&mut record, (worker, lease), &ledger.names, writing.now);
        match &claimed {
            Claimed::Claimed { .. } => writing.note(&record, "claimed", Some(worker))?,
            Claimed::Aged { .. } if record.state != before => {
                writing.note(&record, "aged", Some(worker))?;
            }
            _ => {}
        }
        if let (Claimed::Claimed { .. }, Some(given)) = (&claimed, &given) {
            writing.not_after(given.until);
        }
        Ok(claimed)
    })
    .await
}
