//! Classifies paths: inside the workspace, secret, protected, or elsewhere.
//!
//! | place | examples | read | written |
//! |---|---|---|---|
//! | inside | `src/lib.rs` | allowed | allowed for a developer, unless it defines a build |
//! | system | `/usr/include`, `/etc/hosts` | allowed | asked |
//! | stream | `/dev/null` | allowed | allowed |
//! | secret | `.env`, `~/.ssh`, `/proc/1/environ` | asked | asked |
//! | protected | `.git/config`, the configuration of agents | allowed | asked, every time |
//! | outside | `~/x`, `/srv` | asked; listing is allowed | asked |
//! | beside | another working tree of the project's repository, outside of the root | allowed | asked |
//!
//! A working tree below the root is inside, with its own secrets and protected places (`worktrees`).
//!
//! Names are compared without regard to case, since some file systems ignore it. A name that ends in `.example` or the
//! like is harmless: people keep templates of secrets beside them.
//!
//! A home directory that is not known stands for `/home`: `~/.ssh/id` is then below a place that is outside of every
//! workspace, and a secret by its names.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::files::may_be_repository;
use super::lexical::{inside, lexically_normal};
use super::worktrees::{may_be_in_own_worktree, worktree_of, worktrees};
use crate::names::globs::{fits, is_glob};
use crate::names::lists::{is_named, lower, names};
use crate::names::protected::is_protected;
use crate::syntax::commands::Word;
use crate::table::parts;

type Resolve = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

/// The directory tree that commands may work in.
///
/// ```
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
///
/// let workspace = Workspace::lexical("/w").with_directory("sub").with_home("/people/ann");
/// let classifier = Classifier::new(workspace, Preset::Developer).with_search_path(SearchPath::unchecked());
/// let judge = |text| classifier.judge(text, Dialect::Bash).to_string();
/// assert_eq!(judge("cat ../README.md"), "allow", "relative paths start in /w/sub");
/// assert_eq!(judge("cat ../../other/README.md"), "ask: reads `../../other/README.md`, outside of the workspace");
/// assert!(judge("cat ~/.ssh/id_ed25519").contains("secrets"));
/// ```
#[derive(Clone)]
pub struct Workspace {
    root: PathBuf,
    directory: PathBuf,
    home: Option<PathBuf>,
    writable: Vec<PathBuf>,
    /// Files elsewhere that may be read.
    own_files: Vec<PathBuf>,
    resolve: Arc<Resolve>,
    /// Whether files of this machine are examined.
    looks: bool,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace")
            .field("root", &self.root)
            .field("directory", &self.directory)
            .finish()
    }
}

