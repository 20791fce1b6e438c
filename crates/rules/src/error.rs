//! Errors of files of rules, with file, line and column.

use std::fmt;
use std::sync::Arc;

use countersign::show::escape;

/// One problem of a file of rules, with its place.
///
/// ```
/// use countersign_rules::Rules;
///
/// let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'x'\nwher.path = 'y'\n";
/// let error = Rules::builder().text("team.toml", text).load().unwrap_err();
/// let problem = &error.problems()[0];
/// assert_eq!((problem.file(), problem.line(), problem.column()), ("team.toml", 5, 1));
/// assert_eq!(problem.text(), "a rule has no `wher`: is `where` meant?");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: String,
}

impl Problem {
    /// The name of the file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of the problem, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column of the problem in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The fault, and what to do about it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file of a repository chooses its name, and the words that a problem quotes.
        let lines: Vec<String> = self.text.split('\n').map(escape).collect();
        let (file, text) = (escape(&self.file), lines.join("\n"));
        write!(f, "{file}:{}:{}: {text}", self.line, self.column)
    }
}

/// The error of rules that could not be loaded. Nothing of the files is in force (rule R3).
///
/// ```
/// use countersign_rules::Rules;
///
/// let error = Rules::builder().text("team.toml", "version = 1\n[[rule]]\nallow = \"x\"\n").load().unwrap_err();
/// assert_eq!(error.to_string(), "team.toml:2:1: a rule needs an `id`");
/// assert_eq!(error.problems()[0].line(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    pub(super) problems: Vec<Problem>,
}

impl RulesError {
    pub(super) fn new(file: &str, text: impl Into<String>) -> Self {
        Self {
            problems: vec![Problem { file: file.into(), line: 1, column: 1, text: text.into() }],
        }
    }

    /// All problems that were found, in the order of the files.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RulesError {}
