//! The files and settings that decide what a command does although no word names them: definitions of builds, files below a folder,
//! settings of git.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::calls::command::CommandView;
use crate::calls::git_words::GitWords;
use crate::folders::reaches::{ExcludedNames, Reach};
use crate::folders::swept;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::program_files::{program_name, words};
use countersign_shell::{Assignment, Effect, Part, Word, WordKind};

/// In how many folders definitions are looked up.
const MAX_FOLDERS: usize = 32;

/// Programs that send the files that they are given.
const SENDERS: &[&str] = &[
    "aws",
    "az",
    "curl",
    "firebase",
    "gcloud",
    "gh-pages",
    "ghp-import",
    "gsutil",
    "http",
    "https",
    "lftp",
    "mail",
    "mutt",
    "nc",
    "ncat",
    "netcat",
    "netlify",
    "psql",
    "rclone",
    "rsync",
    "s3cmd",
    "scp",
    "sendmail",
    "sftp",
    "socat",
    "ssh",
    "surge",
    "vercel",
    "wget",
    "xh",
];

/// Programs that apply what lies below a folder which they are given, or send it. What they read in the folder that they work in is on
/// lists of their own.
const APPLIERS: &[&str] = &[
    "buildah",
    "docker",
    "helm",
    "helmfile",
    "kapp",
    "kubectl",
    "kustomize",
    "nerdctl",
    "oc",
    "podman",
];

/// Programs that apply or send the folder that they work in, with what lies below it: modules, roles, pages.
const APPLIERS_OF_FOLDERS: &[&str] = &[
    "ansible",
    "ansible-playbook",
    "ansible-pull",
    "cdktf",
    "netlify",
    "now",
    "pulumi",
    "surge",
    "terraform",
    "terragrunt",
    "tofu",
    "vercel",
];

/// Words by which a program publishes the folder that it works in, with what lies below it: `npm publish`, `npx wrangler deploy`.
const PUBLISHING: &[&str] = &["deploy", "publish", "release", "ship", "upload"];

/// Programs that talk to the remote of the repository which they find themselves in, by its settings.
const OF_GIT: &[&str] = &["git", "gh", "glab", "hub", "jj", "tea"];

/// Returns `true` if a command sends the files that it is given.
pub(super) fn is_sender(part: &Part) -> bool {
    let name = part.program_name();
    let posts = || words(part).iter().any(|word| POSTING.contains(word));
    SENDERS.contains(&name) || ["gh", "glab"].contains(&name) && posts()
}

/// Commands of `gh` and `glab` that send a text or a file, beside those that only ask.
const POSTING: &[&str] =
    &["api", "close", "comment", "create", "edit", "merge", "note", "review", "update", "upload"];

/// Returns `true` if a command publishes or applies the folder that it works in: `npm publish`, `terraform apply`. What git and its
/// like send is in the history, and a folder of `kustomize` may name others: `kubectl apply -k base` reads `../other`, too.
fn takes_all(part: &Part) -> bool {
    let name = part.program_name();
    let words = || words(part).into_iter().skip(1);
    APPLIERS_OF_FOLDERS.contains(&name)
        || !OF_GIT.contains(&name) && words().any(|word| PUBLISHING.contains(&word))
        || APPLIERS.contains(&name) && words().any(|word| ["-k", "--kustomize"].contains(&word))
}

/// The value that may stand behind the letter of its option: `x.sql` in `-fx.sql`.
pub(super) fn attached(word: &str) -> Option<&str> {
    word.strip_prefix('-')?.get(1..)
}

/// The folder in the label of a target: `sub` in `//sub:x` and `:sub:x`.
fn label(word: &str) -> Option<&str> {
    word.trim_start_matches(['/', ':']).split(':').next()
}

/// The module in the name of something within it: `pkg/app` in `pkg.app:make`.
fn module(word: &str) -> Option<String> {
    let (module, within) = word.split_once(':')?;
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
    };
    (plain(module) && plain(within)).then(|| module.replace('.', "/"))
}