impl Workspace {
    /// A workspace on this machine. Symbolic links are followed; commands start in the root.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let given = root.into();
        let root = std::fs::canonicalize(&given).unwrap_or(given);
        let mut workspace = Self::lexical(root);
        workspace.home = std::env::home_dir();
        workspace.looks = true;
        workspace.with_resolver(|path| resolved(path, through))
    }

    /// A workspace that is judged by paths alone: no file is examined and no link followed. For tests, and for commands
    /// that will run on another machine. A relative root begins in the current directory.
    #[must_use]
    pub fn lexical(root: impl Into<PathBuf>) -> Self {
        // Where there is no current directory, nothing is in the workspace.
        let current = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/dev/null"));
        let root = match root.into() {
            root if root.is_absolute() => lexically_normal(&root),
            root => lexically_normal(&current().join(root)),
        };
        Self {
            directory: root.clone(),
            writable: vec![
                root.clone(),
                PathBuf::from("/tmp"),
                PathBuf::from("/var/tmp"),
                PathBuf::from("/dev/shm"),
            ],
            root,
            home: None,
            own_files: Vec::new(),
            resolve: Arc::new(|path| Some(path.to_owned())),
            looks: false,
        }
    }

    /// Sets the directory that commands start in, relative to the root; the root by default.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = lexically_normal(&self.root.join(directory.into()));
        self
    }

    /// Sets the user's home directory, which `~` stands for.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Adds a place that tools may write to. A program in such a place is never allowed.
    #[must_use]
    pub fn with_writable(mut self, place: impl Into<PathBuf>) -> Self {
        self.writable.push(lexically_normal(&place.into()));
        self
    }

    /// Adds files outside of the workspace whose content may be read, such as those that approved commands have written. A
    /// path counts as it is written and as it resolves, so that a link is none of them.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// let workspace = Workspace::lexical("/w").with_own_files(["/tmp/out.txt"]);
    /// let classifier = Classifier::new(workspace, Preset::Developer).with_search_path(SearchPath::unchecked());
    /// let is_allowed = |text| classifier.judge(text, Dialect::Bash).decision().is_allow();
    /// assert!(is_allowed("tail -5 /tmp/out.txt"));
    /// assert!(!is_allowed("cat /tmp/other.txt") && !is_allowed("echo x > /tmp/out.txt"));
    /// ```
    #[must_use]
    pub fn with_own_files(mut self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.own_files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Sets how a path is resolved to the file that it leads to. `None` means that it cannot be resolved, and a person
    /// is asked.
    fn with_resolver(
        mut self,
        resolve: impl Fn(&Path) -> Option<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        self.resolve = Arc::new(resolve);
        self
    }

    /// Returns `true` if a file outside of the workspace may be read: one of those that were added, or of the user's home a
    /// text for agents, or the source of an installed package. What may hold secrets by its name is not asked about here.
    pub(crate) fn is_public(&self, path: &Path) -> bool {
        if self.own_files.iter().any(|file| file == path) {
            return true;
        }
        let Some(inner) = self.home.as_deref().and_then(|home| inside(path, home)) else {
            return false;
        };
        let below = |list: &str| names(list).iter().any(|folder| inner.starts_with(folder));
        let is_text = inner.extension().is_some_and(|it| it == "md");
        is_text && below("folders of texts") || below("folders of sources")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn start(&self) -> &Path {
        &self.directory
    }

    /// Whether files of this machine are examined: never in a [`lexical`](Self::lexical) workspace.
    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// Returns `true` if it is certain that git works in the workspace's own repository in a directory: in the root, in the
    /// directory in which commands begin, and where no repository begins between a directory and the root. The last is never
    /// certain in a [`lexical`](Self::lexical) workspace.
    pub(crate) fn is_in_own_repository(&self, directory: &Path) -> bool {
        directory == self.root
            || directory == self.start()
            || self.begins_none(directory, &self.root)
    }

    /// The working tree that git works in, where that is one of the workspace's own repository.
    pub(crate) fn worktree_of_git(&self, directory: &Path) -> Option<PathBuf> {
        self.worktree(directory).filter(|tree| self.begins_none(directory, tree))
    }

    fn begins_none(&self, directory: &Path, top: &Path) -> bool {
        let mut between = directory.ancestors().take_while(|at| *at != top);
        self.looks && directory.starts_with(top) && !between.any(may_be_repository)
    }

    /// Whether the program of the first word is installed in `node_modules` of each of these directories, or of one
    /// above it in the root. Never in a [`lexical`](Self::lexical) workspace.
    pub(crate) fn has_installed(&self, words: &[Word], here: &[PathBuf]) -> bool {
        let Some(name) = words.first().and_then(Word::literal) else { return false };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = !name.is_empty() && !name.starts_with('-') && name.chars().all(plain);
        let has = |at: &Path| at.join("node_modules/.bin").join(name).exists();
        let inside = |at: &&Path| at.starts_with(&self.root);
        let is_there = |at: &PathBuf| at.ancestors().take_while(inside).any(has);
        self.looks && is_name && here.iter().all(is_there)
    }

    /// Whether tools may write to a path.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|place| path.starts_with(place))
    }

    /// The files that a pattern matches now, beginning in this directory. Empty in a [`lexical`](Self::lexical)
    /// workspace, and `None` where there are too many to look at.
    #[must_use]
    pub fn matches(&self, glob: &str, directory: &Path) -> Option<Vec<PathBuf>> {
        if !self.looks {
            return Some(Vec::new());
        }
        let (base, rest) = match (glob.strip_prefix("~/"), glob.strip_prefix('/'), &self.home) {
            (Some(rest), _, Some(home)) => (home.as_path(), rest),
            (Some(_), _, None) => return None,
            (_, Some(rest), _) => (Path::new("/"), rest),
            _ => (directory, glob),
        };
        let mut left = MAX_LOOKED_AT;
        let mut found = vec![base.to_owned()];
        for part in rest.split('/').filter(|part| !part.is_empty()) {
            if !is_glob(part) {
                found.iter_mut().for_each(|path| path.push(part));
                continue;
            }
            let mut next = if part == "**" { found.clone() } else { Vec::new() };
            let mut at = 0;
            // With `**`, what was found is looked into, too.
            while let Some(folder) = found.get(at).cloned() {
                at += 1;
                // Some shells find the folder above by `.*`.
                if part.starts_with('.') && fits(part, "..") {
                    next.push(folder.join(".."));
                }
                for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                    left = usize::checked_sub(left, 1)?;
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    if !fits(part, &name) || name.starts_with('.') && !part.starts_with('.') {
                        continue;
                    }
                    next.push(entry.path());
                    if part == "**" && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        found.push(entry.path());
                    }
                }
            }
            found = next;
        }
        Some(found)
    }

    /// The two places that a path stands for: as it is written, and as it is resolved.
    pub(crate) fn places(&self, text: &str, directory: &Path) -> Option<[PathBuf; 2]> {
        let joined = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => match &self.home {
                Some(home) => home.join(rest.trim_start_matches('/')),
                None => Path::new(UNKNOWN_HOME).join(rest.trim_start_matches('/')),
            },
            _ => directory.join(text),
        };
        let resolved = (self.resolve)(&joined)?;
        Some([lexically_normal(&joined), lexically_normal(&resolved)])
    }

    /// Returns `true` if one of the places that a path stands for in these directories passes a test of what is there now.
    pub(crate) fn any_place(
        &self,
        text: &str,
        here: &[PathBuf],
        is_one: fn(&Path) -> bool,
    ) -> bool {
        let mut found = here.iter().filter_map(|directory| self.places(text, directory)).flatten();
        self.looks() && found.any(|place| is_one(&place))
    }
}

