//! The judgement of scripts of the workspace: which of them are a build, as its tests are.
//!
//! `./scripts/test.sh` and `python3 scripts/check.py` do what the file says, which is not read. A script counts as a build where
//! people have committed it, and call it by an everyday name:
//!
//! | demand | or else |
//! |---|---|
//! | its bytes are those of the index and of `HEAD` of the workspace's repository, and no link leads to it | a tool may have written it |
//! | it has a name that `just` may run as well, such as `check`, or one that begins with such a word: `test_all` | `deploy.sh` is committed, too |
//! | it is written for the program that runs it, by its ending or its first line | `bash build.md` runs the blocks of a page |
//! | only options that the table knows stand in front of it (`scripts:`), and only programs that keep the directory (`timeout`) | `node --require ./x.js`, `pnpm -r exec ./test.sh` |
//! | no variable in front of it names places of code | `PYTHONPATH=x` |
//! | its operands are plain files of the workspace that are no scripts, plain names that no program has and that say nothing of deleting or sending, and options of every day | it may run them: `in_docker.sh rm -r src` |
//! | it gets no input | it may run that |
//! | nothing else in the text may write | `git checkout x && ./test.sh`, `for …; do ./test.sh; cp y test.sh; done` |
//!
//! What a script loads is not looked at: like the tests of the workspace it runs whatever lies there.

use std::cell::Cell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::judgement::{Effect, Part, Reason, ReasonKind};
use super::scripts;
use crate::places::committed::is_committed;
use crate::places::paths::{PathClass, is_build_definition};
use crate::places::script_files::{is_script, without_version};
use crate::preset::ClassifierSettings;
use crate::syntax::commands::Word;
use crate::table::{ProgramEntry, Programs, is_known_word, parts};
use countersign::decision::ToolDecision;

/// How many scripts of one text are compared with what was committed.
pub(super) const MAX_SCRIPTS: usize = 16;

/// Tasks of `just` that are no names of an everyday script: they send something out, write what people maintain, or say
/// nothing.
const NOT_EVERYDAY: &[&str] = &["release", "all", "ci", "default", "generate", "clean"];

/// Words that may begin the name of an everyday script, before `-` or `_`.
const BEGINNINGS: &[&str] = &["test", "lint", "check", "build", "fmt", "format"];

/// Words of names and operands by which a script may delete, send, install, or work elsewhere.
const FAR: &[&str] = &[
    "clean",
    "db",
    "delete",
    "destroy",
    "disk",
    "drive",
    "drop",
    "gh",
    "host",
    "in",
    "install",
    "kill",
    "live",
    "notify",
    "nuke",
    "origin",
    "out",
    "pages",
    "prod",
    "production",
    "prune",
    "purge",
    "remote",
    "remove",
    "reset",
    "rollback",
    "rollout",
    "s3",
    "seed",
    "send",
    "ship",
    "sign",
    "staging",
    "submit",
    "sync",
    "tag",
    "teardown",
    "uninstall",
    "upstream",
    "wipe",
];

/// Options that a script of every day may have. Behind another one a word may be code, a program or a place.
const OPTIONS: &[&str] = &[
    "a",
    "all",
    "bail",
    "bench",
    "check",
    "ci",
    "color",
    "coverage",
    "debug",
    "doc",
    "docs",
    "e2e",
    "f",
    "fail-fast",
    "fast",
    "fix",
    "full",
    "h",
    "headless",
    "help",
    "integration",
    "k",
    "lint",
    "n",
    "no-color",
    "no-coverage",
    "no-fail-fast",
    "offline",
    "p",
    "parallel",
    "q",
    "quick",
    "quiet",
    "release",
    "s",
    "serial",
    "short",
    "slow",
    "strict",
    "t",
    "test",
    "tests",
    "unit",
    "v",
    "verbose",
    "version",
    "vv",
    "w",
    "watch",
    "workspace",
];

/// Programs behind which a script is looked for where the command begins, and no other words are added.
const KEEPERS: &[&str] = &[
    "caffeinate",
    "command",
    "env",
    "gtime",
    "ionice",
    "nice",
    "nohup",
    "stdbuf",
    "time",
    "timeout",
];

/// Which first lines and endings the scripts of an interpreter have: a part of `#!/usr/bin/env python3`, and `.py`.
const LANGUAGES: &[(&[&str], &str, &[&str])] = &[
    (&["ash", "bash", "dash", "ksh", "sh", "zsh"], "sh", &["bash", "sh", "zsh"]),
    (&["pypy", "python"], "python", &["py"]),
    (&["bun", "deno", "node", "nodejs", "tsx"], "node", &["cjs", "js", "mjs", "mts", "ts"]),
];

/// Where a command runs, and what is known there.
pub(super) struct ScriptPlaces<'p> {
    pub(super) settings: &'p ClassifierSettings,
    /// The directories in which the command may run.
    pub(super) here: &'p [PathBuf],
    /// How many scripts of the text may still be compared.
    pub(super) left: &'p Cell<usize>,
    /// The program that runs the command.
    pub(super) wrapped_by: Option<&'p str>,
}

