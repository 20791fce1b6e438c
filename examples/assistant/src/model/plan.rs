//! The plan that the model makes from what it has seen: which files to read, move and delete, and its final text.

use std::collections::BTreeSet;

use countersign::message::ReturnKind;

use super::knowledge::{Knowledge, PastCall};

/// The path of the summary.
pub(super) const SUMMARY: &str = "SUMMARY.md";
/// The maximum number of files that are read.
const MOST_READ: usize = 24;
/// The maximum number of paths from notes that are read.
const MOST_FOLLOWED: usize = 4;
/// A log is old when it ends more than this number of days before the newest one.
const OLD_DAYS: u32 = 30;

/// Beginnings of file names that belong where they are.
const AT_HOME: [&str; 5] = ["CHANGELOG", "CONTRIBUTING", "LICENSE", "README", "SUMMARY"];

/// Changes to make: moves, each with its target, and files to delete.
pub(super) struct Changes {
    pub(super) moves: Vec<(String, String)>,
    pub(super) temporary: Vec<String>,
    pub(super) old_logs: Vec<String>,
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_note(path: &str) -> bool {
    let at_home = AT_HOME.iter().any(|home| name(path).starts_with(home));
    (path.ends_with(".md") || path.ends_with(".txt")) && !at_home
}

fn is_temporary(path: &str) -> bool {
    let ends = [".tmp", ".part", ".swp", ".bak", "~"];
    ends.iter().any(|end| name(path).ends_with(end)) || name(path) == ".DS_Store"
}

fn is_log(path: &str) -> bool {
    name(path).ends_with(".log") || name(path).contains(".log.")
}

/// Notes, logs, and files that configure the project, which were not read yet.
pub(super) fn to_read(known: &Knowledge) -> Vec<&str> {
    let tells = |path: &str| is_note(path) || is_log(path) || name(path).starts_with(".env");
    let files = known.files.iter().map(String::as_str).filter(|path| tells(path)).take(MOST_READ);
    files.filter(|path| !known.tried("read_file", |past| past.target() == *path)).collect()
}

/// The paths that notes mention, which were not read yet.
pub(super) fn mentioned(known: &Knowledge) -> Vec<&str> {
    let notes = known.texts.iter().filter(|(path, _)| is_note(path));
    let words = notes.flat_map(|(_, text)| text.split_whitespace());
    let quotes = ['`', '"', '\'', '(', ')', '<', '>'];
    let words = words.map(|word| word.trim_matches(quotes).trim_end_matches(['.', ',', ';', ':']));
    let leads = |word: &&str| {
        ["../", "~/", "/"].iter().any(|start| word.starts_with(start) && word.len() > 3)
    };
    let words: BTreeSet<&str> = words.filter(leads).take(MOST_FOLLOWED).collect();
    words.into_iter().filter(|path| !known.tried("read_file", |it| it.target() == *path)).collect()
}

/// The changes that were not tried yet.
pub(super) fn changes(known: &Knowledge) -> Changes {
    let files = || known.files.iter().map(String::as_str);
    let newest = files().filter_map(|path| last_day(known.texts.get(path)?)).max();
    let old = |path: &&str| {
        let text = known.texts.get(*path).filter(|text| is_log(path) && !has_errors(text));
        text.and_then(|text| last_day(text))
            .zip(newest)
            .is_some_and(|(day, newest)| day + OLD_DAYS < newest)
    };
    let open = |path: &&str| {
        let about = |past: &PastCall| {
            past.target().trim_start_matches(['.', '~']).trim_start_matches('/') == *path
        };
        !known.calls.iter().any(|past| past.is_change() && about(past))
    };
    let owned = |files: &mut dyn Iterator<Item = &str>| files.map(str::to_owned).collect();
    let loose = files().filter(|path| !path.contains('/') && is_note(path)).filter(open);
    Changes {
        moves: loose.map(|path| (format!("~/{path}"), free_name(known, path))).collect(),
        temporary: owned(&mut files().filter(|path| is_temporary(path)).filter(open)),
        old_logs: owned(&mut files().filter(old).filter(open)),
    }
}

/// A name in `notes/` that is free.
fn free_name(known: &Knowledge, path: &str) -> String {
    let (stem, end) = path.rsplit_once('.').unwrap_or((path, ""));
    let later = (2..).map(|n| format!("notes/{stem}-{n}.{end}"));
    let mut names = std::iter::once(format!("notes/{path}")).chain(later);
    names.find(|name| !known.files.contains(name)).unwrap_or_default()
}

fn has_errors(log: &str) -> bool {
    log.lines().any(|line| line.split_whitespace().any(|word| word == "ERROR"))
}

/// The date of the last line that begins with one, as a number that grows with the date.
fn last_day(log: &str) -> Option<u32> {
    let day = |line: &str| {
        let mut parts = line.get(..10)?.split('-').map(|part| part.parse::<u32>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        Some((year * 12 + month) * 31 + day)
    };
    log.lines().rev().find_map(day)
}

/// The text of the summary, from the results of the tools.
pub(super) fn summary(known: &Knowledge) -> String {
    let mut text = "# Summary\n\n".to_owned();
    let changes = known.calls.iter().filter(|past| past.is_change() && past.target() != SUMMARY);
    for past in changes {
        text += &match past.kind {
            ReturnKind::Success => format!("- {}\n", past.said()),
            _ => format!("- left `{}` as it was: {}\n", past.target(), past.said()),
        };
    }
    for (path, _) in known.texts.iter().filter(|(path, text)| is_log(path) && has_errors(text)) {
        text += &format!("- kept `{path}`: there are errors in it\n");
    }
    text
}

/// The calls that were denied, one a line.
pub(super) fn denied(known: &Knowledge) -> String {
    let denied = known.calls.iter().filter(|past| past.kind == ReturnKind::Denied);
    denied.map(|past| format!("- {} `{}`: {}\n", past.tool, past.target(), past.said())).collect()
}

/// The final answer: what was really done, and what was not.
pub(super) fn last_words(known: &Knowledge) -> String {
    let done =
        |tool: &str| known.calls.iter().filter(|past| past.tool == tool && succeeded(past)).count();
    let (moved, deleted) = (done("move_file"), done("delete_file"));
    let mut text = match (known.tried_a_change(), moved + deleted) {
        (false, _) => "There is nothing to tidy up here.".to_owned(),
        (true, 0) => "I have changed nothing.".to_owned(),
        (true, _) => {
            format!("Done: {} moved, {} deleted.", count(moved, "file"), count(deleted, "file"))
        }
    };
    if let Some(written) =
        known.calls.iter().rfind(|past| past.tool == "write_file" && succeeded(past))
    {
        text += &format!(" I {}.", written.said());
    }
    let not_done: Vec<&PastCall> = known.calls.iter().filter(|past| !succeeded(past)).collect();
    if !not_done.is_empty() {
        text += "\nNot done:";
    }
    for past in not_done {
        text += &format!("\n- {} `{}`: {}", past.tool, past.target(), past.said());
    }
    text
}

fn succeeded(past: &PastCall) -> bool {
    past.kind == ReturnKind::Success
}

pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
