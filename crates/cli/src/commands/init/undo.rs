//! `countersign init --undo`: each file becomes what it was (rule P6).
//!
//! | the file now | what is done |
//! |---|---|
//! | as it was before | nothing |
//! | as `init` wrote it | the file becomes what it was, to the byte; one that was new is removed, with the folders that were made for it |
//! | edited since | the hook or the guard is removed from it, and the rest stays; other files stay as they are |
//! | gone | nothing |
//! | the copy of this program that entries start | it is removed, unless another entry of this user starts it |
//!
//! It names each change that is not put back, and where the file as it was is kept.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign_cli::config::replace_file;
use countersign_cli::hook::{Client, Installation, editable_text};
use serde_json::json;

use super::init_record::{ChangedFile, FileOwner, InitRecord, digest};
use super::servers;
use super::stays::{LeftFiles, installations, used_by};
use crate::Context;
use crate::accepted::accepted_rules;
use crate::guard_entries::entries;
use crate::output::{CommandError, CommandOutput};
use crate::paths::shown;

/// The result of taking a change back.
struct Undone {
    text: String,
    is_exact: bool,
}

impl Undone {
    fn exact(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_exact: true }
    }

    fn left(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_exact: false }
    }
}

pub(super) fn run(context: &Context) -> Result<CommandOutput, CommandError> {
    let mut record = InitRecord::read(context)?;
    if record.files.is_empty() {
        let mut text = "There is nothing to take back: `init` has changed nothing, or was taken back before. `countersign hook \
                        uninstall CLIENT` removes a hook that was installed by itself"
            .to_owned();
        let stays = LeftFiles::look(context);
        text.extend(stays.text(context).map(|stays| format!(".\n{stays}")));
        return Ok(CommandOutput::of(0, stays.lines().collect()).for_people(text));
    }
    let (mut lines, mut texts, mut is_exact) = (Vec::new(), Vec::new(), true);
    // The last change first. We drop each from the record when it is taken back, so after a crash `--undo`
    // continues with the rest.
    while let Some(file) = record.files.last().cloned() {
        let undone = taken_back(&file, &record, context)?;
        is_exact &= undone.is_exact;
        lines.push(json!({"file": file.path, "exact": undone.is_exact, "what": undone.text}));
        if file.owner != FileOwner::Environment {
            texts.push(format!("{}: {}", shown(&file.path, context), undone.text));
        }
        if undone.is_exact
            && let Some(copy) = &file.before
        {
            removed(&record.copy(copy))?;
        }
        record.files.pop();
        record.save()?;
    }
    let stays = LeftFiles::look(context);
    texts.push(match is_exact {
        true => "Every file that `init` has changed is as it was before.".to_owned(),
        false => "The other files that `init` has changed are as they were before.".to_owned(),
    });
    texts.push(match stays.text(context) {
        Some(text) => text,
        None => "Nothing of the program stays beside itself.".to_owned(),
    });
    lines.extend(stays.lines());
    let status = if is_exact { 0 } else { 3 };
    Ok(CommandOutput::of(status, lines).for_people(texts.join("\n")))
}

fn taken_back(
    file: &ChangedFile,
    record: &InitRecord,
    context: &Context,
) -> Result<Undone, CommandError> {
    if file.owner == FileOwner::Program {
        return program(file, context);
    }
    let failed =
        |error: io::Error| CommandError::Store(format!("{}: {error}", file.path.display()));
    let text = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    let now = text(&file.path)?;
    let before = match &file.before {
        Some(name) => match text(&record.copy(name))? {
            Some(text) => Some(text),
            None => return Ok(Undone::left("not taken back, as the copy of it is gone")),
        },
        None => None,
    };
    if now == before {
        return Ok(Undone::exact("as it was"));
    }
    let is_ours = !file.edited
        && match &file.after {
            Some(after) => now.as_deref().map(|it| digest(it.as_bytes())).as_ref() == Some(after),
            None => true,
        };
    if !is_ours {
        return edited(file, now.is_some(), record, context);
    }
    let undone = match &before {
        Some(before) => {
            replace_file(&file.path, before).map_err(failed)?;
            Undone::exact("as it was")
        }
        None => {
            removed(&file.path)?;
            file.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
            Undone::exact("removed, as it was not there")
        }
    };
    if file.owner == FileOwner::Rules && before.is_none() {
        forget_rules(&file.path, context)?;
    }
    Ok(undone)
}

