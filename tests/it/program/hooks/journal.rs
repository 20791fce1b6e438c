//! The journal of decisions, and the rules that are proposed from it, by the program.

use super::{CALL, Call};
use crate::program::User;

const RULES: &str =
    "version = 1\n[[rule]]\nid = 'look'\nallow = 'shell'\nwhere.command.is = 'read-only'\n";

/// R7: "`[journal]` is off by default", and what it has is proposed and replayed.
#[test]
fn approvals_in_a_journal_become_rules_that_a_person_reads() {
    let user = User::new();
    user.own_rules(RULES);
    let call = Call { command: "npm install left-pad", ..CALL };
    user.is_approved(&call);
    assert!(!user.state("journal.jsonl").exists(), "off by default");
    let none = user.run(&["rules", "propose"]);
    assert!(
        none.status == 2 && none.err.contains("`enabled = true` below `[journal]`"),
        "{none:?}"
    );

    user.configure("[journal]\nenabled = true\n");
    for _ in 0..3 {
        user.is_approved(&call);
    }
    let ls = Call { command: "ls", ..CALL };
    user.hook(&ls, "5");
    let before = std::fs::read(user.state("journal.jsonl")).unwrap();
    let proposed = user.run(&["rules", "propose"]);
    assert_eq!(proposed.status, 0, "{proposed:?}");
    let wanted = "where.command.equals = \"npm install left-pad\"";
    assert!(
        proposed.out.contains(wanted) && proposed.out.contains("# 3 approvals of 1 call"),
        "{proposed:?}"
    );
    assert_eq!(std::fs::read(user.state("journal.jsonl")).unwrap(), before, "it writes nothing");

    std::fs::write(user.home().join("more.toml"), &proposed.out).unwrap();
    let own = user.home().join(".config/countersign/rules.toml");
    let replayed = user.run(&[
        "rules",
        "replay",
        "--rules",
        own.to_str().unwrap(),
        "--rules",
        "more.toml",
        "--root",
        "/src",
    ]);
    assert!(replayed.status == 1 && replayed.out.contains("widens: shell"), "{replayed:?}");
    let nothing = user.run(&["rules", "propose", "--least", "9"]);
    assert!(nothing.status == 0 && nothing.out.contains("nothing to propose"), "{nothing:?}");
}

/// R7: "as the journal of a hook says": a denial by a person and the answer of a grant are there, each once.
#[test]
fn a_denial_is_in_the_journal_once() {
    let user = User::new();
    user.own_rules(RULES);
    user.configure("[journal]\nenabled = true\n");
    let call = Call { command: "npm install left-pad", ..CALL };
    let entries = |key: &str| {
        let text = std::fs::read_to_string(user.state("journal.jsonl")).unwrap();
        text.lines().filter(|line| line.contains(&format!("\"{key}\":true"))).count()
    };
    user.hook(&call, "0");
    user.decide(&user.pending_are(1)[0], &["--deny", "no"]);
    assert_eq!(entries("denied"), 0, "the hook has not seen it yet");
    user.hook(&call, "0");
    assert_eq!((entries("denied"), entries("approved")), (1, 0));
    user.hook(&call, "0");
    user.approve_pending();
    assert_eq!(user.hook(&call, "5").status, 0);
    assert_eq!((entries("denied"), entries("approved"), entries("by_grant")), (1, 1, 0));
}
