//! The judgement of the paths that a command prints, and of the links below the folders in which it looks for files.
//!
//! A command behind it, as `xargs`, may take these paths for its own arguments.

use std::path::PathBuf;

use super::lines::{Lines, PathWords, PrintedPaths, begin_as_paths, is_searched, mixes};
use super::simple::{Judging, Simple};
use crate::places::links::{is_one_word, lead_out, names_are_words, tracked_are_words};
use crate::places::paths::Workspace;
use crate::syntax::commands::{Word, WordKind};
use crate::table::{Argument, Kind, Matched, ProgramMark, prints_path};

/// A command, with what it was matched to.
#[derive(Clone, Copy)]
pub(super) struct Printing<'a> {
    pub(super) simple: &'a Simple<'a>,
    pub(super) judging: &'a Judging<'a>,
    pub(super) matched: &'a Matched<'a, 'a>,
}

impl Printing<'_> {
    /// Returns `true` if the paths that a program prints may be those of links that lead out of the workspace.
    pub(super) fn prints_links(&self) -> bool {
        !self.matched.files && self.has_links_out()
    }

    /// Describes the lines that a command prints. A filter prints lines of its input.
    pub(super) fn lines(&self, filters: bool) -> Lines {
        let matched = self.matched;
        match self.simple.input {
            _ if matched.paths && self.names_input() => Lines::Unknown,
            _ if matched.paths => Lines::Paths(self.printed_paths()),
            // What `xargs cat` prints is what the files hold. And of a file that it takes for no text, `grep` prints a line of its
            // own, which may be the name of a link.
            Lines::Paths(paths) if filters && !self.simple.appended && paths.nul == matched.nul => {
                let says_more = matched.entry.names_files();
                let links = paths.links || says_more && self.has_links_out();
                Lines::Paths(PrintedPaths { links, ..paths })
            }
            _ => Lines::Unknown,
        }
    }

    /// Returns `true` if a command prints other lines than those of one program in the folder where it works:
    ///
    /// | command | prints |
    /// |---|---|
    /// | `find . -print -print0`, `find . -exec x ';' -exec y ';'` | several kinds of lines |
    /// | `git -C docs ls-files`, `git ls-files ':(top)'` | paths that begin in another folder |
    /// | `timeout 1 find .` | the beginning of a path, where it is ended within one |
    /// | `xargs -P 4 grep -l x` | pieces of paths, as several programs write at once |
    pub(super) fn prints_more(&self) -> bool {
        let matched = self.matched;
        let is_each = |kind: &Kind| *kind == Kind::RunEach;
        let is_handed = |kind: &Kind| is_each(kind) || *kind == Kind::RunAppended;
        let actions = matched.seen.iter().filter(|it| prints_path(it)).count()
            + matched.inner.iter().filter(|(kind, _)| is_each(kind)).count();
        let at_once = |kind: &Kind| {
            let seen = || matched.seen.iter().any(|it| MANY_AT_ONCE.contains(&it.as_str()));
            *kind == Kind::RunAppended && seen()
        };
        let elsewhere = |one: &Argument<'_, '_>| {
            *one.kind == Kind::Directory
                || *one.kind == Kind::Revision && one.word.text.starts_with(':')
        };
        actions > 1
            || matched.operands.iter().any(elsewhere)
            || matched.inner.iter().any(|(kind, _)| !is_handed(kind) || at_once(kind))
    }

    /// Returns `true` if a program that prints the names of its files may read its input, which it calls by a name of its own:
    /// `grep -l x` prints `(standard input)`.
    fn names_input(&self) -> bool {
        let (simple, matched) = (self.simple, self.matched);
        if matched.entry.is(ProgramMark::Paths) || matched.entry.is(ProgramMark::Repository) {
            return false;
        }
        let is_seen =
            |options: &[&str]| matched.seen.iter().any(|it| options.contains(&it.as_str()));
        // Where no path is found, there is none, and `-L` names an input without a match.
        let may_be_none =
            simple.fed || simple.found_at_end || is_seen(&["-L", "--files-without-match"]);
        let counts = |one: &&Argument<'_, '_>| is_searched(one) && !(one.word.found && may_be_none);
        let mut named = matched.operands.iter().filter(counts).peekable();
        let searches_folder = || {
            let name = simple.words.first().map_or("", |word| word.text.as_str());
            matches!(name, "rg" | "ripgrep" | "ag") || is_seen(RECURSIVE)
        };
        let is_alone = named.peek().is_none();
        is_alone && (simple.fed || !searches_folder()) || named.any(|one| one.word.text == "-")
    }

    fn printed_paths(&self) -> PrintedPaths {
        let nul = self.matched.nul;
        let secrets = !self.judging.hands_on || self.prints_secrets();
        // The name of a file may have a line break, and an option behind it.
        if nul && self.prints_in_folders() {
            let links = self.prints_links();
            return PrintedPaths { nul, words: PathWords::Plain, links, secrets };
        }
        if self.judging.hands_on && self.prints_words() {
            return PrintedPaths { nul, words: PathWords::PlainNow, links: false, secrets };
        }
        let words = if nul { PathWords::Whole } else { PathWords::Split };
        PrintedPaths { nul, words, links: !nul || self.prints_links(), secrets }
    }

    /// Returns `true` if each path that a program prints begins with the name of a folder, as `./-x` does.
    fn prints_in_folders(&self) -> bool {
        let name = self.simple.words.first().map_or("", |word| word.text.as_str());
        matches!(name, "find" | "gfind") && begin_as_paths(self.matched)
    }

    /// Returns `true` if each path that a program prints is one word and no option, and none is that of a link that leads out.
    fn prints_words(&self) -> bool {
        let Self { simple, judging, matched } = *self;
        let workspace = &judging.settings.workspace;
        let is_ls = |name: &str| matches!(name, "ls" | "dir" | "vdir" | "tree");
        let is_named = simple.words.first().is_some_and(|word| is_ls(&word.text));
        // `ls x` names what is in `x` without it, and an error is no name.
        if is_named || !workspace.looks() || simple.redirections.iter().any(mixes) {
            return false;
        }
        if matched.entry.is(ProgramMark::Repository) {
            let tracked = |it| tracked_are_words(workspace, it, &judging.entries_left);
            return self.names_of_index() && simple.here.iter().all(|it| tracked(it));
        }
        // A program prints a folder as it was given, below which it found a file.
        let mut given = matched.operands.iter().filter(|one| is_searched(one));
        given.all(|one| is_one_word(&one.word.text))
            && names_are_words(workspace, self.searched(workspace), &judging.entries_left)
    }

    /// Returns `true` if a command of git prints names that are in its index, as it would write them in this folder. Other commands of
    /// git also name what is in its history, or not tracked.
    fn names_of_index(&self) -> bool {
        let [git, command, args @ ..] = self.simple.words else { return false };
        let are_among = |known: &[&str]| args.iter().all(|it| known.contains(&&*it.text));
        let is_option = |word: &Word| word.text.starts_with('-');
        git.text == "git"
            && match &*command.text {
                // Not those that git does not track: `-o`, also as `-co`.
                "ls-files" => args.iter().all(|it| !is_option(it) || OF_INDEX.contains(&&*it.text)),
                // Without a revision it compares with the index, and names files by the top of the repository.
                "diff" => {
                    are_among(OF_DIFF) && self.simple.here.iter().all(|it| it.join(".git").exists())
                }
                _ => false,
            }
    }

    /// Returns `true` if a link below the operands of a command, or below its directory if it has none, leads out.
    pub(super) fn has_links_out(&self) -> bool {
        let judging = self.judging;
        let workspace = &judging.settings.workspace;
        workspace.looks() && lead_out(workspace, self.searched(workspace), &judging.entries_left)
    }

    /// The folders below which a command looks for files.
    pub(super) fn searched(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let (simple, matched) = (self.simple, self.matched);
        let is_pipe = |one: &Argument<'_, '_>| one.word.kind == WordKind::Process;
        let named = matched.operands.iter().filter(|one| is_searched(one) && !is_pipe(one));
        // To git, `'k*'` is a pattern of any files of the repository.
        if matched.entry.is(ProgramMark::Repository) {
            return simple.here.iter().cloned().chain([workspace.root().to_owned()]).collect();
        }
        let mut bases: Vec<PathBuf> = Vec::new();
        for here in simple.here.iter() {
            let written = named.clone().filter(|one| !one.word.found);
            for text in written.filter_map(|one| one.word.literal()) {
                match workspace.places(text, here) {
                    Some([_, resolved]) if !resolved.is_dir() => {}
                    Some([_, resolved]) => bases.push(resolved),
                    None => bases.push(here.clone()),
                }
            }
        }
        // A pattern may stand for any folder here, and a path that another command prints for any in the workspace.
        if named.clone().any(|one| one.word.literal().is_none()) {
            bases.extend_from_slice(&simple.here);
        }
        if named.clone().any(|one| one.word.found) {
            bases.push(workspace.root().to_owned());
            bases.extend_from_slice(&simple.here);
        }
        if !matched.operands.iter().any(is_searched) {
            bases.extend_from_slice(&simple.here);
        }
        bases
    }
}

/// Options of `git ls-files` with which it prints what it tracks.
pub(super) const OF_INDEX: &[&str] =
    &["-z", "--", "-c", "--cached", "-m", "--modified", "--exclude-standard"];

/// Options of `git diff` with which it prints names of files that have changed since they were put into the index.
const OF_DIFF: &[&str] = &["--name-only", "-z"];

/// Options with which `xargs` runs several programs at once, which write into each other's lines.
const MANY_AT_ONCE: &[&str] = &["-P", "--max-procs"];

/// Options with which `grep` searches the folder that it runs in.
const RECURSIVE: &[&str] = &["-r", "-R", "--recursive", "--dereference-recursive"];
