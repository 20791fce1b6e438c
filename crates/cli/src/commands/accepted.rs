//! `countersign rules accept`: the rules that count alone from now on.
//!
//! A file of rules may be changed by a program that a tool runs. So the hook and the guard decide by the stricter of the
//! changed file and the one before, until a person has read the difference here. We show the difference of `rules diff`,
//! and accept the text that we have shown: an edit between the look and the answer is another change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::show;
use countersign_cli::config::{Config, Directories};
use countersign_rules::{AcceptedRules, RuleDifference, Rules, difference};
use serde_json::json;

use crate::output::{CommandError, CommandOutput};

/// The records of this user's accepted rules, which no tool may write unasked.
pub(crate) fn accepted_rules(directories: &Directories) -> AcceptedRules {
    AcceptedRules::at(directories.state().join("rules"))
}

/// Differences for people, each with the text of the rule before and after.
pub(crate) fn shown(found: &[RuleDifference]) -> String {
    let marked = |sign: &str, text: &Option<String>| {
        text.iter()
            .flat_map(|text| text.lines())
            .map(|line| format!("\n{sign} {}", show::escape(line)))
            .collect::<String>()
    };
    let texts = found.iter().map(|it| {
        let note = if it.may_widen { " (may widen)" } else { "" };
        format!("{}{note}{}{}", it.rule, marked("-", &it.before), marked("+", &it.after))
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    if found.is_empty() { "no difference".to_owned() } else { text }
}

/// Which files of rules are looked at.
#[derive(Args)]
#[command(
    after_help = "Exit statuses: 0 accepted, or nothing has changed; 1 not accepted, or a file does not load; 2 no terminal, or bad usage."
)]
pub(crate) struct Accept {
    /// A file of rules; by default each that a hook or a guard of this user has decided by
    #[arg(long = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A file of rules that is not as it was accepted.
struct RulesChange {
    path: PathBuf,
    /// The text as it is now; `None` where there is no file.
    text: Option<String>,
    /// The difference to what was accepted, for people.
    shown: String,
    may_widen: usize,
}

impl Accept {
    pub(crate) fn run(&self, config: Option<&Path>) -> Result<CommandOutput, CommandError> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            let problem =
                "a person accepts rules, on a terminal: run this command by hand, without a pipe";
            return Err(CommandError::Usage(problem.to_owned()));
        }
        let directories = Directories::of_user()?;
        let accepted = accepted_rules(&directories);
        let files = match self.files.as_slice() {
            [] => {
                let all = accepted.all().map_err(|error| CommandError::Store(error.to_string()))?;
                let mut all: Vec<_> = all.into_iter().map(|it| it.path).collect();
                all.push(directories.config().join("rules.toml"));
                once(all)
            }
            files => files.to_vec(),
        };
        let groups = Config::load(&directories, config)?.groups;
        let changes = files.iter().filter_map(|file| change(&accepted, file, &groups).transpose());
        let changes = changes.collect::<Result<Vec<_>, _>>()?;
        if changes.is_empty() {
            let line = json!({"accepted": []});
            return Ok(
                CommandOutput::new(0, line).for_people("all rules are as they were accepted")
            );
        }
        if !agreed(&changes).map_err(|error| CommandError::Store(error.to_string()))? {
            let line = json!({"accepted": []});
            return Ok(CommandOutput::new(1, line).for_people("Nothing was accepted."));
        }
        for RulesChange { path, text, .. } in &changes {
            accepted.accept(path, text.as_deref()).map_err(|error| {
                CommandError::Store(format!("`{}` was not accepted: {error}", path.display()))
            })?;
        }
        let paths: Vec<_> = changes.iter().map(|change| &change.path).collect();
        let text = "Accepted. Hooks and guards decide by these rules from their next call on.";
        Ok(CommandOutput::new(0, json!({"accepted": paths})).for_people(text))
    }
}

/// The paths, of those that lead to one file only the first.
fn once(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if found.iter().all(|(_, known)| *known != real) {
            found.push((path, real));
        }
    }
    found.into_iter().map(|(path, _)| path).collect()
}

/// The difference of a file from what was accepted; `None` if it does not.
fn change(
    accepted: &AcceptedRules,
    path: &Path,
    groups: &BTreeMap<String, Vec<String>>,
) -> Result<Option<RulesChange>, CommandError> {
    if AcceptedRules::is_of_machine(path) {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::Store(format!("`{}`: {error}; nothing was accepted", path.display()))
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&error)),
    };
    let before = accepted.accepted(path).map_err(|error| failed(&error))?;
    if before.as_ref().map(|it| it.text.as_ref()) == Some(text.as_ref())
        || before.is_none() && text.is_none()
    {
        return Ok(None);
    }
    if let Some(text) = &text {
        let name = path.display().to_string();
        let rules = Rules::builder().lexical().groups(groups.clone()).text(name, text);
        rules.load().map_err(|error| failed(&error))?;
    }
    let none = "version = 1\n";
    let now = text.as_deref().unwrap_or(none);
    let old = before.as_ref().map_or(none, |it| it.rules());
    // We cannot compare with rules that this version cannot read: then all is new.
    let changes = difference(old, now).or_else(|_| difference(none, now));
    let changes = changes.map_err(|error| failed(&error))?;
    let may_widen = changes.iter().filter(|change| change.may_widen).count();
    let mut text_of_changes = shown(&changes);
    if text.is_none() {
        text_of_changes +=
            "\n\nThere is no such file any more: without rules every call is asked about.";
    }
    Ok(Some(RulesChange { path: path.to_owned(), text, shown: text_of_changes, may_widen }))
}

/// Returns `true` if a file may allow more than what was accepted of it, so that the stricter of both decides.
pub(crate) fn may_allow_more(directories: &Directories, config: &Config, path: &Path) -> bool {
    let accepted = accepted_rules(directories);
    let is_known = accepted.accepted(path).is_ok_and(|it| it.is_some());
    let change = || change(&accepted, path, &config.groups);
    is_known && change().is_ok_and(|it| it.is_some_and(|it| it.may_widen > 0))
}

/// Shows the changes, and asks the person at the terminal.
fn agreed(changes: &[RulesChange]) -> io::Result<bool> {
    let mut text = String::new();
    for RulesChange { path, shown, may_widen, .. } in changes {
        let path = show::escape(&path.display().to_string());
        let _ = write!(text, "{path}\n\n{shown}\n\n");
        let _ = match may_widen {
            0 => writeln!(text, "Nothing of it may allow more than before.\n"),
            1 => writeln!(text, "1 change may allow more than before.\n"),
            many => writeln!(text, "{many} changes may allow more than before.\n"),
        };
    }
    let mut out = io::stdout().lock();
    write!(out, "{text}Type `yes` to accept: ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}
