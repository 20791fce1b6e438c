//! The tables `[[source]]`: how the results of tools are labelled (rule O1).
//!
//! ```toml
//! [[source]]
//! tool = "read_mail"
//! own = "/*/id"                        # only ids: a sender chooses everything else
//! others = { mail = ["/*/body", "/*/sender"] }
//!
//! [[source]]
//! tool = "search_contacts"
//! own = true
//! ```
//!
//! The results of all other tools are text of others. A project's file can only make labels stricter.

use toml::de::{DeTable, DeValue};

use super::document::{Item, boolean, entries, object, string, strings, table};
use super::shown::table_text;
use super::source::Source;
use crate::calls::call::RuleCall;
use crate::calls::tool_pattern::ToolPattern;
use crate::matching::condition::{Condition, FieldPath, Test};
use crate::matching::origins::OriginTest;
use crate::ruling::Layer;
use countersign::origin::ReadLabel;

/// The keys of a source, with what the JSON Schema of the file says about them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("tool", "The tools whose results are labelled."),
    (
        "own",
        "`true`, or fields that no third party can choose, as JSON pointers: `/*/id`. A field counts as a whole.",
    ),
    ("own_text", "Whether a result that is one text counts as one field of `own`."),
    ("others", "The label of the rest, or fields by label: `{ mail = [\"/*/body\"] }`."),
];

/// The labels of the results of some tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadSource {
    tools: Vec<ToolPattern>,
    label: ReadLabel,
    /// `true` if anything is `own`, so that the tool has to be the very one that is named.
    widens: bool,
}

impl ReadSource {
    /// The label for this call's tool, if the source is about it.
    pub(crate) fn label_of(&self, call: &RuleCall<'_>) -> Option<&ReadLabel> {
        let is_meant = self.tools.iter().any(|tool| tool.matches(call, self.widens));
        is_meant.then_some(&self.label)
    }

    /// Reads all tables `[[source]]`.
    pub(crate) fn read(source: &mut Source, item: &Item<'_>, layer: Layer) -> Vec<Self> {
        let DeValue::Array(items) = item.get_ref() else {
            source.problem(&item.span(), "sources are written below `[[source]]`");
            return Vec::new();
        };
        items.iter().filter_map(|item| Self::one(source, item, layer)).collect()
    }

    /// The text of each table, for a person.
    pub(crate) fn shown(item: &Item<'_>) -> Vec<String> {
        let DeValue::Array(items) = item.get_ref() else { return Vec::new() };
        let tables = items.iter().filter_map(|item| object(item.get_ref().as_table()?));
        tables.map(|table| table_text("source", &table)).collect()
    }

    fn one(source: &mut Source, item: &Item<'_>, layer: Layer) -> Option<Self> {
        let found = table(source, "a source", item)?;
        let (mut tools, mut label) = (Vec::new(), ReadLabel::unlabelled());
        let (mut own, mut own_text, mut own_fields) = (false, false, Vec::new());
        for (key, span, item) in entries(found) {
            match key {
                "tool" => {
                    for (text, span) in strings(source, "`tool`", item) {
                        tools.extend(source.tool_pattern(text, &span));
                    }
                }
                "own" | "own_text" if layer == Layer::Project => {
                    source.problem(&span, "only a user's own file says what is `own`");
                }
                "own" if item.get_ref().as_bool().is_some() => {
                    own = boolean(source, "`own`", item).unwrap_or_default();
                }
                "own" => own_fields = pointers(source, "`own`", item),
                "own_text" => own_text = boolean(source, "`own_text`", item).unwrap_or_default(),
                "others" => label = others(source, item)?,
                _ => source.problem(
                    &span,
                    format!("a source has `tool`, `own`, `own_text` and `others`, and no `{key}`"),
                ),
            }
        }
        if tools.is_empty() {
            source.problem(&item.span(), "a source needs a `tool`");
            return None;
        }
        if own && entries(found).any(|(key, ..)| key == "others") {
            let text = "`own = true` is about all fields: name the fields of the owner instead";
            source.problem(&item.span(), text);
            return None;
        }
        if own_text && !own {
            source.problem(&item.span(), "`own_text` is about a tool with `own = true`");
            return None;
        }
        let label = match (own, own_text) {
            (true, true) => ReadLabel::own().own_text(),
            (true, false) => ReadLabel::own(),
            (false, _) => label.own_fields(own_fields.iter().map(String::as_str)),
        };
        Some(Self { tools, label, widens: own || !own_fields.is_empty() })
    }
}

fn others(source: &mut Source, item: &Item<'_>) -> Option<ReadLabel> {
    let plain = |source: &mut Source, name: &str, item: &Item<'_>| {
        let fits = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && !["user", "own", "others"].contains(&name);
        if !fits {
            let text =
                "a label has letters, digits, `-` and `_`, and is none of `user`, `own`, `others`";
            source.problem(&item.span(), text);
        }
        fits
    };
    if let Some(found) = item.get_ref().as_table() {
        let mut label = ReadLabel::unlabelled();
        for (name, _, item) in entries(found) {
            if plain(source, name, item) {
                let fields = pointers(source, "`others`", item);
                label = label.others_fields(name, fields.iter().map(String::as_str));
            }
        }
        return Some(label);
    }
    let name = string(source, "`others`", item)?;
    plain(source, name, item).then(|| ReadLabel::others(name))
}

fn pointers(source: &mut Source, what: &str, item: &Item<'_>) -> Vec<String> {
    let found = strings(source, what, item);
    for (text, span) in &found {
        if !text.starts_with('/') {
            let text = format!("{what} has JSON pointers, such as `/*/id`, and no `{text}`");
            source.problem(span, text);
        }
    }
    found.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// Reads the table `when` of a rule: what the run has read.
pub(super) fn when(source: &mut Source, rule: &DeTable<'_>, allows: bool) -> Vec<Condition> {
    let Some((_, span, item)) = entries(rule).find(|(key, ..)| *key == "when") else {
        return Vec::new();
    };
    source.needs_version(&span, 2, "when");
    let Some(found) = table(source, "`when`", item) else { return Vec::new() };
    let mut all = Vec::new();
    for (key, span, item) in entries(found) {
        let is_wrong = match (key, allows) {
            ("has_read", true) => Some(
                "`has_read` holds where nothing is recorded, and a rule that allows would then allow: write `has_not_read`",
            ),
            ("has_not_read", false) => Some(
                "`has_not_read` does not hold where nothing is recorded, and the rule would be silent: write `has_read`",
            ),
            ("has_read" | "has_not_read", _) => None,
            _ => {
                Some("`when` has `has_read`, in rules that allow `has_not_read`, and nothing else")
            }
        };
        if let Some(problem) = is_wrong {
            source.problem(&span, problem);
            continue;
        }
        let sources: Vec<String> = strings(source, &format!("`{key}`"), item)
            .into_iter()
            .map(|(text, _)| text.to_owned())
            .collect();
        if let Some(wrong) = sources.iter().find(|it| matches!(it.as_str(), "user" | "own")) {
            let text = format!(
                "`{key}` is about text of others, such as \"others\" or \"web\", and not of `{wrong}`"
            );
            source.problem(&item.span(), text);
            continue;
        }
        let text = format!("when.{key} = {}", sources.join(", "));
        let Some(test) = OriginTest::of(key, sources).map(Test::Origin) else { continue };
        all.push(Condition { field: FieldPath::Run, test, text });
    }
    all
}
