//! Files that a program reads though its words name others.
//!
//! | command | reads |
//! |---|---|
//! | `zcat notes`, `unzip -p notes` | `notes.gz`, `notes.zip`, where there is no `notes` |
//! | `zdiff notes.gz` | `notes`, too |
//! | `diff folder a/notes` | `folder/notes` |

/// The endings that programs which unpack add to a name, and take away from it.
const PACKED: &[&str] = &[
    ".gz", "-gz", ".z", "-z", "_z", ".Z", ".bz2", ".bz", ".xz", ".lzma", ".lz", ".zst", ".lz4",
    ".zip", ".ZIP",
];

/// Programs that compare a file with the one by its name in a folder.
pub(super) const PAIRED: &[&str] =
    &["colordiff", "delta", "diff", "difft", "gdiff", "icdiff", "sdiff"];

/// The files that a program which unpacks may read for a name.
pub(super) fn packed_names(name: &str) -> impl Iterator<Item = String> + '_ {
    let longer = PACKED.iter().map(move |ending| format!("{name}{ending}"));
    let shorter = PACKED.iter().filter_map(move |ending| name.strip_suffix(ending));
    std::iter::once(name.to_owned()).chain(longer).chain(shorter.map(str::to_owned))
}

/// The file of a folder that is compared with a file elsewhere.
pub(super) fn in_folder(folder: &str, file: &str) -> String {
    let name = file.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    format!("{}/{name}", folder.trim_end_matches('/'))
}
