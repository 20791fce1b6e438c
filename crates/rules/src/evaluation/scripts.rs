//! The files whose content decides what a command does, to which the questions about it are bound (rule R6).
//!
//! `python3 x.py` says nothing about what happens, and `psql -f x.sql` as little: the file does. So an approval, also one in
//! advance, is for the file as it was: after a change a person is asked again.
//!
//! | command | bound to |
//! |---|---|
//! | `python3 x.py data.csv`, `./x.sh`, `sh < x.sh`, `cat x.sh \| bash` | the scripts that it names, and no data |
//! | `python3 -m pkg.tool` | `pkg/tool.py` or `pkg/tool/__main__.py` |
//! | `npm run deploy`, `make x`, `make -C sub x` | the definitions of builds, such as `package.json` and `Makefile`, in the folders that it works in and names, and in those above them in the workspace |
//! | `cargo test && git push` | the same, for the first command |
//! | `psql -f x.sql`, `ssh host < x.sh`, `curl -d @x.json`, `scp x.txt host:` | the files that it names: it runs them, or sends them |
//! | `git commit`, `rm x.py`, `cat x.py` | nothing: it names no file, only changes it, or is harmless whatever the file holds |
//!
//! Nothing that a script reads, imports or starts is looked at, and nothing below a folder that a command names. `eval` and
//! `trap` have no answer in advance. A program that is not known may run every script that it names. In a workspace whose
//! files are not looked at nothing is bound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::calls::command::CommandView;
use crate::calls::git_words::GitWords;
use crate::matching::seen::Seen;
use countersign_shell::program_files::{self, NamedFiles, digest_of, words};
use countersign_shell::{Effect, Part};

/// The largest file that a question is bound to, in bytes. It is read with each question.
pub(super) const MAX_SIZE: u64 = 8 << 20;

/// To how many files questions are bound.
const MAX_FILES: usize = 32;

/// How many words of the commands are looked at.
const MAX_WORDS: usize = 1000;

/// Commands of a shell that run a text which is not looked at here, and with it scripts that the text names.
const EVALUATORS: &[&str] = &["eval", "trap"];

/// The files whose content decides what the commands do, each with its digest. `None` where one cannot be read or told, or
/// is too large, so that nothing can be bound to it.
pub(crate) fn contents(
    seen: &Seen<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
) -> Option<Vec<(String, String)>> {
    if !seen.places().looks() {
        return Some(Vec::new());
    }
    let mut files = BTreeSet::new();
    let parts = || views.iter().flat_map(|(_, view)| view.parts());
    let is_open =
        |part: &Part| EVALUATORS.contains(&part.written_program()) || part.argv().len() > MAX_WORDS;
    if parts().any(is_open) {
        return None;
    }
    if parts().any(may_run) {
        for part in parts() {
            files.extend(named(part, seen).scripts(part));
        }
        for part in parts().filter(|part| may_run(part)) {
            definitions(part, seen, &mut files)?;
        }
    }
    for part in parts().filter(|part| !part.reasons().is_empty() && !only_changes(part)) {
        let scripts = named(part, seen).scripts(part);
        files.extend(if scripts.is_empty() { taken(part, seen) } else { scripts });
    }
    if files.len() > MAX_FILES {
        return None;
    }
    let root = seen.places().root();
    let name = |file: &Path| file.strip_prefix(root).unwrap_or(file).display().to_string();
    let pin = |file: &PathBuf| {
        Some((format!("content of {}", name(file)), digest_of(file, MAX_SIZE).ok()??))
    };
    let pins: Option<BTreeMap<_, _>> = files.iter().map(pin).collect();
    Some(pins?.into_iter().collect())
}

/// Returns `true` if a command runs code that it names or that the workspace holds, or is not known.
fn may_run(part: &Part) -> bool {
    let runs = |effect: &Effect| matches!(effect, Effect::Runs(_) | Effect::RunsWorkspace);
    let is_unknown = part.effects().is_empty() && !part.reasons().is_empty();
    is_unknown || is_interpreter(part) || part.effects().iter().any(runs)
}

/// Programs that delete the files that they are given, or say who may use them, whatever these hold.
const CHANGERS: &[&str] =
    &["chgrp", "chmod", "chown", "rm", "rmdir", "touch", "truncate", "unlink"];

/// Commands of git about files of the working tree as they are then.
const OF_WORKING_TREE: &[&str] =
    &["add", "checkout", "mv", "reset", "restore", "rm", "stage", "stash"];

/// Returns `true` if a command does to the files that it names what it says, whatever they hold.
fn only_changes(part: &Part) -> bool {
    let sub = || GitWords::of(part).sub.is_some_and(|sub| OF_WORKING_TREE.contains(&sub));
    let name = part.program_name();
    CHANGERS.contains(&name) || (name == "git" && sub())
}

/// The files that a command names, but for those that it writes: it runs what they hold, or takes it elsewhere.
fn taken(part: &Part, seen: &Seen<'_>) -> BTreeSet<PathBuf> {
    let named = named(part, seen);
    // Of `-fx.sql`, `-d @x.json` and `--form a=@x.json` the file is a part of the word.
    let names = words(part).into_iter().skip(1).flat_map(|word| {
        let attached = word.strip_prefix('-').and_then(|option| option.get(1..));
        [Some(word), attached, word.split_once('@').map(|(_, file)| file)]
    });
    let files = names.flatten().flat_map(|name| named.places(name).collect::<Vec<_>>());
    let is_written = |file: &PathBuf| part.effects().contains(&Effect::Writes(file.clone()));
    files.filter(|file| file.is_file() && !is_written(file)).collect()
}

/// Returns `true` if the program of a command runs every file that it is given.
pub(crate) fn is_interpreter(part: &Part) -> bool {
    program_files::is_interpreter(part.written_program())
}

/// Where the words of a command name files: in each directory that it may start in.
fn named<'p>(part: &'p Part, seen: &'p Seen<'_>) -> NamedFiles<'p> {
    NamedFiles { directories: part.directories(), home: seen.places().home() }
}

/// Adds the definitions of builds in the folders that a command works in and names, and above them in the workspace.
/// `None` for too many folders.
fn definitions(part: &Part, seen: &Seen<'_>, files: &mut BTreeSet<PathBuf>) -> Option<()> {
    let root = seen.places().root();
    let names = words(part).into_iter().skip(1);
    let named = named(part, seen);
    let folders = names.flat_map(|word| named.places(word)).filter(|it| it.is_dir());
    let folders: BTreeSet<PathBuf> = folders.chain(part.directories().iter().cloned()).collect();
    let inside = |folder: &&Path| folder.starts_with(root);
    let all: BTreeSet<&Path> =
        folders.iter().flat_map(|it| it.ancestors().take_while(inside).chain([&**it])).collect();
    if all.len() > MAX_FILES {
        return None;
    }
    for folder in all {
        files.extend(seen.engine.classifier.build_definitions(folder));
    }
    Some(())
}
