//! The checks around a decision, the same at every place where people decide.
//!
//! A decision is final, so we check it before we record it, in this order:
//!
//! | check | result | because |
//! |---|---|---|
//! | the ask is known, and this person may see it | [`Decided::UnknownAsk`] | both look the same, so that ids tell nothing |
//! | an approval: the call needs one, and is not blocked | [`Decided::Unapprovable`] | rule A5 |
//! | an approval: all of the call was shown, and a preview that is cut by itself | [`Decided::Unapprovable`] | rules S4, S7 |
//! | an approval with edited arguments: the tool takes them | [`Decided::Unapprovable`] | rule A2 |
//! | a result: the call is executed elsewhere, or is a question | [`Decided::Unapprovable`] | a result of a call that runs here would be told to the model as its outcome, and nothing has run |
//! | this person may decide it | [`Decided::OthersDecide`] | |
//! | the ledger: the fingerprint is of what was shown, not expired, not the requester's own, first | [`Decided`] | rules A2, L1, L4 |
//!
//! Only the last line is checked within the transaction that decides. The others look at what does not change: the call of
//! an ask, and the rights of a person as the surface knows them at this moment.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::approver::Approver;
use super::asks::record::AskRecord;
use super::asks::results::Decided;
use super::error::LedgerError;
use super::handle::Ledger;
use crate::call::ToolCall;
use crate::deferred::{Answer, Extent, Unapprovable};
use crate::show::AskView;

type CheckEdited = dyn Fn(&ToolCall) -> Result<(), String> + Send + Sync;

/// A place where people decide about the asks of a ledger: a page, a terminal, a chat, a bot. It finds what a person may
/// see, and takes their decision with every check that is around one.
///
/// ```
/// use countersign::deferred::{Answer, Unapprovable};
/// use countersign::ledger::{Approver, Ask, Decided, Ledger, MemoryStore, Presented, Surface};
/// use countersign::show::Limits;
/// use countersign::Args;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let text = "x".repeat(5_000);
/// let ask = Ask::new("run-1", "root/c1", "write_file").with_args(Args::new().with("text", text));
/// let id = ledger.park(ask).await?.ask.id().to_owned();
/// let (bot, ann) = (Surface::new(ledger.clone()), Approver::new("ann"));
///
/// // What the bot has posted leaves most of the text out.
/// let record = bot.find(&ann, &id).await?.expect("ann may see it");
/// let posted = Presented::of(&record.view(ledger.now().await?, Limits::default()));
/// let yes = Answer::Approve { args: None };
/// let refused = bot.decide(&ann, &posted, yes.clone()).await?;
/// assert_eq!(refused, Decided::Unapprovable(Unapprovable::NotShown));
///
/// // Once all of it was shown, an approval counts.
/// let posted = Presented::of(&record.view(ledger.now().await?, Limits::none()));
/// assert_eq!(bot.decide(&ann, &posted, yes).await?, Decided::Won { again: false });
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Surface {
    pub(crate) ledger: Ledger,
    check: Arc<CheckEdited>,
}

