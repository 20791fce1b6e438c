//! Files that a program reads, and folders that it works in, though its words name others.
//!
//! | command | reads |
//! |---|---|
//! | `zcat notes`, `unzip -p notes` | `notes.gz`, `notes.zip`, where there is no `notes` |
//! | `zdiff notes.gz` | `notes`, too |
//! | `diff folder a/notes` | `folder/notes` |
//! | `node --check x` | `x.js`, or the file that `x/package.json` names, where there is no file `x` |
//! | `cd -`, `cd ...` | – (it goes to a folder of the shell before, or to one that an alias names) |
//! | `sqlite3 a.db 'select b from c'` | the views of `a.db`, which may run programs, and its virtual tables, which may be other files |

use std::path::{Path, PathBuf};

use super::{scripts, yq};
use crate::names::globs::may_be_secret;
use crate::places::paths::Workspace;
use crate::syntax::commands::{Word, WordKind};
use crate::table::{Argument, Does, Kind, Matched, Script, is_known_word};

/// The endings that programs which unpack add to a name, and take away from it.
const PACKED: &[&str] = &[
    ".gz", "-gz", ".z", "-z", "_z", ".Z", ".bz2", ".bz", ".xz", ".lzma", ".lz", ".zst", ".lz4",
    ".zip", ".ZIP",
];

/// Programs that compare a file with the one by its name in a folder.
const PAIRED: &[&str] = &[
    "bzdiff",
    "colordiff",
    "delta",
    "diff",
    "difft",
    "gdiff",
    "icdiff",
    "sdiff",
    "xzdiff",
    "zdiff",
];

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
    let is_path = |kind: &Kind| matches!(kind, Kind::Read | Kind::Packed);
    let paths = matched.operands.iter().filter(|one| is_path(one.kind));
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

/// Why to ask about a query of a database of the repository.
pub(super) const OF_TRACKED_DATABASE: &str =
    "a view in the database, which git tracks, may run a program or read other files";

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

/// Returns `true` if SQLite left a journal beside a database, which the next program that opens it plays back. It may name another
/// journal, which is deleted then, wherever it lies.
pub(super) fn has_journal(database: &Path) -> bool {
    let mut journal = database.as_os_str().to_owned();
    journal.push("-journal");
    std::fs::symlink_metadata(journal).is_ok()
}

/// The path in an operand. In `HEAD:src/lib.rs` it follows the colon, and `:(top)` is the top of the repository, as `:/` is.
pub(super) fn path_of<'t>(text: &'t str, kind: &Kind) -> &'t str {
    match (kind, text.split_once(':')) {
        (Kind::Revision, Some(("", magic))) if begins_at_top(magic) => "/",
        (Kind::Revision, Some((_, path))) if !path.is_empty() && !path.starts_with('/') => path,
        _ => text,
    }
}

/// Returns `true` if the words in front of a pattern of git, such as `(top,icase)x`, move its beginning out of the directory.
fn begins_at_top(magic: &str) -> bool {
    let words = magic.strip_prefix('(').and_then(|rest| rest.split(')').next());
    words.is_some_and(|words| words.split(',').any(|it| it == "top" || it.starts_with("prefix")))
}

/// Returns `true` if a word has the kind of a pattern in front of one that may stand for a secret, as Mercurial takes it:
/// `glob:.e*`.
pub(super) fn has_secret_pattern(text: &str) -> bool {
    let pattern = text.split_once(':').filter(|(kind, _)| !kind.is_empty());
    pattern.is_some_and(|(_, pattern)| may_be_secret(pattern))
}

/// The first word of `hg` that selects files by a pattern that is not read here, or that another file holds.
pub(super) fn selects_files<'m>(name: &str, matched: &'m Matched<'_, '_>) -> Option<&'m str> {
    const KINDS: [&str; 6] = ["re:", "relre:", "set:", "listfile", "include:", "subinclude:"];
    let texts = matched.operands.iter().map(|one| one.word.text.as_str());
    texts.filter(|_| name == "hg").find(|text| KINDS.iter().any(|kind| text.starts_with(kind)))
}

/// Returns `true` if `ps` may show the environment of programs. It reads a word behind a dash in another way where one of them is no
/// option, or names no user: then `e` means the environment, in each of them.
pub(super) fn shows_environment(args: &[Word]) -> bool {
    const OF_NAMES: [char; 6] = ['u', 'U', 'g', 'G', 's', 't'];
    let texts = args.iter().filter_map(|word| word.text.strip_prefix('-'));
    let groups: Vec<&str> = texts.filter(|it| !it.starts_with('-')).collect();
    // Behind these letters stands a text that is no option in either way. The name of a user, or of another that may not be there,
    // is read as letters.
    let letters = |group: &&str| match group.find(['o', 'O', 'p', 'C']) {
        Some(at) if !group.get(..at).is_some_and(|it| it.contains(OF_NAMES)) => at + 1,
        _ => group.len(),
    };
    let has_e = |group: &&str| group.get(..letters(group)).is_some_and(|it| it.contains('e'));
    let is_known = |group: &&str| {
        let known = |letter: char| "AdefFjlLHMwyZcTNoOpC".contains(letter);
        group.get(..letters(group)).is_some_and(|it| it.chars().all(known))
    };
    groups.iter().any(has_e) && !groups.iter().all(is_known)
}

