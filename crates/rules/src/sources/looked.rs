//! The files of rules as a program last read them, so that one that runs for hours notices each change.
//!
//! We compare the texts, and not the times of the files: a program that writes a file can set its time, too.

use std::path::{Path, PathBuf};

use super::{RulesOrigin, Sources};
use crate::error::RulesError;
use crate::format::rule_set::RuleSet;
use crate::format::source::read;

/// The files of rules, and what was accepted of each, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LookedAt(Vec<LookedFile>);

#[derive(Debug, Clone, PartialEq)]
struct LookedFile {
    path: PathBuf,
    text: String,
    /// The digest of the text that was accepted.
    accepted: Option<String>,
}

impl Sources {
    /// Reads the files and the records of what was accepted.
    ///
    /// # Errors
    /// [`RulesError`] where a file or a record cannot be read, and where a record is gone that was there before: without
    /// it, the file as it is now would count as the rules of the user.
    pub(crate) fn look(&self, before: &LookedAt) -> Result<LookedAt, RulesError> {
        let paths = self.origins.iter().filter_map(|origin| match origin {
            RulesOrigin::File(path) | RulesOrigin::Project(path) => Some(path),
            RulesOrigin::Preset(_) | RulesOrigin::Edits | RulesOrigin::Text(..) => None,
        });
        let files = paths.map(|path| {
            let (text, accepted) = (read(path)?, self.accepted_digest(path)?);
            if accepted.is_none() && before.accepted(path) {
                let problem =
                    "the record of what was accepted of it is gone: run `countersign rules accept`";
                return Err(RulesError::new(&path.display().to_string(), problem));
            }
            Ok(LookedFile { path: path.clone(), text, accepted })
        });
        Ok(LookedAt(files.collect::<Result<_, _>>()?))
    }

    /// The files as they were loaded, with what is accepted of each: a change that only narrows was recorded when it was
    /// loaded.
    pub(crate) fn looked(&self, set: &RuleSet) -> Result<LookedAt, RulesError> {
        let files = set.files().iter().filter_map(|file| {
            let path = file.path.clone()?;
            let accepted = self.accepted_digest(&path);
            let text = file.text.to_string();
            Some(accepted.map(|accepted| LookedFile { path, text, accepted }))
        });
        Ok(LookedAt(files.collect::<Result<_, _>>()?))
    }

    fn accepted_digest(&self, path: &Path) -> Result<Option<String>, RulesError> {
        let Some(accepted) = &self.accepted else { return Ok(None) };
        Ok(accepted.known(path)?.map(|file| file.digest))
    }
}

impl LookedAt {
    fn accepted(&self, path: &Path) -> bool {
        self.0.iter().any(|file| file.path == path && file.accepted.is_some())
    }
}
