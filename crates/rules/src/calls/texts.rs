//! Texts that a command hands to another program, which may run or write what they name.
//!
//! `su -c 'touch .envrc'`, `printf 'w .envrc\n' | ed a.txt` and `patch <<E` name a file in a text. Only the program that
//! reads the text knows what it means, so every word of it counts as a name.
//!
//! | command | texts |
//! |---|---|
//! | an interpreter, an editor with commands, what `xargs` and `find` run, `curl -K`, `eval "$x"` | the whole command line: what is piped to it stands there, too |
//! | a program that runs its words (`sudo`, `watch`, `eval`), or that is not known | its own words, here-documents and here-strings |
//! | `patch`, `git apply`, a program that is not known | the headers of a patch in these |
//! | a program with messages for people or for other machines (`git commit`, `gh pr`, `curl`) | none |
//! | any other one | its words that may be commands: `git rebase --exec 'touch .envrc'`, `make --eval='$(file >.envrc)'`; its here-documents and here-strings, unless the table says that it takes its input for text |

use std::borrow::Cow;

use super::command::CommandView;
use super::engine::Engine;
use super::git_words::GitWords;
use crate::readings::patch;
use countersign_shell::program_files;
use countersign_shell::{Part, RedirectionTarget, Word, WordKind};

/// Programs that run a text of their arguments or their input, which may write files, beside the interpreters.
const SCRIPTED: &[&str] = &[
    "sed", "gsed", "ed", "ex", "vi", "vim", "nvim", "emacs", "sqlite3", "psql", "aria2c", "expect",
    "gdb", "lldb", "socat",
];

/// Commands of a shell that run a text, now or later.
const EVALUATORS: &[&str] =
    &["eval", "trap", "exec", "builtin", "alias", "complete", "compgen", "bind", "fc"];

/// Programs that hand names on to another one.
const FEEDS: &[&str] = &["xargs", "gxargs", "find", "gfind", "bfs", "fd", "fdfind", "parallel"];

/// Programs that print, and write no file that they are given.
const PRINTS: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cmp",
    "cut",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "fgrep",
    "file",
    "grep",
    "head",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "printf",
    "readlink",
    "realpath",
    "rg",
    "sha256sum",
    "stat",
    "tail",
    "test",
    "tr",
    "wc",
];

/// Returns `true` if a command only prints, whatever it is given.
pub(crate) fn only_prints(part: &Part) -> bool {
    prints(part.program_name())
}

/// Returns `true` if a program only prints.
pub(crate) fn prints(program: &str) -> bool {
    PRINTS.contains(&program)
}

/// Returns `true` if another program hands names on to a command.
pub(crate) fn is_fed(part: &Part) -> bool {
    part.wrapped_by().is_some_and(|it| FEEDS.contains(&it))
}

/// Returns `true` if a command may run or obey any text of the command line.
pub(super) fn obeys_all(part: &Part) -> bool {
    let name = part.program_name();
    let takes_options = || {
        let bundle = |word: &String| word.starts_with('-') && !word.starts_with("--");
        let is_one = |word: &String| {
            // `--write-out '%output{FILE}'` writes a file.
            bundle(word) && word.contains('K')
                || word.starts_with("--conf")
                || word.contains("%output{")
        };
        name == "curl" && part.argv().iter().any(is_one)
    };
    let is_unknown = |word: &Word| word.kind() == WordKind::Expansion;
    SCRIPTED.contains(&name)
        || EVALUATORS.contains(&name) && part.words().iter().any(is_unknown)
        || program_files::is_interpreter(part.written_program())
        || is_fed(part) && !only_prints(part)
        || takes_options()
}

/// The texts that a command may run or obey.
pub(crate) fn obeyed<'t>(engine: &Engine, view: &'t CommandView, part: &'t Part) -> Vec<&'t str> {
    if obeys_all(part) {
        return vec![&view.text];
    }
    let evaluates =
        EVALUATORS.contains(&part.program_name()) || engine.classifier.runs_its_words(part);
    if has_messages(part) || !evaluates && only_prints(part) {
        return Vec::new();
    }
    let words = part.argv().iter().skip(usize::from(!evaluates)).map(String::as_str);
    let obeys_input = evaluates || !engine.classifier.takes_text(part);
    words.filter(|word| is_text(word)).chain(input(part).filter(|_| obeys_input)).collect()
}

/// Returns `true` if a word is more than a name: a command, or several values.
pub(crate) fn is_text(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || "(){}<>;|!\"'".contains(c))
}

/// Programs with texts for people or for other machines, and the sub-commands that have these: all, where none is named.
const MESSAGES: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
            "am",
            "blame",
            "cherry-pick",
            "commit",
            "describe",
            "grep",
            "log",
            "merge",
            "notes",
            "revert",
            "shortlog",
            "show",
            "stash",
            "tag",
        ],
    ),
    (
        &["gh", "glab", "hub"],
        &["api", "gist", "issue", "label", "mr", "pr", "release", "run", "search", "workflow"],
    ),
    (&["npm", "pnpm", "yarn"], &["deprecate", "version"]),
    (
        &[
            "aws",
            "az",
            "claude",
            "codex",
            "copilot",
            "curl",
            "gcloud",
            "gemini",
            "http",
            "https",
            "jq",
            "kubectl",
            "logger",
            "notify-send",
            "qwen",
            "say",
            "wget",
            "xh",
            "yq",
        ],
        &[],
    ),
];

