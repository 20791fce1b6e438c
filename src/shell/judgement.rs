//! What commands do, and whether they may.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Whether commands may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The commands may run without asking.
    Allow,
    /// A person has to see them first.
    Ask,
    /// The commands may not run.
    Deny,
}

impl Verdict {
    /// Whether they may run.
    #[must_use]
    pub fn is_allow(self) -> bool {
        self == Self::Allow
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// One thing that a command does.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reads the content of a file, or of all files in a directory.
    Reads(PathBuf),
    /// Reads names and metadata.
    Lists(PathBuf),
    /// Writes a file, or below a directory.
    Writes(PathBuf),
    /// Runs code of the workspace: its tests, its build.
    RunsWorkspace,
    /// Runs code that is named in the command.
    Runs(String),
    /// Runs another program, which has a part of its own.
    Wraps(String),
    /// Talks to a host or a service.
    Sends(String),
    /// Prints variables of the environment.
    RevealsEnvironment,
    /// Goes to another directory.
    ChangesDirectory(PathBuf),
    /// Anything else, in words.
    Other(String),
}

/// Why a part is asked about or denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub(super) verdict: Verdict,
    pub(super) every_time: bool,
    pub(super) text: String,
}

impl Reason {
    /// What it leads to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether no standing answer may cover it.
    #[must_use]
    pub fn is_every_time(&self) -> bool {
        self.every_time
    }

    /// The reason, in words for a person.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One simple command with what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(super) span: Range<usize>,
    pub(super) argv: Vec<String>,
    pub(super) wrapped_by: Option<String>,
    pub(super) directory: PathBuf,
    pub(super) effects: Vec<Effect>,
    pub(super) reasons: Vec<Reason>,
}

impl Part {
    /// Where the command stands in the text, in bytes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The program and its arguments, as they are written but without quotes.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The program that runs this one, as `timeout` in `timeout 5 make`.
    #[must_use]
    pub fn wrapped_by(&self) -> Option<&str> {
        self.wrapped_by.as_deref()
    }

    /// The directory that it runs in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the command does, as far as it is known.
    #[must_use]
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Why it is not allowed. Empty where it is.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The strictest of its reasons.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.reasons.iter().map(Reason::verdict).max().unwrap_or(Verdict::Allow)
    }
}

/// What commands do, part for part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    pub(super) parts: Vec<Part>,
    pub(super) refused: Option<String>,
}

impl Judgement {
    /// The strictest verdict of all parts; at least ASK where the text was not understood.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let refused = if self.refused.is_some() { Verdict::Ask } else { Verdict::Allow };
        self.parts.iter().map(Part::verdict).fold(refused, Ord::max)
    }

    /// Every simple command, also within wrappers, subshells and substitutions.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Why the text, or a rest of it, was not understood.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// All reasons, the strictest first.
    #[must_use]
    pub fn reasons(&self) -> Vec<&Reason> {
        let mut reasons: Vec<&Reason> = self.parts.iter().flat_map(Part::reasons).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
        reasons
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict())?;
        let texts = self
            .refused
            .iter()
            .map(String::as_str)
            .chain(self.reasons().into_iter().map(Reason::text));
        for (number, text) in texts.enumerate() {
            write!(f, "{} {text}", if number == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}
