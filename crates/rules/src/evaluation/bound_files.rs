//! The files whose content decides what a command does, to which the questions about it are bound (rule R6).
//!
//! `python3 x.py` says nothing about what happens, and `psql -f x.sql` as little: the file does. So an approval, also one in
//! advance, is for the file as it was: after a change a person is asked again.
//!
//! | command | bound to |
//! |---|---|
//! | `python3 x.py data.csv`, `./x.sh`, `sh < x.sh`, `cat x.sh \| bash` | the scripts that it names, and no data |
//! | `python3 -m pkg.tool` | `pkg/__init__.py`, and `pkg/tool.py` or `pkg/tool/__main__.py` |
//! | `npm run deploy`, `make x`, `make -C sub x` | the definitions of builds, such as `package.json` and `Makefile`, in the folders that it works in and names, and in those above them in the workspace |
//! | `docker compose up`, `terraform apply`, `serverless deploy` | what the program reads there, too: `compose.yml`, `main.tf`, `serverless.yml` |
//! | `cargo test && git push` | the same, for the first command |
//! | `psql -f x.sql`, `ssh host < x.sh`, `curl -d @x.json`, `scp x.txt host:` | the files that it names: it runs them, or sends them |
//! | `eval ./x.sh`, `env -C tools ./x.sh`, `$(pwd)/x.sh` | each file that its text mentions, as it is not known which it runs |
//! | `cat x.json \| curl -d @- URL`, `x=$(<x.sh); sh -c "$x"`, `while read l; do $l; done < x.sh` | each file that the whole text mentions, as the command gets what another piece of the text has read |
//! | `find . -name x.sh -exec sh {} +`, `ls tools \| xargs sh` | each file below the folders of the text that has such a name, or each, if the text has no name |
//! | `scp -r out host:`, `kubectl apply -f k8s`, `tar c out \| ssh host tar x` | each file below the folder |
//! | `npm publish`, `npx wrangler deploy`, `terraform apply` | each file of the workspace, but for `.git`, `node_modules`, and folders that links lead to |
//! | `git push`, `git commit`, `gh pr create` | the settings of the repository, and its hooks |
//! | `git log`, if a folder of the project is searched for programs first | the program that is found now |
//! | `rm x.py`, `cat x.py` | nothing: it only changes the file, or is harmless whatever the file holds |
//!
//! Nothing that a script reads, imports or starts is looked at, and nothing below a folder whose code a command runs. `eval` and
//! `trap` have no answer in advance. A program that is not known may run every script that it names. In a workspace whose
//! files are not looked at nothing is bound.

use std::collections::BTreeSet;
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use super::unnamed::{self, attached};
use crate::calls::command::CommandView;
use crate::calls::git_words::GitWords;
use crate::calls::glob::Glob;
use crate::format::rule::hex_digest;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::program_files::{self, NamedFiles, digest_of};
use countersign_shell::{Effect, Part, RedirectionTarget, lexically_normal};

/// The largest file that a question is bound to, in bytes. It is read with each question.
pub(super) const MAX_SIZE: u64 = 8 << 20;

/// To how many files questions are bound.
const MAX_FILES: usize = 32;

/// How many files are looked for in a text.
const MAX_NAMED: usize = 1000;

/// In how many folders the names of a text are looked up.
const MAX_FOLDERS: usize = 32;

/// How many words of code are looked up as names of modules.
const MAX_MODULES: usize = 100;

/// The longest name of a file that is looked for, in bytes.
const MAX_NAME: usize = 4096;

/// How many words of the commands are looked at.
const MAX_WORDS: usize = 1000;

/// Commands of a shell that run a text which is not looked at here, and with it scripts that the text names.
const EVALUATORS: &[&str] = &["eval", "trap"];

/// The files that the questions about a call are bound to.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The files whose content decides what the commands do, each with its digest.
    pub(crate) pins: Vec<(String, String)>,
    /// `true` if there may be more of them, or one that is too large, so that no answer in advance is bound to all.
    pub(crate) is_open: bool,
}

