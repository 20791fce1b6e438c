//! Commands of a shell that were labelled by hand, and the score of a policy over them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A labelled command.
#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) cmd: String,
    kind: String,
}

/// The rows of `tests/shell/{name}.jsonl`.
pub(crate) fn rows(name: &str) -> Vec<Row> {
    let path = format!("{}/shell/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The share of rows that are asked about or denied; how many these are of each kind; and the rows whose answer is not
/// the wanted one. `judge` returns whether a command is allowed, and a text about it.
pub(crate) fn score(
    name: &str,
    wanted: bool,
    judge: impl Fn(&str) -> (bool, String),
) -> (f64, BTreeMap<String, (usize, usize)>, Vec<String>) {
    let rows = rows(name);
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut others = Vec::new();
    let mut asked = 0;
    for row in &rows {
        let (is_allowed, text) = judge(&row.cmd);
        let is_asked = !is_allowed;
        asked += usize::from(is_asked);
        let kind = kinds.entry(row.kind.clone()).or_default();
        kind.0 += usize::from(is_asked);
        kind.1 += 1;
        if is_asked != wanted {
            others.push(format!("{:?}: {text}", row.cmd));
        }
    }
    (asked as f64 / rows.len() as f64, kinds, others)
}
