//! The classes of a text of commands: by the classes of the commands that are asked about.

use serde_json::json;

use super::addresses;
use super::commands::{CommandClass, CommandClasses};
use super::{listed, scripts, unknown};
use crate::calls::command::CommandView;
use crate::matching::examined_call::ExaminedCall;
use crate::readings::shells;
use countersign::decision::GrantPattern;
use countersign_shell::{Commands, CompoundKind, Part, Stage, Word, WordKind};

/// Words of a shell that change how it reads what follows them.
const CHANGES_SHELL: &[&str] = &[
    ".",
    "alias",
    "autoload",
    "bind",
    "bindkey",
    "builtin",
    "declare",
    "disable",
    "emulate",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "functions",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "rehash",
    "setopt",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unfunction",
    "unhash",
    "unset",
    "unsetopt",
    "zle",
    "zmodload",
    "zstyle",
];

/// How many kinds of commands a class has at most. More of them are no kind of text that a person would mean.
const MOST: usize = 4;

/// The classes of a text in which these commands are asked about.
pub(super) fn of_text(
    examined: &ExaminedCall<'_>,
    field: &str,
    view: &CommandView,
    asked: &[usize],
) -> Vec<GrantPattern> {
    if changes_shell(view) {
        return Vec::new();
    }
    let of = |at: &usize| classes(examined, view, view.parts().get(*at)?);
    let Some(all) = asked.iter().map(of).collect::<Option<Vec<CommandClasses>>>() else {
        return Vec::new();
    };
    let found = joined(all);
    found.into_iter().map(|class| pattern(examined, field, class)).collect()
}

fn classes(examined: &ExaminedCall<'_>, view: &CommandView, part: &Part) -> Option<CommandClasses> {
    // A command in a text that another one is given, as with `bash -c`, does not stand in the call.
    let mut written = view.commands().simple_commands();
    if part.is_inner() || !written.any(|it| it.span() == part.span() && it.words() == part.words())
    {
        return None;
    }
    let found = listed::classes(examined, part).or_else(|| addresses::of_curl(examined, part));
    found
        .or_else(|| scripts::class(examined, view, part))
        .or_else(|| unknown::class(examined, view, part))
}

/// The classes of commands as those of their text: its own, if it is of one kind, and otherwise one for all.
fn joined(mut all: Vec<CommandClasses>) -> Vec<CommandClass> {
    all.sort_by(|one, other| one.narrow.name.cmp(&other.narrow.name));
    all.dedup();
    if let [only] = all.as_slice() {
        return std::iter::once(only.narrow.clone()).chain(only.wide.clone()).collect();
    }
    let mut kinds: Vec<CommandClass> = all.into_iter().map(CommandClasses::widest).collect();
    kinds.sort_by(|one, other| one.name.cmp(&other.name));
    kinds.dedup();
    match kinds.len() {
        0 | 1 => kinds,
        2..=MOST => vec![chain(&kinds)],
        _ => Vec::new(),
    }
}

fn chain(kinds: &[CommandClass]) -> CommandClass {
    let names: Vec<_> = kinds.iter().map(|it| &it.name).collect();
    let says: Vec<_> = kinds.iter().map(|it| it.says.as_str()).collect();
    let examples: Option<Vec<&str>> = kinds.iter().map(|it| it.example.as_deref()).collect();
    let never = kinds.iter().flat_map(|it| it.never.first().cloned());
    CommandClass {
        name: format!("commands {}", json!(names)),
        says: format!("a text of {}", says.join(" and ")),
        example: examples.map(|all| all.join(" && ")),
        never: never.chain(["a text with any other command that is asked about".into()]).collect(),
    }
}

/// The class as one of calls. The calls may differ in how long the tool waits, too.
fn pattern(examined: &ExaminedCall<'_>, field: &str, class: CommandClass) -> GrantPattern {
    // Another tool may do anything with such an argument.
    let is_shell = examined.shell_field == Some(field);
    let is_freed = |name: &&String| is_shell && *name != field && shells::is_of_waiting(name);
    let waits = examined.call.args.keys().filter(is_freed);
    let more = ["timeout", "run_in_background"].into_iter().filter(|_| is_shell).map(str::to_owned);
    let mut fields: Vec<String> = waits.cloned().chain(more).collect();
    fields.sort();
    fields.dedup();
    let pattern = GrantPattern::new(class.name, class.says)
        .with_field(field)
        .with_pin(format!("commands of {field}"))
        .with_pin("content of ");
    let pattern = fields.into_iter().fold(pattern, GrantPattern::with_field);
    let pattern = class.example.into_iter().fold(pattern, GrantPattern::with_example);
    class.never.into_iter().fold(pattern, GrantPattern::with_never)
}

/// Whether a text changes how the shell reads the rest of it: which programs its words stand for, and what they are given.
fn changes_shell(view: &CommandView) -> bool {
    let changes = |part: &Part| {
        let name = part.program_name();
        let sets_variable = || part.argv().iter().any(|word| word.starts_with("-v"));
        CHANGES_SHELL.contains(&name)
            || name == "set" && !only_stops(part)
            || name == "printf" && sets_variable()
            || part.words().iter().any(assigns)
    };
    let sets = |command: &countersign_shell::SimpleCommand| {
        command.words().is_empty() && !command.assignments().is_empty()
    };
    view.parts().iter().any(changes)
        || view.commands().simple_commands().any(sets)
        || has_loop(view.commands())
}

/// Returns `true` if a word may set a variable: `${PATH:=docs}`. In a quoted script such as that of `awk`, `$4 <= 9` is text.
fn assigns(word: &Word) -> bool {
    word.kind() != WordKind::Literal && word.text().contains('$') && word.text().contains('=')
}

/// Whether a text has a `for`, which sets a variable: `for PATH in docs`.
fn has_loop(commands: &Commands) -> bool {
    commands.pipelines().iter().flat_map(|it| it.stages()).any(|stage| match stage {
        Stage::Simple(command) => {
            command.words().iter().flat_map(Word::substitutions).any(has_loop)
        }
        Stage::Subshell { commands, .. } => has_loop(commands),
        Stage::Compound(compound) => {
            matches!(compound.kind(), CompoundKind::For { .. })
                || compound.lists().iter().any(has_loop)
        }
        _ => false,
    })
}

/// Whether `set` only says at which errors the shell stops.
fn only_stops(part: &Part) -> bool {
    let is_known = |word: &String| {
        let letters = word.strip_prefix('-').filter(|it| !it.is_empty());
        word == "pipefail"
            || letters.is_some_and(|it| it.chars().all(|c| matches!(c, 'e' | 'u' | 'o' | 'x')))
    };
    part.argv().iter().skip(1).all(is_known)
}
