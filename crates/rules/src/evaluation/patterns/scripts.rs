//! The class of a script of the workspace: this script, with this content, and operands that are plain names or files.
//!
//! The digest of the script is in the name of the class, so that another content is another class. There is none where another
//! command of the text may change the script before it runs, or where its first line names a file of the workspace. What
//! the script imports or starts is not looked at, as with an approval of exactly one call.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::commands::{CommandClass, CommandClasses, example, is_bare, with};
use super::unknown::{is_fed, is_first_word, is_harmless, options_of, program};
use crate::calls::command::CommandView;
use crate::evaluation::bound_files::MAX_SIZE;
use crate::floor::only_reads;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::program_files::{digest_of, without_version};
use countersign_shell::{Part, inside, lexically_normal};

/// Programs whose first operand is the script that they run, whatever follows.
const RUNNERS: &[&str] = &[
    "Rscript", "bash", "bun", "dash", "ksh", "lua", "node", "perl", "php", "pypy", "python",
    "ruby", "sh", "tsx", "zsh",
];

/// The class of a command that runs a script of the workspace; `None` where there is none.
pub(super) fn class(
    examined: &ExaminedCall<'_>,
    view: &CommandView,
    part: &Part,
) -> Option<CommandClasses> {
    let is_literal = part.words().iter().all(|word| word.literal().is_some());
    if !is_literal || part.reasons().len() != 1 || !is_bare(examined, part) {
        return None;
    }
    if is_fed(view.commands(), &part.span(), false) || !examined.places().looks() {
        return None;
    }
    let (runner, script, rest) = match part.argv() {
        [script, rest @ ..] if script.contains('/') => (None, script, rest),
        // A word without a folder or an ending may be a command of the program: `bun run`.
        [runner, script, rest @ ..]
            if RUNNERS.contains(&without_version(runner)) && script.contains(['/', '.']) =>
        {
            (Some(runner), script, rest)
        }
        _ => return None,
    };
    let [directory] = part.directories() else { return None };
    if script.starts_with('-') || !examined.engine.classifier.is_plain_file(script, directory) {
        return None;
    }
    let file = directory.join(script);
    let is_other = |it: &&Part| it.is_inner() || it.span() != part.span();
    let is_changed = view.parts().iter().filter(is_other).any(|it| !only_reads(it));
    if is_changed || runner.is_none() && !begins_plainly(&file) {
        return None;
    }
    let digest = digest_of(&file, MAX_SIZE).ok()??;
    let found = match runner {
        Some(runner) => program(examined, runner)?,
        None => String::new(),
    };
    let (first, rest) = match rest {
        [first, rest @ ..] if is_first_word(first) => {
            is_harmless(examined, part, first).then_some((format!(" {first}"), rest))?
        }
        rest => (String::new(), rest),
    };
    let options = options_of(examined, part, rest)?;
    let place = lexically_normal(&file);
    let place = inside(&place, examined.places().root())?.to_str()?.to_owned();
    let runs = runner.map_or(String::new(), |runner| format!("{runner} "));
    let (with, command) = (with(&options), format!("{runs}{place}{first}"));
    let narrow = CommandClass {
        name: format!("script {found} {command}{with} {digest}"),
        says: format!(
            "any `{command}`{with} of plain names and files of the workspace, while `{place}` is as it is now"
        ),
        example: Some(example(&command, &options)),
        never: vec![format!("{command}, once `{place}` has changed"), format!("{command} ../FILE")],
    };
    Some(CommandClasses { narrow, wide: None })
}

/// Returns `true` if the first line of a script, if it names a program, names one that is found outside of the workspace, without
/// options: `#!/bin/sh`, `#!/usr/bin/env python3`.
fn begins_plainly(file: &Path) -> bool {
    let mut start = [0; 128];
    let read = File::open(file).and_then(|mut it| it.read(&mut start)).unwrap_or_default();
    let Some(line) = start.get(..read).and_then(|it| it.strip_prefix(b"#!")) else { return true };
    let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or(line));
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_system = |it: &str| ["/bin/", "/usr/bin/"].iter().any(|folder| it.starts_with(folder));
    match words.as_slice() {
        [program] => is_system(program),
        ["/usr/bin/env", name] => RUNNERS.contains(&without_version(name)),
        _ => false,
    }
}
