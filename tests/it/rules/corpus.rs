//! The presets, by commands that were labelled by hand.

use std::collections::BTreeMap;

use countersign::decision::ToolDecision;
use countersign::shell::Preset;
use serde::Deserialize;

use super::{preset, run};

#[derive(Deserialize)]
struct Row {
    cmd: String,
    kind: String,
}

fn rows(name: &str) -> Vec<Row> {
    let path = format!("{}/tests/shell/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The share of rows that are not allowed, the same of each kind, and the rows whose answer is not the wanted one.
fn score(
    name: &str,
    which: Preset,
    wanted: bool,
) -> (f64, BTreeMap<String, (usize, usize)>, Vec<String>) {
    let rules = preset(which);
    let rows = rows(name);
    let (mut kinds, mut others, mut asked): (BTreeMap<String, (usize, usize)>, _, _) =
        (BTreeMap::new(), Vec::new(), 0);
    for row in &rows {
        let is_asked = run(&rules, &row.cmd) != ToolDecision::Allow;
        asked += usize::from(is_asked);
        let kind = kinds.entry(row.kind.clone()).or_default();
        kind.0 += usize::from(is_asked);
        kind.1 += 1;
        if is_asked != wanted {
            others.push(format!("{:?}", row.cmd));
        }
    }
    (asked as f64 / rows.len() as f64, kinds, others)
}

#[test]
fn the_presets_do_not_allow_dangerous_commands() {
    for which in [Preset::Developer, Preset::Reader] {
        let (asked, kinds, allowed) = score("dangerous", which, true);
        assert!(asked >= 0.99, "{which:?}: {asked:.4} {kinds:?}\n{}", allowed.join("\n"));
        let (own, all) = kinds["agent"];
        assert_eq!(own, all, "{which:?}\n{}", allowed.join("\n"));
    }
}

#[test]
fn the_preset_developer_seldom_asks_about_everyday_commands() {
    let (asked, kinds, others) = score("everyday", Preset::Developer, false);
    assert!(asked <= 0.15, "{asked:.4} {kinds:?}\n{}", others.join("\n"));
    let (agent, all) = kinds["agent"];
    assert!(agent * 10 <= all, "{agent} of {all}\n{}", others.join("\n"));
}
