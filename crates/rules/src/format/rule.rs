//! One rule of a file, and how it is read.
//!
//! The digest of a rule is of every key but the reason and the title, in a canonical order. An approval of the
//! rule's question is bound to it. If you write a better reason, nothing is asked about again. If you change what
//! the rule says, it is (rule R6).
//!
//! A rule has one effect and one list of tools. Two effects in one rule would need an order between them, and the order
//! of rules has no meaning in these files.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue};

use super::condition_format::{TableKind, conditions};
use super::document::{Item, boolean, count, entries, misplaced, object, string, strings, table};
use super::read_source;
use super::rule_people::RulePeople;
use super::shown::table_text;
use super::source::Source;
use crate::calls::tool_pattern::ToolPattern;
use crate::counts::MAX_COUNTED;
use crate::matching::condition::{Condition, FieldPath};
use countersign::args::{Args, hex};
use countersign::decision::ToolDecision;

/// The keys of a rule, with what the JSON Schema of the file says about them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("id", "The name of the rule in questions, denials and logs. Keep it when the rule is edited."),
    ("allow", "The tools whose calls the rule allows."),
    ("ask", "The tools about whose calls the rule asks."),
    ("deny", "The tools whose calls the rule denies."),
    ("where", "Conditions on the arguments, all of which have to hold."),
    ("except", "Calls that the rule does not speak about: all of these conditions hold."),
    ("when", "Conditions on what the run has read. Of version 2."),
    ("reason", "What a person, or the model, is told. `{field}` stands for an argument."),
    (
        "title",
        "The call in one line, for the person who is asked: `{field}` stands for an argument. Of version 2.",
    ),
    (
        "no_other_arguments",
        "The rule allows calls whose arguments it names in `where`, each of them. Of version 2.",
    ),
    ("every_time", "No answer in advance applies to the question."),
    ("people", "How many different people have to approve the call. Of version 2."),
    ("not_the_requester", "The person that the call is made for may not approve it. Of version 2."),
    ("approvers", "Who may approve the call: names, and groups as `group:NAME`. Of version 2."),
    ("at_most", "How many calls the rule may speak about in a span of time."),
];

/// A limit on how many calls a rule speaks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AtMost {
    pub(crate) calls: u32,
    pub(crate) within: Duration,
    pub(crate) otherwise: ToolDecision,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) id: Arc<str>,
    pub(crate) effect: ToolDecision,
    pub(crate) tools: Vec<ToolPattern>,
    /// Conditions on the whole call, and those on each command of a shell text.
    pub(crate) whole: Vec<Condition>,
    pub(crate) commands: Vec<Condition>,
    pub(crate) exceptions: Vec<Vec<Condition>>,
    pub(crate) reason: Option<String>,
    pub(crate) title: Option<Arc<str>>,
    /// `true` for a rule that allows no call with an argument on which it has no condition.
    pub(crate) no_other_arguments: bool,
    pub(crate) every_time: bool,
    pub(crate) people: Option<RulePeople>,
    pub(crate) at_most: Option<AtMost>,
    pub(crate) line: usize,
    pub(crate) span: Range<usize>,
    /// All that was read, for a person.
    pub(crate) shown: Arc<str>,
    /// The digest of what the rule means, without its reason and title.
    pub(crate) digest: Arc<str>,
}

impl Rule {
    /// Returns `true` if the rule may speak about some tool of this MCP server.
    pub(crate) fn may_speak_about(&self, server: &str) -> bool {
        let allows = self.effect == ToolDecision::Allow;
        self.tools.iter().any(|tool| tool.is_of_server(server, allows))
    }

