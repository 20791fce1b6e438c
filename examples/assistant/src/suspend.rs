//! The file of a suspended run: its snapshot, its directory, and the rows of the report so far.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign::SuspendedRun;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::report::Row;

/// The version of the file's format. The snapshot in it has a version of its own.
const VERSION: u64 = 1;

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub(crate) directory: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) run: SuspendedRun,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u64,
    /// Detects accidental changes. It is no protection: a person who can write the file can also write this digest.
    sha256: String,
    stored: Value,
}

/// Writes the file atomically, readable for this user only.
pub(crate) fn write(path: &Path, stored: &Stored) -> Result<(), String> {
    let written = || -> Result<(), Box<dyn std::error::Error>> {
        let stored = serde_json::to_value(stored)?;
        let file = File { version: VERSION, sha256: digest(&stored), stored };
        let folder =
            path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(&serde_json::to_vec_pretty(&file)?)?;
        new.persist(path)?;
        Ok(())
    };
    written().map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Reads and checks the file. A truncated or edited file, or one of another version, is an error, and nothing runs.
pub(crate) fn read(path: &Path) -> Result<Stored, String> {
    let unusable = |problem: String| format!("cannot resume {}: {problem}", path.display());
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    parse(&text).map_err(unusable)
}

fn parse(text: &str) -> Result<Stored, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => "it is not complete".to_owned(),
        false => format!("it is not JSON: {error}"),
    })?;
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!("it has version {other}, and this build reads version {VERSION}"));
        }
        None => return Err("it is not the file of a suspended run".into()),
    }
    let file: File = serde_json::from_value(value).map_err(|error| error.to_string())?;
    // The library checks the snapshot: its version, its calls, and that each question is the one that was asked.
    let stored: Stored =
        serde_json::from_value(file.stored.clone()).map_err(|error| error.to_string())?;
    match digest(&file.stored) == file.sha256 {
        true => Ok(stored),
        false => Err("it was changed after it was written".into()),
    }
}

/// Claims the file by renaming it, so that only one process resumes the run.
pub(crate) fn claim(path: &Path) -> Result<(), String> {
    let taken =
        |error| format!("cannot resume {}: another process took it ({error})", path.display());
    fs::rename(path, used(path)).map_err(taken)
}

/// Removes the file that [`claim`] has renamed.
pub(crate) fn forget(path: &Path) {
    // The file is not needed any more, and does no harm if it stays.
    let _ = fs::remove_file(used(path));
}

fn used(path: &Path) -> PathBuf {
    let mut used = path.as_os_str().to_owned();
    used.push(".used");
    used.into()
}

fn digest(value: &Value) -> String {
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}
