//! `countersign rules`: what a file of rules is said to be, and by which names calls are read.

use std::io::Write as _;
use std::process::Stdio;

use super::{Ended, User, ended};

const FILE: &str = "
version = 1

[[rule]]
id = 'look'
allow = ['mcp:files/read', 'set:own/read']

[[rule]]
id = 'change'
deny = 'mcp:files/write'
reason = 'read only'

[test]
allow = ['mcp:files/read: {}', 'set:own/read: {}', {tool = 'mcp:files/read'}]
deny = 'mcp:files/write: {}'
ask = 'read: {}'
";

fn with_rules() -> User {
    let user = User::new();
    std::fs::create_dir(user.home().join("work")).unwrap();
    std::fs::write(user.home().join("rules.toml"), FILE).unwrap();
    user
}

fn explained(user: &User, lines: &str) -> Ended {
    let mut command = user.command(&["--json", "rules", "explain", "--rules", "rules.toml"]);
    let mut explain = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    explain.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    ended(&explain.wait_with_output().unwrap())
}

#[test]
fn a_check_says_how_many_rules_and_tests_each_file_has() {
    let user = with_rules();
    let words = ["rules", "check", "--rules", "rules.toml", "--root", "work"];
    let checked = user.run(&words);
    assert_eq!(
        (checked.status, checked.out.as_str()),
        (0, "rules.toml: 2 rules, 5 tests passed\nno findings\n")
    );
    let both = user.run(&[&words[..], &["--preset", "reader"]].concat());
    assert!(both.out.contains(" rules, ") && both.out.lines().count() == 3, "{both:?}");
    assert_eq!(user.run(&[&words[..], &["--json"]].concat()).out, "", "no line is a finding");
    let failing = FILE
        .replace("deny = 'mcp:files/write: {}'", "allow = 'mcp:files/write: {}'")
        .replacen("allow = ['mcp:files/read: {}'", "deny = ['mcp:files/read: {}'", 1);
    std::fs::write(user.home().join("rules.toml"), failing).unwrap();
    let failed = user.run(&words);
    assert!(failed.status == 1 && !failed.out.contains("passed"), "{failed:?}");
}

/// A call is named as rules name its tool, in `explain` as in the tests of a file.
#[test]
fn a_tool_of_a_server_is_explained_by_the_name_that_rules_have_for_it() {
    let user = with_rules();
    let calls = [
        (r#"{"tool":"mcp:files/read","args":{}}"#, "allow"),
        (r#"{"tool":"read","server":"files"}"#, "allow"),
        (r#"{"tool":"mcp:files/write"}"#, "deny"),
        (r#"{"tool":"set:own/read"}"#, "allow"),
        (r#"{"tool":"read"}"#, "ask"),
        (r#"{"tool":"mcp:other/read"}"#, "ask"),
        (r#"{"tool":"mcp:files/read","server":"other"}"#, "ask"),
    ];
    let lines: String = calls.iter().map(|(line, _)| format!("{line}\n")).collect();
    let decisions: Vec<_> =
        explained(&user, &lines).lines().iter().map(|line| line["decision"].to_string()).collect();
    let wanted: Vec<_> = calls.iter().map(|(_, decision)| format!("\"{decision}\"")).collect();
    assert_eq!(decisions, wanted);
}
