//! Tells whether reading the workspace's own repository runs programs.
//!
//! `git status` runs `core.fsmonitor`, and filters for files that have changed; `git diff` runs `diff.external`; `git log
//! -p` runs `textconv`; a refresh of the index runs a hook. All of these are set in the configuration of the repository,
//! which is read here as a text, and never by running git. A file that cannot be read, or is too large, counts as one
//! that names a program, and so does a repository within the working tree, which git enters.
//!
//! Keys that git reads only where it asks a person, talks to a remote or changes something are left out, as these
//! commands are asked about.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::files::{bounded_text, git_folder, may_be_repository, trimmed, without_line_end};
use super::index::has_others_within;
use super::paths::Workspace;
use super::registries::MAX_CONFIGURATION;

/// How many files of configuration may include each other.
const MAX_FILES: usize = 16;

/// The folder that `git rev-parse --show-toplevel` prints in a directory of the workspace. `None` where settings, variables or
/// links may lead elsewhere, and in a [`lexical`](Workspace::lexical) workspace.
pub(crate) fn toplevel(workspace: &Workspace, here: &Path) -> Option<PathBuf> {
    let is_moved = ["GIT_DIR", "GIT_WORK_TREE"].iter().any(|name| std::env::var_os(name).is_some());
    if !workspace.looks() || is_moved || !fs::canonicalize(here).is_ok_and(|it| it == here) {
        return None;
    }
    let inside = |at: &&Path| at.starts_with(workspace.root());
    let top = here.ancestors().take_while(inside).find(|at| may_be_repository(at))?;
    let dot = top.join(".git");
    let is_folder = fs::symlink_metadata(&dot).is_ok_and(|it| it.is_dir());
    let is_plain = |file: &str| match bounded_text(&dot.join(file), MAX_CONFIGURATION) {
        Ok(None) => true,
        Ok(Some(text)) => settings(&text).is_some_and(|all| {
            let moves = |it: &Setting| match (it.section.as_str(), it.key.as_str()) {
                ("core", "bare") => it.value != "false",
                ("core", "worktree") | ("include" | "includeif", _) => true,
                _ => false,
            };
            !all.iter().any(moves)
        }),
        Err(_) => false,
    };
    let is_known = is_folder && ["config", "config.worktree"].into_iter().all(is_plain);
    is_known.then(|| top.to_owned())
}

/// Returns `true` if commands that read a working tree of the workspace's repository may run programs that its settings name.
pub(crate) fn worktree_runs_programs(tree: &Path) -> bool {
    names_programs(&tree.join(".git")).unwrap_or(true)
}

/// Whether the settings of a repository name programs. An error if they cannot be read. Those of a repository within
/// its working tree count as if they did.
pub(super) fn names_programs(dot: &Path) -> io::Result<bool> {
    let own = git_folder(dot)?;
    let common = common_folder(&own)?;
    let configurations =
        vec![own.join("config"), own.join("config.worktree"), common.join("config")];
    Ok(common.join("hooks/post-index-change").exists()
        || has_others_within(&own).unwrap_or(true)
        || any_names_program(configurations))
}

/// The folder of a repository that its working trees share.
pub(super) fn common_folder(own: &Path) -> io::Result<PathBuf> {
    Ok(match bounded_text(&own.join("commondir"), MAX_CONFIGURATION)? {
        Some(text) => own.join(without_line_end(&text)),
        None => own.to_owned(),
    })
}

/// Whether one of these files, or one that they include, names a program.
fn any_names_program(mut open: Vec<PathBuf>) -> bool {
    let mut read = Vec::new();
    while let Some(path) = open.pop() {
        if read.contains(&path) {
            continue;
        }
        if read.len() >= MAX_FILES {
            return true;
        }
        match bounded_text(&path, MAX_CONFIGURATION) {
            Ok(None) => {}
            Ok(Some(text)) => {
                let Some(included) = includes(&text) else { return true };
                let folder = path.parent().unwrap_or(Path::new(""));
                open.extend(included.iter().map(|name| expanded(name, folder)));
            }
            Err(_) => return true,
        }
        read.push(path);
    }
    false
}