/// Programs that load what a word may lead to: `node --check x` reads `x.js`, or the file that `x/package.json` names.
const LOADERS: &[&str] = &["node", "nodejs"];

/// The words by which a program loads a file, which has to be there as it is written.
pub(super) fn loaded<'m>(
    program: &str,
    matched: &'m Matched<'_, '_>,
) -> impl Iterator<Item = &'m Word> {
    let loads = LOADERS.contains(&program) && *matched.does != Does::Builds;
    let read = matched.operands.iter().filter(move |one| loads && *one.kind == Kind::Read);
    read.map(|one| &*one.word)
}

/// Why to ask about a program that may load another file than the one of this word.
pub(super) fn loads_another(program: &str, word: &Word) -> String {
    let text = &word.text;
    match word.found {
        true => {
            format!("a path that `{program}` is given may be no file, so that it may load another")
        }
        false => format!("`{text}` is no file that is there, so that `{program}` may load another"),
    }
}

/// Returns `true` if a word stands for a file that is there, in each of these directories, or a pattern for nothing but files. Where
/// none is looked at, each does.
pub(super) fn is_file(word: &Word, workspace: &Workspace, here: &[PathBuf]) -> bool {
    let is_there = |from: &PathBuf| match word.kind {
        WordKind::Glob => {
            let found = workspace.matches(&word.text, from);
            found.is_some_and(|found| found.iter().all(|it| it.is_file()))
        }
        _ => workspace.any_place(&word.text, std::slice::from_ref(from), Path::is_file),
    };
    matches!(word.kind, WordKind::Literal | WordKind::Glob)
        && (!workspace.looks() || here.iter().all(is_there))
}

/// Returns `true` if `yq` takes a word for a file that is there, in place of a filter: `yq -o json a.yaml`. As a filter, such a
/// name computes only, too.
pub(super) fn is_document(word: &Word, workspace: &Workspace, here: &[PathBuf]) -> bool {
    yq::is_document(&word.text) && is_file(word, workspace, here)
}

/// Returns `true` if a word is a path, where one of some words or a path is expected: a word that is not written out in the list,
/// and has a slash or a point, or, for a program that builds, begins as the list's names of folders do. To such a program a word
/// with a character of a shell may be a command, and no path.
pub(super) fn is_path_among(words: &[String], word: &Word, builds: bool) -> bool {
    let is_written_out = words.contains(&word.text);
    let is_folder = builds && is_known_word(words, &word.text);
    let is_known = !matches!(word.kind, WordKind::Expansion | WordKind::Process);
    let of_shell = |c: char| c.is_whitespace() || ";&|$<>`'\"".contains(c);
    words.iter().any(|known| known == "@path")
        && !is_written_out
        && (word.text.contains(['/', '.']) || is_folder)
        && !(builds && is_known && word.text.contains(of_shell))
}

/// Returns `true` if a word is written without a character that means something to a shell.
pub(super) fn is_unquoted(word: &Word) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=@,%~".contains(c);
    matches!(word.kind, WordKind::Literal | WordKind::Tilde) && word.text.chars().all(is_plain)
}

/// Returns `true` if a word may be the name of a file here: `brew deps x.rb` runs `x.rb`.
pub(super) fn may_be_file(word: &Word, workspace: &Workspace, here: &[PathBuf]) -> bool {
    word.text.ends_with(".rb") || workspace.any_place(&word.text, here, Path::is_file)
}

/// Returns `true` for a directory in which a shell was before: `cd -`, and to zsh `cd -2` and `cd +1`; and for an alias of one.
pub(super) fn is_earlier(text: &str) -> bool {
    let number = text.strip_prefix(['-', '+']);
    is_dots(text) || number.is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns `true` for `...`, which zsh is often set up to replace by `../..`.
fn is_dots(text: &str) -> bool {
    text.len() > 2 && text.bytes().all(|it| it == b'.')
}

/// The name of what zsh may take a path for, if it is set up so.
pub(super) fn replaced_by_zsh(word: &Word, kind: &Kind) -> Option<&'static str> {
    if is_dots(&word.text) {
        return Some("an alias of zsh for another folder");
    }
    (word.may_match && *kind != Kind::Revision).then_some("a pattern of zsh: quote it")
}
