//! The journal of decisions, which is off by default: it has the arguments of every call, but for secrets.

use std::path::PathBuf;

use countersign_rules::DecisionJournal;
use serde::Deserialize;

use super::Directories;

/// The table `[journal]` of a configuration file.
///
/// ```toml
/// [journal]
/// enabled = true     # false by default
/// keep_days = 30     # the default
/// file = "/users/ann/.local/state/countersign/journal.jsonl"
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JournalConfig {
    /// `true` if the hook and the guard write each decision of the rules into the journal.
    #[serde(default)]
    pub enabled: bool,
    /// For how many days an entry is kept; 30 by default.
    #[serde(default)]
    pub keep_days: Option<u32>,
    /// The file; by default `journal.jsonl` in the state directory.
    #[serde(default)]
    pub file: Option<PathBuf>,
}

impl JournalConfig {
    /// The journal that hook and guard write, if it is enabled. Entries that are too old are removed on the way.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// let mut config = Config::default();
    /// assert!(config.journal.open(&directories).is_none(), "off by default");
    /// config.journal.enabled = true;
    /// assert!(config.journal.open(&directories).unwrap().path().ends_with("journal.jsonl"));
    /// ```
    #[must_use]
    pub fn open(&self, directories: &Directories) -> Option<DecisionJournal> {
        let journal = self.enabled.then(|| self.written(directories))?;
        if let Err(error) = journal.prune_daily() {
            tracing::error!(file = %journal.path().display(), %error, "old entries of the journal cannot be removed");
        }
        Some(journal)
    }

    /// The journal as it was written, also if it is not enabled any more.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// let directories = Directories::below("/users/ann");
    /// let file = Config::default().journal.written(&directories).path().to_owned();
    /// assert_eq!(file.to_str(), Some("/users/ann/.local/state/countersign/journal.jsonl"));
    /// ```
    #[must_use]
    pub fn written(&self, directories: &Directories) -> DecisionJournal {
        let default = || directories.state().join("journal.jsonl");
        let file = self.file.clone().unwrap_or_else(default);
        DecisionJournal::at(file).keep_days(self.keep_days.unwrap_or(30))
    }
}
