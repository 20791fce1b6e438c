//! Puts the values of variables into the words of commands.
//!
//! A word says which variables are in it, and its text has them as they are written: `$f` or `${f}`. A `$` that was quoted
//! looks the same in the text, so that a word is left alone if it has more of them than expansions.
//!
//! | word, with `a.rs` in `f` | becomes | kind |
//! |---|---|---|
//! | `"src/$f"` | `src/a.rs` | literal |
//! | `"$f"`, with `*.rs` in `f` from a `for` | `*.rs` | one word of a pattern |
//! | `$f`, with a blank in the value | `$f` | expansion, as the shell splits it |
//! | `"$f$HOME"` | `a.rs$HOME` | expansion |
//! | `-j$(nproc)` | a number | literal |
//! | `git diff $(git merge-base main HEAD)`, `git diff $x` with such a value | a commit | literal |
//! | `$(pwd)/src`, `"$(git rev-parse --show-toplevel)"` | the path | literal |

use super::bindings::{Binding, Value};
use crate::names::globs::is_glob;
use crate::syntax::commands::{
    Assignment, Redirection, RedirectionTarget, SimpleCommand, Stage, Word, WordKind,
};

/// The word with the values of the variables in it.
pub(super) fn with_values(bindings: &mut [Binding], word: &Word) -> Word {
    let mut given = word.clone();
    let bound = |name: &str| {
        let known = bindings.iter().find(|one| one.name == name);
        known.and_then(|one| match &one.value {
            Value::Word { word: value, plain } if *plain || !word.split => Some(value.text.clone()),
            Value::Word { .. } | Value::Line { .. } | Value::Commit { .. } | Value::Text => None,
        })
    };
    let known = match printed(word) {
        Some(Printed::Directory) => bound(DIRECTORY),
        // Where there is none, nothing is printed: a word that is not quoted is gone, and a path begins at the root.
        Some(Printed::Toplevel) if !word.split && word.text == "$(…)" => bound(TOPLEVEL),
        Some(Printed::Count | Printed::Toplevel | Printed::Commit) | None => None,
    };
    if let Some(known) = known {
        put_printed(&mut given, &known);
        return given;
    }
    if !word.parameters.iter().any(|name| bindings.iter().any(|one| one.name == *name)) {
        return given;
    }
    let Some(parts) = parts_of(word) else {
        without_values(bindings, &mut given, word);
        return given;
    };
    put_values(bindings, &mut given, word, parts);
    given
}

/// Leaves the text of a word as it is written, with the variables that the text does not set.
fn without_values(bindings: &[Binding], given: &mut Word, word: &Word) {
    let other = |name: &&String| bindings.iter().all(|one| one.name != **name);
    given.parameters = word.parameters.iter().filter(other).cloned().collect();
}

/// How long a word with its values may be. Each variable may hold the one before several times, so that a short text can
/// stand for more than any memory holds.
const MAX_LENGTH: usize = 4096;

/// Replaces the text of a word by its parts, with the values that are known.
fn put_values(bindings: &mut [Binding], given: &mut Word, word: &Word, parts: Vec<TextPart<'_>>) {
    given.parameters.clear();
    let mut text = String::with_capacity(word.text.len());
    let mut known = word.substitutions.is_empty();
    let (mut home, mut glob, mut split) = (false, false, false);
    for (literal, name) in parts {
        text.push_str(literal);
        // Where nothing is split, all of it is quoted. Otherwise this part may be, which is not known here.
        split |= word.split && is_glob(literal);
        let Some((name, written)) = name else { continue };
        let bound = bindings.iter_mut().rfind(|binding| binding.name == name);
        let Some(binding) = bound else {
            given.parameters.push(name.to_owned());
            text.push_str(written);
            known = false;
            continue;
        };
        binding.used = true;
        match &binding.value {
            Value::Word { word: value, plain } if *plain || !word.split => {
                match value.kind {
                    WordKind::Tilde if text.is_empty() => home = true,
                    WordKind::Tilde => known = false,
                    WordKind::Glob => glob = true,
                    _ => {}
                }
                text.push_str(&value.text);
                if text.len() > MAX_LENGTH {
                    return without_values(bindings, given, word);
                }
            }
            value => {
                if let Value::Line { is_plain, is_whole } = value {
                    let whole = word.text == written && (!word.split || *is_whole);
                    given.line |= whole;
                    given.no_option |= whole && *is_plain;
                    given.whole_line |= whole && *is_whole;
                }
                known = false;
                text.push_str(written);
            }
        }
    }
    if known {
        given.kind = match (home, glob || split) {
            (true, _) => WordKind::Tilde,
            (_, true) => WordKind::Glob,
            _ => WordKind::Literal,
        };
        given.split = split;
    }
    given.text = text;
}

