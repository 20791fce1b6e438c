//! The files that a patch changes: the names in its headers.
//!
//! The reader is deliberately less strict than any program that applies patches: it may find a path that the patch does
//! not change, which costs a question, and must not miss one that it does. Two families are known:
//!
//! | family | headers |
//! |---|---|
//! | of coding agents | `*** Add File: x`, `*** Update File: x`, `*** Delete File: x`, `*** Move to: x` |
//! | unified | `--- a/x`, `+++ b/x`, `diff --git a/x b/x`, `rename from x`, `rename to x`, `copy to x`, `Index: x` |
//!
//! A line that begins with `***` and is neither a known operation nor a known mark makes a patch of the first family
//! doubtful.

/// The paths of a patch, as the patch writes them.
pub(crate) struct Paths {
    pub(crate) paths: Vec<String>,
    /// Whether the patch may change other files, too.
    pub(crate) is_doubtful: bool,
}

const OPERATIONS: [&str; 4] = ["Add File:", "Update File:", "Delete File:", "Move to:"];

/// Every path that a patch of a coding agent names. A line of context that looks like an operation counts as one, as a
/// reader with less strict ideas about white space may take it for one.
pub(crate) fn paths(text: &str) -> Paths {
    let mut found = Paths { paths: Vec::new(), is_doubtful: !text.contains("*** Begin Patch") };
    for line in text.split(['\n', '\r']).map(str::trim) {
        let Some(operation) = line.strip_prefix("***").map(str::trim) else { continue };
        let path = OPERATIONS.iter().find_map(|name| operation.strip_prefix(name));
        match path.map(str::trim) {
            Some("") => found.is_doubtful = true,
            Some(path) => found.paths.push(path.to_owned()),
            None => found.is_doubtful |= !is_mark(operation),
        }
    }
    found.is_doubtful |= found.paths.is_empty();
    found
}

/// Whether a line is a mark that names no file.
fn is_mark(operation: &str) -> bool {
    ["Begin Patch", "End Patch", "End of File"].contains(&operation)
}

/// The beginnings of the headers of unified patches.
const UNIFIED: [&str; 8] = [
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "Index: ",
    "diff --git ",
];

/// Every path that the headers of a text name, if it is a patch of any family; empty for other texts.
///
/// `+++ b/x` names `b/x` for a program that strips nothing, and `x` for one that strips the first folder. Both are found.
pub(crate) fn headers(text: &str) -> Vec<String> {
    if !text.contains('\n') || !is_patch(text) {
        return Vec::new();
    }
    let mut found = paths(text).paths;
    for line in text.split(['\n', '\r']) {
        let Some(rest) = UNIFIED.iter().find_map(|start| line.strip_prefix(start)) else {
            continue;
        };
        let names: Vec<&str> = match line.starts_with("diff --git ") {
            true => rest.split(' ').collect(),
            // A date may follow the name, after a tab.
            false => vec![rest.split('\t').next().unwrap_or(rest)],
        };
        for name in names {
            let name = name.trim().trim_matches('"');
            found.extend(name.split_once('/').map(|(_, below)| below.to_owned()));
            found.push(name.to_owned());
        }
    }
    found.retain(|name| !name.is_empty() && name != "/dev/null" && name != "dev/null");
    found
}

/// Whether a text is a patch: it has an operation of a coding agent, or the pair of lines that begins a unified one.
fn is_patch(text: &str) -> bool {
    let mut before = "";
    text.split(['\n', '\r']).any(|line| {
        let trimmed = line.trim();
        let operation = trimmed.strip_prefix("***").map(str::trim);
        let is_one = operation.is_some_and(|it| OPERATIONS.iter().any(|name| it.starts_with(name)))
            || line.starts_with("+++ ") && before.starts_with("--- ")
            || line.starts_with("diff --git ")
            || line.starts_with("rename to ") && before.starts_with("rename from ")
            || line.starts_with("@@ ") && before.starts_with("+++ ")
            || line.starts_with("=====") && before.starts_with("Index: ")
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
            "--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n",
            "--- .git/config\t2026-01-01\n+++ .git/config\t2026-01-02\n",
            "diff --git a/x b/.git/config\nsimilarity index 100%\nrename from x\nrename to .git/config\n",
            "Index: .git/config\n=====\n--- .git/config\n+++ .git/config\n",
            "+++ b/.git/config\n@@ -0,0 +1 @@\n",
        ] {
            assert!(
                headers(text).iter().any(|name| name == ".git/config"),
                "{text}: {:?}",
                headers(text)
            );
        }
        for text in ["--- a list\n- of things\n", "x\n+++ y\n", "no patch", "title\n---\ntext\n"] {
            assert!(headers(text).is_empty(), "{text}: {:?}", headers(text));
        }
    }
}
