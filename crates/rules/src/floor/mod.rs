//! The floor: questions that are built in, are asked every time, and that no file switches off (rule R5).
//!
//! The floor is about what decides: anyone who may write the rules, the settings of version control, or the configuration
//! of an agent, may allow everything else. A file of rules cannot switch the floor off: an attacker would write such a
//! file first.
//!
//! | question | about |
//! |---|---|
//! | `floor/protected` | a tool that may write a protected name, or one of the loaded files, the store, the key |
//! | `floor/git` | `git` outside of the root, where a repository has settings that run programs; `git config` and others that write such settings; `git -c` with one |
//! | `floor/countersign` | running the program itself, except for the commands that read rules, and for its help |
//!
//! # How a name is found
//!
//! The list of names is in `shell::protected`, for every door. We look at each string of the arguments, at any depth, in
//! every reading that a tool may make of it (`readings::argument`), and where links lead. A folder with a file `HEAD` is a
//! repository for git, so a write of a file of that name asks, too. Content of a file that a known tool writes, and text for
//! people, is no path: for example, a script that names `.git/hooks` is not written there.
//!
//! Of a command we look at the targets of redirections, and at every word of a part that does more than reading, unless the
//! table of programs calls the word an input. A text that is not analysed may write anything. We look up the files that one
//! command finds and another one writes (`handed`), and those in a folder that is copied (`copied`). Texts that another
//! program runs name what they write (`texts`), names may be computed (`computed`), and some programs write configuration in
//! files that no word names (`configuring`).
//!
//! The questions are about writing, so we leave out tools and commands that only read: a tool of a coding agent that the
//! table of its tools knows as one that reads, a tool of the program itself with such a name of the vocabulary, a tool that a
//! user's file calls read-only, and a command that the table of programs knows as one. Reading a secret is a matter of rules.
//! A directory is where names begin, and we ask about it only where a command does more than read there. A working tree of
//! the project below `.claude/worktrees` is as the root is. A plan of Claude Code (`~/.claude/plans/NAME.md`) is free for
//! that client's own tools: a person sees it before it is followed.

mod computed;
mod configuring;
mod copied;
pub(super) mod git_places;
pub(crate) mod handed;
pub(super) mod own_program;

use std::path::{Component, Path, PathBuf, is_separator};
use std::rc::Rc;

use serde_json::Value;

use super::ruling::{Layer, Spoke};
use crate::calls::command::CommandView;
use crate::calls::left_out;
use crate::calls::texts;
use crate::calls::texts::fragments;
use crate::format::rule_set::RuleSet;
use crate::matching::examined_call::ExaminedCall;
use crate::readings::argument;
use crate::readings::argument::{Likelihood, Readings};
use crate::readings::prose;
use crate::readings::prose::TextRole;
use crate::readings::shells::DIRECTORIES;
use crate::readings::word;
use countersign::decision::ToolDecision;
use countersign_shell::protected::{fits, is_protected, may_be_protected, plain};
use countersign_shell::{
    Assignment, Commands, Effect, Part, Reason, RedirectionTarget, Word, WordKind, inside,
    lexically_normal,
};

