//! The environment that a client hands on to the hook, and to the commands that it runs (rule
//! P5).
//!
//! A project can set it: Claude Code takes `env` of a project's settings, and Gemini CLI loads a project's `.env`. For
//! example, rules allow `git diff`, but with `GIT_EXTERNAL_DIFF` that command runs any program. So we ask where a
//! variable concerns the call and is known to change what a program does, unless it was there, with the same value, when
//! the hook was installed.
//!
//! We judge the settings of a client that a project brings the other way round ([`ProjectSettings`]): there, a variable
//! concerns every call unless it is known to be harmless.
//!
//! [`ProjectSettings`]: crate::hook::ProjectSettings
//!
//! The environment at the installation is kept as a private file of digests, as values may be secrets. The table of
//! variables is that of the module [`shell`](countersign_shell), which also judges the assignments in front of
//! commands.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::ConfigError;
use crate::hook::clients::Client;
use crate::hook::digest::digest;
use crate::hook::judging::shells;
use countersign::args::Args;
use countersign_shell::{ActingVariable, Classifier, Dialect, Preset, SearchPath, Workspace};

/// The number of variables that a question names.
const MAX_NAMED: usize = 4;

/// The variables of an environment that change what programs do.
///
/// ```
/// use std::path::Path;
/// use countersign_cli::hook::Environment;
///
/// let home = Path::new("/u/ann");
/// let named = [("GIT_SSH", "./ssh"), ("LANG", "C"), ("HOME", "/u/ann"), ("PAGER", "less -R")];
/// let found = Environment::of(named.map(|(name, value)| (name.into(), value.into())), home);
/// assert_eq!(found.names().collect::<Vec<_>>(), ["GIT_SSH"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<Variable>,
    /// The root of the session, whose places no daily variable may name.
    root: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// Of the name and the value.
    digest: String,
    /// The programs that it changes; `None` for a setting of a client that is not known, which may change each call.
    acts: Option<ActingVariable>,
    /// `true` if a file of the project sets it.
    is_of_project: bool,
    /// `true` if programs load libraries of the folder that they work in because of it.
    loads_here: bool,
    /// `true` if it was there, with this value, when the hook was installed. Such a variable is kept only if it
    /// [loads](Self::loads_here) here.
    is_recorded: bool,
}

impl Variable {
    /// A setting of a client that is not known.
    fn of_client(name: String, digest: String) -> Self {
        Self {
            name,
            digest,
            acts: None,
            is_of_project: true,
            loads_here: false,
            is_recorded: false,
        }
    }
}

/// The reason why a call is asked about because of its environment.
pub(crate) struct EnvironmentDoubt {
    pub(crate) reason: String,
    /// The names and the digests of the values, to which an approval is bound.
    pub(crate) pins: Vec<(String, String)>,
}

impl Environment {
    /// The variables of this process. `home` is the home directory of the user.
    #[must_use]
    pub fn of_process(home: &Path) -> Self {
        Self::of(std::env::vars_os(), home)
    }

