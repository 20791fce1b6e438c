//! Asks as the API returns them. Texts for people are made by [`show`], so that they are safe to print (rule S1).
//!
//! Two shapes of one ask go to the page. The *view* is text to be read: escaped, masked, cut, with a mark where
//! something is left out. The *arguments*, only with one ask and on request, are text to be edited: whole, and
//! unmasked. Mixing them would mean that an edit sends back `•••` in place of a password.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::approver::Approver;
use super::entry::ListEntry;
use super::json::set;
use super::offers;
use crate::call::ToolCall;
use crate::deferred::Answer;
use crate::ledger::{AskState, Ledger, LedgerError, Millis, Record, RefusedRow, Vote};
use crate::outcome::Outcome;
use crate::show::{self, CallView, Limits};

/// The number of characters that are shown of a text other than the call itself.
const MOST: usize = 600;

/// An ask that cannot be decided, with the reason.
pub(super) fn refused(row: &RefusedRow) -> Value {
    let why = match &row.error {
        LedgerError::Changed { .. } => {
            "Its row in the store was changed outside of the ledger. It cannot be decided until the store is \
             restored."
        }
        _ => "It cannot be read: another version of this service has written it.",
    };
    json!({"id": show::escape_name(&row.id), "why": why})
}

/// The person who reads the asks, and the time: the ledger says which votes count then, and which one is this person's.
pub(super) struct Looker<'a> {
    ledger: &'a Ledger,
    who: &'a Approver,
    now: Millis,
}

impl<'a> Looker<'a> {
    pub(super) async fn new(ledger: &'a Ledger, who: &'a Approver) -> Result<Self, LedgerError> {
        Ok(Self { ledger, who, now: ledger.now().await? })
    }

    /// The store's time.
    pub(super) fn now(&self) -> Millis {
        self.now
    }

    /// An entry of the list: an ask, and the asks about equal calls.
    pub(super) fn entry(&self, entry: &ListEntry) -> Value {
        let mut value = self.ask(&entry.item.record);
        let same = entry.same.iter().map(|it| &it.record);
        let same = same.map(|it| json!({"id": it.ask.id(), "fingerprint": it.fingerprint}));
        set(&mut value, "key", entry.item.key.as_str().into());
        set(&mut value, "due", entry.item.due.into());
        set(&mut value, "same", same.collect());
        value
    }

    /// An ask, for people to look at.
    pub(super) fn ask(&self, record: &Record) -> Value {
        self.shown(record, Limits::default())
    }

    /// The ask with nothing left out, and with the arguments as JSON to edit, in which nothing is masked.
    pub(super) fn whole(&self, record: &Record) -> Value {
        let mut value = self.shown(record, Limits::none());
        set(&mut value, "args", show::json(record.ask.args()).into());
        set(&mut value, "offers", offers::offers(record).into());
        value
    }

    fn shown(&self, record: &Record, limits: Limits) -> Value {
        let ask = &record.ask;
        let requests = ask.requests();
        let view = CallView::all(&requests, limits).into_iter().next();
        let (agents, _) = ask.path().rsplit_once('/').unwrap_or_default();
        json!({
            "id": ask.id(),
            "run": ask.run(),
            "fingerprint": record.fingerprint,
            "state": record.state,
            "agent": show::escape_name(agents),
            "wanted_by": ask.principal().map(show::escape_name),
            "parked_at": record.parked_at,
            "changed_at": record.changed_at,
            "expires_at": record.expires_at,
            "view": view,
            "grantable": offers::is_offered(record),
            "left_out": view.as_ref().is_some_and(|view| view.left_out),
            "brief": view.as_ref().is_some_and(CallView::is_brief),
            "quorum": self.quorum(record),
            "proposals": self.proposals(record, limits),
            "decision": record.decision.as_ref().map(|it| decision(&it.by_lines(), &it.answer, it.at)),
            "withdrawn_by": record.cancelled_by.as_deref().map(show::escape_name),
            "ran": ran(record),
            "outcome": outcome(record),
            "worker": record.claim.as_ref().map(|claim| show::escape_name(&claim.worker)),
        })
    }

