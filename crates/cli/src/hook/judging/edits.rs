//! Edits of the project's files, which a client may ask about in its own session.
//!
//! A person who works with a coding agent looks at its edits in the agent's own session. So `--ask edits` leaves these
//! questions to the client, and no others. The inbox asks about a command, a file elsewhere, the definition of a build, and
//! everything that the floor names. A rule says which calls are such edits, so the same code reads their paths as for all
//! rules.

use std::path::{Path, PathBuf};

use countersign::args::Args;
use countersign::decision::ToolDecision;
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;

/// The edits of the files of a project: of no protected place, of no definition of a build.
///
/// ```
/// use countersign::Args;
/// use countersign_cli::hook::EditedFiles;
///
/// let project = EditedFiles::within("/src/shop");
/// let edits = |path: &str| project.has("write_file", &Args::new().with("path", path).with("content", "x"));
/// assert!(edits("/src/shop/docs/a.md"));
/// for path in ["/src/other/a.md", "/src/shop/.git/config", "/src/shop/build.rs"] {
///     assert!(!edits(path), "{path}");
/// }
/// ```
#[derive(Debug, Clone)]
pub struct EditedFiles {
    root: PathBuf,
    home: Option<PathBuf>,
    protected: Vec<PathBuf>,
}

impl EditedFiles {
    /// Edits within this directory.
    #[must_use]
    pub fn within(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), home: None, protected: Vec::new() }
    }

    /// Sets the user's home directory, which `~` stands for; that of the environment by default.
    #[must_use]
    pub fn home(mut self, home: &Path) -> Self {
        self.home = Some(home.to_owned());
        self
    }

    /// Adds places that have to be asked about every time.
    #[must_use]
    pub fn protect(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(places);
        self
    }

    /// Returns `true` if a call in the common vocabulary is such an edit. Where that cannot be told, it is none.
    #[must_use]
    pub fn has(&self, tool: &str, args: &Args) -> bool {
        let rules =
            Rules::builder().root(&self.root).preset(Preset::Developer).edits_in_workspace();
        let rules = self.home.iter().fold(rules, |rules, home| rules.home(home));
        let rules = self.protected.iter().fold(rules, |rules, place| rules.protect(place));
        let call = RuleCall::new(tool, args.as_map());
        ["write_file", "edit_file", "patch"].contains(&tool)
            && rules.load().is_ok_and(|it| it.decide(&call).decision() == ToolDecision::Allow)
    }
}
