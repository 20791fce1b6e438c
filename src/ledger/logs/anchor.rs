//! The last checkpoint, kept in a file beside the store (rule L8).
//!
//! If a whole store is put back to an earlier state, it is consistent in itself, and nothing in it shows that. A file
//! outside of the store does: it has the place and the hash of an entry that is not in the store any more.

use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use super::events::CHECKPOINTS;
use crate::ledger::error::LedgerError;
use crate::ledger::stores::store::Store;

/// Compares a store with the checkpoint in a file.
pub(in crate::ledger) async fn check(store: &dyn Store, path: &Path) -> Result<(), LedgerError> {
    let behind =
        |problem: &str| LedgerError::Behind { path: path.to_owned(), problem: problem.to_owned() };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        // The first checkpoint makes the file, and not its directory: where that is missing, so is what was kept in it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
            return match directory.is_none_or(Path::is_dir) {
                true => Ok(()),
                false => Err(behind("its directory is not there: make it, or mount its disk")),
            };
        }
        Err(error) => return Err(behind(&format!("it cannot be read ({error})"))),
    };
    let kept: Value = serde_json::from_str(&text).unwrap_or_default();
    let (seq, head) = (kept.get("entries").and_then(Value::as_i64), kept.get("head"));
    let (Some(seq), Some(head)) = (seq, head.and_then(Value::as_str)) else {
        return Err(behind("it is no checkpoint"));
    };
    let there = store.log(CHECKPOINTS, seq.saturating_sub(1), 1).await?;
    match there.first() {
        Some(entry) if (entry.seq, &*entry.hash) == (seq, head) => Ok(()),
        Some(_) => Err(behind("the store has another checkpoint in its place")),
        None => Err(behind("the store does not have its checkpoint any more")),
    }
}

/// Replaces the checkpoint in a file, which is complete at any time.
pub(in crate::ledger) fn keep(path: &Path, checkpoint: &Value) -> Result<(), LedgerError> {
    let failed = |error: std::io::Error| LedgerError::Behind {
        path: path.to_owned(),
        problem: format!("the checkpoint was made, and cannot be kept there ({error})"),
    };
    let unfinished = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let text = format!("{checkpoint}\n");
    let written = std::fs::File::create_new(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map_err(failed)
}
