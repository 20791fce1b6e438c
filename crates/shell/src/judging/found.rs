//! The secrets among the files that a command finds and hands on.
//!
//! `cat *` is judged by the files that the pattern matches now. `find . -type f -exec cat {} +` reads the same files and more, so
//! that those below its folders are looked at, too: where one may hold secrets by its name, and the words of the command do not
//! leave it out, a person is asked before another program shows it. Beyond the files that are looked at for one text, it counts as
//! found.
//!
//! | command, where `.env` is in the workspace | `.env` may be found |
//! |---|---|
//! | `find . -type f -exec cat {} +` | yes |
//! | `find . -name '*.rs' -exec cat {} +`, `find . -type f -not -path '*/.*' -exec cat {} +` | no: it is left out by its name |
//! | `git ls-files -z`, with `xargs -0 cat` behind it | if git tracks it |
//! | `rg --files -0 -g '*.ts'`, with `xargs -0 cat` behind it | no |
//! | `find . -type f -exec grep x {} +` | yes, as by `grep -r x .`, and it is not asked: a search shows lines of what it finds |

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::lines::is_searched;
use super::printing::{OF_INDEX, Printing};
use crate::names::globs::{fits, is_glob};
use crate::places::index::tracked;
use crate::places::links::is_below;
use crate::places::paths::is_secret;
use crate::syntax::commands::{Word, WordKind};
use crate::table::prints_path;

impl Printing<'_> {
    /// Where the patterns of `find` stand that may match a secret and show no content of one: those of files that it leaves out, and
    /// all of them where it prints nothing but names, and no other program reads these.
    pub(super) fn harmless_patterns(&self) -> Vec<Range<usize>> {
        let [program, args @ ..] = self.simple.words else { return Vec::new() };
        if !is_find(&program.text) {
            return Vec::new();
        }
        let only_names = self.matched.inner.is_empty() && !self.judging.hands_on;
        Expression::of(args).harmless_patterns(only_names)
    }

    /// Returns `true` if a file that may hold secrets is among the paths that a command may print.
    pub(super) fn prints_secrets(&self) -> bool {
        let workspace = &self.judging.settings.workspace;
        let name = self.simple.words.first().map_or("", |word| word.text.as_str());
        let args = self.simple.words.get(1..).unwrap_or_default();
        let find = is_find(name).then(|| Expression::of(args));
        let is_harmless = || find.as_ref().is_some_and(Expression::names_are_harmless);
        if !workspace.looks() || self.matched.help || is_harmless() {
            return false;
        }
        let relative = |path: &Path| match path.strip_prefix(workspace.root()) {
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        };
        let tracked_by = |here: &PathBuf| tracked(here, |_| true);
        let index = || self.simple.here.iter().map(tracked_by).collect::<Option<Vec<_>>>();
        if let Some(index) = (name == "git" && names_tracked(args)).then(index).flatten() {
            return index.iter().flatten().any(|path| is_secret(&relative(path)) && path.exists());
        }
        let globs = globs_of_ripgrep(name, args);
        let is_one = |path: &Path| {
            let relative = relative(path);
            let name_of = relative.rsplit('/').next().unwrap_or_default();
            is_secret(&relative)
                && (globs.is_empty()
                    || globs.iter().any(|it| fits(it, name_of) || fits(it, &relative)))
                && find
                    .as_ref()
                    .is_none_or(|find| self.as_printed(path).iter().any(|it| find.finds(it)))
        };
        is_below(self.searched(workspace), &self.judging.secrets_left, is_one)
    }

    /// A file as `find` may print it: behind each operand as it was given, in each directory in which it may run.
    fn as_printed(&self, path: &Path) -> Vec<String> {
        let workspace = &self.judging.settings.workspace;
        let mut given: Vec<&str> = self
            .matched
            .operands
            .iter()
            .filter(|one| is_searched(one))
            .map(|one| one.word.text.as_str())
            .collect();
        if given.is_empty() {
            given.push(".");
        }
        let below = |(here, given): (&PathBuf, &str)| {
            let [_, resolved] = workspace.places(given, here)?;
            let rest = path.strip_prefix(resolved).ok()?;
            let slash = if given.ends_with('/') { "" } else { "/" };
            Some(format!("{given}{slash}{}", rest.display()))
        };
        let pairs =
            self.simple.here.iter().flat_map(|here| given.iter().map(move |it| (here, *it)));
        let known: Option<Vec<String>> = pairs.map(below).collect();
        // A pattern among the operands, or a folder that holds the file only from one of the directories.
        known.unwrap_or_else(|| vec![format!("./{}", path.display())])
    }
}

