//! Files that a program reads though its words name others.
//!
//! | command | reads |
//! |---|---|
//! | `zcat notes`, `unzip -p notes` | `notes.gz`, `notes.zip`, where there is no `notes` |
//! | `zdiff notes.gz` | `notes`, too |
//! | `diff folder a/notes` | `folder/notes` |
//! | `sqlite3 a.db 'select b from c'` | the views of `a.db`, which may run programs, and its virtual tables, which may be other files |

use super::scripts;
use crate::syntax::commands::Word;
use crate::table::{Argument, Kind, Matched, Script};

/// The endings that programs which unpack add to a name, and take away from it.
const PACKED: &[&str] = &[
    ".gz", "-gz", ".z", "-z", "_z", ".Z", ".bz2", ".bz", ".xz", ".lzma", ".lz", ".zst", ".lz4",
    ".zip", ".ZIP",
];

/// Programs that compare a file with the one by its name in a folder.
const PAIRED: &[&str] = &["colordiff", "delta", "diff", "difft", "gdiff", "icdiff", "sdiff"];

/// The files that a program which unpacks may read for a word.
pub(super) fn packed(word: &Word) -> impl Iterator<Item = Word> + '_ {
    let name = word.text.as_str();
    let longer = PACKED.iter().map(move |ending| format!("{name}{ending}"));
    let shorter = PACKED.iter().filter_map(move |ending| name.strip_suffix(ending));
    let names = std::iter::once(name.to_owned()).chain(longer).chain(shorter.map(str::to_owned));
    names.map(|text| Word { text, ..word.clone() })
}

/// The files of a folder that a program compares with files by the same name, where one of its two operands is a folder.
pub(super) fn compared(
    program: &str,
    matched: &Matched<'_, '_>,
    is_folder: impl Fn(&Word) -> bool,
) -> Vec<Word> {
    if !PAIRED.contains(&program) {
        return Vec::new();
    }
    let paths = matched.operands.iter().filter(|one| *one.kind == Kind::Read);
    let paths: Vec<&Word> = paths.map(|one| &*one.word).collect();
    let [first, second] = paths.as_slice() else { return Vec::new() };
    let both = [(*first, *second), (*second, *first)];
    let found = both.into_iter().filter(|(folder, _)| is_folder(folder));
    found.map(|(folder, file)| in_folder(folder, &file.text)).collect()
}

/// The file of a folder that has the name of a file elsewhere.
fn in_folder(folder: &Word, file: &str) -> Word {
    let name = file.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    Word { text: format!("{}/{name}", folder.text.trim_end_matches('/')), ..folder.clone() }
}

/// The databases from which a command reads rows, and so their views and virtual tables.
pub(super) fn queried<'m>(matched: &'m Matched<'_, '_>) -> impl Iterator<Item = &'m Word> {
    let reads = |one: &Argument<'_, '_>| {
        *one.kind == Kind::Script(Script::Sql) && scripts::reads_rows(&one.word.text)
    };
    let is_query = matched.operands.iter().any(reads);
    let databases =
        matched.operands.iter().filter(move |one| is_query && *one.kind == Kind::Database);
    databases.map(|one| &*one.word)
}
