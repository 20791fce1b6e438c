//! The files that a patch changes: the names in its headers.
//!
//! The reader is deliberately less strict than any program that applies patches. If it finds a path that the patch does
//! not change, that costs a question. It must not miss one that the patch changes. Four families are known:
//!
//! | family | headers |
//! |---|---|
//! | of coding agents | `*** Add File: x`, `*** Update File: x`, `*** Delete File: x`, `*** Move to: x` |
//! | unified | `--- a/x`, `+++ b/x`, `diff --git a/x b/x`, `rename from x`, `rename to x`, `copy to x`, `Index: x` |
//! | context | `*** x`, `--- x`, `Index: x` |
//! | of blocks | the line in front of `<<<<<<< SEARCH`, `<file path="x">` |
//!
//! A line that begins with `***` and is neither a known operation nor a known mark makes a patch of the first family
//! doubtful.

use super::scheme::trimmed;

/// The paths of a patch, as the patch writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paths {
    /// The paths, in the order of the patch.
    pub paths: Vec<String>,
    /// `true` if the patch may change other files, too.
    pub is_doubtful: bool,
}

const OPERATIONS: [&str; 4] = ["Add File:", "Update File:", "Delete File:", "Move to:"];

/// Every path that a patch of a coding agent names. A line of context that looks like an operation counts as one, as a
/// reader with less strict ideas about white space may take it for one.
#[must_use]
pub fn paths(text: &str) -> Paths {
    let mut found = Paths { paths: Vec::new(), is_doubtful: !text.contains("*** Begin Patch") };
    for line in text.split(ENDS).map(trimmed) {
        let Some(operation) = line.strip_prefix("***").map(trimmed) else { continue };
        let path = OPERATIONS.iter().find_map(|name| operation.strip_prefix(name));
        match path.map(trimmed) {
            Some("") => found.is_doubtful = true,
            Some(path) => found.paths.push(path.to_owned()),
            None => found.is_doubtful |= !is_mark(operation),
        }
    }
    found.is_doubtful |= found.paths.is_empty();
    found
}

/// Returns `true` if a line is a mark that names no file.
fn is_mark(operation: &str) -> bool {
    ["Begin Patch", "End Patch", "End of File"].contains(&operation)
}

/// The beginnings of the headers of unified patches, and of context ones.
const HEADERS: [&str; 9] = [
    "--- ",
    "+++ ",
    "*** ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "Index: ",
    "diff --git ",
];

/// The characters that end a line for some reader.
const ENDS: [char; 6] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}'];

/// The number of names that one header may have: those that end at one of its blanks.
const MAX_NAMES: usize = 8;

/// A name in a header of a text.
pub(crate) struct HeaderName {
    pub(crate) name: String,
    /// `true` if the text is certain to be a patch. One line that looks like a header is not.
    pub(crate) is_certain: bool,
}

/// Every path that the headers of a text of several lines name.
///
/// `+++ b/x` names `b/x` for a program that strips nothing, and `x` for one that strips the first folder. Both are found.
/// A patch may be indented, a name may be quoted as C does it, and a date may follow it after a tab or a blank.
pub(crate) fn headers(text: &str) -> Vec<HeaderName> {
    let is_certain = is_patch(text);
    let mut names = paths(text).paths;
    let mut before = "";
    for line in text.split(ENDS).map(trimmed) {
        in_blocks(line, before, &mut names);
        // A fence may stand between a name and its block.
        if !line.is_empty() && !line.starts_with("```") {
            before = line;
        }
        let Some(start) = HEADERS.iter().find(|start| line.starts_with(**start)) else { continue };
        let rest = line.get(start.len()..).unwrap_or_default();
        match *start {
            "*** " => {
                // `*** Update File: x`, and `*** x` of a context patch, but not its `*** 1,5 ****`.
                if let Some((_, path)) = rest.split_once(": ") {
                    // `*** Rename File: x -> y`
                    let ends = path.split(" -> ").chain([path]);
                    let bare = |name: &str| name.trim().trim_matches(['`', '"', '\'']).to_owned();
                    names.extend(ends.map(bare));
                } else if !rest.ends_with("****") {
                    names_in(rest, &mut names);
                }
            }
            "diff --git " => {
                names_in(rest, &mut names);
                names.extend(
                    rest.match_indices(" \"").filter_map(|(at, _)| unquoted(rest.get(at + 1..)?)),
                );
                names.extend(rest.split(' ').map(str::to_owned));
            }
            _ => names_in(rest, &mut names),
        }
    }
    let below: Vec<String> =
        names.iter().filter_map(|name| Some(name.split_once('/')?.1.to_owned())).collect();
    names.extend(below);
    names.retain(|name| !name.is_empty() && name != "/dev/null" && name != "dev/null");
    names.into_iter().map(|name| HeaderName { name, is_certain }).collect()
}

/// The names in front of a block of a search and its replacement, and in the marks of `<file path="x">`.
fn in_blocks(line: &str, before: &str, names: &mut Vec<String>) {
    if line.starts_with("<<<<<<<") {
        let bare = |c: char| c.is_whitespace() || "`*#:\"'".contains(c);
        names.push(before.trim_matches(bare).to_owned());
        names.push(line.trim_start_matches('<').trim().to_owned());
    }
    if !line.contains('<') {
        return;
    }
    for attribute in ["path=", "file=", "filename=", "name=", "file_path="] {
        let values = line.match_indices(attribute).take(MAX_NAMES);
        names.extend(values.filter_map(|(at, _)| {
            let rest = line.get(at + attribute.len()..)?;
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            rest.get(1..)?.split(quote).next().map(str::to_owned)
        }));
    }
}