/// Adds the questions of the floor about a call.
pub(super) fn speak(
    examined: &ExaminedCall<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
    set: &RuleSet,
    spoke: &mut Vec<Spoke>,
) {
    for (_, view) in views {
        for part in 0..view.parts().len() {
            command(examined, view, part, spoke);
        }
        if let Some(part) = handed::writer(examined, view, |place| protected_place(examined, place))
        {
            let reason = "writes files that another command finds, and what decides what runs or \
                          what is allowed is among them";
            add(spoke, "floor/protected", reason.to_owned(), Some(view.text_of(part)));
        }
        if let Some(why) = &view.refused {
            let reason = format!(
                "is not analysed ({why}), so it may change files that decide what runs or what is \
                 allowed"
            );
            add(spoke, "floor/protected", reason, Some(view.text.clone()));
        }
    }
    if examined.call.is_known_to_read() || set.only_reads(&examined.call) {
        return;
    }
    let shell = ShellCall::of(examined, views);
    // A field of another tool that a rule judges by commands is one for that rule: the tool may take it for a path.
    let is_command = |name: &str| examined.shell_field == Some(name);
    let is_for_people = |name: &str| {
        is_command(name)
            || matches!(prose::role(examined.call.tool, name), TextRole::Prose | TextRole::Content)
    };
    if own_program::is_run_by(examined.call.args, is_for_people) {
        add(spoke, "floor/countersign", OWN_PROGRAM.to_owned(), None);
    }
    for (name, value) in examined.call.args {
        let mut each = |text: &str, role: TextRole| {
            let is_script =
                role == TextRole::Named && prose::is_script(name) && script(examined, text);
            if is_script || protected_text(examined, text, role, shell) {
                let shown = countersign::show::escape(text);
                let reason = format!(
                    "`{shown}` decides what runs or what is allowed, and the tool may write it"
                );
                add(spoke, "floor/protected", reason, None);
            }
        };
        if is_target(name) {
            each(name, TextRole::Named);
        }
        let is_place = shell == ShellCall::Analysed && is_directory(examined, name, value);
        if !is_place && (!is_command(name) || !value.is_string()) {
            strings(value, examined.call.tool, prose::role(examined.call.tool, name), &mut each);
        }
    }
}

/// The knowledge about a call that runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellCall {
    /// Each command is judged as a part, in the directories that it may run in.
    Analysed,
    /// The call runs no command that is looked at, or some that are not.
    Other,
}

impl ShellCall {
    fn of(examined: &ExaminedCall<'_>, views: &[(Vec<String>, Rc<CommandView>)]) -> Self {
        let is_judged = |view: &Rc<CommandView>| view.refused.is_none() && !view.parts().is_empty();
        match examined.shell_field.is_some()
            && !views.is_empty()
            && views.iter().all(|(_, view)| is_judged(view))
        {
            true => Self::Analysed,
            false => Self::Other,
        }
    }
}

/// Returns `true` if the name of an argument may be one of a file, as in a map from files to contents: it has a separator,
/// in some spelling, or is a protected name itself. Other names are those of arguments, wherever the call begins.
fn is_target(name: &str) -> bool {
    !argument::is_plain(name) || name.contains(is_separator) || is_protected(Path::new(name))
}

/// Returns `true` if an argument is the one directory in which the commands of a call run, and nothing else: relative names begin
/// there, and the parts say what is done there.
fn is_directory(examined: &ExaminedCall<'_>, name: &str, value: &Value) -> bool {
    let given = DIRECTORIES.iter().filter(|it| examined.call.args.contains_key(**it));
    DIRECTORIES.contains(&name) && value.is_string() && given.count() == 1
}

fn add(spoke: &mut Vec<Spoke>, rule: &str, reason: String, part: Option<String>) {
    let said = Spoke {
        rule: rule.into(),
        file: None,
        line: None,
        layer: Layer::Floor,
        decision: ToolDecision::Ask,
        reason,
        part,
        every_time: true,
        grantable: false,
        people: None,
        title: None,
        digest: "".into(),
    };
    if !spoke.contains(&said) {
        spoke.push(said);
    }
}

fn command(examined: &ExaminedCall<'_>, view: &CommandView, number: usize, spoke: &mut Vec<Spoke>) {
    let Some(part) = view.parts().get(number) else { return };
    for reason in part.reasons().iter().filter(|reason| reason.is_every_time()) {
        add(spoke, "floor/protected", reason.text().to_owned(), Some(view.text_of(number)));
    }
    for reason in git_places::reasons(examined, part, only_reads(part)) {
        add(spoke, "floor/git", reason.to_owned(), Some(view.text_of(number)));
    }
    if own_program::runs(examined, view, part, only_reads(part)) {
        add(spoke, "floor/countersign", OWN_PROGRAM.to_owned(), Some(view.text_of(number)));
    }
    if writes_protected(examined, view, part) {
        let reason = "may write a file that decides what runs or what is allowed".to_owned();
        add(spoke, "floor/protected", reason, Some(view.text_of(number)));
    }
}

