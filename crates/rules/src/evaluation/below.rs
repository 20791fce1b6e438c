//! Whether a rule about paths is about a file below a folder that a call reads with all that is in it.
//!
//! A rule denies `**/.env`, and `grep -r KEY .` names no such file. If one lies there, the condition is unknown, and the call
//! is asked about. So it is where there are too many files to tell. Where no rule would speak about any file, nothing is
//! looked up.

use std::path::{Path, PathBuf};

use crate::calls::glob::PathGlob;
use crate::calls::truth::{Reading, Truth};
use crate::folders::sweeps::{SEARCH_FOLDERS, Sweep};
use crate::format::rule::Rule;
use crate::matching::condition::{Condition, FieldPath, Test, is_below};
use crate::matching::examined_call::ExaminedCall;
use countersign::show;

/// Why a rule speaks about a call that reads below folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Below {
    /// This file is one that the rule is about.
    File(PathBuf),
    /// It is not known which files are read.
    Unknown(&'static str),
}

impl Below {
    /// Why the condition is unknown.
    pub(crate) fn why(&self) -> &'static str {
        match self {
            Self::File(_) => "is a folder with such a file below it",
            Self::Unknown(why) => why,
        }
    }

    /// The same for people.
    pub(crate) fn reason(&self, examined: &ExaminedCall<'_>) -> String {
        match self {
            Self::File(file) => {
                let file = file.strip_prefix(examined.places().root()).unwrap_or(file);
                format!(
                    "it reads all that is below a folder, and so `{}`",
                    show::escape(&file.display().to_string())
                )
            }
            Self::Unknown(why) => format!("it {why}"),
        }
    }
}

/// Whether the rule is about a file below a folder that the call reads. For a rule that asks or denies, and is silent about
/// what the call names.
pub(crate) fn speaks(rule: &Rule, examined: &ExaminedCall<'_>) -> Option<Below> {
    if !examined.places().looks() || !rule.whole.iter().any(is_of_files) {
        return None;
    }
    let sweeps = examined.sweeps();
    let tests = tests(&rule.whole, examined);
    if !sweeps.iter().any(|sweep| may_read(sweep, &tests)) {
        return None;
    }
    let others = rule.whole.iter().filter(|it| !is_of_files(it));
    if Truth::all(others.map(|it| it.holds(examined, Reading::Strict))) == Truth::No {
        return None;
    }
    let exceptions: Vec<_> =
        rule.exceptions.iter().filter(|it| it.iter().all(is_of_files)).collect();
    let exceptions: Vec<_> = exceptions.into_iter().map(|it| self::tests(it, examined)).collect();
    let files = examined.swept();
    let holds = |tests: &[FileTest<'_>], file: &Path, reading| {
        tests.iter().all(|test| test.holds(file, examined, reading))
    };
    let is_meant = |file: &&PathBuf| {
        holds(&tests, file, Reading::Strict)
            && !exceptions.iter().any(|it| holds(it, file, Reading::Allowing))
    };
    match files.found.iter().find(is_meant) {
        Some(file) => Some(Below::File(file.clone())),
        None => files.incomplete.map(Below::Unknown),
    }
}

/// Whether a condition is about the files that a call names: any of them, or those in the argument of a search.
fn is_of_files(condition: &Condition) -> bool {
    let names_folder = match &condition.field {
        FieldPath::Run => false,
        FieldPath::AnyPath => true,
        FieldPath::Named(path) => {
            matches!(path.as_slice(), [name] if SEARCH_FOLDERS.contains(&name.as_str()))
        }
    };
    names_folder && matches!(condition.test, Test::Path(_) | Test::Within(_) | Test::Outside(_))
}

/// A condition on a path, with what it names looked up.
enum FileTest<'r> {
    Matches(&'r [PathGlob]),
    Within(Vec<PathBuf>),
    Outside(Vec<PathBuf>),
}

fn tests<'r>(conditions: &'r [Condition], examined: &ExaminedCall<'_>) -> Vec<FileTest<'r>> {
    let targets =
        |names: &[String]| names.iter().filter_map(|it| examined.target(it)).flatten().collect();
    let of = |condition: &'r Condition| match &condition.test {
        Test::Path(globs) if is_of_files(condition) => Some(FileTest::Matches(globs)),
        Test::Within(names) if is_of_files(condition) => Some(FileTest::Within(targets(names))),
        Test::Outside(names) if is_of_files(condition) => Some(FileTest::Outside(targets(names))),
        _ => None,
    };
    conditions.iter().filter_map(of).collect()
}

impl FileTest<'_> {
    /// A file of another working tree of the project is also the one in the root that it stands for.
    fn holds(&self, file: &Path, examined: &ExaminedCall<'_>, reading: Reading) -> bool {
        let is_outside = matches!(self, Self::Outside(_));
        let found = self.holds_at(file, examined, reading);
        if found != is_outside {
            return found;
        }
        let stands_for = examined.in_root(file, reading.allows() && !is_outside);
        stands_for.map_or(found, |file| self.holds_at(&file, examined, reading))
    }

    fn holds_at(&self, file: &Path, examined: &ExaminedCall<'_>, reading: Reading) -> bool {
        let folded = !reading.allows();
        match self {
            Self::Matches(globs) => globs.iter().any(|glob| {
                glob.may_end_in(file, folded)
                    && glob.matches(file, examined.places(), folded, false) == Some(true)
            }),
            Self::Within(targets) => is_below(file, targets, reading),
            Self::Outside(targets) => !is_below(file, targets, reading.opposite()),
        }
    }
}

/// Whether a sweep may read a file that these tests are about, by the names of files alone: `grep -r --include='*.rs'` reads
/// no `.env`. A link may have any name.
fn may_read(sweep: &Sweep, tests: &[FileTest<'_>]) -> bool {
    let only = &sweep.reach.only;
    only.is_empty()
        || sweep.reach.links
        || tests.iter().all(|test| match test {
            FileTest::Matches(globs) => {
                globs.iter().any(|glob| only.iter().any(|name| glob.may_end_as(name)))
            }
            FileTest::Within(_) | FileTest::Outside(_) => true,
        })
}
