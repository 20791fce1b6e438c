//! The ask of a call: the one that is there, or another one where the approval before it cannot be used any more.
//!
//! A call is found again by its run, its agent and its id, in every process. It has one ask after the other:
//!
//! | the last ask | the next request for the same call gets |
//! |---|---|
//! | none | the first ask |
//! | pending, decided, claimed, executed, unknown, denied | the same ask |
//! | an approval that is too old, void or by too few people; a claim that was given back | another ask (rules A8, L1) |
//! | of the same call, with other questions, and not claimed | another ask; the last one is cancelled (rule R6) |
//! | of another tool or with other arguments | an error: nothing is asked, and nothing runs |

use countersign::Args;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, AskSeries, AskState, Ledger, NextAsk, Quorum};
use std::time::Duration;

use crate::errors::OperationError;

/// Who cancels an ask whose questions are not those of its call any more.
const ASKED_ANEW: &str = "countersign: the questions about the call have changed";

/// How often a call is looked at while other processes change its asks.
const ATTEMPTS: usize = 8;

/// A call that is asked about.
pub(crate) struct AskedCall {
    pub(crate) run: String,
    pub(crate) agent: String,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) args: Args,
    pub(crate) questions: Vec<Question>,
    pub(crate) requester: Option<String>,
    pub(crate) idempotent: bool,
    pub(crate) quorum: Quorum,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) valid_for: Option<Duration>,
}

impl AskedCall {
    /// The ask with this number. Two calls never have an ask in common: the number stands behind a single `#`, and one in
    /// the id of a call is doubled.
    fn ask(&self, number: u64) -> Ask {
        let call = self.call.replace('#', "##");
        let call = if number > 1 { format!("{call}#{number}") } else { call };
        let mut ask = Ask::new(&self.run, format!("{}/{call}", self.agent), &self.tool)
            .with_args(self.args.clone())
            .with_questions(self.questions.iter().cloned())
            .with_idempotent(self.idempotent)
            .with_quorum(self.quorum);
        if let Some(requester) = &self.requester {
            ask = ask.with_principal(requester);
        }
        if let Some(time) = self.expires_in {
            ask = ask.with_expires_in(time);
        }
        if let Some(time) = self.valid_for {
            ask = ask.with_valid_for(time);
        }
        ask
    }

    /// Compares the call with the one that was asked about. Edited arguments of an approval are those of the call, too.
    fn check(&self, record: &AskRecord) -> Result<(), OperationError> {
        let asked = &record.ask;
        let problem = if asked.tool() != self.tool {
            format!("of the tool `{}`, and this one is of `{}`", asked.tool(), self.tool)
        } else if !asked.args().equal(&self.args) && !record.args_to_run().equal(&self.args) {
            "with other arguments".to_owned()
        } else {
            return Ok(());
        };
        Err(OperationError::Changed(format!(
            "the call `{}` of `{}` is not the one that was asked about (ask {}): that one is {problem}. Nothing has run. A \
             call that has changed needs an id of its own",
            self.call,
            self.tool,
            asked.id()
        )))
    }
}

/// The id of a call, by the last part of the path of one of its asks.
pub(crate) fn call_of(part: &str) -> String {
    let before = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let signs = before.len() - before.trim_end_matches('#').len();
    let numbered = signs % 2 == 1 && before.len() < part.len();
    let part = before.strip_suffix('#').filter(|_| numbered).unwrap_or(part);
    part.replace("##", "#")
}

/// Whether the approval of this ask cannot be used any more, so that the call is asked about again.
fn is_spent(record: &AskRecord) -> bool {
    let answer = record.decision.as_ref().map(|decision| &decision.answer);
    match record.state {
        AskState::Expired => matches!(answer, Some(Answer::Approve { .. })),
        AskState::Released => true,
        AskState::Cancelled => record.cancelled_by.as_deref() == Some(ASKED_ANEW),
        _ => false,
    }
}

/// Finds the ask of a call, or parks it.
pub(crate) async fn park(ledger: &Ledger, call: &AskedCall) -> Result<AskRecord, OperationError> {
    let number = |number: u64| call.ask(number);
    let series = AskSeries::new(ledger, &number);
    for _ in 0..ATTEMPTS {
        let last = series.last().await?;
        if let Some(record) = last.record().filter(|it| !is_spent(it)) {
            call.check(record)?;
            if !has_other_questions(record, &call.ask(last.number())) {
                return Ok(record.clone());
            }
            // Where it was claimed meanwhile, the next look finds that.
            ledger.cancel(record.ask.id(), ASKED_ANEW).await?;
            continue;
        }
        match series.next(&last, call.ask(last.number().saturating_add(1)), None).await? {
            NextAsk::Parked(record) | NextAsk::Granted(record) => return Ok(*record),
            // Another process was faster: the next look compares its ask with this call.
            NextAsk::Open(_) => {}
            NextAsk::Denied(text) => return Err(OperationError::NotAsked(text)),
        }
    }
    Err(OperationError::NotAsked(format!(
        "The call `{}` was not asked about: other processes change its asks all the time. Call again.",
        call.call
    )))
}

/// Whether an ask that can still be decided or claimed has other questions than its call has now.
fn has_other_questions(record: &AskRecord, now: &Ask) -> bool {
    let is_open = matches!(record.state, AskState::Pending | AskState::Decided);
    let is_same_call = record.ask.args().equal(now.args());
    is_open && !record.is_denied() && is_same_call && record.fingerprint != now.fingerprint()
}
