//! Hooks in the front matter of Markdown files: Claude Code runs those of a skill, an agent or a command while it is used.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The number of files and folders that are looked at.
const MAX_ENTRIES: usize = 4_096;

/// The levels of folders that are looked at.
const MAX_DEPTH: usize = 8;

/// Folders of packages and of version control, in which no client looks for such files.
const OTHERS: [&str; 3] = ["node_modules", ".git", ".venv"];

/// The part of a file that is read, in bytes.
const MAX_READ: u64 = 64 * 1024;

/// The Markdown files in these folders that have hooks, or may have some, sorted, and those of the folders of which not everything
/// was looked at.
pub(super) fn with_hooks(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), MAX_ENTRIES);
    let mut open: Vec<_> = folders.into_iter().map(|folder| (folder.clone(), folder, 1)).collect();
    while let Some((given, folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|it| it.path()) {
            let is_folder = path.is_dir();
            if is_folder && OTHERS.iter().any(|name| path.ends_with(name)) {
                continue;
            }
            let rest = left.checked_sub(1).filter(|_| !is_folder || depth < MAX_DEPTH);
            let Some(rest) = rest else {
                found.push(given);
                break;
            };
            left = rest;
            if is_folder {
                open.push((given.clone(), path, depth + 1));
            } else if is_markdown(&path) && brings_hooks(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"))
}

fn brings_hooks(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(MAX_READ).read_to_end(&mut start));
    let is_cut = start.len() as u64 == MAX_READ;
    read.is_err() || has_hooks(&String::from_utf8_lossy(&start), is_cut)
}

/// Returns `true` if the front matter has the key `hooks`, at the start of a line or in a mapping between braces, or may have it,
/// as its end is not in the text or a key may be written otherwise (`"\u0068ooks"`).
fn has_hooks(text: &str, is_cut: bool) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let Some(text) = text.strip_prefix("---") else { return false };
    let (front, is_whole) = match text.split_once("\n---") {
        Some((front, _)) => (front, true),
        None => (text, !is_cut),
    };
    let quoted: Vec<_> = front.split('"').collect();
    let is_escaped_key = |pair: &[&str]| {
        let [key, after] = pair else { return false };
        ["\\u", "\\x", "\\U"].iter().any(|escape| key.contains(escape))
            && after.trim_start().starts_with(':')
    };
    if !is_whole || quoted.windows(2).any(is_escaped_key) {
        return true;
    }
    let is_key = |at: usize, name: &str| {
        let (before, after) = front.split_at_checked(at).unwrap_or_default();
        let before = before.trim_end_matches(['"', '\'']);
        let after = after.get(name.len()..).unwrap_or_default();
        let begins = before.ends_with('\n') || before.trim_end().ends_with(['{', ',', '?']);
        begins && after.trim_start_matches(['"', '\'']).trim_start().starts_with(':')
    };
    front.match_indices("hooks").any(|(at, name)| is_key(at, name))
}

#[cfg(test)]
mod tests {
    use super::has_hooks;

    #[test]
    fn hooks_are_a_key_of_the_front_matter() {
        for text in [
            "---\nhooks:\n",
            "\u{feff}---\r\nname: x\r\n'hooks' : {}\r\n---\r\n",
            "---\n{\"name\": \"x\", \"hooks\": {}}\n---\n",
        ] {
            assert!(has_hooks(text, false), "{text}");
        }
        assert!(has_hooks("---\nname: x\n\"\\u0068ooks\": {}\n---\n", false));
        assert!(has_hooks("---\nname: x\n", true) && !has_hooks("---\nname: x\n", false));
        for text in [
            "---\nname: x\n---\nhooks:\n",
            "hooks:\n",
            "---\na: about hooks: none\n---",
            "---\ndescription: Fixes LaTeX, such as \\usepackage lines\n---",
            "---",
        ] {
            assert!(!has_hooks(text, false), "{text}");
        }
    }
}
