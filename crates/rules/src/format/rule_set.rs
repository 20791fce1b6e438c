//! All files that are in force together, indexed by tool.
//!
//! Most rules name one tool, and most calls are about few rules. So we find rules with literal names by a table, and
//! try only those with patterns one by one. A set of a thousand rules costs a call about as much as the ten that
//! concern it. The table is by the name in lower case, as strict rules compare without regard to case. A rule that
//! allows compares again, exactly.
//!
//! If a tool was renamed around the layer, we look it up under both names, each rule once.

use std::collections::HashMap;

use super::rule::{Rule, digest_of};
use super::rule_file::RuleFile;
use crate::calls::call::RuleCall;
use crate::calls::glob::folded;
use crate::calls::tool_pattern::ToolPattern;
use countersign::decision::ToolDecision;
use countersign::origin::ReadLabel;

/// Files of rules that are evaluated together.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSet {
    files: Vec<RuleFile>,
    /// The rules that name a tool, by its name in lower case: file and rule.
    named: HashMap<String, Vec<(usize, usize)>>,
    /// The rules with patterns over names.
    patterns: Vec<(usize, usize)>,
    default_allow: bool,
}

impl RuleSet {
    pub(crate) fn new(files: Vec<RuleFile>) -> Self {
        let mut named: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        let mut patterns = Vec::new();
        for (number, file) in files.iter().enumerate() {
            for (at, rule) in file.rules.iter().enumerate() {
                let place = (number, at);
                if rule.tools.iter().all(ToolPattern::is_literal) {
                    for name in rule.tools.iter().flat_map(ToolPattern::names) {
                        let places = named.entry(name.to_lowercase()).or_default();
                        if !places.contains(&place) {
                            places.push(place);
                        }
                    }
                } else {
                    patterns.push(place);
                }
            }
        }
        let default_allow = files.iter().any(|file| file.default_allow);
        Self { files, named, patterns, default_allow }
    }

    pub(crate) fn files(&self) -> &[RuleFile] {
        &self.files
    }

    pub(crate) fn default_allow(&self) -> bool {
        self.default_allow
    }

    /// The digest of what all files mean together, in any order.
    pub(crate) fn digest(&self) -> String {
        let mut all: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("{:?} {} {}", file.layer, file.meaning, file.widens))
            .collect();
        all.sort();
        let mut map = serde_json::Map::new();
        map.insert("files".into(), all.into());
        digest_of(map)
    }

    /// Calls `each` with every rule that names the tool of a call.
    pub(crate) fn candidates(&self, call: &RuleCall<'_>, mut each: impl FnMut(&RuleFile, &Rule)) {
        let mut speaks = |(file, rule): (usize, usize)| {
            let Some(file) = self.files.get(file) else { return };
            let Some(rule) = file.rules.get(rule) else { return };
            let allows = rule.effect == ToolDecision::Allow;
            if rule.tools.iter().any(|pattern| pattern.matches(call, allows)) {
                each(file, rule);
            }
        };
        let tool = folded(call.tool);
        let named = self.named.get(tool.as_ref());
        named.into_iter().flatten().for_each(|place| speaks(*place));
        if let Some(own) = call.own_name().map(folded).filter(|own| *own != tool) {
            let others = self.named.get(own.as_ref()).into_iter().flatten();
            others
                .filter(|place| !named.is_some_and(|named| named.contains(place)))
                .for_each(|place| speaks(*place));
        }
        self.patterns.iter().for_each(|place| speaks(*place));
    }

    /// The label of the results of a call: all that the files say, together.
    pub(crate) fn label_of(&self, call: &RuleCall<'_>) -> Option<ReadLabel> {
        let sources = self.files.iter().flat_map(|file| &file.sources);
        sources.filter_map(|source| source.label_of(call)).cloned().reduce(ReadLabel::and)
    }

    /// The call as rules look at it: one of a tool that a file calls a source only reads.
    pub(crate) fn as_seen<'a>(&self, call: &RuleCall<'a>) -> RuleCall<'a> {
        match call.origin.is_some() && self.label_of(call).is_some() {
            true => call.clone().reading(),
            false => call.clone(),
        }
    }

    /// Returns `true` if a user's file says that the tool of a call only reads.
    pub(crate) fn only_reads(&self, call: &RuleCall<'_>) -> bool {
        self.files.iter().flat_map(|file| &file.readers).any(|pattern| pattern.matches(call, true))
    }
}
