//! Rules as middleware.
//!
//! A ruling becomes a decision of the stack:
//!
//! | ruling | decision |
//! |---|---|
//! | allow | ALLOW |
//! | deny | DENY with the reasons of the rules that deny, for the model, and their ids as the key |
//! | ask | one question for each rule that asks |
//!
//! The key of a question is the rule's id, and its pins are the digest of the rule, the resolved paths, and what is
//! known about the commands. If you edit a comment or a reason, nothing is asked about again. If you edit a condition,
//! or a link leads elsewhere, people are asked again (rule R6). Rules of one id and digest that speak about several
//! commands make one question with all reasons.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decision_journal::{JournalEntry, JournaledAnswer};
use super::handle::Rules;
use super::ruling::{Layer, Ruling, Spoke};
use crate::calls::call::RuleCall;
use countersign::call::{RepeatedRequest, RunContext, ToolCall};
use countersign::decision::{Decision, ToolDecision};
use countersign::deferred::metadata;
use countersign::middleware::ToolMiddleware;
use countersign_shell::says_unknown;

/// The number of characters of a command that are shown in a list of those that are not known.
const MAX_PART: usize = 120;

impl ToolMiddleware for Rules {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("rules")
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let examined = RuleCall::of(call);
        let mut ruling = self.decide(&examined);
        if !ruling.charges.is_empty() {
            let id = cx.idempotency_key().unwrap_or_else(|| call.id().to_owned());
            let principal = self.principal(cx, call);
            let is_repeat = cx.is_repeat() || is_made_again(cx, ruling.decision()).await;
            ruling = self.decide_and_count(&examined, &principal, &id, is_repeat).await;
        }
        let answer = cx.deps::<JournaledAnswer>().ok().copied();
        let journal = self.journal().filter(|_| answer != Some(JournaledAnswer::Recorded));
        if let Some(journal) = journal {
            let entry = self.journal_entry(&examined, &ruling).of_call(cx.run_id(), call.id());
            let entry = entry.of_approved(cx.tool_call_approved());
            let entry = answer.into_iter().fold(entry, JournalEntry::of_answer);
            if let Err(error) = journal.append(&entry) {
                tracing::error!(file = %journal.path().display(), %error, "a decision is not in the journal");
            }
        }
        ruling.into_decision()
    }
}

/// Returns `true` if the call is a request that repeats one whose ask is open, and which was counted then.
async fn is_made_again(cx: &RunContext, decision: ToolDecision) -> bool {
    // A call of an agent below is another call than the request.
    match cx.deps::<RepeatedRequest>() {
        Ok(request) if !cx.agent_path().contains('/') => request.holds(decision).await,
        _ => false,
    }
}

impl Ruling {
    /// The decision for a stack. An ASK has one question for each rule that asks: its key is the rule's id, and it is
    /// bound to the digest of the rule, to resolved paths and to what is known about the commands (rule R6).
    pub fn into_decision(self) -> Decision {
        match self.decision {
            ToolDecision::Allow => Decision::allow(),
            ToolDecision::Deny => {
                let (mut reasons, mut ids): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
                for spoke in self.winners() {
                    if !reasons.contains(&spoke.reason.as_str()) {
                        reasons.push(&spoke.reason);
                    }
                    if !ids.contains(&&*spoke.rule) {
                        ids.push(&spoke.rule);
                    }
                }
                Decision::deny(reasons.join("; ")).with_key(ids.join(", "))
            }
            ToolDecision::Ask => self.questions(),
        }
    }

    fn questions(&self) -> Decision {
        let mut rules: BTreeMap<(&str, &str), Vec<&Spoke>> = BTreeMap::new();
        for spoke in self.winners() {
            rules.entry((&spoke.rule, &spoke.digest)).or_default().push(spoke);
        }
        let asked = rules.into_values().filter_map(|spoke| self.question(&spoke));
        asked.reduce(Decision::and).unwrap_or_else(|| {
            let asked = Decision::ask("no rule allows this call").with_key("default");
            self.pinned(asked.with_metadata(metadata::GRANTABLE, true))
        })
    }

    fn question(&self, spoke: &[&Spoke]) -> Option<Decision> {
        let first = spoke.first()?;
        let rule = json!({"id": &*first.rule, "file": first.file.as_deref(), "line": first.line});
        let mut asked = Decision::ask(reason_of(spoke))
            .with_key(&*first.rule)
            .with_metadata(metadata::RULE, rule);
        if !first.digest.is_empty() {
            asked = asked.with_pin("rule", &*first.digest);
        }
        if let Some(people) = &first.people {
            asked = asked.with_people(people.clone());
        }
        if let Some(title) = spoke.iter().find_map(|it| it.title.as_deref()) {
            asked = asked.with_title(title);
        }
        if spoke.iter().any(|it| it.every_time) {
            asked = asked.with_metadata(metadata::EVERY_TIME, Value::Bool(true));
        }
        if spoke.iter().all(|it| it.grantable) {
            asked = asked.with_metadata(metadata::GRANTABLE, Value::Bool(true));
        }
        Some(self.pinned(asked))
    }

    fn pinned(&self, asked: Decision) -> Decision {
        let asked = match self.patterns.is_empty() {
            true => asked,
            false => asked.with_grant_patterns(self.patterns.iter().cloned()),
        };
        self.pins.iter().fold(asked, |asked, (what, digest)| asked.with_pin(what, digest))
    }
}

/// The reasons of one question as one text: first what is known about the commands, and in one line those of which nothing
/// is known.
fn reason_of(spoke: &[&Spoke]) -> String {
    let is_unknown = |it: &&Spoke| it.layer == Layer::Default && says_unknown(&it.reason);
    let (unknown, known): (Vec<&Spoke>, Vec<&Spoke>) = spoke.iter().copied().partition(is_unknown);
    let mut reasons: Vec<String> = known.iter().map(|it| it.reason.clone()).collect();
    let mut parts: Vec<String> = unknown.iter().filter_map(|it| shown(it)).collect();
    parts.dedup();
    match unknown.as_slice() {
        // Several commands of which no more is said than that they are not known.
        [_, _, ..] if parts.len() > 1 => {
            reasons
                .push(format!("no rule allows these, as they are not known: {}", parts.join(", ")));
        }
        _ => reasons.extend(unknown.iter().map(|it| it.reason.clone())),
    }
    reasons.dedup();
    reasons.join("; ")
}

/// The command that a rule spoke about, for people.
fn shown(spoke: &Spoke) -> Option<String> {
    let part = countersign::show::escape(spoke.part.as_deref()?);
    let end = part.char_indices().nth(MAX_PART).map_or(part.len(), |(at, _)| at);
    let more = if end < part.len() { "…" } else { "" };
    Some(format!("`{}{more}`", part.get(..end).unwrap_or_default()))
}
