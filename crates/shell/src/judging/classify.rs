//! The classifier, which judges commands part by part.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};

use super::everyday::{MAX_SCRIPTS, ask_about_changes};
use super::judgement::{Judgement, Part};
use super::simple::Judging;
use crate::places::definitions::{build_definitions, definitions_of};
use crate::places::git_settings::{GitSettings, git_settings};
use crate::places::links::MAX_ENTRIES;
use crate::places::paths::{PathClass, Workspace, is_build_definition};
use crate::places::search_path::{ProgramFile, SearchPath, installed_name};
use crate::preset::{ClassifierSettings, Preset};
use crate::syntax::commands::Commands;
use crate::syntax::dialect::Dialect;
use crate::table::{ProgramMark, Programs};

/// Judges the commands that run in one workspace.
///
/// ```
/// use countersign::decision::ToolDecision;
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
///     .with_search_path(SearchPath::unchecked());
/// let judge = |text| classifier.judge(text, Dialect::Bash);
///
/// assert_eq!(judge("git log --oneline | head -5").decision(), ToolDecision::Allow);
/// assert_eq!(judge("git -c core.pager='sh -c id' log").decision(), ToolDecision::Ask);
/// assert_eq!(
///     judge("cat ../../.ssh/id_ed25519").to_string(),
///     "ask: reads `../../.ssh/id_ed25519`, which may hold secrets",
/// );
/// ```
///
/// A classifier judges by what is true now: the search path, the links, the files that a pattern matches. Judge again
/// when the call is approved, as a layer does, and bind the question to what was judged ([`Judgement::digest`]).
#[derive(Debug, Clone)]
pub struct Classifier {
    settings: ClassifierSettings,
}

impl Classifier {
    /// Creates a classifier with the [built-in programs](Programs::built_in), which are looked up in `PATH`.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let reader = Classifier::new(Workspace::lexical("/w"), Preset::Reader).with_search_path(SearchPath::unchecked());
    /// assert!(reader.judge("grep -n main src/lib.rs", Dialect::Bash).decision() == countersign::decision::ToolDecision::Allow);
    /// let build = reader.judge("cargo test", Dialect::Bash);
    /// assert_eq!(build.to_string(), "ask: `cargo` runs code of the workspace");
    /// ```
    #[must_use]
    pub fn new(workspace: Workspace, preset: Preset) -> Self {
        let settings = ClassifierSettings {
            programs: Programs::built_in(),
            workspace,
            preset,
            search_path: SearchPath::from_env(),
        };
        Self { settings }
    }

    /// Whether a program is one that the system has installed: a path has to be in a folder of the system, and a name has
    /// not to be found where tools may write.
    ///
    /// Allowing `ls` means the system's `ls`: a tool that can write to a folder of the search path could put its own `ls`
    /// there, and be allowed to run it.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
    ///     .with_search_path(SearchPath::new(["/src/project/bin", "/usr/bin"]));
    /// assert!(classifier.is_installed("/usr/bin/env"));
    /// assert!(!classifier.is_installed("env"), "tools may write to the first folder");
    /// ```
    #[must_use]
    pub fn is_installed(&self, program: &str) -> bool {
        if program.contains('/') {
            return installed_name(program).is_some();
        }
        let found = self.settings.search_path.find(program, &self.settings.workspace);
        !matches!(found, ProgramFile::Problem(_))
    }

    /// Whether a path, relative to a directory, leads to a plain file or folder of the workspace, as it is written and as
    /// it resolves: not a secret, nothing that decides what runs or what is allowed, and no definition of a build.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer);
    /// assert!(classifier.is_plain_file("src/lib.rs", Path::new("/w")));
    /// for path in ["../x", ".env", ".git/config", "Cargo.toml", "~/x"] {
    ///     assert!(!classifier.is_plain_file(path, Path::new("/w")), "{path}");
    /// }
    /// ```
    #[must_use]
    pub fn is_plain_file(&self, path: &str, directory: &Path) -> bool {
        let workspace = &self.settings.workspace;
        let plain = |found: &PathBuf| {
            workspace.place(found) == PathClass::Inside && !is_build_definition(found)
        };
        let text = !path.starts_with('~') && !path.contains(['\0', '\n']);
        text && workspace.places(path, directory).is_some_and(|places| places.iter().all(plain))
    }

    /// Whether a path, relative to a directory, leads to the definition of a build in the workspace, as it is written and as
    /// it resolves.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer);
    /// assert!(classifier.is_build_definition("Cargo.toml", Path::new("/w")));
    /// assert!(!classifier.is_build_definition("../Cargo.toml", Path::new("/w")));
    /// ```
    #[must_use]
    pub fn is_build_definition(&self, path: &str, directory: &Path) -> bool {
        let workspace = &self.settings.workspace;
        let defines = |found: &PathBuf| {
            workspace.place(found) == PathClass::Inside && is_build_definition(found)
        };
        let text = !path.starts_with('~') && !path.contains(['\0', '\n']);
        text && workspace.places(path, directory).is_some_and(|places| places.iter().all(defines))
    }

