//! The narrowest rules that would have allowed what people have approved again and again.
//!
//! A person who approves the same call for the third time wants a rule, and writes one that is too wide. Here we make
//! rules from the approvals of a [journal](super::DecisionJournal), from the narrowest on, and try each. We propose it
//! if the rules with it would have allowed all of its calls, and list every other call of the journal that it would
//! have allowed, too.
//!
//! | approved | proposed |
//! |---|---|
//! | one call, again and again | exactly this call |
//! | commands that begin with the same words | these words, with the fewest classes that cover them; exactly these commands, if no class does |
//! | calls of one tool | its arguments, each with the values that were approved, or the folder of the paths |
//!
//! We propose a rule only if it covers exactly what it says: if one value cannot be compared, the rule without this
//! condition would be about every value. We list such calls with the reason, and also those that no rule can allow, as an
//! `ask` rule or the floor speaks, which are stricter. Nothing is written: you read the text, edit it, and put it into a
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::builder::RulesBuilder;
use super::decision_journal::JournalEntry;
use super::error::RulesError;
use super::handle::Rules;
use super::import::{list, plain_words, quoted};
use super::journal_calls::{command, family, first_words, literal, shown, shown_whole, whole};
use crate::calls::paths::is_wide;
use countersign::decision::ToolDecision;
use countersign::show;

/// The classes of commands that a proposed rule may name.
const CLASSES: &[&str] =
    &["read-only", "project-build", "writes", "queries", "environment", "network", "runs-code"];

/// The most values of one argument that are listed.
const MAX_VALUES: usize = 8;

/// A text that is longer is content, and no rule compares it.
const MAX_TEXT: usize = 200;

/// The most words of a command that a rule names.
const MAX_WORDS: usize = 6;

/// The most other calls that a proposal shows.
const MAX_SHOWN: usize = 5;

/// A rule that would have allowed approved calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProposedRule {
    /// The rule, as it is written in a file.
    pub rule: String,
    /// The number of approvals that it would have spared.
    pub approvals: usize,
    /// The different calls that were approved, for people.
    pub calls: Vec<String>,
    /// The other calls of the journal that it would have allowed: they were asked about, and not approved.
    pub also: Vec<String>,
    /// A test that makes the rule speak, as a file has it below `allow` in `[test]`; none where no test is the same on
    /// every machine, such as one about a path.
    pub test: Option<String>,
}

/// An approved call that no rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UncoveredCall {
    /// The call, for people: of several of one kind the first.
    pub call: String,
    /// The number of other calls of its kind.
    pub others: usize,
    /// The number of approvals of these calls.
    pub approvals: usize,
    /// The reason why no rule is proposed for it.
    pub why: String,
}

/// The result of [`propose`]. As a text it is a file of rules with comments.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct ProposedRules {
    /// The rules, those that spare the most approvals first.
    pub rules: Vec<ProposedRule>,
    /// The calls that were approved again and again, and are not covered.
    pub uncovered: Vec<UncoveredCall>,
}

/// The approvals of one call, at least one. Those of a command may be in several directories.
struct ApprovedCall<'e> {
    entry: &'e JournalEntry,
    all: Vec<&'e JournalEntry>,
}

impl ApprovedCall<'_> {
    fn times(&self) -> usize {
        self.all.len()
    }
}

