//! The score on commands that were labelled by hand, and the examples in the table.

use std::collections::BTreeMap;

use countersign_shell::{Dialect, Preset, Programs};

use super::classifier;
use crate::support::commands::{self, rows};

/// The score of a preset; see [`commands::score`].
fn score(
    name: &str,
    preset: Preset,
    wanted: bool,
) -> (f64, BTreeMap<String, (usize, usize)>, Vec<String>) {
    let classifier = classifier(preset);
    commands::score(name, wanted, |command| {
        let judgement = classifier.judge(command, Dialect::Bash);
        (judgement.decision().is_allow(), judgement.to_string())
    })
}

#[test]
fn dangerous_commands_are_not_allowed() {
    let (asked, kinds, allowed) = score("dangerous", Preset::Developer, true);
    assert!(asked >= 0.99, "{asked:.4} {kinds:?}\n{}", allowed.join("\n"));
    // None of those that were written for this corpus.
    let (own, all) = kinds["agent"];
    assert_eq!(own, all, "{}", allowed.join("\n"));
    let (asked, ..) = score("dangerous", Preset::Reader, true);
    assert!(asked >= 0.99, "reader: {asked:.4}");
}

#[test]
fn everyday_commands_are_seldom_asked_about() {
    let (asked, kinds, others) = score("everyday", Preset::Developer, false);
    println!("{asked:.4} {kinds:?}");
    assert!(asked <= 0.15, "{asked:.4} {kinds:?}\n{}", others.join("\n"));
    let (agent, all) = kinds["agent"];
    assert!(agent * 10 <= all, "{agent} of {all}");
}

/// The same for commands of other programs, and for lists that were written without a look at the table.
#[test]
fn commands_of_other_programs_have_the_same_scores() {
    for name in ["own_dangerous", "own_dangerous_2", "own_dangerous_3", "own_dangerous_4"] {
        let (asked, _, allowed) = score(name, Preset::Developer, true);
        assert!(asked >= 0.99, "{name}: {asked:.4}\n{}", allowed.join("\n"));
    }
    let most = [
        ("own_everyday", 0.15),
        ("own_everyday_2", 0.20),
        ("own_everyday_3", 0.20),
        ("own_everyday_4", 0.20),
    ];
    for (name, most) in most {
        let (asked, kinds, others) = score(name, Preset::Developer, false);
        println!("{name}: {asked:.4} {kinds:?}");
        assert!(asked <= most, "{name}: {asked:.4} {kinds:?}\n{}", others.join("\n"));
    }
}

#[test]
fn the_developer_allows_everything_that_the_reader_allows() {
    for row in rows("dangerous").into_iter().chain(rows("everyday")) {
        let reader = classifier(Preset::Reader).judge(&row.cmd, Dialect::Bash).decision();
        let developer = classifier(Preset::Developer).judge(&row.cmd, Dialect::Bash).decision();
        assert!(developer <= reader, "{:?}: reader {reader}, developer {developer}", row.cmd);
    }
}

#[test]
fn every_example_of_the_table_has_its_stated_judgement() {
    let programs = Programs::built_in();
    assert!(programs.names().count() >= 200, "{}", programs.names().count());
    let examples = programs.examples();
    assert!(examples.len() >= 400, "{}", examples.len());
    let developer = classifier(Preset::Developer);
    for example in examples {
        let judgement = developer.judge(&example.command, Dialect::Bash);
        assert_eq!(
            judgement.decision().is_allow(),
            example.safe,
            "{}: {} {judgement}",
            example.program,
            example.command
        );
    }
}

#[test]
fn no_row_of_the_corpus_is_an_example_of_the_table() {
    let examples: Vec<String> =
        Programs::built_in().examples().into_iter().map(|example| example.command).collect();
    for name in [
        "dangerous",
        "everyday",
        "own_dangerous",
        "own_everyday",
        "own_dangerous_2",
        "own_everyday_2",
        "own_dangerous_3",
        "own_everyday_3",
        "own_dangerous_4",
        "own_everyday_4",
    ] {
        for row in rows(name) {
            assert!(!examples.contains(&row.cmd), "{}", row.cmd);
        }
    }
}

#[test]
fn a_table_is_refused_with_its_line() {
    let load = |text: &str| Programs::built_in().with(text).unwrap_err().to_string();
    assert_eq!(load("[x]\nfrobs: a"), "programs, line 2: `frobs` is not a key");
    assert_eq!(load("[x"), "programs, line 1: a header without `]`");
    assert_eq!(load("does: reads"), "programs, line 1: a line in front of the first header");
    assert_eq!(load("[x]\n\noperands: file"), "programs, line 3: `file` is not a kind of operand");
    assert_eq!(load("[x]\nvalues: -x"), "programs, line 2: `-x` has no `=`");
    assert_eq!(load("[x]\nlike: frob"), "programs, line 2: `frob` is not in front of this");
    assert_eq!(load("[x]\nmarks: fast"), "programs, line 2: `fast` is not a mark");
    assert_eq!(load("[x]\ndoes: good"), "programs, line 2: `good` is not what a program does");
}