/// The command with the values of the variables in its words.
pub(super) fn command_with_values(
    bindings: &mut [Binding],
    command: &SimpleCommand,
) -> SimpleCommand {
    let texts: Vec<_> = command.words.iter().take(2).map(Word::literal).collect();
    let is_git = matches!(*texts, [Some("git"), Some(sub)] if OF_COMMITS.contains(&sub));
    // Where there is no commit, nothing is printed, and an option that it was the value of takes the word behind it.
    let is_option = |word: &Word| word.text.starts_with('-');
    let words = command.words.iter().enumerate().map(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| command.words.get(at));
        let is_last = at + 1 == command.words.len();
        let moves = !is_last && before.is_none_or(is_option);
        if is_git
            && !is_option(word)
            && let Some(text) = with_commits(bindings, word, moves)
        {
            return Word { text, kind: WordKind::Literal, split: false, ..word.clone() };
        }
        let mut given = with_values(bindings, word);
        if printed(word) == Some(Printed::Count) && counts(before, word) {
            put_printed(&mut given, "8");
        }
        given
    });
    let words = words.collect();
    SimpleCommand {
        assignments: command
            .assignments
            .iter()
            .map(|one| Assignment {
                name: one.name.clone(),
                value: with_values(bindings, &one.value),
            })
            .collect(),
        words,
        redirections: redirections_with_values(bindings, &command.redirections),
        span: command.span.clone(),
    }
}

/// The redirections with the values of the variables in their targets.
pub(super) fn redirections_with_values(
    bindings: &mut [Binding],
    all: &[Redirection],
) -> Vec<Redirection> {
    let mut with = |redirection: &Redirection| {
        let target = match &redirection.target {
            RedirectionTarget::Read(word) => RedirectionTarget::Read(with_values(bindings, word)),
            RedirectionTarget::Write(word) => RedirectionTarget::Write(with_values(bindings, word)),
            RedirectionTarget::Append(word) => {
                RedirectionTarget::Append(with_values(bindings, word))
            }
            RedirectionTarget::WriteAll(word) => {
                RedirectionTarget::WriteAll(with_values(bindings, word))
            }
            RedirectionTarget::HereString(word) => {
                RedirectionTarget::HereString(with_values(bindings, word))
            }
            other => other.clone(),
        };
        Redirection { fd: redirection.fd, target }
    };
    all.iter().map(&mut with).collect()
}

/// The names of the values that `$(pwd)` and `$(git rev-parse --show-toplevel)` have, which are no names of variables.
pub(super) const DIRECTORY: &str = "pwd ";
pub(super) const TOPLEVEL: &str = "git rev-parse --show-toplevel";