    /// The file that the name of a program resolves to, whether the table knows the program or not. `None` where there is
    /// no such program, and where tools may write the file or put another one of this name in its place.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer);
    /// let searching = |folders: &[&str]| classifier.clone().with_search_path(SearchPath::new(folders.iter().copied()));
    /// assert!(searching(&["/usr/bin", "/bin"]).program_file("env").is_some());
    /// assert!(searching(&["/w/bin", "/usr/bin"]).program_file("env").is_none(), "tools may write to the first folder");
    /// ```
    #[must_use]
    pub fn program_file(&self, name: &str) -> Option<PathBuf> {
        match self.settings.search_path.find(name, &self.settings.workspace) {
            ProgramFile::File(file) | ProgramFile::Shim(file) => Some(file),
            ProgramFile::Nothing | ProgramFile::Problem(_) => None,
        }
    }

    /// The file that the name of a program resolves to now, where tools may write it or put another one of this name in its
    /// place. An approval is for this file.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer);
    /// let searching = |folders: &[&str]| classifier.clone().with_search_path(SearchPath::new(folders.iter().copied()));
    /// assert!(searching(&["/usr/bin", "/bin"]).doubtful_program("env").is_none(), "no tool may write there");
    /// assert!(searching(&["/w/bin", "/usr/bin"]).doubtful_program("env").unwrap().ends_with("bin/env"));
    /// ```
    #[must_use]
    pub fn doubtful_program(&self, name: &str) -> Option<PathBuf> {
        let search_path = &self.settings.search_path;
        match search_path.find(name, &self.settings.workspace) {
            ProgramFile::Problem(_) => search_path.first(name),
            ProgramFile::File(_) | ProgramFile::Shim(_) | ProgramFile::Nothing => None,
        }
    }

    /// Whether a word is the name of a program: of one in the table, or of one in the folders that are searched. What a shell
    /// has built in is none, as no other program can start it.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer)
    ///     .with_search_path(SearchPath::new(["/nonexistent"]));
    /// assert!(classifier.names_program("git") && !classifier.names_program("frobnicate"));
    /// assert!(!classifier.names_program("wait"));
    /// ```
    #[must_use]
    pub fn names_program(&self, word: &str) -> bool {
        self.settings.names_program(word)
    }

    /// The files that a pattern of a shell, such as `src/*.rs`, matches now, from a directory. Empty in a
    /// [`lexical`](Workspace::lexical) workspace, and `None` where there are too many to look at.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let classifier = Classifier::new(Workspace::new("."), Preset::Developer);
    /// assert_eq!(classifier.matches("Cargo.t?ml", Path::new(".")), Some(vec!["./Cargo.toml".into()]));
    /// ```
    #[must_use]
    pub fn matches(&self, pattern: &str, directory: &Path) -> Option<Vec<PathBuf>> {
        self.settings.workspace.matches(pattern, directory)
    }

    /// The files in a directory that define a build, and with it the code that a build runs, such as `Makefile` and
    /// `package.json`. None in a [`lexical`](Workspace::lexical) workspace.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let of = |workspace| Classifier::new(workspace, Preset::Developer).build_definitions(Path::new("."));
    /// assert!(of(Workspace::new(".")).contains(&"./Cargo.toml".into()));
    /// assert!(of(Workspace::lexical(".")).is_empty());
    /// ```
    #[must_use]
    pub fn build_definitions(&self, directory: &Path) -> Vec<PathBuf> {
        let looks = self.settings.workspace.looks();
        if looks { build_definitions(directory) } else { Vec::new() }
    }

    /// Returns `true` if git may work in another repository than that of the workspace, or of one of its worktrees, in a directory
    /// of the workspace: anyone who can write there may have made it. Never in a [`lexical`](Workspace::lexical) workspace.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let folder = std::env::temp_dir().join("a-workspace-with-another-repository");
    /// std::fs::create_dir_all(folder.join("vendor/lib/.git")).unwrap();
    /// std::fs::create_dir_all(folder.join("src")).unwrap();
    /// let classifier = Classifier::new(Workspace::new(&folder), Preset::Developer);
    /// assert!(classifier.has_another_repository(&folder.join("vendor/lib")));
    /// assert!(!classifier.has_another_repository(&folder.join("src")));
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// ```
    #[must_use]
    pub fn has_another_repository(&self, directory: &Path) -> bool {
        let workspace = &self.settings.workspace;
        workspace.looks()
            && !workspace.is_in_own_repository(directory)
            && workspace.worktree_of_git(directory).is_none()
    }

    /// The files in a directory that decide what the program of a command does there, beside definitions of builds:
    /// `compose.yaml` for `docker compose up`, `serverless.yml` for `npx serverless deploy`. None in a
    /// [`lexical`](Workspace::lexical) workspace.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, Workspace};
    /// use std::path::Path;
    ///
    /// let classifier = Classifier::new(Workspace::new("."), Preset::Developer);
    /// let of = |text: &str| {
    ///     let judged = classifier.judge(text, Dialect::Bash);
    ///     judged.parts().iter().flat_map(|it| classifier.definitions_of(it, Path::new("."))).collect::<Vec<_>>()
    /// };
    /// assert!(of("cargo publish").contains(&"./Cargo.toml".into()));
    /// assert!(of("docker compose up").is_empty());
    /// ```
    #[must_use]
    pub fn definitions_of(&self, part: &Part, directory: &Path) -> Vec<PathBuf> {
        let looks = self.settings.workspace.looks();
        if looks { definitions_of(part.argv(), part.wrapped_by(), directory) } else { Vec::new() }
    }