impl ScriptPlaces<'_> {
    /// Returns `true` if the first of these words leads to a script with an everyday name that is as it was committed, from
    /// each directory in which the command may run, and if it may be given the others. `interpreter` runs it, or else its own
    /// first line says what does.
    pub(super) fn is_everyday_call(&self, interpreter: Option<&str>, words: &[Word]) -> bool {
        let Some((script, operands)) = words.split_first() else { return false };
        self.wrapped_by.is_none_or(|name| KEEPERS.contains(&name))
            && operands.iter().all(|word| self.is_harmless_operand(word))
            && self.is_everyday_script(interpreter, script)
    }

    fn is_everyday_script(&self, interpreter: Option<&str>, script: &Word) -> bool {
        let workspace = &self.settings.workspace;
        let text = script.literal().filter(|text| !script.found && !text.starts_with(['~', '-']));
        let (Some(text), true) = (text, workspace.looks()) else { return false };
        let is_one = |here: &PathBuf| {
            let Some([written, resolved]) = workspace.places(text, here) else { return false };
            written == resolved
                && workspace.place(&written) == PathClass::Inside
                && is_everyday(&self.settings.programs, &written)
                && is_written_for(interpreter, &written)
                && self.may_compare()
                && is_committed(&written, workspace)
        };
        self.here.iter().all(is_one)
    }

    /// Counts one more script that is compared with what was committed. Returns `false` if there are too many.
    fn may_compare(&self) -> bool {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Returns `true` if a script may be given a word: an option that is no way to name code, a plain file of the workspace,
    /// or a plain name that is not the name of a program.
    fn is_harmless_operand(&self, word: &Word) -> bool {
        let Some(text) = word.literal().filter(|_| !word.found) else { return false };
        if let Some(option) = text.strip_prefix('-') {
            return is_harmless_option(option);
        }
        let workspace = &self.settings.workspace;
        let plain = |found: &PathBuf| {
            workspace.place(found) == PathClass::Inside && !is_build_definition(found)
        };
        let places = self.here.iter().map(|here| workspace.places(text, here));
        let Some(places) = places.collect::<Option<Vec<_>>>() else { return false };
        let is_data = |found: &PathBuf| found.is_file() && !is_script(found);
        let is_file = text.split('/').all(|part| scripts::name(part).is_ok())
            && places.iter().flatten().all(is_data);
        let is_name = !text.is_empty()
            && !text.contains('.')
            && scripts::argument(text).is_ok()
            && !is_far(text)
            && self.settings.programs.get(text).is_none()
            && !self.settings.names_program(text);
        places.iter().flatten().all(plain) && (is_file || is_name)
    }
}

/// Asks about each script that was taken for a build, and each command whose files were looked at before it reads them, where
/// another command of the text may write: before it, beside it in a pipe, or behind it in a loop.
pub(super) fn ask_about_changes(parts: &mut [Part]) {
    let writers = parts.iter().filter(|part| may_write(part)).count();
    for part in parts.iter_mut() {
        let Some(why) = part.if_changed else { continue };
        if writers > usize::from(may_write(part)) {
            part.reasons.push(Reason {
                decision: ToolDecision::Ask,
                every_time: false,
                kind: ReasonKind::Effect,
                text: why.to_owned(),
            });
        }
    }
}

/// Returns `true` if a script may be given an option, of which the dash is left out.
fn is_harmless_option(option: &str) -> bool {
    let name = option.strip_prefix('-').unwrap_or(option);
    let is_long = name.len() < option.len();
    OPTIONS.contains(&name) && (is_long || name.len() <= 2)
}

/// Returns `true` if a name says that something is deleted, sent or done elsewhere: `test_reset_db`, `check-in`.
fn is_far(name: &str) -> bool {
    parts(&name.to_ascii_lowercase()).any(|part| FAR.contains(&part))
}

/// Returns `true` if a script is one for the program that runs it: by its ending, or by its first line, which a script that is
/// started by itself has.
fn is_written_for(interpreter: Option<&str>, script: &Path) -> bool {
    let first = first_line(script).unwrap_or_default();
    let Some(interpreter) = interpreter.map(without_version) else {
        return first.starts_with("#!");
    };
    let ending = script.extension().and_then(|ending| ending.to_str());
    let fits = |(names, line, endings): &(&[&str], &str, &[&str])| {
        names.contains(&interpreter)
            && match ending {
                Some(ending) => endings.contains(&ending),
                None => first.starts_with("#!") && first.contains(line),
            }
    };
    LANGUAGES.iter().any(fits)
}

/// The beginning of the first line of a file.
fn first_line(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(128).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().next().map(str::to_owned)
}

/// Returns `true` if a command writes files, or does what is not known.
fn may_write(part: &Part) -> bool {
    part.effects.iter().any(|it| matches!(it, Effect::Writes(_) | Effect::Other(_)))
        || part.reasons.iter().any(|reason| !reason.is_about_reach())
}

/// The words of a script that an interpreter runs, with its operands. `None` where another option than those that its entry
/// knows stands in front, and where the word may be the name of something else than a file, such as a sub-command.
pub(super) fn script_words<'w>(entry: &ProgramEntry, args: &'w [Word]) -> Option<&'w [Word]> {
    let known = entry.options_of_scripts()?;
    let is_known =
        |word: &&Word| word.literal().is_some_and(|text| known.iter().any(|option| option == text));
    let words = args.get(args.iter().take_while(is_known).count()..)?;
    words.first().filter(|script| script.text.contains(['/', '.'])).map(|_| words)
}

/// Returns `true` if people call a script by such a name for everyday work that stays in the workspace.
fn is_everyday(programs: &Programs, script: &Path) -> bool {
    let Some(name) = script.file_stem().and_then(|name| name.to_str()) else { return false };
    let tasks = programs.get("just").map(ProgramEntry::tasks).unwrap_or_default();
    let continued = |word: &str| [format!("{word}-*"), format!("{word}_*")];
    let continued: Vec<String> = BEGINNINGS.iter().copied().flat_map(continued).collect();
    (is_known_word(tasks, name) && !NOT_EVERYDAY.contains(&name) || is_known_word(&continued, name))
        && scripts::argument(name).is_ok()
        && !is_far(name)
        && !name.contains('.')
}