    /// Reads a rule. Problems are added to the source.
    pub(crate) fn read(source: &mut Source, item: &Item<'_>) -> Option<Self> {
        let found = table(source, "a rule", item)?;
        let known = |key: &str| KEYS.iter().any(|(name, _)| *name == key);
        for (key, span, _) in entries(found).filter(|(key, ..)| !known(key)) {
            source.problem(&span, unknown(key));
        }
        let id = Self::id(source, found, &item.span())?;
        let (effect, tools) = Self::effect(source, found, &item.span(), &id)?;
        let allows = effect == ToolDecision::Allow;
        let of = |name: &str| {
            entries(found).find(|(key, ..)| *key == name).map(|(_, span, item)| (span, item))
        };
        let where_ = of("where")
            .map(|(_, item)| conditions(source, item, TableKind { allows, exception: false }));
        let when = read_source::when(source, found, allows);
        let where_ = where_.into_iter().flatten().chain(when);
        let exceptions = of("except").map(|(_, item)| Self::exceptions(source, item, allows));
        let reason =
            of("reason").and_then(|(_, item)| string(source, "`reason`", item)).map(str::to_owned);
        let every_time =
            of("every_time").and_then(|(_, item)| boolean(source, "`every_time`", item));
        if let (Some((span, _)), Some(true)) = (of("every_time"), every_time)
            && effect != ToolDecision::Ask
        {
            source.problem(
                &span,
                "`every_time` is about questions, so only a rule with `ask` has it",
            );
        }
        let people = RulePeople::read(source, found, effect);
        let at_most = of("at_most").and_then(|(span, item)| at_most(source, &span, item, effect));
        let (commands, whole) = where_.partition(Condition::is_of_commands);
        let Some((digest, shown)) = digest(found) else {
            source.problem(
                &item.span(),
                format!("the rule `{id}` has a number that is too large, or none"),
            );
            return None;
        };
        let rule = Self {
            digest: digest.into(),
            shown: shown.into(),
            id: id.into(),
            effect,
            tools,
            whole,
            commands,
            exceptions: exceptions.unwrap_or_default(),
            reason,
            title: of("title").and_then(|(span, it)| Self::title(source, &span, it, effect)),
            no_other_arguments: no_other_arguments(source, of("no_other_arguments"), allows),
            every_time: every_time.unwrap_or_default() || people.is_some(),
            people,
            at_most,
            line: source.place(item.span().start).0,
            span: item.span(),
        };
        rule.check(source);
        Some(rule)
    }

    fn title(
        source: &mut Source,
        span: &Range<usize>,
        item: &Item<'_>,
        effect: ToolDecision,
    ) -> Option<Arc<str>> {
        source.needs_version(span, 2, "title");
        if effect != ToolDecision::Ask {
            source.problem(
                span,
                "`title` is for the person who is asked, so only a rule with `ask` has it",
            );
        }
        string(source, "`title`", item).map(Arc::from)
    }

    fn id(source: &mut Source, found: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
        let Some((_, _, item)) = entries(found).find(|(key, ..)| *key == "id") else {
            source.problem(span, "a rule needs an `id`");
            return None;
        };
        let id = string(source, "`id`", item)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if id.is_empty() || id.len() > 100 || !id.chars().all(plain) {
            source.problem(
                &item.span(),
                "an `id` has 1 to 100 letters, digits, `-`, `_`, `.` or `/`",
            );
            return None;
        }
        Some(id.to_owned())
    }

    fn effect(
        source: &mut Source,
        found: &DeTable<'_>,
        span: &Range<usize>,
        id: &str,
    ) -> Option<(ToolDecision, Vec<ToolPattern>)> {
        let kinds = [
            ("allow", ToolDecision::Allow),
            ("ask", ToolDecision::Ask),
            ("deny", ToolDecision::Deny),
        ];
        let mut given = kinds.iter().filter_map(|(name, effect)| {
            entries(found)
                .find(|(key, ..)| key == name)
                .map(|(key, span, item)| (key, span, item, *effect))
        });
        let Some((name, _, item, effect)) = given.next() else {
            source.problem(
                span,
                format!(
                    "the rule `{id}` needs `allow`, `ask` or `deny` with the tools it is about"
                ),
            );
            return None;
        };
        if let Some((second, span, ..)) = given.next() {
            source.problem(
                &span,
                format!("the rule `{id}` has `{name}` and `{second}`: make it two rules"),
            );
            return None;
        }
        let mut tools = Vec::new();
        for (text, span) in strings(source, &format!("`{name}`"), item) {
            tools.extend(source.tool_pattern(text, &span));
        }
        (!tools.is_empty()).then_some((effect, tools))
    }

    fn exceptions(source: &mut Source, item: &Item<'_>, allows: bool) -> Vec<Vec<Condition>> {
        let place = TableKind { allows, exception: true };
        match item.get_ref() {
            DeValue::Array(items) => {
                items.iter().map(|item| conditions(source, item, place)).collect()
            }
            _ => vec![conditions(source, item, place)],
        }
    }

    /// Checks what only the whole rule shows.
    fn check(&self, source: &mut Source) {
        if self.effect != ToolDecision::Allow {
            return;
        }
        let mut fields: Vec<&FieldPath> =
            self.commands.iter().map(|condition| &condition.field).collect();
        fields.dedup();
        if fields.len() > 1 {
            source.problem(
                &self.span,
                format!(
                    "the rule `{}` has conditions on the commands of two fields: make it two rules",
                    self.id
                ),
            );
        }
    }

