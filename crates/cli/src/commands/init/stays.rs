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

/// The content of each file or folder in the configuration directory, which a person may have written.
const IN_CONFIG: &[(&str, &str)] = &[
    ("config.toml", "your configuration"),
    ("guard", "rules of guards, and notes about them"),
    ("rules.toml", "your rules"),
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
    /// Those of the configuration directory: `init` did not make them, or a person has edited them since.
    own: Vec<LeftFile>,
    used_by: UsingFiles,
}

impl LeftFiles {
    /// Looks for what is there.
    pub(super) fn look(context: &Context) -> Self {
        let state = in_folder(context.directories.state(), IN_STATE, "a file of this program");
        let own = in_folder(context.directories.config(), IN_CONFIG, "a file that is not known");
        let copies = installations(context).into_iter().flat_map(|it| it.copies());
        let mut copies: Vec<_> = copies.collect();
        copies.sort();
        copies.dedup();
        let copy =
            |path| LeftFile::new(path, "a copy of settings, from `hook install` or `uninstall`");
        let copies = copies.into_iter().map(copy).collect();
        Self { state, copies, own, used_by: used_by(context) }
    }

    /// The files for people: where they are, and the command that removes them; `None` where nothing stays.
    pub(super) fn text(&self, context: &Context) -> Option<String> {
        let all: Vec<_> = self.state.iter().chain(&self.copies).collect();
        if all.is_empty() {
            return self.own_text(context);
        }
        let rows: Vec<_> = all.iter().map(|file| file.text(context)).collect();
        let mut text = format!("These files of the program stay:\n{}", rows.join("\n"));
        let held = match (self.used_by.found.first(), self.used_by.unread.first()) {
            (Some(file), _) => {
                Some(format!("A hook or a guard in {} still uses", shown(file, context)))
            }
            (None, Some(file)) => Some(format!(
                "{} cannot be read, and may start a guard that uses",
                shown(file, context)
            )),
            (None, None) => None,
        };
        if let Some(held) = held {
            text += &format!("\n{held} those of {}.", shown(context.directories.state(), context));
            return Some(text);
        }
        let word = |path: &Path| quoted(&path.display().to_string());
        let mut words: Vec<_> = self.copies.iter().map(|file| word(&file.path)).collect();
        if !self.state.is_empty() {
            words.insert(0, word(context.directories.state()));
        }
        text += &format!("\nThis removes them, for good:\n  rm -r {}", words.join(" "));
        text.extend(self.own_text(context).map(|own| format!("\n{own}")));
        Some(text)
    }

    /// The files of the configuration directory. What removes them stands by itself, as a person may have written them.
    fn own_text(&self, context: &Context) -> Option<String> {
        let rows: Vec<_> = self.own.iter().map(|file| file.text(context)).collect();
        if rows.is_empty() {
            return None;
        }
        let text =
            format!("Your own files stay, and those that you have edited:\n{}", rows.join("\n"));
        // A hook that is there keeps the rules that it decides by.
        Some(match self.used_by.are_none() {
            true => {
                let folder = quoted(&context.directories.config().display().to_string());
                format!("{text}\nThis removes them, too, for good:\n  rm -r {folder}")
            }
            false => text,
        })
    }

    /// The lines for programs.
    pub(super) fn lines(&self) -> impl Iterator<Item = Value> {
        self.state.iter().chain(&self.copies).chain(&self.own).map(LeftFile::line)
    }
}

/// The entries of a folder, sorted, each with its content as far as it is known.
fn in_folder(
    folder: &Path,
    known: &[(&str, &'static str)],
    otherwise: &'static str,
) -> Vec<LeftFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let known = known.iter().find(|(known, _)| name == **known);
        LeftFile::new(entry.path(), known.map_or(otherwise, |(_, what)| *what))
    };
    let mut found: Vec<_> = entries.map(file).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
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
