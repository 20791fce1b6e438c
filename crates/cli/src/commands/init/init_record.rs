//! The record of what `init` has changed, with each file as it was before.
//!
//! We write the record before we change a file. If the program dies in between, the record says what may have been
//! changed, and has the text that was there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign::args::hex;
use countersign_cli::config::write_private;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Context;
use crate::output::CommandError;

/// The owner of a file, which says how a change is taken back where the file was edited since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileOwner {
    /// The rules of this user.
    Rules,
    /// The configuration of this program.
    Configuration,
    /// The record of the environment, which belongs to the hook of a client.
    Environment,
    /// The copy of this program that entries start.
    Program,
    /// The settings of the client of this name.
    Hook(String),
    /// The configuration of an MCP client, with the key of its servers.
    Servers(String),
}

/// One file that was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ChangedFile {
    pub(super) path: PathBuf,
    pub(super) owner: FileOwner,
    /// The name of the copy of the file as it was; `None` where there was no file.
    pub(super) before: Option<String>,
    /// The digest of what was written; `None` where only this program writes the file.
    pub(super) after: Option<String>,
    /// `true` if the file was edited between two runs of `init`.
    #[serde(default)]
    pub(super) edited: bool,
    /// The folders that were made for the file, the outermost first.
    #[serde(default)]
    pub(super) folders: Vec<PathBuf>,
}

/// All files that were changed, in that order.
pub(super) struct InitRecord {
    folder: PathBuf,
    pub(super) files: Vec<ChangedFile>,
}

pub(super) fn digest(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

impl InitRecord {
    /// The record of this user, which is empty where nothing was changed.
    pub(super) fn read(context: &Context) -> Result<Self, CommandError> {
        let folder = context.directories.state().join("init");
        let file = folder.join("changes.json");
        let files = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let problem = format!(
                    "{}: {error}: the copies beside it are the files as they were",
                    file.display()
                );
                CommandError::Store(problem)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(CommandError::Store(format!("{}: {error}", file.display()))),
        };
        Ok(Self { folder, files })
    }

    /// The copy of a file as it was.
    pub(super) fn copy(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Records that a file is about to be changed.
    pub(super) fn begin(
        &mut self,
        path: &Path,
        owner: FileOwner,
        after: Option<&str>,
    ) -> Result<(), CommandError> {
        let now = match fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(CommandError::Store(format!("{}: {error}", path.display()))),
        };
        let after = after.map(|text| digest(text.as_bytes()));
        if let Some(known) = self.files.iter_mut().find(|it| it.path == path) {
            // What was there before the first run is what `--undo` restores.
            let is_ours = known.after.is_none() || now.as_deref().map(digest) == known.after;
            known.edited |= !is_ours;
            known.after = after;
            return self.save();
        }
        let before = now.map(|bytes| (format!("{}.before", uuid::Uuid::now_v7()), bytes));
        if let Some((name, bytes)) = &before {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                CommandError::Store(format!("{} is no text, and was not changed", path.display()))
            })?;
            write_private(&self.copy(name), text)?;
        }
        let folders = path.ancestors().skip(1).take_while(|folder| !folder.exists());
        let mut folders: Vec<_> = folders.map(Path::to_owned).collect();
        folders.reverse();
        let before = before.map(|(name, _)| name);
        let (path, edited) = (path.to_owned(), false);
        self.files.push(ChangedFile { path, owner, before, after, edited, folders });
        self.save()
    }

    /// Writes what is left, and removes the folder where nothing is.
    pub(super) fn save(&self) -> Result<(), CommandError> {
        let failed = |error: io::Error| CommandError::Store(error.to_string());
        let file = self.folder.join("changes.json");
        if self.files.is_empty() {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            // Copies that a person may still want stay.
            let _ = fs::remove_dir(&self.folder);
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.files);
        let text = text.map_err(|error| CommandError::Store(error.to_string()))?;
        Ok(write_private(&file, &text)?)
    }
}
