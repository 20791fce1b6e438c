//! The asks of a response: parked before people are asked, answered, and closed.
//!
//! # Parking
//!
//! Every pending call is stored before anyone is asked (rule L3): a handler that approves at once, a crash, and a
//! second process that resumes all find the same ask. The id of an ask is made of the call's address and the number of
//! its deferral, so that parking twice makes one ask:
//!
//! | deferral | ask | when |
//! |---|---|---|
//! | 1 | A | the first question |
//! | 2 | B | the approved pass asked something new |
//! | 1, again | A | the same call in another process, with the same questions |
//! | 1, other questions | the next free number | a worker parked A and died; in the meantime the call looks different |
//!
//! The last row is the loop in [`park_pending`](TurnRun::park_pending): the store says that the ask under this id is
//! another one, the number is raised, and the replaced ask is closed with the run. A person who still sees it answers
//! nothing that can run.
//!
//! # Closing
//!
//! An ask is closed when its call has a result without having run under it: it was denied, refused, or answered
//! elsewhere. A call that ran settles its own ask through the journal. If the run is saved by its caller (an agent with
//! a ledger), the list goes into the report and is closed in the transaction that saves the results, so that both are
//! seen or neither (rule L5).

use std::collections::{BTreeMap, BTreeSet};

use super::answers::grant;
use super::call_state::{CallState, State};
use super::durability::{ParkResult, Parking, Shares, record_answer};
use super::run::TurnRun;
use crate::args::Args;
use crate::call::{AskHistory, call_key};
use crate::deferred::{CallAddress, DeferredToolResults, PendingCall, ToolApproval};
use crate::error::Error;
use crate::handler::is_policy;

