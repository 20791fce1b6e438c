//! A folder to tidy up for each chat, that stays when the server is started again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::sandbox::Sandbox;
use crate::workspace;

pub(crate) struct Places {
    folder: PathBuf,
    /// Held while a folder is copied, so that no chat sees half a copy.
    copying: Mutex<()>,
}

impl Places {
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let folder = data.join("folders");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, copying: Mutex::default() })
    }

    /// The folder of a chat: a copy of the messy one, with three files to try things on.
    pub(crate) fn of(&self, principal: &str, chat: &str) -> io::Result<Sandbox> {
        let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        // Ids come from the page: none of them becomes a path.
        let name = Sha256::digest(format!("{}:{principal}{chat}", principal.len()));
        let name: String = name.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let place = self.folder.join(name);
        if !place.exists() {
            let half = tempfile::tempdir_in(&self.folder)?;
            let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assistant");
            let workspace = workspace::copy_into(&shipped, half.path())?;
            for name in ["a.txt", "b.txt", "c.txt"] {
                // All have the same content: an approval is pinned to it, and would not cover another one.
                fs::write(workspace.join(name), "To try things on.\n")?;
            }
            fs::rename(half.keep(), &place)?;
        }
        Sandbox::new(&place.join("workspace"))
    }
}
