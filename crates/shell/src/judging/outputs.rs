//! The outputs of programs that build, and what they would replace.
//!
//! A build may write what only builds write. An output that is there already may be the work of a person, and the
//! folder of an output may be emptied first (`vite build --outDir src`). So an output asks in these cases:
//!
//! | output | asks |
//! |---|---|
//! | `.`, or the root of the workspace | always |
//! | exists, in a folder of builds in which git tracks nothing | no |
//! | exists, is named as reports and objects are, or is a linked program; git does not track it | no |
//! | exists anywhere else, even if git ignores it, as git cannot bring it back | yes |
//! | is new | if it is named as source code is |
//! | in a workspace that is judged by paths alone | outside of folders of builds, if it is named as people name files |
//!
//! A path is judged as it is written and as it is resolved: a folder of builds that is a link to `src` is `src`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::names::lists::{is_named, lower, names};
use crate::places::index::is_tracked;

/// Why a place should not be written without a question, if it is below the root. `looks` says whether files of this
/// machine are examined.
pub(crate) fn replaced(found: &Path, root: &Path, looks: bool) -> Option<&'static str> {
    let inner = found.strip_prefix(root).ok()?;
    if inner.as_os_str().is_empty() {
        return Some("is the whole workspace");
    }
    let folder = folder_of_builds(inner);
    if !looks {
        let keeps = folder.is_none() && !is_of_builds(inner) && is_of_people(inner);
        return keeps.then_some("is named as the files of people are");
    }
    if fs::symlink_metadata(found).is_err() {
        return (folder.is_none() && is_source(inner)).then_some("is named as source code is");
    }
    let kept = match folder {
        Some(folder) => root.join(folder),
        None if is_of_builds(inner) || is_linked(found) => found.to_owned(),
        None => return Some("exists, and is in no folder of builds"),
    };
    // The output itself may be a repository of its own, in a folder of builds.
    let tracked = is_tracked(&kept) || kept != found && is_tracked(found);
    tracked.then_some("exists, and is in a place with files that git tracks")
}

/// The innermost folder at or above a path that is named as folders of builds are.
fn folder_of_builds(inner: &Path) -> Option<PathBuf> {
    let named = |at: &&Path| is_named("build folders", &name_of(at));
    inner.ancestors().find(named).map(Path::to_owned)
}

/// Returns `true` if a file is named as only builds name files.
fn is_of_builds(inner: &Path) -> bool {
    let name = name_of(inner);
    let lower = lower(&name);
    is_named("build files", &name) || names("build endings").iter().any(|end| lower.ends_with(end))
}

/// Returns `true` if a file is named as source code that people write: a build would overwrite it, and not a file of
/// its own.
fn is_source(inner: &Path) -> bool {
    let name = name_of(inner).to_ascii_lowercase();
    names("source endings").iter().any(|end| name.ends_with(end)) && !name.ends_with(".d.ts")
}

/// Returns `true` if a path is named as what people write and track: source code, texts, data, and the folders of
/// these.
fn is_of_people(inner: &Path) -> bool {
    let name = name_of(inner);
    let lower = lower(&name);
    is_source(inner)
        || names("endings of people").iter().any(|end| lower.ends_with(end))
        || names("beginnings of people").iter().any(|start| lower.starts_with(start))
        || is_named("source folders", &name)
}

/// Returns `true` if a file begins as programs, libraries and objects do, which a linker writes and no person.
fn is_linked(path: &Path) -> bool {
    let mut start = [0; 4];
    let file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    let read =
        file && fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    let known = [
        b"\x7fELF",
        b"\xcf\xfa\xed\xfe",
        b"\xce\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"!<ar",
        b"\0asm",
    ];
    read && (known.contains(&&start) || start.starts_with(b"MZ"))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
