//! A call that must be denied: its arguments have a marker that `doctor` has made.
//!
//! No configuration says whether a client obeys a hook: it may be too old, not trust the directory, or have a
//! switch that turns hooks off. So we let the client make a call that must be denied, and look at what happened:
//!
//! | the hook was asked | the file exists | means |
//! |---|---|---|
//! | yes | no | the denial is obeyed |
//! | yes | yes | the client ignores denials |
//! | no | yes | the client does not call the hook |
//! | no | no | the client made no call: nothing is known |
//!
//! The marker is random, and has a directory while it is set. So a text that only looks like a marker denies
//! nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The beginning of every marker.
const PREFIX: &str = "countersign-canary-";

/// A marker that is denied while it is set.
pub(super) struct Canary {
    folder: PathBuf,
    marker: String,
}

impl Canary {
    /// Sets a new marker, below the state directory.
    pub(super) fn set(state: &Path) -> io::Result<Self> {
        let marker = format!("{PREFIX}{}", uuid());
        let folder = state.join("canary").join(&marker);
        fs::create_dir_all(folder.join("work"))?;
        Ok(Self { folder, marker })
    }

    /// The file that the call would create, if it ran.
    pub(super) fn target(&self) -> PathBuf {
        self.work().join(&self.marker)
    }

    /// The directory that the client may work in, apart from what is recorded here.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The file for the output of the client.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Returns `true` if a hook has denied a call with the marker.
    pub(super) fn was_seen(&self) -> bool {
        self.folder.join("seen").exists()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns `true` if a payload has a marker that is set, and records that the hook has seen it.
pub(super) fn is_in(payload: &[u8], state: &Path) -> bool {
    let text = String::from_utf8_lossy(payload);
    // Nothing is looked up for a payload without one.
    let markers =
        text.match_indices(PREFIX).filter_map(|(at, _)| text.get(at..at + PREFIX.len() + 32));
    let set =
        markers.map(|marker| state.join("canary").join(marker)).find(|folder| folder.is_dir());
    set.is_some_and(|folder| {
        let _ = fs::write(folder.join("seen"), "");
        true
    })
}

/// 32 hexadecimal digits that no file has in its name yet.
fn uuid() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
