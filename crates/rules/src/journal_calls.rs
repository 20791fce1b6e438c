//! The calls of a journal as a proposal names them, and tells them apart: the tool as rules name it, the words that a command begins
//! with, and the call on one line.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::decision_journal::JournalEntry;
use super::import::plain_words;
use crate::calls::call::RuleCall;
use crate::readings::shells::{is_for_people, is_known_shell};
use crate::readings::tools::{OF_CLIENT, client_of, is_common};
use countersign::show;

/// The text of the command, if the call is one of a shell.
pub(crate) fn command(entry: &JournalEntry) -> Option<&str> {
    let is_shell = entry.server.is_none() && is_known_shell(&entry.tool);
    entry.args.get("command").filter(|_| is_shell)?.as_str()
}

/// Programs whose second word says what they do: a rule about the first one alone would be about everything.
const MANY_COMMANDS: &[&str] = &[
    "apt",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "dart",
    "deno",
    "docker",
    "dotnet",
    "flutter",
    "gcloud",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "jj",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "podman",
    "poetry",
    "rails",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// The plain words that a command begins with: the program, and a sub-command.
pub(crate) fn first_words(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().take(2).collect();
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match words.as_slice() {
        [program, second] if MANY_COMMANDS.contains(program) => {
            let is_said = is_name(second) && !second.starts_with('-');
            if is_said { vec![*program, *second] } else { Vec::new() }
        }
        [program, ..] if plain_words(&[*program]) => vec![*program],
        _ => Vec::new(),
    }
}

/// The common part of calls that one rule may be about: the tool, and the words of a command or the names of arguments.
pub(crate) fn family(entry: &JournalEntry) -> String {
    let words = command(entry).map(|text| first_words(text).join(" "));
    let names: Option<Vec<&String>> = words.is_none().then(|| entry.args.keys().collect());
    json!([pattern(entry), words, names]).to_string()
}

/// The tool as rules name it.
pub(crate) fn pattern(entry: &JournalEntry) -> String {
    let own = entry.own_name();
    match (&entry.server, entry.toolset.as_deref()) {
        (Some(server), _) => format!("mcp:{server}/{own}"),
        (None, Some(toolset)) => match toolset.strip_prefix(OF_CLIENT) {
            Some(client) => format!("{client}:{own}"),
            None if client_of(toolset).is_some() && is_common(&entry.tool) => entry.tool.clone(),
            None => format!("set:{toolset}/{own}"),
        },
        (None, None) => entry.tool.clone(),
    }
}

/// The tool as rules name it, if the pattern is about this tool alone.
pub(crate) fn literal(entry: &JournalEntry) -> Result<String, String> {
    let pattern = pattern(entry);
    if pattern.contains(['*', '?', '[']) {
        return Err(format!(
            "`{}` has a wildcard, so that a rule would be about other tools, too",
            show::escape(&pattern)
        ));
    }
    let none = Map::new();
    let named = RuleCall::named(&pattern, &none);
    let is_same = named.server_name() == entry.server.as_deref()
        && [entry.own_name(), &entry.tool].contains(&named.tool());
    match is_same {
        true => Ok(pattern),
        false => Err(format!("a rule reads `{}` as another tool", show::escape(&pattern))),
    }
}

/// The call on one line: of a command only its text, as a rule compares it.
pub(crate) fn shown(entry: &JournalEntry) -> String {
    let text = match command(entry) {
        Some(text) => text.to_owned(),
        None => Value::Object(Map::clone(&entry.args)).to_string(),
    };
    show::escape(&format!("{}: {text}", pattern(entry)))
}

/// The call on one line, with its directory and all of its arguments.
pub(crate) fn shown_whole(entry: &JournalEntry) -> String {
    let others = command(entry).map(|_| {
        let others = arguments(entry).filter(|(name, _)| *name != "command");
        others.map(|(name, value)| format!(", {name} = {value}")).collect::<String>()
    });
    let (directory, others) = (entry.directory.display().to_string(), others.unwrap_or_default());
    format!("{} (in {})", shown(entry), show::escape(&format!("{directory}{others}")))
}

/// All by which a call differs from another one.
pub(crate) fn whole(entry: &JournalEntry) -> String {
    let args: BTreeMap<_, _> = arguments(entry).collect();
    json!([entry.server, entry.toolset, entry.own_name(), entry.tool, entry.directory, args])
        .to_string()
}

/// The arguments, but for the words for people of a shell: a model words them anew each time.
pub(crate) fn arguments(entry: &JournalEntry) -> impl Iterator<Item = (&String, &Value)> {
    let is_shell = command(entry).is_some();
    entry.args.iter().filter(move |(name, value)| !(is_shell && is_for_people(name, value)))
}
