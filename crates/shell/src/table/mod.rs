//! The table of programs: the meaning of their options and operands, and the format of its files.
//!
//! The format is specific to this table, so an entry is as short as a line of a manual page. `docs/shell.md`
//! describes it.

mod arguments;
mod dashes;
mod described;
mod entry;
mod format;
mod helping;
mod matched;
mod sections;
mod unmatched;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub(super) use arguments::matched;
pub(super) use entry::{Does, Kind, ProgramEntry, ProgramMark, Script};
pub(super) use matched::{Argument, Matched, prints_path};
pub(super) use unmatched::Unmatched;
pub(super) use words::{SENDS_OUT, dashes_end_options, is_known_word, may_be_option, parts};

/// The built-in files, with their names for error messages.
const BUILT_IN: &[(&str, &str)] = &[
    ("shell.txt", include_str!("../programs/shell.txt")),
    ("files.txt", include_str!("../programs/files.txt")),
    ("text.txt", include_str!("../programs/text.txt")),
    ("system.txt", include_str!("../programs/system.txt")),
    ("git.txt", include_str!("../programs/git.txt")),
    ("build.txt", include_str!("../programs/build.txt")),
    ("scripting.txt", include_str!("../programs/scripting.txt")),
    ("lint.txt", include_str!("../programs/lint.txt")),
    ("services.txt", include_str!("../programs/services.txt")),
    ("packages.txt", include_str!("../programs/packages.txt")),
    ("asked.txt", include_str!("../programs/asked.txt")),
    ("forms.txt", include_str!("../programs/forms.txt")),
];

/// The table of programs that a [`Classifier`](super::Classifier) knows. Cheap to clone.
///
/// ```
/// use countersign_shell::Programs;
///
/// let built_in = Programs::built_in();
/// assert!(built_in.names().any(|name| name == "git"));
/// assert!(built_in.examples().iter().any(|example| example.program == "git log" && example.safe));
/// let error = built_in.with("[frob]\nflag: -v").unwrap_err();
/// assert_eq!(error.to_string(), "programs, line 2: `flag` is not a key");
/// ```
#[derive(Clone)]
pub struct Programs(Table);

#[derive(Clone)]
enum Table {
    /// The built-in table. Its headers are read when the first program is looked up, and each entry when it is needed.
    BuiltIn,
    /// A table with entries of a user.
    Own(Arc<HashMap<String, Arc<ProgramEntry>>>),
}

/// The error of a table that cannot be parsed, with its file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ProgramsError {
    file: String,
    line: usize,
    problem: String,
}

/// An example in the table: a command, and whether the preset `developer` allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramExample {
    /// The name of the program, with its sub-command.
    pub program: String,
    /// The text of the whole command.
    pub command: String,
    /// Whether the command has to be allowed.
    pub safe: bool,
}

/// What a program, or one of its sub-commands, takes as the table describes it: for tools that try its forms.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramArguments {
    /// The name of the program, with its sub-command.
    pub program: String,
    /// The options that it may have, sorted, as a file of the table writes them: `-v`, `--color?=text`, `-f=read`.
    pub options: Vec<String>,
    /// The kinds of its operands, as a file of the table writes them: `text`, `read...`.
    pub operands: Vec<String>,
}

/// The built-in table, made at its first use.
fn built_in() -> &'static sections::Sections {
    static BUILT: OnceLock<sections::Sections> = OnceLock::new();
    BUILT.get_or_init(|| sections::Sections::new(BUILT_IN))
}

impl Programs {
    /// The programs that this crate describes.
    ///
    /// ```
    /// use countersign_shell::Programs;
    /// let programs = Programs::built_in();
    /// assert!(programs.names().any(|name| name == "grep"));
    /// assert!(programs.examples().iter().any(|example| example.program == "grep" && example.safe));
    /// ```
    #[must_use]
    pub fn built_in() -> Self {
        Self(Table::BuiltIn)
    }

