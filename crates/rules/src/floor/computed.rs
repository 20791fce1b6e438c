//! Names that only the shell knows, in commands that write the files that they name (rule R5).
//!
//! `cp a "$(git rev-parse --git-dir)/config"`, `cp a ".$x"` and `printf '.env%s' rc | xargs touch` name a protected file
//! by parts. Most names with a variable are harmless, and have their value from the environment, which the text does not
//! choose. So a person is asked only if the text itself computes the name, and the command writes or replaces a file.
//!
//! | written name | asked |
//! |---|---|
//! | `"$(cmd)"`, `"$1"`, `"$x"` behind `x=$(cmd)` or `read x` | yes, unless it is what `mktemp` has printed |
//! | `".$x"` | yes |
//! | `"$(cmd)/config"`, `"$x/hooks/y"` behind `x=$(cmd)` | yes: files in protected folders have such names |
//! | `"$x/notes.txt"`, `"build-$x"` | no |
//! | words of a pipe in which names are computed | yes |

use crate::calls::command::CommandView;
use crate::calls::texts;
use crate::folders::reaches;
use countersign_shell::{Commands, Part, SimpleCommand, Word};

/// Programs that write or replace the file that their last word names.
const TO_LAST: &[&str] =
    &["cp", "gcp", "ginstall", "gln", "gmv", "install", "ln", "mv", "rsync", "scp"];

/// Programs that write every file that they name.
const TO_ALL: &[&str] = &["dd", "gsed", "sed", "sponge", "tee", "touch", "truncate"];

/// Programs that print other names than they are given.
const COMPUTES: &[&str] = &[
    "awk", "base32", "base64", "envsubst", "fold", "gawk", "gpg", "gsed", "lua", "m4", "mawk",
    "nawk", "node", "od", "openssl", "paste", "perl", "php", "python", "python2", "python3", "rev",
    "ruby", "sed", "tr", "xxd",
];

/// The names of files in folders of which every file is protected.
const TAILS: &[&str] = &[
    "HEAD",
    "agents",
    "commands",
    "config",
    "config.json",
    "config.toml",
    "config.worktree",
    "countersign",
    "hooks",
    "hooks.json",
    "info",
    "plugin",
    "plugins",
    "rules.toml",
    "settings.json",
    "settings.local.json",
    "skills",
    "workflows",
];

/// Returns `true` if a command writes a file of which the name is computed, and may be a protected one.
pub(super) fn writes(view: &CommandView, part: &Part) -> bool {
    let written = written(part);
    let Some(written) = written else { return false };
    let is_computed = |part: &Part| !texts::is_fed(part) && computes(&argv(part));
    texts::is_fed(part) && view.parts().iter().any(is_computed)
        || written.iter().any(|word| is_unresolved(view, word))
}

/// The words of a command that name what it writes; `None` for a program that is not known to write.
fn written(part: &Part) -> Option<Vec<&Word>> {
    let name = part.program_name();
    let words = part.words().get(1..).unwrap_or_default();
    let is_option = |word: &&Word| word.text().starts_with('-');
    if TO_LAST.contains(&name) {
        let into = |word: &&Word| word.text().starts_with("--target-directory=");
        let behind = |pair: &[Word]| match pair {
            [option, _] => matches!(option.text(), "-t" | "--target-directory"),
            _ => false,
        };
        let next = words.windows(2).filter(|pair| behind(pair)).filter_map(|pair| pair.get(1));
        let last = words.iter().rev().find(|word| !is_option(word));
        return Some(words.iter().filter(into).chain(next).chain(last).collect());
    }
    let in_place = |word: &Word| word.text().starts_with("-i") || word.text().starts_with("--in");
    let writes = match name {
        "sed" | "gsed" => words.iter().any(in_place),
        _ => TO_ALL.contains(&name),
    };
    let is_written = |word: &&Word| match name {
        "dd" => word.text().starts_with("of="),
        _ => !is_option(word),
    };
    writes.then(|| words.iter().filter(is_written).collect())
}

/// Returns `true` if a word that only the shell knows may be the name of something protected.
fn is_unresolved(view: &CommandView, word: &Word) -> bool {
    let Some(pattern) = texts::as_pattern(word) else { return false };
    let is_computed = |command: &SimpleCommand| computes(&words(command));
    if inner(word).any(is_computed) {
        return true;
    }
    let path = pattern.rsplit('=').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    let is_open = |part: &&str| part.chars().all(|c| c == '*');
    let is_hidden =
        |part: &&str| part.starts_with('.') && part.ends_with('*') && part.chars().count() < 4;
    let after = parts.iter().rposition(is_open).and_then(|at| parts.get(at + 1));
    let is_whole = !parts.is_empty() && parts.iter().all(is_open);
    parts.iter().any(is_hidden)
        || (is_whole || after.is_some_and(|name| TAILS.contains(name))) && is_given(view, word)
}

