//! The metrics about asks: how they end, who ends them, and how long they were pending.
//!
//! An ask ends once, in the transaction that writes its end, so that it is counted once over all processes, by the one
//! that wrote it. The times are those of the store's clock. Without the feature `opentelemetry` nothing is collected.

use std::time::Duration;

use super::ask::Millis;
use super::record::{AskRecord, RAN_UNAPPROVED};
use crate::decision::Question;
use crate::handler::is_policy;
use crate::telemetry;
use crate::telemetry::AskEnd;

/// An ask that a transaction has ended, to be measured when the transaction is committed.
pub(in crate::ledger) struct EndedAsk {
    tool: String,
    answer: &'static str,
    by: Option<&'static str>,
    /// Layer and key of each question.
    questions: Vec<(String, String)>,
    waited: Duration,
}

impl EndedAsk {
    /// `None` for an event that is not the end of an ask: also for what happens to an ask after its decision, and for
    /// the records of calls that no layer has asked about.
    pub(in crate::ledger) fn of(record: &AskRecord, event: &str, now: Millis) -> Option<Self> {
        if !telemetry::EXPORTS {
            return None;
        }
        let (answer, by) = match (event, &record.decision) {
            ("decided", Some(decision)) => {
                let policy = decision.by.iter().all(|by| is_policy(by));
                let by = match (&decision.grant, policy) {
                    (Some(_), _) => "grant",
                    (None, true) => "policy",
                    (None, false) => "person",
                };
                (decision.answer.given(), Some(by))
            }
            ("expired", None) => ("expired", None),
            ("cancelled", None) => ("cancelled", None),
            ("closed", None) => ("closed", None),
            (RAN_UNAPPROVED, None) => (RAN_UNAPPROVED, None),
            _ => return None,
        };
        let ask = &record.ask;
        // A call that the stack has allowed is recorded as approved by a policy; nothing was asked about it.
        if by == Some("policy") && ask.questions().is_empty() {
            return None;
        }
        let waited = now.saturating_sub(record.parked_at);
        let question = |it: &Question| (it.layer().to_owned(), it.own_key().to_owned());
        Some(Self {
            tool: ask.tool().to_owned(),
            answer,
            by,
            questions: ask.questions().iter().map(question).collect(),
            waited: Duration::from_millis(waited.try_into().unwrap_or_default()),
        })
    }

    pub(in crate::ledger) fn measure(&self) {
        let Self { tool, answer, by, questions, waited } = self;
        let end = AskEnd { tool, answer, by: *by, waited: Some(*waited) };
        telemetry::measure_ask(&end, questions.iter().map(|(layer, key)| (&**layer, &**key)));
    }
}