const OWN_PROGRAM: &str = "`countersign` decides what is allowed, and a person has to run it";

/// Returns `true` if a command may write something protected.
///
/// A program that is not in the table may write every file that it names, and one that builds may write every word that
/// the table does not call an input. A redirection writes, whatever the program does, also to a name that is known only
/// when it runs. Names may come from a substitution (`cp a "$(echo .envrc)"`), from a pattern (`rm .env*`), from within a
/// script (`awk '{ print > ".envrc" }'`, `echo 'touch .envrc' | sh`), and from a pipe (`echo .envrc | xargs rm`). In a
/// protected folder, every file is protected.
fn writes_protected(examined: &ExaminedCall<'_>, view: &CommandView, part: &Part) -> bool {
    let written = part.effects().iter().any(|effect| match effect {
        Effect::Writes(path) => protected_place(examined, path),
        _ => false,
    });
    if written
        || writes_unknown(part)
        || targets(part).any(|target| leads(examined, target.text(), Some(part)))
        || targets(part).count() > 0 && makes_repository(examined, part)
    {
        return true;
    }
    if only_reads(part) {
        return false;
    }
    let names = |word: &str| leads(examined, word, Some(part));
    let printed = |word: &Word| {
        let mut commands = word.substitutions().iter().flat_map(Commands::simple_commands);
        let names = |it: &Word| names(it.text());
        commands.any(|it| computed::prints_repository(it) || it.words().iter().any(names))
    };
    let matched = |word: &Word| {
        let mut all = part.directories().iter();
        word.kind() == WordKind::Glob && all.any(|it| matches_protected(examined, word.text(), it))
    };
    let given = |it: &Assignment| {
        let value = it.value();
        // `PAGER='tee .envrc'`
        let leads = || {
            names(value.text())
                || printed(value)
                || may_name(examined, part, value)
                || texts::is_text(value.text()) && tells(examined, part, value.text())
        };
        !git_places::is_place(it.name()) && leads()
    };
    let is_flag = |it: &str| it.starts_with('-') && examined.engine.classifier.is_flag(part, it);
    let is_named = |(at, word): (usize, &String)| {
        names(word)
            && !is_flag(word)
            && !is_input(examined, part, word)
            && !left_out::is_left_out(part.argv(), at)
    };
    let expands = |word: &Word| printed(word) || matched(word) || may_name(examined, part, word);
    let patched = texts::patched(examined.engine, view, part);
    let obeyed = texts::obeyed(examined.engine, view, part);
    part.argv().iter().enumerate().skip(1).any(is_named)
        || part.words().iter().any(expands)
        || targets(part).any(matched)
        || part.assignments().iter().any(given)
        || obeyed.into_iter().any(|text| tells(examined, part, text))
        || texts::is_fed(part) && view.parts().iter().any(|from| hands_on(from, &names, &matched))
        || patched.iter().any(|name| is_patched(examined, part, name))
        || computed::writes(view, part)
        || copied::brings(examined, view, part, |place| protected_place(examined, place))
        || configuring::writes(part)
        || sweeps_all(examined, part)
        || makes_repository(examined, part)
        || part.directories().iter().any(|directory| protected_place(examined, directory))
}

/// Returns `true` if a word of a command, as it is once the shell has put in what it knows, names or matches something protected:
/// `echo CLAUDE.m[d] | xargs touch`.
fn hands_on(from: &Part, names: &impl Fn(&str) -> bool, matched: &impl Fn(&Word) -> bool) -> bool {
    let is_handed_on =
        |(at, word): (usize, &String)| names(word) && !left_out::is_left_out(from.argv(), at);
    from.argv().iter().enumerate().skip(1).any(is_handed_on) || from.words().iter().any(matched)
}

