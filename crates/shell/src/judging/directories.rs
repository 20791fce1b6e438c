//! Judges the directories that commands run in or change to.
//!
//! `cd` is followed twice: as a shell goes, by the path as it is written (`cd link/..` is the directory itself), and by
//! what the path resolves to, as `cd -P` and programs do. Where the two differ, the commands after it may run in
//! either, and paths are judged in both.
//!
//! A program that works in the repository of its directory (`git`, and what calls it) runs what that repository's
//! settings name. In the workspace's own repository this was accepted with the workspace; a directory further down may
//! have another one, which anyone who can write there has made.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::bindings::is_in_capitals;
use super::implied::{has_journal, is_earlier, selects_files};
use super::judgement::Effect;
use super::lines::{FILES_CHANGED, with_found_paths};
use super::lists::MAX_DIRECTORIES;
use super::printing::Printing;
use super::simple::{Judging, Simple};
use crate::names::globs::{fits, is_glob};
use crate::names::lists::{is_named, names};
use crate::places::git_settings::has_password;
use crate::places::index::is_tracked;
use crate::places::lexical::is_in;
use crate::places::links::{is_path_to_all, settings_outside, tracked_link_out};
use crate::places::own_repository::OwnRepository;
use crate::places::paths::{PathClass, Workspace, is_secret};
use crate::places::remotes::{Remotes, fetches_more};
use crate::places::repository::worktree_runs_programs;
use crate::places::search_path::{
    ProgramFile, activated_name, project_name, project_name_elsewhere,
};
use crate::places::shims::may_start_other;
use crate::preset::Preset;
use crate::syntax::commands::{Word, WordKind};
use crate::table::{Argument, Does, Kind, Matched, ProgramEntry, ProgramMark, may_be_option};

/// Why to ask about git in a repository that is not the workspace's own.
const OF_ANOTHER_DIRECTORY: &str =
    "uses the repository of another directory, whose settings may run programs";

