//! Sets of parts that people accept or deny, for surfaces.

use std::collections::BTreeMap;

use serde_json::Value;

use super::accepted::Accepted;
use super::{ACCEPT_TOOLS, FoundProposal, MAX_PROPOSALS, Proposals, layer};
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Decided, Ledger, LedgerError};

/// A set of tools that a server offers and a person has to accept, or has decided about; with what the server says about
/// itself, and the files and packages by which it is started.
///
/// ```
/// use countersign::ledger::{Ledger, MemoryStore};
/// use countersign_mcp::Proposal;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// for proposal in Proposal::list(&ledger).await? {
///     println!("{}: {} tools are new", proposal.server(), proposal.added().count());
/// }
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Proposal {
    record: AskRecord,
}

impl Proposal {
    /// The proposals of all servers that have no decision yet, newest first.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    ///
    /// A proposal stays until it is decided, without a deadline.
    pub async fn list(ledger: &Ledger) -> Result<Vec<Self>, LedgerError> {
        Ok(of_state(ledger, AskState::Pending).await?.into_iter().map(Self::of).collect())
    }

    /// The proposals that were denied, as long as some of each is not accepted in another one; of each server the newest
    /// first. They are not proposed again by themselves: [`accept`](Self::accept) is the way back.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::Proposal;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// for denied in Proposal::denied(&ledger).await? {
    ///     println!("{}: denied in ask {}", denied.server(), denied.id());
    /// }
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn denied(ledger: &Ledger) -> Result<Vec<Self>, LedgerError> {
        let mut servers = BTreeMap::<String, Vec<(u32, AskRecord)>>::new();
        for record in of_state(ledger, AskState::Decided).await? {
            if let Some((set, generation)) = place(&record) {
                servers.entry(set).or_default().push((generation, record));
            }
        }
        let mut denied = Vec::new();
        for mut records in servers.into_values() {
            records.sort_by_key(|(generation, _)| *generation);
            let mut accepted = Accepted::default();
            for (_, record) in &records {
                accepted.fold(record);
            }
            let last = records.into_iter().rev().map(|(_, record)| record);
            let denials = last.filter(|record| accepted.is_denied_in(record.ask.id()));
            denied.extend(denials.map(Self::of));
        }
        Ok(denied)
    }

    fn of(record: AskRecord) -> Self {
        Self { record }
    }

    /// Accepts the tools as this person, exactly as they are shown here.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was accepted.
    ///
    /// We approve with the fingerprint of what this value holds: a set that has changed since it was listed is not
    /// accepted. A second person who accepts is told that it was decided before (rule L1). We cancel pending asks of
    /// calls that were asked about only because the tools were not accepted. The client makes such a call again.
    ///
    /// A set that was [denied](Self::denied) is proposed again, and accepted. One that is pending is cancelled for it,
    /// and comes back, without what is accepted, when the server is looked at next.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_mcp::Proposal;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// for proposal in Proposal::list(&ledger).await? {
    ///     let changed: Vec<_> = proposal.changed().collect();
    ///     if changed.is_empty() && proposal.programs().count() == 0 {
    ///         proposal.accept(&ledger, "ann").await?;
    ///     }
    /// }
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn accept(&self, ledger: &Ledger, who: &str) -> Result<Decided, LedgerError> {
        let again = match self.is_denied() {
            true => self.proposed_again(ledger).await?,
            false => None,
        };
        let record = again.as_ref().unwrap_or(&self.record);
        let yes = Answer::Approve { args: None };
        let decided = ledger.decide(record.ask.id(), &record.fingerprint, who, yes).await?;
        if let (Decided::Won { .. }, Some((set, _))) = (&decided, place(record)) {
            layer::close_asks(ledger, &set).await;
        }
        Ok(decided)
    }

    /// Proposes the same set again, behind all proposals of the server.
    async fn proposed_again(&self, ledger: &Ledger) -> Result<Option<AskRecord>, LedgerError> {
        let Some((set, denied)) = place(&self.record) else { return Ok(None) };
        let principal = self.record.ask.principal().map(str::to_owned);
        let proposals = Proposals { set, principal };
        let args = self.record.ask.args();
        for generation in denied.saturating_add(1)..MAX_PROPOSALS {
            if matches!(proposals.get(ledger, generation).await?, FoundProposal::Pruned) {
                continue;
            }
            let record = proposals.park(ledger, generation, args).await?;
            if record.state != AskState::Pending {
                continue;
            }
            if record.ask.args() == args {
                return Ok(Some(record));
            }
            let why = "countersign: a set that was denied before is accepted";
            ledger.cancel(record.ask.id(), why).await?;
        }
        Ok(None)
    }

    /// The id of the ask in the ledger.
    #[must_use]
    pub fn id(&self) -> &str {
        self.record.ask.id()
    }

    /// The name of the server in the user's configuration.
    #[must_use]
    pub fn server(&self) -> &str {
        self.record.ask.args().str("server").unwrap_or_default()
    }

    /// Returns `true` if a person has denied this set.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.record.is_denied()
    }

    /// The new tools, each with its definition.
    ///
    /// Each value is the definition as the server lists it.
    pub fn added(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("added")
    }

    /// The changed tools, each with the accepted definition and the present one.
    ///
    /// Each value is `{"description": {"was": …, "now": …}}`, with the parts that differ.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("changed").map(|(name, it)| (name, it.get("difference").unwrap_or(it)))
    }

    /// The names of the tools that the server does not offer any more, in a proposal of the first form. Later ones
    /// need no person for a set that merely lacks tools.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        let removed = self.record.ask.args().get("removed").and_then(Value::as_array);
        removed.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The new and changed texts of the server about itself: `instructions`, `title` and `version`.
    ///
    /// Each value is `{"was": …, "now": …}`, without `was` where nothing was accepted before.
    pub fn about(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("about")
    }

    /// The new and changed files and packages by which the server is started.
    ///
    /// Each value is `{"was": …, "now": …}`: the digest of a file, or if the version of a package is named.
    pub fn programs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("programs")
    }

    fn part(&self, key: &str) -> impl Iterator<Item = (&str, &Value)> {
        let part = self.record.ask.args().get(key).and_then(Value::as_object);
        part.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }
}

async fn of_state(ledger: &Ledger, state: AskState) -> Result<Vec<AskRecord>, LedgerError> {
    let mut records = ledger.list(Some(state), u32::MAX).await?.records;
    records.retain(|record| record.ask.tool() == ACCEPT_TOOLS);
    Ok(records)
}

/// The server that a proposal is about, and its number.
fn place(record: &AskRecord) -> Option<(String, u32)> {
    let (set, generation) = record.ask.run().rsplit_once('-')?;
    Some((set.to_owned(), generation.parse().ok()?))
}
