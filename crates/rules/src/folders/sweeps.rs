//! Calls that read every file below a folder, without naming the files.
//!
//! A rule denies `**/.env`, and `grep -r KEY .` prints it. We look only at the words of a command here, whatever the
//! table of programs says about it, as a rule may allow every command:
//!
//! | call | reads below | but for |
//! |---|---|---|
//! | `grep -r x .`, `diff -r a b`, `tar c .`, `zip -r`, `cp -r`, `rsync -a`, `scp -r`, `docker build .` | its folders | what it excludes |
//! | `rg --hidden x`, `rg -uu x`, `ag -u x` | its folders | `--hidden` alone: what git ignores |
//! | `find . -exec cat {} +`, `find . \| xargs cat`, `for f in $(find .)` | the folders of `find` | other names than its tests say |
//! | `ls -A \| xargs cat`, `du -a . \| cut -f2 \| xargs cat`, `find . \| tar -T - -c` | the folders of the first | what it does not print |
//! | `git add -A && git diff --cached` | the working tree | what git ignores |
//! | a client's own tool that searches in files | its `path` | what git ignores |
//! | `rg x`, `git grep x`, `fd -x cat` | – | they skip hidden and ignored files |
//! | `ls -R`, `du -a`, `find`, `find -exec ls`, `git add -A` | – | they show names at most, if no other command takes these |
//!
//! The flow of the text says where names go: a command whose output goes to the person hands on nothing.
//!
//! A program that is not in this table may read what it likes: if a rule allows a program, it may do
//! anything.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::reaches;
use super::reaches::{Flow, OF_NAMES, Reach, only};
use crate::calls::texts;
use crate::readings::tools::{CLIENTS, CommonTool};
use countersign_shell::program_files::program_name;
use countersign_shell::{
    Commands, Part, Redirection, RedirectionTarget, SimpleCommand, Stage, Word, WordKind,
};

/// The files that a call reads below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// The word that names the folder. One with a `*` stands for each folder that it matches.
    pub(crate) folder: String,
    /// The directories that the word is relative to.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) reach: Reach,
    /// `true` if the folder is known before the command runs.
    pub(crate) is_known: bool,
}

impl Sweep {
    pub(super) fn new(folder: String, directories: &[PathBuf], reach: &Reach) -> Self {
        Self { folder, directories: directories.to_vec(), reach: reach.clone(), is_known: true }
    }
}

/// Programs that find files, and read none themselves.
const FINDERS: &[&str] = &["bfs", "fd", "fdfind", "find", "gfind"];

/// The files that the commands of a text read below folders. `commands` is the text that the parts are of.
pub(crate) fn of_commands(parts: &[Part], commands: &Commands) -> Vec<Sweep> {
    let shown = shown(commands);
    let hands_on = |part: &Part| !is_shown(part, &shown);
    let finds = |part: &&Part| hands_on(part) && reaches::named(part.argv()).is_some();
    let (are_taken, finder) = (parts.iter().any(takes_names), parts.iter().find(finds));
    let index_is_shown = parts.iter().any(|part| reaches::shows_index(part.argv()));
    let deep =
        |part: &Part| texts::is_fed(part) && reaches::read(part.argv(), Flow::default()).is_some();
    let is_deep = parts.iter().any(deep);
    let mut found = Vec::new();
    for part in parts {
        let flow = Flow { names_are_taken: are_taken && hands_on(part), index_is_shown };
        // A program that is not known may run the words behind its own name.
        let later = if part.reasons().is_empty() { 1 } else { part.argv().len().min(MAX_PLACES) };
        let read = (0..later).find_map(|at| {
            let argv = part.argv().get(at..)?;
            Some((argv, part.words().get(at..)?, reaches::read(argv, flow)?))
        });
        if let Some((argv, words, mut reach)) = read {
            // A find may be a folder, of which all is read.
            if is_deep && flow.names_are_taken && reach.links {
                reach.only.clear();
                reach.depth = None;
            }
            found.extend(folders(argv, words, &reach, part.directories()));
            if texts::is_fed(part) && finder.is_none() {
                let unknown = Sweep::new(String::new(), part.directories(), &reach);
                found.push(Sweep { is_known: false, ..unknown });
            }
        }
    }
    found
}

