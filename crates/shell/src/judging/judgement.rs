//! The result of judging commands: effects, reasons and decisions.
//!
//! A judgement is a list of facts with a verdict: what each command does as far as that is known, and every reason
//! against running it unattended. Layers read the verdict; rules and people read the facts. A part without a reason is
//! allowed, so that everything the judging code does not understand has to add one: silence is the one thing that must
//! not happen.

use countersign::args::hex;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::syntax::commands::{Assignment, Redirection, Word, may_change_directory};
use countersign::decision::ToolDecision;

/// One effect of a command.
///
/// ```
/// use countersign_shell::{Classifier, Dialect, Effect, Preset, SearchPath, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
/// let effects = |text: &str| classifier.judge(text, Dialect::Bash).parts()[0].effects().to_vec();
/// assert_eq!(effects("cat src/lib.rs"), [Effect::Reads("/w/src/lib.rs".into())]);
/// assert_eq!(effects("ls src"), [Effect::Lists("/w/src".into())]);
/// assert!(matches!(&effects("curl https://example.org/x")[..], [Effect::Sends(url)] if url.contains("example.org")));
/// ```
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
    /// Sends to a host: the host or URL, as it is written.
    Sends(String),
    /// Queries a service, which is named in words, with the user's credentials.
    Queries(String),
    /// Prints variables of the environment.
    RevealsEnvironment,
    /// Changes the working directory.
    ChangesDirectory(PathBuf),
    /// Any other effect, in words.
    Other(String),
}

impl Effect {
    /// The path that is read, listed, written or changed to.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_shell::Effect;
    /// assert_eq!(Effect::Writes("/w/a.txt".into()).path(), Some(Path::new("/w/a.txt")));
    /// assert_eq!(Effect::RevealsEnvironment.path(), None);
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Reads(path)
            | Self::Lists(path)
            | Self::Writes(path)
            | Self::ChangesDirectory(path) => Some(path),
            _ => None,
        }
    }

    /// The host that something is sent to, in lower case, without the scheme, user, port and path. A word that the
    /// shell expands is returned as it is written, such as `$(id).example`.
    ///
    /// ```
    /// use countersign_shell::Effect;
    ///
    /// let sends = Effect::Sends("https://ann@API.Example:443/v1".into());
    /// assert_eq!(sends.host().as_deref(), Some("api.example"));
    /// ```
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let Self::Sends(target) = self else { return None };
        let rest = target.split_once("://").map_or(target.as_str(), |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.split(':').next().unwrap_or_default(),
        };
        (!host.is_empty()).then(|| host.to_ascii_lowercase())
    }
}

/// Why a part needs an approval or is denied.
///
/// ```
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
/// use countersign::decision::ToolDecision;
///
/// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
/// let judgement = classifier.judge("echo x > .git/config", Dialect::Bash);
/// let reason = judgement.reasons()[0];
/// assert_eq!((reason.decision(), reason.is_every_time()), (ToolDecision::Ask, true));
/// assert!(reason.text().contains("decides what runs or what is allowed"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub(crate) decision: ToolDecision,
    pub(super) every_time: bool,
    pub(super) kind: ReasonKind,
    pub(crate) text: String,
}

/// The subject of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasonKind {
    /// Something that the command does, or that is not known about it: it may write each file that it names.
    Effect,
    /// Only what is read or reached: a secret, a place outside of the workspace, a host.
    Reach,
}

impl Reason {
    /// The decision that this reason leads to: ASK or DENY.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        self.decision
    }

    /// Returns `true` if a person has to be asked every time, so that no answer in advance applies.
    #[must_use]
    pub fn is_every_time(&self) -> bool {
        self.every_time
    }

    /// Returns `true` if the reason speaks only about what is read or reached: a secret, a place outside of the workspace,
    /// a host. It says nothing about effects, so that they are those that the part has.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let reason = |text: &str| classifier.judge(text, Dialect::Bash).reasons()[0].clone();
    /// assert!(reason("cat .env").is_about_reach());
    /// assert!(!reason("rm .env").is_about_reach() && !reason("no-such-program .env").is_about_reach());
    /// ```
    #[must_use]
    pub fn is_about_reach(&self) -> bool {
        self.kind == ReasonKind::Reach
    }

    /// The reason, as text for a person.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns `true` if a reason only says that something is not known. A person is told first what a command is known to do.