/// The path that a setting names, relative to a folder.
pub(super) fn expanded(name: &str, folder: &Path) -> PathBuf {
    match (name.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(name),
    }
}

/// A setting in a configuration: the section in lower case, its second part as it is written, the key in lower case, and the
/// value.
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) of: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// The settings in a configuration; `None` if it cannot be read as git reads it.
pub(super) fn settings(text: &str) -> Option<Vec<Setting>> {
    let mut found = Vec::new();
    let mut section = (String::new(), String::new());
    // A mark of the byte order is passed over.
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let mut line = trimmed(line);
        // A continued line could hide a key.
        if line.ends_with('\\') {
            return None;
        }
        // Several headers may stand in one line, and a key behind them.
        while let Some(header) = line.strip_prefix('[') {
            let (header, rest) = split_header(header)?;
            section = header;
            line = trimmed(rest);
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (trimmed(key).to_ascii_lowercase(), trimmed(value).trim_matches('"'));
        let (section, of) = section.clone();
        found.push(Setting { section, of, key, value: value.to_owned() });
    }
    Some(found)
}

/// The files that a configuration includes; `None` if it names a program, or cannot be read as git reads it.
fn includes(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for Setting { section, key, value, .. } in settings(text)? {
        match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => match is_plain_path(&value) {
                true => found.push(value),
                false => return None,
            },
            (section, key) if names_program(section, key, &value) => return None,
            _ => {}
        }
    }
    Some(found)
}

/// Whether git takes a value for this path: it is not quoted, commented or expanded, but for the home at its beginning.
fn is_plain_path(value: &str) -> bool {
    let rest = value.strip_prefix("~/").unwrap_or(value);
    !rest.contains(['"', '\\', '#', ';']) && !rest.starts_with(['~', '%'])
}

/// The name of a section in lower case, its second part, and what stands behind the header. A `]` may be a part of a
/// quoted name.
fn split_header(header: &str) -> Option<((String, String), &str)> {
    let mut quoted = false;
    let mut escaped = false;
    let end = header.char_indices().find(|(_, c)| {
        let ends = *c == ']' && !quoted;
        quoted ^= *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    })?;
    let (name, rest) = header.split_at_checked(end.0)?;
    let section = name.split([' ', '\t', '.', '"']).next()?;
    let of = name.get(section.len()..)?.trim_matches([' ', '\t', '.', '"']);
    Some(((section.to_ascii_lowercase(), of.to_owned()), rest.get(1..)?))
}

/// Whether git runs the value of a key, or fetches with it, when it only reads; or reads another working tree.
fn names_program(section: &str, key: &str, value: &str) -> bool {
    let is_switch = || {
        let value = value.to_ascii_lowercase();
        matches!(value.as_str(), "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" | "")
    };
    match (section, key) {
        ("core", "fsmonitor") => !is_switch(),
        ("core", "hookspath" | "worktree" | "alternaterefscommand" | "sshcommand") => true,
        ("diff", "external" | "command" | "textconv") => true,
        // Git looks into the repositories of sub-modules then, also into those that only its history names.
        ("diff", "submodule") => !matches!(value, "short" | "log"),
        // `git log --remerge-diff` merges again.
        ("merge", "driver") => true,
        ("filter", "clean" | "smudge" | "process") => true,
        ("gpg", "program" | "defaultkeycommand") => true,
        // It prints a line of the file that it does not expect.
        ("blame", "ignorerevsfile") | ("core", "attributesfile") | ("fsck", "skiplist") => true,
        // A file that is missing here is fetched while the history is read.
        ("remote", "promisor" | "partialclonefilter") | ("extensions", "partialclone") => true,
        ("hook", _) => true,
        // Shown on a terminal, and by `git help`.
        ("core", "pager") | ("pager", _) => !is_switch(),
        ("man", "viewer" | "cmd" | "path") | ("browser", "cmd" | "path") => true,
        ("help" | "web" | "instaweb", "browser") => true,
        ("tar", "command") => true,
        // Sub-commands of later versions: an earlier git takes an alias of this name.
        ("alias", "last-modified" | "diff-pairs" | "format-rev" | "command") => true,
        _ => false,
    }
}

