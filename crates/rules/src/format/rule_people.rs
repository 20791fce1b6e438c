//! The people who have to approve the calls that a rule asks about: `people`, `not_the_requester` and `approvers`
//! (rule R9).
//!
//! The rule names the people, and the ledger counts them. If the rule alone shows that no one can meet its demand, the file
//! does not load: its calls would wait for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::DeTable;

use super::document::{boolean, count, entries, strings};
use super::source::Source;
use countersign::decision::{People, ToolDecision};

/// The most people that a rule can demand.
pub(crate) const MAX_PEOPLE: u32 = 100;

/// The keys, with the version of the format that has them.
const KEYS: [&str; 3] = ["people", "not_the_requester", "approvers"];
const VERSION: i64 = 2;

/// The people who have to approve, and the line in which the rule says so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RulePeople {
    pub(crate) people: People,
    span: Range<usize>,
}

impl RulePeople {
    /// Reads the keys about people in a rule; `None` where there are none.
    pub(crate) fn read(
        source: &mut Source,
        rule: &DeTable<'_>,
        effect: ToolDecision,
    ) -> Option<Self> {
        let mut people = People::new(1);
        let mut found: Option<Range<usize>> = None;
        for (key, span, item) in entries(rule).filter(|(key, ..)| KEYS.contains(key)) {
            source.needs_version(&span, VERSION, key);
            if effect != ToolDecision::Ask {
                let text =
                    format!("`{key}` is about who approves, so only a rule with `ask` has it");
                source.problem(&span, text);
            }
            match key {
                "people" => match count(source, "`people`", item) {
                    Some(number @ 1..=MAX_PEOPLE) => people.approvals = number,
                    Some(_) => source.problem(
                        &item.span(),
                        format!("`people` is at least 1 and at most {MAX_PEOPLE}"),
                    ),
                    None => {}
                },
                "not_the_requester" => {
                    let excluded = boolean(source, "`not_the_requester`", item);
                    people.not_the_requester = excluded.unwrap_or_default();
                }
                _ => {
                    // An empty list is an error of `strings`: it would mean no one.
                    let names = strings(source, "`approvers`", item);
                    for (name, span) in &names {
                        if name.trim().is_empty() || *name == "group:" {
                            source.problem(span, "an approver is a name, or `group:NAME`");
                        }
                    }
                    people = people.with_approvers(names.into_iter().map(|(name, _)| name));
                }
            }
            found.get_or_insert(span);
        }
        found.map(|span| Self { people, span })
    }

    /// Adds a problem for a group that is not known, and for more people than there are approvers.
    pub(crate) fn check(&self, source: &mut Source, groups: &BTreeMap<String, Vec<String>>) {
        let Some(approvers) = &self.people.approvers else { return };
        let (mut names, mut is_known) = (BTreeSet::new(), true);
        for approver in approvers {
            match approver.strip_prefix("group:") {
                None => _ = names.insert(approver.trim().to_lowercase()),
                Some(group) => match groups.get(group) {
                    Some(members) => {
                        names.extend(members.iter().map(|name| name.trim().to_lowercase()));
                    }
                    None => {
                        is_known = false;
                        let text = format!(
                            "there is no group `{group}`: name its members in the configuration file (`config.toml`), \
                             with `{group} = [\"ann\", \"bob\"]` below `[groups]`, or with `RulesBuilder::groups`"
                        );
                        source.problem(&self.span, text);
                    }
                },
            }
        }
        let there = u32::try_from(names.len()).unwrap_or(u32::MAX);
        if is_known && there < self.people.approvals {
            let text = format!(
                "{} people have to approve, and `approvers` has {there}",
                self.people.approvals
            );
            source.problem(&self.span, text);
        }
    }
}
