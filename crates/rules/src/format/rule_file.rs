//! One file of rules, which loads as a whole or not at all (rule R3).
//!
//! We read the version first. If a file is of a version that this build does not know, we read no further: its keys
//! may mean something else, and a list of complaints about them would hide the one fact that matters. Any other file
//! we read to the end, and report all problems together, sorted by place.
//!
//! `meaning` and `digest` are two digests on purpose. The meaning decides whether a reload has changed anything. For
//! a project, a person approves the digest of the bytes, as people read bytes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::document::{Item, boolean, entries, string, strings};
use super::example::Example;
use super::read_source::ReadSource;
use super::rule::{Rule, digest_of, hex_digest};
use super::source::Source;
use crate::calls::engine::Engine;
use crate::calls::tool_pattern::ToolPattern;
use crate::error::RulesError;
use crate::preset;
use crate::ruling::Layer;
use countersign_shell::Preset;

/// The versions of the format that this build reads. A file says the lowest one that has all of its keys.
pub(super) const VERSIONS: [i64; 2] = [1, 2];

/// The values of `edits`: the first of them runs edits in the workspace unasked.
pub(super) const EDITS: [&str; 2] = ["workspace", "ask"];

/// The keys of a file, with what the JSON Schema says about them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("version", "The version of the format."),
    (
        "preset",
        "A preset that comes with the program, whose rules count beside those of the file. Of version 2.",
    ),
    (
        "edits",
        "Edits of files in the project: `workspace` runs them unasked, but for protected files and definitions of builds; `ask` is the default. Of version 2.",
    ),
    (
        "danger_default_allow",
        "Allows every call that no rule speaks about. Without it such a call is asked about.",
    ),
    (
        "read_only_tools",
        "Tools that only read, so that the built-in questions about writing do not apply to them.",
    ),
    ("rule", "The rules. Their order has no meaning: the strictest one wins."),
    ("source", "How the results of tools are labelled. Of version 2."),
    (
        "test",
        "Calls that this file alone has to allow, ask about or deny. A file with a failing test does not load.",
    ),
];

/// One file of rules.
#[derive(Debug, Clone)]
pub(crate) struct RuleFile {
    pub(crate) name: Arc<str>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) layer: Layer,
    pub(crate) rules: Vec<Rule>,
    pub(crate) examples: Vec<Example>,
    pub(crate) default_allow: bool,
    pub(crate) readers: Vec<ToolPattern>,
    pub(crate) sources: Vec<ReadSource>,
    /// The sources, each for a person.
    pub(crate) shown_sources: Vec<String>,
    /// The preset that counts beside the file.
    pub(crate) preset: Option<Preset>,
    /// `true` if edits in the workspace run unasked.
    pub(crate) edits: bool,
    /// The digest of what the file means: comments, order, reasons and tests are no part of it.
    pub(crate) meaning: String,
    /// The digest of the file's bytes.
    pub(crate) digest: String,
    pub(crate) text: Arc<str>,
    /// `true` if what the file allows is in force (rule R4).
    pub(crate) widens: bool,
}

impl RuleFile {
    /// Reads a file from its text. The tests in it are not run yet.
    pub(crate) fn read(
        name: &str,
        text: &str,
        layer: Layer,
        engine: &Engine,
    ) -> Result<(Self, Source), RulesError> {
        let mut source = Source::new(name, text);
        let parsed = match DeTable::parse(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                source.problem(&span, error.message().trim());
                source.checked()?;
                return Err(RulesError::new(name, "is no TOML document"));
            }
        };
        let mut file = Self {
            name: Arc::clone(&source.file),
            path: None,
            layer,
            rules: Vec::new(),
            examples: Vec::new(),
            default_allow: false,
            readers: Vec::new(),
            sources: Vec::new(),
            shown_sources: Vec::new(),
            preset: None,
            edits: false,
            meaning: String::new(),
            digest: hex_digest(text.as_bytes()),
            text: text.into(),
            widens: layer != Layer::Project,
        };
        let document = parsed.get_ref();
        Self::version(&mut source, document);
        // A file of another version is not read any further: its keys may mean something else.
        source.checked()?;
        file.keys(&mut source, document, engine);
        file.unique(&mut source);
        source.checked()?;
        file.meaning = file.meaning_of();
        Ok((file, source))
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    fn version(source: &mut Source, document: &DeTable<'_>) {
        match entries(document).find(|(key, ..)| *key == "version") {
            None => source.problem(
                &(0..0),
                "a file of rules begins with `version = 1`, or `version = 2` if it has a key of that version",
            ),
            Some((_, _, item)) => {
                let number = item.get_ref().as_integer();
                let version =
                    number.and_then(|it| i64::from_str_radix(it.as_str(), it.radix()).ok());
                match version.filter(|version| VERSIONS.contains(version)) {
                    Some(version) => source.version = version,
                    None => source.problem(
                        &item.span(),
                        "this program reads the versions 1 and 2 of the format, and no other",
                    ),
                }
            }
        }
    }