/// The files whose content decides what the commands do.
pub(crate) fn contents(
    examined: &ExaminedCall<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
) -> Contents {
    let mut found = Contents::default();
    if !examined.places().looks() {
        return found;
    }
    let (mut files, mut settings) = (BTreeSet::new(), BTreeSet::new());
    for (_, view) in views {
        found.is_open |= of_view(view, examined, &mut files).is_none();
        for part in view.parts().iter().filter(|part| !part.reasons().is_empty()) {
            let known =
                unnamed::settings_of_git(part, may_run(part), examined, &mut settings, &mut files);
            found.is_open |= known.is_none();
            files.extend(examined.engine.classifier.doubtful_program(part.program_name()));
        }
    }
    if !settings.is_empty() {
        let text = settings.into_iter().collect::<Vec<_>>().join("\n");
        found.pins.push(("settings of git".to_owned(), hex_digest(text.as_bytes())));
    }
    found.is_open |= files.len() > MAX_FILES;
    let root = examined.places().root();
    let name = |file: &Path| file.strip_prefix(root).unwrap_or(file).display().to_string();
    for file in files.iter().take(MAX_FILES) {
        match digest_of(file, MAX_SIZE) {
            Ok(Some(digest)) => found.pins.push((format!("content of {}", name(file)), digest)),
            Ok(None) => found.is_open = true,
            Err(_) => {
                found.is_open = true;
                found.pins.push((format!("state of {}", name(file)), state_of(file)));
            }
        }
    }
    if files.len() > MAX_FILES {
        let states = files.iter().skip(MAX_FILES).map(|file| name(file) + " " + &state_of(file));
        let states = states.collect::<Vec<_>>().join("\n");
        found.pins.push(("state of further files".to_owned(), hex_digest(states.as_bytes())));
    }
    found.pins.sort();
    found
}

/// By what a file that is not read with each question is known: its size, its time, and which file it is.
fn state_of(file: &Path) -> String {
    let Ok(found) = fs::metadata(file) else { return "not there".to_owned() };
    let changed = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    // The time of a file can be set to any, and that of its last change of any kind cannot.
    #[cfg(unix)]
    let which = (found.ino(), found.ctime(), found.ctime_nsec());
    #[cfg(not(unix))]
    let which = ();
    format!("{} bytes, {:?}, {which:?}", found.len(), changed.unwrap_or_default())
}

/// Adds the files of the commands of one text. `None` where a command may run others, too.
fn of_view(
    view: &CommandView,
    examined: &ExaminedCall<'_>,
    files: &mut BTreeSet<PathBuf>,
) -> Option<()> {
    let parts = view.parts();
    let is_asked = |(at, part): (usize, &Part)| {
        let is_known = || only_changes(part) && !gets_more(&view.text_of(at), part);
        !part.reasons().is_empty() && !is_known()
    };
    let (one_runs, mut all_known, mut asked) = (parts.iter().any(may_run), Some(()), 0);
    // The folders whose files the whole text was looked up in.
    let mut looked_up = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        let is_asked = is_asked((at, part));
        if !one_runs && !is_asked {
            continue;
        }
        let scripts = examined.files_named_by(part).scripts(part);
        if may_run(part) || is_asked {
            all_known = all_known.and(unnamed::definitions(
                part,
                (may_run(part), is_asked),
                examined,
                files,
            ));
        }
        asked += usize::from(is_asked);
        if is_asked && asked <= MAX_FILES {
            all_known = all_known.and(unnamed::sent_folders(view, part, examined, files));
            // As it is written, and as the shell reads it.
            let text = view.text_of(at) + " " + &part.argv().join(" ");
            let bases = bases(&view.text, part.directories(), examined);
            all_known =
                all_known.and(of_asked(view, (&text, part), &bases, &scripts, examined, files));
            if gets_more(&text, part) && looked_up.insert(part.directories()) {
                files.extend(mentioned(&view.text, &bases, examined));
                files.extend(parts.iter().flat_map(|part| of_words(part, examined)));
            }
        }
        files.extend(scripts);
    }
    all_known = all_known.filter(|()| asked <= MAX_FILES);
    if view.refused.is_some() {
        let bases = bases(&view.text, examined.directories(), examined);
        files.extend(mentioned(&view.text, &bases, examined));
        return None;
    }
    let is_open =
        |part: &Part| EVALUATORS.contains(&part.written_program()) || part.argv().len() > MAX_WORDS;
    all_known.filter(|()| !parts.iter().any(is_open))
}