/// Returns `true` if the texts of a command are messages, and no commands.
fn has_messages(part: &Part) -> bool {
    let name = part.program_name();
    let Some((_, subs)) = MESSAGES.iter().find(|(names, _)| names.contains(&name)) else {
        return false;
    };
    let sub = match name {
        "git" => GitWords::of(part).sub,
        _ => part.argv().iter().skip(1).map(String::as_str).find(|it| !it.starts_with('-')),
    };
    subs.is_empty() || sub.is_some_and(|sub| subs.contains(&sub))
}

/// The here-documents and here-strings of a command.
fn input(part: &Part) -> impl Iterator<Item = &str> {
    part.redirections().iter().filter_map(|it| match it.target() {
        RedirectionTarget::HereDocument(text) => Some(&**text),
        RedirectionTarget::HereString(word) => Some(word.text()),
        _ => None,
    })
}

/// The names in the headers of a patch that a command may apply.
pub(crate) fn patched(engine: &Engine, view: &CommandView, part: &Part) -> Vec<String> {
    let name = part.program_name();
    let applies = matches!(name, "patch" | "gpatch")
        || name == "git" && part.argv().iter().any(|word| matches!(&**word, "apply" | "am"));
    let texts: Vec<&str> = match applies {
        true => vec![&view.text],
        false if engine.classifier.runs_its_words(part) => input(part).collect(),
        false => Vec::new(),
    };
    let mut found = Vec::new();
    for text in texts {
        found.extend(patch::headers(text));
        // `printf '--- a\n+++ b\n'` and `echo '+++ b'`
        found.extend(patch::headers(&text.replace("\\n", "\n").replace(['\'', '"'], "\n")));
    }
    found.into_iter().map(|it| it.name).collect()
}

/// The texts within a script that may be names of files: its words, and what follows a `w` of `sed`.
pub(crate) fn fragments(script: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "\"'`;,(){}<>|&=".contains(c);
    // `printf` writes a line break as `\n`.
    let words = script.split(ends).flat_map(|word| word.split("\\n"));
    let words = words.filter(|it| !it.is_empty()).take(10_000);
    words.flat_map(|word| {
        let written = word.match_indices('w').take(8).filter_map(|(at, _)| word.get(at + 1..));
        std::iter::once(word).chain(written)
    })
}

/// A text as a shell may read it once its quotes are gone, where it has some: `touch .en''vrc`.
pub(crate) fn unquoted(text: &str) -> Option<String> {
    text.contains(['\'', '"', '\\']).then(|| text.replace(['\'', '"', '\\'], ""))
}

/// A text with a `*` in the place of each part that only the shell knows, where it has some: `touch .en${x}vrc`.
pub(crate) fn with_stars(text: &str) -> Option<String> {
    text.contains(['$', '`']).then(|| with_unknown(text).replace(UNKNOWN, "*"))
}

/// The character that stands for a part of a text that only the shell knows.
pub(crate) const UNKNOWN: char = '\u{1}';

/// A text with one character in the place of each of its variables and substitutions.
pub(crate) fn with_unknown(text: &str) -> Cow<'_, str> {
    if !text.contains(['$', '`']) {
        return Cow::Borrowed(text);
    }
    let mut found = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let close = match (c, rest.peek()) {
            ('`', _) => Some('`'),
            ('$', Some('{')) => Some('}'),
            ('$', Some('(')) => Some(')'),
            _ => None,
        };
        if let Some(close) = close {
            let open = rest.next_if(|c| matches!(c, '{' | '('));
            let mut depth = 1_usize;
            for c in rest.by_ref() {
                depth = match c {
                    _ if c == close => depth - 1,
                    _ if Some(c) == open => depth + 1,
                    _ => depth,
                };
                if depth == 0 {
                    break;
                }
            }
            found.push(UNKNOWN);
        } else if c == '$'
            && rest.peek().is_some_and(|c| c.is_alphanumeric() || "_@*#?-!".contains(*c))
        {
            let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
            if rest.next().is_some_and(|first| is_name(&first) && !first.is_ascii_digit()) {
                while rest.next_if(is_name).is_some() {}
            }
            found.push(UNKNOWN);
        } else {
            found.push(c);
        }
    }
    Cow::Owned(found)
}

/// A word of a command as a pattern, with `*` for what only the shell knows; `None` for a word that is known.
pub(crate) fn as_pattern(word: &Word) -> Option<String> {
    (word.kind() == WordKind::Expansion).then(|| with_unknown(word.text()).replace(UNKNOWN, "*"))
}
