//! What a turn asks people about: how often about the same call, and about how many at once (rule D11).

use std::collections::BTreeMap;

use super::resolve::Resolving;
use super::slot::{Slot, State, Waiting};
use super::suspended::SuspendedTurn;
use super::{Turn, boxed};
use crate::args::Args;
use crate::call::{AskHistory, call_key};
use crate::deferred::{DeferredToolResults, ToolApproval};
use crate::handler::is_policy;
use crate::ledger::{Ask, Ledger, LedgerError};
use crate::outcome::{DeferralKind, Outcome};

/// How often a call may be denied by people before it is denied by itself.
const MAX_REPEATS: u32 = 3;

/// How many calls of a run, and of a requester, may be pending at the same time.
const MAX_PENDING: u32 = 1_000;

/// How often, and about how many calls, people may be asked.
#[derive(Clone, Copy)]
pub(crate) struct AskLimits {
    pub(super) max_repeats: u32,
    pub(super) max_pending: u32,
}

impl Default for AskLimits {
    fn default() -> Self {
        Self { max_repeats: MAX_REPEATS, max_pending: MAX_PENDING }
    }
}

impl AskLimits {
    /// A sub-agent can only be narrower than its parent.
    pub(super) fn within(self, parent: Self) -> Self {
        Self {
            max_repeats: self.max_repeats.min(parent.max_repeats),
            max_pending: self.max_pending.min(parent.max_pending),
        }
    }
}

impl Turn {
    /// How often a person may deny the same call in one run, the same tool with equal arguments, before it is denied
    /// without asking; 3 by default (rule D11). Until then a call that repeats a denied one is shown with the count and the
    /// person's words ([`DeferredToolRequests::denied_before`](crate::DeferredToolRequests::denied_before)), and an
    /// approval starts the count anew. A call that no layer asks about runs, however often it was denied.
    ///
    /// What a run has asked is kept by its [`Agent`](crate::Agent), or by a loop of your own in an [`AskHistory`]. Equal
    /// calls that are denied in one batch count once. An answer that a program gives counts as a person's unless it
    /// says otherwise: `answered_by("policy")`, or `"policy: no writes at night"`.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, FunctionToolset, RunContext, ToolsExt, Turn, handler_fn_sync};
    /// # use countersign::ToolCall;
    ///
    /// let ann = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
    ///     requests.answer().deny_rest("keep it").answered_by("ann").build()
    /// });
    /// let tools = FunctionToolset::new().approval_required();
    /// let turn = Turn::new(tools).handler(ann).max_repeats(1);
    /// # let _ = turn;
    /// ```
    pub fn max_repeats(mut self, times: u32) -> Self {
        self.ask_limits.max_repeats = times.max(1);
        self
    }

    /// How many calls of one run, with its sub-agents, may be pending at the same time; with a [ledger](Self::ledger)
    /// also how many of one requester ([`Ask::principal`](crate::ledger::Ask::principal)). 1 000 by default. The calls
    /// beyond are denied, saying so, and nobody is asked (rule D11).
    pub fn max_pending(mut self, calls: u32) -> Self {
        self.ask_limits.max_pending = calls;
        self
    }

    /// How often one call may be deferred before it is denied; 16 by default (rule D7).
    pub fn max_deferrals(mut self, max: u32) -> Self {
        self.max_deferrals = max;
        self
    }

    /// The history of what the run has asked people, which a loop of your own gives to every turn of the run. Without it,
    /// each turn has its own, which its [`SuspendedTurn`] carries on.
    pub fn ask_history(self, history: &AskHistory) -> Self {
        self.with_asks(history.clone())
    }

    /// Begins a response of a run, or takes one up.
    pub(super) fn begins_asking(&mut self, suspended: Option<&SuspendedTurn>) {
        let root = self.is_root();
        let asks = self.info.asks.get_or_insert_default();
        if let Some(suspended) = suspended {
            asks.extend(suspended.denied());
        }
        if root {
            asks.set_pending(suspended.map_or(0, |it| it.requests().iter().count()));
        }
    }
}

