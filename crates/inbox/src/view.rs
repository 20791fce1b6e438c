//! Asks as the API returns them. [`show`] makes the texts for people, so they are safe to print (rule S1).
//!
//! Two shapes of one ask go to the page. The *view* is text to read: escaped, masked, cut, with a mark where
//! something is left out. The *arguments* are text to edit: whole, and unmasked. They go only with one ask, and
//! on request. If we mixed the two, an edit would send back `•••` in place of a password.

use serde_json::{Value, json};

use super::entry::ListEntry;
use super::json::set;
use countersign::ledger::{Approver, AskRecord, Ledger, LedgerError, Millis, Offers, RefusedRow};
use countersign::show::{self, CallView, Limits, OutcomeView, ProposalView};

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
    pub(super) fn ask(&self, record: &AskRecord) -> Value {
        self.shown(record, Limits::page())
    }

    /// The ask with nothing left out, and with the arguments as JSON to edit, in which nothing is masked.
    pub(super) fn whole(&self, record: &AskRecord) -> Value {
        let mut value = self.shown(record, Limits::none());
        set(&mut value, "args", show::json(record.ask.args()).into());
        let offers = Offers::of(&record.ask);
        set(&mut value, "offers", offers.shown().map(Value::Object).collect());
        value
    }

    fn shown(&self, record: &AskRecord, limits: Limits) -> Value {
        let view = record.view(self.now, limits);
        let call = view.call.as_ref();
        json!({
            "id": view.id,
            "run": record.ask.run(),
            "fingerprint": view.fingerprint,
            "state": view.state,
            "agent": view.agent,
            "wanted_by": view.requester,
            "parked_at": view.parked_at,
            "changed_at": view.changed_at,
            "expires_at": view.expires_at,
            "no_caller": view.no_caller,
            "line": call.map(of_call),
            "grantable": !Offers::of(&record.ask).is_empty(),
            "left_out": call.is_some_and(|call| call.left_out),
            "brief": call.is_some_and(CallView::is_brief),
            "view": view.call,
            "quorum": self.quorum(record),
            "proposals": self.proposals(&view.proposals),
            "decision": view.decision,
            "withdrawn_by": view.cancelled_by,
            "ran": view.runs_with,
            "outcome": view.outcome.as_ref().map(outcome),
            "worker": view.claim.map(|claim| claim.worker),
        })
    }

    /// The quorum: how many approvals are needed, and whether this person may give one.
    fn quorum(&self, record: &AskRecord) -> Value {
        let mut votes = record.counting_votes(self.now);
        json!({
            "needed": record.ask.quorum().approvals,
            "may_approve": self.ledger.may_approve(record, self.who.name()) && self.who.decides(record),
            "of_people": !record.ask.people().is_empty(),
            "may_decide": self.who.decides(record),
            "voted": votes.any(|vote| self.is_own(&vote.by) && vote.fingerprint == record.fingerprint),
        })
    }

    fn is_own(&self, by: &str) -> bool {
        self.ledger.canonical_name(by) == self.ledger.canonical_name(self.who.name())
    }

    /// The proposals, each with its people: an edit is a proposal of its own.
    fn proposals(&self, proposals: &[ProposalView]) -> Vec<Value> {
        let shown = |proposal: &ProposalView| {
            let mut it = json!(proposal.answer);
            set(&mut it, "own", proposal.voters.iter().any(|by| self.is_own(by)).into());
            if let Some(edited) = &proposal.edited {
                set(&mut it, "left_out", edited.left_out.into());
                set(&mut it, "view", json!(edited));
                set(&mut it, "args", proposal.args.as_deref().into());
            }
            it
        };
        proposals.iter().map(shown).collect()
    }
}

/// The end of the call, in one word, with what the report of it says.
fn outcome(view: &OutcomeView) -> Value {
    let mut outcome = json!({"word": view.word});
    match view.word.as_str() {
        _ if view.text.is_some() => set(&mut outcome, "text", json!(view.text)),
        "ran_unapproved" => set(&mut outcome, "as_asked", json!(view.as_approved)),
        _ => set(&mut outcome, "as_approved", json!(view.as_approved)),
    }
    outcome
}

/// The action without the name of the tool, which a row shows beside it: ``run `git push` ``, or `` `(path: "a.log")` ``.
fn of_call(view: &CallView) -> String {
    let tool = &view.tool;
    let rest = |start: String| view.action.strip_prefix(&start);
    let titled = match tool.strip_prefix("mcp:").and_then(|it| it.split_once('/')) {
        Some((server, called)) => format!("call `{called}` of `{server}`: "),
        None => format!("call `{tool}`: "),
    };
    match (rest(titled), rest(format!("call `{tool}"))) {
        (Some(titled), _) => titled.to_owned(),
        (None, Some(args)) => format!("`{args}"),
        (None, None) => view.action.clone(),
    }
}
