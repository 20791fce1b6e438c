//! Notes about the directories in which a session's commands may have left [the client's
//! shell](crate::hook::judging::kept_shell).
//!
//! Each directory is a file of its own, so that calls at the same moment lose none. A note that cannot be written is a
//! denial: the command would run, and no later one would be judged where it runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::allowed::AllowedCalls;
use super::key;
use crate::config::private;
use crate::hook::digest::digest;
use crate::hook::judging::kept_shell::{ShellDirectory, left_in};
use crate::hook::payload::HookCall;
use countersign_shell::bounded_text;

/// The number of directories in which a call is judged. If there are more, the shell may be anywhere.
const MAX_DIRECTORIES: usize = 32;

/// The length of a note in bytes: a path.
const MAX_NOTE: u64 = 1 << 13;

/// The beginning of the names of notes about directories.
const NOTE: &str = "directory-";

/// Notes the directories in which a call that may run leaves the shell: it begins in a directory, with a command. The error is the
/// reason of a denial.
pub(crate) fn note_directories(
    notes: &AllowedCalls,
    call: &HookCall,
    begins: (&Path, &str),
) -> Result<(), String> {
    let Some(folder) = folder_of(notes, call) else { return Ok(()) };
    for directory in left_in(call, &directories_left(notes, call), begins) {
        let text = json!(directory).to_string();
        let note = folder.join(format!("{NOTE}{}", digest(json!([text]))));
        private::write(&note, &text).map_err(|error| {
            format!("it cannot be noted in which directory the command leaves the shell: {error}")
        })?;
    }
    Ok(())
}

/// The directories in which earlier commands of the session may have left the shell, beside that of the call.
pub(crate) fn directories_left(notes: &AllowedCalls, call: &HookCall) -> Vec<ShellDirectory> {
    let entries = match folder_of(notes, call).map(fs::read_dir) {
        Some(Ok(entries)) => Some(entries),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return vec![ShellDirectory::Unknown];
        }
        None | Some(Err(_)) => None,
    };
    let files = entries.into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|it| it.starts_with(NOTE) && !it.contains('.'))
    });
    let directories = files.map(|note| {
        let text = bounded_text(&note.path(), MAX_NOTE).ok().flatten().unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(ShellDirectory::Unknown)
    });
    let elsewhere = |it: &ShellDirectory| it.path() != Some(&*call.directory);
    let mut found: Vec<_> = directories
        .filter_map(ShellDirectory::now)
        .filter(elsewhere)
        .take(MAX_DIRECTORIES + 1)
        .collect();
    found.sort();
    found.dedup();
    if found.len() > MAX_DIRECTORIES { vec![ShellDirectory::Unknown] } else { found }
}

/// The folder with the notes of the call's session.
fn folder_of(notes: &AllowedCalls, call: &HookCall) -> Option<PathBuf> {
    let session = call.session.as_deref()?;
    Some(notes.folder().join(key::run(call.client, session)))
}
