//! Reads the text of a file of rules, and finds lines and columns in it.
//!
//! We count lines and columns in characters, as editors do. We look at a file before we open it, since opening a pipe
//! waits for a writer. We read it up to a limit, since a file may grow while we read.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::calls::tool_pattern::ToolPattern;
use crate::error::{Problem, RulesError};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The text of a file, and the problems that were found in it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: Arc<str>,
    pub(crate) text: Arc<str>,
    /// The position at which each line begins.
    lines: Vec<usize>,
    pub(crate) problems: Vec<Problem>,
    /// The version of the format that the file says.
    pub(crate) version: i64,
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let starts =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        let (file, text) = (file.into(), text.into());
        Self { file, text, lines, problems: Vec::new(), version: 1 }
    }

    /// Line and column of a byte, both counted from 1.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    pub(crate) fn problem(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let (line, column) = self.place(span.start);
        self.problems.push(Problem {
            file: Arc::clone(&self.file),
            line,
            column,
            text: text.into(),
        });
    }

    /// Adds a problem if the file has a key that the version it says does not have. A program of that version would refuse
    /// the file for the key, and not name the version that it lacks.
    pub(super) fn needs_version(&mut self, span: &Range<usize>, version: i64, key: &str) {
        if self.version < version {
            let text = format!(
                "`{key}` is of version {version} of the format: begin the file with `version = {version}`"
            );
            self.problem(span, text);
        }
    }

    /// Reads a pattern over tools. A problem is added.
    pub(crate) fn tool_pattern(&mut self, text: &str, span: &Range<usize>) -> Option<ToolPattern> {
        match ToolPattern::parse(text) {
            Ok(pattern) => {
                if pattern.is_of_version_2() {
                    self.needs_version(span, 2, text);
                }
                Some(pattern)
            }
            Err(problem) => {
                self.problem(span, problem);
                None
            }
        }
    }

    /// The problems as an error; `Ok` if there are none.
    pub(crate) fn checked(&self) -> Result<(), RulesError> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let mut problems = self.problems.clone();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(RulesError { problems })
    }
}

/// Reads a file of rules. Only regular files of a reasonable size are read.
pub(crate) fn read(path: &Path) -> Result<String, RulesError> {
    let name = path.display().to_string();
    let fails = |what: String| RulesError::new(&name, what);
    // Looked at before it is opened: opening a pipe or a device may wait or have an effect.
    let metadata =
        std::fs::metadata(path).map_err(|error| fails(format!("cannot be read: {error}")))?;
    if !metadata.is_file() {
        return Err(fails("is not a regular file, so that no rules can be read from it".into()));
    }
    // One byte more than the file has, so that its end is found without another buffer: a guard reads it for each call.
    let size = metadata.len().min(MAX_FILE) as usize;
    let mut bytes = Vec::with_capacity(size + 1);
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| fails(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(fails(format!(
            "is larger than {MAX_FILE} bytes: split the rules into several files"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text =
            String::from_utf8_lossy(error.as_bytes().get(..good).unwrap_or_default()).into_owned();
        let source = Source::new(&name, &text);
        let (line, column) = source.place(good);
        let text = "is not UTF-8 from here on".to_owned();
        RulesError { problems: vec![Problem { file: source.file, line, column, text }] }
    })
}
