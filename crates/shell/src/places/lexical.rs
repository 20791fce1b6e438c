//! Paths by their text alone: nothing is looked up.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, by its text alone: links are not followed, so that `..` after a link leads elsewhere
/// than in the file system.
///
/// ```
/// use std::path::Path;
/// use countersign_shell::lexically_normal;
///
/// assert_eq!(lexically_normal(Path::new("/project/./src/../notes.md")), Path::new("/project/notes.md"));
/// ```
#[must_use]
pub fn lexically_normal(path: &Path) -> PathBuf {
    if is_normal(path) {
        return path.to_owned();
    }
    let mut out = PathBuf::with_capacity(path.as_os_str().len());
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            _ => out.push(component),
        }
    }
    out
}

/// Returns `true` if a path has no `.`, `..` and empty names, so that nothing is to do. Most paths are like that, and to look at
/// bytes takes a tenth of the time that it takes to look at names.
fn is_normal(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.strip_prefix(b"/").unwrap_or(bytes);
    cfg!(unix)
        && !names.is_empty()
        && names.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// Returns `true` if a path is this place or one below it, as `starts_with` says. Most are, and the bytes say so.
pub(crate) fn is_in(path: &Path, place: &Path) -> bool {
    inside(path, place).is_some()
}

/// The rest of a path below a place, as [`Path::strip_prefix`] says, in less time.
///
/// ```
/// use std::path::Path;
/// use countersign_shell::inside;
///
/// assert_eq!(inside(Path::new("/project/src/lib.rs"), Path::new("/project")), Some(Path::new("src/lib.rs")));
/// assert_eq!(inside(Path::new("/projects/x"), Path::new("/project")), None);
/// ```
#[must_use]
pub fn inside<'p>(path: &'p Path, place: &Path) -> Option<&'p Path> {
    let (path_bytes, place_bytes) =
        (path.as_os_str().as_encoded_bytes(), place.as_os_str().as_encoded_bytes());
    let text = path.to_str().filter(|_| cfg!(unix) && !place_bytes.is_empty());
    match (path_bytes.strip_prefix(place_bytes), text) {
        (Some([]), Some(_)) => Some(Path::new("")),
        (Some([b'/', rest @ ..]), Some(text)) if rest.first().is_some_and(|it| *it != b'/') => {
            text.get(place_bytes.len() + 1..).map(Path::new)
        }
        _ => path.strip_prefix(place).ok(),
    }
}
