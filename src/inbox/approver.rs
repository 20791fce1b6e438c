//! The principal of a request: the person who sends it, and the asks that this person may see and decide.

use std::fmt;
use std::sync::Arc;

use crate::ledger::Record;

type AskFilter = Arc<dyn Fn(&Record) -> bool + Send + Sync>;

/// The person who sends a request, and which asks this person may see and decide.
///
/// The name is what the ledger records with a decision, and compares with the requester and with other approvers
/// (rule L1). It has to come from a login, never from what the client says about itself.
///
/// ```
/// use countersign::inbox::Approver;
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
    /// use countersign::inbox::Approver;
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
    /// use axum::body::Body;
    /// use axum::http::Request;
    /// use countersign::inbox::{Approver, AuthorizeError, Inbox};
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    /// use tower::ServiceExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let parked = ledger.park(Ask::new("run-1", "root/c1", "transfer")).await?;
    /// let app = Inbox::new(ledger, async |_| {
    ///     Ok::<_, AuthorizeError>(Approver::new("bob").with_sees(|record| record.ask.tool() != "transfer"))
    /// })
    /// .into_router();
    /// // For bob there is no such ask, also by its id.
    /// let one = Request::get(format!("/api/asks/{}", parked.ask.id())).body(Body::empty())?;
    /// assert_eq!(app.oneshot(one).await?.status(), 404);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_sees(mut self, sees: impl Fn(&Record) -> bool + Send + Sync + 'static) -> Self {
        self.sees = Some(Arc::new(sees));
        self.audits = false;
        self
    }

    /// Limits what this person decides to the asks for which the function returns `true`. The others are shown without
    /// buttons, and a decision about one is refused with `403`.
    ///
    /// An ask that cannot be seen cannot be decided either, whatever this function says.
    #[must_use]
    pub fn with_decides(
        mut self,
        decides: impl Fn(&Record) -> bool + Send + Sync + 'static,
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

    /// Says on the page what the name is worth, where no login stands behind it.
    ///
    /// ```
    /// use countersign::inbox::Approver;
    /// let ann = Approver::new("ann").with_note("not checked: anyone who opens this page decides in this name");
    /// assert_eq!(ann.name(), "ann");
    /// ```
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into().into());
        self
    }

    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The name of this person, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn sees(&self, record: &Record) -> bool {
        self.sees.as_ref().is_none_or(|sees| sees(record))
    }

    pub(super) fn decides(&self, record: &Record) -> bool {
        self.sees(record) && self.decides.as_ref().is_none_or(|decides| decides(record))
    }

    pub(super) fn audits(&self) -> bool {
        self.audits
    }
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approver").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a request is refused before the inbox looks at it: the answer of the `authorize` hook of
/// [`Inbox::new`](super::Inbox::new).
///
/// ```
/// use countersign::inbox::AuthorizeError;
/// assert_eq!(AuthorizeError::unauthorized("log in first").status(), 401);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizeError {
    status: u16,
    message: String,
}

impl AuthorizeError {
    /// A rejection with a status from 400 to 599; any other one becomes 500.
    ///
    /// ```
    /// use countersign::inbox::AuthorizeError;
    /// assert_eq!(AuthorizeError::new(429, "too many requests").status(), 429);
    /// assert_eq!(AuthorizeError::new(200, "not a rejection").status(), 500);
    /// ```
    #[must_use]
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        let status = if (400..=599).contains(&status) { status } else { 500 };
        Self { status, message: message.into() }
    }

    /// The person is not logged in: `401`. The page shows the way to the login ([`Inbox::login`]).
    ///
    /// [`Inbox::login`]: super::Inbox::login
    #[must_use]
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// The person is known, and may not use the inbox: `403`.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The sentence that the client is sent.
    ///
    /// It is shown to people, so it says what to do and nothing of how the login works.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}
