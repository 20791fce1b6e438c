//! Builds rules from presets, files and texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counts::{CallCounts, MemoryCounts};
use super::engine::{Engine, ShellField};
use super::error::RulesError;
use super::handle::{Rules, Settings};
use super::journal::DecisionJournal;
use super::paths::Places;
use super::preset;
use super::project::ProjectApprovals;
use super::sources::{Origin, Sources};
use super::tool_pattern::ToolPattern;
use crate::call::{RunContext, ToolCall};
use crate::shell::{Classifier, Dialect, Preset, Programs, SearchPath};

/// Collects files and settings, and loads them together.
///
/// ```
/// use countersign::rules::Rules;
/// use countersign::shell::Preset;
///
/// let rules = Rules::builder().preset(Preset::Developer).root("/src/project").load()?;
/// # let _ = rules;
/// # Ok::<(), countersign::rules::RulesError>(())
/// ```
#[must_use = "a builder does nothing until `load`"]
pub struct RulesBuilder {
    origins: Vec<Origin>,
    root: PathBuf,
    home: Option<PathBuf>,
    lexical: bool,
    dialect: Dialect,
    programs: Option<Programs>,
    search_path: Option<SearchPath>,
    shells: Vec<ShellField>,
    protected: Vec<PathBuf>,
    settings: Settings,
    approvals: Option<ProjectApprovals>,
}

impl std::fmt::Debug for RulesBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RulesBuilder")
            .field("origins", &self.origins)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl RulesBuilder {
    pub(super) fn new() -> Self {
        Self {
            origins: Vec::new(),
            root: PathBuf::from("."),
            home: None,
            lexical: false,
            dialect: Dialect::Bash,
            programs: None,
            search_path: None,
            shells: Engine::known_shells(),
            protected: Vec::new(),
            settings: Settings {
                counts: Arc::new(MemoryCounts::default()),
                principal: Arc::new(|_, _| String::new()),
                journal: None,
            },
            approvals: None,
        }
    }

    /// Adds a preset that comes with this crate.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.origins.push(Origin::Preset(preset));
        self
    }

    /// Adds a file of the user. A file that is not there is an error.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.origins.push(Origin::File(path.into()));
        self
    }

    /// Adds rules from a text, under a name for errors and explanations. They count as a file of the user.
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.origins.push(Origin::Text(name.into(), text.into()));
        self
    }

    /// Adds the file of a project. It can narrow, and allows something only as far as these approvals hold its present
    /// form (rule R4).
    pub fn project(mut self, path: impl Into<PathBuf>, approvals: ProjectApprovals) -> Self {
        self.origins.push(Origin::Project(path.into()));
        self.approvals = Some(approvals);
        self
    }

    /// Sets the root of the workspace, which relative paths start in; the current directory by default.
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets the user's home directory; that of the environment by default.
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Judges paths by their text alone: no file is examined, no link followed and no program looked up. For tests, and
    /// for calls that run on another machine.
    pub fn lexical(mut self) -> Self {
        self.lexical = true;
        self
    }

    /// Sets the shell that commands are written for; Bash by default.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Replaces the table of programs.
    pub fn programs(mut self, programs: Programs) -> Self {
        self.programs = Some(programs);
        self
    }

    /// Replaces the directories in which programs are looked up; those of `PATH` by default.
    pub fn search_path(mut self, search_path: SearchPath) -> Self {
        self.search_path = Some(search_path);
        self
    }

    /// Declares that a tool runs the text of a field in a shell. `shell`, `bash` and some others with the field
    /// `command` are known.
    ///
    /// # Errors
    /// [`RulesError`] if `tool` is no pattern over tools.
    pub fn shell(mut self, tool: &str, field: impl Into<String>) -> Result<Self, RulesError> {
        let tool = ToolPattern::parse(tool).map_err(|problem| RulesError::new("shell", problem))?;
        self.shells.insert(0, ShellField { tool, field: field.into() });
        Ok(self)
    }

    /// Adds a file or folder that a person has to be asked about every time a tool may write it, such as the store and
    /// its keys (rule R5). The loaded files themselves are protected without being named.
    pub fn protect(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.protected.push(std::fs::canonicalize(&absolute).unwrap_or(absolute));
        self
    }

    /// Sets where the calls of rules with `at_most` are counted: in a [`Ledger`](crate::ledger::Ledger) over all
    /// processes, or in the memory of this process, which is the default.
    pub fn counts(mut self, counts: impl CallCounts) -> Self {
        self.settings.counts = Arc::new(counts);
        self
    }

    /// Sets a function that gives the principal of a call, with a sync closure `(cx, call)`: `at_most` counts each principal separately. By
    /// default all calls
    /// count together.
    pub fn principal(
        mut self,
        principal: impl Fn(&RunContext, &ToolCall) -> String + Send + Sync + 'static,
    ) -> Self {
        self.settings.principal = Arc::new(principal);
        self
    }

    /// Records every decision of the layer in a journal.
    pub fn journal(mut self, journal: DecisionJournal) -> Self {
        self.settings.journal = Some(journal);
        self
    }

    /// Loads all files.
    ///
    /// # Errors
    /// [`RulesError`] with every problem of the first file that has one: no file is loaded in parts, and none without
    /// the others (rule R3).
    pub fn load(self) -> Result<Rules, RulesError> {
        let mut places =
            if self.lexical { Places::lexical(&self.root) } else { Places::new(&self.root) };
        if let Some(home) = self.home.clone() {
            places.set_home(home);
        }
        let mut classifier = Classifier::new(places.workspace(), Preset::Developer);
        if let Some(programs) = self.programs.clone() {
            classifier = classifier.with_programs(programs);
        }
        if let Some(path) = self.search_path.clone() {
            classifier = classifier.with_search_path(path);
        } else if self.lexical {
            classifier = classifier.with_search_path(SearchPath::unchecked());
        }
        let mut engine = Engine {
            places,
            classifier,
            dialect: self.dialect,
            shells: self.shells.clone(),
            protected: self.protected.clone(),
        };
        for origin in &self.origins {
            if let Origin::File(path) | Origin::Project(path) = origin {
                engine.protected.push(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
            }
        }
        let sources = Sources {
            origins: self.origins.clone(),
            approvals: self.approvals.clone(),
            tests: test_engine(&self.shells, self.programs.as_ref()),
        };
        let set = sources.load(&engine)?;
        Ok(Rules::new(self.settings, engine, sources, set))
    }
}

impl Rules {
    /// Loads files of the user, for the current directory.
    ///
    /// # Errors
    /// [`RulesError`] with file, line and column of each problem. Then no file is loaded.
    pub fn load<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, RulesError> {
        paths.into_iter().fold(Self::builder(), |builder, path| builder.file(path.as_ref())).load()
    }

    /// A builder for rules from several sources.
    pub fn builder() -> RulesBuilder {
        RulesBuilder::new()
    }
}

/// The engine that tests in files run with: a workspace that is the same on every machine.
pub(super) fn test_engine(shells: &[ShellField], programs: Option<&Programs>) -> Engine {
    let mut places = Places::lexical(Path::new(preset::TEST_ROOT));
    places.set_home(PathBuf::from(preset::TEST_HOME));
    let classifier = Classifier::new(places.workspace(), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    Engine {
        classifier: match programs {
            Some(programs) => classifier.with_programs(programs.clone()),
            None => classifier,
        },
        places,
        dialect: Dialect::Bash,
        shells: shells.to_vec(),
        protected: Vec::new(),
    }
}
