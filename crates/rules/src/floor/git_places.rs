//! Commands of git that work in another repository, or write settings of one: the questions `floor/git` (rule R5).
//!
//! A repository has settings that run programs. So we ask about a command that works in another repository than that of
//! the workspace, however it gets there: by a directory, an option or a variable.

use std::path::{Path, PathBuf};

use crate::calls::git_words::GitWords;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::{Part, setting_runs};

/// The reasons why a command is asked about.
pub(crate) fn reasons(
    examined: &ExaminedCall<'_>,
    part: &Part,
    only_reads: bool,
) -> Vec<&'static str> {
    let mut found = Vec::new();
    if part.program_name().eq_ignore_ascii_case("git") {
        let words = GitWords::of(part);
        if is_elsewhere(examined, part, &words.moves) {
            found.push(
                "uses a repository outside of the workspace, whose settings may run programs",
            );
        }
        if !only_reads && is_within(examined, part, &words.moves) {
            found.push("uses another repository in the workspace, whose settings may run programs");
        }
        if !only_reads && writes_settings(&words) {
            found.push("writes the settings of the repository, which may run programs");
        }
        if words.settings.iter().any(|setting| runs(setting)) {
            found.push("has a setting that may run a program, or names more settings");
        }
    }
    if moves_git(examined, part) {
        found.push(
            "makes git use a place outside of the workspace, whose settings may run programs",
        );
    }
    found
}

/// Returns `true` if a setting may run a program. One that a variable holds may have any value:
/// `--config-env=core.pager=X`.
fn runs(setting: &str) -> bool {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    setting_runs(setting) || key.contains('$')
}

/// Returns `true` if a command of git writes its settings.
fn writes_settings(words: &GitWords<'_>) -> bool {
    let has = |known: &[&str]| words.rest.iter().any(|word| known.contains(&word.as_str()));
    match words.sub {
        Some("branch") => {
            has(&["--track", "-t", "-u", "--edit-description", "--unset-upstream"])
                || words
                    .rest
                    .iter()
                    .any(|it| it.starts_with("--set-up") || it.starts_with("--track="))
        }
        Some("sparse-checkout") => !has(&["list", "check-rules"]),
        // It asks the remote, and changes nothing here.
        Some("remote") if words.rest.first().is_some_and(|it| it == "show") => false,
        Some(sub) => GIT_SETTINGS.contains(&sub) && !has(GIT_GETS),
        None => false,
    }
}

/// Sub-commands of git that write its settings, unless they are known to read.
const GIT_SETTINGS: &[&str] =
    &["config", "init", "remote", "submodule", "lfs", "maintenance", "scalar"];

/// Words with which `git config` prints settings and changes none.
const GIT_GETS: &[&str] =
    &["--list", "-l", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "get", "list"];

/// Returns `true` if `git` may work outside of the root, by a directory that it may start in or by an option.
fn is_elsewhere(examined: &ExaminedCall<'_>, part: &Part, moves: &[&str]) -> bool {
    let root = examined.places().root();
    part.directories().iter().any(|directory| {
        let is_own = directory.starts_with(root) || examined.worktree_of(directory).is_some();
        !is_own || moves.iter().any(|it| is_outside(examined, it, directory))
    })
}

/// Returns `true` if `git` may work in a repository that lies in the workspace and is not the workspace's own.
fn is_within(examined: &ExaminedCall<'_>, part: &Part, moves: &[&str]) -> bool {
    let is_another = |place: &Path| {
        place.starts_with(examined.places().root())
            && examined.engine.classifier.has_another_repository(place)
    };
    part.directories().iter().any(|directory| {
        let named = |text: &&str| {
            let places = examined.places().of(text, directory);
            places.is_ok_and(|all| all.iter().any(|it| is_another(it)))
        };
        is_another(directory) || moves.iter().any(named)
    })
}

fn is_outside(examined: &ExaminedCall<'_>, text: &str, directory: &Path) -> bool {
    let outside = |place: &PathBuf| {
        !place.starts_with(examined.places().root())
            && examined.worktree_of(place).is_none()
            && *place != Path::new("/dev/null")
    };
    examined.places().of(text, directory).map_or(true, |places| places.iter().any(outside))
}

/// Variables that move git to another repository, or to other settings.
const GIT_PLACES: &[&str] = &[
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];

/// Returns `true` if a variable moves git to another place, which is asked about as such.
pub(super) fn is_place(variable: &str) -> bool {
    GIT_PLACES.contains(&variable)
}

/// Returns `true` if a command sets such a variable to a place outside of the root: `GIT_DIR=/tmp/x git log`, `export
/// GIT_DIR=/tmp/x`.
fn moves_git(examined: &ExaminedCall<'_>, part: &Part) -> bool {
    let set = part.assignments().iter().map(|it| (it.name(), it.value().text()));
    let words = part.argv().iter().filter_map(|word| word.split_once('='));
    set.chain(words).filter(|(name, _)| GIT_PLACES.contains(name)).any(|(_, value)| {
        value.starts_with('$') && !value.starts_with("$PWD")
            || part.directories().iter().any(|it| is_outside(examined, value, it))
    })
}