impl TurnRun<'_> {
    /// Records every pending call as an ask before people are asked (rule L3), and keeps the id of the ask. If the
    /// store has another ask under that id, from before a worker died, the call gets the id of the next deferral
    /// (rule A1).
    ///
    /// A new call that a grant answers is approved instead, and not shown to anyone (rule G2). Returns whether there is
    /// such a call: its approved pass is planned.
    pub(super) async fn park(&mut self) -> Result<bool, Error> {
        let answered = self.answer_by_grants().await?;
        self.park_pending().await?;
        Ok(answered)
    }

    /// Approves the new calls that a person has approved in advance. Calls that were pending before are left to people.
    async fn answer_by_grants(&mut self) -> Result<bool, Error> {
        let mut any = false;
        if self.answer_stands() {
            return Ok(false);
        }
        let Some(durability) = &self.turn.durability else { return Ok(false) };
        let (cx, info) = (self.turn.context(), &self.turn.info);
        for call in self.calls.iter_mut().filter(|call| call.newly_pending) {
            let leaf = self.dispatcher.definition(call).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            let Some(pending) = call.pending() else { continue };
            let address = CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
            let tool = call.call.name();
            let parking = Parking { cx: &cx, address, tool, pending, idempotent, is_new: true };
            let Some(granted) = durability.grant(parking).await.map_err(Error::Ledger)? else {
                continue;
            };
            grant(call, granted);
            info.asks.iter().for_each(AskHistory::answered);
            any = true;
        }
        Ok(any)
    }

    async fn park_pending(&mut self) -> Result<(), Error> {
        let Some(durability) = &self.turn.durability else { return Ok(()) };
        let (cx, info) = (self.turn.context(), &self.turn.info);
        let max = self.turn.ask_limits.max_pending;
        let mut shares = Shares { max, pending: BTreeMap::new() };
        for call in &mut self.calls {
            let is_new = std::mem::take(&mut call.newly_pending);
            let leaf = self.dispatcher.definition(call).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            while let Some(pending) = call.pending() {
                let address =
                    CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
                let tool = call.call.name();
                let parking = Parking { cx: &cx, address, tool, pending, idempotent, is_new };
                let parked = durability.park(parking, &mut shares).await;
                let (ask, same) = match parked.map_err(Error::Ledger)? {
                    ParkResult::Same(ask) => (ask, true),
                    ParkResult::Other(ask) => (ask, false),
                    ParkResult::Full => {
                        let text = "calls of its requester are pending already.";
                        let text = format!("Denied without asking: {max} {text}");
                        call.deny_unasked("max_pending", text);
                        info.asks.iter().for_each(AskHistory::answered);
                        call.tell_result(&self.turn.watchers);
                        break;
                    }
                };
                let before =
                    call.ask.replace(ask).filter(|before| call.ask.as_ref() != Some(before));
                call.closed_asks.extend(before);
                if same {
                    break;
                }
                call.next_deferral();
            }
        }
        Ok(())
    }

    /// Whether a recorded decision already approves the call with these arguments.
    pub(super) async fn is_decided(&self, call: &CallState, args: &Args) -> Result<bool, Error> {
        let (Some(durability), Some(pending)) = (&self.turn.durability, call.pending()) else {
            return Ok(false);
        };
        let info = &self.turn.info;
        let address = CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
        let ask = durability.ask_id(address, pending.deferrals);
        let decided = durability.decided_args(&ask).await.map_err(Error::Ledger)?;
        Ok(decided.as_ref() == Some(args))
    }

    /// Records every answer as a decision. Where another decision was recorded before, that one replaces the answer.
    pub(super) async fn decide(&self, answers: &mut DeferredToolResults) -> Result<(), Error> {
        let Some(durability) = &self.turn.durability else { return Ok(()) };
        for call in &self.calls {
            if let (Some(ask), Some(pending)) = (&call.ask, call.pending()) {
                let shown = (ask.as_str(), pending.fingerprint.as_str());
                let id = (call.call.id(), pending.kind);
                record_answer(&**durability, shown, id, answers).await?;
            }
        }
        Ok(())
    }

    /// The asks to close: of calls that were settled without running, and those that a later ask has replaced.
    pub(super) fn closed_asks(&self) -> BTreeSet<String> {
        let mut asks = BTreeSet::new();
        if self.turn.durability.is_none() {
            return asks;
        }
        for call in &self.calls {
            asks.extend(call.closed_asks.iter().cloned());
            // The journal settles the ask of a call that ran, but never that of an agent, whose own calls are settled
            // there. If a person was asked whether to repeat a call, the execution may belong to an earlier ask.
            let ran = call.execution.started() && !call.may_have_run();
            let ran = ran && !self.dispatcher.is_agent(call);
            if matches!(call.state, State::Settled(_)) && !ran {
                asks.extend(call.ask.clone());
            }
        }
        asks
    }

    /// Records the answers in the ask history, in model order. The answers that an agent is resumed with belong to the
    /// parent's batch, so that they do not begin another one.
    pub(super) fn note_answers(&self, answers: &DeferredToolResults, resumed: bool) {
        let Some(asks) = &self.turn.info.asks else { return };
        if self.turn.is_root() || !resumed {
            asks.begin_batch();
        }
        for call in &self.calls {
            if let Some(pending) = call.pending() {
                note_answer(asks, call.call.id(), pending, answers);
            }
        }
    }
}

fn note_answer(asks: &AskHistory, id: &str, pending: &PendingCall, answers: &DeferredToolResults) {
    let key = |args: &Args| call_key(&pending.tool, args);
    match answers.approvals.get(id) {
        Some(ToolApproval::Approved(approved)) => {
            asks.approve(|| key(approved.override_args.as_ref().unwrap_or(&pending.shown)));
        }
        Some(ToolApproval::Denied(denied)) => {
            let by = answers.answered_by.get(id);
            if !is_policy(by.map(String::as_str)) {
                asks.deny(key(&pending.shown), &denied.message);
            }
        }
        None if answers.calls.contains_key(id) => {}
        None => return,
    }
    asks.answered();
}