/// Returns `true` if a command of git names only what it tracks.
fn names_tracked(args: &[Word]) -> bool {
    let [command, args @ ..] = args else { return false };
    let options = || args.iter().map(|it| &*it.text).filter(|it| it.starts_with('-'));
    match &*command.text {
        "ls-files" => options().all(|it| OF_INDEX.contains(&it)),
        "grep" | "diff" => !options().any(|it| it.starts_with("--no-") || it == "--untracked"),
        _ => false,
    }
}

/// The patterns of `rg -g`, of which one fits each file that it then names. Where there is none, it may name any: a file that says
/// what it ignores may name some that it would leave out.
fn globs_of_ripgrep<'w>(name: &str, args: &'w [Word]) -> Vec<&'w str> {
    const GLOBS: &[&str] = &["-g", "--glob", "--iglob"];
    if !matches!(name, "rg" | "ripgrep") {
        return Vec::new();
    }
    let given = args.windows(2).filter_map(|pair| match pair {
        [option, glob] if GLOBS.contains(&&*option.text) => glob.literal(),
        _ => None,
    });
    given.filter(|glob| !glob.starts_with('!')).collect()
}

fn is_find(name: &str) -> bool {
    matches!(name, "find" | "gfind")
}

/// The words of `find`, as it reads them.
struct Expression<'w> {
    args: &'w [Word],
    /// The alternatives, without the words of the programs that it runs: `-name a -o -name b` has two. The paths in front belong
    /// to the first.
    alternatives: Vec<Vec<&'w Word>>,
    /// `true` if an alternative that ends in `-prune` may say where `find` does not look: another one acts, and none is a part of
    /// a group, behind which an action may follow.
    may_prune: bool,
}

impl<'w> Expression<'w> {
    fn of(args: &'w [Word]) -> Self {
        let mut alternatives = vec![Vec::new()];
        let mut is_inner = false;
        for word in args {
            match word.text.as_str() {
                ";" | "+" if is_inner => is_inner = false,
                _ if is_inner => {}
                "-o" | "-or" | "," => alternatives.push(Vec::new()),
                text => {
                    is_inner = text == RUNS;
                    if let Some(last) = alternatives.last_mut() {
                        last.push(word);
                    }
                }
            }
        }
        let has_group = args.iter().any(|word| matches!(&*word.text, "(" | ")"));
        let may_prune = !has_group && alternatives.iter().flatten().any(|word| acts(word));
        Self { args, alternatives, may_prune }
    }

    /// Returns `true` for an alternative that only says where `find` does not look: `-path ./target -prune`.
    fn only_prunes(&self, alternative: &[&Word]) -> bool {
        self.may_prune
            && alternative.last().is_some_and(|word| word.text == "-prune")
            && !alternative.iter().any(|word| acts(word))
    }

    /// Returns `true` if a negation is of several tests, or of another one: `! ( -name a )`.
    fn is_negated_twice(&self) -> bool {
        let is_open = |pair: &[Word]| matches!(pair, [not, it] if is_not(not) && (it.text == "(" || is_not(it)));
        self.args.windows(2).any(is_open)
    }

    fn harmless_patterns(&self, only_names: bool) -> Vec<Range<usize>> {
        let is_negated_twice = self.is_negated_twice();
        let is_literal = |word: &&Word| word.kind == WordKind::Literal;
        let of = |alternative: &Vec<&Word>| {
            let is_pruned = self.only_prunes(alternative);
            let tests = alternative.windows(2).enumerate().filter_map(|(at, pair)| match pair {
                [test, pattern] if PATTERNS.contains(&&*test.text) => Some((at, *pattern)),
                _ => None,
            });
            let is_out = |at: usize| {
                let before = at.checked_sub(1).and_then(|at| alternative.get(at));
                is_pruned || before.is_some_and(|it| is_not(it))
            };
            let harmless = tests.filter(|(at, pattern)| {
                (only_names || !is_negated_twice && is_out(*at)) && is_glob(&pattern.text)
            });
            harmless.map(|(_, it)| it).filter(is_literal).map(Word::span).collect::<Vec<_>>()
        };
        self.alternatives.iter().flat_map(of).collect()
    }

