//! The view of an ask, beside its call: who asks, until when, who has answered, and how it ended.

use serde::Serialize;

use super::{CallView, Limits, escape, escape_name};
use crate::deferred::Answer;

/// The number of characters that are shown of a text other than the call itself, unless the limits allow more.
const MOST: usize = 600;

/// An ask as plain data for people: the same on a page, in a terminal, in a message and in a log (rule S1).
///
/// [`AskRecord::view`](crate::ledger::AskRecord::view) makes it. Its texts are ready to print, as those of a [`CallView`] are.
/// Times are milliseconds since 1970 by the store's clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AskView {
    /// The id of the ask.
    pub id: String,
    /// The digest of the call and its questions, which an answer has to name.
    pub fingerprint: String,
    /// The state of the ask, in one word: `pending`, `decided` and so on.
    pub state: &'static str,
    /// The title, which says in one line who wants what ([`CallView::title`]); the name of the tool where the call is
    /// not shown.
    pub title: String,
    /// The name of the tool that people are shown.
    pub tool: String,
    /// The id of the run that the call belongs to.
    pub run: String,
    /// The reason why the call is asked about: the reason of its first question.
    pub reason: Option<String>,
    /// The person for whom the agent works, if it is known.
    pub requester: Option<String>,
    /// The agent that makes the call: `root/cleaner`.
    pub agent: String,
    /// The call, with its questions, previews and notes.
    pub call: Option<CallView>,
    /// The time when the ask was made.
    pub parked_at: i64,
    /// The time when the ask last changed.
    pub changed_at: i64,
    /// The time when a pending ask expires; `None` means never.
    pub expires_at: Option<i64>,
    /// The sentence for people about an ask whose caller does not wait any more; `None` while it
    /// does ([`AskRecord::has_no_caller`](crate::ledger::AskRecord::has_no_caller)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_caller: Option<&'static str>,
    /// The number of people who have to approve.
    pub approvals_needed: u32,
    /// `true` if the approvals have to be of others than the requester.
    pub not_the_requester: bool,
    /// The votes that count now. People who approve the same arguments vote for the same proposal (rule A8).
    pub proposals: Vec<ProposalView>,
    /// The decision, once there is one.
    pub decision: Option<AnswerView>,
    /// The person who withdrew the ask, if it was withdrawn.
    pub cancelled_by: Option<String>,
    /// The claim: who runs the call, or has run it, and until when the claim holds.
    pub claim: Option<ClaimView>,
    /// The arguments that run, where a person has edited them.
    pub runs_with: Option<CallView>,
    /// The end of the call, once it has ended.
    pub outcome: Option<OutcomeView>,
}

impl AskView {
    /// The end of the ask, for people: `approved`, `denied`, `ran without approval`, or its state where it was not
    /// decided. `None` while it is pending.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "deploy")).await?;
    /// assert_eq!(ask.view_without_call().ended(), None);
    /// ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// let ask = ledger.get(ask.ask.id()).await?.unwrap();
    /// assert_eq!(ask.view_without_call().ended(), Some("approved"));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn ended(&self) -> Option<&'static str> {
        match (&self.outcome, &self.decision) {
            _ if self.state == "pending" => None,
            (Some(outcome), _) if outcome.word == "ran_unapproved" => Some("ran without approval"),
            (_, Some(decision)) => Some(decision.past),
            (_, None) => Some(self.state),
        }
    }
}

/// Votes for the same answer with the same arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProposalView {
    /// The digest that the votes have in common: that of the ask, or of the edited call.
    pub fingerprint: String,
    /// The people who voted so, and what they said, with the time of the first.
    pub answer: AnswerView,
    /// The names of these people as they are stored, to be compared with the name of an approver.
    #[serde(skip)]
    pub voters: Vec<String>,
    /// The edited call, where the arguments were edited.
    pub edited: Option<CallView>,
    /// Its arguments as JSON to edit further, in which nothing is masked.
    #[serde(skip)]
    pub args: Option<String>,
    /// The time when each of them voted.
    pub times: Vec<i64>,
}

/// One answer to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AnswerView {
    /// The people who answered, or the grant that did.
    pub by: Vec<String>,
    /// The answer in one word: `approve`, `edit`, `deny` or `answer`.
    #[serde(rename = "verdict")]
    pub word: &'static str,
    /// The same as it is told afterwards: `approved with changes`.
    pub past: &'static str,
    /// The message for the model, from the person who denied.
    pub message: Option<String>,
    /// The time when it was given.
    pub at: i64,
}

impl AnswerView {
    /// The view of an answer that these people have given at this time.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::show::{AnswerView, Limits};
    ///
    /// let no = Answer::Deny { message: "not\non a Friday".into() };
    /// let view = AnswerView::of(&["ann".to_owned()], &no, 0, Limits::default());
    /// assert_eq!((view.word, view.past), ("deny", "denied"));
    /// assert_eq!(view.message.as_deref(), Some(r"not\non a Friday"));
    /// ```
    #[must_use]
    pub fn of(by: &[String], answer: &Answer, at: i64, limits: Limits) -> Self {
        let message = match answer {
            Answer::Deny { message } => Some(short(message, limits)),
            _ => None,
        };
        let past = match answer {
            Answer::Approve { args: None } => "approved",
            Answer::Approve { args: Some(_) } => "approved with changes",
            Answer::Deny { .. } => "denied",
            Answer::Result { .. } => "answered",
        };
        let by = by.iter().map(|name| escape_name(name)).collect();
        Self { by, word: answer.word(), past, message, at }
    }
}

/// A text of a model, tool or person, escaped, and cut at a bound.
pub(crate) fn short(text: &str, limits: Limits) -> String {
    let (all, most) = (text.chars().count(), limits.chars.max(MOST));
    let mut shown = escape(&text.chars().take(most).collect::<String>());
    if all > most {
        shown += &format!(r" \{{{} characters left out}}", all - most);
    }
    shown
}

/// A claim on the call of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClaimView {
    /// The process that claimed it.
    pub worker: String,
    /// Until when the claim holds unless it is renewed.
    pub until: i64,
}

/// The end of the call of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutcomeView {
    /// The end in one word: that of the outcome, or `ran_unapproved`.
    pub word: String,
    /// The text that the model got, where the outcome is known.
    pub text: Option<String>,
    /// `true` if the call ran as it was approved (of a call that ran without approval: as it was asked about), where a
    /// report says so.
    pub as_approved: Option<bool>,
}