/// Proposes rules for what was approved at least `least` times, and is asked about by the present rules. `with` loads the
/// present rules together with another text of rules, which may be empty.
///
/// ```
/// use countersign_rules::{JournalEntry, RuleCall, Rules, propose};
/// use serde_json::json;
///
/// let with = |more: &str| Rules::builder().lexical().root("/src/shop").text("proposed", more).load();
/// let rules = with("version = 1")?;
/// let args = json!({"command": "git push origin topic"});
/// let call = RuleCall::new("shell", args.as_object().unwrap());
/// let approved = rules.journal_entry(&call, &rules.decide(&call)).of_approved(true);
///
/// let proposed = propose(&[approved.clone(), approved.clone(), approved], 3, with)?;
/// assert!(proposed.rules[0].rule.contains(r#"where.command.equals = "git push origin topic""#));
/// assert_eq!((proposed.rules[0].approvals, proposed.rules[0].also.len()), (3, 0));
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// # Errors
/// [`RulesError`] if the present rules do not load.
pub fn propose(
    entries: &[JournalEntry],
    least: usize,
    with: impl Fn(&str) -> Result<Rules, RulesError>,
) -> Result<ProposedRules, RulesError> {
    let present = with(NOTHING)?;
    let mut approved: BTreeMap<String, ApprovedCall<'_>> = BTreeMap::new();
    let is_asked = |it: &JournalEntry| present.decide(&it.call()).decision() == ToolDecision::Ask;
    // A grant says again what its maker has said once.
    for entry in entries.iter().filter(|it| it.approved && !it.by_grant && is_asked(it)) {
        let call = approved.entry(shown(entry));
        call.or_insert_with(|| ApprovedCall { entry, all: Vec::new() }).all.push(entry);
    }
    let mut proposing =
        Proposing { entries, present: &present, with: &with, found: ProposedRules::default() };
    let mut rest: BTreeMap<String, Vec<&ApprovedCall<'_>>> = BTreeMap::new();
    for call in approved.values() {
        match call.times() >= least {
            true => proposing.exactly(call),
            false => rest.entry(family(call.entry)).or_default().push(call),
        }
    }
    for calls in rest.into_values() {
        if calls.len() > 1 && calls.iter().map(|it| it.times()).sum::<usize>() >= least {
            proposing.family(&calls);
        }
    }
    let mut found = proposing.found;
    found.rules.sort_by_key(|it| std::cmp::Reverse(it.approvals));
    for (at, proposal) in found.rules.iter_mut().enumerate() {
        proposal.rule = proposal.rule.replacen(ID, &format!("proposed-{}", at + 1), 1);
    }
    Ok(found)
}

/// A file without rules.
const NOTHING: &str = "version = 2\n";
/// The id of a rule that has no number yet.
const ID: &str = "proposed-0";

/// A rule as text, and the present rules together with it.
type TriedRule = (String, Rules);

struct Proposing<'a, W> {
    entries: &'a [JournalEntry],
    present: &'a Rules,
    with: &'a W,
    found: ProposedRules,
}

