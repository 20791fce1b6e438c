//! The difference between two forms of a file of rules, rule by rule.
//!
//! A person is shown the difference before they accept new rules, so it is about meaning and not about lines. For example, an
//! edited comment, another order or a new reason is no difference, while a changed condition is, in whatever form it is
//! written. We make the text from what was read, and it has every key that changes the digest of a rule. `may_widen` is a
//! statement about the kind of change, made without any call: in doubt it is `true`. [`replay`](crate::replay) says what
//! really changes for recorded calls.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::calls::engine::{Engine, test_engine};
use crate::error::RulesError;
use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::preset;
use crate::ruling::Layer;
use countersign::decision::ToolDecision;

/// One rule that was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleDifference {
    /// The id of the rule.
    pub rule: String,
    /// The text of the rule before; `None` if it was added.
    pub before: Option<String>,
    /// The text of the rule after; `None` if it was removed.
    pub after: Option<String>,
    /// `true` if the change may allow more than before: a rule that allows was added or changed, one that asks, denies
    /// or limits was removed or changed, another preset is named, what is read is labelled in another way, or more
    /// tools are said to only read.
    pub may_widen: bool,
}

/// The rules that differ between two texts, by their ids. Comments, order and reasons are no difference.
///
/// ```
/// let old = "version = 1\n[[rule]]\nid = 'pay'\nask = 'pay'";
/// let new = "version = 1\n[[rule]]\nid = 'pay'\nallow = 'pay'";
/// let found = countersign_rules::difference(old, new)?;
/// assert_eq!((found.len(), found[0].may_widen), (1, true));
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// # Errors
/// [`RulesError`] if one of the texts is no file of rules.
pub fn difference(old: &str, new: &str) -> Result<Vec<RuleDifference>, RulesError> {
    let engine = test_engine(&Engine::known_shells(), None);
    let (old, _) = RuleFile::read("old", old, Layer::User, &engine)?;
    let (new, _) = RuleFile::read("new", new, Layer::User, &engine)?;
    let mut rules: BTreeMap<&str, [Option<&Rule>; 2]> = BTreeMap::new();
    for rule in &old.rules {
        rules.entry(&rule.id).or_default()[0] = Some(rule);
    }
    for rule in &new.rules {
        rules.entry(&rule.id).or_default()[1] = Some(rule);
    }
    let mut found = Vec::new();
    for (id, [before, after]) in rules {
        if before.map(|rule| &rule.digest) == after.map(|rule| &rule.digest) {
            continue;
        }
        let allows = after.is_some_and(|rule| rule.effect == ToolDecision::Allow);
        // A limit of a rule that allows is stricter than another rule that allows the same.
        let forbade =
            before.is_some_and(|rule| rule.effect != ToolDecision::Allow || rule.at_most.is_some());
        found.push(RuleDifference {
            rule: id.to_owned(),
            before: before.map(|rule| rule.shown.to_string()),
            after: after.map(|rule| rule.shown.to_string()),
            may_widen: allows || forbade,
        });
    }
    let readers = |file: &RuleFile| {
        let names: BTreeSet<String> = file.readers.iter().map(|it| it.text().to_owned()).collect();
        names
    };
    let (read, reads) = (readers(&old), readers(&new));
    if read != reads {
        let text = |names: &BTreeSet<String>| {
            let names = names.iter().collect::<Vec<_>>();
            (!names.is_empty()).then(|| format!("read_only_tools = {names:?}"))
        };
        found.push(RuleDifference {
            rule: "read_only_tools".into(),
            before: text(&read),
            after: text(&reads),
            may_widen: !reads.is_subset(&read),
        });
    }
    found.extend(of_presets(&old, &new));
    found.extend(of_sources(&old, &new));
    found.extend(of_edits(&old, &new));
    if old.default_allow != new.default_allow {
        let text = |set: bool| Some(format!("danger_default_allow = {set}"));
        found.push(RuleDifference {
            rule: "default".into(),
            before: text(old.default_allow),
            after: text(new.default_allow),
            may_widen: new.default_allow,
        });
    }
    Ok(found)
}

/// The difference of whether edits run unasked.
fn of_edits(old: &RuleFile, new: &RuleFile) -> Option<RuleDifference> {
    let text = |file: &RuleFile| file.edits.then(|| "edits = \"workspace\"".to_owned());
    (old.edits != new.edits).then(|| RuleDifference {
        rule: "edits".into(),
        before: text(old),
        after: text(new),
        // The rules beside it ask about definitions of builds, so that one which is gone may allow more as well.
        may_widen: true,
    })
}

/// The difference of the presets that two files name.
fn of_presets(old: &RuleFile, new: &RuleFile) -> Option<RuleDifference> {
    let text = |file: &RuleFile| {
        file.preset.map(|preset| format!("preset = \"{}\"", preset::name_of(preset)))
    };
    // A preset denies and asks, too, so that one which is gone may allow more as well.
    (old.preset != new.preset).then(|| RuleDifference {
        rule: "preset".into(),
        before: text(old),
        after: text(new),
        may_widen: true,
    })
}

/// The difference of the labels for what is read. Another label may let an allowance speak that did not.
fn of_sources(old: &RuleFile, new: &RuleFile) -> Option<RuleDifference> {
    let sorted = |file: &RuleFile| {
        let mut texts = file.shown_sources.clone();
        texts.sort_unstable();
        texts
    };
    let (before, after) = (sorted(old), sorted(new));
    let text = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("\n"));
    (before != after).then(|| RuleDifference {
        rule: "source".into(),
        before: text(&before),
        after: text(&after),
        may_widen: true,
    })
}
