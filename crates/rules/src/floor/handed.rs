//! Files that one command finds and another one writes (rule R5).
//!
//! `find . -name config -exec sed -i … {} +` and `grep -rl x . | xargs sed -i …` write files that no word names. So we look
//! up the files that the first command finds, as we do for calls that read below folders. If something protected is among
//! them, a person is asked. If there are too many files to look up, a person is asked, too, unless the command finds only
//! files with names that are ordinary ones of code (`*.rs`).

use std::path::{Path, PathBuf};

use crate::calls::command::CommandView;
use crate::calls::glob::Glob;
use crate::calls::texts;
use crate::folders::sweeps;
use crate::folders::sweeps::Sweep;
use crate::folders::swept;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::{Effect, Part};

/// The command that may write something protected that another one finds, or finds it and deletes it.
pub(crate) fn writer(
    examined: &ExaminedCall<'_>,
    view: &CommandView,
    is_protected: impl Fn(&Path) -> bool,
) -> Option<usize> {
    let writes = |part: &Part| sweeps::gets_names(part) && may_write(part) || acts(part);
    let part = view.parts().iter().position(writes)?;
    let sweeps = sweeps::of_names(view.parts(), view.commands());
    let has_some = |sweep: &Sweep| has_protected(examined, sweep, &is_protected);
    sweeps.iter().any(has_some).then_some(part)
}

/// Returns `true` if a command deletes what it finds, or runs a program on it that is no command of its own here.
fn acts(part: &Part) -> bool {
    let words = part.argv();
    match part.program_name() {
        "fd" | "fdfind" => words.windows(2).any(|pair| match pair {
            [option, program] => {
                matches!(&**option, "-x" | "-X" | "--exec" | "--exec-batch")
                    && !texts::prints(program)
            }
            _ => false,
        }),
        _ => words.iter().any(|it| it == "-delete"),
    }
}

/// Returns `true` if a command may write the files that it is given.
fn may_write(part: &Part) -> bool {
    let is_harmless = |effect: &Effect| {
        matches!(
            effect,
            Effect::Reads(_)
                | Effect::Lists(_)
                | Effect::Wraps(_)
                | Effect::Queries(_)
                | Effect::Sends(_)
                | Effect::RunsWorkspace
                | Effect::ChangesDirectory(_)
                | Effect::RevealsEnvironment
        )
    };
    let name = part.program_name();
    let of_git = |word: &String| READS_OF_GIT.contains(&&**word);
    if name == "git" && part.argv().get(1).is_some_and(of_git) || RUN_OTHERS.contains(&name) {
        return false;
    }
    if texts::only_prints(part) {
        return false;
    }
    let is_known = !part.effects().is_empty() && part.effects().iter().all(is_harmless);
    let only_runs = is_known && part.effects().iter().any(runs);
    !(part.reasons().is_empty() || only_runs || is_reader(part))
}

fn runs(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::RunsWorkspace | Effect::Wraps(_) | Effect::Queries(_) | Effect::Sends(_)
    )
}

/// Programs whose own words name no file that they write: what they run is a command of its own.
const RUN_OTHERS: &[&str] = &["cd", "export", "fd", "find", "read", "xargs"];

/// Sub-commands of git that write no file of the workspace.
const READS_OF_GIT: &[&str] =
    &["add", "blame", "commit", "diff", "grep", "log", "ls-files", "show", "stage", "status"];

/// Returns `true` if an option would have to say that the program writes: `sed` without `-i`.
fn is_reader(part: &Part) -> bool {
    let mut options = part.argv().iter().skip(1);
    matches!(part.program_name(), "sed" | "gsed" | "sort" | "awk" | "gawk")
        && !options.any(|it| {
            it.starts_with("--in")
                || it.starts_with("--o")
                || it.starts_with('-') && it.contains(['i', 'o'])
        })
}

fn has_protected(
    examined: &ExaminedCall<'_>,
    sweep: &Sweep,
    is_protected: &impl Fn(&Path) -> bool,
) -> bool {
    let only: Vec<Glob> = sweep.reach.only.iter().map(|it| Glob::new(it)).collect();
    let is_found = |place: &Path| {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        only.is_empty() || only.iter().any(|it| it.matches_folded(&name))
    };
    let root = examined.places().root();
    let folders: Vec<PathBuf> = sweep
        .directories
        .iter()
        .flat_map(|it| examined.places().of(&sweep.folder, it).unwrap_or_default())
        .collect();
    let own = |known: &PathBuf| is_found(known) && folders.iter().any(|it| known.starts_with(it));
    if sweep.reach.hidden && examined.engine.protected.iter().any(own) {
        return true;
    }
    if !examined.places().looks() {
        return false;
    }
    let found = swept::files(std::slice::from_ref(sweep), examined.places());
    let is_outside = || folders.iter().any(|it| !it.starts_with(root));
    found.found.iter().any(|place| is_found(place) && is_protected(place))
        || found.incomplete.is_some() && (is_outside() || !is_ordinary(&sweep.reach.only))
}

/// Returns `true` if only files with the endings of code and of what builds leave are found: none of them decides
/// anything.
fn is_ordinary(only: &[String]) -> bool {
    const DECIDES: &[&str] = &[
        "", "*", "db", "git", "json", "jsonc", "key", "md", "mdc", "secret", "sh", "toml", "txt",
        "yaml", "yml",
    ];
    let ending = |name: &String| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_word = |it: &String| it.chars().all(char::is_alphanumeric);
        ending.filter(is_word).is_some_and(|it| !DECIDES.contains(&&*it))
    };
    !only.is_empty() && only.iter().all(ending)
}
