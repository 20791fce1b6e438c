//! The advice that stands in place of a rule that was not carried over. We have tried each piece: a rule that follows it
//! allows the command.

use super::{is_allowed, list, quoted, tried};
use crate::format::condition_format::RUNNERS;

/// The line that allows commands which begin with these words, or a sentence that no rule does.
pub(super) fn to_allow(words: &[&str]) -> String {
    let command = words.join(" ");
    let holds = |line: &String| tried(line).is_some_and(|rules| is_allowed(&rules, &command));
    let runs = format!("where.command.runs = {}", quoted(&command));
    // A command that another program runs is one of its own.
    let inner = inner_commands(words).into_iter().map(|all| {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        format!("where.command.runs = {}", list(&all))
    });
    // A program by its path is known to `runs` only where no tool may write it.
    let is_by_path =
        words.iter().any(|word| !word.contains('=') && word.starts_with(['/', '~', '.']))
            || words.first().is_some_and(|word| word.contains('/'));
    let mut all = std::iter::once(runs).chain(inner).filter(|_| !is_by_path);
    if let Some(line) = all.find(holds) {
        return format!("to allow all of them, write `{line}`");
    }
    let exact = format!("where.command.equals = {}", quoted(&command));
    if holds(&exact) {
        return format!("to allow exactly this command, write `{exact}`");
    }
    "no rule allows it, so that a person is asked about it".to_owned()
}

/// The commands that a command line may consist of: `npm test` behind `RUST_LOG=debug`, and `timeout` with `npm test`.
fn inner_commands(words: &[&str]) -> Vec<Vec<String>> {
    let is_set = |word: &&&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|it| {
            !it.is_empty() && it.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        })
    };
    let from = words.iter().take_while(is_set).count();
    let rest = words.get(from..).unwrap_or_default();
    let mut found = Vec::new();
    if from > 0 && !rest.is_empty() {
        found.push(vec![rest.join(" ")]);
    }
    if rest.first().is_some_and(|program| RUNNERS.contains(program)) {
        let behind = (1..rest.len()).filter_map(|at| rest.get(at..));
        found.extend(behind.map(|inner| vec![rest.join(" "), inner.join(" ")]));
    }
    found
}
