//! A shell that a client keeps for all commands of a session: its directory, and how it reads a text.
//!
//! Some clients run the commands of a session in one shell ([`keeps_shell`](crate::hook::clients::spec::ToolForm)), and send the
//! directory of the session with each call. After `cd docs`, such a shell runs `cat notes` in `docs`, and the payload does not say
//! so. So the hook [notes](crate::hook::asking::kept_shell) where a command that may run leaves the shell, and judges each later
//! command in all these directories.
//!
//! | command, in `/w` | the shell may then be in `/w`, and |
//! |---|---|
//! | `cd docs && ls` | `/w/docs` |
//! | `(cd docs && ls)` | nowhere else |
//! | `cd "$x"` | anywhere: a later command is asked about, unless it begins with `cd /w &&` |
//!
//! Such a shell may be an interactive one, which reads some texts [in another way](reads_otherwise).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::shells;
use crate::hook::payload::HookCall;
use countersign_shell::{
    Classifier, Commands, Dialect, Effect, Join, Judgement, Part, Preset, SearchPath,
    SimpleCommand, Stage, Workspace,
};

/// A directory that the client's shell may be in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum ShellDirectory {
    /// No command says which one it is.
    Unknown,
    Known(PathBuf),
    /// One that was not there, and that the command does not make: as long as it is not there, the shell is in none of that name.
    Missing(PathBuf),
}

impl ShellDirectory {
    /// Where the shell may be now. A known directory that is there no more has another name.
    pub(crate) fn now(self) -> Option<Self> {
        match self {
            Self::Known(path) if !path.is_dir() => Some(Self::Unknown),
            Self::Missing(path) if !path.is_dir() => None,
            directory => Some(directory),
        }
    }

    /// The path, if a command says which one it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Known(path) | Self::Missing(path) => Some(path),
            Self::Unknown => None,
        }
    }
}

/// Returns `true` if a command runs where it says, wherever it begins: `cd /w && make`. Where that `cd` fails, nothing runs. So
/// `! cd /w && make` does not say where it runs.
pub(crate) fn says_where(command: &str) -> bool {
    let Ok(commands) = Commands::parse(command, Dialect::Bash) else { return false };
    let [first, others @ ..] = commands.pipelines() else { return true };
    if first.is_negated() {
        return false;
    }
    let [Stage::Simple(first)] = first.stages() else { return false };
    let goes = matches!(first.argv().as_deref(), Some(["cd", path]) if path.starts_with('/'));
    let is_alone = first.redirections().is_empty() && first.assignments().is_empty();
    goes && is_alone && others.iter().all(|it| it.join() == Join::And)
}

/// Why an interactive shell may read a text in another way than a shell that is started for it. A kept shell may be an interactive
/// one.
///
/// | text | an interactive shell |
/// |---|---|
/// | `echo '"; make; echo "' "!#:1"`, `^a^b` | bash and zsh put words of earlier commands, or of this one, in the place of `!`, before they read the quotes |
/// | `ls # ; make` | zsh knows no comments |
/// | `cat no<TAB>` | completes the name, if the text is typed into it |
pub(crate) fn reads_otherwise(command: &str) -> Option<&'static str> {
    // Some shells forget at the end of a line that a quote is open, and read `$'\''` as one.
    let quotes_hold = !command.contains('\n') && !command.contains("$'");
    command.lines().find_map(|line| line_reads_otherwise(line, quotes_hold))
}

fn line_reads_otherwise(line: &str, quotes_hold: bool) -> Option<&'static str> {
    const HISTORY: &str = "the client's shell may put other words in the place of `!` or `^`";
    if line.starts_with('^') {
        return Some(HISTORY);
    }
    let (mut single, mut double, mut is_start) = (false, false, true);
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.next() {
        let starts = std::mem::replace(&mut is_start, next == ' ');
        match next {
            '\'' if !double && quotes_hold => single = !single,
            _ if single => {}
            '\\' => drop(rest.next()),
            '"' => double = !double,
            '!' => match rest.peek() {
                None | Some(' ' | '\t' | '=' | '(') => {}
                Some('"') if double => {}
                Some(_) => return Some(HISTORY),
            },
            '\t' if !double => return Some("the client's shell may complete a name at a tab"),
            '#' if starts && !double => {
                let runs = rest.any(|it| ";&|<>`$".contains(it));
                return runs.then_some("the client's shell may run what is behind `#`");
            }
            _ => {}
        }
    }
    None
}

/// The directories in which a call may leave the shell, but for that of the session and those that the shell may be in
/// already. A directory that the call names is one of them.
pub(crate) fn left_in(
    call: &HookCall,
    already: &[ShellDirectory],
    (named, command): (&Path, &str),
) -> Vec<ShellDirectory> {
    let starts = already.iter().filter_map(ShellDirectory::path).chain([named]);
    if is_folder(command, starts.clone()) {
        return vec![ShellDirectory::Unknown];
    }
    let mut found = vec![ShellDirectory::Known(named.to_owned())];
    // Most commands stay where they are, and are not judged here.
    if shells::changes_directory(command) {
        found.extend(starts.flat_map(|start| left_from(start, command)));
    }
    found.sort();
    found.dedup();
    found.retain(|it| it.path() != Some(&*call.directory) && !already.contains(it));
    found
}

/// The directories in which a command may leave a shell that is in this one.
fn left_from(start: &Path, command: &str) -> Vec<ShellDirectory> {
    let classifier = Classifier::new(Workspace::new(start), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    let judgement = classifier.judge(command, Dialect::Bash);
    let Some(after) = judgement.directories_after() else {
        return vec![ShellDirectory::Unknown];
    };
    let makes = makes_before_it_moves(&judgement);
    let left = after.iter().map(|path| match makes || path.is_dir() {
        true => ShellDirectory::Known(path.clone()),
        false => ShellDirectory::Missing(path.clone()),
    });
    left.collect()
}

/// Returns `true` if a command does more than read before it changes the directory, and so may make that directory.
fn makes_before_it_moves(judgement: &Judgement) -> bool {
    let moves =
        |part: &Part| part.effects().iter().any(|it| matches!(it, Effect::ChangesDirectory(_)));
    let reads = |it: &Effect| {
        matches!(it, Effect::Reads(_) | Effect::Lists(_) | Effect::ChangesDirectory(_))
    };
    let parts = judgement.parts();
    let last = parts.iter().rposition(moves).unwrap_or(parts.len());
    parts.iter().take(last).any(|part| !part.effects().iter().all(reads))
}

/// Returns `true` if a word alone is a folder in one of these directories. zsh goes there, if it is set up so.
fn is_folder<'a>(command: &str, mut starts: impl Iterator<Item = &'a Path>) -> bool {
    let Ok(commands) = Commands::parse(command, Dialect::Bash) else { return false };
    let alone = |it: &SimpleCommand| match it.argv().as_deref() {
        Some([word]) => Some((*word).to_owned()),
        _ => None,
    };
    let words: Vec<_> = commands.simple_commands().filter_map(alone).collect();
    starts.any(|start| words.iter().any(|word| start.join(word).is_dir()))
}
