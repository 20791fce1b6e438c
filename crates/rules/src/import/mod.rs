//! Imports the permission files of other agents.
//!
//! An import is a translation with a report. We write each rule that a file of rules can say, and list the others
//! with the reason, so nothing is silently allowed or lost. The result is a text for you to read and edit, and is
//! never loaded by itself.

mod advice;
mod claude;
mod codex;
mod examples;
mod pairs;

use std::cell::OnceCell;

use serde::Serialize;
use serde_json::{Map, Value};

pub use claude::import_claude;
pub use codex::import_codex;

use super::builder::RulesBuilder;
use super::handle::Rules;
use crate::calls::call::RuleCall;
use crate::format::condition_format::RUNNERS;
use countersign::show::escape;
use countersign_shell::program_files::{is_interpreter, program_name};
use countersign_shell::{ProgramExample, Programs};

/// The shell, as hooks call it.
const SHELL: &str = "shell";

/// A file of rules made from another agent's file, and what it does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// The text of the file of rules. It loads, and is never milder than the original.
    pub text: String,
    /// The rules that were not carried over.
    pub left_out: Vec<LeftOut>,
}

/// A rule of another agent that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The rule as it is written there.
    pub rule: String,
    /// The reason why it was left out, and what to write instead.
    pub why: String,
    /// `true` if the rule has no effect there either.
    pub dead: bool,
}

/// The classes of the forms of a program that are harmless: to look, to build and test, to write files that are named, to
/// query a service.
const HARMLESS: &[&str] = &["read-only", "project-build", "writes", "queries"];

/// A rule as it was written.
struct WrittenRule {
    id: String,
    effect: String,
    tools: Vec<String>,
    conditions: Vec<String>,
}

/// Collects rules as text.
#[derive(Default)]
struct Writer {
    imported: Imported,
    rules: Vec<WrittenRule>,
    examples: OnceCell<Vec<ProgramExample>>,
}

impl Writer {
    fn new(from: &str) -> Self {
        let text = format!(
            "# Imported from {from}, with the names of tools that `countersign hook` and `guard` have.\n\
             # What no rule allows is asked about, also what the client does not ask about, such as reading.\n\
             # A program is allowed in its harmless forms: for all forms, remove `where.command.is` of its rule.\n\
             version = 1\n"
        );
        let imported = Imported { text, left_out: Vec::new() };
        Self { imported, ..Self::default() }
    }

    fn rule(&mut self, effect: &str, tools: &[&str], lines: &[String], reason: &str) {
        let id = format!("imported-{}", self.rules.len() + 1);
        let text = &mut self.imported.text;
        text.push_str(&format!("\n[[rule]]\nid = \"{id}\"\n{effect} = {}\n", list(tools)));
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        if effect != "allow" {
            text.push_str(&format!("reason = {}\n", quoted(&reason.replace('{', "("))));
        }
        self.rules.push(WrittenRule {
            id,
            effect: effect.to_owned(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            conditions: lines.to_vec(),
        });
    }

    /// The file with its tests.
    fn finished(mut self) -> Imported {
        let tests = self.tests();
        self.imported.text.push_str(&tests);
        self.imported
    }

    /// The commands that the table of programs has as examples.
    fn program_examples(&self) -> &[ProgramExample] {
        self.examples.get_or_init(|| Programs::built_in().examples())
    }

    /// A rule that allows commands which begin with these words, in their harmless forms. The error says why there is
    /// none.
    fn allow_program(&mut self, words: &[&str]) -> Result<(), String> {
        let runs = words.join(" ");
        let all = || advice::to_allow(words);
        let Some((program, operands)) = words.split_first() else {
            return Err("names no program".to_owned());
        };
        if operands.is_empty() && is_runner(program) {
            return Err("allows a program that runs any program in its arguments".to_owned());
        }
        if !Programs::built_in().names().any(|name| name == *program) {
            return Err(format!(
                "`{program}` is not described, so that its harmless forms are not known: {}",
                all()
            ));
        }
        let lines = [
            format!("where.command.runs = {}", quoted(&runs)),
            format!("where.command.is = {}", list(HARMLESS)),
        ];
        if !self.allows_some(&lines.join("\n"), &runs) {
            return Err(format!("no form of `{runs}` is known to be harmless: {}", all()));
        }
        self.rule("allow", &[SHELL], &lines, "");
        Ok(())
    }

    /// Returns `true` if a rule with these conditions allows some form of the commands that begin with these words,
    /// of those that the table of programs has as examples. The rules themselves decide.
    fn allows_some(&self, conditions: &str, runs: &str) -> bool {
        let Some(rules) = tried(conditions) else { return false };
        let examples = uses(self.program_examples(), runs);
        std::iter::once(runs).chain(examples).any(|command| is_allowed(&rules, command))
    }

    fn left_out(&mut self, rule: &str, why: &str, dead: bool) {
        self.imported.left_out.push(LeftOut { rule: rule.to_owned(), why: why.to_owned(), dead });
    }
}

/// Returns `true` if a program runs programs or code that its arguments name.
fn is_runner(program: &str) -> bool {
    let name = program_name(program);
    // The scripts of `awk` are checked.
    RUNNERS.contains(&name) || !matches!(name, "awk" | "gawk") && is_interpreter(name)
}

/// A file with one rule that allows commands under these conditions.
fn tried(conditions: &str) -> Option<Rules> {
    let text = format!("version = 1\n[[rule]]\nid = 'a'\nallow = '{SHELL}'\n{conditions}\n");
    RulesBuilder::for_tests().text("tried", text).load().ok()
}

/// Returns `true` if some command that begins with these words is allowed: the words themselves, with an operand, or an
/// example of the table of programs. The rules decide about each.
pub(crate) fn may_allow(words: &[&str], rules: &Rules) -> bool {
    let runs = words.join(" ");
    let own = [runs.clone(), format!("{runs} x"), format!("{runs} ls")];
    // Only of this program: parsing the whole table takes longer than everything else in a check.
    let examples = words.first().map(|it| Programs::built_in().examples_of(it)).unwrap_or_default();
    own.iter()
        .map(String::as_str)
        .chain(uses(&examples, &runs))
        .any(|command| is_allowed(rules, command))
}

/// The examples of the table of programs that begin with these words, but for those that only show their help.
fn uses<'e>(examples: &'e [ProgramExample], runs: &str) -> impl Iterator<Item = &'e str> {
    let is_use = move |command: &&str| {
        let rest = command.strip_prefix(runs);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            && !command.ends_with(" --help")
            && !command.ends_with(" -h")
    };
    examples.iter().map(|it| it.command.as_str()).filter(is_use)
}

/// A file with one rule that allows what begins with these words, in a workspace where every program is installed.
pub(crate) fn alone(words: &[&str]) -> Option<Rules> {
    tried(&format!("where.command.runs = {}", quoted(&words.join(" "))))
}

fn is_allowed(rules: &Rules, command: &str) -> bool {
    let args: Map<String, Value> = [("command".to_owned(), command.into())].into_iter().collect();
    rules.decide(&RuleCall::new(SHELL, &args)).decision().is_allow()
}

/// A list of basic strings of TOML.
pub(super) fn list(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // A person would not see it, or would see it in another place.
            c if escape(c.encode_utf8(&mut [0; 4])).chars().ne([c]) => {
                out.push_str(&format!("\\U{:08X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Words that a rule can say a command begins with.
pub(super) fn plain_words(words: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%".contains(c);
    !words.is_empty() && words.iter().all(|word| !word.is_empty() && word.chars().all(plain))
}