impl Resolving<'_> {
    /// Makes the planned walks, and denies what people are not asked about again, or not as well.
    pub(super) async fn walk(&mut self) {
        let planned =
            |(at, slot): (usize, &Slot)| matches!(slot.state, State::Planned(_)).then_some(at);
        let planned: Vec<_> = self.slots.iter().enumerate().filter_map(planned).collect();
        boxed(|| self.together.walk(&mut self.slots)).await;
        let Some(asks) = &self.turn.info.asks else { return };
        for at in planned {
            let Some(slot) = self.slots.get_mut(at) else { continue };
            if let Some((limit, text)) = limit_asking(slot, asks, self.turn.ask_limits) {
                slot.deny_unasked(limit, text);
                slot.tell_result(&self.turn.watchers);
            }
        }
    }

    /// Notes what is answered, in model order. The answers that an agent is resumed with belong to its parent's batch.
    pub(super) fn note_answers(&self, answers: &DeferredToolResults, resumed: bool) {
        let Some(asks) = &self.turn.info.asks else { return };
        if self.turn.is_root() || !resumed {
            asks.begin_batch();
        }
        for slot in &self.slots {
            if let Some(waiting) = slot.waiting() {
                note_answer(asks, slot.call.id(), waiting, answers);
            }
        }
    }
}

impl Slot {
    /// Denies a call that no one is asked about, as a limit says.
    pub(super) fn deny_unasked(&mut self, limit: &str, mut text: String) {
        if self.child.run.is_none() && self.execution.started() && !self.may_have_run() {
            text.insert_str(0, "The tool had begun its work, and asked before it goes on. ");
        }
        self.settle_unrun(Outcome::denied(text));
        self.denied_by = Some(limit.to_owned());
    }
}

/// Counts a call that has just come to wait, or gives the limit that it is beyond, and what the model is told.
fn limit_asking(
    slot: &mut Slot,
    asks: &AskHistory,
    limits: AskLimits,
) -> Option<(&'static str, String)> {
    let State::Waiting(waiting) = &mut slot.state else { return None };
    if waiting.deferral.kind == DeferralKind::Approval {
        let before = asks.denied_before(|| call_key(&waiting.tool, &waiting.shown));
        if let Some(before) = before.as_ref().filter(|it| it.times() >= limits.max_repeats) {
            return Some(("max_repeats", format!("Denied without asking again: {before}")));
        }
        waiting.denied_before = before;
    }
    if asks.ask(limits.max_pending) {
        slot.newly_pending = true;
        return None;
    }
    let text = format!(
        "Denied without asking: {} calls of this run are pending already.",
        limits.max_pending
    );
    Some(("max_pending", text))
}

/// How many calls of each requester are pending in the ledger.
pub(super) struct Requesters<'a> {
    ledger: &'a Ledger,
    max: u32,
    pending: BTreeMap<String, usize>,
}

impl<'a> Requesters<'a> {
    pub(super) fn new(ledger: &'a Ledger, max: u32) -> Self {
        Self { ledger, max, pending: BTreeMap::new() }
    }

    /// Counts a new ask, or says why it is one too many. What another worker has parked already is no new one.
    pub(super) async fn full(&mut self, ask: &Ask) -> Result<Option<String>, LedgerError> {
        let Some(requester) = ask.get_principal() else { return Ok(None) };
        let pending = match self.pending.get(requester) {
            Some(pending) => *pending,
            None => self.ledger.pending_of(requester).await?,
        };
        if pending >= self.max as usize && self.ledger.get(ask.id()).await?.is_none() {
            let max = self.max;
            let text =
                format!("Denied without asking: {max} calls of its requester are pending already.");
            return Ok(Some(text));
        }
        self.pending.insert(requester.to_owned(), pending.saturating_add(1));
        Ok(None)
    }
}

fn note_answer(asks: &AskHistory, id: &str, waiting: &Waiting, answers: &DeferredToolResults) {
    let key = |args: &Args| call_key(&waiting.tool, args);
    match answers.approvals.get(id) {
        Some(ToolApproval::Approved(approved)) => {
            asks.approve(|| key(approved.override_args.as_ref().unwrap_or(&waiting.shown)));
        }
        Some(ToolApproval::Denied(denied)) => {
            let by = answers.answered_by.get(id);
            if !is_policy(by.map(String::as_str)) {
                asks.deny(key(&waiting.shown), &denied.message);
            }
        }
        None if answers.calls.contains_key(id) => {}
        None => return,
    }
    asks.answered();
}