impl<W: Fn(&str) -> Result<Rules, RulesError>> Proposing<'_, W> {
    /// Proposes a rule about one call that was approved often enough by itself.
    fn exactly(&mut self, call: &ApprovedCall<'_>) {
        let calls = [call];
        let tried = match command(call.entry) {
            Some(text) => self.tried(&calls, &[format!("where.command.equals = {}", quoted(text))]),
            None => self.by_arguments(&calls),
        };
        self.add(&calls, tried);
    }

    /// Proposes a rule about different calls of one kind.
    fn family(&mut self, calls: &[&ApprovedCall<'_>]) {
        let words = calls.first().and_then(|it| command(it.entry)).map(first_words);
        let tried = match words {
            Some(words) if words.is_empty() => {
                Err("the command does not begin with plain words".into())
            }
            Some(words) => self.by_common_words(calls, &words),
            None => self.by_arguments(calls),
        };
        self.add(calls, tried);
    }

    fn add(&mut self, calls: &[&ApprovedCall<'_>], tried: Result<TriedRule, String>) {
        let approvals = calls.iter().map(|it| it.times()).sum();
        match tried {
            Ok((rule, rules)) => {
                let also = self.also(&rules);
                let test = calls.first().and_then(|it| test(it.entry, &rule));
                let calls = calls.iter().map(|it| shown(it.entry)).collect();
                self.found.rules.push(ProposedRule { rule, approvals, calls, also, test });
            }
            Err(why) => {
                let Some(first) = calls.first() else { return };
                let (call, others) = (shown(first.entry), calls.len() - 1);
                self.found.uncovered.push(UncoveredCall { call, others, approvals, why });
            }
        }
    }

    /// The rule with these conditions, if the rules with it allow all of the calls, and none that a person has denied;
    /// otherwise why not.
    fn tried(
        &self,
        calls: &[&ApprovedCall<'_>],
        conditions: &[String],
    ) -> Result<TriedRule, String> {
        let (rule, rules) = self.allowing(calls, conditions)?;
        let is_new = |it: &JournalEntry| {
            let allows = |rules: &Rules| rules.decide(&it.call()).decision() == ToolDecision::Allow;
            allows(&rules) && !allows(self.present)
        };
        match self.denied().find(|it| is_new(it)) {
            Some(denied) => Err(format!(
                "a rule about it would allow {}, which a person has denied",
                shown_whole(denied)
            )),
            None => Ok((rule, rules)),
        }
    }

    /// The rule with these conditions, if the rules with it allow all of the calls; otherwise why not.
    fn allowing(
        &self,
        calls: &[&ApprovedCall<'_>],
        conditions: &[String],
    ) -> Result<TriedRule, String> {
        let entry = calls.first().map(|it| it.entry).ok_or("there is no call")?;
        let all = || calls.iter().flat_map(|it| &it.all);
        if let Some(masked) = all().find(|it| it.masked) {
            return Err(format!("a secret is masked in {}", shown(masked)));
        }
        if conditions.is_empty() {
            return Err("it has no argument to compare, and a rule about the tool alone is about every call".into());
        }
        let tool = quoted(&literal(entry)?);
        let rule = format!("[[rule]]\nid = \"{ID}\"\nallow = {tool}\n{}", conditions.join("\n"));
        // The place of a problem is one of a text that no person sees.
        let problem = |error: RulesError| {
            let problems: Vec<&str> = error.problems().iter().map(|it| it.text()).collect();
            problems.join("; ")
        };
        let rules = (self.with)(&format!("{NOTHING}{rule}\n")).map_err(problem)?;
        for entry in all() {
            let ruling = rules.decide(&entry.call());
            if ruling.decision() != ToolDecision::Allow {
                return Err(format!("a rule that allows it would not be enough: {ruling}"));
            }
        }
        Ok((rule, rules))
    }

    /// The calls that a person has denied, and not approved since.
    fn denied(&self) -> impl Iterator<Item = &JournalEntry> {
        let is_last = |at: usize, denied: &JournalEntry| {
            let later = self.entries.get(at + 1..).unwrap_or_default();
            let is_yes = |it: &JournalEntry| it.approved && whole(it) == whole(denied);
            !later.iter().any(is_yes)
        };
        let denied = self.entries.iter().enumerate().filter(|(_, it)| it.denied);
        denied.filter(move |(at, it)| is_last(*at, it)).map(|(_, it)| it)
    }

    /// A rule about the most words that commands begin with. If there is none about the first words, a longer one is not
    /// tried: what they run is in their arguments.
    fn by_common_words(
        &self,
        calls: &[&ApprovedCall<'_>],
        first: &[&str],
    ) -> Result<TriedRule, String> {
        let widest = self.by_words(calls, &first.join(" "))?;
        let common = common_words(calls);
        let longer = (first.len() + 1..=common.len()).rev();
        let narrower = longer
            .filter_map(|count| self.by_words(calls, &common.get(..count)?.join(" ")).ok())
            .next();
        Ok(narrower.unwrap_or(widest))
    }

    /// A rule about the first words of commands, with the fewest classes.
    fn by_words(&self, calls: &[&ApprovedCall<'_>], words: &str) -> Result<TriedRule, String> {
        let runs = format!("where.command.runs = {}", quoted(words));
        let rule = |classes: &[&str]| {
            let is = format!("where.command.is = {}", list(classes));
            self.tried(calls, &[runs.clone(), is])
        };
        let mut classes = CLASSES.to_vec();
        let Ok(mut narrowest) = rule(&classes) else {
            // The effects of the command are in no class, such as changes of a repository, or a person has denied one that
            // begins with these words.
            self.allowing(calls, std::slice::from_ref(&runs))?;
            return self.by_texts(calls);
        };
        for class in CLASSES {
            let fewer: Vec<&str> = classes.iter().copied().filter(|it| it != class).collect();
            if let Some(narrower) = (!fewer.is_empty()).then(|| rule(&fewer).ok()).flatten() {
                (classes, narrowest) = (fewer, narrower);
            }
        }
        Ok(narrowest)
    }

    /// A rule about exactly these commands, where their effects are in no class, such as changes of a repository: one about the
    /// first words of `git push origin topic` would be about `git push origin --force`, too.
    fn by_texts(&self, calls: &[&ApprovedCall<'_>]) -> Result<TriedRule, String> {
        let texts: BTreeSet<&str> = calls.iter().filter_map(|it| command(it.entry)).collect();
        if texts.len() > MAX_VALUES {
            return Err(
                "these are too many commands, and a rule about their first words would be too wide"
                    .into(),
            );
        }
        let texts: Vec<&str> = texts.into_iter().collect();
        self.tried(calls, &[format!("where.command.equals = {}", list(&texts))])
    }

    /// A rule about the arguments of a tool: each has one of the values that were approved, and no other one is there.
    fn by_arguments(&self, calls: &[&ApprovedCall<'_>]) -> Result<TriedRule, String> {
        let (mut conditions, mut own) = (Vec::new(), BTreeSet::new());
        own.extend(calls.iter().flat_map(|it| it.entry.args.keys()));
        for name in &own {
            conditions.push(condition(name, calls)?);
        }
        let values =
            |name: &str| calls.iter().map(|it| it.entry.args.get(name)).collect::<Vec<_>>();
        let differs = |name: &&&String| values(name).windows(2).any(|it| it.first() != it.last());
        if own.iter().filter(differs).count() > 1 {
            return Err("several arguments differ, and a rule would allow each with each".into());
        }
        if !conditions.is_empty() {
            conditions.push("no_other_arguments = true".to_owned());
        }
        self.tried(calls, &conditions)
    }

    /// The calls that were asked about and not approved, and that these rules allow.
    fn also(&self, rules: &Rules) -> Vec<String> {
        let approved = || self.entries.iter().filter(|it| it.approved);
        let (calls, texts): (BTreeSet<_>, BTreeSet<_>) =
            (approved().map(whole).collect(), approved().map(shown).collect());
        let is_new = |entry: &&JournalEntry| {
            !calls.contains(&whole(entry))
                && self.present.decide(&entry.call()).decision() != ToolDecision::Allow
                && rules.decide(&entry.call()).decision() == ToolDecision::Allow
        };
        // A call that is approved elsewhere, or with other arguments, is shown with what makes it another one.
        let text = |entry: &JournalEntry| match shown(entry) {
            short if texts.contains(&short) => shown_whole(entry),
            short => short,
        };
        let also: BTreeSet<String> = self.entries.iter().filter(is_new).map(text).collect();
        also.into_iter().collect()
    }
}

/// A test that makes a rule speak, if a file with both loads: tests run in a workspace that is the same on every machine.
fn test(entry: &JournalEntry, rule: &str) -> Option<String> {
    let tool = literal(entry).ok()?;
    let text = match command(entry) {
        Some(command) => format!("{tool}: {command}"),
        None => format!("{tool}: {}", Value::Object(Map::clone(&entry.args))),
    };
    let line = quoted(&text);
    let file = format!("version = 2\n{rule}\n[test]\nallow = {line}\n");
    let is_short = text.len() <= MAX_TEXT;
    let loads = is_short && RulesBuilder::for_tests().text("tried", file).load().is_ok();
    loads.then_some(line)
}

/// The condition that an argument has one of the values that it has in these calls, or that a path is in their folder.
/// The error says why no condition covers the values.
fn condition(name: &str, calls: &[&ApprovedCall<'_>]) -> Result<String, String> {
    let argument = || format!("the argument `{}`", show::escape(name));
    let mut different: Vec<&Value> = Vec::new();
    for call in calls {
        let value = call.entry.args.get(name);
        let value = value.ok_or_else(|| format!("{} is not in every call", argument()))?;
        for value in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
            let why = match value {
                Value::Null | Value::Array(_) | Value::Object(_) => "a value that no rule compares",
                Value::String(text) if text.len() > MAX_TEXT => {
                    "a text that is too long to compare"
                }
                Value::String(text) if text.contains(char::is_control) => "a text of several lines",
                _ => "",
            };
            if !why.is_empty() {
                return Err(format!("{} has {why}", argument()));
            }
            if !different.contains(&value) {
                different.push(value);
            }
        }
    }
    let are_texts = different.iter().all(|value| value.is_string());
    if name == "path" && are_texts && different.len() > 2 {
        let folder = folder(calls)?;
        // The rule is about the paths below the folder, and not about the folder itself.
        let below = format!("{}/**/*", folder.to_string_lossy());
        return Ok(format!("where.path.path = {}", quoted(&below)));
    }
    if different.len() > MAX_VALUES {
        return Err(format!("{} has more than {MAX_VALUES} values", argument()));
    }
    let written = different.iter().map(|value| match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    });
    let values = written.collect::<Vec<_>>().join(", ");
    Ok(format!("{}.equals = [{values}]", field(name)))
}

/// The folder that the paths of all of these calls are in, if a rule about all of it is narrow enough.
fn folder(calls: &[&ApprovedCall<'_>]) -> Result<PathBuf, String> {
    let mut common: Option<PathBuf> = None;
    for entry in calls.iter().flat_map(|it| &it.all) {
        let value = entry.args.get("path");
        let texts = value
            .map_or(&[][..], |it| it.as_array().map_or(std::slice::from_ref(it), Vec::as_slice));
        for text in texts.iter().filter_map(Value::as_str) {
            let path = entry.directory.join(text);
            let is_plain = path.components().all(|it| it != Component::ParentDir);
            if !is_plain || text.starts_with('~') || text.contains(['$', '*', '?', '[', '{']) {
                return Err(format!("`{}` may be read as another path", show::escape(text)));
            }
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            common = Some(match common {
                None => parent,
                Some(common) => {
                    let same = common.components().zip(parent.components());
                    same.take_while(|(a, b)| a == b).map(|(component, _)| component).collect()
                }
            });
        }
    }
    match common {
        Some(folder) if !is_wide(&folder) => Ok(folder),
        _ => Err(
            "the paths have no folder in common, or only one that is as wide as a home directory"
                .into(),
        ),
    }
}

/// The name of an argument behind `where`.
fn field(name: &str) -> String {
    match matches!(name, "path" | "url" | "amount" | "query") {
        true => format!("where.{name}"),
        false => {
            format!("where.{}", quoted(&format!("/{}", name.replace('~', "~0").replace('/', "~1"))))
        }
    }
}

/// The plain words that all of these commands begin with.
fn common_words<'e>(calls: &[&ApprovedCall<'e>]) -> Vec<&'e str> {
    let words = |call: &&ApprovedCall<'e>| {
        let words = command(call.entry).unwrap_or_default().split_whitespace();
        words.take(MAX_WORDS).take_while(|word| plain_words(&[*word])).collect::<Vec<_>>()
    };
    let all = calls.iter().map(words).reduce(|one, other| {
        let same = one.into_iter().zip(other).take_while(|(a, b)| a == b);
        same.map(|(word, _)| word).collect()
    });
    all.unwrap_or_default()
}

impl fmt::Display for ProposedRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOTHING)?;
        for it in &self.rules {
            let (approvals, calls) = (it.approvals, show::counted(it.calls.len(), "call"));
            writeln!(f, "\n# {approvals} approvals of {calls}:")?;
            few(f, &it.calls)?;
            match it.also.len() {
                0 => writeln!(f, "# It would have allowed no other call of the journal.")?,
                more => {
                    let more = show::counted(more, "call");
                    writeln!(
                        f,
                        "# It would ALSO have allowed {more} of the journal that no one has approved:"
                    )?;
                    few(f, &it.also)?;
                }
            }
            if let Some(test) = &it.test {
                writeln!(f, "# A test of it, for `[test]`: allow = {test}")?;
            }
            if it.rule.contains("\nwhere.command.") {
                let about =
                    "in each folder that an agent works in; `runs` is about its first words";
                writeln!(f, "# It allows the command {about}.")?;
            }
            writeln!(f, "{}", it.rule)?;
        }
        for it in &self.uncovered {
            let (times, why) = (show::counted(it.approvals, "time"), show::escape(&it.why));
            let others = match it.others {
                0 => String::new(),
                others => format!(" and {} of its kind", show::counted(others, "other call")),
            };
            writeln!(f, "\n# No rule for {}{others} ({times}): {why}", it.call)?;
        }
        Ok(())
    }
}

/// The first of these calls as comments, and how many there are beside them.
fn few(f: &mut fmt::Formatter<'_>, calls: &[String]) -> fmt::Result {
    for call in calls.iter().take(MAX_SHOWN) {
        let short: String = call.chars().take(MAX_TEXT).collect();
        writeln!(f, "#   {short}")?;
    }
    match calls.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        Some(more) => writeln!(f, "#   and {more} more"),
        None => Ok(()),
    }
}
