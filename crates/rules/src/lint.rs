//! Finds rules that do nothing, or more than they seem to.
//!
//! A correct file may not mean what its author thinks. Findings are about that gap, and none of them stops a file
//! from loading:
//!
//! | kind | found |
//! |---|---|
//! | `over-wide` | a rule that allows more than it seems to |
//! | `shadowed` | a rule that allows, and is always overruled |
//! | `dead` | no tool of that name, no such field, a pattern that matches nothing |
//! | `renamed` | a tool by a name of some coding agent's that hooks do not use |
//! | `some-agents` | a tool by the name that only some coding agents have for it |
//! | `untested` | a file without tests, a rule that no test makes speak |
//! | `by-default` | a test that wants a question, and no rule asks one |
//! | `misspelt` | a field or a tool by a name that none has, near to one that some has |
//! | `no-server` | a rule that allows a tool of a server without naming the server |
//! | `no-reason` | a denial that does not tell the model what to do instead |
//! | `ambiguous` | one id in two files, whose questions look alike |
//! | `writable` | a file in the workspace, where tools may write |
//! | `targets` | a target of a tool that a rule about origins does not look at |
//! | `builds` | writes that are allowed beside builds that run what was written |
//!
//! We compare names of tools with definitions only if you give all of them ([`lint`]'s second argument). A rule about a
//! tool that is not there is no error elsewhere, as one file serves several programs (rule R3).

use countersign_shell::protected::is_protected;
use serde::Serialize;
use serde_json::Value;

use super::coverage::{self, CoverageFinding};
use super::handle::Rules;
use super::import::{alone, may_allow};
use super::ruling::Layer;
use crate::calls::classes::Classes;
use crate::calls::tool_pattern::ToolPattern;
use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::matching::condition::{Condition, FieldPath, Test};
use crate::readings::shells::is_known_shell;
use crate::readings::tools::{client_of, named_otherwise, of_some_agents};
use countersign::call::ToolDefinition;
use countersign::decision::ToolDecision;

/// One finding about a rule or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lint {
    /// The file of the finding.
    pub file: String,
    /// The line of the rule; 1 for a finding about the file.
    pub line: usize,
    /// The id of the rule; empty for a finding about the file.
    pub rule: String,
    /// The kind of the finding, such as `dead` or `over-wide`.
    pub kind: &'static str,
    /// The finding in words, and what to do about it.
    pub text: String,
}

impl std::fmt::Display for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.kind, self.text)
    }
}

/// Examines the rules that were loaded. With the definitions of all tools, rules about tools and fields that do not
/// exist are found, too.
///
/// ```
/// use countersign_rules::{Rules, lint};
///
/// let rules = Rules::builder().lexical().text("mine.toml", "version = 1\n[[rule]]\nid = 'all'\nallow = '*'").load()?;
/// let found = lint(&rules, None);
/// assert!(found.iter().any(|lint| lint.kind == "over-wide" && lint.rule == "all"));
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[must_use]
pub fn lint(rules: &Rules, tools: Option<&[ToolDefinition]>) -> Vec<Lint> {
    let Some(set) = rules.latest() else { return Vec::new() };
    let mut linting = Linting { files: set.files(), found: Vec::new() };
    for file in set.files().iter().filter(|file| file.layer != Layer::Preset) {
        linting.file(file, rules);
        for found in coverage::findings(file, rules.test_engine()) {
            let CoverageFinding { rule, line, kind, text } = found;
            let rule = rule.map(|rule| rule.id.to_string()).unwrap_or_default();
            linting.found.push(Lint { file: file.name.to_string(), line, rule, kind, text });
        }
        for rule in &file.rules {
            linting.wide(file, rule, rules);
            linting.shadowed(file, rule);
            linting.conditions(file, rule);
            linting.named(file, rule);
            linting.renamed(file, rule, tools.unwrap_or_default());
            if let Some(tools) = tools {
                linting.dead(file, rule, tools);
                linting.targets(file, rule, tools);
            }
        }
    }
    linting.builds();
    linting.found
}

/// Names of arguments that say where something goes.
const TARGETS: &[&str] = &[
    "account",
    "address",
    "bcc",
    "cc",
    "channel",
    "email",
    "endpoint",
    "host",
    "iban",
    "participants",
    "phone",
    "receiver",
    "recipient",
    "recipients",
    "to",
    "uri",
    "url",
    "user",
    "user_email",
    "webhook",
];

struct Linting<'a> {
    files: &'a [RuleFile],
    found: Vec<Lint>,
}

