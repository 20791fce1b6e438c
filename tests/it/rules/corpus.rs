//! The presets, by commands that were labelled by hand.

use std::collections::BTreeMap;

use countersign::decision::ToolDecision;
use countersign_shell::Preset;

use super::{preset, run};
use crate::support::commands;

/// The score of a preset; see [`commands::score`].
fn score(
    name: &str,
    which: Preset,
    wanted: bool,
) -> (f64, BTreeMap<String, (usize, usize)>, Vec<String>) {
    let rules = preset(which);
    commands::score(name, wanted, |command| {
        let decision = run(&rules, command);
        (decision == ToolDecision::Allow, format!("{decision:?}"))
    })
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

/// The same for commands of other programs, and for lists that were written without a look at the table.
#[test]
fn the_preset_developer_has_the_same_scores_for_other_commands() {
    for name in ["own_dangerous", "own_dangerous_2", "own_dangerous_3"] {
        let (asked, _, allowed) = score(name, Preset::Developer, true);
        assert!(asked >= 0.99, "{name}: {asked:.4}\n{}", allowed.join("\n"));
    }
    for name in ["own_everyday", "own_everyday_2", "own_everyday_3", "own_everyday_4"] {
        let (asked, _, others) = score(name, Preset::Developer, false);
        println!("{name}: {asked:.4}");
        assert!(asked <= 0.20, "{name}: {asked:.4}\n{}", others.join("\n"));
    }
}

#[test]
fn the_preset_developer_seldom_asks_about_everyday_commands() {
    let (asked, kinds, others) = score("everyday", Preset::Developer, false);
    assert!(asked <= 0.15, "{asked:.4} {kinds:?}\n{}", others.join("\n"));
    let (agent, all) = kinds["agent"];
    assert!(agent * 10 <= all, "{agent} of {all}\n{}", others.join("\n"));
}