    /// The variables among these, in the order of their names. The usual values of `HOME`, `XDG_CONFIG_HOME` and
    /// `XDG_DATA_HOME` for this home directory change nothing.
    #[must_use]
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>, home: &Path) -> Self {
        let usual = [
            ("HOME", home.to_owned()),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_DATA_HOME", home.join(".local").join("share")),
        ];
        let mut found = Vec::new();
        for (name, value) in variables {
            if usual.iter().any(|(usual, path)| name == *usual && value == path.as_os_str()) {
                continue;
            }
            let (name, text) = (name.to_string_lossy(), value.to_string_lossy());
            if let Some(acts) = ActingVariable::find(&name, &text) {
                let digest = digest_of(&name, &value);
                let acts = Some(acts);
                let loads_here = loads_of_folder(&name, &text);
                found.push(Variable {
                    name: name.into_owned(),
                    digest,
                    acts,
                    is_of_project: false,
                    loads_here,
                    is_recorded: false,
                });
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Self { variables: found, root: None }
    }

    /// The variables among these that a file of a project sets for every program: those of the tables.
    pub(crate) fn of_project(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        home: &Path,
    ) -> Self {
        let mut this = Self::of(variables, home);
        this.variables.iter_mut().for_each(|it| it.is_of_project = true);
        this
    }

    /// The variables among these that the settings of a client set: all but those that are known to be harmless. A client
    /// knows names that no table has, such as that of a program that runs each command and each hook.
    pub(crate) fn of_client_settings(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let set = variables.into_iter().map(|(name, value)| {
            let digest = digest_of(&name.to_string_lossy(), &value);
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned(), digest)
        });
        let set = set.filter(|(name, value, _)| !ActingVariable::is_harmless(name, value));
        let variables = set.map(|(name, _, digest)| Variable::of_client(name, digest));
        let mut this = Self { variables: variables.collect(), root: None };
        this.variables.sort_by(|one, other| one.name.cmp(&other.name));
        this
    }

    /// The variables among these that an editor gives to the commands of its own client: those of the tables concern the
    /// programs that they change, and others each call, but for those that are known to be harmless.
    pub(crate) fn of_terminal_settings(set: Vec<(OsString, OsString)>, home: &Path) -> Self {
        let known = Self::of_project(set.clone(), home);
        let mut others = Self::of_client_settings(set);
        others.variables.retain(|it| known.names().all(|name| name != it.name));
        known.and(others)
    }

    /// A setting of a client that is no variable, and concerns each call.
    pub(crate) fn of_setting(name: &str, value: &str) -> Self {
        let digest = digest(json!(["setting", name, value]));
        let name = name.to_owned();
        let variable = Variable::of_client(name, digest);
        Self { variables: vec![variable], root: None }
    }

    /// Sets the root of the session. What version managers and editors set anew in each terminal is no reason to ask unless
    /// it names a place in there.
    #[must_use]
    pub fn of_session(mut self, root: &Path) -> Self {
        self.root = Some(root.to_owned());
        self
    }

    /// Both together. A variable of a process that a file of the project sets as well is one of the project.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.variables.retain(|it| {
            it.is_of_project || other.variables.iter().all(|of_file| of_file.digest != it.digest)
        });
        self.variables.extend(other.variables);
        self.variables.sort_by(|one, other| one.name.cmp(&other.name));
        self.variables.dedup();
        self
    }

    /// The names of the variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|it| it.name.as_str())
    }

    /// Returns `true` for a variable that was there when the hook was installed, and lets programs load the libraries that are where
    /// they work: `LD_LIBRARY_PATH=/opt/lib:`.
    #[must_use]
    pub fn lets_folders_load(&self, name: &str) -> bool {
        self.variables.iter().any(|it| it.name == name && it.is_recorded)
    }

    /// The file in the user's state directory in which the environment is recorded when the hook of a client is
    /// installed.
    #[must_use]
    pub fn record_in(state: &Path, client: Client) -> PathBuf {
        state.join("environment").join(client.name())
    }

    /// Records the environment in a file that only this user can read or write: later it is no reason to ask.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be written, or others could change it.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Environment};
    ///
    /// # let state = tempfile::tempdir().unwrap();
    /// let now = |value: &str| Environment::of([("GIT_SSH".into(), value.into())], Path::new("/u/ann"));
    /// let record = Environment::record_in(state.path(), Client::Codex);
    /// now("ssh -4").record(&record)?;
    /// assert_eq!(now("ssh -4").without_recorded(&record)?.names().count(), 0);
    /// assert_eq!(now("./evil").without_recorded(&record)?.names().count(), 1);
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn record(&self, file: &Path) -> Result<(), ConfigError> {
        let lines: String =
            self.variables.iter().map(|it| format!("{} {}\n", it.digest, it.name)).collect();
        crate::config::write_private(file, &lines)
    }

    /// Removes what was recorded, for a hook that is removed.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be removed. That there is none is no error.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Environment};
    ///
    /// # let state = tempfile::tempdir().unwrap();
    /// let record = Environment::record_in(state.path(), Client::Codex);
    /// Environment::default().record(&record)?;
    /// Environment::forget(&record)?;
    /// assert!(!record.exists() && Environment::forget(&record).is_ok());
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn forget(file: &Path) -> Result<(), ConfigError> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ConfigError::File { path: file.to_owned(), problem: error.into() })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// This environment without the variables that a file has recorded, with the same values. Without the file, nothing
    /// is recorded. A recorded `LD_LIBRARY_PATH` with an empty folder stays: it stands for the folder that a program works in.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read, or others could have changed it.
    pub fn without_recorded(mut self, file: &Path) -> Result<Self, ConfigError> {
        if self.variables.is_empty() {
            return Ok(self);
        }
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self),
            Err(error) => {
                return Err(ConfigError::File { path: file.to_owned(), problem: error.into() });
            }
        };
        crate::config::check_private(file)?;
        let known: BTreeSet<&str> =
            text.lines().filter_map(|line| line.split(' ').next()).collect();
        self.variables
            .iter_mut()
            .for_each(|it| it.is_recorded = known.contains(it.digest.as_str()));
        self.variables.retain(|it| !it.is_recorded || it.loads_here);
        Ok(self)
    }

    /// The reason why a call has to be asked about, by the tool and the arguments of the common vocabulary: a variable
    /// concerns a program that the call runs.
    pub(crate) fn doubt(
        &self,
        tool: &str,
        args: &Args,
        directory: &Path,
    ) -> Option<EnvironmentDoubt> {
        if self.variables.is_empty() {
            return None;
        }
        let is_daily = |it: &&Variable| {
            let mut folders = self.root.iter().map(PathBuf::as_path).chain([directory]);
            !it.is_of_project
                && it.acts.as_ref().is_some_and(|acts| folders.all(|folder| acts.is_daily(folder)))
        };
        let acts = |it: &Variable, concerns: &dyn Fn(&ActingVariable) -> bool| {
            it.acts.as_ref().is_none_or(concerns)
        };
        let mut found: Vec<&Variable> = self.variables.iter().collect();
        match (tool, args.str("command")) {
            ("shell", Some(command)) => {
                // Which programs run is known from the text alone.
                let judge = Classifier::new(Workspace::lexical(directory), Preset::Developer)
                    .with_search_path(SearchPath::unchecked());
                let judgement = judge.judge(command, Dialect::Bash);
                found.retain(|it| acts(it, &|known| known.concerns(&judgement)));
            }
            ("shell" | "shell_input", _) => {}
            // Clients search by running ripgrep.
            ("search_files" | "find_files", _) => {
                found.retain(|it| acts(it, &|known| known.acts_on("rg")));
            }
            _ => found.retain(|it| it.acts.is_none()),
        }
        found.retain(|it| !is_daily(it));
        let may_load =
            || has_library(directory) || args.str("command").is_some_and(shells::changes_directory);
        found.retain(|it| !it.is_recorded || may_load());
        if found.is_empty() {
            return None;
        }
        let reason = reason_of(&found);
        let pins = found.iter().map(|it| (it.name.clone(), it.digest.clone())).collect();
        Some(EnvironmentDoubt { reason, pins })
    }
}

