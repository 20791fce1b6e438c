//! The handle on a ledger, and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::asks::ask::{Ask, Millis};
use super::asks::names::Names;
use super::asks::record::AskRecord;
use super::scope::Project;
use super::stores::ends::Opening;
use super::stores::linker::Linker;
use super::stores::store::Store;
use crate::call::RunContext;
use crate::panic::{Panicked, catch};

/// The default lease of a turn's claims: how long a claim lasts after its worker has died.
const LEASE: Duration = Duration::from_secs(30);

/// The time for which an approval is valid by default.
const VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// A handle on the asks and runs in a store. Cheap to clone; all handles over one store, in all processes, are one
/// ledger.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, Claimed, Decided, Ledger, MemoryStore};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file").with_args(countersign::Args::new().with("path", "a"))).await?;
///
/// let yes = Answer::Approve { args: None };
/// let first = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes.clone()).await?;
/// assert_eq!(first, Decided::Won { again: false });
/// let second = ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", yes).await?;
/// assert!(matches!(second, Decided::Lost(winner) if winner.by == ["ann"]));
///
/// let lease = std::time::Duration::from_secs(30);
/// let Claimed::Claimed { token } = ledger.claim(ask.ask.id(), "worker-1", lease).await? else { panic!() };
/// ledger.settle(ask.ask.id(), token, json!("deleted")).await?;
/// let again = ledger.claim(ask.ask.id(), "worker-2", lease).await?;
/// assert_eq!(again, Claimed::Settled { outcome: json!("deleted") });
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Ledger {
    /// The store, before it is known to be one for this handle ([`Ledger::open`]).
    pub(super) unopened: Arc<dyn Store>,
    pub(super) opening: Arc<Opening>,
    pub(super) linker: Linker,
    pub(super) worker: Arc<str>,
    pub(super) lease: Duration,
    pub(super) policy: Arc<Policy>,
    pub(super) asks_before_repeating: bool,
    pub(super) names: Names,
    /// Held while an ask is counted and parked, by one clone at a time.
    pub(super) parking: Arc<tokio::sync::Mutex<()>>,
    pub(super) valid_for: Option<Millis>,
    /// The session and the project in which calls are made, for grants.
    pub(super) session: Option<Arc<str>>,
    pub(super) project: Option<Project>,
}

/// Sets the requester, the deadline and the quorum of an ask before it is parked.
type Policy = dyn Fn(&RunContext, Ask) -> Ask + Send + Sync;

