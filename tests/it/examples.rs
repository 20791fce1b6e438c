//! The examples of one file each, as their users run them: what they print is what ran, and what did not.

use std::process::{Command, Stdio};

use crate::support::example;

/// What an example without arguments prints.
fn printed(name: &str) -> String {
    let ran = Command::new(example(name)).stdin(Stdio::null()).output().unwrap();
    let (out, err) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert!(ran.status.success(), "{name}: {out}\n{err}");
    out
}

/// The lines that say which tool bodies ran, in order.
fn ran(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.trim_start().strip_prefix("> ")).collect()
}

/// Whether these texts follow each other.
#[track_caller]
fn tells(printed: &str, texts: &[&str]) {
    let mut rest = printed;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("`{text}` is missing, or comes too early, in:\n{printed}");
        };
        rest = after;
    }
}

#[test]
fn batch_policy_runs_what_its_rules_approve_and_nothing_else() {
    // Seed 000: "Batch decisions: approve all reads, deny all writes".  T2.
    let out = printed("batch_policy");
    assert_eq!(
        ran(&out),
        [
            "looked up apples: 2 euros",
            "read orders.txt",
            "bought apples for 12 euros",
            "bought pears for 20 euros",
            "bought saffron for 15 euros",
        ]
    );
    assert_eq!(out.matches("The handler is asked, once").count(), 2);
    tells(&out, &["> looked up", "It sees:", "call_7  count_stock", "> read orders.txt"]);
    tells(
        &out,
        &[
            "call_2",
            "approved by rule 1",
            "call_3",
            "denied by rule 2",
            "call_4",
            "approved by rule 3",
        ],
    );
    tells(
        &out,
        &[
            "call_5",
            "edited by rule 4",
            "call_6",
            "denied by rule 5",
            "call_7",
            "result by the warehouse",
        ],
    );
    tells(
        &out,
        &[
            "Nothing is written while the stall is open.",
            "> bought saffron for 15",
            "The stall is stocked.",
        ],
    );
}
