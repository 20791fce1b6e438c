//! The floor: questions that are built in, are asked every time, and that no file switches off (rule R5).
//!
//! The floor is about what decides: anyone who may write the rules, the settings of version control, or the configuration
//! of an agent, may allow everything else. A file of rules cannot switch it off, since a file that could would be the
//! first thing to write.
//!
//! | question | about |
//! |---|---|
//! | `floor/protected` | a tool that may write a protected name, or one of the loaded files, the store, the key |
//! | `floor/git` | `git` outside of the root, where a repository has settings that run programs; `git config` and others that write such settings |
//! | `floor/countersign` | running the program itself, except for the commands that read rules, and for its help |
//!
//! # How a name is found
//!
//! The list of names is in `shell::protected`, for every door. Each string of the arguments is looked
//! at, at any depth, in every reading that a tool may make of it (`reader::argument`), and where links lead. A folder with
//! a file `HEAD` is a repository for git, so a write of a file of that name asks, too. Content of a file that a known tool
//! writes, and text for people, is no path: a script that names `.git/hooks` is not written there.
//!
//! Of a command, the targets of redirections are looked at, and every word of a part that does more than reading, unless
//! the table of programs calls the word an input. A text that is not analysed may write anything.
//!
//! A tool that a user's file calls read-only is left out, as the questions are about writing. Reading a secret is a
//! matter of rules.

use std::path::{Component, Path, PathBuf, is_separator};
use std::rc::Rc;

use serde_json::Value;

use super::command::CommandView;
use super::rule_set::RuleSet;
use super::ruling::{Layer, Spoke};
use super::scripts;
use super::seen::Seen;
use crate::decision::ToolDecision;
use crate::reader::argument::{self, Likelihood, Readings};
use crate::reader::prose::{self, TextRole};
use crate::reader::word;
use crate::shell::protected::{is_protected, plain};
use crate::shell::repository::GIT_VALUES;
use crate::shell::{
    Commands, Effect, Part, RedirectionTarget, SimpleCommand, Word, WordKind, lexically_normal,
};

/// Adds the questions of the floor about a call.
pub(super) fn speak(
    seen: &Seen<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
    set: &RuleSet,
    spoke: &mut Vec<Spoke>,
) {
    for (_, view) in views {
        for part in 0..view.parts().len() {
            command(seen, view, part, spoke);
        }
        if let Some(why) = &view.refused {
            let reason = format!(
                "is not analysed ({why}), and may write what decides what runs or what is allowed"
            );
            add(spoke, "floor/protected", reason, Some(view.text.clone()));
        }
    }
    if set.only_reads(&seen.call) {
        return;
    }
    let is_command = |name: &str| {
        views.iter().any(|(field, _)| field.first().is_some_and(|first| first == name))
    };
    for (name, value) in seen.call.args {
        let mut each = |text: &str, role: TextRole| {
            if protected_text(seen, text, role) {
                let shown = crate::show::escape(text);
                let reason = format!(
                    "`{shown}` decides what runs or what is allowed, and the tool may write it"
                );
                add(spoke, "floor/protected", reason, None);
            }
        };
        each(name, TextRole::Named);
        if !is_command(name) || !value.is_string() {
            strings(value, seen.call.tool, prose::role(seen.call.tool, name), &mut each);
        }
    }
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
        digest: "".into(),
    };
    if !spoke.contains(&said) {
        spoke.push(said);
    }
}

fn command(seen: &Seen<'_>, view: &CommandView, number: usize, spoke: &mut Vec<Spoke>) {
    let Some(part) = view.parts().get(number) else { return };
    for reason in part.reasons().iter().filter(|reason| reason.is_every_time()) {
        add(spoke, "floor/protected", reason.text().to_owned(), Some(view.text_of(number)));
    }
    let name = scripts::program_name(part);
    if name.eq_ignore_ascii_case("git") {
        let (moves, sub) = git_words(part);
        if is_elsewhere(seen, part, &moves) {
            let reason =
                "uses a repository outside of the workspace, whose settings may run programs";
            add(spoke, "floor/git", reason.to_owned(), Some(view.text_of(number)));
        }
        let asks = part.argv().iter().any(|word| GIT_GETS.contains(&word.as_str()));
        if !asks && !only_reads(part) && sub.is_some_and(|sub| GIT_SETTINGS.contains(&sub)) {
            let reason = "writes the settings of the repository, which may run programs";
            add(spoke, "floor/git", reason.to_owned(), Some(view.text_of(number)));
        }
    }
    if name.eq_ignore_ascii_case("countersign") && decides(part) {
        let reason = "`countersign` decides what is allowed, and a person has to run it".to_owned();
        add(spoke, "floor/countersign", reason, Some(view.text_of(number)));
    }
    if writes_protected(seen, view, part) {
        let reason = "names what decides what runs or what is allowed".to_owned();
        add(spoke, "floor/protected", reason, Some(view.text_of(number)));
    }
}