///
/// ```
/// use countersign_shell::says_unknown;
///
/// assert!(says_unknown("`bd` is not known") && says_unknown("`ls` with the option `-%` is not known to be harmless"));
/// assert!(!says_unknown("`git` talks to a remote"));
/// ```
#[must_use]
pub fn says_unknown(reason: &str) -> bool {
    ["is not known", "is not known to be harmless", "is known only when it runs"]
        .iter()
        .any(|end| reason.ends_with(end))
}

/// One simple command with its effects and reasons.
///
/// ```
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
/// use std::path::Path;
///
/// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
///     .with_search_path(SearchPath::unchecked());
/// let judgement = classifier.judge("cd docs && timeout 5 sort -u a.txt > b.txt", Dialect::Bash);
///
/// let sort = &judgement.parts()[2];
/// assert_eq!(sort.argv(), ["sort", "-u", "a.txt"]);
/// assert_eq!((sort.program(), sort.wrapped_by()), (Some("sort"), Some("timeout")));
/// assert_eq!(sort.directory(), Path::new("/src/project/docs"));
/// let paths: Vec<_> = judgement.parts().iter().flat_map(|part| part.effects()).filter_map(|effect| effect.path()).collect();
/// assert_eq!(paths[1..], [Path::new("/src/project/docs/b.txt"), Path::new("/src/project/docs/a.txt")]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(crate) span: Range<usize>,
    pub(crate) argv: Vec<String>,
    pub(crate) words: Vec<Word>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) redirections: Vec<Redirection>,
    pub(super) wrapped_by: Option<String>,
    /// The text of another command that this one stands in; `None` in the text that is judged.
    pub(super) inner_text: Option<Arc<str>>,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) program: Option<String>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) digest: Option<Arc<str>>,
    pub(crate) shares_operands: bool,
    pub(crate) fed: bool,
    /// Why to ask where another command of the text may write: files were looked at before the command reads or runs them.
    pub(super) if_changed: Option<&'static str>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) reasons: Vec<Reason>,
}

impl Part {
    /// Returns `true` if the command does nothing by which a folder may be gone afterwards.
    pub(super) fn leaves_folders(&self) -> bool {
        let is_kept = |effect: &Effect| {
            matches!(effect, Effect::Reads(_) | Effect::Lists(_) | Effect::ChangesDirectory(_))
        };
        self.reasons.is_empty() && self.effects.iter().all(is_kept)
    }

    /// The byte range of the command in its own text ([`text_in`](Self::text_in)).
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The text that the command stands in: the text that was judged, or one that another command of it runs.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
    ///     .with_search_path(SearchPath::unchecked());
    /// let text = "cd docs && sh -c 'cat a | wc'";
    /// let judgement = classifier.judge(text, Dialect::Bash);
    /// let written = judgement.parts().iter().map(|part| &part.text_in(text)[part.span()]);
    /// assert_eq!(written.collect::<Vec<_>>(), ["cd docs", "sh -c 'cat a | wc'", "cat a", "wc"]);
    /// ```
    #[must_use]
    pub fn text_in<'t>(&'t self, judged: &'t str) -> &'t str {
        self.inner_text.as_deref().unwrap_or(judged)
    }

    /// Returns `true` if the command stands in a text that another command runs, as with `sh -c`.
    #[must_use]
    pub fn is_inner(&self) -> bool {
        self.inner_text.is_some()
    }

    /// The program and its arguments, as they are written, with the quotes removed.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The program as it is written; empty where there is none, as in `x=1`.
    #[must_use]
    pub fn written_program(&self) -> &str {
        self.argv.first().map(String::as_str).unwrap_or_default()
    }

    /// The program that runs this one, such as `timeout` in `timeout 5 make`.
    #[must_use]
    pub fn wrapped_by(&self) -> Option<&str> {
        self.wrapped_by.as_deref()
    }

    /// Returns `true` if the program is one of many that have their operands from one group of the table: what the group calls an
    /// input, one of them may write.
    #[must_use]
    pub fn shares_operands(&self) -> bool {
        self.shares_operands
    }

    /// Returns `true` if the text gives the command input or operands that are not in its words: a pipe, a file, a
    /// here-document, `xargs`. A command has what the compound command around it has.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
    ///     .with_search_path(SearchPath::unchecked());
    /// let judgement = classifier.judge("cat a | { sort; } && ls '|' && ls | xargs -n1 wc", Dialect::Bash);
    /// let fed = judgement.parts().iter().filter(|part| part.is_fed()).map(|part| part.written_program());
    /// assert_eq!(fed.collect::<Vec<_>>(), ["sort", "xargs", "wc"]);
    /// ```
    #[must_use]
    pub fn is_fed(&self) -> bool {
        self.fed
    }

