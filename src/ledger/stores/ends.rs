//! The state of a handle: whether its store was opened, and where its logs ended when the key was added.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

/// The ends of the logs when the key was added, by run.
pub(in crate::ledger) type LogEnds = BTreeMap<String, LogEnd>;

/// The end of one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::ledger) struct LogEnd {
    pub(in crate::ledger) seq: i64,
    pub(in crate::ledger) hash: String,
    /// The digest of the log up to here ([`content`](super::linker::content)).
    pub(in crate::ledger) content: String,
}

/// The knowledge of a handle about its store. Shared by its clones.
#[derive(Default)]
pub(in crate::ledger) struct Opening {
    opened: AtomicBool,
    /// The file that keeps the last checkpoint.
    pub(in crate::ledger) anchor: Option<PathBuf>,
    /// The ends of the logs when the key was added.
    pub(in crate::ledger) ends: OnceCell<Option<LogEnds>>,
}

impl Opening {
    /// A store that is not opened yet, with the same anchor.
    pub(in crate::ledger) fn anew(&self) -> Self {
        Self::anchored(self.anchor.clone())
    }

    pub(in crate::ledger) fn anchored(anchor: Option<PathBuf>) -> Self {
        Self { anchor, ..Self::default() }
    }

    pub(in crate::ledger) fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Acquire)
    }

    pub(in crate::ledger) fn set_opened(&self, opened: bool) {
        self.opened.store(opened, Ordering::Release);
    }
}
