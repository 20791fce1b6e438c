//! Hooks in the front matter of Markdown files: Claude Code runs those of a skill, an agent or a command while it is used.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The number of files and folders that are looked at.
const MAX_ENTRIES: usize = 4_096;

/// The levels of folders that are looked at.
const MAX_DEPTH: usize = 8;

/// The part of a file that is read, in bytes.
const MAX_READ: u64 = 64 * 1024;

/// The Markdown files in these folders that bring hooks or cannot be read, sorted, and the folders of which not everything was
/// looked at.
pub(super) fn with_hooks(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), MAX_ENTRIES);
    let mut open: Vec<_> = folders.into_iter().map(|folder| (folder, 1)).collect();
    while let Some((folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|it| it.path()) {
            let Some(rest) = left.checked_sub(1) else {
                found.push(folder);
                break;
            };
            left = rest;
            if path.is_dir() && depth < MAX_DEPTH {
                open.push((path, depth + 1));
            } else if path.is_dir() || is_markdown(&path) && brings_hooks(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
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
    if !is_whole || front.contains("\\u") || front.contains("\\x") || front.contains("\\U") {
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
        for text in
            ["---\nname: x\n---\nhooks:\n", "hooks:\n", "---\na: about hooks: none\n---", "---"]
        {
            assert!(!has_hooks(text, false), "{text}");
        }
    }
}