/// Returns `true` if what is not known of a word is given to it by the text, and is no temporary file. A variable of
/// the environment is not the text's choice.
fn is_given(view: &CommandView, word: &Word) -> bool {
    let is_made = |word: &Word| {
        !word.substitutions().is_empty()
            && inner(word).all(|it| words(it).first() == Some(&"mktemp"))
    };
    let is_set = |name: &str| {
        let assigned = |it: &SimpleCommand| {
            it.assignments().iter().any(|it| it.name() == name && !is_made(it.value()))
        };
        let named = |it: &SimpleCommand| {
            let words = words(it);
            let names = words.iter().any(|it| it.split('=').next() == Some(name));
            words.first().is_some_and(|it| SETTERS.contains(it)) && names
        };
        let looped = || {
            let mut words = view.text.split_whitespace().skip_while(|it| *it != "for").skip(1);
            words.next() == Some(name)
        };
        let is_position =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_digit() || matches!(c, '@' | '*'));
        is_position
            || view.commands().simple_commands().any(|it| assigned(it) || named(it))
            || looped()
    };
    // The files that a command finds are looked up as such.
    let is_found = || {
        let argv =
            |it: &SimpleCommand| words(it).into_iter().map(str::to_owned).collect::<Vec<_>>();
        inner(word).any(|it| reaches::named(&argv(it)).is_some())
    };
    let is_printed = !word.substitutions().is_empty() && !is_made(word) && !is_found();
    is_printed || names(word.text()).any(is_set)
}

/// The names of the variables in a word.
fn names(word: &str) -> impl Iterator<Item = &str> {
    word.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        rest.get(..end.max(usize::from(rest.starts_with(['@', '*'])))).unwrap_or_default()
    })
}

/// Commands of a shell that set the variables that they name.
const SETTERS: &[&str] =
    &["declare", "export", "getopts", "local", "mapfile", "printf", "read", "readarray", "typeset"];

/// The commands in the substitutions of a word.
fn inner(word: &Word) -> impl Iterator<Item = &SimpleCommand> {
    word.substitutions().iter().flat_map(Commands::simple_commands)
}

fn words(command: &SimpleCommand) -> Vec<&str> {
    command.words().iter().map(Word::text).collect()
}

fn argv(part: &Part) -> Vec<&str> {
    part.argv().iter().map(String::as_str).collect()
}

/// Returns `true` if a command prints a name that none of its words is.
fn computes(argv: &[&str]) -> bool {
    match argv {
        ["printf", format, rest @ ..] => {
            let ends = ["%s\\n", "%s\\0", "%s ", "\\n"];
            let plain = ends.iter().fold((*format).to_owned(), |text, end| text.replace(end, ""));
            let is_one = plain == "%s" && rest.len() < 2;
            !is_one && plain.contains(['%', '\\'])
        }
        ["echo", option, ..] => matches!(*option, "-e" | "-n" | "-en" | "-ne"),
        [program, ..] => {
            let name = countersign_shell::program_files::program_name(program);
            COMPUTES.contains(&name)
        }
        [] => false,
    }
}

/// Returns `true` if a word is no more than what a command prints, and no temporary file: `"$(pwd)"`.
pub(super) fn is_printed_place(word: &Word) -> bool {
    let is_made = |command: &SimpleCommand| words(command).first() == Some(&"mktemp");
    let pattern = texts::as_pattern(word).unwrap_or_default();
    !word.substitutions().is_empty()
        && pattern.chars().all(|c| matches!(c, '*' | '/'))
        && !inner(word).all(is_made)
}

/// Returns `true` if a command prints where the repository keeps its settings.
pub(super) fn prints_repository(command: &SimpleCommand) -> bool {
    let words = words(command);
    words.contains(&"rev-parse")
        && words.iter().any(|it| it.starts_with("--git-") || *it == "--absolute-git-dir")
}

#[cfg(test)]
mod tests {
    use super::computes;

    #[test]
    fn names_are_computed_where_a_format_joins_its_arguments() {
        for argv in [
            &["printf", ".env%s", "rc"][..],
            &["printf", "%s%s", ".env", "rc"],
            &["printf", "%s", ".env", "rc"],
            &["printf", "\\056envrc"],
            &["echo", "-n", ".env"],
            &["tr", "x", "y"],
        ] {
            assert!(computes(argv), "{argv:?}");
        }
        for argv in
            [&["printf", "%s\\n", "a", "b"][..], &["printf", "%s", "a"], &["echo", "a"], &["ls"]]
        {
            assert!(!computes(argv), "{argv:?}");
        }
    }
}
