//! A lab that finds nothing proves nothing: entries that were wrong once are put back, and it has to find each.

use std::path::PathBuf;

use countersign_lab::Lab;
use countersign_lab::known::entries;
use countersign_shell::Programs;

fn lab() -> Lab {
    let place = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.unwrap_or_else(|| panic!("`{name}` names the lab: `.ci/lab` sets it"))
    };
    assert!(place("LAB_PROGRAM").exists(), "`LAB_PROGRAM` names the program of the lab");
    Lab::new(&place("LAB_IMAGE"), &place("LAB"), 1).unwrap()
}

#[test]
fn every_entry_that_was_wrong_once_is_found() {
    let (lab, all) = (lab(), entries());
    assert!(all.len() >= 20, "{} entries", all.len());
    let mut missed = Vec::new();
    for known in &all {
        let wrong = Programs::built_in()
            .with(&known.entry)
            .unwrap_or_else(|error| panic!("{error}: {known:?}"));
        match lab.try_form(&wrong, &known.form, &known.workspace).unwrap() {
            None => missed.push(format!("{}: it is asked about", known.form)),
            Some(row) if row.differences.is_empty() => missed.push(format!("{row:?}")),
            Some(row) => println!("{}: {}", known.form, row.differences.join("; ")),
        }
    }
    assert!(missed.is_empty(), "not found:\n{}", missed.join("\n"));
}