/// Adds the files of one command that is asked about. `None` where it may be handed others, too.
fn of_asked(
    view: &CommandView,
    (text, part): (&str, &Part),
    bases: &[PathBuf],
    scripts: &BTreeSet<PathBuf>,
    examined: &ExaminedCall<'_>,
    files: &mut BTreeSet<PathBuf>,
) -> Option<()> {
    let mut all = mentioned(text, bases, examined);
    all.extend(of_words(part, examined));
    let is_whole = bases.len() <= MAX_FOLDERS && all.len() < MAX_NAMED && !is_long(&view.text);
    if is_interpreter(part) && part.argv().iter().any(|it| CODE.contains(&it.as_str())) {
        all.extend(modules(text, bases, examined));
    }
    // Beside a script stands its data, and a file that the command writes is none that it runs.
    let is_script = |file: &PathBuf| scripts.is_empty() || program_files::is_script(file);
    let is_written = |file: &PathBuf| part.effects().contains(&Effect::Writes(file.clone()));
    all.retain(|file| is_script(file) && !is_written(file));
    files.extend(all);
    if gets_found(view, text, part) {
        files.extend(found_below(view.parts(), bases, examined)?);
    }
    is_whole.then_some(())
}

/// Returns `true` if a command may get what it works with from another piece of its text: its input, operands, or values.
fn gets_more(text: &str, part: &Part) -> bool {
    part.is_fed() || text.contains(['$', '`'])
}

/// Programs that give other commands the names of files, which their own words need not say.
const FINDERS: &[&str] = &["ag", "fd", "fdfind", "find", "grep", "ls", "rg", "tree"];

/// Commands of git that do.
const FINDERS_OF_GIT: &[&str] = &["diff", "grep", "log", "ls-files", "ls-tree", "show", "status"];

/// Programs that make operands of what they read.
const FEEDERS: &[&str] = &["gxargs", "parallel", "xargs"];

/// Returns `true` if a command finds files.
fn is_finder(part: &Part) -> bool {
    let of_git = || GitWords::of(part).sub.is_some_and(|sub| FINDERS_OF_GIT.contains(&sub));
    FINDERS.contains(&part.program_name()) || part.program_name() == "git" && of_git()
}

/// Returns `true` if a command may be handed files that no word of the text names, and runs or sends them: `find -exec x`,
/// `ls | xargs x`, `x $(ls)`, `cd "$(cat folder)" && x`.
fn gets_found(view: &CommandView, text: &str, part: &Part) -> bool {
    let is_by = |names: &[&str]| part.wrapped_by().is_some_and(|by| names.contains(&by));
    let is_printed = |part: &Part| {
        let before = part.text_in(&view.text).get(..part.span().start).unwrap_or_default();
        is_finder(part) && before.trim_end().ends_with("$(")
    };
    let moves = |(at, part): (usize, &Part)| {
        ["cd", "pushd"].contains(&part.written_program())
            && ["$", "~+", "~-"].iter().any(|it| view.text_of(at).contains(it))
    };
    let all = || view.parts().iter();
    let uses_files = is_interpreter(part) || part.program().is_none() || unnamed::is_sender(part);
    uses_files
        && (is_by(FINDERS)
            || is_by(FEEDERS)
            || part.is_fed() && all().any(is_finder)
            || text.contains('$') && all().any(is_printed)
            || all().enumerate().any(moves))
}

/// Returns `true` if a command runs code that it names or that the workspace holds, or is not known.
fn may_run(part: &Part) -> bool {
    let runs = |effect: &Effect| matches!(effect, Effect::Runs(_) | Effect::RunsWorkspace);
    let is_unknown = part.effects().is_empty() && !part.reasons().is_empty();
    is_unknown || is_interpreter(part) || part.effects().iter().any(runs)
}

/// Programs that delete the files that they are given, or say who may use them, whatever these hold.
const CHANGERS: &[&str] =
    &["chgrp", "chmod", "chown", "rm", "rmdir", "touch", "truncate", "unlink"];

/// Commands of git about files of the working tree as they are then.
const OF_WORKING_TREE: &[&str] =
    &["add", "checkout", "mv", "reset", "restore", "rm", "stage", "stash"];

/// Options whose value is a file that says which files are changed, or how.
const FROM_FILE: &[&str] = &["--pathspec-from-file", "--reference", "--files0-from", "-r"];

