//! A record as people see it.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::ask::Millis;
use super::record::{AskRecord, AskState, Vote};
use crate::args::Args;
use crate::call::ToolCall;
use crate::deferred::Answer;
use crate::outcome::Outcome;
use crate::show;
use crate::show::{
    AnswerView, AskView, CallView, ClaimView, Limits, OutcomeView, ProposalView, short,
};

/// The sentence about an ask whose caller is gone.
const NO_CALLER: &str = "the call that asked first no longer waits: an approval is for an equal call that waits now, or for the \
                         next one";

impl AskRecord {
    /// The ask as a person is shown it at this time of the store: which votes count depends on it (rule A8).
    ///
    /// Every surface is made from this and adds what is its own: an inbox whether its reader may decide, a terminal the
    /// command that does.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    /// use countersign::show::Limits;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "deploy").with_principal("ann")).await?;
    /// let no = Answer::Deny { message: "not on a Friday".into() };
    /// ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", no).await?;
    ///
    /// let record = ledger.get(ask.ask.id()).await?.unwrap();
    /// let view = record.view(ledger.now().await?, Limits::default());
    /// assert_eq!((view.title.as_str(), view.state), ("An agent wants to call `deploy()`", "decided"));
    /// let decision = view.decision.unwrap();
    /// assert_eq!((decision.past, decision.by), ("denied", vec!["bob".to_owned()]));
    /// assert_eq!(decision.message.as_deref(), Some("not on a Friday"));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn view(&self, now: Millis, limits: Limits) -> AskView {
        let call = CallView::all(&self.ask.requests(), limits).into_iter().next();
        let question = call.as_ref().and_then(|call| call.questions.first());
        let is_edited = self.args_to_run() != self.ask.args();
        let mut view = self.about(limits);
        view.reason = question.map(|question| question.reason.clone());
        view.proposals = self.proposals(now, limits);
        view.no_caller = self.has_no_caller(now).then_some(NO_CALLER);
        view.runs_with = is_edited.then(|| self.edited(self.args_to_run(), limits));
        if let Some(call) = call {
            view.title = call.title.clone();
            view.call = Some(call);
        }
        view
    }

    /// The ask without its call, its votes and the text of its outcome: for messages and lists in which no argument may
    /// stand (rule S10).
    ///
    /// ```
    /// use countersign::Args;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ask = Ask::new("run-1", "root/c1", "mail").with_args(Args::new().with("to", "ann@example.com"));
    /// let view = Ledger::new(MemoryStore::new()).park(ask).await?.view_without_call();
    /// assert_eq!((view.title.as_str(), view.agent.as_str(), view.call), ("mail", "root", None));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn view_without_call(&self) -> AskView {
        let mut view = self.about(Limits::default());
        if let Some(outcome) = &mut view.outcome {
            outcome.text = None;
        }
        view
    }

    /// The ask without its call and its votes.
    fn about(&self, limits: Limits) -> AskView {
        let ask = &self.ask;
        let (agents, _) = ask.path().rsplit_once('/').unwrap_or_default();
        let decision = self.decision.as_ref();
        AskView {
            id: ask.id().to_owned(),
            fingerprint: self.fingerprint.clone(),
            state: self.state.as_str(),
            title: show::escape_name(ask.tool()),
            tool: show::escape_name(ask.tool()),
            run: show::escape_name(ask.run()),
            reason: None,
            requester: ask.principal().map(show::escape_name),
            agent: show::escape_name(agents),
            call: None,
            parked_at: self.parked_at,
            changed_at: self.changed_at,
            expires_at: self.expires_at,
            no_caller: None,
            approvals_needed: ask.quorum().approvals,
            not_the_requester: ask.quorum().not_the_requester,
            proposals: Vec::new(),
            decision: decision.map(|it| AnswerView::of(&it.by_lines(), &it.answer, it.at, limits)),
            cancelled_by: self.cancelled_by.as_deref().map(show::escape_name),
            claim: self.claim.as_ref().map(|claim| ClaimView {
                worker: show::escape_name(&claim.worker),
                until: claim.until,
            }),
            runs_with: None,
            outcome: self.outcome.as_ref().and_then(|stored| self.ended(stored, limits)),
        }
    }

    /// The votes that count, grouped by the arguments that would run: two people who approve different edits approve two
    /// different calls, and neither has a quorum until one is approved twice (rule A8).
    fn proposals(&self, now: Millis, limits: Limits) -> Vec<ProposalView> {
        let mut by: BTreeMap<&str, Vec<&Vote>> = BTreeMap::new();
        for vote in self.counting_votes(now) {
            by.entry(&vote.fingerprint).or_default().push(vote);
        }
        let proposal = |(fingerprint, votes): (&str, Vec<&Vote>)| {
            let first = votes.first()?;
            let voters: Vec<_> = votes.iter().map(|vote| vote.by.clone()).collect();
            let args = match &first.answer {
                Answer::Approve { args } => args.as_ref(),
                _ => None,
            };
            Some(ProposalView {
                fingerprint: fingerprint.to_owned(),
                answer: AnswerView::of(&voters, &first.answer, first.at, limits),
                times: votes.iter().map(|vote| vote.at).collect(),
                voters,
                edited: args.map(|args| self.edited(args, limits)),
                args: args.map(show::json),
            })
        };
        by.into_iter().filter_map(proposal).collect()
    }

    fn edited(&self, args: &Args, limits: Limits) -> CallView {
        CallView::of_call(&ToolCall::new("", self.ask.tool(), args.to_value()), limits)
    }

    /// The outcome as the model got it, or as the report of a hook has it, which knows no more than how the call has ended,
    /// and whether it ran as it was approved.
    fn ended(&self, stored: &Value, limits: Limits) -> Option<OutcomeView> {
        let view = |word: String, text, as_approved: Option<&Value>| {
            let as_approved = as_approved.and_then(Value::as_bool);
            Some(OutcomeView { word, text, as_approved })
        };
        if let Some(about) = self.ran_unapproved() {
            return view("ran_unapproved".to_owned(), None, about.get("as_asked"));
        }
        if let Some(ended) = stored.get("ended").and_then(Value::as_str) {
            return view(short(ended, limits), None, stored.get("as_approved"));
        }
        if self.state == AskState::Released {
            return None;
        }
        let outcome = Outcome::deserialize(stored).ok()?;
        view(
            outcome.word().to_owned(),
            Some(short(&outcome.text().unwrap_or_default(), limits)),
            None,
        )
    }
}
