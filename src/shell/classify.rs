//! Judges commands part for part.

use std::path::PathBuf;

use super::commands::{Commands, Join, Pipeline, Stage};
use super::dialect::Dialect;
use super::judgement::{Judgement, Part, Reason, Verdict};
use super::paths::Workspace;
use super::search_path::SearchPath;
use super::simple::Simple;
use super::table::Programs;

/// What is allowed without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Reads in the workspace and the public parts of the system; builds, tests, checks and formats the workspace;
    /// looks at local services. Builds run the workspace's own code.
    Developer,
    /// Reads, and does nothing else.
    Reader,
}

/// Judges commands.
///
/// ```
/// use countersign::shell::{Classifier, Dialect, Preset, SearchPath, Verdict, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
///     .search_path(SearchPath::unchecked());
/// let judge = |text| classifier.judge(text, Dialect::Bash);
///
/// assert_eq!(judge("git log --oneline | head -5").verdict(), Verdict::Allow);
/// assert_eq!(judge("git -c core.pager='sh -c id' log").verdict(), Verdict::Ask);
/// assert_eq!(
///     judge("cat ../../.ssh/id_ed25519").to_string(),
///     "ask: reads `../../.ssh/id_ed25519`, which may hold secrets",
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Classifier {
    pub(super) programs: Programs,
    pub(super) workspace: Workspace,
    pub(super) preset: Preset,
    pub(super) search_path: SearchPath,
}

impl Classifier {
    /// Judges commands for a workspace, with the programs that the crate knows, which are looked for in `PATH`.
    #[must_use]
    pub fn new(workspace: Workspace, preset: Preset) -> Self {
        Self {
            programs: Programs::built_in(),
            workspace,
            preset,
            search_path: SearchPath::from_env(),
        }
    }

    /// Other programs than those that the crate knows.
    #[must_use]
    pub fn programs(mut self, programs: Programs) -> Self {
        self.programs = programs;
        self
    }

    /// Where programs are looked for.
    #[must_use]
    pub fn search_path(mut self, search_path: SearchPath) -> Self {
        self.search_path = search_path;
        self
    }

    /// Reads a text and judges it. A text that is refused is asked about; the parts in front of the place that was not
    /// understood are judged, as one of them may be denied.
    #[must_use]
    pub fn judge(&self, text: &str, dialect: Dialect) -> Judgement {
        match Commands::parse(text, dialect) {
            Ok(commands) => self.classify(&commands),
            Err(refused) => {
                let mut judgement = self.classify(refused.read());
                judgement.refused = Some(refused.to_string());
                judgement
            }
        }
    }

    /// Judges commands by what each of them does.
    #[must_use]
    pub fn classify(&self, commands: &Commands) -> Judgement {
        let mut judging = Judging { classifier: self, parts: Vec::new(), depth: 0 };
        judging.list(commands, &[self.workspace.start().to_owned()]);
        if commands.pipelines().is_empty() {
            // Nothing, or only comments.
            return Judgement::default();
        }
        Judgement { parts: judging.parts, refused: None }
    }
}

/// What is known about the lines that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Paths in the workspace.
    Paths,
    Unknown,
}

/// What a command does for those behind it.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) lines: Lines,
    /// The directories it may have gone to.
    pub(super) directories: Option<Vec<PathBuf>>,
}

/// One judgement in the making.
pub(super) struct Judging<'a> {
    pub(super) classifier: &'a Classifier,
    pub(super) parts: Vec<Part>,
    pub(super) depth: usize,
}

/// A text in which a command could run in more directories than these is asked about.
const MAX_DIRECTORIES: usize = 8;

impl Judging<'_> {
    /// Judges a list that begins in one of these directories.
    pub(super) fn list(&mut self, commands: &Commands, start: &[PathBuf]) {
        // A `cd` may fail, so that what follows `;` may run in the directory before it.
        let mut all = start.to_vec();
        let mut succeeded: Option<Vec<PathBuf>> = None;
        for pipeline in &commands.pipelines {
            if pipeline.join != Join::And {
                succeeded = None;
            }
            let here = succeeded.clone().unwrap_or_else(|| all.clone());
            if let Some(there) = self.pipeline(pipeline, &here) {
                for directory in &there {
                    if !all.contains(directory) {
                        all.push(directory.clone());
                    }
                }
                succeeded = Some(there);
            }
            if all.len() > MAX_DIRECTORIES {
                self.ask_last("may run in too many directories");
                return;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, here: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let mut lines = Lines::Unknown;
        let mut directories = None;
        for stage in &pipeline.stages {
            match stage {
                Stage::Simple(command) => {
                    let left = Simple::new(command, here, lines).judge(self);
                    lines = left.lines;
                    directories = left.directories.or(directories);
                }
                Stage::Subshell { commands, redirections } => {
                    self.list(commands, here);
                    Simple::redirections_only(redirections, here).judge(self);
                    lines = Lines::Unknown;
                }
            }
        }
        directories
    }

    /// Asks about the part that was judged last.
    pub(super) fn ask_last(&mut self, why: &str) {
        if let Some(part) = self.parts.last_mut() {
            part.reasons.push(Reason {
                verdict: Verdict::Ask,
                every_time: false,
                text: why.to_owned(),
            });
        }
    }
}