/// How many files are looked at for one pattern.
const MAX_LOOKED_AT: usize = 4096;

const UNKNOWN_HOME: &str = "/home";

/// Resolves the longest existing beginning of a path, and appends the rest. `None` for a link that leads nowhere, as it
/// could lead anywhere later. What does not exist has no parent: a path with `..` after such a part is resolved by
/// `parent`.
///
/// ```
/// use std::path::Path;
/// use countersign_shell::resolved;
///
/// assert_eq!(resolved(Path::new("/no such folder/a"), |_| None).unwrap(), Path::new("/no such folder/a"));
/// assert_eq!(resolved(Path::new("/no such folder/../a"), |_| None), None);
/// ```
///
/// A file that will be created has a folder that exists; the folder is resolved and the name appended. A link that
/// leads nowhere is unknown, as creating its target afterwards would make it lead there.
pub fn resolved(path: &Path, parent: impl FnOnce(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Ok(found) = std::fs::canonicalize(path) {
        return Some(found);
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let mut exist = above.into_iter().take_while(|at| std::fs::symlink_metadata(at).is_ok());
    let at = exist.by_ref().last()?;
    let rest = path.strip_prefix(at).ok()?;
    if rest.components().any(|part| part == Component::ParentDir) {
        return parent(path);
    }
    // A link that leads nowhere is the last part that exists.
    let next = rest.components().next()?;
    match std::fs::symlink_metadata(at.join(next)) {
        Ok(_) => None,
        Err(_) => std::fs::canonicalize(at).ok().map(|found| found.join(rest)),
    }
}

/// Resolves a path with `..` after what does not exist (`mkdir -p a && cd a && cmake ..`). Like any path to what does not
/// exist, it is judged as if no link were created there before it is used: the commands that create links are not allowed.
fn through(path: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = at.pop(),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => {
                at.push(component);
                match std::fs::canonicalize(&at) {
                    Ok(found) => at = found,
                    Err(_) if std::fs::symlink_metadata(&at).is_ok() => return None,
                    Err(_) => {}
                }
            }
        }
    }
    Some(at)
}

/// The class of a path, by its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathClass {
    /// In the workspace, and in none of the other classes.
    Inside,
    /// A part of the system that every user can read and that contains no secrets.
    System,
    /// `/dev/null` and the standard streams.
    Stream,
    /// Contains keys, passwords, or the environment of processes.
    Secret,
    /// In the workspace, and decides what runs or what is allowed: `.git`, and the configuration of agents.
    Protected,
    /// In a working tree of the project's repository that is outside of the root, and in none of the other classes.
    Beside,
    /// Any other place.
    Outside,
}

impl Workspace {
    /// Classifies a path that has no `.` and `..`.
    pub(crate) fn place(&self, path: &Path) -> PathClass {
        let text = path.to_string_lossy();
        if text.starts_with("/dev/") && names("streams").contains(&&*text) {
            return PathClass::Stream;
        }
        if let Some(inner) = inside(path, &self.root) {
            return match inner {
                inner if is_secret(&inner.to_string_lossy()) => PathClass::Secret,
                inner if is_protected(inner) => self.place_in_own_worktree(path),
                _ => PathClass::Inside,
            };
        }
        if is_secret(&text) {
            return PathClass::Secret;
        }
        if is_system(&text) {
            return PathClass::System;
        }
        match self.worktree(path) {
            Some(tree) if is_protected(inside(path, &tree).unwrap_or(path)) => PathClass::Protected,
            Some(_) => PathClass::Beside,
            None => PathClass::Outside,
        }
    }