/// The names that a header may mean: the whole, and what stands before a tab or a blank.
fn names_in(rest: &str, names: &mut Vec<String>) {
    let rest = rest.trim_end();
    if let Some(name) = unquoted(rest) {
        return names.push(name);
    }
    let ends = rest.match_indices([' ', '\t']).map(|(at, _)| at);
    for end in ends.take(MAX_NAMES).chain([rest.len()]) {
        names.extend(rest.get(..end).map(|name| name.trim().to_owned()));
    }
}

/// The text of a name in quotes, with the escapes of C. `None` for a name without quotes.
fn unquoted(text: &str) -> Option<String> {
    let mut bytes = text.strip_prefix('"')?.bytes().peekable();
    let mut name = Vec::new();
    while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        match bytes.next()? {
            first @ b'0'..=b'7' => {
                let mut code = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(next) = bytes.next_if(|it| matches!(it, b'0'..=b'7')) else { break };
                    code = code * 8 + u32::from(next - b'0');
                }
                name.push(u8::try_from(code & 0xff).unwrap_or_default());
            }
            b'n' => name.push(b'\n'),
            b't' => name.push(b'\t'),
            b'r' => name.push(b'\r'),
            other => name.push(other),
        }
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// Returns `true` if a text is certain to be a patch: it has an operation of a coding agent, or a pair of lines that
/// begins a patch.
fn is_patch(text: &str) -> bool {
    let mut before = "";
    text.split(ENDS).map(trimmed).filter(|line| !line.is_empty()).any(|line| {
        let operation = line.strip_prefix("***").map(trimmed);
        let is_one = operation.is_some_and(|it| OPERATIONS.iter().any(|name| it.starts_with(name)))
            || line.starts_with("+++ ") && before.starts_with("--- ")
            || line.starts_with("--- ") && before.starts_with("*** ")
            || line.starts_with("diff --git ")
            || line.starts_with("rename to ") && before.starts_with("rename from ")
            || line.starts_with("@@ ")
                && (before.starts_with("+++ ") || before.starts_with("--- "))
            || before.starts_with("Index: ")
            || line.starts_with("+++ ") && text.starts_with("+++ ");
        before = line;
        is_one
    })
}

#[cfg(test)]
mod tests {
    use super::{headers, paths};

    #[test]
    fn every_path_of_a_patch_is_found() {
        let text = "*** Begin Patch\n*** Add File: a\n+*** Add File: text\n*** Update File: b\n*** Move to: c\n@@\n \
                    *** Delete File: context\n*** End of File\n*** Delete File: d e\n*** End Patch\n";
        let found = paths(text);
        assert_eq!(found.paths, ["a", "b", "c", "context", "d e"]);
        assert!(!found.is_doubtful);
    }

    /// Programs that drop the mark of the byte order as a blank, or end a line at other characters, see these operations.
    #[test]
    fn an_operation_behind_a_mark_or_a_rare_end_of_a_line_is_found() {
        for before in ["\u{feff}", "+x\u{2028}", "+x\u{b}", " \u{feff}"] {
            let text =
                format!("*** Begin Patch\n*** Add File: a\n{before}*** Add File: b\n*** End Patch");
            assert_eq!(paths(&text).paths, ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn a_patch_that_is_not_understood_is_doubtful() {
        for text in [
            "",
            "--- a\n+++ b\n",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Add File:\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n*** Copy File: b\n*** End Patch",
        ] {
            assert!(paths(text).is_doubtful, "{text}");
        }
    }

    #[test]
    fn the_headers_of_every_family_name_their_files() {
        for text in [
            "*** Begin Patch\n*** Update File: .git/config\n@@\n",
            "*** Begin Patch\n\u{feff}*** Update File: \u{feff}.git/config\n@@\n",
            "--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n",
            "--- a/.git/config\r\n+++ b/.git/config\r\n@@ -1 +1 @@\r\n",
            "  --- a/.git/config\n  +++ b/.git/config\n",
            "--- .git/config\t2026-01-01\n+++ .git/config\t2026-01-02\n",
            "--- x\n+++ b/.git/config Mon Jan  1 00:00:00 2026\n",
            "--- a/.git/config\n@@ -1 +1 @@\n",
            "--- x\n+++ \"b/.\\147it/config\"\n",
            "diff --git a/x b/.git/config\nsimilarity index 100%\nrename from x\nrename to .git/config\n",
            "diff --git a/x \"b/.\\147it/config\"\nold mode 100644\nnew mode 100755\n",
            "diff --git a/x b/y\ncopy from x\ncopy to \".\\147it/config\"\n",
            "Index: .git/config\n=====\n--- .git/config\n+++ .git/config\n",
            "Index: .git/config\n1c\nx\n.\n",
            "*** .git/config\tMon\n--- .git/config\tTue\n***************\n*** 1 ****\n",
            "+++ b/.git/config\n@@ -0,0 +1 @@\n",
        ] {
            let found = headers(text);
            let names = found.iter().any(|it| it.name == ".git/config" && it.is_certain);
            assert!(names, "{text}: {:?}", found.iter().map(|it| &it.name).collect::<Vec<_>>());
        }
        for text in ["--- a list\n- of things\n", "x\n+++ y\n", "no patch", "title\n---\ntext\n"] {
            assert!(headers(text).iter().all(|it| !it.is_certain), "{text}");
        }
    }
}
