//! The classifier, which judges commands part by part.

use std::path::PathBuf;

use super::commands::{Commands, Join, Pipeline, Stage};
use super::dialect::Dialect;
use super::judgement::{Judgement, Part, Reason, Verdict};
use super::paths::Workspace;
use super::search_path::SearchPath;
use super::simple::Simple;
use super::table::Programs;

/// Which commands are allowed without a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Reading in the workspace and the public parts of the system; building, testing, checking and formatting the
    /// workspace; querying services, local or with the user's credentials, without changing anything there. Builds run
    /// the workspace's own code.
    Developer,
    /// Reading in the workspace and the public parts of the system, and nothing else.
    Reader,
}

/// Judges the commands that run in one workspace.
///
/// ```
/// use countersign::shell::{Classifier, Dialect, Preset, SearchPath, Verdict, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
///     .with_search_path(SearchPath::unchecked());
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
    /// Creates a classifier with the [built-in programs](Programs::built_in), which are looked up in `PATH`.
    #[must_use]
    pub fn new(workspace: Workspace, preset: Preset) -> Self {
        Self {
            programs: Programs::built_in(),
            workspace,
            preset,
            search_path: SearchPath::from_env(),
        }
    }

    /// Replaces the table of programs.
    #[must_use]
    pub fn with_programs(mut self, programs: Programs) -> Self {
        self.programs = programs;
        self
    }

    /// Replaces the directories in which programs are looked up.
    #[must_use]
    pub fn with_search_path(mut self, search_path: SearchPath) -> Self {
        self.search_path = search_path;
        self
    }

    /// Parses a text and judges its commands. A text that is refused gets at least ASK. The commands before the refused
    /// place are judged nevertheless, as one of them may be denied.
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

    /// Judges commands that were parsed before.
    #[must_use]
    pub fn classify(&self, commands: &Commands) -> Judgement {
        let mut judging = Judging { classifier: self, parts: Vec::new(), depth: 0 };
        judging.list(commands, &[self.workspace.start().to_owned()]);
        if commands.pipelines().is_empty() {
            // The text is empty or has only comments, so nothing runs.
            return Judgement::default();
        }
        Judgement { parts: judging.parts, refused: None }
    }
}

/// What is known about the lines of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Every line is a path in the workspace. A path may have blanks, so that words of it may be any path.
    Paths,
    /// The same, with NUL after each path.
    NulPaths,
    Unknown,
}

/// What a command means for the commands after it.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) lines: Lines,
    /// The directories that a `cd` may have changed to.
    pub(super) directories: Option<Vec<PathBuf>>,
    /// Whether the command is a `cd` of this shell, so that its success means that the directory was changed.
    pub(super) is_cd: bool,
}

/// What a pipeline means for the pipelines after it.
struct Went {
    directories: Vec<PathBuf>,
    /// Whether the success of the pipeline means that the directory was changed.
    certain: bool,
}

/// The state of one judgement.
pub(super) struct Judging<'a> {
    pub(super) classifier: &'a Classifier,
    pub(super) parts: Vec<Part>,
    pub(super) depth: usize,
}

/// The maximum number of directories that one command may run in, depending on which `cd` succeeds. Beyond it, a person
/// is asked.
const MAX_DIRECTORIES: usize = 8;

impl Judging<'_> {
    /// Judges a list of commands that starts in one of these directories.
    pub(super) fn list(&mut self, commands: &Commands, start: &[PathBuf]) {
        // Directories of commands that run regardless of the result before: as any `cd` may fail, these are all
        // directories so far. After `&&` the previous command succeeded, so only its directories count.
        let mut all = start.to_vec();
        let mut succeeded: Option<Vec<PathBuf>> = None;
        for pipeline in &commands.pipelines {
            if pipeline.join != Join::And {
                succeeded = None;
            }
            let here = succeeded.clone().unwrap_or_else(|| all.clone());
            if let Some(Went { directories, certain }) = self.pipeline(pipeline, &here) {
                for directory in &directories {
                    if !all.contains(directory) {
                        all.push(directory.clone());
                    }
                }
                // After `a || cd b &&`, the next pipeline also runs where `a` succeeded and `cd` did not run.
                succeeded = (certain && pipeline.join != Join::Or).then_some(directories);
            }
            if all.len() > MAX_DIRECTORIES {
                self.ask_last("may run in too many directories");
                return;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, here: &[PathBuf]) -> Option<Went> {
        let mut lines = Lines::Unknown;
        let mut went: Option<Went> = None;
        // In `bash`, the stages of a pipeline run in shells of their own; in `zsh`, the last one does not.
        let alone = pipeline.stages.len() == 1 && !pipeline.negated;
        for stage in &pipeline.stages {
            match stage {
                Stage::Simple(command) => {
                    let left = Simple::new(command, here, lines).judge(self);
                    lines = left.lines;
                    if let Some(directories) = left.directories {
                        went = Some(Went { directories, certain: alone && left.is_cd });
                    }
                }
                Stage::Subshell { commands, redirections } => {
                    self.list(commands, here);
                    Simple::redirections_only(redirections, here).judge(self);
                    lines = Lines::Unknown;
                }
            }
        }
        went
    }

    /// Adds an ASK to the last part.
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
