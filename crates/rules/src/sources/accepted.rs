//! The files of rules as a person has accepted them, for programs that load the files anew in each process.
//!
//! A program that runs for hours knows the rules that it began with ([`Rules::reload`](crate::Rules::reload)). A hook is
//! a new process for each call, and would take any change for the rules of the user. So we keep the accepted text of
//! each file in a file of this user. If a change may allow more, the accepted text counts together with it:
//!
//! | the file | decides |
//! |---|---|
//! | was never loaded with these records | as it was found: that text is recorded as accepted |
//! | says the same, or only narrows | as it is, and its text is recorded in place of the one before |
//! | may allow more | the stricter of both, until a person accepts it |
//! | is one of the machine, which this user cannot change | as it is, and nothing is recorded |
//! | was there and is gone, or cannot be read | nothing: it is an error |
//!
//! We find the record by the path as it is written, and keep another one for the folder that the path leads to. So if a
//! folder on the way becomes a link to other rules, that is a change of the rules.
//!
//! We record a change that only narrows without a person, as it allows no call. So an edited comment needs no one
//! to accept it, and a denial that was added today is not lost with the next change.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::difference::difference;
use super::private_file;
use crate::error::RulesError;
use crate::format::rule::hex_digest;

/// The rules of a user without a file: every call is asked about.
const NO_RULES: &str = "version = 1\n";

/// The folder that holds which text of each file of rules a person has accepted. It belongs to the user, and not in a
/// project.
///
/// ```
/// use countersign::decision::ToolDecision;
/// use countersign_rules::{AcceptedRules, RuleCall, Rules};
/// use serde_json::json;
///
/// let folder = std::env::temp_dir().join(format!("countersign-doc-accepted-{}", std::process::id()));
/// let (file, accepted) = (folder.join("rules.toml"), AcceptedRules::at(folder.join("accepted")));
/// std::fs::create_dir_all(&folder)?;
/// let args = json!({});
/// // Each time another process.
/// let decide = || -> Result<ToolDecision, countersign_rules::RulesError> {
///     let rules = Rules::builder().file(&file).accepted(accepted.clone()).load()?;
///     Ok(rules.decide(&RuleCall::new("pay", args.as_object().unwrap())).decision())
/// };
/// std::fs::write(&file, "version = 1\n[[rule]]\nid = 'a'\nask = 'pay'")?;
/// assert_eq!(decide()?, ToolDecision::Ask);
///
/// let wider = "version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'";
/// std::fs::write(&file, wider)?;
/// assert_eq!(decide()?, ToolDecision::Ask, "the stricter of both");
/// accepted.accept(&file, Some(wider))?;
/// assert_eq!(decide()?, ToolDecision::Allow);
///
/// std::fs::remove_file(&file)?;
/// assert!(decide().is_err(), "a file that was there and is gone");
/// std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AcceptedRules {
    folder: PathBuf,
}

/// A file of rules as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcceptedFile {
    /// The place of the file of rules.
    pub path: PathBuf,
    /// The digest of the text that was accepted.
    pub digest: String,
    /// The text that was accepted; `None` where there was no file.
    pub text: Option<String>,
}

impl AcceptedFile {
    /// The rules that were accepted. Without a file every call is asked about.
    ///
    /// ```
    /// use countersign_rules::AcceptedRules;
    ///
    /// let folder = std::env::temp_dir().join(format!("countersign-doc-no-rules-{}", std::process::id()));
    /// let accepted = AcceptedRules::at(folder.join("accepted"));
    /// accepted.accept(&folder.join("rules.toml"), None)?;
    /// let before = accepted.accepted(&folder.join("rules.toml"))?.unwrap();
    /// assert_eq!(before.rules(), "version = 1\n");
    /// std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn rules(&self) -> &str {
        self.text.as_deref().unwrap_or(NO_RULES)
    }
}

