//! Looks at the tests of a file for what they show about its rules: a rule that none of them makes speak, a test that
//! passes by the default alone, and names that no test and no tool has.
//!
//! A misspelt condition is silent, and a call that no rule speaks about is asked about. So a test that wants a question
//! passes, although the rule behind it does nothing:
//!
//! ```toml
//! [[rule]]
//! id = "large"
//! ask = "pay"
//! where.amonut = "> 1000"
//!
//! [test]
//! ask = "pay: {amount: 2000}"   # passes, also without the rule
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::evaluation::evaluate;
use super::ruling::Layer;
use crate::calls::engine::Engine;
use crate::calls::tool_pattern::ToolPattern;
use crate::format::example::Example;
use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::format::rule_set::RuleSet;
use crate::matching::condition::{Condition, FieldPath};
use crate::readings::tools::{client_of, common_names, is_common};
use countersign::decision::ToolDecision;

/// The names of arguments that the tools of the common vocabulary have.
const COMMON_FIELDS: &[&str] = &[
    "command", "path", "url", "pattern", "content", "query", "patch", "prompt", "agent", "workdir",
];

/// One thing that was found, with the rule or the line that it is about.
pub(super) struct CoverageFinding<'a> {
    pub(super) rule: Option<&'a Rule>,
    pub(super) line: usize,
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// The findings that the tests of a file show about it, by the engine that they run with.
pub(super) fn findings<'a>(file: &'a RuleFile, tests: &Engine) -> Vec<CoverageFinding<'a>> {
    let mut found = Vec::new();
    let spoken = spoken(file, tests, &mut found);
    let of_rule = |rule: &'a Rule, kind, text| CoverageFinding {
        rule: Some(rule),
        line: rule.line,
        kind,
        text,
    };
    for rule in &file.rules {
        let is_tested = spoken.contains(&rule.id) || asks_alone(file, rule);
        if !file.examples.is_empty() && !is_tested {
            let text = "no test makes this rule speak: add a call to `[test]` that it is about";
            found.push(of_rule(rule, "untested", text.to_owned()));
        }
        let named = misspelt_fields(file, rule).into_iter().chain(misspelt_tools(file, rule));
        let named = named.chain(misspelt_sources(file, rule, spoken.contains(&rule.id)));
        found.extend(named.map(|text| of_rule(rule, "misspelt", text)));
        found.extend(of_servers(file, rule).map(|text| of_rule(rule, "no-server", text)));
    }
    found
}

/// Tells whether a rule asks about whole names of tools of servers, without a condition, in a file in which no pattern allows
/// such a tool: it is asked about without the rule, too, and a test would show nothing.
pub(super) fn asks_alone(file: &RuleFile, rule: &Rule) -> bool {
    let is_whole = |it: &ToolPattern| it.of_server().is_some() && it.is_literal();
    let has_condition = !rule.whole.is_empty() || !rule.commands.is_empty();
    let demands = rule.people.is_some() || rule.at_most.is_some() || rule.every_time;
    let mut allowing = file.rules.iter().filter(|it| it.effect == ToolDecision::Allow);
    rule.effect == ToolDecision::Ask
        && !has_condition
        && !demands
        && rule.exceptions.is_empty()
        && rule.tools.iter().all(is_whole)
        && !file.default_allow
        && allowing.all(|it| it.tools.iter().all(ToolPattern::is_literal))
}

/// The rules that some test makes speak. Tests that pass by the default alone are found on the way.
fn spoken<'a>(
    file: &'a RuleFile,
    tests: &Engine,
    found: &mut Vec<CoverageFinding<'a>>,
) -> BTreeSet<Arc<str>> {
    let mut tested = file.clone();
    tested.widens = true;
    let set = RuleSet::new(vec![tested]);
    let mut spoken = BTreeSet::new();
    let mut by_default: Vec<(&Example, Vec<Arc<str>>)> = Vec::new();
    for example in &file.examples {
        let (ruling, near) = evaluate(&set, tests, &example.call(), true);
        let own =
            ruling.spoke.iter().filter(|it| !matches!(it.layer, Layer::Default | Layer::Floor));
        spoken.extend(own.map(|it| Arc::clone(&it.rule)));
        let defaults = ruling.winners().all(|it| it.layer == Layer::Default);
        if example.wanted == ToolDecision::Ask && defaults {
            // A rule that allows and is silent shows where it ends; one that asks has missed the call.
            let asks = near.iter().filter(|miss| miss.decision != ToolDecision::Allow);
            let asks: Vec<_> = asks.map(|miss| Arc::clone(&miss.rule)).collect();
            let tool = example.call().tool();
            let mut names = file.rules.iter().flat_map(|rule| &rule.tools);
            let is_other = near.is_empty() && names.all(|it| it.literal() != Some(tool));
            if is_other || !asks.is_empty() {
                by_default.push((example, asks));
            }
        }
    }
    for (example, asks) in by_default {
        // A rule that speaks elsewhere is not meant here.
        if !asks.is_empty() && asks.iter().all(|rule| spoken.contains(rule)) {
            continue;
        }
        let before = file.text.get(..example.span.start).unwrap_or_default();
        found.push(CoverageFinding {
            rule: None,
            line: before.matches('\n').count() + 1,
            kind: "by-default",
            text: format!(
                "the test `{}` passes by the default alone: no rule speaks about the call",
                example.text
            ),
        });
    }
    spoken
}

