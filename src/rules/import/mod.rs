//! Imports the permission files of other agents.
//!
//! An import is a translation with a report: what can be said in a file of rules is written there, and what cannot is
//! listed with the reason, so that nothing is silently allowed or lost. The result is a text to read and edit, and
//! never loaded by itself.

mod claude;
mod codex;

use serde::Serialize;

pub use claude::import_claude;
pub use codex::import_codex;

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
    /// Why it was left out, and what to write instead.
    pub why: String,
    /// Whether the rule has no effect there either.
    pub dead: bool,
}

/// Collects rules as text.
#[derive(Default)]
struct Writer {
    imported: Imported,
    number: usize,
}

impl Writer {
    fn new() -> Self {
        let imported = Imported { text: "version = 1\n".into(), left_out: Vec::new() };
        Self { imported, number: 0 }
    }

    fn rule(&mut self, effect: &str, tools: &[&str], lines: &[String], reason: Option<&str>) {
        self.number += 1;
        let list: Vec<String> = tools.iter().map(|tool| quoted(tool)).collect();
        let text = &mut self.imported.text;
        text.push_str(&format!(
            "\n[[rule]]\nid = \"imported-{}\"\n{effect} = [{}]\n",
            self.number,
            list.join(", ")
        ));
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        if let Some(reason) = reason {
            text.push_str(&format!("reason = {}\n", quoted(&reason.replace('{', "("))));
        }
    }

    fn left_out(&mut self, rule: &str, why: &str, dead: bool) {
        self.imported.left_out.push(LeftOut { rule: rule.to_owned(), why: why.to_owned(), dead });
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Words that a rule can say a command begins with.
fn plain_words(words: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%".contains(c);
    !words.is_empty() && words.iter().all(|word| !word.is_empty() && word.chars().all(plain))
}