impl Ledger {
    /// A ledger over this store, with the default settings.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self {
            unopened: Arc::new(store),
            opening: Arc::default(),
            linker: Linker::default(),
            worker: uuid::Uuid::now_v7().to_string().into(),
            lease: LEASE,
            policy: Arc::new(|_, ask| ask),
            asks_before_repeating: false,
            names: Names::default(),
            parking: Arc::default(),
            valid_for: Some(millis(VALID_FOR)),
            session: None,
            project: None,
        }
    }

    /// Sets the name of this process in claims, which people are shown; by default a random one for each ledger value.
    ///
    /// Give each process a name of its own. Two processes of one name look like one in claims: "another worker executes
    /// this call" becomes "this call is being executed already".
    #[must_use]
    pub fn worker(mut self, name: impl Into<Arc<str>>) -> Self {
        self.worker = name.into();
        self
    }

    /// Sets the lease of a turn's claims, which is how long a claim lasts after its worker has died; 30 seconds by
    /// default. While a tool body runs, its lease is renewed.
    ///
    /// A short lease finds dead workers sooner and costs more renewals, one every third of its length for each running
    /// body and run. It must be longer than the worst pause of a process (a stopped virtual machine, a full disk): a
    /// worker that wakes up after its lease finds that its call is unknown, or was claimed by another one.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use std::time::Duration;
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).worker("worker-7").lease(Duration::from_secs(10));
    /// assert_eq!(ledger.configured_lease(), Duration::from_secs(10));
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets a function that is called with each ask of a turn before it is parked, to set its principal, deadline and
    /// quorum. Where it panics, the call is denied, as it is not known who may decide.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new())
    ///     .ask_policy(|_cx, ask: Ask| ask.with_principal("ann").with_expires_in(Duration::from_secs(3600)));
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn ask_policy(
        mut self,
        policy: impl Fn(&RunContext, Ask) -> Ask + Send + Sync + 'static,
    ) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Sets the session in which the calls of this handle are made: its grants hold then (rule G1). The id has to be
    /// unique, and a text that no model can choose.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let shared = Ledger::new(MemoryStore::new());
    /// let ann = shared.clone().session("session-4711"); // a handle for the requests of one session
    /// assert_eq!((shared.configured_session(), ann.configured_session()), (None, Some("session-4711")));
    /// ```
    #[must_use]
    pub fn session(mut self, id: impl Into<Arc<str>>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Sets the project in which the calls of this handle are made: its grants hold then (rule G1).
    #[must_use]
    pub fn project(mut self, project: Project) -> Self {
        self.project = Some(project);
        self
    }

    /// The session in which the calls of this handle are made, if the host has named one.
    #[must_use]
    pub fn configured_session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The project in which the calls of this handle are made, if there is one.
    #[must_use]
    pub fn configured_project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    /// Returns `true` if both ledgers write to the same store value.
    pub(crate) fn shares_store_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.unopened, &other.unopened)
    }

    pub(crate) fn worker_name(&self) -> &str {
        &self.worker
    }

    /// The [lease](Self::lease) of claims, runs and chats.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// let ledger = Ledger::new(MemoryStore::new()).lease(Duration::from_secs(90)).session("s1");
    /// assert_eq!((ledger.configured_lease(), ledger.configured_session()), (Duration::from_secs(90), Some("s1")));
    /// assert!(ledger.configured_project().is_none());
    /// ```
    #[must_use]
    pub fn configured_lease(&self) -> Duration {
        self.lease
    }

    /// The ask as the host's policy makes it; an error if the policy panics.
    pub(crate) fn with_policy(&self, cx: &RunContext, ask: Ask) -> Result<Ask, Panicked> {
        catch(|| (self.policy)(cx, ask)).inspect_err(|Panicked(what)| {
            tracing::error!(target: "countersign::ledger", "the function of `ask_policy` {what}: the call is denied");
        })
    }

    /// Sets the key by which the log is chained by HMAC, in place of a plain hash: without the key, no one can make an
    /// entry that is read, continued or [verified](Self::verify) with it. All processes over one store need the same key:
    /// a store says which one it has, and a process with another one, or with none, is refused when it
    /// [opens](Self::open) the store.
    ///
    /// Keep the key where the store's administrator cannot read it. A store with a key that is lost cannot be used any
    /// more. A key is added to a store, or exchanged, by [`rekey`](Self::rekey).
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = MemoryStore::new();
    /// let ledger = Ledger::new(store.clone()).audit_key(b"a key of 32 bytes, from a secret");
    /// ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// assert!(ledger.verify(&Default::default()).await.is_ok());
    /// assert!(Ledger::new(store).open().await.is_err(), "without the key");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn audit_key(mut self, key: &[u8]) -> Self {
        self.linker = Linker::with_key(key);
        self.opening = Arc::new(self.opening.anew());
        self
    }

    /// Sets the function that gives the canonical form of a name. Two names with equal forms are of one person, for
    /// quorums and for [`Quorum::not_the_requester`](super::Quorum) (rule L1). A name with an empty form cannot decide.
    /// By default names are trimmed, and compared without differences of case or of Unicode composition.
    ///
    /// Names are recorded as they were given. All processes over one store need the same function. It is not called to
    /// accept or refuse the names under which the library itself decides (`policy`), but it is for `unnamed`, the name
    /// of an answer that does not say whose it is.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// // User ids, in which case matters.
    /// let ledger = Ledger::new(MemoryStore::new()).canonical_names(|name| name.to_owned());
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn canonical_names(
        mut self,
        canonical: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.names = self.names.compared_by(canonical);
        self
    }

    /// Says that the names of people who decide with this handle are given as they like: a login is missing. Then no one
    /// approves with it an ask that certain [people](crate::decision::People) have to approve (rule L1). A denial counts.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::People;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let asked = Decision::ask("pays").with_people(People::new(2));
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
    /// assert!(ledger.may_answer(&ask, "ann"));
    /// assert!(!ledger.with_unchecked_names().may_answer(&ask, "ann"));
    /// ```
    #[must_use]
    pub fn with_unchecked_names(mut self) -> Self {
        self.names = self.names.unchecked();
        self
    }

    /// Sets the function that gives the members of a group, for asks that [people](crate::decision::People) of
    /// `group:NAME` have to approve; `None` where there is no such group, and then it has no members.
    ///
    /// It is called at each vote and again when the call is claimed: a person who has left the group in between has not
    /// approved the call (rule L1). It runs within a transaction, so it has to be quick.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::People;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// let ops = |group: &str| (group == "ops").then(|| vec!["ann".to_owned(), "bob".to_owned()]);
    /// let ledger = Ledger::new(MemoryStore::new()).groups(ops);
    /// let asked = Decision::ask("deploys").with_people(People::new(1).with_approvers(["group:ops"]));
    /// let ask = Ask::new("run-1", "root/c1", "deploy").with_questions(asked.questions().to_vec());
    /// assert!(ledger.may_answer(&ask, "Bob") && !ledger.may_answer(&ask, "eve"));
    /// ```
    #[must_use]
    pub fn groups(
        mut self,
        members: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.names = self.names.with_groups(members);
        self
    }

    /// The canonical form of a name: two names are of one person when their forms are equal
    /// ([`canonical_names`](Self::canonical_names), rule L1). A surface that shows who has voted, or counts by
    /// requester, has to compare these forms and not the names as they are written.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new());
    /// assert_eq!(ledger.canonical_name("ann"), ledger.canonical_name(" Ann "));
    /// assert_ne!(ledger.canonical_name("ann"), ledger.canonical_name("anna"));
    /// ```
    #[must_use]
    pub fn canonical_name(&self, name: &str) -> String {
        self.names.canonical(name)
    }

    /// Returns `true` if a person of this name may approve the ask. Where this is `false`, [`decide`](Self::decide)
    /// refuses their approval with [`Decided::NotAllowed`](super::Decided::NotAllowed) or
    /// [`Decided::BlankName`](super::Decided::BlankName) (rule L1).
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore, Quorum};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let other = Quorum { approvals: 1, not_the_requester: true };
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "pay").with_principal("ann").with_quorum(other)).await?;
    /// assert!(ledger.may_approve(&ask, "bob"));
    /// assert!(!ledger.may_approve(&ask, "ANN") && !ledger.may_approve(&ask, " "));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn may_approve(&self, record: &AskRecord, who: &str) -> bool {
        self.may_answer(&record.ask, who)
    }

    /// Returns `true` if this person could approve an ask that need not be parked yet, as
    /// [`may_approve`](Self::may_approve) says it for a parked one.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore, Quorum};
    ///
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let other = Quorum { approvals: 1, not_the_requester: true };
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_principal("ann").with_quorum(other);
    /// assert!(ledger.may_answer(&ask, "bob") && !ledger.may_answer(&ask, "Ann"));
    /// ```
    #[must_use]
    pub fn may_answer(&self, ask: &Ask, who: &str) -> bool {
        let names = &self.names;
        !names.is_no_person(who) && ask.may_be_approved_by(who, names)
    }

    /// Sets how long an approval is valid, from its oldest vote to the claim, for asks without an
    /// [`Ask::with_valid_for`](super::Ask::with_valid_for); 24 hours by default, and `None` means for ever. An older approval is
    /// not used, also not to run an idempotent tool again: the call is asked about anew, and the other calls of its
    /// response run (rule A8). The time is fixed when an ask is parked, and compared with the store's clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).approvals_valid_for(Duration::from_secs(15 * 60));
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn approvals_valid_for(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.valid_for = time.into().map(millis);
        self
    }

    /// Has people asked before a call is run again whose execution has an unknown end. The question says that the call
    /// may have run, when it was claimed and by which worker, and no earlier approval covers it (rule A1). An approved
    /// call runs again; for a denied one the model gets the result that the call may have run and was not run again.
    /// Without this setting the model gets that result at once.
    ///
    /// Calls of idempotent tools run again without a question.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).ask_before_repeating();
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn ask_before_repeating(mut self) -> Self {
        self.asks_before_repeating = true;
        self
    }

    pub(crate) fn asks_before_repeating(&self) -> bool {
        self.asks_before_repeating
    }
}

/// A time in milliseconds, at most the largest number.
pub(super) fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("linker", &self.linker).finish_non_exhaustive()
    }
}