/// The reason to ask because of these variables, for people.
fn reason_of(found: &[&Variable]) -> String {
    let (recorded, added): (Vec<_>, Vec<_>) = found.iter().copied().partition(|it| it.is_recorded);
    let (settings, variables): (Vec<_>, Vec<_>) =
        added.into_iter().partition(|it| it.acts.is_none());
    let mut reasons = Vec::new();
    if !recorded.is_empty() {
        reasons.push(format!(
            "{} has an empty or relative folder, so that programs load the libraries that are where they work",
            named(&recorded)
        ));
    }
    if !settings.is_empty() {
        reasons.push(format!(
            "settings of the project have {}: they may change what this call does, and were not there when the hook was \
             installed",
            named(&settings)
        ));
    }
    if !variables.is_empty() {
        reasons.push(format!(
            "the environment has {}, which may change what this call does, and had not when the hook was installed",
            named(&variables)
        ));
    }
    reasons.join("; ")
}

/// Returns `true` if a list of folders in which libraries are looked for has one that is relative, or empty and so the folder that
/// a program works in: `/opt/lib:`.
fn loads_of_folder(name: &str, value: &str) -> bool {
    (name.starts_with("LD_") || name.starts_with("DYLD_"))
        && name.ends_with("_PATH")
        && value.split([':', ';']).any(|folder| !folder.starts_with('/'))
}

/// Returns `true` if a folder has a file with the name of a library that programs load, or cannot be read.
fn has_library(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.contains(".so") || name.contains(".dylib")
    })
}

/// The names of variables for people, of which the first few are enough.
fn named(found: &[&Variable]) -> String {
    let mut all: Vec<_> = found.iter().map(|it| format!("`{}`", it.name.escape_debug())).collect();
    all.dedup();
    if all.len() > MAX_NAMED {
        let more = all.len() - MAX_NAMED;
        all.truncate(MAX_NAMED);
        all.push(format!("{more} more"));
    }
    all.join(", ")
}

fn digest_of(name: &str, value: &OsStr) -> String {
    digest(json!(["variable", name, value.as_encoded_bytes()]))
}