/// Returns `true` if a text that a program may run or obey names something protected, also in parts: `touch .en''vrc`.
///
/// A script may have thousands of words, so we do not look at files for each.
fn tells(examined: &ExaminedCall<'_>, part: &Part, text: &str) -> bool {
    let is_place = |directory: &PathBuf, word: &str| {
        protected_place(examined, &lexically_normal(&directory.join(word)))
    };
    let mentioned = |word: &str| part.directories().iter().any(|it| is_place(it, word));
    let unquoted = texts::unquoted(text);
    let plain = unquoted.as_deref().unwrap_or(text);
    fragments(text).any(mentioned)
        || unquoted.is_some() && fragments(plain).any(mentioned)
        || texts::with_stars(plain)
            .is_some_and(|text| fragments(&text).any(|it| it.contains('*') && may_be_protected(it)))
}

/// Returns `true` if a command is known to read and to do nothing else. Who may see what it reads is another question.
pub(crate) fn only_reads(part: &Part) -> bool {
    let reads = |effect: &Effect| {
        matches!(
            effect,
            Effect::Reads(_)
                | Effect::Lists(_)
                | Effect::ChangesDirectory(_)
                | Effect::RevealsEnvironment
                | Effect::Wraps(_)
                | Effect::Queries(_)
                | Effect::Sends(_)
        )
    };
    part.reasons().iter().all(Reason::is_about_reach) && part.effects().iter().all(reads)
}

/// The words that name the files which redirections write.
fn targets(part: &Part) -> impl Iterator<Item = &Word> {
    part.redirections().iter().filter_map(|it| match it.target() {
        RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::WriteAll(word) => Some(word),
        RedirectionTarget::Read(_)
        | RedirectionTarget::HereString(_)
        | RedirectionTarget::HereDocument(_)
        | RedirectionTarget::Duplicate(_) => None,
    })
}

/// Returns `true` if a redirection writes a file whose name is known only when it runs. The judgement knows the values
/// that the text itself gives to variables, and has an effect for each of these.
fn writes_unknown(part: &Part) -> bool {
    let is_named = |path: &Path| {
        let mut named = targets(part).filter_map(Word::literal);
        named.any(|name| path.ends_with(lexically_normal(Path::new(name))))
    };
    let values = part.effects().iter().filter(|effect| match effect {
        Effect::Writes(path) => !is_named(path),
        _ => false,
    });
    let computed = |word: &&Word| matches!(word.kind(), WordKind::Expansion | WordKind::Glob);
    let runs = |word: &Word| !word.substitutions().is_empty();
    targets(part).any(runs) || values.count() < targets(part).filter(computed).count()
}

/// Returns `true` if a word that is known in parts may name something protected: `.cl${x}aude`.
fn may_name(examined: &ExaminedCall<'_>, part: &Part, word: &Word) -> bool {
    let Some(pattern) = texts::as_pattern(word) else { return false };
    let own = |known: &PathBuf| {
        let fits_all = |directory: &PathBuf| {
            let place = lexically_normal(&directory.join(&pattern));
            let parts = || place.components().zip(known.components());
            let each = |(part, name): (Component<'_>, Component<'_>)| {
                let part = part.as_os_str().to_string_lossy();
                !part.chars().all(|c| c == '*') && fits(&part, &name.as_os_str().to_string_lossy())
            };
            place.components().count() >= known.components().count() && parts().all(each)
        };
        part.directories().iter().any(fits_all)
    };
    word::readings(&pattern).iter().any(|form| may_be_protected(form))
        || examined.engine.protected.iter().any(own)
}

/// Returns `true` if a patch of this file, in the folder that a command works in or names, changes something protected.
fn is_patched(examined: &ExaminedCall<'_>, part: &Part, name: &str) -> bool {
    let below = |folder: &str| leads(examined, &format!("{folder}/{name}"), Some(part));
    leads(examined, name, Some(part))
        || part.argv().iter().skip(1).flat_map(|it| word::readings(it)).any(|it| below(&it))
}

