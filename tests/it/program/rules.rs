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

/// C4: without a look at files, too, a path is outside of the workspace that is the current directory.
#[test]
fn a_path_outside_is_asked_about_without_a_look_at_files() {
    let user = with_rules();
    for (call, decision) in [
        ("shell: cat src/a.c", "allow:"),
        ("shell: cat /srv/a.c", "ask:"),
        ("shell: cat ../a.c", "ask:"),
    ] {
        let args = ["rules", "explain", "--preset", "developer", "--lexical", "--text", call];
        let explained = user.run(&args);
        assert!(explained.out.starts_with(decision), "{call}: {explained:?}");
    }
}

/// A call that a person types is explained as the tests of a file have it, and a command alone is not the name of a tool.
#[test]
fn calls_are_explained_as_they_are_written_in_a_test() {
    let user = with_rules();
    let explain = |calls: &[&str]| {
        user.run(&[&["rules", "explain", "--rules", "rules.toml"], calls].concat())
    };
    let both = explain(&["mcp:files/write: {path: a}", "set:own/read"]);
    assert_eq!(both.status, 0, "{both:?}");
    assert!(both.out.starts_with("deny: read only (change, rules.toml:8)"), "{both:?}");
    assert!(both.out.contains("allow"), "{both:?}");
    let command = explain(&["git push"]);
    assert!(
        command.status == 2 && command.err.contains("is `shell: git push` meant?"),
        "{command:?}"
    );
    let broken = explain(&["mcp:files/write: {path"]);
    assert!(broken.status == 2 && broken.err.contains("`tool: {name: value"), "{broken:?}");
}

/// C1: "A variable in capitals that a text sets has that value, if the environment does not have the name": a shell exports
/// what was exported to it.
#[test]
fn a_variable_that_the_environment_has_is_asked_about_where_a_text_sets_it() {
    let user = User::new();
    let words = ["rules", "explain", "--preset", "developer", "shell: SHOP=src; ls $SHOP"];
    assert!(user.run(&words).out.starts_with("allow"), "{:?}", user.run(&words));
    let asked = ended(&user.command(&words).env("SHOP", "").output().unwrap());
    assert!(asked.out.starts_with("ask") && asked.out.contains("sets `SHOP`"), "{asked:?}");
}

/// R9: "The question says … what that is worth", and so does a check of the file, which is no finding.
#[test]
fn a_check_says_what_names_are_worth_on_a_store_of_one_account() {
    let user = User::new();
    std::fs::create_dir(user.home().join("work")).unwrap();
    let file =
        "version = 2\n[[rule]]\nid = 'pay'\nask = 'pay'\npeople = 2\n[test]\nask = 'pay: {}'\n";
    std::fs::write(user.home().join("rules.toml"), file).unwrap();
    let words = ["rules", "check", "--rules", "rules.toml", "--root", "work"];
    let alone = user.run(&words);
    assert_eq!(alone.status, 0, "{alone:?}");
    assert!(alone.out.contains("protect from mistakes, not from this account"), "{alone:?}");
    let url = "postgres://db.example/asks";
    let mut command = user.command(&words);
    let shared = ended(&command.env("COUNTERSIGN_STORE", url).output().unwrap());
    assert!(shared.status == 0 && !shared.out.contains("this account"), "{shared:?}");
}
