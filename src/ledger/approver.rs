//! The person at a surface, and the asks that this person may see and decide.

use std::fmt;
use std::sync::Arc;

use super::asks::record::AskRecord;

type AskFilter = Arc<dyn Fn(&AskRecord) -> bool + Send + Sync>;

/// A person at a surface, and which asks this person may see and decide ([`Surface`](super::Surface)).
///
/// The name is what the ledger records with a decision, and compares with the requester and with other approvers
/// (rule L1). It has to come from a login, never from what the client says about itself.
///
/// ```
/// use countersign::ledger::Approver;
///
/// // The on-call team sees the asks of its own agent, and decides about everything but money.
/// let ann = Approver::new("ann@example.com")
///     .with_sees(|record| record.ask.path().starts_with("ops/"))
///     .with_decides(|record| record.ask.tool() != "transfer");
/// assert_eq!(ann.name(), "ann@example.com");
/// ```
#[derive(Clone)]
pub struct Approver {
    name: Arc<str>,
    note: Option<Arc<str>>,
    sees: Option<AskFilter>,
    decides: Option<AskFilter>,
    audits: bool,
}

impl Approver {
    /// A person with this name who may see and decide every ask, and may verify and export the log.
    ///
    /// ```
    /// use countersign::ledger::Approver;
    /// assert_eq!(Approver::new("ann").with_audit(false).name(), "ann");
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into().into(), note: None, sees: None, decides: None, audits: true }
    }

    /// Limits what this person sees to the asks for which the function returns `true`; others are unknown to them, in
    /// lists, in the history and by their ids. As the log is of all asks, this also takes away the right to audit:
    /// [`with_audit`](Self::with_audit) gives it back.
    ///
    /// The function is called for each ask of each request, also for ten thousand in a list: it has to be quick, and to
    /// decide from the record alone.
    ///
    /// ```
    /// use countersign::ledger::{Approver, Ask, Ledger, MemoryStore, Surface};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let parked = ledger.park(Ask::new("run-1", "root/c1", "transfer")).await?;
    /// let bob = Approver::new("bob").with_sees(|record| record.ask.tool() != "transfer");
    /// // For bob there is no such ask, also by its id.
    /// assert_eq!(Surface::new(ledger).find(&bob, parked.ask.id()).await?, None);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_sees(mut self, sees: impl Fn(&AskRecord) -> bool + Send + Sync + 'static) -> Self {
        self.sees = Some(Arc::new(sees));
        self.audits = false;
        self
    }

    /// Limits what this person decides to the asks for which the function returns `true`. The others are shown without
    /// buttons, and a decision about one is refused ([`Decided::OthersDecide`](super::Decided::OthersDecide)).
    ///
    /// An ask that cannot be seen cannot be decided either, whatever this function says.
    #[must_use]
    pub fn with_decides(
        mut self,
        decides: impl Fn(&AskRecord) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.decides = Some(Arc::new(decides));
        self
    }

    /// Sets whether this person may verify and export the log of the whole ledger.
    ///
    /// The export holds the arguments of all calls.
    #[must_use]
    pub fn with_audit(mut self, audits: bool) -> Self {
        self.audits = audits;
        self
    }

    /// Says at the surface what the name is worth, where no login stands behind it.
    ///
    /// ```
    /// use countersign::ledger::Approver;
    /// let ann = Approver::new("ann").with_note("not checked: anyone who opens this page decides in this name");
    /// assert!(ann.note().is_some_and(|note| note.starts_with("not checked")));
    /// ```
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into().into());
        self
    }

    /// The worth of the name, where the program says so.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The name of this person, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether this person may see the ask.
    #[must_use]
    pub fn sees(&self, record: &AskRecord) -> bool {
        self.sees.as_ref().is_none_or(|sees| sees(record))
    }

    /// Tells whether this person may see every ask, as nothing limits them ([`with_sees`](Self::with_sees)).
    #[must_use]
    pub fn sees_all(&self) -> bool {
        self.sees.is_none()
    }

    /// Tells whether this person may see the ask and decide it.
    #[must_use]
    pub fn decides(&self, record: &AskRecord) -> bool {
        self.sees(record) && self.decides.as_ref().is_none_or(|decides| decides(record))
    }

    /// Tells whether this person may verify and export the log of the whole ledger.
    #[must_use]
    pub fn audits(&self) -> bool {
        self.audits
    }
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approver").field("name", &self.name).finish_non_exhaustive()
    }
}
