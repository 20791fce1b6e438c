//! The floor: questions that are built in, are asked every time, and that no file switches off (rule R5).
//!
//! The floor is about what decides: anyone who may write the rules, the settings of version control, or the configuration
//! of an agent, may allow everything else. A file of rules cannot switch it off, since a file that could would be the
//! first thing to write.
//!
//! | question | about |
//! |---|---|
//! | `floor/protected` | a tool that may write a protected name, or one of the loaded files, the store, the key |
//! | `floor/git` | `git` outside of the root: a repository there has settings that run programs |
//! | `floor/countersign` | running the program itself, except to read its rules or its help |
//!
//! # How a name is found
//!
//! Every string of the arguments is looked at, at any depth, as it is written, percent-decoded, with backslashes
//! turned, and resolved through links; names are compared without regard to case and to trailing dots, as some file
//! systems do. A folder with a file `HEAD` is a repository for git, so a write of a file of that name asks, too.
//!
//! A tool that a user's file calls read-only is left out, as the questions are about writing. Reading a secret is a
//! matter of rules.

use std::path::{Component, Path};
use std::rc::Rc;
use std::sync::OnceLock;

use serde_json::Value;

use super::command::CommandView;
use super::paths::forms;
use super::rule_set::RuleSet;
use super::ruling::{Layer, Spoke};
use super::seen::Seen;
use crate::decision::ToolDecision;
use crate::shell::Part;

/// Names of files and folders that decide what is allowed or what runs.
const PROTECTED: &str = include_str!("floor.txt");

/// Adds the questions of the floor about a call.
pub(super) fn speak(
    seen: &Seen<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
    set: &RuleSet,
    spoke: &mut Vec<Spoke>,
) {
    for (field, view) in views {
        for part in 0..view.parts().len() {
            command(seen, view, part, spoke);
        }
        if view.refused.is_some() && view.raw_words().iter().any(|word| protected_text(seen, word))
        {
            let reason = "may write what decides what runs or what is allowed".to_owned();
            add(spoke, "floor/protected", reason, Some(view.text.clone()));
        }
        let _ = field;
    }
    if set.only_reads(&seen.call) {
        return;
    }
    let is_command = |name: &str| {
        views.iter().any(|(field, _)| field.first().is_some_and(|first| first == name))
    };
    for (name, value) in seen.call.args {
        if !is_command(name) {
            strings(value, &mut |text| {
                if protected_text(seen, text) {
                    let shown = crate::show::escape(text);
                    let reason = format!(
                        "`{shown}` decides what runs or what is allowed, and the tool may write it"
                    );
                    add(spoke, "floor/protected", reason, None);
                }
            });
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
    let runs = part.argv().first().map(|name| name.rsplit('/').next().unwrap_or(name));
    let name = runs.unwrap_or_default();
    if name.eq_ignore_ascii_case("git") && git_elsewhere(seen, part) {
        let reason = "uses a repository outside of the workspace, whose settings may run programs";
        add(spoke, "floor/git", reason.to_owned(), Some(view.text_of(number)));
    }
    let decides = name.eq_ignore_ascii_case("countersign")
        && part
            .argv()
            .get(1)
            .is_none_or(|sub| !matches!(sub.as_str(), "rules" | "--help" | "--version"));
    if decides {
        let reason = "`countersign` decides what is allowed, and a person has to run it".to_owned();
        add(spoke, "floor/countersign", reason, Some(view.text_of(number)));
    }
    // A program that is not in the table may write every file that it names.
    if !part.reasons().is_empty()
        && part.argv().iter().skip(1).any(|word| protected_text(seen, word))
    {
        let reason = "names what decides what runs or what is allowed".to_owned();
        add(spoke, "floor/protected", reason, Some(view.text_of(number)));
    }
}

/// Whether `git` works outside of the root, by its directory or by an option.
///
/// The options are read up to the first word that is none, as git does: `git -C x status` works in `x`, and in
/// `git log -C` the option is one of `log`.
fn git_elsewhere(seen: &Seen<'_>, part: &Part) -> bool {
    let root = seen.places().root();
    if !part.directory().starts_with(root) {
        return true;
    }
    let outside = |text: &str| match seen.places().of(text, part.directory()) {
        Ok(places) => places.iter().any(|place| !place.starts_with(root)),
        Err(_) => true,
    };
    let mut words = part.argv().iter().skip(1).peekable();
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "-C" | "--git-dir" | "--work-tree" | "--exec-path" => {
                words.peek().map(|it| it.as_str())
            }
            other => ["--git-dir=", "--work-tree=", "--exec-path="]
                .iter()
                .find_map(|it| other.strip_prefix(it)),
        };
        if value.is_some_and(outside) {
            return true;
        }
        if !word.starts_with('-') && value.is_none() {
            break;
        }
    }
    false
}

fn strings(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            each(name);
            strings(value, each);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a text is the path of something protected, as it is written or as it is resolved.
fn protected_text(seen: &Seen<'_>, text: &str) -> bool {
    if text.is_empty() || text.len() > 4096 || text.contains(['\n', '\0']) {
        return false;
    }
    let is_url = text.contains("://") && !text.starts_with("file:");
    if is_url {
        return false;
    }
    if is_protected(Path::new(text)) {
        return true;
    }
    if text.contains(['%', '\\']) || text.starts_with("file:") {
        let other = forms(text);
        if other.iter().any(|form| is_protected(Path::new(&**form))) {
            return true;
        }
    }
    let own = &seen.engine.protected;
    if !seen.places().looks() && own.is_empty() {
        return false;
    }
    let Ok(places) = seen.places_of(text) else { return false };
    let root = seen.places().root();
    places.iter().any(|place| {
        // The names above the root are not the agent's choice: a workspace may be below a folder of that name.
        is_protected(place.strip_prefix(root).unwrap_or(place))
            || own.iter().any(|known| {
                place.starts_with(known)
                    || (known.starts_with(place) && place != root && !root.starts_with(place))
            })
    })
}

/// Whether a path leads to something protected, by the names in it, without regard to case.
fn is_protected(path: &Path) -> bool {
    let mut last = None;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        let Some(name) = name.to_str() else { continue };
        // Some file systems ignore dots and spaces at the end of a name.
        let name = name.trim_end_matches(['.', ' ']);
        if is_protected_name(name) {
            return true;
        }
        last = Some(name);
    }
    // Git takes a folder with this file for a repository, and runs what its settings name.
    last == Some("HEAD")
}

fn is_protected_name(name: &str) -> bool {
    let git = name
        .len()
        .checked_sub(4)
        .and_then(|at| name.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(".git"));
    if git || name.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("git~1")) {
        return true;
    }
    names().iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let lines = PROTECTED.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).collect()
    })
}
