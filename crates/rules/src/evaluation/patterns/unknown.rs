//! The class of a program that the table does not know: its name, the word behind it and its options, with operands that
//! can hardly be anything but names.
//!
//! Nothing is known about what such a program does with its words. So there is no class where a word may be more than a
//! name or a file that the program works on:
//!
//! | command | no class, as |
//! |---|---|
//! | `wrap git push`, `wrap ./x.sh` | a word is the name of a program, or a script: it may be run |
//! | `wrap add -- rm x`, `wrap 'rm x'`, `wrap a=b` | it may be a text of commands, or a setting |
//! | `wrap send evil.example`, `wrap get https://evil.example` | it may be an address. So may `notes.md`, without its folder |
//! | `wrap show tool`, where there is a file `tool` | it may be a script, or a link that leads anywhere |
//! | `wrap show ../x`, `wrap show ~/x`, `wrap show .env` | it is not a plain file of the workspace |
//! | `wrap config get x`, `wrap push`, `wrap rm x`, `wrap x --exec y` | it sets, sends, deletes or runs something, as far as words say so |
//! | `echo x \| wrap show`, `wrap show < x` | it may obey what it reads |
//! | `wrap --json show` | it is not certain which word says what it does |
//! | a program that tools may write, or whose name they may take | another program may run the next time |

use std::ops::Range;
use std::path::PathBuf;

use super::commands::{CommandClass, CommandClasses, example, is_bare, is_plain_name, with};
use crate::calls::command::CommandView;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::program_files::{is_executable, is_script};
use countersign_shell::{Assignment, Commands, Part, Redirection, RedirectionTarget, Stage, Word};

/// Words that say that a program runs what it is given.
const RUNS: &[&str] = &[
    "builtin", "call", "cmd", "command", "daemon", "do", "eval", "exec", "execute", "invoke",
    "run", "runs", "script", "serve", "shell", "source", "spawn", "ssh", "start", "trap", "with",
];

/// Words that say that a program sends something.
const SENDS: &[&str] = &[
    "approve", "deploy", "dispatch", "email", "export", "mail", "merge", "pay", "post", "promote",
    "publish", "push", "release", "send", "share", "submit", "sync", "transfer", "trigger",
    "upload",
];

/// Words that say that a program deletes something.
const DELETES: &[&str] = &[
    "abort",
    "cancel",
    "clean",
    "clear",
    "del",
    "delete",
    "destroy",
    "drop",
    "erase",
    "force",
    "kill",
    "nuke",
    "overwrite",
    "prune",
    "purge",
    "remove",
    "reset",
    "restore",
    "revoke",
    "rm",
    "rollback",
    "stop",
    "terminate",
    "uninstall",
    "wipe",
];

/// Words that say that a program sets what is done later, or fetches code.
const SETS: &[&str] = &[
    "admin",
    "alias",
    "apply",
    "completion",
    "config",
    "configuration",
    "configure",
    "disable",
    "enable",
    "env",
    "extension",
    "extensions",
    "grant",
    "hook",
    "hooks",
    "init",
    "install",
    "link",
    "migrate",
    "plugin",
    "plugins",
    "proxy",
    "set",
    "setup",
    "sudo",
    "trust",
    "unset",
    "upgrade",
];

/// Words that say that a program is about secrets.
const SECRETS: &[&str] = &[
    "auth",
    "credential",
    "credentials",
    "decrypt",
    "key",
    "keys",
    "login",
    "logout",
    "passwd",
    "password",
    "register",
    "secret",
    "secrets",
    "token",
    "tokens",
    "vault",
];

/// The class of a command of a program that is not known; `None` where there is none.
pub(super) fn class(
    examined: &ExaminedCall<'_>,
    view: &CommandView,
    part: &Part,
) -> Option<CommandClasses> {
    let [name, first, rest @ ..] = part.argv() else { return None };
    let is_literal = part.words().iter().all(|word| word.literal().is_some());
    let is_unknown = part.program().is_none() && part.reasons().len() == 1;
    let is_one = is_literal && is_unknown && is_bare(examined, part) && is_program_name(name);
    if !is_one || is_fed(view.commands(), &part.span(), false) {
        return None;
    }
    let file = program(examined, name)?;
    if !is_first_word(first) || !is_harmless(examined, part, first) {
        return None;
    }
    let options = options_of(examined, part, rest)?;
    let (with, command) = (with(&options), format!("{name} {first}"));
    let is = match file.is_empty() {
        false => format!("while `{name}` is `{}`", countersign::show::escape(&file)),
        true => format!("while `{name}` is not among the programs that are installed here"),
    };
    let narrow = CommandClass {
        name: format!("program {} {command}{with}", if file.is_empty() { "-" } else { &file }),
        says: format!("any `{command}`{with} of plain names and files of the workspace, {is}"),
        example: Some(example(&command, &options)),
        never: vec![
            format!("{command} -- PROGRAM"),
            format!("{command} ../FILE"),
            format!("{name} with another word in place of `{first}`"),
        ],
    };
    Some(CommandClasses { narrow, wide: None })
}

/// The options among the words of a command, sorted. `None` where one may do more than that, or an operand may.
pub(super) fn options_of(
    examined: &ExaminedCall<'_>,
    part: &Part,
    words: &[String],
) -> Option<Vec<String>> {
    let mut options = Vec::new();
    for word in words {
        if word.starts_with('-') {
            options.push(option(examined, part, word)?);
        } else if !is_operand(examined, part, word) {
            return None;
        }
    }
    options.sort();
    options.dedup();
    Some(options)
}