/// The files whose names a command prints into another one, or deletes.
pub(crate) fn of_names(parts: &[Part], commands: &Commands) -> Vec<Sweep> {
    let shown = shown(commands);
    let acts = |part: &Part| {
        let runs =
            |word: &String| matches!(&**word, "-delete" | "-exec" | "-execdir" | "-ok" | "-okdir");
        part.argv().iter().any(runs)
            || part.argv().iter().any(|it| it == "-x" || it == "-X" || it.starts_with("--exec"))
    };
    let of = |part: &Part| {
        let reach =
            reaches::named(part.argv()).filter(|_| acts(part) || !is_shown(part, &shown))?;
        Some(folders(part.argv(), part.words(), &reach, part.directories()))
    };
    parts.iter().filter_map(of).flatten().collect()
}

/// The commands whose output nothing of the text takes.
fn shown(commands: &Commands) -> Vec<&SimpleCommand> {
    let mut found = Vec::new();
    // `exec > list` takes the output of all that follow.
    let redirects = |command: &SimpleCommand| {
        let is_exec = command.words().first().is_some_and(|it| it.text() == "exec");
        is_exec && !command.redirections().is_empty()
    };
    if commands.simple_commands().any(redirects) {
        return found;
    }
    let mut open = vec![commands];
    while let Some(commands) = open.pop() {
        for last in commands.pipelines().iter().filter_map(|it| it.stages().last()) {
            let (lists, redirections): (&[Commands], _) = match last {
                Stage::Simple(command) => {
                    if !command.redirections().iter().any(writes) {
                        found.push(command);
                    }
                    continue;
                }
                Stage::Subshell { commands, redirections } => {
                    (std::slice::from_ref(commands), redirections.as_slice())
                }
                Stage::Compound(compound) => (compound.lists(), compound.redirections()),
                _ => continue,
            };
            if !redirections.iter().any(writes) {
                open.extend(lists);
            }
        }
    }
    found
}

fn writes(redirection: &Redirection) -> bool {
    match redirection.target() {
        RedirectionTarget::Write(word) | RedirectionTarget::Append(word) => {
            redirection.fd() != Some(2) && word.literal() != Some("/dev/null")
        }
        RedirectionTarget::WriteAll(_) => true,
        _ => false,
    }
}

fn is_shown(part: &Part, shown: &[&SimpleCommand]) -> bool {
    let same = |command: &&SimpleCommand| {
        command.span() == part.span()
            && command.words().iter().map(Word::text).eq(part.words().iter().map(Word::text))
    };
    !part.is_inner() && shown.iter().any(same)
}

/// Returns `true` if a command gets names of files that only another one knows, and may show what is in them.
fn takes_names(part: &Part) -> bool {
    let Some(program) = part.words().first() else { return false };
    let name = program_name(program.text());
    let reads =
        |it: &Redirection| matches!(it.target(), RedirectionTarget::Read(word) if is_unknown(word));
    if OF_NAMES.contains(&name) || FINDERS.contains(&name) {
        return part.redirections().iter().any(reads) && !OF_NAMES.contains(&name);
    }
    gets_names(part) || reaches::takes_list(part.argv())
}

/// Returns `true` if only another command knows the files that a command is given.
pub(crate) fn gets_names(part: &Part) -> bool {
    let reads =
        |it: &Redirection| matches!(it.target(), RedirectionTarget::Read(word) if is_unknown(word));
    let words = part.words().get(1..).unwrap_or_default();
    texts::is_fed(part) || words.iter().any(is_unknown) || part.redirections().iter().any(reads)
}