/// Returns `true` if a command goes through all that is below a folder around the workspace, and with it through the
/// workspace.
fn sweeps_all(examined: &ExaminedCall<'_>, part: &Part) -> bool {
    let name = part.program_name();
    let words = part.argv().get(1..).unwrap_or_default();
    let deep = |word: &String| {
        word.starts_with("--rec")
            || word.starts_with("--arch")
            || word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R', 'a'])
    };
    let is_deep = match name {
        "rm" | "trash" | "shred" if name != "rm" || words.iter().any(deep) => {
            // What another command finds is looked up as such.
            let is_found = texts::is_fed(part);
            return words.iter().any(|word| is_around(examined, part, word))
                || !is_found && words.iter().any(|word| is_at_or_around(examined, part, word))
                || !is_found && part.words().iter().any(computed::is_printed_place);
        }
        "cp" | "chmod" | "chown" | "chgrp" | "rsync" | "scp" | "setfacl" => words.iter().any(deep),
        "tar" | "bsdtar" | "unzip" | "7z" | "cpio" => true,
        // The last word of `mv` is where it writes.
        "mv" => return words.iter().rev().skip(1).any(|word| is_around(examined, part, word)),
        "find" | "gfind" | "bfs" => words.iter().any(|word| word == "-delete"),
        _ => false,
    };
    is_deep && words.iter().any(|word| is_around(examined, part, word))
}

/// Returns `true` if a word names a folder that the workspace is below.
fn is_around(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    let root = examined.places().root();
    names_any(examined, part, word, |place| root != place && root.starts_with(place))
}

/// Returns `true` if a word names the workspace, or a folder that it is below.
fn is_at_or_around(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    names_any(examined, part, word, |place| examined.places().root().starts_with(place))
}

fn names_any(
    examined: &ExaminedCall<'_>,
    part: &Part,
    word: &str,
    is_one: impl Fn(&PathBuf) -> bool,
) -> bool {
    part.directories().iter().any(|directory| {
        word::readings(word).iter().any(|it| {
            examined.places().of(it, directory).is_ok_and(|places| places.iter().any(&is_one))
        })
    })
}

/// Returns `true` if a script that a tool is given names something protected.
fn script(examined: &ExaminedCall<'_>, text: &str) -> bool {
    let mentioned = |word: &str| {
        let is_place = |it: &PathBuf| protected_place(examined, &lexically_normal(&it.join(word)));
        examined.directories().iter().any(is_place)
    };
    fragments(text).any(mentioned)
}

/// Returns `true` if the table says that a command without reasons only reads the file that a word names.
fn is_input(examined: &ExaminedCall<'_>, part: &Part, word: &str) -> bool {
    if !part.reasons().iter().all(Reason::is_about_reach) || part.shares_operands() {
        return false;
    }
    let Ok(places) = examined.places().of(word, part.directory()) else { return false };
    let reads = |place: &PathBuf| {
        part.effects()
            .iter()
            .any(|it| matches!(it, Effect::Reads(path) | Effect::Lists(path) if path == place))
    };
    places.iter().any(reads)
}

