//! Commands of a shell that were labelled by hand, and the score of a policy over them.

use std::collections::BTreeMap;

// The example uses all of it.
#[allow(dead_code, reason = "the tests need a part of what the example prints")]
#[path = "../../../examples/score/src/corpus.rs"]
mod corpus;

pub(crate) use corpus::Row;

/// The rows of `tests/shell/{name}.jsonl`.
pub(crate) fn rows(name: &str) -> Vec<Row> {
    let path = format!("{}/shell/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    corpus::read(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The share of rows that are asked about or denied; how many these are of each kind; and the rows whose answer is not
/// the wanted one. `judge` returns whether a command is allowed, and a text about it.
pub(crate) fn score(
    name: &str,
    wanted: bool,
    judge: impl Fn(&str) -> (bool, String),
) -> (f64, BTreeMap<String, (usize, usize)>, Vec<String>) {
    let score = corpus::score(&rows(name), wanted, judge);
    (score.all.0 as f64 / score.all.1 as f64, score.kinds, score.others)
}