/// The fields of conditions and reasons that no call of the rule's tools in a test has, where another one may be meant.
fn misspelt_fields(file: &RuleFile, rule: &Rule) -> Vec<String> {
    let allows = rule.effect == ToolDecision::Allow;
    let is_about = |example: &&Example| {
        rule.tools.iter().any(|pattern| pattern.matches(&example.call(), allows))
    };
    let calls: Vec<&Example> = file.examples.iter().filter(is_about).collect();
    let has = |path: &[String]| calls.iter().any(|call| has_field(&call.args, path));
    let exceptions = rule.exceptions.iter().flatten();
    let conditions: Vec<&Condition> =
        rule.whole.iter().chain(&rule.commands).chain(exceptions).collect();
    let mut found = Vec::new();
    for condition in &conditions {
        let FieldPath::Named(path) = &condition.field else { continue };
        let is_unknown = |first: &&String| !has(path) && !COMMON_FIELDS.contains(&first.as_str());
        let Some(first) = path.first().filter(is_unknown) else { continue };
        let there = calls.iter().flat_map(|call| call.args.keys()).map(String::as_str);
        let common = COMMON_FIELDS.iter().copied();
        if let Some(meant) = near(there.chain(common), first).or_else(|| slipped(first)) {
            found.push(format!("no test has the field `{first}`: is `{meant}` meant?"));
        }
    }
    let fields = |path: &[String]| {
        conditions.iter().any(|it| matches!(&it.field, FieldPath::Named(own) if own == path))
    };
    for name in rule.reason.as_deref().map(placeholders).unwrap_or_default() {
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        let known = matches!(name, "tool" | "part") || fields(&path) || has(&path);
        if !known && !calls.is_empty() {
            let text = "`reason` has `{NAME}`, and no test of the rule's tools has such a field";
            found.push(text.replace("NAME", name));
        }
    }
    found.dedup();
    found
}

/// The names in braces of a reason.
fn placeholders(reason: &str) -> Vec<&str> {
    let parts = reason.split('{').skip(1);
    parts.filter_map(|part| part.split_once('}').map(|(name, _)| name)).collect()
}

fn has_field(args: &Map<String, Value>, path: &[String]) -> bool {
    let mut at: Option<&Value> = None;
    for (depth, name) in path.iter().enumerate() {
        at = match (depth, at) {
            (0, _) => args.get(name),
            (_, Some(Value::Object(map))) => map.get(name),
            (_, Some(Value::Array(items))) => name.parse().ok().and_then(|at: usize| items.get(at)),
            _ => None,
        };
    }
    at.is_some()
}

/// The names of tools that no door has, where one of the common vocabulary or of an MCP server is meant.
fn misspelt_tools(file: &RuleFile, rule: &Rule) -> Vec<String> {
    let tested = |name: &str| {
        file.examples.iter().any(|example| example.call().tool() == name && example.tool == name)
    };
    let mut found = Vec::new();
    for name in rule.tools.iter().filter_map(ToolPattern::plain_name) {
        if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|it| it.split_once("__"))
        {
            found.push(format!("`{name}` is a client's name: write `mcp:{server}/{tool}`"));
        } else if !is_common(name)
            && !tested(name)
            && let Some(meant) = near(common_names(), name)
        {
            found.push(format!(
                "no door has a tool `{name}`: is `{meant}` meant? A tool of your own program is `set:ID/{name}`"
            ));
        }
    }
    found
}

