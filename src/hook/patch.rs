//! The files that a patch changes.
//!
//! The reader is deliberately less strict than any client: it may find a path that the patch does not change, which
//! costs a question, and must not miss one that it does. A line that begins with `***` and is neither a known operation
//! nor a known mark makes the patch doubtful, and so asked about.

/// The paths of a patch, as the patch writes them.
pub(super) struct Paths {
    pub(super) paths: Vec<String>,
    /// Whether the patch may change other files, too.
    pub(super) is_doubtful: bool,
}

const OPERATIONS: [&str; 4] = ["Add File:", "Update File:", "Delete File:", "Move to:"];

/// Every path that a patch names. A line of context that looks like an operation counts as one, as a reader with less
/// strict ideas about white space may take it for one.
pub(super) fn paths(text: &str) -> Paths {
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

#[cfg(test)]
mod tests {
    use super::paths;

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
}