impl AcceptedRules {
    /// The records in a folder of the user's state directory. The folder need not exist yet.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns `true` if a file of rules is one of the machine: it and each folder above it belong to root, and no one
    /// else may write them. It decides as it is, for this user, who cannot change it, and nothing is recorded. For root
    /// there is no such file.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_rules::AcceptedRules;
    /// assert!(!AcceptedRules::is_of_machine(&std::env::temp_dir().join("rules.toml")));
    /// ```
    #[must_use]
    pub fn is_of_machine(path: &Path) -> bool {
        private_file::is_of_machine(path)
    }

    /// The text of a file of rules that was accepted last, if one was.
    ///
    /// # Errors
    /// The error of reading the record, or that it is none, or that other users can change it.
    pub fn accepted(&self, path: &Path) -> io::Result<Option<AcceptedFile>> {
        let written = written(path);
        match self.read(&self.record_of(&written))? {
            Some(found) => Ok(Some(found)),
            // The same file was accepted by another path.
            None => {
                let found = self.read(&self.record_of(&place(&written)))?;
                Ok(found.map(|found| AcceptedFile { path: written, ..found }))
            }
        }
    }

    /// Every file of rules of which a text was accepted.
    ///
    /// ```
    /// use countersign_rules::AcceptedRules;
    ///
    /// let folder = std::env::temp_dir().join(format!("countersign-doc-all-accepted-{}", std::process::id()));
    /// let accepted = AcceptedRules::at(folder.join("accepted"));
    /// assert!(accepted.all()?.is_empty());
    /// accepted.accept(&folder.join("team.toml"), Some("version = 1"))?;
    /// assert!(accepted.all()?[0].path.ends_with("team.toml"));
    /// std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of reading a record.
    pub fn all(&self) -> io::Result<Vec<AcceptedFile>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let paths = entries.map(|entry| entry.map(|it| it.path()));
        let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
        let records = paths.iter().filter_map(|path| self.read(path).transpose());
        let mut records = records.collect::<io::Result<Vec<_>>>()?;
        records.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(records)
    }

    /// Records that a person accepts this text as the rules in a file, or, without a text, that there is no file. It
    /// replaces what was accepted before. Give the text that the person has seen.
    ///
    /// # Errors
    /// The error of writing the record.
    pub fn accept(&self, path: &Path, text: Option<&str>) -> io::Result<()> {
        self.record(self.paths_of(path), text)
    }

    /// Removes the record of a file of rules, by every path that leads to it: the text that is found there next is recorded as
    /// accepted. Only for a user whose programs load no rules from there any more.
    ///
    /// # Errors
    /// The error of removing the record.
    ///
    /// ```
    /// use countersign_rules::AcceptedRules;
    ///
    /// let folder = std::env::temp_dir().join(format!("countersign-doc-forgotten-{}", std::process::id()));
    /// let accepted = AcceptedRules::at(folder.join("accepted"));
    /// accepted.accept(&folder.join("team.toml"), Some("version = 1"))?;
    /// accepted.forget(&folder.join("team.toml"))?;
    /// assert!(accepted.all()?.is_empty());
    /// std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn forget(&self, path: &Path) -> io::Result<()> {
        for path in self.paths_of(path) {
            match std::fs::remove_file(self.record_of(&path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Every known path of the file that this one names, with it.
    fn paths_of(&self, path: &Path) -> Vec<PathBuf> {
        let path = written(path);
        let real = place(&path);
        // One file may be named by several paths, one of which leads through a link.
        let others = self.all().unwrap_or_default().into_iter().map(|it| it.path);
        let mut paths: Vec<_> = others.filter(|it| place(it) == real).collect();
        paths.extend([path, real]);
        paths
    }

    fn record(&self, mut paths: Vec<PathBuf>, text: Option<&str>) -> io::Result<()> {
        paths.sort();
        paths.dedup();
        for path in paths {
            let record = self.record_of(&path);
            let accepted =
                AcceptedFile { path, digest: digest(text), text: text.map(str::to_owned) };
            private_file::replace(&record, &serde_json::to_vec_pretty(&accepted)?)?;
        }
        Ok(())
    }

    /// Records the text of a file that was never seen by any path.
    fn record_first(&self, path: &Path, text: Option<&str>) -> Result<(), RulesError> {
        let path = written(path);
        self.record(vec![place(&path), path], text).map_err(|error| self.failed(&error))
    }

    /// Returns `true` if there is a file of rules, for a program whose user need not have one. That there is none is
    /// recorded, so that a file which appears later is a change.
    ///
    /// # Errors
    /// [`RulesError`] where a file was accepted and is gone, and where it is not known whether there is one.
    pub fn is_there(&self, path: &Path) -> Result<bool, RulesError> {
        match (path.try_exists(), self.known(path)?) {
            (Ok(true), _) => Ok(true),
            (Ok(false), None) => {
                self.record_first(path, None)?;
                Ok(false)
            }
            (Ok(false), Some(AcceptedFile { text: None, .. })) => Ok(false),
            (Ok(false), Some(_)) => Err(RulesError::new(
                &path.display().to_string(),
                "was there and is gone: restore it, or run `countersign rules accept`",
            )),
            (Err(error), _) => {
                let problem = format!("cannot be read: {error}");
                Err(RulesError::new(&path.display().to_string(), problem))
            }
        }
    }

    /// The rules before a change that may allow more; `None` where the text alone decides, which is then recorded.
    pub(crate) fn before(&self, path: &Path, text: &str) -> Result<Option<String>, RulesError> {
        if Self::is_of_machine(path) {
            return Ok(None);
        }
        let Some(accepted) = self.known(path)? else {
            self.record_first(path, Some(text))?;
            return Ok(None);
        };
        if accepted.text.as_deref() == Some(text) {
            return Ok(None);
        }
        let changes = difference(accepted.rules(), text).map_err(|_| {
            let problem = "the rules that were accepted before cannot be read by this version of the \
                 program: run `countersign rules accept`";
            RulesError::new(&path.display().to_string(), problem)
        })?;
        if changes.iter().any(|change| change.may_widen) {
            return Ok(Some(accepted.rules().to_owned()));
        }
        // Without the record the next process compares again, and decides the same.
        if let Err(error) = self.record(vec![written(path)], Some(text)) {
            tracing::warn!(folder = %self.folder.display(), %error, "a narrower file of rules was not recorded");
        }
        Ok(None)
    }

    /// The accepted state of a file. If it cannot be read, the error is one of rules.
    pub(super) fn known(&self, path: &Path) -> Result<Option<AcceptedFile>, RulesError> {
        self.accepted(path).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> RulesError {
        let problem = format!("which rules were accepted is not known: {error}");
        RulesError::new(&self.folder.display().to_string(), problem)
    }

    /// The name is a digest, as a path may be longer than a name, and have characters that names cannot.
    fn record_of(&self, place: &Path) -> PathBuf {
        self.folder.join(hex_digest(place.as_os_str().as_encoded_bytes())).with_extension("json")
    }

    fn read(&self, record: &Path) -> io::Result<Option<AcceptedFile>> {
        let Some(bytes) = private_file::read(record)? else { return Ok(None) };
        let accepted: AcceptedFile = serde_json::from_slice(&bytes)?;
        let is_whole = accepted.digest == digest(accepted.text.as_deref())
            && self.record_of(&accepted.path) == record;
        match is_whole {
            true => Ok(Some(accepted)),
            false => Err(io::Error::other(format!("`{}` was changed by hand", record.display()))),
        }
    }
}

fn digest(text: Option<&str>) -> String {
    hex_digest(text.unwrap_or_default().as_bytes())
}

/// The path as it is written, from the root. What a link on the way leads to may change, and is no part of the name: other
/// rules behind the same path are a change.
fn written(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The place that a path names. The folders are resolved and the last name is not: a link that leads to another file is
/// a change of what is there.
fn place(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}