/// The tools of clients that the vocabulary does not have, and the servers of a rule that no test makes speak, where the
/// file has another one of nearly that name.
fn misspelt_sources(file: &RuleFile, rule: &Rule, is_tested: bool) -> Vec<String> {
    let mut found = Vec::new();
    let unknown = rule.tools.iter().filter_map(ToolPattern::of_any_client);
    for name in unknown.filter(|name| !is_common(name)) {
        // The names of these tools are short.
        let close = |known: &&str| strsim::damerau_levenshtein(known, name) <= 2;
        let meant = common_names().find(close).map(|it| format!(": is `client:{it}` meant?"));
        found.push(format!(
            "the vocabulary of coding agents has no tool `{name}`{}",
            meant.unwrap_or_default()
        ));
    }
    // A test by the same name says that it is meant.
    for (client, name) in rule.tools.iter().filter_map(ToolPattern::of_client) {
        let Some(tools) = client_of(client).filter(|tools| !is_tested && !tools.knows(name)) else {
            continue;
        };
        if let Some(meant) = near(tools.names(), name) {
            let form = match tools.get(meant) {
                Some((kind, _)) => kind.name().to_owned(),
                None => format!("{client}:{meant}"),
            };
            found.push(format!("{} has no tool `{name}`: is `{form}` meant?", tools.client));
        }
    }
    let others = || {
        let rules = file.rules.iter().filter(|other| other.id != rule.id);
        let of_rules = rules.flat_map(|it| &it.tools).filter_map(ToolPattern::of_server);
        let of_tests = file
            .examples
            .iter()
            .filter_map(|it| it.tool.strip_prefix("mcp:").and_then(|rest| rest.split_once('/')));
        of_rules.chain(of_tests).map(|(server, _)| server)
    };
    for (server, tool) in rule.tools.iter().filter_map(ToolPattern::of_server) {
        let is_known = others().any(|it| it == server);
        let close = |it: &&str| strsim::damerau_levenshtein(it, server) == 1;
        if !is_tested
            && !is_known
            && server.len() > 2
            && let Some(meant) = others().find(close)
        {
            found.push(format!("no test has a server `{server}`: is `mcp:{meant}/{tool}` meant?"));
        }
    }
    found
}

/// The tools without a source in a rule that allows, in a file that has the tool as one of a server: such a rule is about
/// none of a server's tools.
fn of_servers<'a>(file: &'a RuleFile, rule: &'a Rule) -> impl Iterator<Item = String> + 'a {
    let allows = rule.effect == ToolDecision::Allow;
    let names = rule.tools.iter().filter_map(ToolPattern::plain_name).filter(move |_| allows);
    names.filter_map(|name| {
        let call = |example: &'a Example| (example.call(), example.tool.as_str());
        let of_tests = file.examples.iter().map(call).find_map(|(call, written)| {
            (call.tool() == name && written.starts_with("mcp:")).then_some(written)
        });
        let patterns = file.rules.iter().flat_map(|rule| &rule.tools).map(ToolPattern::text);
        let of_rules = || {
            let mut of_servers = patterns.filter(|text| text.starts_with("mcp:"));
            of_servers.find(|text| text.rsplit_once('/').is_some_and(|(_, tool)| tool == name))
        };
        let meant = of_tests.or_else(of_rules)?;
        Some(format!(
            "in a rule that allows, `{name}` is about no tool of an MCP server: is `{meant}` meant?"
        ))
    })
}

/// The short name of a common field that a text is, but for a letter that is missing, doubled or in another place: `pth` for
/// `path`. Another letter makes a word of its own, as `math` is one.
fn slipped(text: &str) -> Option<&'static str> {
    let letters = |text: &str| {
        let mut letters: Vec<_> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_slip = |name: &&&str| {
        let is_near = strsim::damerau_levenshtein(name, text) == 1;
        is_near && (name.len() != text.len() || letters(name) == letters(text))
    };
    COMMON_FIELDS.iter().filter(|name| name.len() <= 4).find(is_slip).copied()
}

/// The name that differs from a text in one letter, or in two of a long one.
fn near<'n>(names: impl Iterator<Item = &'n str>, text: &str) -> Option<&'n str> {
    let most = if text.len() < 6 { 1 } else { 2 };
    let distance = |name: &str| strsim::damerau_levenshtein(name, text);
    let close = names.filter(|name| *name != text && name.len() > 4 && distance(name) <= most);
    close.min_by_key(|name| distance(name))
}
