//! The result of judging commands: effects, reasons and verdicts.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Whether commands may run. Ordered from the least to the most strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The commands may run unattended.
    Allow,
    /// A person has to approve the commands.
    Ask,
    /// The commands must not run.
    Deny,
}

impl Verdict {
    /// Whether the verdict is [`Allow`](Self::Allow).
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

/// One effect of a command.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reads the content of a file, or of all files in a directory.
    Reads(PathBuf),
    /// Reads names and metadata of a file or directory, not its content.
    Lists(PathBuf),
    /// Writes a file, or files below a directory.
    Writes(PathBuf),
    /// Runs code of the workspace, such as its tests or build scripts.
    RunsWorkspace,
    /// Runs code that the command names or contains.
    Runs(String),
    /// Runs another program, as `timeout` does. That program is judged as a part of its own.
    Wraps(String),
    /// Communicates with a host or service, which is named here.
    Sends(String),
    /// Prints variables of the environment.
    RevealsEnvironment,
    /// Changes the working directory.
    ChangesDirectory(PathBuf),
    /// Any other effect, in words.
    Other(String),
}

/// Why a part needs an approval or is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub(super) verdict: Verdict,
    pub(super) every_time: bool,
    pub(super) text: String,
}

impl Reason {
    /// The verdict that this reason leads to: ASK or DENY.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether a person has to be asked every time, so that no answer in advance applies.
    #[must_use]
    pub fn is_every_time(&self) -> bool {
        self.every_time
    }

    /// The reason, as text for a person.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One simple command with its effects and reasons.
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
    /// The byte range of the command in the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The program and its arguments, as they are written, with the quotes removed.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The program that runs this one, such as `timeout` in `timeout 5 make`.
    #[must_use]
    pub fn wrapped_by(&self) -> Option<&str> {
        self.wrapped_by.as_deref()
    }

    /// The directory that the command runs in. Where several are possible, the first of them.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The effects of the command.
    #[must_use]
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Why the command is not allowed; empty if it is.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The strictest verdict of its reasons; ALLOW without one.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.reasons.iter().map(Reason::verdict).max().unwrap_or(Verdict::Allow)
    }
}

/// The judgement of a text, with one part for each simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    pub(super) parts: Vec<Part>,
    pub(super) refused: Option<String>,
}

impl Judgement {
    /// The strictest verdict of all parts; at least ASK if the text could not be parsed.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let refused = if self.refused.is_some() { Verdict::Ask } else { Verdict::Allow };
        self.parts.iter().map(Part::verdict).fold(refused, Ord::max)
    }

    /// All simple commands, including those inside wrappers, subshells and substitutions.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Why the text, or the rest of it, could not be parsed.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The reasons of all parts, the strictest first.
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