fn strings(value: &Value, tool: &str, role: TextRole, each: &mut impl FnMut(&str, TextRole)) {
    match value {
        _ if role == TextRole::Content => {}
        Value::String(text) => each(text, role),
        Value::Array(items) => items.iter().for_each(|item| strings(item, tool, role, each)),
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            each(name, TextRole::Named);
            strings(value, tool, prose::role(tool, name), each);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `true` if a pattern matches something protected in a directory, says as much of a protected name as to mean it, or matches
/// too much to tell.
fn matches_protected(examined: &ExaminedCall<'_>, pattern: &str, directory: &Path) -> bool {
    // A pattern may match a link to something protected, whatever the link is called.
    let leads = |place: &PathBuf| {
        let places = examined.places().of(&place.to_string_lossy(), directory);
        places.iter().flatten().chain([place]).any(|it| protected_place(examined, it))
    };
    let found = examined.engine.classifier.matches(pattern, directory);
    may_be_protected(pattern) || found.is_none_or(|all| all.iter().any(leads))
}

/// Returns `true` if a text of the arguments is the path of something protected, in any reading that a tool may make.
fn protected_text(
    examined: &ExaminedCall<'_>,
    text: &str,
    role: TextRole,
    shell: ShellCall,
) -> bool {
    if text.is_empty() {
        return false;
    }
    // The other arguments of a shell are words, and no files of the directory that its commands run in.
    let is_words = || role == TextRole::Prose && text.trim().contains(char::is_whitespace);
    if shell == ShellCall::Analysed
        && (!argument::is_path_like(text) || is_words())
        && is_in_protected(examined)
    {
        return is_protected(Path::new(text));
    }
    let may_be_pattern = role == TextRole::Named && text.contains(['*', '?', '[']);
    if argument::is_plain(text) && !may_be_pattern {
        return leads(examined, text, None);
    }
    let Readings { all, is_address, is_cut, .. } = argument::readings(text, role);
    if is_cut {
        return true;
    }
    // A folder of the text of several lines does not exist, unless a program shortens it away. A file may have any name.
    let is_text = role != TextRole::Named || text.trim().matches('\n').count() > 1;
    all.iter().filter(|it| it.likelihood != Likelihood::Loose).any(|reading| {
        let normal = lexically_normal(Path::new(&*reading.text));
        let first = normal.components().next().map(|it| it.as_os_str().to_string_lossy());
        // An address stays one, unless a program that takes it for a path leads out of its scheme.
        let stays = is_address && first.is_some_and(|it| it.ends_with(':'));
        let broken =
            |part: Component<'_>| part.as_os_str().to_string_lossy().contains(['\n', '\r']);
        let names = usize::from(role == TextRole::Named);
        let mut folders = normal.components().rev().skip(names);
        let is_no_path = stays || is_text && folders.any(broken);
        let matched = || {
            reading.is_pattern
                && role == TextRole::Named
                && examined
                    .directories()
                    .iter()
                    .any(|it| matches_protected(examined, &reading.text, it))
        };
        !is_no_path && (leads(examined, &reading.text, None) || matched())
    })
}

/// Returns `true` if a directory that a call may begin in is protected, so that each name in it is.
fn is_in_protected(examined: &ExaminedCall<'_>) -> bool {
    examined.directories().iter().any(|directory| protected_place(examined, directory))
}

/// Returns `true` if a text is the path of something protected: as it is written, behind an option or `=`, and as it is
/// resolved. Words of a command are relative to the directories that it may run in.
fn leads(examined: &ExaminedCall<'_>, text: &str, part: Option<&Part>) -> bool {
    match part {
        None => leads_from(examined, text, None),
        Some(_) => word::any_reading(text, |text| {
            // What is packed has the name without the ending, once it is unpacked.
            let packed = PACKED.iter().find_map(|ending| text.strip_suffix(ending));
            std::iter::once(text).chain(packed).any(|text| leads_from(examined, text, part))
        }),
    }
}

const PACKED: &[&str] =
    &[".gz", ".xz", ".bz2", ".zst", ".lz4", ".lzma", ".br", ".Z", ".orig", ".rej"];

fn leads_from(examined: &ExaminedCall<'_>, text: &str, part: Option<&Part>) -> bool {
    if text.is_empty() || text.contains('\0') {
        return false;
    }
    let path = Path::new(text);
    // The names above the root are not the agent's choice: a workspace may be below a folder of that name.
    let inner = match path.is_absolute() {
        true => inside(path, examined.places().root()).unwrap_or(path),
        false => path,
    };
    let names_one = is_protected(inner);
    let may_be_free = may_be_in_worktree(text) || part.is_none() && text.contains(PLANS);
    if names_one && !may_be_free || is_head(inner) {
        return true;
    }
    if !examined.places().looks() && examined.engine.protected.is_empty() {
        return names_one && !(part.is_none() && is_plan(examined, &lexically_normal(path)));
    }
    let directories = part.map_or_else(|| examined.directories(), Part::directories);
    directories.iter().any(|directory| match examined.places().of(text, directory) {
        Ok(places) => places.iter().any(|place| protected_place(examined, place)),
        Err(_) => names_one,
    })
}

/// Returns `true` if a text may lead to a working tree of Claude Code, whose place says whether it is protected.
fn may_be_in_worktree(text: &str) -> bool {
    text.contains(".claude/worktrees/")
}

/// The folder in which Claude Code keeps its plans, below the home directory.
const PLANS: &str = ".claude/plans/";

/// Returns `true` if a place is a plan of Claude Code, which the call changes with a tool of that client. A plan is
/// shown to a person before it is followed.
fn is_plan(examined: &ExaminedCall<'_>, place: &Path) -> bool {
    let edits = matches!(examined.call.tool, "write_file" | "edit_file")
        && examined.call.toolset_as_set() == Some("claude");
    let home = examined.places().home().filter(|_| edits);
    let inner = home.and_then(|home| inside(place, home)?.to_str()?.strip_prefix(PLANS));
    inner.is_some_and(|name| name.ends_with(".md") && !name.contains(is_separator))
}

/// Returns `true` if a command names a file `HEAD` below the root, by which git takes the folder for a repository: also
/// as `HEAD` behind a `cd`. Behind `git`, and in a request, it is a revision.
fn makes_repository(examined: &ExaminedCall<'_>, part: &Part) -> bool {
    let sends = |it: &Effect| matches!(it, Effect::Sends(_) | Effect::Queries(_));
    if part.program_name() == "git" || part.effects().iter().any(sends) {
        return false;
    }
    let is_inner = |directory: &PathBuf| directory != examined.places().root();
    let words = part.argv().iter().skip(1).map(String::as_str);
    let mut all = words.chain(targets(part).map(Word::text));
    part.directories().iter().any(is_inner)
        && all.any(|word| word::any_reading(word, |it| plain(it).eq_ignore_ascii_case("HEAD")))
}

/// Returns `true` if a place is protected, by the names on its way or as one that the user has named.
fn protected_place(examined: &ExaminedCall<'_>, place: &Path) -> bool {
    let root = examined.places().root();
    let is_plan = is_plan(examined, place);
    let by_name = is_protected(inside(place, root).unwrap_or(place))
        && examined.own_worktree(place).is_none_or(is_protected)
        && !is_plan;
    by_name
        || examined.engine.protected.iter().any(|known| {
            // The folder of all settings of the client is among these.
            place.starts_with(known) && !(is_plan && known.ends_with(".claude"))
                || (known.starts_with(place) && place != root && !root.starts_with(place))
        })
}

/// Returns `true` if a path is a file by which git takes its folder for a repository, and runs what the settings there
/// name. `HEAD` alone is a revision in most calls.
fn is_head(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    let is_separator = |byte: &u8| is_separator(char::from(*byte));
    let end = text.iter().rposition(|byte| !is_separator(byte)).map_or(0, |at| at + 1);
    let text = text.get(..end).unwrap_or_default();
    let name = text.iter().rposition(is_separator).and_then(|at| text.get(at + 1..));
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    name.is_some_and(|name| plain(name).eq_ignore_ascii_case("HEAD"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_head;

    #[test]
    fn a_head_makes_a_folder_a_repository_and_the_word_alone_does_not() {
        for (path, expected) in
            [("x/HEAD", true), ("x/head", true), ("x/HEAD.", true), ("HEAD", false)]
        {
            assert_eq!(is_head(Path::new(path)), expected, "{path}");
        }
    }
}