    fn keys(&mut self, source: &mut Source, document: &DeTable<'_>, engine: &Engine) {
        for (key, span, item) in entries(document) {
            match key {
                "version" => {}
                "danger_default_allow" if self.layer == Layer::Project => {
                    source.problem(&span, "only a user's own file can have `danger_default_allow`");
                }
                "danger_default_allow" => {
                    self.default_allow =
                        boolean(source, "`danger_default_allow`", item).unwrap_or_default();
                }
                "preset" | "edits" if self.layer == Layer::Project => {
                    source.problem(&span, format!("only a user's own file can have `{key}`"));
                }
                "edits" => {
                    source.needs_version(&span, 2, "edits");
                    self.edits = edits_of(source, item);
                }
                "preset" => {
                    source.needs_version(&span, 2, "preset");
                    self.preset = preset_of(source, item);
                }
                "read_only_tools" if self.layer == Layer::Project => {
                    source.problem(&span, "only a user's own file can have `read_only_tools`");
                }
                "read_only_tools" => {
                    for (text, span) in strings(source, "`read_only_tools`", item) {
                        self.readers.extend(source.tool_pattern(text, &span));
                    }
                }
                "rule" => match item.get_ref() {
                    DeValue::Array(items) => {
                        for item in items.iter() {
                            let before = source.problems.len();
                            match Rule::read(source, item) {
                                Some(rule) => self.rules.push(rule),
                                None if source.problems.len() == before => {
                                    source.problem(&item.span(), "the rule cannot be read");
                                }
                                None => {}
                            }
                        }
                    }
                    _ => source.problem(&span, "rules are written below `[[rule]]`"),
                },
                "source" => {
                    source.needs_version(&span, 2, key);
                    self.sources = ReadSource::read(source, item, self.layer);
                    self.shown_sources = ReadSource::shown(item);
                }
                "test" => self.examples = Example::read(source, item, engine),
                "default" => source.problem(
                    &span,
                    "calls that no rule speaks about are asked about; `danger_default_allow = true` allows them",
                ),
                _ => source.problem(&span, unknown(key)),
            }
        }
    }

    fn unique(&self, source: &mut Source) {
        let mut examined: HashMap<&str, usize> = HashMap::new();
        for rule in &self.rules {
            if let Some(line) = examined.insert(&rule.id, rule.line) {
                source.problem(
                    &rule.span,
                    format!("the rule on line {line} has the id `{}`, too", rule.id),
                );
            }
        }
    }

    fn meaning_of(&self) -> String {
        let mut rules: Vec<Value> =
            self.rules.iter().map(|rule| json!([&*rule.id, &*rule.digest])).collect();
        rules.sort_by_key(Value::to_string);
        let mut readers: Vec<&str> = self.readers.iter().map(ToolPattern::text).collect();
        readers.sort_unstable();
        let mut map = Map::new();
        map.insert("rules".into(), Value::Array(rules));
        map.insert("default_allow".into(), self.default_allow.into());
        map.insert("readers".into(), json!(readers));
        if !self.sources.is_empty() {
            let mut sources: Vec<_> = self.sources.iter().map(|it| format!("{it:?}")).collect();
            sources.sort_unstable();
            map.insert("sources".into(), json!(sources));
        }
        if let Some(preset) = self.preset {
            map.insert("preset".into(), preset::name_of(preset).into());
        }
        if self.edits {
            map.insert("edits".into(), EDITS[0].into());
        }
        digest_of(map)
    }
}

fn preset_of(source: &mut Source, item: &Item<'_>) -> Option<Preset> {
    let name = string(source, "`preset`", item)?;
    let found = preset::named(name);
    if found.is_none() {
        let all = preset::NAMED.map(|(name, _)| format!("`{name}`")).join(" and ");
        source.problem(&item.span(), format!("there is no preset {name:?}: the presets are {all}"));
    }
    found
}

fn edits_of(source: &mut Source, item: &Item<'_>) -> bool {
    let given = string(source, "`edits`", item);
    if let Some(other) = given.filter(|it| !EDITS.contains(it)) {
        source.problem(&item.span(), format!("`edits` is `workspace` or `ask`, and not {other:?}"));
    }
    given == Some(EDITS[0])
}

fn unknown(key: &str) -> String {
    match KEYS.iter().find(|(name, _)| strsim::jaro(name, key) > 0.8) {
        Some((near, _)) => format!("a file of rules has no `{key}`: is `{near}` meant?"),
        None => format!("a file of rules has no `{key}`"),
    }
}