/// The commands of `countersign rules` that read rules, and change nothing.
const READS_RULES: &[&str] = &["check", "explain", "lint", "replay", "diff", "schema"];

/// Whether `countersign` is run for more than reading its rules or its help.
fn decides(part: &Part) -> bool {
    let mut words = part.argv().iter().skip(1).map(String::as_str);
    match words.next() {
        Some("--help" | "--version") => false,
        Some("rules") => words.next().is_none_or(|command| !READS_RULES.contains(&command)),
        _ => true,
    }
}

/// Whether a command may write something protected.
///
/// A program that is not in the table may write every file that it names, and one that builds may write every word that
/// the table does not call an input. A redirection writes, whatever the program does, also to a name that is known only
/// when it runs. Names may come from a substitution (`cp a "$(echo .envrc)"`), from a pattern (`rm .env*`), from within a
/// script (`awk '{ print > ".envrc" }'`, `echo 'touch .envrc' | sh`), and from a pipe (`echo .envrc | xargs rm`). In a
/// protected folder, every file is one.
fn writes_protected(seen: &Seen<'_>, view: &CommandView, part: &Part) -> bool {
    let written = part.effects().iter().any(|effect| match effect {
        Effect::Writes(path) => protected_place(seen, path),
        _ => false,
    });
    if written
        || writes_unknown(part)
        || targets(part).any(|target| leads(seen, target.text(), Some(part)))
    {
        return true;
    }
    if only_reads(part) {
        return false;
    }
    let names = |word: &str| leads(seen, word, Some(part));
    let printed = |word: &Word| {
        let commands = word.substitutions().iter().flat_map(Commands::simple_commands);
        commands.flat_map(SimpleCommand::words).any(|word| names(word.text()))
    };
    let matched = |word: &Word| {
        word.kind() == WordKind::Glob
            && part.directories().iter().any(|directory| {
                let found = seen.engine.classifier.matches(word.text(), directory);
                found.is_none_or(|all| all.iter().any(|place| protected_place(seen, place)))
            })
    };
    // A script may have thousands of words: files are not looked at for each.
    let is_place = |directory: &PathBuf, word: &str| {
        protected_place(seen, &lexically_normal(&directory.join(word)))
    };
    let mentioned = |word: &str| part.directories().iter().any(|it| is_place(it, word));
    let mut words = part.argv().iter().skip(1);
    let takes_more = runs_script(part) || part.wrapped_by().is_some_and(|it| FEEDS.contains(&it));
    words.any(|word| names(word) && !is_input(seen, part, word))
        || part.words().iter().any(|word| printed(word) || matched(word))
        || targets(part).any(matched)
        || takes_more && fragments(&view.text).any(mentioned)
        || part.directories().iter().any(|directory| protected_place(seen, directory))
}