/// Whether a setting that a command of git is given, `core.pager=less`, may run a program, or names more settings.
///
/// ```
/// use countersign_shell::setting_runs;
///
/// assert!(setting_runs("alias.x=!ls") && setting_runs("diff.lfs.textconv=./x"));
/// assert!(!setting_runs("user.name=Ann") && !setting_runs("core.pager=cat"));
/// ```
#[must_use]
pub fn setting_runs(setting: &str) -> bool {
    const QUIET: &[&str] = &[
        "",
        "0",
        "1",
        "/dev/null",
        ":",
        "cat",
        "false",
        "less",
        "more",
        "nano",
        "no",
        "off",
        "on",
        "true",
        "vi",
        "vim",
        "yes",
    ];
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.trim().to_ascii_lowercase();
    let (section, rest) = key.split_once('.').unwrap_or((&key, ""));
    let name = rest.rsplit('.').next().unwrap_or_default();
    let runs = match (section, name) {
        // An alias may be any command of git, and with `!` any program.
        ("alias" | "include" | "includeif" | "sendemail" | "guitool" | "trailer" | "lfs", _) => {
            true
        }
        ("core", "editor" | "askpass" | "gitproxy") => true,
        ("credential", "helper") => value.contains(['!', '/', ' ', '$']),
        ("sequence", "editor") | ("interactive", "difffilter") | ("init", "templatedir") => true,
        ("mergetool" | "difftool", "cmd" | "path") => true,
        ("remote", "uploadpack" | "receivepack" | "vcs" | "url" | "pushurl") => true,
        ("uploadpack", "packobjectshook") | ("submodule", "update" | "url") => true,
        ("url", "insteadof" | "pushinsteadof") | ("imap", "tunnel") => true,
        ("protocol", "allow") => rest.starts_with("ext."),
        _ => names_program(section, name, value),
    };
    runs && !QUIET.contains(&value.trim())
}

/// The arguments of a program, with those that keep git from running what a repository's settings name, where it only
/// reads. They stand in front of the given ones, so that an option of the caller still counts.
///
/// Filters are left as they are: without them, git would show every file of theirs as changed.
pub(crate) fn without_programs<'a>(program: &str, args: &[&'a str]) -> Vec<&'a str> {
    let git = matches!(program.rsplit(['/', '\\']).next(), Some("git" | "git.exe"));
    let mut at = 0;
    while let Some(option) = args.get(at).filter(|arg| arg.starts_with('-')) {
        at += if GIT_VALUES.contains(option) { 2 } else { 1 };
    }
    let Some(command) = args.get(at).filter(|command| git && GIT_READS.contains(command)) else {
        return args.to_vec();
    };
    let more: &[&str] = match *command {
        "diff" | "log" | "show" | "whatchanged" | "diff-tree" | "diff-index" | "diff-files" => {
            &["--no-ext-diff", "--no-textconv"]
        }
        "blame" | "annotate" | "grep" => &["--no-textconv"],
        _ => &[],
    };
    let (front, back) = args.split_at_checked(at + 1).unwrap_or((args, &[]));
    [GIT_QUIET, front, more, back].concat()
}

/// Options of git in front of a sub-command whose value is the next word.
pub const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Sub-commands that read the working tree or the history.
const GIT_READS: &[&str] = &[
    "annotate",
    "blame",
    "check-attr",
    "check-ignore",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fsck",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "whatchanged",
];

/// No program that watches files, no hooks, and no rewriting of the index.
const GIT_QUIET: &[&str] = &[
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "diff.autoRefreshIndex=false",
];