/// Returns `true` if a command does to the files that it names what it says, whatever they hold.
fn only_changes(part: &Part) -> bool {
    let is_from_file =
        |word: &String| FROM_FILE.contains(&word.split('=').next().unwrap_or_default());
    // `rm -r` is another one.
    if part.program_name() != "rm" && part.argv().iter().any(is_from_file) {
        return false;
    }
    let sub = || GitWords::of(part).sub.is_some_and(|sub| OF_WORKING_TREE.contains(&sub));
    let name = part.program_name();
    CHANGERS.contains(&name) || (name == "git" && sub())
}

/// The files that a piece of a text mentions in any way: a command runs what they hold, or takes it elsewhere. Where it is not
/// known well enough to say which word is its script, each of them may be.
///
/// | in the text | a file |
/// |---|---|
/// | `psql -fx.sql`, `curl -d @x.json`, `BASH_ENV=x.sh` | `x.sql`, `x.json`, `x.sh` |
/// | `$(pwd)/x.sh`, `"$(<x.sh)"`, `git -c alias.x=!./x.sh` | `x.sh` |
/// | `env -C tools ./x.sh`, `PATH=tools:$PATH x.sh` | `tools/x.sh` |
/// | `./x.s*`, `./{x,y}.sh` | those that are there |
fn mentioned(text: &str, bases: &[PathBuf], examined: &ExaminedCall<'_>) -> BTreeSet<PathBuf> {
    let wide = widened(text);
    let only_stars = |word: &&str| word.chars().all(|c| "*./".contains(c));
    let wide = path_words(&wide).into_iter().filter(|word| !only_stars(word));
    // A name with blanks or marks may stand in a text of another language: `open('a b(1).sh')`.
    let quotes = ['\'', '"', '`'];
    let quoted =
        text.split(quotes).chain(text.split(|c: char| c.is_whitespace() || quotes.contains(&c)));
    let quoted = quoted.filter(|piece| piece.len() <= MAX_NAME);
    let words: BTreeSet<&str> = path_words(text).into_iter().chain(wide).chain(quoted).collect();
    let files = words.into_iter().flat_map(|word| at(word, bases, examined));
    let files = files.map(|file| lexically_normal(&file)).filter(|file| file.is_file());
    files.take(MAX_NAMED).collect()
}

/// The paths that a word names, beginning in each of these folders. A pattern names those that are there.
fn at(word: &str, bases: &[PathBuf], examined: &ExaminedCall<'_>) -> Vec<PathBuf> {
    if word.contains(['*', '?', '[']) {
        let workspace = examined.places().workspace();
        return bases.iter().filter_map(|it| workspace.matches(word, it)).flatten().collect();
    }
    let named = NamedFiles { directories: bases, home: examined.places().home() };
    // In a container, a folder of the workspace has another path: `docker run -v "$PWD:/w" image sh /w/run.sh`.
    let is_elsewhere =
        word.starts_with('/') && !word.starts_with("//") && !Path::new(word).exists();
    let endings = word.match_indices('/').filter_map(|(at, _)| word.get(at + 1..));
    let endings = endings.filter(|ending| is_elsewhere && !ending.is_empty());
    endings.chain([word]).flat_map(|word| named.places(word).collect::<Vec<_>>()).collect()
}

/// Options of interpreters behind which code stands.
const CODE: &[&str] = &["-c", "-e", "-E", "-p", "-r", "--eval", "--print"];

/// The files that code in a text may load by names without an ending: `import tools.x`, `require('./x')`.
fn modules(text: &str, bases: &[PathBuf], examined: &ExaminedCall<'_>) -> BTreeSet<PathBuf> {
    let words = path_words(text).into_iter().take(MAX_MODULES);
    let names = words.flat_map(|word| [word.to_owned(), word.replace('.', "/")]);
    let named = NamedFiles { directories: bases, home: examined.places().home() };
    names.flat_map(|name| named.modules(&name)).collect()
}

/// Returns `true` if a text has more words than are looked at.
fn is_long(text: &str) -> bool {
    text.split(|c: char| !is_of_path(c)).count() > MAX_WORDS
}

/// The folders that the names in a text may be relative to: `pushd tools && ./x.sh` runs `tools/x.sh`, too.
fn bases(whole: &str, directories: &[PathBuf], examined: &ExaminedCall<'_>) -> Vec<PathBuf> {
    let words = path_words(whole).into_iter();
    let named = words.flat_map(|word| at(word, directories, examined));
    // `cd $(dirname tools/x.txt)` works in `tools`.
    let folders = named.flat_map(|it| [it.parent().map(Path::to_owned), Some(it)]).flatten();
    let folders = folders.filter(|it| it.is_dir() && it.starts_with(examined.places().root()));
    let bases: BTreeSet<PathBuf> = directories.iter().cloned().chain(folders).collect();
    bases.into_iter().take(MAX_FOLDERS + 1).collect()
}