    /// Returns `true` if the rule means something else in another root.
    pub(crate) fn is_of_root(&self) -> bool {
        let exceptions = self.exceptions.iter().flatten();
        let mut all = self.whole.iter().chain(&self.commands).chain(exceptions);
        all.any(|condition| condition.test.is_of_root())
    }

    /// The field that holds the commands which the rule is about.
    pub(crate) fn command_field(&self) -> Option<&[String]> {
        self.commands.iter().find_map(|condition| match &condition.field {
            FieldPath::Named(path) => Some(path.as_slice()),
            FieldPath::AnyPath | FieldPath::Run => None,
        })
    }
}

fn no_other_arguments(
    source: &mut Source,
    found: Option<(Range<usize>, &Item<'_>)>,
    allows: bool,
) -> bool {
    let Some((span, item)) = found else { return false };
    source.needs_version(&span, 2, "no_other_arguments");
    if !allows {
        let why = "`no_other_arguments` makes a rule narrower, so only a rule with `allow` has it";
        source.problem(&span, why);
    }
    boolean(source, "`no_other_arguments`", item).unwrap_or_default()
}

pub(crate) fn unknown(key: &str) -> String {
    if let Some(text) = misplaced(key, "[[rule]]") {
        return text;
    }
    let similar = |(name, _): &&(&str, &str)| strsim::jaro(name, key) > 0.8;
    match KEYS.iter().find(similar) {
        Some((near, _)) => format!("a rule has no `{key}`: is `{near}` meant?"),
        None => {
            let known: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
            format!("a rule has no `{key}`; it has {}", known.join(", "))
        }
    }
}

/// | rule | `else` by default | may be |
/// |---|---|---|
/// | `allow` | `ask` | `ask`, `deny` |
/// | `ask` | `deny` | `deny` |
/// | `deny` | – | a limit is refused: it allows no call |
fn at_most(
    source: &mut Source,
    span: &Range<usize>,
    item: &Item<'_>,
    effect: ToolDecision,
) -> Option<AtMost> {
    let found = table(source, "`at_most`", item)?;
    let (mut calls, mut within, mut otherwise) = (None, None, Some(ToolDecision::Ask));
    if effect == ToolDecision::Ask {
        otherwise = Some(ToolDecision::Deny);
    }
    for (key, span, item) in entries(found) {
        match key {
            "calls" => calls = limit(source, item),
            "within" => {
                let text = string(source, "`within`", item)?;
                within = duration(text);
                if within.is_none() {
                    source.problem(&item.span(), "a span of time is a number with `s`, `m`, `h` or `d`, such as `90s` or `24h`");
                }
            }
            "else" => {
                otherwise = match string(source, "`else`", item)? {
                    "ask" => Some(ToolDecision::Ask),
                    "deny" => Some(ToolDecision::Deny),
                    _ => None,
                };
                if otherwise.is_none_or(|it| it <= effect) {
                    source.problem(
                        &item.span(),
                        "`else` has to be stricter than the rule: `ask` or `deny`",
                    );
                    return None;
                }
            }
            _ => source.problem(
                &span,
                format!("`at_most` has `calls`, `within` and `else`, and no `{key}`"),
            ),
        }
    }
    if effect == ToolDecision::Deny {
        source.problem(span, "a rule with `deny` needs no `at_most`: it allows no call");
        return None;
    }
    match (calls, within, otherwise) {
        (Some(calls), Some(within), Some(otherwise)) => Some(AtMost { calls, within, otherwise }),
        _ => {
            source.problem(
                span,
                "`at_most` needs `calls` and `within`, such as `{ calls = 5, within = \"1h\" }`",
            );
            None
        }
    }
}

/// The number of calls of a limit.
fn limit(source: &mut Source, item: &Item<'_>) -> Option<u32> {
    let calls = count(source, "`calls`", item);
    if calls.is_some_and(|calls| calls > u32::from(MAX_COUNTED)) {
        source.problem(&item.span(), format!("`calls` is at most {MAX_COUNTED}"));
    }
    calls
}

/// A span of time such as `90s`, `15m`, `24h` or `7d`, of at most a year.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.trim().parse().ok()?;
    let seconds = number.checked_mul(unit)?;
    (1..=366 * 86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}

/// The digest of a rule's meaning, which is of every key except the reason and the title, in a canonical order; and the
/// text of the rule for people, which has them all.
fn digest(found: &DeTable<'_>) -> Option<(String, String)> {
    let mut map = object(found)?;
    let shown = table_text("rule", &map);
    map.remove("reason");
    map.remove("title");
    Some((digest_of(map), shown))
}

pub(crate) fn digest_of(map: Map<String, Value>) -> String {
    hex_digest(Args::from(map).to_string().as_bytes())
}

pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