/// The text of a word in which nothing but commits is unknown. `moves` is `true` if the word may not be gone, as another one would
/// stand in its place.
fn with_commits(bindings: &[Binding], word: &Word, moves: bool) -> Option<String> {
    if is_glob(&word.text) {
        return None;
    }
    if printed(word) == Some(Printed::Commit) && stands_alone(word.text.split("$(…)")) {
        let is_gone = word.text == "$(…)" && word.split;
        return (!is_gone || !moves).then(|| word.text.replace("$(…)", COMMIT));
    }
    let parts = parts_of(word).filter(|_| word.substitutions.is_empty())?;
    if !stands_alone(parts.iter().map(|(literal, _)| *literal)) {
        return None;
    }
    let mut text = String::new();
    let mut has_commit = false;
    for (literal, name) in parts {
        text.push_str(literal);
        let Some((name, written)) = name else { continue };
        let bound = bindings.iter().rfind(|one| one.name == name)?;
        let Value::Commit { may_be_empty } = bound.value else { return None };
        if may_be_empty && moves && word.split && word.text == written {
            return None;
        }
        has_commit = true;
        text.push_str(COMMIT);
    }
    has_commit.then_some(text)
}

/// Returns `true` if commits between texts are words of revisions, also where one of them is empty: each begins a word or stands
/// behind `..`, and ends there or is followed by `..`, `^`, `~` or `:`. `.env$x` is `.env` if there is no commit.
fn stands_alone<'t>(literals: impl Iterator<Item = &'t str>) -> bool {
    let literals: Vec<&str> = literals.collect();
    let last = literals.len().saturating_sub(1);
    // Not the way to a folder above: `../x`.
    let is_range =
        |beside: &str| !beside.is_empty() && !beside.starts_with('/') && !beside.ends_with('/');
    literals.iter().enumerate().all(|(at, text)| {
        let ends = at == last
            || text.is_empty() && at == 0
            || text.ends_with("..") && is_range(text.trim_end_matches('.'));
        let begins = at == 0
            || text.is_empty() && at == last
            || text.starts_with("..") && is_range(text.trim_start_matches('.'))
            || text.starts_with(['^', '~', ':']);
        ends && begins
    })
}

/// Commands of git that only show, whatever their operands are.
const OF_COMMITS: &[&str] = &["diff", "log", "range-diff", "rev-list", "shortlog", "show"];

/// Options whose value is how many processes there may be.
const COUNTS: &[&str] =
    &["-j", "-P", "-T", "-n", "--jobs", "--max-workers", "--parallel", "--threads", "--workers"];

/// Returns `true` if the only substitution in a word is the value of an option that counts, and no part of a path.
fn counts(before: Option<&Word>, word: &Word) -> bool {
    let option = word.text.strip_suffix("$(…)").unwrap_or_default();
    let of_before = || before.is_some_and(|it| COUNTS.contains(&it.text.as_str()));
    COUNTS.contains(&option.trim_end_matches('=')) || option.is_empty() && of_before()
}

/// A commit, as git prints it.
const COMMIT: &str = "8f3c2a1b9d4e5f60718293a4b5c6d7e8f9012345";

/// The output of a substitution, where it is known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    /// The number of processors: `-j$(nproc)`.
    Count,
    /// A commit, or nothing. Only git is sure to take it for one.
    Commit,
    /// The folder in which the text begins.
    Directory,
    /// The folder of the working tree, or nothing.
    Toplevel,
}

/// Returns what the only substitution in a word prints, if nothing else in it is unknown.
pub(super) fn printed(word: &Word) -> Option<Printed> {
    let argv = only_command(word)?;
    if !word.parameters.is_empty() || word.text.matches('$').count() != 1 || is_glob(&word.text) {
        return None;
    }
    let is_name = |name: &&str| !name.starts_with('-');
    match argv.as_slice() {
        ["nproc"] => Some(Printed::Count),
        ["pwd"] => Some(Printed::Directory),
        ["git", "rev-parse", "--show-toplevel"] => Some(Printed::Toplevel),
        ["git", "rev-parse", options @ .., name]
            if options.iter().all(|it| OF_REV_PARSE.contains(it))
                && is_revision(name, options.contains(&"--verify")) =>
        {
            Some(Printed::Commit)
        }
        ["git", "merge-base", "--fork-point", names @ ..] | ["git", "merge-base", names @ ..]
            if matches!(names.len(), 1 | 2) && names.iter().all(is_name) =>
        {
            Some(Printed::Commit)
        }
        _ => None,
    }
}

