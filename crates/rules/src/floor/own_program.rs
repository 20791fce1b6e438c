//! Finds calls that may run the program itself, by which people decide (rule R5).
//!
//! The program is run by its own name, and as a word of another program: `sudo countersign …`, `flock x countersign …`. It
//! may stand in a text that another program runs (`script -c 'countersign …'`), and be written in parts (`counter${x}sign`).
//! So each such word counts if a command of the program follows it. In `cargo build -p countersign`, `cd countersign` and
//! `grep countersign` none does.

use std::borrow::Cow;

use serde_json::Value;

use crate::calls::command::CommandView;
use crate::calls::texts;
use crate::calls::texts::{UNKNOWN, with_unknown};
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::program_files::{is_executable, program_name};
use countersign_shell::protected::{fits, plain};
use countersign_shell::{Effect, Part};

const NAME: &str = "countersign";

/// The commands of the program that do more than print.
const COMMANDS: &[&str] = &["asks", "grants", "guard", "hook", "inbox", "init", "pins", "rules"];

/// The commands of `countersign rules` that read rules, and change nothing.
const READS_RULES: &[&str] = &["check", "explain", "lint", "replay", "diff", "schema"];

/// Programs whose words name a program that gets more words later, or by another name.
const NAMERS: &[&str] = &["alias", "hash", "parallel", "sem", "xargs", "gxargs"];

/// Programs that give a file another name.
const COPIES: &[&str] = &["cp", "gcp", "install", "ln", "mv", "rsync", "scp"];

/// Returns `true` if a command may run the program for more than reading its rules or its help.
pub(crate) fn runs(
    examined: &ExaminedCall<'_>,
    view: &CommandView,
    part: &Part,
    only_reads: bool,
) -> bool {
    let Some((program, words)) = part.argv().split_first() else { return false };
    if is_name(program) {
        return decides(words);
    }
    let is_unknown = with_unknown(program).contains(UNKNOWN) || program.contains(['*', '?', '[']);
    if is_unknown
        && names_it(program)
        && (is_command(words, false) || words.is_empty() && mentions(&view.text))
    {
        return true;
    }
    if only_reads {
        return false;
    }
    let name = program_name(program);
    let after = |at: usize| words.get(at + 1..).unwrap_or_default();
    let named = |(at, word): (usize, &String)| {
        let value = word.rsplit('=').next().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        // The package that is built, and the names of its tests.
        if name == "cargo" && before.is_some_and(|it| matches!(&**it, "-p" | "--package")) {
            return false;
        }
        names_it(word) && is_command(after(at), is_name(word))
            || NAMERS.contains(&name) && is_name(value)
            || COPIES.contains(&name) && is_name(word) && is_program_file(examined, part, word)
    };
    part.argv().iter().any(|word| may_name_it(word)) && words.iter().enumerate().any(named)
        || hidden(examined, view, part).any(|text| mentions(&text))
}

/// The texts of a command that it may run.
fn hidden<'t>(
    examined: &'t ExaminedCall<'_>,
    view: &'t CommandView,
    part: &'t Part,
) -> impl Iterator<Item = Cow<'t, str>> {
    let runs = |effect: &Effect| matches!(effect, Effect::Runs(_) | Effect::RunsWorkspace);
    // A message of a commit is for people. Other commands of git run their words.
    let is_git = part.program_name() == "git"
        && !part
            .argv()
            .iter()
            .any(|it| matches!(&**it, "commit" | "tag" | "merge" | "notes" | "stash" | "log"));
    let own = (is_git || part.effects().iter().any(runs)).then_some(part.argv());
    let own = own.into_iter().flatten().map(String::as_str);
    let given = part.assignments().iter().map(|it| it.value().text());
    let all = texts::obeyed(examined.engine, view, part).into_iter().chain(own).chain(given);
    all.map(Cow::Borrowed)
}

/// Returns whether a string of a tool's arguments may be a command line, or the program of one, that runs the program.
pub(super) fn is_run_by(
    args: &serde_json::Map<String, Value>,
    is_left_out: impl Fn(&str) -> bool,
) -> bool {
    // Most arguments have no text that could name the program.
    if !args.iter().any(|(name, value)| any_text(value, &mut may_name_it) && !is_left_out(name)) {
        return false;
    }
    let mut programs = Vec::new();
    for (name, value) in args.iter().filter(|(name, _)| !is_left_out(name)) {
        let is_first = matches!(&**name, "command" | "cmd" | "program" | "executable");
        any_text(value, &mut |text| {
            programs.insert(if is_first { 0 } else { programs.len() }, text);
            false
        });
    }
    programs.iter().any(|text| mentions(text)) || mentions(&programs.join(" "))
}

