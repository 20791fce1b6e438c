//! The files that stay on the machine after `init --undo` (rule P6): those that the program has made in use, and not `init`.
//!
//! A person may want to look at asks, grants and the journal afterwards. So we do not remove them: we name them, with the
//! command that does.

use std::fs;
use std::path::{Path, PathBuf};

use countersign_cli::hook::{Client, HookFiles, Installation};
use serde_json::{Value, json};

use crate::Context;
use crate::guard_entries::entries;
use crate::paths::shown;
use crate::used_store::quoted;

/// The content of each file or folder in the state directory.
const IN_STATE: &[(&str, &str)] = &[
    ("allowed", "notes of calls that may run"),
    ("asks.db", "asks and grants"),
    ("asks.db-shm", "a part of them"),
    ("asks.db-wal", "a part of them"),
    ("bin", "a copy of this program"),
    ("environment", "what the environment had"),
    ("guard.token", "a secret"),
    ("hook-files", "where hooks were installed"),
    ("inbox.secret", "a secret"),
    ("inbox.url", "the address of the inbox"),
    ("init", "files as they were before `init`"),
    ("journal.jsonl", "decisions, with the arguments of calls"),
    ("rules", "which rules were accepted"),
    ("seal.key", "a secret"),
    ("webhook.secret", "a secret"),
];

/// One thing that stays.
struct LeftFile {
    path: PathBuf,
    what: &'static str,
    bytes: u64,
}

impl LeftFile {
    fn new(path: PathBuf, what: &'static str) -> Self {
        Self { bytes: size(&path), path, what }
    }

    fn text(&self, context: &Context) -> String {
        format!("  {}: {}, {}", shown(&self.path, context), self.what, written(self.bytes))
    }

    fn line(&self) -> Value {
        json!({"stays": self.path, "what": self.what, "bytes": self.bytes})
    }
}

/// All that stays.
pub(super) struct LeftFiles {
    state: Vec<LeftFile>,
    copies: Vec<LeftFile>,
    used_by: UsingFiles,
}

impl LeftFiles {
    /// Looks for what is there.
    pub(super) fn look(context: &Context) -> Self {
        let entries = fs::read_dir(context.directories.state()).into_iter().flatten().flatten();
        let state = entries.map(|entry| {
            let name = entry.file_name();
            let known = IN_STATE.iter().find(|(known, _)| name == **known);
            LeftFile::new(entry.path(), known.map_or("a file of this program", |(_, what)| *what))
        });
        let mut state: Vec<_> = state.collect();
        state.sort_by(|one, other| one.path.cmp(&other.path));
        let copies = installations(context).into_iter().flat_map(|it| it.copies());
        let mut copies: Vec<_> = copies.collect();
        copies.sort();
        copies.dedup();
        let copy =
            |path| LeftFile::new(path, "a copy of settings, from `hook install` or `uninstall`");
        Self { state, copies: copies.into_iter().map(copy).collect(), used_by: used_by(context) }
    }

    /// The files for people: where they are, and the command that removes them; `None` where nothing stays.
    pub(super) fn text(&self, context: &Context) -> Option<String> {
        let all: Vec<_> = self.state.iter().chain(&self.copies).collect();
        if all.is_empty() {
            return None;
        }
        let rows: Vec<_> = all.iter().map(|file| file.text(context)).collect();
        let mut text = format!("These files of the program stay:\n{}", rows.join("\n"));
        if let [first, ..] = self.used_by.found.as_slice() {
            text += &format!(
                "\nA hook or a guard in {} still uses those of {}.",
                shown(first, context),
                shown(context.directories.state(), context)
            );
            return Some(text);
        }
        if let [first, ..] = self.used_by.unread.as_slice() {
            text += &format!(
                "\n{} cannot be read, and may start a guard that uses those of {}.",
                shown(first, context),
                shown(context.directories.state(), context)
            );
            return Some(text);
        }
        let word = |path: &Path| quoted(&path.display().to_string());
        let mut words: Vec<_> = self.copies.iter().map(|file| word(&file.path)).collect();
        if !self.state.is_empty() {
            words.insert(0, word(context.directories.state()));
        }
        text += &format!("\nThis removes them, for good:\n  rm -r {}", words.join(" "));
        Some(text)
    }

    /// The lines for programs.
    pub(super) fn lines(&self) -> impl Iterator<Item = Value> {
        self.state.iter().chain(&self.copies).map(LeftFile::line)
    }
}

/// Every place of this user in which a hook may be.
pub(super) fn installations(context: &Context) -> Vec<Installation> {
    let (home, state) = (context.directories.home(), context.directories.state());
    let of = |client: &Client| {
        let client = *client;
        let named = HookFiles::of(client, state).read().into_iter();
        let named = named.map(move |file| Installation::at(client, file));
        let usual =
            [Installation::of_user(client, home), Installation::of_environment(client, home)];
        usual.into_iter().chain(named)
    };
    Client::ALL.iter().flat_map(of).collect()
}

/// The files of this user by which a client may start this program.
pub(super) struct UsingFiles {
    /// Those that have a hook or a guard.
    found: Vec<PathBuf>,
    /// Those that cannot be read, and may have a guard.
    unread: Vec<PathBuf>,
}

impl UsingFiles {
    pub(super) fn are_none(&self) -> bool {
        self.found.is_empty() && self.unread.is_empty()
    }
}

/// Looks for the files by which a client may start this program.
pub(super) fn used_by(context: &Context) -> UsingFiles {
    let hooks = installations(context).into_iter();
    // Nothing can start a hook that a file has which cannot be read, nor can its client.
    let hooks = hooks.filter(|it| it.has_entry().unwrap_or(false));
    let hooks = hooks.map(|it| it.path().to_owned());
    let entries = entries(context.directories.home());
    let guards = entries.found.into_iter().map(|it| it.file);
    let mut found: Vec<_> = hooks.chain(guards).collect();
    found.sort();
    found.dedup();
    UsingFiles { found, unread: entries.unread }
}

/// The bytes of a file, or of all files in a folder. No link is followed.
fn size(path: &Path) -> u64 {
    let Ok(about) = fs::symlink_metadata(path) else { return 0 };
    if !about.is_dir() {
        return about.len();
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    inside.map(|entry| size(&entry.path())).sum()
}

/// A size for people.
fn written(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