/// Removes the copy of this program. The entries that `init` has written are gone before it.
fn program(file: &ChangedFile, context: &Context) -> Result<Undone, CommandError> {
    let (starting, unread) = starting(&file.path, context);
    if !starting.is_empty() {
        let text = format!("kept, as it is started by {}", starting.join(" and "));
        return Ok(Undone::left(text));
    }
    if !unread.is_empty() {
        let text = format!("kept, as {} cannot be read, and may start it", unread.join(" and "));
        return Ok(Undone::left(text));
    }
    removed(&file.path)?;
    file.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    let text = "removed, as it was not there. If you have written it into a file of a project, write that entry again";
    Ok(Undone::exact(text))
}

/// The files of this user in which a hook or a guard starts this program, and those that cannot be read and may start it.
fn starting(program: &Path, context: &Context) -> (Vec<String>, Vec<String>) {
    let hooks = installations(context).into_iter();
    let hooks =
        hooks.filter(|it| it.installed_program().is_ok_and(|it| it.as_deref() == Some(program)));
    let hooks = hooks.map(|it| it.path().to_owned());
    let entries = entries(context.directories.home());
    let guards = entries.found.into_iter();
    let guards = guards.filter(|it| Path::new(&it.program) == program).map(|it| it.file);
    let files: BTreeSet<_> = hooks.chain(guards).collect();
    let written = |file: &PathBuf| shown(file, context);
    (files.iter().map(written).collect(), entries.unread.iter().map(written).collect())
}

/// The rules are gone because a person wants it, so the next hook must not wait for them. Where no hook is left, nothing
/// decides by them, and rules that `init` writes later are the first ones again.
fn forget_rules(path: &Path, context: &Context) -> Result<(), CommandError> {
    let accepted = accepted_rules(&context.directories);
    let failed = |error: io::Error| CommandError::Store(error.to_string());
    match accepted.accepted(path).map_err(failed)? {
        Some(_) if used_by(context).are_none() => accepted.forget(path).map_err(failed),
        Some(_) => accepted.accept(path, None).map_err(failed),
        None => Ok(()),
    }
}

/// Takes back what can be, of a file that was edited since.
fn edited(
    file: &ChangedFile,
    is_there: bool,
    record: &InitRecord,
    context: &Context,
) -> Result<Undone, CommandError> {
    let kept = match &file.before {
        Some(copy) => {
            let copy = shown(&record.copy(copy), context);
            format!("; the file as it was before `init` is {copy}")
        }
        None => "; there was no such file before `init`".to_owned(),
    };
    if !is_there {
        return Ok(Undone::left(format!("not put back, as it was removed since{kept}")));
    }
    let what = match &file.owner {
        FileOwner::Hook(client) => {
            let client: Client = client.parse().map_err(CommandError::Store)?;
            // A copy of the file with the hook would stay for nothing.
            let done = Installation::at(client, &file.path).without_copy().uninstall();
            done.map_err(|error| CommandError::Store(error.to_string()))?;
            "it was edited since, so that only the hook was removed"
        }
        FileOwner::Servers(key) => match without_guards(&file.path, key)? {
            Some(text) => {
                replace_file(&file.path, &text)
                    .map_err(|error| CommandError::Store(error.to_string()))?;
                "it was edited since, so that only the guards were removed"
            }
            None => "it was edited since, and has no guard any more",
        },
        FileOwner::Rules
        | FileOwner::Configuration
        | FileOwner::Environment
        | FileOwner::Program => "not taken back, as it was edited since",
    };
    Ok(Undone::left(format!("{what}{kept}")))
}

/// The configuration of an MCP client without guards; `None` where there is none.
fn without_guards(path: &Path, key: &str) -> Result<Option<String>, CommandError> {
    let text = editable_text(path).map_err(|error| CommandError::Store(error.to_string()))?;
    Ok(text.and_then(|text| servers::unguarded(&text, key)))
}

fn removed(path: &Path) -> Result<(), CommandError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CommandError::Store(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