/// Whether a command is known to read and to do nothing else.
fn only_reads(part: &Part) -> bool {
    let reads = |effect: &Effect| {
        matches!(
            effect,
            Effect::Reads(_)
                | Effect::Lists(_)
                | Effect::ChangesDirectory(_)
                | Effect::RevealsEnvironment
                | Effect::Wraps(_)
                | Effect::Queries(_)
        )
    };
    part.reasons().is_empty() && part.effects().iter().all(reads)
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

/// Whether a redirection writes a file whose name is known only when it runs. The judgement knows the values that the
/// text itself gives to variables, and has an effect for each of these.
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

/// Programs that run a text of their arguments which may write files, beside the interpreters.
const SCRIPTED: &[&str] =
    &["sed", "gsed", "ed", "ex", "vi", "vim", "nvim", "emacs", "sqlite3", "psql"];

fn runs_script(part: &Part) -> bool {
    SCRIPTED.contains(&scripts::program_name(part)) || scripts::is_interpreter(part)
}

/// Programs that hand names on to another one.
const FEEDS: &[&str] = &["xargs", "gxargs", "find", "gfind", "fd", "fdfind", "parallel"];

/// The texts within a script that may be names of files: its words, and what follows a `w` of `sed`.
fn fragments(script: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "\"'`;,(){}<>|&=".contains(c);
    let words = script.split(ends).filter(|it| !it.is_empty()).take(10_000);
    words.flat_map(|word| {
        let written = word.match_indices('w').take(8).filter_map(|(at, _)| word.get(at + 1..));
        std::iter::once(word).chain(written)
    })
}

/// Whether the table says that a command without reasons only reads the file that a word names.
fn is_input(seen: &Seen<'_>, part: &Part, word: &str) -> bool {
    if !part.reasons().is_empty() {
        return false;
    }
    let Ok(places) = seen.places().of(word, part.directory()) else { return false };
    let reads = |place: &PathBuf| {
        part.effects()
            .iter()
            .any(|it| matches!(it, Effect::Reads(path) | Effect::Lists(path) if path == place))
    };
    places.iter().any(reads)
}

/// Sub-commands of git that write its settings, unless they are known to read.
const GIT_SETTINGS: &[&str] = &["config", "init", "remote", "submodule", "lfs", "maintenance"];

/// Words with which `git config` prints settings and changes none.
const GIT_GETS: &[&str] =
    &["--list", "-l", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "get", "list"];

/// The values of the options that move git to another place, and the sub-command.
///
/// The options are read up to the first word that is none, as git does: `git -C x status` works in `x`, and in
/// `git log -C` the option is one of `log`.
fn git_words(part: &Part) -> (Vec<&str>, Option<&str>) {
    let mut moves = Vec::new();
    let mut words = part.argv().iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return (moves, Some(word));
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if GIT_VALUES.contains(&word) => (word, words.next()),
            None => (word, None),
        };
        if matches!(name, "-C" | "--git-dir" | "--work-tree" | "--exec-path") {
            moves.extend(value);
        }
    }
    (moves, None)
}

/// Whether `git` works outside of the root, by its directory or by an option.
fn is_elsewhere(seen: &Seen<'_>, part: &Part, moves: &[&str]) -> bool {
    let root = seen.places().root();
    let outside = |text: &&str| match seen.places().of(text, part.directory()) {
        Ok(places) => places.iter().any(|place| !place.starts_with(root)),
        Err(_) => true,
    };
    !part.directory().starts_with(root) || moves.iter().any(outside)
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

/// Whether a text of the arguments is the path of something protected, in any reading that a tool may make.
fn protected_text(seen: &Seen<'_>, text: &str, role: TextRole) -> bool {
    if text.is_empty() {
        return false;
    }
    if argument::is_plain(text) {
        return leads(seen, text, None);
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
        !is_no_path && leads(seen, &reading.text, None)
    })
}

/// Whether a text is the path of something protected: as it is written, behind an option or `=`, and as it is resolved.
/// Words of a command are relative to the directories that it may run in.
fn leads(seen: &Seen<'_>, text: &str, part: Option<&Part>) -> bool {
    match part {
        None => leads_from(seen, text, None),
        Some(_) => word::readings(text).iter().any(|text| {
            // What is packed has the name without the ending, once it is unpacked.
            let packed = PACKED.iter().find_map(|ending| text.strip_suffix(ending));
            std::iter::once(&**text).chain(packed).any(|text| leads_from(seen, text, part))
        }),
    }
}

const PACKED: &[&str] =
    &[".gz", ".xz", ".bz2", ".zst", ".lz4", ".lzma", ".br", ".Z", ".orig", ".rej"];

fn leads_from(seen: &Seen<'_>, text: &str, part: Option<&Part>) -> bool {
    if text.is_empty() || text.contains('\0') {
        return false;
    }
    let path = Path::new(text);
    // The names above the root are not the agent's choice: a workspace may be below a folder of that name.
    let inside = match path.is_absolute() {
        true => path.strip_prefix(seen.places().root()).unwrap_or(path),
        false => path,
    };
    if is_protected(inside) || is_head(inside) {
        return true;
    }
    if !seen.places().looks() && seen.engine.protected.is_empty() {
        return false;
    }
    let directories = part.map_or_else(|| seen.directories(), Part::directories);
    directories.iter().any(|directory| match seen.places().of(text, directory) {
        Ok(places) => places.iter().any(|place| protected_place(seen, place)),
        Err(_) => false,
    })
}

/// Whether a place is protected, by the names on its way or as one that the user has named.
fn protected_place(seen: &Seen<'_>, place: &Path) -> bool {
    let root = seen.places().root();
    let inside = place.strip_prefix(root).unwrap_or(place);
    is_protected(inside)
        || seen.engine.protected.iter().any(|known| {
            place.starts_with(known)
                || (known.starts_with(place) && place != root && !root.starts_with(place))
        })
}

/// Whether a path is a file by which git takes its folder for a repository, and runs what the settings there name.
/// `HEAD` alone is a revision in most calls.
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
