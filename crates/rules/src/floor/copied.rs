//! Files that a command copies or unpacks with the folder that holds them (rule R5).
//!
//! `cp config links` writes the file that a link `links/config` leads to. `cp -a pack/. .` and
//! `tar -C pack -cf - . | tar -xf -` write files that no word names. So we search the folders that are copied. If one of them
//! has something protected, or too many files to search, a person is asked. We do not look into an archive that another text
//! has made.

use std::path::Path;

use crate::calls::command::CommandView;
use crate::calls::landings::landings;
use crate::folders::reaches::{self, Flow, Reach};
use crate::folders::sweeps::Sweep;
use crate::folders::swept;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::Part;

/// Returns `true` if a command copies or unpacks something protected out of a folder, or onto something protected in
/// one.
pub(super) fn brings(
    examined: &ExaminedCall<'_>,
    view: &CommandView,
    part: &Part,
    is_protected: impl Fn(&Path) -> bool,
) -> bool {
    if !examined.places().looks() {
        return false;
    }
    let is_where_it_lands = |place: &String| {
        part.directories().iter().any(|directory| {
            let places = examined.places().of(place, directory).unwrap_or_default();
            places.iter().any(|place| is_protected(place))
        })
    };
    if landings(part).iter().any(is_where_it_lands) {
        return true;
    }
    let sweeps: Vec<Sweep> = if copies(part) {
        sources(examined, part)
    } else if unpacks(part) {
        view.parts().iter().filter(|it| packs(it)).flat_map(|it| sources(examined, it)).collect()
    } else {
        return false;
    };
    let files = swept::files(&sweeps, examined.places());
    files.incomplete.is_some() || files.found.iter().any(|file| is_protected(file))
}

/// Returns `true` if a command copies whole folders.
fn copies(part: &Part) -> bool {
    let deep = |word: &String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        word.starts_with("--rec")
            || word.starts_with("--arch")
            || letters.is_some_and(|it| it.contains(['r', 'R', 'a']))
    };
    matches!(part.program_name(), "cp" | "gcp" | "rsync") && part.argv().iter().any(deep)
}

/// Returns `true` if a command makes an archive.
fn packs(part: &Part) -> bool {
    match part.program_name() {
        "tar" | "gtar" | "bsdtar" => has_mode(part, 'c') || has_word(part, &["--create"]),
        "zip" | "cpio" | "pax" => true,
        "7z" | "7za" | "7zz" => has_word(part, &["a"]),
        _ => false,
    }
}

/// Returns `true` if a command unpacks an archive.
fn unpacks(part: &Part) -> bool {
    match part.program_name() {
        "tar" | "gtar" | "bsdtar" => has_mode(part, 'x') || has_word(part, &["--extract", "--get"]),
        "unzip" | "cpio" | "pax" => true,
        "7z" | "7za" | "7zz" => has_word(part, &["e", "x"]),
        _ => false,
    }
}

fn has_word(part: &Part, words: &[&str]) -> bool {
    part.argv().iter().skip(1).any(|word| words.contains(&word.as_str()))
}

/// Returns `true` if the letters of `tar` have a mode among them, with a dash or, as the first word, without.
fn has_mode(part: &Part, mode: char) -> bool {
    part.argv().iter().enumerate().skip(1).any(|(at, word)| {
        let bundle = word.strip_prefix('-').or((at == 1).then_some(word.as_str()));
        bundle.is_some_and(|letters| !letters.starts_with('-') && letters.contains(mode))
    })
}

/// The folders that the words of a command name. One that holds the workspace is what is copied away.
fn sources(examined: &ExaminedCall<'_>, part: &Part) -> Vec<Sweep> {
    let root = examined.places().root();
    let is_around = |word: &str| {
        part.directories().iter().any(|directory| {
            let places = examined.places().of(word, directory).unwrap_or_default();
            places.iter().any(|place| root.starts_with(place))
        })
    };
    // The last word of a copy is where it writes, and what is there already is not brought.
    let last = part.argv().len() - usize::from(copies(part));
    let read = reaches::read(part.argv(), Flow::default());
    let otherwise = || Reach { links: true, ..Reach::default() };
    // What is certainly left out is not brought, and a link is one to the same file unless the program follows it.
    let reach = Reach { hidden: true, ignored: true, ..read.unwrap_or_else(otherwise) };
    let words = part.argv().iter().take(last).skip(1);
    let words = words.filter(|word| !is_around(word) && !reach.without.words.contains(word));
    let of = |word: &String| Sweep {
        folder: word.clone(),
        directories: part.directories().to_vec(),
        reach: reach.clone(),
        is_known: true,
    };
    words.map(of).collect()
}