    /// These programs and those of a text. An entry of the text replaces an existing one of the same name.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Commands, Dialect, Preset, Programs, SearchPath, Workspace};
    ///
    /// let programs = Programs::built_in().with("
    /// [frob]
    /// ## Prints what is in a frob file.
    /// operands: read...
    /// flags: -v --verbose
    /// safe: frob -v a.frob
    /// unsafe: frob --eval x
    /// ")?;
    /// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
    ///     .with_programs(programs)
    ///     .with_search_path(SearchPath::unchecked());
    /// let commands = Commands::parse("frob -v notes.frob", Dialect::Bash)?;
    /// assert!(classifier.classify(&commands).decision().is_allow());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProgramsError`] names the first line that cannot be parsed.
    pub fn with(&self, text: &str) -> Result<Self, ProgramsError> {
        let mut entries = self.entries();
        format::read("programs", text, &mut entries)?;
        Ok(Self(Table::Own(Arc::new(entries))))
    }

    /// The names of the programs, without sub-commands, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (built_in, own) = match &self.0 {
            Table::BuiltIn => (Some(built_in().names()), None),
            Table::Own(entries) => (None, Some(entries.keys().map(String::as_str))),
        };
        built_in.into_iter().flatten().chain(own.into_iter().flatten())
    }

    /// The examples of all programs, sorted by program and command.
    #[must_use]
    pub fn examples(&self) -> Vec<ProgramExample> {
        let mut found = Vec::new();
        for (name, entry) in self.entries() {
            entry.collect_examples(&name, &mut found);
        }
        sorted(found)
    }

    /// The examples of one program and of its sub-commands, sorted by command. No other entry is parsed for them.
    ///
    /// ```
    /// use countersign_shell::Programs;
    ///
    /// let examples = Programs::built_in().examples_of("git");
    /// assert!(examples.iter().any(|example| example.program == "git log" && example.safe));
    /// assert!(Programs::built_in().examples_of("frobnicate").is_empty());
    /// ```
    #[must_use]
    pub fn examples_of(&self, program: &str) -> Vec<ProgramExample> {
        let mut found = Vec::new();
        if let Some(entry) = self.get(program) {
            entry.collect_examples(program, &mut found);
        }
        sorted(found)
    }

    /// The options and operands of all programs and sub-commands that may be allowed, sorted by name.
    ///
    /// ```
    /// use countersign_shell::Programs;
    ///
    /// let arguments = Programs::built_in().arguments();
    /// let blame = arguments.iter().find(|it| it.program == "git blame").unwrap();
    /// assert!(blame.options.iter().any(|option| option == "-L=text"));
    /// assert_eq!(blame.operands, ["revision..."]);
    /// ```
    #[must_use]
    pub fn arguments(&self) -> Vec<ProgramArguments> {
        let mut found = Vec::new();
        for (name, entry) in self.entries() {
            entry.collect_arguments(&name, &mut found);
        }
        found.sort_by(|one, other| one.program.cmp(&other.program));
        found
    }

    pub(super) fn get(&self, name: &str) -> Option<&ProgramEntry> {
        match &self.0 {
            Table::BuiltIn => built_in().get(name),
            Table::Own(entries) => entries.get(name),
        }
        .map(AsRef::as_ref)
    }

    /// All entries, parsed.
    fn entries(&self) -> HashMap<String, Arc<ProgramEntry>> {
        match &self.0 {
            Table::BuiltIn => built_in().entries().collect(),
            Table::Own(entries) => HashMap::clone(entries),
        }
    }
}

/// Examples in an order that does not depend on that of the entries, each once.
fn sorted(mut found: Vec<ProgramExample>) -> Vec<ProgramExample> {
    found.sort_by(|one, other| (&one.program, &one.command).cmp(&(&other.program, &other.command)));
    found.dedup();
    found
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("programs", &self.names().count()).finish()
    }
}
