//! What a text consists of: lists of pipelines of simple commands.

use std::fmt;
use std::ops::Range;

use super::dialect::Dialect;
use super::parser::Parser;
use super::word::Word;

/// The commands of a text.
///
/// Parsing is strict: what the lexer does not know is refused, not guessed. What it accepts, `sh`, `bash` and `zsh`
/// read in the same way.
///
/// ```
/// use countersign::shell::{Commands, Dialect};
///
/// let commands = Commands::parse("cd src && grep -rn 'fn main' . | head -5 > /dev/null", Dialect::Bash)?;
/// let argv: Vec<_> = commands.simple_commands().map(|command| command.argv().unwrap().join(" ")).collect();
/// assert_eq!(argv, ["cd src", "grep -rn fn main .", "head -5"]);
///
/// let refused = Commands::parse("ls; while true; do rm -rf x; done", Dialect::Bash).unwrap_err();
/// assert_eq!(refused.to_string(), "line 1, column 5: `while` begins a compound command, which is not analysed");
/// # Ok::<(), countersign::shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commands {
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) comments: Vec<Range<usize>>,
}

/// How a pipeline is joined to the one before.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// It is the first, or follows `;` or a line break: it always runs.
    Then,
    /// After `&&`: if the one before succeeded.
    And,
    /// After `||`: if the one before failed.
    Or,
}

/// Commands whose output goes to the input of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub(super) join: Join,
    pub(super) negated: bool,
    pub(super) stages: Vec<Stage>,
}

impl Pipeline {
    /// How it is joined to the pipeline before.
    #[must_use]
    pub fn join(&self) -> Join {
        self.join
    }

    /// Whether `!` turns its exit status round.
    #[must_use]
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// Its commands, at least one.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

/// One command of a pipeline.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// A program or builtin with its arguments.
    Simple(SimpleCommand),
    /// Commands in a shell of their own, `( … )`.
    Subshell {
        /// What is in the parentheses.
        commands: Commands,
        /// What stands behind them.
        redirections: Vec<Redirection>,
    },
}

/// A program or builtin with its arguments, assignments and redirections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
    pub(super) span: Range<usize>,
}

impl SimpleCommand {
    /// The assignments in front, as `RUST_LOG=debug`.
    #[must_use]
    pub fn assignments(&self) -> &[Assignment] {
        &self.assignments
    }

    /// The program and its arguments. Empty where there are only assignments or redirections.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Where input comes from and output goes to.
    #[must_use]
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// The program and its arguments, if the shell expands none of them.
    #[must_use]
    pub fn argv(&self) -> Option<Vec<&str>> {
        self.words.iter().map(Word::literal).collect()
    }

    /// Where it stands in the text, in bytes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// `NAME=value` in front of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub(super) name: String,
    pub(super) value: Word,
}

impl Assignment {
    /// The name of the variable.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The word that is its value.
    #[must_use]
    pub fn value(&self) -> &Word {
        &self.value
    }
}

/// Where a file descriptor of a command points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub(super) fd: Option<u8>,
    pub(super) target: RedirectionTarget,
}

impl Redirection {
    /// The file descriptor, where one is written.
    #[must_use]
    pub fn fd(&self) -> Option<u8> {
        self.fd
    }

    /// What it points to.
    #[must_use]
    pub fn target(&self) -> &RedirectionTarget {
        &self.target
    }
}

/// What a redirection points to.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectionTarget {
    /// `< file`: standard input from a file.
    Read(Word),
    /// `> file`, which empties it first.
    Write(Word),
    /// `>> file`: written behind what a file holds.
    Append(Word),
    /// `&> file`: output and errors.
    WriteAll(Word),
    /// `2>&1`: where another descriptor points to.
    Duplicate(u8),
    /// A here-document, as literal text.
    HereDocument(String),
    /// `<<< word`: standard input from a word.
    HereString(Word),
}

/// Why a text is not analysed. A person has to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub(super) at: usize,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) why: String,
    pub(super) read: Commands,
}

impl Refused {
    /// The byte where reading stopped.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is not analysed, and why.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The commands in front of that place. A rule that denies can still be tried on them.
    #[must_use]
    pub fn read(&self) -> &Commands {
        &self.read
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.why)
    }
}

impl std::error::Error for Refused {}

impl Commands {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`Refused`] for everything that the lexer does not know, that the POSIX shells read differently, or that
    /// exceeds a limit (64 KiB of text, 256 commands, 4 096 words, 4 levels of nesting).
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, Refused> {
        Parser::new(text, dialect).parse()
    }

    /// The pipelines, in the order of the text.
    #[must_use]
    pub fn pipelines(&self) -> &[Pipeline] {
        &self.pipelines
    }

    /// Where comments stand, in bytes. They do nothing, and a person should see them.
    #[must_use]
    pub fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    /// All simple commands: those in subshells and substitutions too.
    pub fn simple_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.into_iter()
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a SimpleCommand>) {
        for stage in self.pipelines.iter().flat_map(Pipeline::stages) {
            let redirections = match stage {
                Stage::Simple(command) => {
                    let values = command.assignments.iter().map(Assignment::value);
                    for word in values.chain(&command.words) {
                        word.substitutions.iter().for_each(|inner| inner.collect(found));
                    }
                    found.push(command);
                    &command.redirections
                }
                Stage::Subshell { commands, redirections } => {
                    commands.collect(found);
                    redirections
                }
            };
            for word in redirections.iter().filter_map(|redirection| redirection.target.word()) {
                word.substitutions.iter().for_each(|inner| inner.collect(found));
            }
        }
    }
}

impl RedirectionTarget {
    /// The word that names the target.
    #[must_use]
    pub fn word(&self) -> Option<&Word> {
        match self {
            Self::Read(word)
            | Self::Write(word)
            | Self::Append(word)
            | Self::WriteAll(word)
            | Self::HereString(word) => Some(word),
            Self::Duplicate(_) | Self::HereDocument(_) => None,
        }
    }
}