/// The files below the folders of a text that its commands may find. `None` where there are too many.
fn found_below(
    parts: &[Part],
    bases: &[PathBuf],
    examined: &ExaminedCall<'_>,
) -> Option<BTreeSet<PathBuf>> {
    let workspace = examined.places().workspace();
    let below = bases.iter().map(|base| workspace.matches("**", base));
    let below = below.collect::<Option<Vec<_>>>()?.into_iter().flatten();
    let names = parts.iter().filter(|part| is_finder(part)).map(searched);
    let names = names.collect::<Option<Vec<_>>>().filter(|names| !names.is_empty());
    let is_found = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut all = names.iter().flatten().flatten();
        file.is_file() && (names.is_none() || all.any(|glob| glob.matches_folded(&name)))
    };
    let found: BTreeSet<PathBuf> = below.filter(is_found).collect();
    (found.len() <= MAX_NAMED).then_some(found)
}

/// The names that a `find` looks for: `*.sh` in `find . -name '*.sh'`. `None` for a command that finds others, too.
fn searched(part: &Part) -> Option<Vec<Glob>> {
    let words = part.argv();
    let is_name = |word: &String| matches!(word.as_str(), "-name" | "-iname");
    let is_not = |word: &String| matches!(word.as_str(), "!" | "-not" | "-o" | "-or" | ",");
    let values = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| is_name(word));
    let values: Vec<&String> = values.map(|(_, value)| value).collect();
    // Sets and quoted characters are not read here.
    let is_plain = !values.iter().any(|value| value.contains(['[', '\\']));
    let is_known = is_plain && !values.is_empty() && !words.iter().any(is_not);
    is_known.then(|| values.into_iter().map(|value| Glob::new(value)).collect())
}

/// The files that a command names, with the quotes removed: by a word, or by the end of one (`@a b.json`, `-fa b.sql`).
fn of_words(part: &Part, examined: &ExaminedCall<'_>) -> BTreeSet<PathBuf> {
    let named = examined.files_named_by(part);
    let redirected = part.redirections().iter().filter_map(|it| match it.target() {
        RedirectionTarget::Read(word) => Some(word.text()),
        _ => None,
    });
    let words = part.argv().iter().map(String::as_str).chain(redirected).take(MAX_WORDS);
    let ends = words.flat_map(|word| {
        let behind = ['@', '=', '<', ':'].map(|mark| Some(word.split_once(mark)?.1));
        behind.into_iter().chain([attached(word), Some(word)]).flatten()
    });
    let files = ends.flat_map(|end| named.places(end)).filter(|file| file.is_file());
    files.take(MAX_NAMED).collect()
}

/// A text with `*` in place of what the shell puts there: `{a,b}`, `$x`, `${x}`. A pattern matches at least that.
fn widened(text: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut wide, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '$']) {
        let (before, from) = rest.split_at(at);
        wide.push_str(before);
        let braces = from.trim_start_matches('$');
        rest = match braces.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((_, behind)) => {
                wide.push('*');
                behind
            }
            None if braces.len() < from.len() && braces.starts_with(is_of_name) => {
                wide.push('*');
                braces.trim_start_matches(is_of_name)
            }
            None => {
                wide.push(' ');
                from.get(1..).unwrap_or_default()
            }
        };
    }
    wide + rest
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "_-./+%~*?[]".contains(c)
}

/// The pieces of a text that may be paths or patterns for them.
fn path_words(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !is_of_path(c)).flat_map(|word| {
        // A path may stand behind the value of a variable, or behind `file://`.
        let behind = word.strip_prefix('/').map(|word| word.trim_start_matches('/'));
        [Some(word), attached(word), behind]
    });
    words.flatten().filter(|word| !word.is_empty()).take(MAX_WORDS).collect()
}

/// Returns `true` if the program of a command runs every file that it is given.
pub(crate) fn is_interpreter(part: &Part) -> bool {
    program_files::is_interpreter(part.written_program())
}
