//! Entries of the table that were wrong, and are put back to see whether the lab finds them.

/// An entry that was wrong once.
#[derive(Debug, Clone)]
pub struct Known {
    /// The lines of the table.
    pub entry: String,
    /// A form that shows the difference.
    pub form: String,
    /// The workspace that it shows in.
    pub workspace: String,
}

/// All of them, from `wrong.txt`.
#[must_use]
pub fn entries() -> Vec<Known> {
    let text = include_str!("../wrong.txt");
    let blocks = text.split("\n\n").filter(|block| block.contains("\nform: "));
    blocks
        .filter_map(|block| {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            let (about, entry): (Vec<_>, Vec<_>) =
                lines.partition(|line| line.starts_with("form: ") || line.starts_with("in: "));
            let find = |key: &str| about.iter().find_map(|line| line.strip_prefix(key));
            Some(Known {
                entry: entry.join("\n"),
                form: find("form: ")?.to_owned(),
                workspace: find("in: ").unwrap_or("plain").to_owned(),
            })
        })
        .collect()
}
