//! The accepted parts of a server: the result of the decided proposals, in their order.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::{self, Difference, PinKind, part_digest};
use crate::client::toolset::PinnedParts;
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState};

/// The parts of a server that people have accepted and denied.
///
/// A part that was accepted stays so: two clients with other capabilities, or two servers of one name, list other tools,
/// and each of them was shown to a person.
#[derive(Default)]
pub(super) struct Accepted {
    /// The accepted values of each part, the last one at the end.
    values: BTreeMap<(PinKind, String), Vec<Value>>,
    /// Definitions that were accepted in the first form, without `_meta`.
    bare: BTreeMap<String, Value>,
    /// `true` if files and packages were accepted. The first form does not have them.
    covers_programs: bool,
    /// The digests of the denied parts, each with the ask by which it was denied.
    denied: BTreeMap<String, String>,
    /// The number of proposals in a row that were cancelled, as the server had other tools before a person has decided.
    pub(super) replaced: u32,
}

/// The standing of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartStanding<'a> {
    Accepted,
    /// Accepted in the first form, without the `_meta` that it has.
    Bare,
    /// Denied as it is now, in this ask.
    Denied(&'a str),
    /// Not accepted as it is now, and another value of it was.
    Changed,
    New,
}

impl Accepted {
    /// Takes up a proposal that is not pending; whether it was approved.
    pub(super) fn fold(&mut self, record: &AskRecord) -> bool {
        match record.decision.as_ref().map(|decision| &decision.answer) {
            Some(Answer::Approve { .. }) if record.state == AskState::Decided => {
                self.accept(record);
                self.replaced = 0;
                return true;
            }
            Some(Answer::Deny { .. }) => {
                for part in parts::digests(record.ask.args()) {
                    self.denied.insert(part, record.ask.id().to_owned());
                }
                self.replaced = 0;
            }
            _ if record.state == AskState::Cancelled => {
                self.replaced = self.replaced.saturating_add(1);
            }
            _ => {}
        }
        false
    }

    fn accept(&mut self, record: &AskRecord) {
        let args = record.args_to_run();
        let is_of_first_form = parts::is_of_first_form(record.ask.args());
        self.covers_programs |= !is_of_first_form;
        for (kind, name, now) in parts::of_args(args) {
            self.denied.remove(&part_digest(kind, &name, &now));
            if is_of_first_form {
                self.bare.insert(name, now);
                continue;
            }
            let values = self.values.entry((kind, name)).or_default();
            values.retain(|value| *value != now);
            values.push(now);
        }
        let removed = args.get("removed").and_then(Value::as_array).into_iter().flatten();
        for name in removed.filter_map(Value::as_str) {
            self.bare.remove(name);
        }
    }

    /// Returns `true` if anything was accepted or denied.
    pub(super) fn is_decided(&self) -> bool {
        self.has_accepted() || !self.denied.is_empty()
    }

    fn has_accepted(&self) -> bool {
        !self.values.is_empty() || !self.bare.is_empty()
    }

    /// Returns `true` if the files and packages of the command are a reason to deny calls.
    pub(super) fn binds_programs(&self) -> bool {
        self.covers_programs && self.has_accepted()
    }

    /// The value of a part that was accepted last, in whichever version of the form.
    pub(super) fn last(&self, kind: PinKind, name: &str) -> Option<&Value> {
        let values = self.values.get(&(kind, name.to_owned()));
        let bare = || self.bare.get(name).filter(|_| kind == PinKind::Tool);
        values.and_then(|values| values.last()).or_else(bare)
    }

    pub(super) fn standing(&self, kind: PinKind, name: &str, now: &Value) -> PartStanding<'_> {
        let values = self.values.get(&(kind, name.to_owned()));
        if values.is_some_and(|values| values.contains(now)) {
            return PartStanding::Accepted;
        }
        if kind == PinKind::Tool
            && self.bare.get(name).is_some_and(|bare| *bare == without_meta(now))
        {
            return match now.get("_meta") {
                None => PartStanding::Accepted,
                Some(_) => PartStanding::Bare,
            };
        }
        // Digests of ten thousand tools take a while.
        let digest = (!self.denied.is_empty()).then(|| part_digest(kind, name, now));
        match digest.and_then(|digest| self.denied.get(&digest)) {
            Some(ask) => PartStanding::Denied(ask),
            None if self.last(kind, name).is_some() => PartStanding::Changed,
            None => PartStanding::New,
        }
    }

    /// The parts that are not accepted as they are now. Parts that are not there any more are none: nothing runs by what
    /// is not offered.
    pub(super) fn differences<'a>(&'a self, parts: &'a PinnedParts) -> Vec<Difference<'a>> {
        let open = parts::all(parts)
            .filter(|(kind, name, now)| self.standing(*kind, name, now) != PartStanding::Accepted);
        let of = |(kind, name, now)| Difference { kind, name, was: self.last(kind, name), now };
        open.map(of).collect()
    }

    /// The ask by which all of these parts were denied, if they all were.
    pub(super) fn denied(&self, differences: &[Difference<'_>]) -> Option<&str> {
        let mut asks = differences.iter().map(|it| self.denied.get(&it.digest()));
        let first = asks.next()??;
        asks.all(|ask| ask.is_some()).then_some(first.as_str())
    }

    /// Returns `true` if a part of this proposal is still denied, so that accepting it would have an effect.
    pub(super) fn is_denied_in(&self, ask: &str) -> bool {
        self.denied.values().any(|by| by == ask)
    }
}

/// A definition as the first form has it.
pub(super) fn without_meta(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Value::Object(fields) = &mut tool {
        fields.remove("_meta");
    }
    tool
}