    /// Returns `true` if `find` may print a path: in one of its alternatives, each test of a name in front of an action holds. Other
    /// tests count as if they held.
    fn finds(&self, path: &str) -> bool {
        self.is_negated_twice()
            || self.alternatives.iter().any(|one| holds(one, path) && !self.only_prunes(one))
    }

    /// Returns `true` if each alternative has a test that no file with secrets passes, whichever files are there: `-name '*.rs'`.
    fn names_are_harmless(&self) -> bool {
        let leaves_out = |one: &[&Word]| {
            tests_of(one).windows(2).any(|pair| match pair {
                [test, pattern] => {
                    matches!(test.text.as_str(), "-name" | "-iname") && is_of_code(&pattern.text)
                }
                _ => false,
            })
        };
        !self.args.iter().any(is_not)
            && self.alternatives.iter().all(|one| leaves_out(one) || self.only_prunes(one))
    }
}

/// The only action of `find` with a program that we take for more than a question.
const RUNS: &str = "-exec";

fn acts(word: &Word) -> bool {
    word.text == RUNS || prints_path(&word.text)
}

fn is_not(word: &Word) -> bool {
    matches!(word.text.as_str(), "!" | "-not")
}

/// Tests of `find` that compare a name or a path with a pattern.
const PATTERNS: &[&str] = &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"];

/// The words of an alternative in front of its first action.
fn tests_of<'w>(alternative: &[&'w Word]) -> Vec<&'w Word> {
    alternative.iter().take_while(|word| !acts(word)).copied().collect()
}

/// Returns `true` if the tests of names in an alternative may hold for a path.
fn holds(alternative: &[&Word], path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let tests = tests_of(alternative);
    tests.iter().enumerate().all(|(at, test)| {
        let (subject, any_case) = match test.text.as_str() {
            "-name" => (name, false),
            "-iname" => (name, true),
            "-path" | "-wholename" => (path, false),
            "-ipath" | "-iwholename" => (path, true),
            _ => return true,
        };
        let negated = at.checked_sub(1).and_then(|at| tests.get(at)).is_some_and(|it| is_not(it));
        let pattern = tests.get(at + 1).and_then(|word| word.literal());
        match pattern {
            // A pattern that may be read in another way leaves nothing out.
            Some(pattern) if pattern.contains('\\') => true,
            Some(pattern) if negated => !surely_fits(pattern, subject, any_case),
            Some(pattern) => fits(pattern, subject),
            None => true,
        }
    })
}

/// Returns `true` if a pattern matches a path to each `find`, also where the case of letters counts.
fn surely_fits(pattern: &str, subject: &str, any_case: bool) -> bool {
    let has_case = |text: &str| text.contains(char::is_uppercase);
    let same_case =
        !pattern.contains(char::is_alphabetic) || !has_case(pattern) && !has_case(subject);
    !pattern.contains('[') && (any_case || same_case) && fits(pattern, subject)
}

/// Names of files with secrets, without what stands behind the last point.
const STEMS: &[&str] = &[
    "x",
    ".env",
    "api_key",
    ".api_key",
    "client_secret",
    "credentials",
    "id_rsa",
    "secrets",
    "token",
];

/// Endings of code, which no one gives to a file of variables.
const CODE: &[&str] = &[
    "c", "cc", "cpp", "cs", "css", "h", "hpp", "html", "java", "jsx", "kt", "php", "rb", "scss",
    "svelte", "swift", "tsx", "vue",
];

/// Returns `true` for `*.rs` and other patterns that no name of a file with secrets fits.
fn is_of_code(pattern: &str) -> bool {
    let ending = pattern.strip_prefix("*.").unwrap_or_default();
    !ending.is_empty()
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
        && (CODE.contains(&ending)
            || STEMS.iter().all(|stem| !is_secret(&format!("{stem}.{ending}"))))
}