/// The value of a long option or a setting: `out` in `--dir=out`.
fn value(word: &str) -> Option<&str> {
    Some(word.split_once('=')?.1)
}

/// The folders that the words of a command name.
fn folders(part: &Part, examined: &ExaminedCall<'_>) -> BTreeSet<PathBuf> {
    let names = words(part).into_iter().skip(1);
    let names = names.flat_map(|word| [Some(word), attached(word), label(word), value(word)]);
    let named = examined.files_named_by(part);
    names.flatten().flat_map(|word| named.places(word)).filter(|it| it.is_dir()).collect()
}

/// Adds the definitions of builds, and those of the program of a command, in the folders that the command works in
/// and names, and above them in the workspace. `None` for too many folders.
pub(super) fn definitions(
    part: &Part,
    (of_builds, of_program): (bool, bool),
    examined: &ExaminedCall<'_>,
    files: &mut BTreeSet<PathBuf>,
) -> Option<()> {
    let root = examined.places().root();
    let mut folders = folders(part, examined);
    folders.extend(part.directories().iter().cloned());
    let inside = |folder: &&Path| folder.starts_with(root);
    let all: BTreeSet<&Path> =
        folders.iter().flat_map(|it| it.ancestors().take_while(inside).chain([&**it])).collect();
    if all.len() > MAX_FOLDERS {
        return None;
    }
    if of_program {
        let named = examined.files_named_by(part);
        let modules = words(part).into_iter().filter_map(module);
        files.extend(modules.flat_map(|module| named.modules(&module)));
    }
    let classifier = &examined.engine.classifier;
    for folder in all {
        if of_builds {
            files.extend(classifier.build_definitions(folder));
        }
        if of_program {
            files.extend(classifier.definitions_of(part, folder));
        }
    }
    Some(())
}

