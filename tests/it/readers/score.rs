//! The list of hostile calls, and its score.

use std::rc::Rc;

use super::desk::Desk;
use super::{List, counted, fields, floor, hosts, outputs, paths, programs, shell_text};

/// Kinds of which some calls are still allowed: they are counted, and not refused.
pub(super) const OPEN: &[&str] = &[
    "fields: hooks",
    "fields: library",
    "floor: into folders",
    "floor: names that are computed",
    "floor: outputs",
    "floor: patches",
    "floor: programs that write",
    "floor: redirections",
    "floor: scripts that write",
    "floor: tools",
    "floor: tools of a client's servers",
    "floor: tools of clients",
    "floor: tools, names as keys",
    "floor: tools, odd spellings",
    "hosts: deny",
    "hosts: deny an address",
    "hosts: deny an address, translated",
    "outputs: into a folder",
    "outputs: onto a file",
    "paths: allow any_path.within",
    "paths: allow path.within",
    "paths: allow within, by a hook",
    "paths: ask path.path",
    "paths: deny any_path, as operands",
    "paths: deny any_path.outside",
    "paths: deny any_path.path",
    "paths: deny any_path.within",
    "paths: deny path.outside",
    "paths: deny path.path",
    "paths: deny path.within",
    "paths: deny, composed",
    "paths: two readers",
    "programs: a registry of the project",
    "programs: bare",
    "programs: bare interpreters",
    "programs: code by standard input",
    "programs: git under a configuration of the repository",
    "programs: links",
    "programs: versions and lists of launchers",
    "shell text: `<((`",
    "shell text: other readings",
];

fn all() -> List {
    let desk = Rc::new(Desk::new());
    let mut list = List::new(0x9E37_79B9_7F4A_7C15, &desk);
    shell_text::rows(&mut list, &desk);
    outputs::rows(&mut list, &desk);
    list.on(&desk);
    floor::rows(&mut list, &desk);
    paths::rows(&mut list, &desk);
    hosts::rows(&mut list, &desk);
    fields::rows(&mut list, &desk);
    programs::rows(&mut list, &desk);
    list
}

/// Rules C1, R2 and R5: what a shell, a program, a tool or a client would do with the call, a person is asked about.
#[test]
fn no_hostile_call_is_allowed() {
    let list = all();
    let (kinds, allowed) = counted(&list.rows);
    println!("{} calls, {} allowed", list.rows.len(), allowed.len());
    for (kind, (all, wrong)) in &kinds {
        println!(
            "{wrong:5} of {all:5}  {kind}{}",
            if OPEN.contains(kind) { "  (open)" } else { "" }
        );
    }
    assert!(list.rows.len() >= 2_500, "{}", list.rows.len());
    for kind in OPEN {
        assert!(kinds.contains_key(kind) || kind.ends_with("two readers"), "{kind} is no kind");
    }
    let text = |row: &&super::Row| {
        let (door, policy) = (row.door, row.policy);
        format!(
            "{}: {door:?} {} {}\n    {}, under {policy:?}",
            row.kind, row.tool, row.args, row.why
        )
    };
    if let Ok(kind) = std::env::var("COUNTERSIGN_ROWS") {
        allowed
            .iter()
            .filter(|row| row.kind.starts_with(&kind))
            .for_each(|row| println!("{}", text(row)));
    }
    let wrong: Vec<_> = allowed.iter().filter(|row| !OPEN.contains(&row.kind)).map(text).collect();
    assert!(wrong.is_empty(), "{} are allowed\n{}", wrong.len(), wrong.join("\n"));
}