    /// The program and its arguments, each with what the shell does to it.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The assignments before the program.
    #[must_use]
    pub fn assignments(&self) -> &[Assignment] {
        &self.assignments
    }

    /// The redirections of the command. Those of a wrapper belong to the wrapper's part.
    #[must_use]
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// The directory that the command starts in. Where several are possible, the first of them.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directories.first().map(PathBuf::as_path).unwrap_or_else(|| Path::new(""))
    }

    /// All directories that the command may start in, depending on which `cd` before it succeeds.
    #[must_use]
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The name under which the table knows the program: `git` for `/usr/bin/git`. `None` for a program that it does
    /// not know.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// The file that the program's name resolves to, with links resolved. `None` for builtins, for programs that are
    /// not installed or that tools may write, and with [`SearchPath::unchecked`](crate::SearchPath::unchecked).
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The SHA-256 digest of the lines of the table that describe the program, in hexadecimal. `None` for a program
    /// that the table does not know.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
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

    /// Returns `true` if the command may change the shell's directory to one that is not known: a `cd` whose target the shell
    /// expands, or a builtin that runs a text or takes the directory from a list of its own.
    fn may_go_anywhere(&self) -> bool {
        may_change_directory(&self.words)
            && self.reasons.iter().any(|reason| !reason.is_about_reach())
    }

    /// The strictest decision of its reasons; ALLOW without one.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        self.reasons.iter().map(Reason::decision).max().unwrap_or(ToolDecision::Allow)
    }
}

/// The judgement of a text, with one part for each simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    pub(crate) parts: Vec<Part>,
    pub(crate) refused: Option<String>,
    /// The directories behind the last command.
    pub(super) left_in: Vec<PathBuf>,
}

impl Judgement {
    /// The strictest decision of all parts; at least ASK if the text could not be parsed.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        let refused = if self.refused.is_some() { ToolDecision::Ask } else { ToolDecision::Allow };
        self.parts.iter().map(Part::decision).fold(refused, Ord::max)
    }

    /// All simple commands, including those inside wrappers, subshells and substitutions.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The directories that the text may leave the shell in, the one that it begins in among them. `None` where one of them
    /// is known only when the text runs.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    /// use std::path::{Path, PathBuf};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let after = |text: &str| classifier.judge(text, Dialect::Bash).directories_after().map(<[PathBuf]>::to_vec);
    ///
    /// assert_eq!(after("cd docs && ls").unwrap(), [Path::new("/w"), Path::new("/w/docs")]);
    /// assert_eq!(after("(cd docs && ls)").unwrap(), [Path::new("/w")]);
    /// assert_eq!(after("cd $x && ls"), None);
    /// ```
    #[must_use]
    pub fn directories_after(&self) -> Option<&[PathBuf]> {
        let is_known = self.refused.is_none() && !self.parts.iter().any(Part::may_go_anywhere);
        is_known.then_some(&self.left_in)
    }

    /// Why the text, or the rest of it, could not be parsed.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The SHA-256 digest of the table entries that the judgement used, in hexadecimal. It changes with each change of
    /// the table that could change the judgement, and only then.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath, Workspace};
    ///
    /// let classifier = |programs: Programs| {
    ///     Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
    ///         .with_search_path(SearchPath::unchecked())
    ///         .with_programs(programs)
    /// };
    /// let digest = |programs: &Programs, text| {
    ///     classifier(programs.clone()).judge(text, Dialect::Bash).digest()
    /// };
    /// let built_in = Programs::built_in();
    /// let changed = built_in.with("[wc]\noperands: read...")?;
    /// assert_ne!(digest(&built_in, "wc -l x"), digest(&changed, "wc -l x"));
    /// assert_eq!(digest(&built_in, "cat x"), digest(&changed, "cat x"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn digest(&self) -> String {
        let mut all = Sha256::new();
        for part in &self.parts {
            // An unknown program has no digest, and would have one in another table.
            all.update(part.program().unwrap_or_default());
            all.update([0]);
            all.update(part.digest().unwrap_or_default());
            all.update([0]);
        }
        hex(&all.finalize())
    }

    /// The reasons of all parts, the strictest first.
    #[must_use]
    pub fn reasons(&self) -> Vec<&Reason> {
        let mut reasons: Vec<&Reason> = self.parts.iter().flat_map(Part::reasons).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.decision));
        reasons
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision())?;
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
