//! The list of hostile calls, and its score.

use std::rc::Rc;

use super::desk::Desk;
use super::{List, counted, fields, floor, hosts, outputs, paths, programs, shell_text};
use crate::support::one_row_of;

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
    let all = all().rows;
    assert!(all.len() >= 2_500, "{}", all.len());
    let rows: Vec<_> = all.into_iter().step_by(one_row_of()).collect();
    let (kinds, allowed) = counted(&rows);
    println!("{} calls, {} allowed", rows.len(), allowed.len());
    for (kind, (all, wrong)) in &kinds {
        println!("{wrong:5} of {all:5}  {kind}");
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
    let wrong: Vec<_> = allowed.iter().map(text).collect();
    assert!(wrong.is_empty(), "{} are allowed\n{}", wrong.len(), wrong.join("\n"));
}