/// Returns `true` if a word of a sender may name any file: `scp -r $(echo out) host:`, `curl -d "@$F"`. An address and a header are
/// none, whatever a variable in them holds: `-H "Authorization: $TOKEN"`.
fn names_unknown(part: &Part) -> bool {
    let befores = std::iter::once("").chain(part.words().iter().map(Word::text));
    let is_header = |before: &str, text: &str| {
        ["-H", "--header"].contains(&before) && text.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let is_address = |text: &str| text.starts_with("https://") || text.starts_with("http://");
    let is_unknown = |(before, word): (&str, &Word)| {
        word.kind() == WordKind::Expansion
            && !is_header(before, word.text())
            && !is_address(word.text())
    };
    befores.zip(part.words()).any(is_unknown)
}

/// Adds the files below the folders that a command sends or applies, or that another one of the text hands it: `scp -r out
/// host:`, `tar c out | ssh host tar x`; and those of the workspace, if it takes the folder that it works in. `None` for too many
/// files.
pub(super) fn sent_folders(
    view: &CommandView,
    part: &Part,
    examined: &ExaminedCall<'_>,
    files: &mut BTreeSet<PathBuf>,
) -> Option<()> {
    let (applies, sends) = (APPLIERS.contains(&part.program_name()), is_sender(part));
    let takes_all = takes_all(part);
    if !applies && !sends && !takes_all {
        return Some(());
    }
    // The output of git changes with each commit.
    let prints = |it: &Part| {
        it.program_name() == "git"
            && GitWords::of(it).sub.is_none_or(|sub| !WITHOUT_HISTORY.contains(&sub))
    };
    if sends && (names_unknown(part) || view.parts().iter().any(prints)) {
        return None;
    }
    // A file that another command has packed is sent, too: `tar cf x.tar out && curl -T x.tar URL`.
    let parts = if applies { std::slice::from_ref(part) } else { view.parts() };
    let moves = |it: &Effect| matches!(it, Effect::ChangesDirectory(_));
    let parts = parts.iter().filter(|part| !part.effects().iter().any(moves));
    let mut folders: BTreeSet<PathBuf> = parts.flat_map(|part| folders(part, examined)).collect();
    if takes_all {
        folders.extend(part.directories().iter().cloned());
        folders.insert(examined.places().root().to_owned());
    } else if applies {
        folders.retain(|folder| !part.directories().contains(folder));
    }
    let left_out = if takes_all { NOT_PUBLISHED } else { &[] };
    let folders_without = left_out.iter().map(|name| (*name).to_owned()).collect();
    let reach = Reach {
        hidden: true,
        ignored: true,
        links: true,
        follows: !takes_all,
        without: ExcludedNames { folders: folders_without, ..ExcludedNames::default() },
        ..Reach::default()
    };
    let names = folders.iter().map(|folder| folder.display().to_string());
    let swept = swept::below(names, part.directories(), &reach, examined.places());
    files.extend(swept.found.into_iter().filter(|it| it.is_file()));
    swept.incomplete.is_none().then_some(())
}

/// Folders of a workspace that no program publishes: git changes its own with each command, and installed packages stay where they are.
const NOT_PUBLISHED: &[&str] = &[".git", "node_modules"];

/// Commands of git that print nothing of the history, and nothing that changed.
const WITHOUT_HISTORY: &[&str] = &[
    "add",
    "check-ignore",
    "commit",
    "config",
    "fetch",
    "ls-files",
    "pull",
    "push",
    "remote",
    "restore",
    "rev-parse",
    "status",
    "switch",
    "var",
    "version",
];

/// Options of `git push` without a value.
const OF_PUSH: &[&str] = &[
    "-u",
    "--set-upstream",
    "-f",
    "--force",
    "--force-with-lease",
    "--tags",
    "--follow-tags",
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "-n",
    "--dry-run",
    "--no-verify",
    "--porcelain",
    "--progress",
];

/// Returns `true` if a command takes no setting of a branch, of which git writes some with the first push: a commit, and a push
/// that names the remote and the branch.
fn needs_no_branch(git: &GitWords<'_>) -> bool {
    let names = git.rest.iter().filter(|word| !word.starts_with('-')).count();
    let is_known = |word: &String| !word.starts_with('-') || OF_PUSH.contains(&word.as_str());
    match git.sub {
        Some("commit" | "add" | "tag") => true,
        Some("push") => names >= 2 && git.rest.iter().all(is_known),
        _ => false,
    }
}

/// Adds the settings of the repository in which git works for a command, which say where it sends and what runs with it, and their
/// hooks; `runs` for a command that runs code. `None` where git may work in another one, by a variable, and for too many of them.
pub(super) fn settings_of_git(
    part: &Part,
    runs: bool,
    examined: &ExaminedCall<'_>,
    settings: &mut BTreeSet<String>,
    files: &mut BTreeSet<PathBuf>,
) -> Option<()> {
    let mut programs = part.argv().iter().map(|word| program_name(word));
    let is_of_git = programs.any(|name| OF_GIT.contains(&name));
    // A script may push as well.
    if !is_of_git && !runs {
        return Some(());
    }
    let git = GitWords::of(part);
    let named = examined.files_named_by(part);
    // A setting of this run may name a program, a file of settings, or a folder of hooks.
    let values = git.settings.iter().filter_map(|setting| value(setting));
    for place in values.flat_map(|value| named.places(value)) {
        match std::fs::read_dir(&place) {
            Ok(entries) => {
                let all = entries.flatten().map(|entry| entry.path());
                files.extend(all.filter(|path| path.is_file()));
            }
            Err(_) => drop(files.insert(place)),
        }
    }
    let moved = git.moves.iter().flat_map(|word| named.places(word));
    let folders = part.directories().iter().cloned().chain(moved);
    let branches = is_of_git && !needs_no_branch(&git);
    let mut has_more = false;
    for found in folders.filter_map(|it| examined.engine.classifier.git_settings(&it, branches)) {
        has_more |= found.has_more;
        settings.insert(found.text);
        files.extend(found.files);
    }
    let moves = |it: &Assignment| it.name().starts_with("GIT_");
    (!has_more && !part.assignments().iter().any(moves)).then_some(())
}