/// Returns `true` if only the shell knows the text of a word.
fn is_unknown(word: &Word) -> bool {
    matches!(word.kind(), WordKind::Expansion | WordKind::Process)
}

/// The files that a searching tool reads. It looks into hidden files, and not into those that git ignores, unless an
/// argument says otherwise.
pub(crate) fn of_search_tool(
    tool: &str,
    args: &Map<String, Value>,
    base: &[PathBuf],
) -> Vec<Sweep> {
    if !is_search_tool(tool) {
        return Vec::new();
    }
    let says_all = |(name, value): (&String, &Value)| {
        let name = name.to_ascii_lowercase();
        let is_off = matches!(value, Value::Bool(false) | Value::Null);
        (name.contains("ignore") || name.contains("unrestricted")) && !is_off
    };
    let reach = Reach {
        hidden: true,
        ignored: args.iter().any(says_all),
        only: only(&texts(args, &["glob", "include", "include_pattern"])),
        ..Reach::default()
    };
    let mut named = texts(args, SEARCH_FOLDERS);
    if named.is_empty() {
        named.push(".".to_owned());
    }
    let sweep = |folder| Sweep::new(folder, base, &reach);
    named.into_iter().map(sweep).collect()
}

/// The arguments in which tools that search in files take their folders.
pub(crate) const SEARCH_FOLDERS: &[&str] = &["path", "paths", "dir_path", "directory", "folder"];

fn is_search_tool(tool: &str) -> bool {
    let is = |name: &str| name.eq_ignore_ascii_case(tool);
    is(CommonTool::SearchFiles.name())
        || CLIENTS.iter().flat_map(|it| it.of_kind(CommonTool::SearchFiles)).any(is)
}

/// The texts in these arguments.
fn texts(args: &Map<String, Value>, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for value in names.iter().filter_map(|name| args.get(*name)) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => {
                found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }
    found.retain(|text| !text.is_empty());
    found
}

/// The folders that the words of a command may name. A word that names a file is found to be none later.
fn folders(argv: &[String], words: &[Word], reach: &Reach, directories: &[PathBuf]) -> Vec<Sweep> {
    let all = || argv.iter().zip(words).skip(1).take(MAX_WORDS);
    let is_folder = |text: &str| {
        !text.starts_with('-') || ["-C", "--dir", "--path"].iter().any(|it| text.starts_with(it))
    };
    let mut named: Vec<(&String, &Word)> =
        all().filter(|(text, _)| is_folder(text) && !reach.without.words.contains(text)).collect();
    let is_operand = |(text, _): &(&String, &Word)| !text.starts_with('-');
    let operands = named.iter().filter(|it| is_operand(it)).count();
    let last = named.iter().rposition(is_operand);
    if reach.to_last && operands > 1 {
        last.map(|at| named.remove(at));
    }
    // The first operand of a search is what is searched for, and a text with `$` is mostly that.
    let counts = |at: usize| !reach.search || operands > 1 && Some(at) == last;
    let unknown = named.iter().enumerate().any(|(at, (_, word))| counts(at) && is_unknown(word));
    let mut found: Vec<Sweep> =
        named.iter().map(|(text, _)| Sweep::new((*text).clone(), directories, reach)).collect();
    let is_there = |text: &String| {
        text.contains(['*', '?', '[', '$', '~'])
            || directories.iter().any(|it| it.join(text).exists())
    };
    let ends_there = last.and_then(|at| named.get(at)).is_some_and(|(text, _)| is_there(text));
    if reach.here && (!reach.search || operands < 2 || !ends_there) {
        found.push(Sweep::new(".".to_owned(), directories, reach));
    }
    if unknown || argv.len() > MAX_WORDS {
        found.push(Sweep { is_known: false, ..Sweep::new(String::new(), directories, reach) });
    }
    found
}

/// The number of words of a command that may be folders.
const MAX_WORDS: usize = 1_000;

/// Behind how many words of a program that is not known another one is looked for.
const MAX_PLACES: usize = 256;