impl Linting<'_> {
    fn add(
        &mut self,
        file: &RuleFile,
        rule: Option<&Rule>,
        kind: &'static str,
        text: impl Into<String>,
    ) {
        let found = Lint {
            file: file.name.to_string(),
            line: rule.map_or(1, |rule| rule.line),
            rule: rule.map(|rule| rule.id.to_string()).unwrap_or_default(),
            kind,
            text: text.into(),
        };
        if !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    fn file(&mut self, file: &RuleFile, rules: &Rules) {
        if file.default_allow {
            self.add(file, None, "over-wide", "every call that no rule speaks about is allowed");
        }
        let does_more = |rule: &Rule| !coverage::asks_alone(file, rule);
        if file.examples.is_empty() && file.rules.iter().any(does_more) {
            self.add(
                file,
                None,
                "untested",
                "there is no test: add a `[test]` with calls to allow, ask about and deny",
            );
        }
        // In a home that is the workspace, the configuration directory is one of the places that no tool writes unasked.
        let inside = |path: &std::path::PathBuf| {
            std::fs::canonicalize(path).is_ok_and(|path| {
                path.strip_prefix(rules.root()).is_ok_and(|path| !is_protected(path))
            })
        };
        // Where no file is looked at, as in a job of CI, the working tree is not where agents work.
        let is_looked_at = file.layer == Layer::User && rules.looks_at_files();
        if is_looked_at && file.path.as_ref().is_some_and(inside) {
            self.add(file, None, "writable", "the file is in the workspace, where tools may write: move it to the configuration directory");
        }
        let own = |rule: &Rule| file.rules.iter().any(|it| it.id == rule.id);
        let twice: Vec<String> = self
            .files
            .iter()
            .filter(|other| other.name != file.name)
            .flat_map(|other| &other.rules)
            .filter(|rule| own(rule))
            .map(|rule| rule.id.to_string())
            .collect();
        for id in twice {
            self.add(
                file,
                None,
                "ambiguous",
                format!("another file has a rule `{id}`, too: questions of both look alike"),
            );
        }
    }

    fn wide(&mut self, file: &RuleFile, rule: &Rule, rules: &Rules) {
        if rule.effect == ToolDecision::Deny && rule.reason.is_none() {
            self.add(
                file,
                Some(rule),
                "no-reason",
                "a denial without `reason` does not tell the model what to do instead",
            );
        }
        if rule.effect != ToolDecision::Allow {
            return;
        }
        let conditional = !rule.whole.is_empty() || !rule.commands.is_empty();
        if rule.tools.iter().any(ToolPattern::is_every_tool) && !conditional {
            self.add(file, Some(rule), "over-wide", "every tool is allowed with any arguments");
        }
        let shell = |pattern: &ToolPattern| pattern.literal().is_some_and(is_known_shell);
        if rule.tools.iter().any(shell) && rule.commands.is_empty() && rule.whole.is_empty() {
            self.add(
                file,
                Some(rule),
                "over-wide",
                "every command is allowed: add `where.command.is` or `where.command.runs`",
            );
        }
        let is_of_classes = rule.commands.iter().any(|it| matches!(it.test, Test::Is(_)));
        for condition in rule.commands.iter().filter(|_| !is_of_classes) {
            if let Test::Runs(programs) = &condition.test {
                for words in programs {
                    self.program(file, rule, words, rules);
                }
            }
        }
    }

    fn program(&mut self, file: &RuleFile, rule: &Rule, words: &[String], rules: &Rules) {
        let Some(program) = words.first() else { return };
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        if !may_allow(&all, rules) {
            let text = format!("no command that begins with `{}` is allowed", all.join(" "));
            return self.add(file, Some(rule), "dead", text);
        }
        // A command behind a program like `timeout` is judged by itself, so that words which allow nothing alone are not wide.
        let is_runner = crate::format::condition_format::RUNNERS.contains(&program.as_str());
        let text = match is_runner {
            true if alone(&all).is_some_and(|rules| may_allow(&all, &rules)) => {
                format!("`{program}` runs what its arguments say")
            }
            false if words.len() == 1 => {
                format!("every sub-command and option of `{program}` is allowed")
            }
            _ => return,
        };
        self.add(file, Some(rule), "over-wide", text);
    }

    /// An allow that is always overruled.
    fn shadowed(&mut self, file: &RuleFile, rule: &Rule) {
        if rule.effect != ToolDecision::Allow {
            return;
        }
        let plain = |other: &&Rule| {
            other.effect != ToolDecision::Allow
                && other.whole.is_empty()
                && other.commands.is_empty()
                && other.exceptions.is_empty()
                && other.at_most.is_none()
        };
        let covers = |other: &Rule| {
            let one = |tool: &ToolPattern| {
                // `mcp:SERVER/*` is every tool of one server only.
                other.tools.iter().any(|it| it.text() == "*" || it.text() == tool.text())
            };
            rule.tools.iter().all(one)
        };
        let all = self.files.iter().flat_map(|file| &file.rules);
        if let Some(stricter) = all.filter(plain).find(|other| covers(other)) {
            let text = format!(
                "the rule `{}` is always stricter, so that this one never counts",
                stricter.id
            );
            self.add(file, Some(rule), "shadowed", text);
        }
    }

    fn conditions(&mut self, file: &RuleFile, rule: &Rule) {
        let all = rule.whole.iter().chain(rule.exceptions.iter().flatten());
        let texts: Vec<(&'static str, String)> =
            all.filter_map(|it| suspicious(it, rule.effect)).collect();
        for (kind, text) in texts {
            self.add(file, Some(rule), kind, text);
        }
    }

    /// A tool by a name that no door produces, or by that of some coding agents.
    fn named(&mut self, file: &RuleFile, rule: &Rule) {
        for pattern in &rule.tools {
            if let Some(why) = pattern.matches_nothing() {
                let text = format!("no door has a tool `{}`: {why}", pattern.text());
                self.add(file, Some(rule), "dead", text);
            }
        }
        let tested = |name: &str| file.examples.iter().any(|example| example.tool == name);
        let plain = rule.tools.iter().filter_map(ToolPattern::plain_name);
        let names = || rule.tools.iter().filter_map(ToolPattern::plain_name);
        for name in plain.filter(|_| rule.effect != ToolDecision::Allow) {
            let Some((agents, kind)) = of_some_agents(name).filter(|_| !tested(name)) else {
                continue;
            };
            if rule.tools.iter().any(ToolPattern::is_every_tool) || names().any(|it| it == kind) {
                continue;
            }
            let text = format!(
                "`{name}` is a tool of {} alone: `{kind}` is that of every coding agent. A tool of your own program is \
                 `set:ID/{name}`",
                agents.join(" and ")
            );
            self.add(file, Some(rule), "some-agents", text);
        }
    }

    /// A tool by the name that a coding agent has for it, where the hook has another one: no door has that tool.
    /// A rule that denies or asks is about it by either name.
    fn renamed(&mut self, file: &RuleFile, rule: &Rule, tools: &[ToolDefinition]) {
        if rule.effect != ToolDecision::Allow {
            return;
        }
        let speaks_about = |tool: &str| {
            let none = serde_json::Map::new();
            let call = crate::calls::call::RuleCall::new(tool, &none);
            rule.tools.iter().any(|pattern| pattern.matches(&call, true))
        };
        for (client, name) in rule.tools.iter().filter_map(ToolPattern::of_client) {
            let known =
                client_of(client).and_then(|tools| Some((tools.client, tools.get(name)?.0)));
            if let Some((title, kind)) = known {
                let text = format!(
                    "`{name}` of {title} is known: rules name it `{}`, and this pattern never matches",
                    kind.name()
                );
                self.add(file, Some(rule), "renamed", text);
            }
        }
        for name in rule.tools.iter().filter_map(ToolPattern::plain_name) {
            let Some((client, kind)) = named_otherwise(name) else { continue };
            if !speaks_about(kind.name()) && tools.iter().all(|tool| tool.name() != name) {
                let text = format!(
                    "`{name}` is {client}'s name: in the hook this tool is `{}`. A tool of your own program is \
                     `set:ID/{name}`",
                    kind.name()
                );
                self.add(file, Some(rule), "renamed", text);
            }
        }
    }

    /// A rule about a tool or a field that does not exist.
    fn dead(&mut self, file: &RuleFile, rule: &Rule, tools: &[ToolDefinition]) {
        let named = |tool: &&ToolDefinition| {
            rule.tools.iter().any(|pattern| {
                let call_args = serde_json::Map::new();
                let mut call = crate::calls::call::RuleCall::new(tool.name(), &call_args);
                call.source = tool.source();
                pattern.matches(&call, rule.effect == ToolDecision::Allow)
            })
        };
        let matching: Vec<&ToolDefinition> = tools.iter().filter(named).collect();
        if matching.is_empty() {
            let names: Vec<&str> = rule.tools.iter().map(ToolPattern::text).collect();
            return self.add(
                file,
                Some(rule),
                "dead",
                format!("no tool is called {}", names.join(" or ")),
            );
        }
        let conditions: Vec<&Condition> = rule.whole.iter().chain(&rule.commands).collect();
        for condition in conditions {
            let FieldPath::Named(path) = &condition.field else { continue };
            let Some(first) = path.first() else { continue };
            if !matching.iter().any(|tool| has_field(tool, first)) {
                self.add(
                    file,
                    Some(rule),
                    "dead",
                    format!("no matching tool has a field `{first}`"),
                );
            }
        }
    }

    /// A target that rules about origins leave out: a mail is sent to `cc`, too.
    fn targets(&mut self, file: &RuleFile, rule: &Rule, tools: &[ToolDefinition]) {
        let allows = rule.effect == ToolDecision::Allow;
        if !rule.whole.iter().any(|it| it.test.is_of_origin()) {
            return;
        }
        for tool in tools {
            let args = serde_json::Map::new();
            let mut call = super::RuleCall::new(tool.name(), &args);
            call.source = tool.source();
            let is_meant = |rule: &&Rule| rule.tools.iter().any(|it| it.matches(&call, allows));
            if !is_meant(&rule) {
                continue;
            }
            // A rule that allows has to look at every target itself; strict rules add up.
            let beside = self.files.iter().flat_map(|file| &file.rules);
            let beside = beside.filter(|it| !allows && it.effect != ToolDecision::Allow);
            let all: Vec<&Rule> = beside.filter(is_meant).chain([rule]).collect();
            let looks_at = |field: &str| {
                all.iter().flat_map(|rule| &rule.whole).any(|condition| match &condition.field {
                    FieldPath::Named(path) => path.first().is_some_and(|name| name == field),
                    FieldPath::AnyPath | FieldPath::Run => false,
                })
            };
            let left_out: Vec<&str> =
                TARGETS.iter().copied().filter(|it| has_field(tool, it) && !looks_at(it)).collect();
            for field in left_out {
                let text = format!(
                    "`{}` has `{field}`, which this rule does not look at: say who has to have named it",
                    tool.name()
                );
                self.add(file, Some(rule), "targets", text);
            }
        }
    }

    /// A build that is allowed beside a write: what was written runs.
    fn builds(&mut self) {
        let builds = Classes::named("project-build").unwrap_or_default();
        let rules =
            || self.files.iter().flat_map(|file| file.rules.iter().map(move |rule| (file, rule)));
        let is_build = |rule: &Rule| {
            rule.effect == ToolDecision::Allow
                && rule
                    .commands
                    .iter()
                    .any(|it| matches!(&it.test, Test::Is(classes) if classes.has(builds)))
        };
        let guarded = rules().any(|(_, rule)| &*rule.id == "build-definitions");
        let writes = |rule: &Rule| {
            rule.effect == ToolDecision::Allow
                && rule.tools.iter().any(|tool| {
                    ["write", "edit", "patch", "replace", "create"]
                        .iter()
                        .any(|word| tool.text().contains(word))
                })
        };
        if guarded || !rules().any(|(_, rule)| is_build(rule)) {
            return;
        }
        let found: Vec<(RuleFile, Rule)> = rules()
            .filter(|(_, rule)| writes(rule))
            .map(|(file, rule)| (file.clone(), rule.clone()))
            .collect();
        for (file, rule) in found {
            self.add(&file, Some(&rule), "builds", "builds are allowed, too: what is written here runs unasked. Ask about build definitions");
        }
    }
}

/// The problem of a text that looks like a comparison, and is compared as a text.
fn no_comparison(text: &str) -> Option<(&'static str, String)> {
    let rest = text.trim_start_matches(['<', '>', '=', '!', '~', '≤', '≥']);
    let is_number =
        rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
    (rest.len() < text.len() && is_number).then(|| {
        let text = format!(
            "`{text}` is compared as a text: a comparison is one of `<`, `<=`, `>` and `>=` with a number, such as `>= 5`"
        );
        ("misspelt", text)
    })
}

fn suspicious(condition: &Condition, effect: ToolDecision) -> Option<(&'static str, String)> {
    let compared = match &condition.test {
        Test::OneOf(values) => values.iter().filter_map(Value::as_str).find_map(no_comparison),
        Test::Text(globs) => globs.iter().find_map(|glob| no_comparison(glob.text())),
        _ => None,
    };
    if compared.is_some() {
        return compared;
    }
    match &condition.test {
        Test::Path(globs) => {
            let glob = globs.iter().find(|glob| glob.text().split('/').any(|part| part == ".."))?;
            Some((
                "dead",
                format!("`{}` matches nothing: paths are compared without `..`", glob.text()),
            ))
        }
        Test::Text(globs) if effect == ToolDecision::Allow => {
            let glob = globs
                .iter()
                .find(|glob| glob.text().starts_with('*') && glob.text().contains('.'))?;
            Some((
                "over-wide",
                format!("`{}` matches any beginning: use `host` or `path`", glob.text()),
            ))
        }
        Test::Host(hosts)
            if effect == ToolDecision::Allow && hosts.iter().any(|it| it.text() == "*") =>
        {
            Some(("over-wide", "every host is allowed".into()))
        }
        _ => None,
    }
}

fn has_field(tool: &ToolDefinition, name: &str) -> bool {
    let parameters = tool.parameters();
    let open = parameters.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
    let composed =
        ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| parameters.get(key).is_some());
    let properties = parameters.get("properties").and_then(Value::as_object);
    open || composed || properties.is_none_or(|properties| properties.contains_key(name))
}