    /// The quorum: how many approvals are needed, and whether this person may give one.
    fn quorum(&self, record: &Record) -> Value {
        let mut votes = record.counting_votes(self.now);
        json!({
            "needed": record.ask.quorum().approvals,
            "may_approve": self.ledger.may_approve(record, self.who.name()) && self.who.decides(record),
            "may_decide": self.who.decides(record),
            "voted": votes.any(|vote| self.is_own(vote) && vote.fingerprint == record.fingerprint),
        })
    }

    fn is_own(&self, vote: &Vote) -> bool {
        self.ledger.canonical_name(&vote.by) == self.ledger.canonical_name(self.who.name())
    }

    /// The votes that count (rule A8), grouped by the arguments that would run: an edit is a proposal of its own.
    ///
    /// Two people who approve different edits approve two different calls, so they are shown as two proposals, each
    /// with its own count, and neither has a quorum until one is approved twice (rule A8).
    fn proposals(&self, record: &Record, limits: Limits) -> Vec<Value> {
        let mut by: BTreeMap<&str, Vec<&Vote>> = BTreeMap::new();
        for vote in record.counting_votes(self.now) {
            by.entry(&vote.fingerprint).or_default().push(vote);
        }
        let mut out = Vec::new();
        for votes in by.values() {
            let Some(first) = votes.first() else { continue };
            let people: Vec<_> = votes.iter().map(|vote| vote.by.clone()).collect();
            let mut it = decision(&people, &first.answer, first.at);
            set(&mut it, "own", votes.iter().any(|vote| self.is_own(vote)).into());
            if let Answer::Approve { args: Some(args) } = &first.answer {
                let call = ToolCall::new("", record.ask.tool(), args.to_value());
                let view = CallView::of_call(&call, limits);
                set(&mut it, "left_out", view.left_out.into());
                set(&mut it, "view", json!(view));
                set(&mut it, "args", show::json(args).into());
            }
            out.push(it);
        }
        out
    }
}

/// A decision: the deciders, the answer and the time.
pub(super) fn decision(by: &[String], answer: &Answer, at: Millis) -> Value {
    let message = match answer {
        Answer::Deny { message } => Some(short(message)),
        _ => None,
    };
    json!({
        "by": by.iter().map(|name| show::escape_name(name)).collect::<Vec<_>>(),
        "verdict": answer.word(),
        "past": past(answer),
        "message": message,
        "at": at,
    })
}

/// The arguments that ran, where a person has changed them.
fn ran(record: &Record) -> Option<Value> {
    let edited = record.args_to_run() != record.ask.args();
    let call = ToolCall::new("", record.ask.tool(), record.args_to_run().to_value());
    edited.then(|| json!(CallView::of_call(&call, Limits::default())))
}

/// The outcome of the call: as the model got it, or as the report of a hook has it, which knows no more than how the call
/// has ended, and whether it ran as it was approved.
fn outcome(record: &Record) -> Option<Value> {
    let stored = record.outcome.as_ref()?;
    if let Some(about) = record.ran_unapproved() {
        return Some(json!({"word": "ran_unapproved", "as_asked": about.get("as_asked")}));
    }
    if let Some(ended) = stored.get("ended").and_then(Value::as_str) {
        return Some(json!({"word": short(ended), "as_approved": stored.get("as_approved")}));
    }
    let outcome = match record.state {
        AskState::Released => return None,
        _ => Outcome::deserialize(stored).ok()?,
    };
    Some(json!({"word": outcome.word(), "text": short(&outcome.text().unwrap_or_default())}))
}

/// The answer to the ask, in one word.
pub(super) fn past(answer: &Answer) -> &'static str {
    match answer {
        Answer::Approve { args: None } => "approved",
        Answer::Approve { args: Some(_) } => "approved with changes",
        Answer::Deny { .. } => "denied",
        _ => "answered",
    }
}

/// Names of people, safe to print.
pub(super) fn names(by: &[String]) -> String {
    by.iter().map(|name| show::escape_name(name)).collect::<Vec<_>>().join(" and ")
}

/// A text of a model, tool or person, escaped, and cut at a bound.
fn short(text: &str) -> String {
    let (all, mut shown) = (text.chars().count(), text.chars().take(MOST).collect::<String>());
    shown = show::escape(&shown);
    if all > MOST {
        shown += &format!(r" \{{{} characters left out}}", all - MOST);
    }
    shown
}