/// Tells whether a text in a value is one of these. Texts are looked at in their order, up to the first that is.
fn any_text<'v>(value: &'v Value, is_one: &mut impl FnMut(&'v str) -> bool) -> bool {
    match value {
        Value::String(text) => is_one(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, is_one)),
        Value::Object(map) => map.values().any(|value| any_text(value, is_one)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` if a text may run the program: some word of it names the program, and a command of it follows.
fn mentions(text: &str) -> bool {
    if !may_name_it(text) {
        return false;
    }
    // The text of a substitution is a command, too.
    mentions_in(&with_unknown(text)) || mentions_in(text)
}

/// Tells whether a text may name the program: it has a part of the name, a quote that may stand within it
/// (`counters''ign`), or something that only a shell knows.
fn may_name_it(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'$' | b'`' | b'*' | b'?' | b'[' | b'\'' | b'"' | b'\\' => true,
        b's' | b'S' => bytes.get(at..at + 4).is_some_and(|it| it.eq_ignore_ascii_case(b"sign")),
        _ => false,
    })
}

fn mentions_in(text: &str) -> bool {
    let text = text.replace("\\n", "\n").replace(['\'', '"', '\\'], "");
    let ends = |c: char| c.is_whitespace() || ";,(){}<>|&=[]:$`".contains(c);
    let words: Vec<&str> = text.split(ends).filter(|it| !it.is_empty()).take(10_000).collect();
    (0..words.len()).any(|at| {
        let rest = words.get(at + 1..).unwrap_or_default();
        words.get(at).is_some_and(|word| names_it(word) && is_command(rest, is_name(word)))
    })
}

/// The name of a program without what is known to be in front of it and behind it.
fn bare(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let end = name.len().saturating_sub(4);
    match name.get(end..) {
        Some(ending) if ending.eq_ignore_ascii_case(".exe") => name.get(..end).unwrap_or(name),
        _ => name,
    }
}

/// Returns `true` if a word is the name of the program, or its path.
fn is_name(word: &str) -> bool {
    bare(word).eq_ignore_ascii_case(NAME)
}

/// Returns `true` if a word may be the name of the program, or its path, once the shell has put in what only it knows.
fn names_it(word: &str) -> bool {
    if !word.contains(['$', '`', '*', '?', '[', UNKNOWN]) {
        return plain(bare(word)).eq_ignore_ascii_case(NAME);
    }
    let word = with_unknown(word);
    let name = bare(&word);
    // A `*` alone is a product, or all files.
    name != "*" && fits(&name.replace([UNKNOWN, '?', '['], "*"), NAME)
}

/// Returns `true` if the program, run with these words, does more than reading its rules or printing its help.
fn decides(words: &[String]) -> bool {
    match words {
        [first, ..] if matches!(&**first, "--help" | "--version") => false,
        [first, rest @ ..] if first == "rules" => reads_more(rest.first()),
        _ => true,
    }
}

fn reads_more(command: Option<&String>) -> bool {
    command.is_none_or(|command| !READS_RULES.contains(&&**command))
}

/// Returns `true` if words are a command of the program that does more. It refuses others. `is_named` says that the
/// program is certain, so that words which only the shell knows may be such a command.
fn is_command<W: AsRef<str>>(words: &[W], is_named: bool) -> bool {
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        match word {
            "--" | "--json" | "--text" => {}
            "--config" => drop(words.next()),
            _ if word.starts_with("--config=") => {}
            "rules" => return words.next().is_none_or(|it| !READS_RULES.contains(&it)),
            _ => {
                return COMMANDS.contains(&word) || is_named && word.starts_with(['$', UNKNOWN]);
            }
        }
    }
    false
}

/// Returns `true` if a word names a file of the program.
fn is_program_file(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    examined.places().looks()
        && part.directories().iter().any(|directory| {
            let places = examined.places().of(word, directory).unwrap_or_default();
            places.iter().any(|place| is_executable(place))
        })
}
