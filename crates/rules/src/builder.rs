//! Builds rules from presets, files and texts.
//!
//! A builder only collects. [`load`](RulesBuilder::load) reads the files, all of them or none: there is no moment at
//! which half of the files are in force.
//!
//! We make two engines. One decides about calls, with the root, the home directory and the search path of this machine.
//! The other runs the tests in the files: it looks at no file and has a root that is the same everywhere
//! (`/users/user/project`). So a file that passes its tests on one machine passes them on every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counts::{CallCounts, MemoryCounts};
use super::decision_journal::DecisionJournal;
use super::error::RulesError;
use super::handle::{Rules, Settings};
use super::preset;
use super::sources::{RulesOrigin, Sources};
use crate::calls::engine::{Engine, ShellField, test_engine};
use crate::calls::paths::Places;
use crate::calls::tool_pattern::ToolPattern;
use crate::sources::accepted::AcceptedRules;
use crate::sources::project::ProjectApprovals;
use countersign::call::{RunContext, ToolCall};
use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath};

/// Collects files and settings, and loads them together.
///
/// ```
/// use countersign_rules::Rules;
/// use countersign_shell::Preset;
///
/// let rules = Rules::builder().preset(Preset::Developer).root("/src/project").load()?;
/// # let _ = rules;
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `load`"]
pub struct RulesBuilder {
    origins: Vec<RulesOrigin>,
    root: PathBuf,
    home: Option<PathBuf>,
    lexical: bool,
    dialect: Dialect,
    programs: Option<Programs>,
    search_path: Option<SearchPath>,
    shells: Vec<ShellField>,
    protected: Vec<PathBuf>,
    own_files: Vec<PathBuf>,
    settings: Settings,
    approvals: Option<ProjectApprovals>,
    accepted: Option<AcceptedRules>,
    groups: BTreeMap<String, Vec<String>>,
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
            own_files: Vec::new(),
            settings: Settings {
                counts: Arc::new(MemoryCounts::default()),
                principal: Arc::new(|_, _| String::new()),
                journal: None,
                one_account: false,
            },
            approvals: None,
            accepted: None,
            groups: BTreeMap::new(),
        }
    }

    /// Rules for the workspace of the tests in files, which looks at no file.
    pub(super) fn for_tests() -> Self {
        Self::new().lexical().root(preset::TEST_ROOT).home(preset::TEST_HOME)
    }

    /// Adds a preset that comes with this crate.
    ///
    /// A preset is a file like any other: a stricter rule of yours wins over it, and its rules have ids of their own in
    /// questions and explanations.
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign_rules::{RuleCall, Rules};
    /// use countersign_shell::Preset;
    /// use serde_json::json;
    ///
    /// let rules = Rules::builder().lexical().preset(Preset::Developer).load()?;
    /// let decide = |command: &str| {
    ///     let args = json!({"command": command});
    ///     rules.decide(&RuleCall::new("shell", args.as_object().unwrap())).decision()
    /// };
    /// assert_eq!(decide("git status"), ToolDecision::Allow);
    /// assert_eq!(decide("git push"), ToolDecision::Ask);
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    pub fn preset(mut self, preset: Preset) -> Self {
        self.origins.push(RulesOrigin::Preset(preset));
        self
    }

    /// Lets edits of files in the workspace run unasked, but for those that the floor or a rule names, and for
    /// definitions of builds.
    ///
    /// ```
    /// use countersign_rules::{RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let rules = Rules::builder().lexical().root("/w").edits_in_workspace().load()?;
    /// let is_allowed = |path: &str| {
    ///     let args = json!({"path": path, "content": "x"});
    ///     rules.decide(&RuleCall::new("write_file", args.as_object().unwrap())).decision().is_allow()
    /// };
    /// assert!(is_allowed("src/lib.rs"));
    /// assert!(!is_allowed("../x") && !is_allowed("Makefile") && !is_allowed(".git/config"));
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    pub fn edits_in_workspace(mut self) -> Self {
        self.origins.push(RulesOrigin::Edits);
        self
    }

    /// Adds a file of the user. A file that is not there is an error.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.origins.push(RulesOrigin::File(path.into()));
        self
    }

    /// Adds rules from a text, under a name for errors and explanations. They count as a file of the user.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let rules = Rules::builder().text("a", "version = 1\n[[rule]]\nid = 'x'\nallow = 'read_file'").load()?;
    /// let same = Rules::builder().text("b", "# a comment\nversion = 1\n[[rule]]\nid = 'x'\nallow = 'read_file'").load()?;
    /// assert_eq!(rules.digest(), same.digest(), "the digest is of what the rules mean");
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.origins.push(RulesOrigin::Text(name.into(), text.into()));
        self
    }

    /// Adds the file of a project. It can narrow, and allows something only as far as these approvals hold its present
    /// form (rule R4).
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign_rules::{ProjectApprovals, RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let root = std::env::temp_dir().join(format!("countersign-doc-project-{}", std::process::id()));
    /// std::fs::create_dir_all(&root)?;
    /// let (file, approvals) = (root.join("countersign.toml"), ProjectApprovals::at(root.join("approvals.json")));
    /// let text = "version = 1\n[[rule]]\nid = 'look'\nallow = 'search'";
    /// std::fs::write(&file, text)?;
    ///
    /// let args = json!({});
    /// let decide = || -> Result<ToolDecision, countersign_rules::RulesError> {
    ///     let rules = Rules::builder().root(&root).project(&file, approvals.clone()).load()?;
    ///     Ok(rules.decide(&RuleCall::new("search", args.as_object().unwrap())).decision())
    /// };
    /// assert_eq!(decide()?, ToolDecision::Ask, "a project's file allows nothing by itself");
    /// approvals.approve(&root, text, "ann")?;
    /// assert_eq!(decide()?, ToolDecision::Allow);
    /// std::fs::remove_dir_all(&root)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn project(mut self, path: impl Into<PathBuf>, approvals: ProjectApprovals) -> Self {
        self.origins.push(RulesOrigin::Project(path.into()));
        self.approvals = Some(approvals);
        self
    }

    /// Compares each file of the user with the text that was accepted before, for a program that loads the files in each
    /// process. A change that may allow more decides together with it, and the stricter of both counts (rule R3), until
    /// the change is [accepted](AcceptedRules::accept). The example is at [`AcceptedRules`].
    pub fn accepted(mut self, accepted: AcceptedRules) -> Self {
        self.accepted = Some(accepted);
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
    ///
    /// Then a link that leads out of the workspace is not noticed. The tests in files always run this way.
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
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign_rules::{RuleCall, Rules};
    /// use countersign_shell::Preset;
    /// use serde_json::json;
    ///
    /// let rules = Rules::builder().lexical().preset(Preset::Developer).shell("mcp:ci/exec", "script")?.load()?;
    /// let args = json!({"script": "git status"});
    /// let call = RuleCall::new("exec", args.as_object().unwrap()).server("ci");
    /// let ruling = rules.decide(&call);
    /// assert!(ruling.spoke().iter().any(|spoke| spoke.part.as_deref() == Some("git status")), "judged command by command");
    /// # let _ = ToolDecision::Allow;
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    pub fn shell(mut self, tool: &str, field: impl Into<String>) -> Result<Self, RulesError> {
        let tool = ToolPattern::parse(tool).map_err(|problem| RulesError::new("shell", problem))?;
        self.shells.insert(0, ShellField { tool, field: field.into() });
        Ok(self)
    }

    /// Adds a file or folder that a person has to be asked about every time a tool may write it, such as the store and
    /// its keys (rule R5). The loaded files themselves are protected without being named.
    ///
    /// Protection is by place and not by name: a link to the store is the store. A folder protects everything below it,
    /// and a path above it is protected too, as a tool that may replace the folder may replace the store.
    pub fn protect(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.protected.push(std::fs::canonicalize(&absolute).unwrap_or(absolute));
        self
    }

    /// Adds files outside of the root that commands may read, as [`Workspace::with_own_files`] says.
    ///
    /// ```
    /// use countersign_rules::{RuleCall, Rules};
    /// use countersign_shell::Preset;
    /// use serde_json::json;
    ///
    /// let rules = Rules::builder().lexical().root("/w").own_files(["/tmp/out.txt"]).preset(Preset::Developer).load()?;
    /// let args = json!({"command": "tail -5 /tmp/out.txt"});
    /// assert!(rules.decide(&RuleCall::new("shell", args.as_object().unwrap())).decision().is_allow());
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    ///
    /// [`Workspace::with_own_files`]: countersign_shell::Workspace::with_own_files
    pub fn own_files(mut self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.own_files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Sets where the calls of rules with `at_most` are counted: in a [`Ledger`](countersign::ledger::Ledger) over all
    /// processes, or in the memory of this process, which is the default.
    ///
    /// In memory, a limit of ten calls an hour is a limit per process, and a restart forgets it. If you have several
    /// workers, use an implementation over a store that they share.
    pub fn counts(mut self, counts: impl CallCounts) -> Self {
        self.settings.counts = Arc::new(counts);
        self
    }

    /// Sets a function that gives the principal of a call, with a sync closure `(cx, call)`: `at_most` counts each principal separately. By
    /// default all calls
    /// count together.
    ///
    /// Calls with an equal name count together, and so do those with an empty one. Take the name from a session: if the
    /// model can choose the name, it can choose its limit.
    pub fn principal(
        mut self,
        principal: impl Fn(&RunContext, &ToolCall) -> String + Send + Sync + 'static,
    ) -> Self {
        self.settings.principal = Arc::new(principal);
        self
    }

    /// Sets the groups that `approvers = ["group:NAME"]` may name, with their members. A rule that names another group
    /// does not load. Who is a member counts when a person votes and when the call is claimed, by
    /// [`Ledger::groups`](countersign::ledger::Ledger::groups): give both the same source.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 2\n[[rule]]\nid = 'a'\nask = 'deploy'\napprovers = ['group:ops']";
    /// let load = |groups: &[(&str, Vec<String>)]| {
    ///     Rules::builder().lexical().groups(groups.iter().cloned()).text("mine.toml", text).load()
    /// };
    /// assert!(load(&[("ops", vec!["ann".to_owned()])]).is_ok());
    /// assert!(load(&[]).unwrap_err().to_string().contains("there is no group `ops`"));
    /// ```
    pub fn groups<N: Into<String>>(
        mut self,
        groups: impl IntoIterator<Item = (N, Vec<String>)>,
    ) -> Self {
        self.groups.extend(groups.into_iter().map(|(name, members)| (name.into(), members)));
        self
    }

    /// Says that one account can answer in the name of anyone: it runs the agent and can write the store. Then each
    /// question that certain people have to answer says that this protects from mistakes, and not from that account.
    ///
    /// ```
    /// use countersign_rules::{RuleCall, Rules};
    ///
    /// let text = "version = 2\n[[rule]]\nid = 'a'\nask = 'pay'\npeople = 2";
    /// let rules = Rules::builder().lexical().one_account(true).text("mine.toml", text).load()?;
    /// let none = serde_json::Map::new();
    /// let ruling = rules.decide(&RuleCall::new("pay", &none));
    /// assert!(ruling.spoke()[0].reason.contains("protects from mistakes, not from this account"));
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    pub fn one_account(mut self, one_account: bool) -> Self {
        self.settings.one_account = one_account;
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
        let workspace = places.workspace().with_own_files(self.own_files.clone());
        let mut classifier = Classifier::new(workspace, Preset::Developer);
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
            if let RulesOrigin::File(path) | RulesOrigin::Project(path) = origin {
                engine.protected.push(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
            }
        }
        let sources = Sources {
            origins: self.origins.clone(),
            approvals: self.approvals.clone(),
            accepted: self.accepted.clone(),
            groups: self.groups.clone(),
            tests: test_engine(&self.shells, self.programs.as_ref()),
        };
        let latest = sources.load(&engine)?;
        let sets = sources.before(&latest)?.into_iter().chain([latest]);
        let sets = sets.map(Arc::new).collect();
        Ok(Rules::new(self.settings, engine, sources, sets))
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
