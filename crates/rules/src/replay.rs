//! Decides about recorded calls under other rules.
//!
//! `replay` compares with the recorded decision, `compare` with the decision of other rules. Both decide by the code
//! that decides about real calls, and count nothing. They resolve paths at the time of the replay. If the file of a
//! recorded call is gone by then, the same rules may decide differently, and the call is listed as a change.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;

use super::decision_journal::JournalEntry;
use super::handle::Rules;
use super::ruling::lower;
use crate::calls::call::RuleCall;
use countersign::decision::ToolDecision;

/// One call whose decision changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChangedDecision {
    /// The tool, with its server or toolset.
    pub tool: String,
    /// The arguments of the call.
    pub args: serde_json::Map<String, serde_json::Value>,
    /// The decision that was recorded, or made by the rules before.
    #[serde(serialize_with = "lower")]
    pub from: ToolDecision,
    /// The decision under the new rules.
    #[serde(serialize_with = "lower")]
    pub to: ToolDecision,
    /// The reason why the new rules decide so.
    pub because: String,
}

impl ChangedDecision {
    /// Returns `true` if the new decision is milder.
    #[must_use]
    pub fn widens(&self) -> bool {
        self.to < self.from
    }
}

/// The decisions that change, and their number.
///
/// ```
/// use countersign_rules::{RuleCall, Rules, compare};
/// use serde_json::json;
///
/// let load = |text: &str| Rules::builder().lexical().text("mine.toml", text).load();
/// let old = load("version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'\nwhere.amount = '<= 10'")?;
/// let new = load("version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'\nwhere.amount = '<= 50'")?;
/// let args = [json!({"amount": 5}), json!({"amount": 40})];
/// let calls = args.iter().map(|args| RuleCall::new("pay", args.as_object().unwrap()));
/// let replayed = compare(calls, &old, &new);
/// assert_eq!((replayed.calls, replayed.changes.len(), replayed.widens()), (2, 1, true));
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Replayed {
    /// The number of calls that were decided about.
    pub calls: usize,
    /// The calls whose decision changes.
    pub changes: Vec<ChangedDecision>,
}

impl Replayed {
    /// Returns `true` if any call is decided more mildly than before.
    #[must_use]
    pub fn widens(&self) -> bool {
        self.changes.iter().any(ChangedDecision::widens)
    }

    fn add(&mut self, call: &RuleCall<'_>, from: ToolDecision, rules: &Rules) {
        self.calls += 1;
        let ruling = rules.decide(call);
        if ruling.decision() != from {
            self.changes.push(ChangedDecision {
                tool: call.to_string(),
                args: call.args().clone(),
                from,
                to: ruling.decision(),
                because: ruling.to_string(),
            });
        }
    }
}

/// Decides about the calls of a [journal](super::DecisionJournal) again, under these rules. Nothing is counted. The pass after
/// an approval is none of its own, unless its arguments were edited.
///
/// ```
/// use countersign_rules::{DecisionJournal, RuleCall, Rules, replay};
/// use serde_json::json;
///
/// let load = |text: &str| Rules::builder().lexical().text("mine.toml", text).load();
/// let strict = load("version = 1\n[[rule]]\nid = 'a'\nask = 'pay'")?;
/// let args = json!({"amount": 5});
/// let call = RuleCall::new("pay", args.as_object().unwrap());
/// let entry = strict.journal_entry(&call, &strict.decide(&call));
///
/// assert!(replay([&entry], &strict).changes.is_empty());
/// let wide = load("version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'")?;
/// assert!(replay([&entry], &wide).widens());
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[must_use]
pub fn replay<'e>(entries: impl IntoIterator<Item = &'e JournalEntry>, rules: &Rules) -> Replayed {
    let (mut replayed, mut examined) = (Replayed::default(), HashSet::new());
    for entry in entries {
        let is_new = examined.insert((&entry.run, &entry.call, json!(entry.args).to_string()));
        if entry.approved && !entry.run.is_empty() && !is_new {
            continue;
        }
        // An entry with another word for its decision is compared as if it had been denied: any other result is shown.
        let from = entry.decision().unwrap_or(ToolDecision::Deny);
        replayed.add(&entry.call(), from, rules);
    }
    replayed
}

/// Decides about calls under two versions of rules.
#[must_use]
pub fn compare<'c>(
    calls: impl IntoIterator<Item = RuleCall<'c>>,
    old: &Rules,
    new: &Rules,
) -> Replayed {
    let mut replayed = Replayed::default();
    for call in calls {
        replayed.add(&call, old.decide(&call).decision(), new);
    }
    replayed
}