/// Options with which `git rev-parse` prints one commit.
const OF_REV_PARSE: &[&str] = &["--short", "--verify", "--quiet", "-q"];

/// Returns `true` for a name of a commit for which git prints nothing else. Without `--verify` it prints the name of a file as it is.
fn is_revision(name: &str, is_verified: bool) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/~^@{}".contains(c);
    let is_no_file =
        matches!(name, "HEAD" | "@") || name.contains(['~', '^']) || name.contains("@{");
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
        && name.chars().all(plain)
        && !name.contains("..")
        && (is_verified || is_no_file)
}

/// Returns `true` if the only substitution in a word prints commits, one a line, and nothing else.
pub(super) fn prints_commits(word: &Word) -> bool {
    let Some(argv) = only_command(word) else { return false };
    let is_known = |it: &&str| {
        let count = it.strip_prefix("--max-count=").or_else(|| it.strip_prefix("-n"));
        let count = count.or_else(|| it.strip_prefix('-')).unwrap_or_default();
        !count.is_empty() && count.chars().all(|c| c.is_ascii_digit())
            || SELECTS_COMMITS.contains(it)
            || !it.starts_with('-')
    };
    matches!(argv.as_slice(), ["git", "rev-list", rest @ ..] if rest.iter().all(is_known))
}

/// Options of `git rev-list` that say which commits it prints. What `git log` prints beside their hashes depends on settings.
const SELECTS_COMMITS: &[&str] =
    &["--all", "--branches", "--first-parent", "--merges", "--no-merges", "--reverse", "-n"];

/// The words of the only command in a word's only substitution, if nothing but its output stands there.
fn only_command(word: &Word) -> Option<Vec<&str>> {
    let [commands] = word.substitutions.as_slice() else { return None };
    let [pipeline] = commands.pipelines.as_slice() else { return None };
    let [Stage::Simple(command)] = pipeline.stages.as_slice() else { return None };
    let is_plain = command.assignments.is_empty() && command.redirections.iter().all(drops_errors);
    command.argv().filter(|_| is_plain)
}

/// Returns `true` for `2>/dev/null`.
fn drops_errors(redirection: &Redirection) -> bool {
    let is_null = |word: &Word| word.literal() == Some("/dev/null");
    redirection.fd == Some(2)
        && matches!(&redirection.target, RedirectionTarget::Write(word) if is_null(word))
}

/// Puts what a substitution prints into its word.
fn put_printed(word: &mut Word, known: &str) {
    word.text = word.text.replace("$(…)", known);
    word.kind = WordKind::Literal;
    word.split = false;
}

/// Literal text, and the variable behind it: its name, and how it is written.
type TextPart<'w> = (&'w str, Option<(&'w str, &'w str)>);

/// The parts of a word. `None` if it has a `$` that is not the beginning of an expansion, so that which is which cannot
/// be said.
fn parts_of(word: &Word) -> Option<Vec<TextPart<'_>>> {
    if word.text.matches('$').count() != word.parameters.len() + word.substitutions.len() {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = word.text.as_str();
    let mut names = word.parameters.iter();
    let mut from = 0;
    while let Some(at) = rest.get(from..)?.find('$').map(|at| at + from) {
        let after = rest.get(at + 1..)?;
        if after.starts_with("(…)") {
            from = at + 1;
            continue;
        }
        let name = names.next()?;
        let braces = after.starts_with('{');
        let length = name.len() + if braces { 2 } else { 0 };
        let inside = if braces { after.get(1..=name.len())? } else { after.get(..name.len())? };
        if inside != name {
            return None;
        }
        parts.push((rest.get(..at)?, Some((inside, rest.get(at..=at + length)?))));
        rest = after.get(length..)?;
        from = 0;
    }
    parts.push((rest, None));
    Some(parts)
}