    /// The class of a path below the root that is protected by its names, which those of a working tree of Claude Code
    /// are, too.
    fn place_in_own_worktree(&self, path: &Path) -> PathClass {
        let tree = Some(path).filter(|path| may_be_in_own_worktree(path, &self.root));
        match tree.and_then(|path| self.worktree(path)) {
            Some(tree)
                if may_be_in_own_worktree(&tree, &self.root)
                    && !is_protected(inside(path, &tree).unwrap_or(path)) =>
            {
                PathClass::Inside
            }
            _ => PathClass::Protected,
        }
    }

    /// The working tree of the project's repository that a path is in, beside the first one. Never in a
    /// [`lexical`](Self::lexical) workspace.
    pub(crate) fn worktree(&self, path: &Path) -> Option<PathBuf> {
        if !self.looks {
            return None;
        }
        let all = worktrees(&self.root, self.home.as_deref());
        worktree_of(path, &all).map(Path::to_owned)
    }

    /// Returns `true` if a directory is in the root, or in a working tree of its repository.
    pub(crate) fn has(&self, directory: &Path) -> bool {
        directory.starts_with(&self.root) || self.worktree(directory).is_some()
    }

    /// The root, or the working tree below it that a path is in.
    pub(crate) fn root_of(&self, path: &Path) -> PathBuf {
        let own = Some(path).filter(|path| may_be_in_own_worktree(path, &self.root));
        own.and_then(|path| self.worktree(path)).unwrap_or_else(|| self.root.clone())
    }
}

/// Whether a path contains keys or passwords, by the names in it.
pub(crate) fn is_secret(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        if is_named("secret folders", part) || (last && is_secret_file(part)) {
            return true;
        }
    }
    let below = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    below(names("secret places"))
        || path.starts_with("/proc/")
            && path.split('/').any(|part| names("secrets of processes").contains(&part))
        || path.starts_with("/etc/ssh/") && path.contains("_key")
        || names("secret ends of paths").iter().any(|end| Path::new(path).ends_with(end))
}

fn is_secret_file(name: &str) -> bool {
    let lowered = lower(name);
    let mut lower = &*lowered;
    // The last is that of a copy in the Finder.
    let endings = names("endings of copies").iter().chain(&[" copy"]);
    while let Some(of) = endings.clone().find_map(|it| lower.strip_suffix(it)) {
        lower = of;
    }
    for harmless in names("harmless endings") {
        if lower.ends_with(harmless) {
            return false;
        }
    }
    is_named("secret files", lower)
        || names("secret endings").iter().any(|ending| lower.ends_with(ending))
        || [".env.", ".env-", ".env_", ".envrc.", ".dev.vars", "id_rsa", "id_ed25519"]
            .iter()
            .any(|beginning| lower.starts_with(beginning))
        || is_data_of_secrets(lower)
}

/// Returns `true` for a file of data whose name says that secrets are in it: `client_secret_123.json`.
fn is_data_of_secrets(lower: &str) -> bool {
    let is_about = |stem: &str| {
        let letters = stem.replace(['-', '_', '.'], "");
        names("texts of secrets").iter().any(|text| letters.contains(text))
            || parts(stem).any(|part| names("words of secrets").contains(&part))
    };
    let mut endings = names("endings of data").iter();
    endings.find_map(|it| lower.strip_suffix(it)).is_some_and(is_about) || is_key_alone(lower)
}

/// Returns `true` for a file that holds nothing but a key or a token: `.openai_api_key`, `stripe_key.txt`. A lone `tokens.txt` may be
/// about any, and a public key is no secret.
fn is_key_alone(lower: &str) -> bool {
    let endings = names("endings of lone keys");
    let stem = endings.iter().find_map(|it| lower.strip_suffix(it)).unwrap_or(lower);
    let stem = stem.trim_start_matches('.');
    let words: Vec<&str> = parts(stem).collect();
    let is_one = !stem.contains('.') && words.iter().any(|it| names("words of keys").contains(it));
    is_one
        && (words.len() > 1 || lower.starts_with('.'))
        && !words.iter().any(|it| it.starts_with("pub"))
}

/// Whether a file defines the build of the workspace, and with it the code that a build runs.
pub(crate) fn is_build_definition(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let in_cargo = path.parent().is_some_and(|folder| folder.ends_with(".cargo"));
    in_cargo
        || names("build definitions").contains(&&*name)
        || names("build definition endings").iter().any(|ending| lower(&name).ends_with(ending))
}

/// Whether a path of the system is readable for every user and contains no secrets.
fn is_system(path: &str) -> bool {
    let below = |place: &str| {
        path == place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
    };
    names("system folders").iter().any(|place| below(place))
        && !names("folders of settings").iter().any(|place| below(place))
        || names("system files").contains(&path)
}