impl Simple<'_> {
    /// Judges `source DIR/bin/activate`: a build, where that is an environment of Python in the workspace that git does
    /// not track. Returns whether it is one.
    pub(super) fn activates(&mut self, judging: &mut Judging<'_>, args: &[Word]) -> bool {
        let workspace = &judging.settings.workspace;
        let ([script], true, [here]) = (args, workspace.looks(), &*self.here) else { return false };
        let places = script.literal().and_then(|text| workspace.places(text, here));
        let Some([written, resolved]) = places else { return false };
        let is_inside = workspace.place(&resolved) == PathClass::Inside;
        let folder = written.parent().filter(|folder| folder.ends_with("bin")).map(Path::to_owned);
        let (true, Some(folder)) = (is_inside && written.ends_with("activate"), folder) else {
            return false;
        };
        let is_environment = folder.parent().is_some_and(|environment| {
            environment.join("pyvenv.cfg").is_file() && !is_tracked(environment)
        });
        if !is_environment || written != resolved {
            return false;
        }
        self.effects.push(Effect::RunsWorkspace);
        if judging.settings.preset == Preset::Reader {
            self.ask("runs code of the workspace");
        }
        judging.activated.push(folder);
        true
    }

    pub(crate) fn directory(&mut self, judging: &Judging<'_>, word: &Word) {
        let workspace = &judging.settings.workspace;
        if word.kind == WordKind::Glob && !word.split {
            return self.one_of_the_directories(judging, word);
        }
        let there =
            word.literal().filter(|text| !text.is_empty() && !is_earlier(text)).and_then(|text| {
                let places = self.here.iter().map(|here| workspace.places(text, here));
                places.collect::<Option<Vec<_>>>()
            });
        // Where no folder has that name, `cd HOME` goes to the value of the variable, if the shell is set up so (`cdable_vars`).
        let may_be_variable = |there: &Vec<[PathBuf; 2]>| {
            workspace.looks()
                && is_in_capitals(&word.text)
                && !there.iter().flatten().any(|place| place.is_dir())
        };
        match there.filter(|there| !may_be_variable(there)) {
            Some(there) if there.iter().flatten().all(|place| workspace.has(place)) => {
                // A shell goes by the path as it is written, `ShellTool` and `cd -P` by what it resolves to.
                self.here = all_of(there).into();
                self.effects.extend(self.here.first().cloned().map(Effect::ChangesDirectory));
            }
            Some(there) => {
                self.here = all_of(there).into();
                self.ask_about_reach(format!("works in `{}`, outside of the workspace", word.text));
            }
            None => {
                if matches!(&*word.text, "-" | "~-" | "$OLDPWD" | "${OLDPWD}") {
                    self.back(judging);
                    let is_cd = self.words.first().is_some_and(|first| first.text == "cd");
                    if is_cd && judging.has_moved {
                        return;
                    }
                }
                self.ask(format!("works in `{}`, which is known only when it runs", word.text));
            }
        }
    }

    /// Goes to the directory before, which may be each of those that the text was in: which of them it was depends on
    /// what succeeded.
    fn back(&mut self, judging: &Judging<'_>) {
        let mut all = self.here.to_vec();
        all.push(judging.settings.workspace.start().to_owned());
        for place in judging.visited.iter().take(MAX_DIRECTORIES) {
            if !all.contains(place) {
                all.push(place.clone());
            }
        }
        self.here = all.into();
    }

    /// The directory is one of those that a pattern matches now: the value of a loop's variable.
    fn one_of_the_directories(&mut self, judging: &Judging<'_>, word: &Word) {
        let workspace = &judging.settings.workspace;
        let mut there = Vec::new();
        for here in self.here.iter() {
            let found = workspace.matches(&word.text, here).unwrap_or_default();
            let places = found.iter().map(|path| workspace.places(&path.to_string_lossy(), here));
            match places.collect::<Option<Vec<_>>>() {
                Some(places) if !places.is_empty() => there.extend(places),
                _ => {
                    return self.ask(format!(
                        "works in `{}`, which is known only when it runs",
                        word.text
                    ));
                }
            }
        }
        let inside = |place: &PathBuf| workspace.has(place);
        if !there.iter().flatten().all(inside) {
            return self
                .ask_about_reach(format!("works in `{}`, outside of the workspace", word.text));
        }
        self.here = all_of(there).into();
        self.effects.extend(self.here.first().cloned().map(Effect::ChangesDirectory));
        if self.here.len() > MAX_DIRECTORIES {
            self.ask("may run in too many directories");
        }
    }

    /// Where `cd` may go with words that it does not take: bash refuses a second one, dash looks at the first alone, and zsh puts
    /// the second into the path of the directory, in the place of the first.
    pub(super) fn may_go(&mut self, judging: &Judging<'_>, args: &[Word]) -> Vec<PathBuf> {
        let words: Vec<&Word> = args.iter().filter(|it| !it.text.starts_with('-')).collect();
        let mut all = Vec::new();
        if let [old, new] = words[..] {
            let here = self.here.iter().filter_map(|it| it.to_str());
            all.extend(here.map(|it| PathBuf::from(it.replacen(&old.text, &new.text, 1))));
        }
        if let Some(first) = words.first() {
            self.directory(judging, first);
        }
        all.extend(self.here.iter().cloned());
        all
    }

    pub(super) fn went(&mut self, matched: &Matched<'_, '_>) -> Option<Vec<PathBuf>> {
        if matched.operands.is_empty() {
            self.ask("goes to the home directory");
        }
        Some(self.here.to_vec())
    }

    /// Asks about a command that works in the repository of its directory, unless that is known to be the workspace's
    /// own: the settings of another repository may run programs. Returns whether those of the workspace's own do.
    pub(crate) fn repository(&mut self, judging: &Judging<'_>) -> bool {
        let workspace = &judging.settings.workspace;
        let mut runs = false;
        for directory in self.here.iter().filter(|it| !workspace.is_in_own_repository(it)) {
            match workspace.worktree_of_git(directory) {
                Some(tree) => runs |= worktree_runs_programs(&tree),
                None => {
                    self.ask(OF_ANOTHER_DIRECTORY);
                    break;
                }
            }
        }
        let own = judging.own_repository.get_or_init(|| OwnRepository::of(workspace));
        if let Some(name) = &own.leads_out {
            self.ask(format!("git may print what `{name}` in its folder leads to"));
        }
        runs | own.runs_programs
    }

    /// Asks about a command that prints what stands in the repository's settings, or in files that its words select in a way of
    /// their own.
    pub(super) fn reveals(
        &mut self,
        judging: &Judging<'_>,
        (name, matched): (&str, &Matched<'_, '_>),
    ) {
        // `git config` prints the value that it is asked for.
        let is_asked = |one: &Argument<'_, '_>| {
            one.word.text.ends_with(".url") || one.word.kind != WordKind::Literal
        };
        let is_config = || self.words.iter().any(|word| word.text == "config");
        if matched.entry.is(ProgramMark::Addresses)
            && (!is_config() || matched.operands.iter().any(is_asked))
            && judging.settings.workspace.looks()
            && self.here.iter().any(|it| has_password(it))
        {
            self.ask_about_reach("prints an address with a password");
        }
        if let Some(text) = selects_files(name, matched) {
            self.ask(format!("`{text}` may select files that hold secrets"));
        }
        // A code host prints what a file of a repository holds.
        let paths = matched.operands.iter().filter_map(|one| one.word.text.split('?').next());
        if let Some(path) = paths.filter(|it| it.contains("/contents/")).find(|it| is_secret(it)) {
            self.ask_about_reach(format!("reads `{path}`, which may hold secrets"));
        }
    }

    /// Asks about a fetch that may do more than bring what is new at a remote of the workspace's repository.
    pub(super) fn fetched(&mut self, judging: &Judging<'_>, matched: &Matched<'_, '_>) {
        if !matched.entry.fetches() {
            return;
        }
        let named = matched.operands.iter().find(|it| *it.kind == Kind::Remote);
        let all = self.words.iter().any(|word| word.text == "--all");
        let remotes = match named.map(|it| it.word.literal()) {
            Some(None) => return self.ask("talks to a remote that is known only when it runs"),
            Some(Some(name)) => Remotes::Named(name),
            None if all => Remotes::All,
            None => Remotes::Default,
        };
        if let Some(why) = fetches_more(&judging.settings.workspace, remotes, &self.here) {
            self.ask(format!("`git` may do more than look at the remote: {why}"));
        }
    }

    /// The file that the name of a program resolves to. Asks if tools may write it, or put another one in its place.
    pub(super) fn file_of(&mut self, judging: &Judging<'_>, name: &str) -> Option<PathBuf> {
        match judging.settings.search_path.find(name, &judging.settings.workspace) {
            ProgramFile::File(file) => Some(file),
            ProgramFile::Shim(file) => {
                if may_start_other(name, &self.here, judging.settings.workspace.root()) {
                    self.launches(judging, name, ", by a file of versions");
                }
                Some(file)
            }
            ProgramFile::Nothing => None,
            ProgramFile::Problem(problem) => {
                self.ask(problem);
                None
            }
        }
    }

    /// Notes that a program runs code of the workspace.
    pub(super) fn launches(&mut self, judging: &Judging<'_>, name: &str, why: &str) {
        self.effects.push(Effect::RunsWorkspace);
        if judging.settings.preset == Preset::Reader {
            self.ask(format!("`{name}` runs code of the workspace{why}"));
        } else if self.works_outside(judging) {
            self.ask(format!("`{name}` runs outside of the workspace"));
        }
    }

    /// Whether a command may run in a directory outside of the root.
    pub(super) fn works_outside(&self, judging: &Judging<'_>) -> bool {
        let root = judging.settings.workspace.root();
        self.here.iter().any(|directory| !is_in(directory, root))
    }

    /// Asks about a program that may write where it works, in a folder that decides what runs or what is allowed.
    pub(super) fn writes_here(&mut self, judging: &Judging<'_>, name: &str) {
        let workspace = &judging.settings.workspace;
        if self.here.iter().any(|directory| workspace.place(directory) == PathClass::Protected) {
            self.ask_every_time(format!(
                "`{name}` may write in its folder, which decides what runs or what is allowed"
            ));
        }
    }

    /// Judges a database that is read. The program may write journals beside it, so that one in such a folder is asked
    /// about.
    pub(crate) fn database(&mut self, judging: &Judging<'_>, word: &Word) {
        self.path(judging, word, &Kind::Read);
        let workspace = &judging.settings.workspace;
        let places = self.here.iter().filter_map(|here| workspace.places(&word.text, here));
        let protected = |found: &PathBuf| workspace.place(found) == PathClass::Protected;
        let places: Vec<PathBuf> = places.flatten().collect();
        let is_new = |found: &PathBuf| workspace.looks() && !found.exists();
        if judging.settings.preset == Preset::Reader
            && word.text != ":memory:"
            && places.iter().any(is_new)
        {
            self.ask(format!("makes the file `{}`", word.text));
        }
        if places.iter().any(|it| has_journal(it)) {
            self.ask("plays back the journal beside the database, which may name files to delete");
        }
        if places.iter().any(protected) {
            self.ask_every_time(format!(
                "may write beside `{}`, in a folder that decides what runs or what is allowed",
                word.text
            ));
        }
    }

    /// Returns `true` if the program only counts, and gets a file that is known only when it runs, below a folder: what is not
    /// may begin with `/dev/tcp`, with which bash asks another machine.
    pub(crate) fn counts(&self, judging: &Judging<'_>, word: &Word) -> bool {
        let name = self.words.first().and_then(Word::literal).unwrap_or_default();
        let entry = judging.settings.programs.get(name);
        let (folder, _) = word.text.split_once('/').unwrap_or_default();
        let is_below =
            !folder.is_empty() && !folder.contains(['$', '`', '~']) && !word.text.contains("..");
        word.kind == WordKind::Expansion
            && is_below
            && word.substitutions.is_empty()
            && !is_secret(&word.text)
            && entry.is_some_and(|entry| entry.is(ProgramMark::Counts))
    }

    /// Returns the arguments of a program, with paths in the place of a substitution that prints some. Patterns in them say
    /// whether they match the name of an option now; nothing is looked at for a program whose options do no harm.
    ///
    /// Asks about a pattern that matches a name which a program may take for an address: `tar tf h*.tar` asks the machine `h`
    /// where a file is called `h:x.tar`.
    pub(super) fn with_names<'w>(
        &mut self,
        judging: &Judging<'_>,
        entry: &ProgramEntry,
        args: &'w [Word],
    ) -> Cow<'w, [Word]> {
        let workspace = &judging.settings.workspace;
        let args = match args.split_last() {
            Some((last, before)) if self.found_at_end => {
                self.if_changed = Some(FILES_CHANGED);
                Cow::Owned(with_found_paths(before, last))
            }
            _ => Cow::Borrowed(args),
        };
        let is_glob = |word: &Word| word.kind == WordKind::Glob;
        if !workspace.looks() || is_harmless(workspace, entry) || !args.iter().any(is_glob) {
            return args;
        }
        let mut args = args.into_owned();
        for word in args.iter_mut().filter(|word| is_glob(word)) {
            // `-*` is the option itself where it matches nothing.
            let is_open = !word.text.starts_with('-') && may_be_option(word);
            let is_flat = !word.text.contains("**");
            if !is_open && !is_flat {
                continue;
            }
            let found = |here: &PathBuf| (here.clone(), workspace.matches(&word.text, here));
            let found: Vec<_> = self.here.iter().map(found).collect();
            let begins_with_colon = |(here, found): &(PathBuf, Option<Vec<PathBuf>>)| {
                let relative = |path: &PathBuf| path.strip_prefix(here).unwrap_or(path).to_owned();
                let has_colon = |path: PathBuf| {
                    path.iter().next().is_some_and(|it| it.to_string_lossy().contains(':'))
                };
                found.iter().flatten().map(relative).any(has_colon)
            };
            if is_flat && (word.text.contains("//") || found.iter().any(begins_with_colon)) {
                self.ask(format!("`{}` may match what is taken for an address", word.text));
            }
            let are_paths = |(here, found): &(PathBuf, Option<Vec<PathBuf>>)| {
                let text =
                    |path: &PathBuf| path.strip_prefix(here).ok()?.to_str().map(is_path_to_all);
                found.as_ref().is_some_and(|all| all.iter().all(|path| text(path) == Some(true)))
            };
            if is_open && found.iter().all(are_paths) {
                word.no_option = true;
                self.if_changed = Some(FILES_CHANGED);
            }
        }
        Cow::Owned(args)
    }

    /// Asks about words that may be options by the name of a file, for a program of which one does harm.
    pub(super) fn odd_names(
        &mut self,
        judging: &Judging<'_>,
        (name, matched): (&str, &Matched<'_, '_>),
        args: &[Word],
    ) {
        if judging.settings.workspace.looks() && matched.entry.is(ProgramMark::ByName) {
            let closed = matched.behind_dashes.unwrap_or_default();
            let args = args.get(..args.len().saturating_sub(closed)).unwrap_or_default();
            // `--include=*.rs` is an option as it is written.
            let is_open = |it: &&Word| it.kind != WordKind::Literal && !it.text.starts_with('-');
            let options = args.iter().filter(is_open).filter(|it| may_be_option(it));
            // The names that `read` gets may be other ones when it does.
            if args.iter().any(|word| word.line && word.no_option) {
                self.if_changed = Some(FILES_CHANGED);
            }
            for word in options {
                self.ask(format!("`{}` may become an option of `{name}`", word.text));
            }
        }
    }

    /// Asks about a word such as `@x` where a file `x` is: many programs read options from such a file, wherever the word stands.
    pub(super) fn files_of_options(
        &mut self,
        judging: &Judging<'_>,
        (name, entry): (&str, &ProgramEntry),
        args: &[Word],
    ) {
        let expands = || reads_files_of_options(name);
        if !judging.settings.workspace.looks() || entry.is(ProgramMark::Harmless) && !expands() {
            return;
        }
        for word in args {
            // Any text may begin with it, and so may what a pattern matches.
            let is_open = match word.kind {
                WordKind::Expansion => word.text.starts_with(['$', '`']),
                WordKind::Glob => {
                    is_glob(word.text.get(..1).unwrap_or_default()) && !word.no_option
                }
                WordKind::Literal | WordKind::Tilde | WordKind::Process => false,
            };
            if is_open && expands() {
                self.ask(format!(
                    "`{name}` may read options from a file that `{}` names",
                    word.text
                ));
            }
            // Some take the value of an option from such a file: `--name=@x`.
            let value = || word.text.split_once("=@").filter(|_| expands()).map(|(_, file)| file);
            let Some(file) = word.text.strip_prefix('@').or_else(value) else { continue };
            let is_there = |path: PathBuf| path.exists() && !path.is_dir();
            let is_one = match word.literal() {
                Some(_) if file.starts_with('~') => expands(),
                Some(_) => self.here.iter().any(|here| is_there(here.join(file))),
                None => expands(),
            };
            if is_one {
                self.ask(format!(
                    "`{name}` may read options from the file that `{}` names",
                    word.text
                ));
            } else if expands() {
                self.if_changed = Some(FILES_CHANGED);
            }
        }
    }

    /// The paths that the command prints.
    pub(super) fn printing<'s>(
        &'s self,
        judging: &'s Judging<'_>,
        matched: &'s Matched<'_, '_>,
    ) -> Printing<'s> {
        Printing { simple: self, judging, matched }
    }

    /// The name of a program of the project, which is given with its path, or is in the search path of the text.
    pub(super) fn project_name<'w>(
        &self,
        judging: &Judging<'_>,
        word: &Word,
        given: &'w str,
    ) -> Option<&'w str> {
        project_name(given)
            .or_else(|| activated_name(given, &judging.activated))
            .or_else(|| project_name_elsewhere(given).filter(|_| self.is_own(judging, word)))
    }

    /// Returns `true` if the program is one of busybox or toybox, which follow links where those of GNU do not: `grep -r`.
    fn is_applet(&self) -> bool {
        let name = self.program_file().and_then(Path::file_name);
        name.is_some_and(|name| name == "busybox" || name == "toybox")
    }

    /// Asks about a program that follows links, if one of them leads out of the workspace.
    pub(crate) fn followed(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
    ) {
        let workspace = &judging.settings.workspace;
        let (entry, links) = (matched.entry, &judging.links_out);
        let has_settings = workspace.looks()
            && !entry.is(ProgramMark::Harmless)
            && !entry.is(ProgramMark::Builtin)
            && !is_named("programs without settings", name);
        if has_settings {
            // The program that it runs is judged by itself, a build reads what it likes, and help is about no folder.
            let looks = matched.inner.is_empty() && *matched.does != Does::Builds && !matched.help;
            let reason = settings_outside(workspace, name, &self.here)
                .or_else(|| looks.then(|| tracked_link_out(workspace, name, links)).flatten());
            reason.into_iter().for_each(|reason| self.ask_about_reach(reason));
        }
        let follows = matched.follows || self.is_applet() && self.words.iter().any(recurses);
        if follows && !matched.help && self.printing(judging, matched).has_links_out() {
            self.ask(format!("`{name}` follows links, which may lead out of the workspace"));
        }
    }
}

/// Returns `true` for a program that takes `@x` for the name of a file with options.
pub(super) fn reads_files_of_options(name: &str) -> bool {
    names("programs with files of options").iter().any(|it| fits(it, name))
}

/// Returns `true` for `-r`, `-R` and `--recursive`, also among other letters.
fn recurses(word: &Word) -> bool {
    let letters = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word.text == "--recursive" || letters.is_some_and(|letters| letters.contains(['r', 'R']))
}

/// Returns `true` if no option of a program does harm, and no name that may be one.
pub(super) fn is_harmless(workspace: &Workspace, entry: &ProgramEntry) -> bool {
    entry.is(ProgramMark::Harmless) && !(workspace.looks() && entry.is(ProgramMark::ByName))
}

/// The directories, each of them once.
fn all_of(places: Vec<[PathBuf; 2]>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for place in places.into_iter().flatten() {
        if !all.contains(&place) {
            all.push(place);
        }
    }
    all
}
