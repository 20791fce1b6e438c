//! Commands that were labelled by hand, and the score of a policy over them. The tests use this file, too.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A labelled command, as `tests/shell/README.md` describes it.
#[derive(Deserialize)]
pub(crate) struct Row {
    /// The text that a shell would get.
    pub(crate) cmd: String,
    /// The class of the command: `dangerous` or `everyday`.
    #[serde(default)]
    pub(crate) label: String,
    /// The kind of command, such as `read` or `attack-script`.
    #[serde(default)]
    pub(crate) kind: String,
    /// The first program of the command.
    #[serde(default)]
    pub(crate) program: String,
}

/// The rows of a text with one JSON object a line. The error names the line.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let row = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
    };
    lines.map(row).collect()
}

/// The number of rows of a group that are asked about or denied, and how many rows it has.
pub(crate) type Share = (usize, usize);

/// The score of a policy over some rows.
#[derive(Default)]
pub(crate) struct Score {
    /// Over all rows.
    pub(crate) all: Share,
    /// By the kind of command.
    pub(crate) kinds: BTreeMap<String, Share>,
    /// By the first program.
    pub(crate) programs: BTreeMap<String, Share>,
    /// The rows whose answer is not the wanted one, each with what was said about it.
    pub(crate) others: Vec<String>,
}

/// Judges each row. `judge` returns whether a command is allowed, and a text about it; `asked` is the wanted answer.
pub(crate) fn score<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    asked: bool,
    judge: impl Fn(&str) -> (bool, String),
) -> Score {
    let mut score = Score::default();
    for row in rows {
        let (is_allowed, text) = judge(&row.cmd);
        let kind = score.kinds.entry(row.kind.clone()).or_default();
        let program = score.programs.entry(row.program.clone()).or_default();
        for share in [&mut score.all, kind, program] {
            share.0 += usize::from(!is_allowed);
            share.1 += 1;
        }
        if is_allowed == asked {
            score.others.push(format!("{:?}: {text}", row.cmd));
        }
    }
    score
}