    /// The settings and the hooks of the repository that git finds in a directory, which decide where a command of git sends, and
    /// what runs with it. `branches` are the settings of branches as well. `None` without a repository, and in a
    /// [`lexical`](Workspace::lexical) workspace.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Preset, Workspace};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::create_dir_all(folder.path().join(".git"))?;
    /// std::fs::write(folder.path().join(".git/config"), "[remote \"origin\"]\nurl = https://git.example/x\n")?;
    /// let classifier = Classifier::new(Workspace::new(folder.path()), Preset::Developer);
    /// let settings = classifier.git_settings(folder.path(), false).unwrap();
    /// assert_eq!(settings.text, "remote \"origin\" url = https://git.example/x\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn git_settings(&self, directory: &Path, branches: bool) -> Option<GitSettings> {
        let looks = self.settings.workspace.looks();
        looks.then(|| git_settings(directory, branches)).flatten()
    }

    /// Whether a command runs words of its own as another command, as `sudo`, `watch` and `ssh` do, or is not known.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let runs = |text: &str| classifier.runs_its_words(&classifier.judge(text, Dialect::Bash).parts()[0]);
    /// assert!(runs("su -c ls") && runs("flock x ls") && runs("./deploy now"));
    /// assert!(!runs("git commit -m x") && !runs("grep x y"));
    /// ```
    #[must_use]
    pub fn runs_its_words(&self, part: &Part) -> bool {
        match part.program() {
            Some(name) => {
                self.settings.programs.get(name).is_none_or(|it| it.is(ProgramMark::Wraps))
            }
            None => !part.argv().is_empty(),
        }
    }

    /// Returns `true` if a command takes its input for text, and not for code, options or names of files.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let takes = |text: &str| classifier.takes_text(&classifier.judge(text, Dialect::Bash).parts()[0]);
    /// assert!(takes("tee x.txt") && takes("grep x") && !takes("make -f -") && !takes("./deploy"));
    /// ```
    #[must_use]
    pub fn takes_text(&self, part: &Part) -> bool {
        let entry = part.program().and_then(|name| self.settings.programs.get(name));
        entry.is_some_and(|entry| entry.takes_text(part.argv().get(1..).unwrap_or_default()))
    }

    /// Returns `true` if a word of a command is, as a whole, an option without a value: `-race` of `go test` is no `-r` with the value
    /// `ace`.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let go = classifier.judge("go test -race -run x", Dialect::Bash);
    /// assert!(classifier.is_flag(&go.parts()[0], "-race") && !classifier.is_flag(&go.parts()[0], "-run"));
    /// ```
    #[must_use]
    pub fn is_flag(&self, part: &Part, word: &str) -> bool {
        let entry = part.program().and_then(|name| self.settings.programs.get(name));
        entry.is_some_and(|entry| entry.is_flag(part.argv().get(1..).unwrap_or_default(), word))
    }

    /// Replaces the table of programs.
    #[must_use]
    pub fn with_programs(mut self, programs: Programs) -> Self {
        self.settings.programs = programs;
        self
    }

    /// Replaces the directories in which programs are looked up.
    #[must_use]
    pub fn with_search_path(mut self, search_path: SearchPath) -> Self {
        self.settings.search_path = search_path;
        self
    }

    /// Parses a text and judges its commands. A text that is refused gets at least ASK. The commands before the refused
    /// place are judged nevertheless, as one of them may be denied.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    /// use countersign::decision::ToolDecision;
    ///
    /// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let judgement = classifier.judge("rm -rf / ; select x in a; do ls; done", Dialect::Bash);
    /// assert_eq!(judgement.decision(), ToolDecision::Deny, "what was read before the refused place counts");
    /// assert!(judgement.refused().unwrap().contains("`select` begins a compound command"));
    /// ```
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
        let mut judging = Judging {
            settings: &self.settings,
            parts: Vec::new(),
            depth: 0,
            bindings: Vec::new(),
            fed: false,
            own_repository: OnceCell::new(),
            links_out: OnceCell::new(),
            activated: Vec::new(),
            visited: Vec::new(),
            entries_left: Cell::new(MAX_ENTRIES),
            in_loop: false,
            has_moved: false,
            secrets_left: Cell::new(MAX_ENTRIES),
            hands_on: false,
            scripts_left: Cell::new(MAX_SCRIPTS),
        };
        let after = judging.list(commands, &[self.settings.workspace.start().to_owned()]);
        if commands.pipelines().is_empty() {
            // The text is empty or has only comments, so nothing runs.
            return Judgement { left_in: after.directories, ..Judgement::default() };
        }
        ask_about_changes(&mut judging.parts);
        Judgement { parts: judging.parts, refused: None, left_in: after.directories }
    }
}