/// The file of a program, as a text that is empty where there is no such program; `None` where tools may write it, or put
/// another one of this name in its place, and where no file is looked at.
pub(super) fn program(examined: &ExaminedCall<'_>, name: &str) -> Option<String> {
    let classifier = &examined.engine.classifier;
    if !examined.places().looks() || !classifier.is_installed(name) {
        return None;
    }
    let file = classifier.program_file(name);
    file.map_or(Some(String::new()), |file| file.to_str().map(str::to_owned))
}

/// Whether a word is the name of a program, and not one of the words that only a shell knows.
fn is_program_name(name: &str) -> bool {
    let is_builtin = SHELL_WORDS.contains(&name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !is_builtin && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

/// Words of the shells that the table of programs does not have, besides those after which no text has a class.
const SHELL_WORDS: &[&str] = &[
    "bg",
    "caller",
    "chdir",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "dirs",
    "disown",
    "fg",
    "fignore",
    "getopts",
    "help",
    "history",
    "jobs",
    "let",
    "limit",
    "logout",
    "mapfile",
    "nocorrect",
    "noglob",
    "popd",
    "print",
    "pushd",
    "read",
    "readarray",
    "return",
    "sched",
    "shift",
    "suspend",
    "times",
    "ttyctl",
    "unlimit",
    "vared",
    "wait",
    "whence",
    "where",
    "zcompile",
    "zformat",
    "zparseopts",
];

/// A word that says what the program is to do: letters, and digits and signs between them.
pub(super) fn is_first_word(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    let is_harmless = |piece: &str| !is_never(piece);
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(plain)
        && word.split(['-', '_', ':']).all(is_harmless)
}

fn is_never(word: &str) -> bool {
    let mut known = [RUNS, SENDS, DELETES, SETS, SECRETS].into_iter().flatten();
    known.any(|known| known.eq_ignore_ascii_case(word))
}

/// An option as the class has it: its name. `None` where it may run, send, delete or set something, or where its value is
/// no operand.
fn option(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> Option<String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let letters = name.trim_start_matches('-');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_named = !letters.is_empty() && letters.chars().all(plain);
    let is_harmless = letters.split(['-', '_']).all(|piece| !is_never(piece));
    let is_operand = value.is_none_or(|value| is_operand(examined, part, value));
    (is_named && is_harmless && is_operand).then(|| name.to_owned())
}

/// Whether a word is a plain name, several with commas between them, or a plain file of the workspace.
fn is_operand(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    word.split(',').all(|name| is_file(examined, part, name) || is_name(name))
        && word.split(',').all(|name| is_harmless(examined, part, name))
}

fn is_name(word: &str) -> bool {
    is_plain_name(word) && !word.contains('/') && !may_be_address(word)
}

/// Whether a word names a file of the workspace with its folder: `src/notes.md`, `./notes.md`.
fn is_file(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '@');
    let (folder, _) = word.split_once('/').unwrap_or_default();
    let is_local =
        folder == "." || !folder.is_empty() && !may_be_address(folder.trim_start_matches('.'));
    let is_plain = |it: &PathBuf| examined.engine.classifier.is_plain_file(word, it);
    is_local && word.chars().all(plain) && part.directories().iter().all(is_plain)
}

/// Whether a word without a folder may be the name of a host: with a dot, and not with a number behind the last one, as in
/// a version. A number alone may be one, too.
fn may_be_address(word: &str) -> bool {
    let Some((before, last)) = word.rsplit_once('.') else { return false };
    let has_letters = before.contains(|c: char| c.is_ascii_alphabetic());
    let is_number = !last.is_empty() && last.chars().all(|c| c.is_ascii_digit());
    word.contains('@') || !(has_letters && is_number)
}

/// Folders in which a project has programs of its own, which other programs find by their names.
const INSTALLED: &[&str] = &["node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"];

/// Whether a word is neither the name of a program, nor a script, nor the name of a file without its folder, and does not
/// say that something is run, sent, deleted or set.
pub(super) fn is_harmless(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    let may_run = |directory: &PathBuf| {
        let file = directory.join(word);
        let is_installed = |folder: &&str| directory.join(folder).join(word).exists();
        // A name that is one of a file may be taken for it: for a script, a secret, or what a link leads to.
        let is_there = !word.contains('/') && file.symlink_metadata().is_ok();
        is_there
            || word.contains('/') && is_script(&file)
            || is_executable(&file)
            || INSTALLED.iter().any(is_installed)
    };
    !is_never(word)
        && !examined.engine.classifier.names_program(word)
        && !part.directories().iter().any(may_run)
}

/// Whether the command at this place gets input from the text: from a pipe, or from a redirection around it.
pub(super) fn is_fed(commands: &Commands, span: &Range<usize>, fed: bool) -> bool {
    let feeds = |all: &[Redirection]| all.iter().any(|it| feeds(it.target()));
    commands.pipelines().iter().any(|pipeline| {
        pipeline.stages().iter().enumerate().any(|(at, stage)| {
            let fed = fed || at > 0;
            match stage {
                Stage::Simple(command) => {
                    let values = command.assignments().iter().map(Assignment::value);
                    let mut inner = values.chain(command.words()).flat_map(Word::substitutions);
                    fed && command.span() == *span || inner.any(|it| is_fed(it, span, fed))
                }
                Stage::Subshell { commands, redirections } => {
                    is_fed(commands, span, fed || feeds(redirections))
                }
                Stage::Compound(compound) => {
                    let fed = fed || feeds(compound.redirections());
                    compound.lists().iter().any(|list| is_fed(list, span, fed))
                }
                _ => false,
            }
        })
    })
}

fn feeds(target: &RedirectionTarget) -> bool {
    matches!(
        target,
        RedirectionTarget::Read(_)
            | RedirectionTarget::HereString(_)
            | RedirectionTarget::HereDocument(_)
    )
}