impl Surface {
    /// A surface over this ledger.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, check: Arc::new(|_| Ok(())) }
    }

    /// Sets a function that is called with a call and its edited arguments before an approval of them is recorded. Its
    /// error is shown to the person, and nothing is decided. By default edited arguments are not checked, and a call whose
    /// tool does not take them fails when it runs.
    ///
    /// ```
    /// use countersign::deferred::{Answer, Unapprovable};
    /// use countersign::ledger::{Approver, Ask, Decided, Ledger, MemoryStore, Presented, Surface};
    /// use countersign::Args;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let parked = ledger.park(Ask::new("run-1", "root/c1", "pay")).await?;
    /// let surface = Surface::new(ledger).check(|call| match call.args().get("euros") {
    ///     Some(euros) if euros.is_u64() => Ok(()),
    ///     _ => Err("`euros` is a number".to_owned()),
    /// });
    /// let shown = Presented::whole(parked.ask.id(), &parked.fingerprint);
    /// let edited = Answer::Approve { args: Some(Args::new().with("euros", "ten")) };
    /// let problem = "`euros` is a number".to_owned();
    /// let refused = surface.decide(&Approver::new("ann"), &shown, edited).await?;
    /// assert_eq!(refused, Decided::Unapprovable(Unapprovable::BadArgs { problem }));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&ToolCall) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    /// The ask with this id, if there is one and this person may see it. The id may come from outside: a text that cannot
    /// be one is not looked up.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger cannot be read, or the row of the ask was changed outside of it.
    pub async fn find(&self, who: &Approver, id: &str) -> Result<Option<AskRecord>, LedgerError> {
        if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        Ok(self.ledger.get(id).await?.filter(|record| who.sees(record)))
    }

    /// Decides the ask that was presented to this person. Who the person is has to come from a login, and what was presented
    /// from what the surface has sent: neither is what a client says about itself.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn decide(
        &self,
        who: &Approver,
        shown: &Presented,
        answer: Answer,
    ) -> Result<Decided, LedgerError> {
        let Some(record) = self.find(who, &shown.ask).await? else {
            return Ok(Decided::UnknownAsk);
        };
        if let Err(why) = self.check_answer(&record, shown.extent, &answer) {
            return Ok(Decided::Unapprovable(why));
        }
        if !who.decides(&record) {
            return Ok(Decided::OthersDecide);
        }
        self.ledger.decide(record.ask.id(), &shown.fingerprint, who.name(), answer).await
    }

    /// Checks whether this answer may be recorded about the call of an ask, of which so much was shown.
    pub(crate) fn check_answer(
        &self,
        record: &AskRecord,
        extent: Extent,
        answer: &Answer,
    ) -> Result<(), Unapprovable> {
        let requests = record.ask.requests();
        match answer {
            Answer::Deny { .. } => Ok(()),
            // Of a call that runs once it is approved, a result would be told to the model, and nothing has run.
            Answer::Result { .. } if requests.approvals.is_empty() => Ok(()),
            Answer::Result { .. } => Err(Unapprovable::NeedsApproval),
            Answer::Approve { args } => {
                let call = requests.iter().next().ok_or(Unapprovable::UnknownCall)?;
                let call = requests.check_approval(call.id(), extent)?;
                let Some(args) = args else { return Ok(()) };
                (self.check)(&call.clone().with_args(args.clone()))
                    .map_err(|problem| Unapprovable::BadArgs { problem })
            }
        }
    }
}

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

/// The view of an ask that a person had when they answered: which ask, the digest of what it was, and whether something was
/// left out. It serialises, so that a surface can keep it beside a message, or sign it and put it into a button.
///
/// ```
/// use countersign::deferred::Extent;
/// use countersign::ledger::{Ask, Ledger, MemoryStore, Presented};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let parked = Ledger::new(MemoryStore::new()).park(Ask::new("run-1", "root/c1", "deploy")).await?;
/// let shown = Presented::whole(parked.ask.id(), &parked.fingerprint);
/// assert_eq!((shown.extent, shown.together().extent), (Extent::Whole, Extent::Together));
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Presented {
    /// The id of the ask.
    pub ask: String,
    /// The fingerprint of what was shown. If the ask has another one, nothing is decided.
    pub fingerprint: String,
    /// The part of the call that was shown.
    pub extent: Extent,
}

impl Presented {
    /// This view, by itself.
    #[must_use]
    pub fn of(view: &AskView) -> Self {
        let extent = match &view.call {
            Some(call) if !call.left_out => Extent::Whole,
            _ => Extent::Part,
        };
        Self { ask: view.id.clone(), fingerprint: view.fingerprint.clone(), extent }
    }

    /// All of an ask, by itself, for a surface that shows a call whole before it takes an answer.
    #[must_use]
    pub fn whole(ask: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self { ask: ask.into(), fingerprint: fingerprint.into(), extent: Extent::Whole }
    }

    /// The same, answered together with others.
    #[must_use]
    pub fn together(mut self) -> Self {
        if self.extent == Extent::Whole {
            self.extent = Extent::Together;
        }
        self
    }
}
