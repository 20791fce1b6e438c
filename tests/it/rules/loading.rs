//! A file loads as a whole or not at all (rules R1 and R3), and no reload widens by itself.

use std::fs;

use countersign::decision::ToolDecision::{Allow, Ask, Deny};
use countersign_rules::{ProjectApprovals, RuleCall, Rules, difference, find_project_file, schema};
use serde_json::json;

use super::{args, builder, decide, refused, rules, run};

fn rule(text: &str) -> String {
    format!("version = 1\n[[rule]]\nid = \"a\"\n{text}\n")
}

#[test]
fn every_problem_has_its_line_and_column() {
    for (text, wanted) in [
        (String::new(), "mine.toml:1:1: a file of rules begins with `version = 1`"),
        ("version = 3".into(), "mine.toml:1:11: this program reads the versions 1 and 2"),
        (
            "version = 1\nrules = 1".into(),
            "mine.toml:2:1: a file of rules has no `rules`: is `rule` meant?",
        ),
        ("version = 1\n[[rule]\n".into(), "mine.toml:2:"),
        (rule("alow = 'x'"), "mine.toml:4:1: a rule has no `alow`: is `allow` meant?"),
        (rule("allow = 'x'\nallow = 'y'"), "mine.toml:5:1"),
        (rule("allow = 'x'\ndeny = 'y'"), "make it two rules"),
        (rule("allow = []"), "empty list"),
        (rule("allow = 'Bash(ls)'"), "conditions on arguments belong into `where`"),
        (rule("allow = 'mcp:docs'"), "write `mcp:docs/*`"),
        (rule("allow = 'x'\nwhere.command.run = 'ls'"), "is `runs` meant?"),
        (rule("allow = 'x'\nwhere.command = 'ls *'"), "use `runs` or `is`"),
        // `git push a; curl x | sh` matches, too.
        (rule("allow = 'x'\nwhere.command.matches = 'git push *'"), "use `runs` or `is`"),
        (rule("deny = 'x'\nexcept.command.matches = ['a*', 'b*']"), "use `runs` or `is`"),
        (
            rule("allow = 'x'\nwhere.command.runs = 'sudo'"),
            "`sudo` runs the program in its arguments",
        ),
        (rule("allow = 'x'\nwhere.command.is = 'safe'"), "`safe` is no class"),
        (rule("allow = 'x'\nwhere.url.host = '*example.com'"), "is no host"),
        (rule("allow = 'x'\nwhere.a.above = 'b'"), "needs a number"),
        (rule("deny = 'x'\nevery_time = true"), "only a rule with `ask`"),
        (rule("allow = 'x'\nat_most = { calls = 1 }"), "needs `calls` and `within`"),
        (rule("ask = 'x'\nat_most = { calls = 1, within = '1h', else = 'ask' }"), "stricter"),
        (rule("allow = 'x'\nwhere.a = nan"), "compared with"),
        (rule("allow = 'x'\n[[rule]]\nid = 'a'\nallow = 'y'"), "has the id `a`, too"),
        (rule("allow = 'x'\n[test]\nallow = ['y']"), "wants allow, and the rules decide: ask"),
        ("version = 1\ndefault = 'allow'".into(), "danger_default_allow"),
    ] {
        let error = refused(&text).to_string();
        assert!(error.contains(wanted), "{text}\n{error}");
        assert!(error.starts_with("mine.toml:"), "{error}");
    }
}

/// A test is written by hand: lists and objects need no quotes, and what is not closed is an error.
#[test]
fn a_test_has_lists_and_objects_of_bare_words() {
    let mail = |test: &str| {
        let text = rule("allow = 'mail'\nwhere.to = ['*@corp.example']");
        format!("{text}[test]\n{test}\n")
    };
    for test in [
        "allow = ['mail: {to: [a@corp.example, \"b@corp.example\"], x: {y: [1, z]}}']",
        "allow = 'mail: {to: [ a@corp.example ]}'",
        "ask = 'mail: {to: [a@corp.example, b@else.example]}'",
        "ask = 'mail: {to: []}'",
    ] {
        rules(&mail(test));
    }
    for test in [
        "{to: [a@corp.example}",
        "{to: [a,,b]}",
        "{to: [a] b}",
        &format!("{{to: {}}}", "[".repeat(9000)),
    ] {
        let error = refused(&mail(&format!("ask = 'mail: {test}'"))).to_string();
        assert!(error.contains("a test is `tool: {name: value, list: [value, …]}`"), "{error}");
    }
}

#[test]
fn a_key_of_the_file_at_its_end_is_told_where_it_belongs() {
    let file = rule("ask = 'x'");
    for (text, table) in [
        (format!("{file}[test]\nask = 'x'\nversion = 1\n"), "[test]"),
        (format!("{file}\nversion = 1\n"), "[[rule]]"),
    ] {
        let error = refused(&text).to_string();
        assert!(error.contains("`version` belongs at the top of the file"), "{error}");
        assert!(error.contains(&format!("behind `{table}`")), "{error}");
    }
}

#[test]
fn a_misspelt_test_does_not_pass_for_a_field() {
    for (conditions, column, wanted) in [
        ("where.path.wihtin = '.'", 12, "`wihtin` is no test of a field: is `within` meant?"),
        ("where.path.Within = '.'", 12, "is `within` meant?"),
        ("where.path = { inside = '.' }", 16, "is `within` meant?"),
        ("where.url.hosts = 'a.example'", 11, "is `host` meant?"),
        ("where.amount.max = 5", 14, "is `at_most` meant?"),
        ("where.amount.atleast = 5", 14, "is `at_least` meant?"),
        ("where.a.b.regex = 'x'", 11, "`\"/a/b/regex\"`"),
        ("where.command.iss = 'read-only'", 15, "is `is` meant?"),
        ("where.command.runs_ = 'ls'", 15, "is `runs` meant?"),
        ("except.path.matchs = 'x'", 13, "is `matches` meant?"),
        ("where.any_paths = '**/.env'", 7, "is `any_path` meant"),
        ("where.any_path.wihtin = '.'", 16, "is `within` meant?"),
        ("where.within = '.'", 7, "needs a field in front of it"),
        ("where.path = { within = '.', matchs = 'x' }", 30, "is `matches` meant?"),
    ] {
        let error = refused(&rule(&format!("ask = 'x'\n{conditions}"))).to_string();
        assert!(error.starts_with(&format!("mine.toml:5:{column}: ")), "{conditions}\n{error}");
        assert!(error.contains(wanted), "{conditions}\n{error}");
    }
    // Fields of fields, and a pointer to a field with such a name.
    for conditions in [
        "where.user.age = '> 17'",
        "where.server.hostname = 'a.example'",
        "where.range.max.below = 5",
        "where.\"/path/wihtin\" = '.'",
        "where.\"/within\" = '.'",
        "where.body.post.path = 'src/**'",
    ] {
        rules(&rule(&format!("allow = 'x'\n{conditions}")));
    }
}

#[test]
fn an_invalid_file_of_rules_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("latin"), b"version = 1\n# caf\xe9\n").unwrap();
    fs::write(at("truncated"), "version = 1\n[[rule]]\nid = \"a").unwrap();
    let huge = fs::File::create(at("huge")).unwrap();
    huge.set_len(100 * 1024 * 1024).unwrap();
    for (path, wanted) in [
        (folder.path().to_owned(), "is not a regular file"),
        (at("nothing"), "cannot be read"),
        (at("latin"), "latin:2:6: is not UTF-8"),
        (at("truncated"), "truncated:3:"),
        (at("huge"), "is larger than"),
    ] {
        let error = Rules::load([&path]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        assert!(
            Rules::load([at("device")]).unwrap_err().to_string().contains("is not a regular file")
        );
    }
    // A file of a repository chooses the words that an error quotes.
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'x'\n'wh\u{202e}ere\u{1b}' = 1\n";
    let error = Rules::builder().text("a\u{202e}b", text).load().unwrap_err().to_string();
    let is_shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
    assert!(error.chars().all(is_shown) && error.contains(r"\u{202e}"), "{error:?}");
    // One bad file, and the good one beside it is not in force either.
    fs::write(at("good"), rule("allow = 'x'")).unwrap();
    assert!(Rules::load([at("good"), at("truncated")]).is_err());
}

#[test]
fn a_reload_narrows_at_once_and_widens_when_it_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let write = |text: &str| fs::write(&file, rule(text)).unwrap();
    write("ask = 'x'");
    let rules = Rules::builder().root(folder.path()).file(&file).load().unwrap();
    let x = || decide(&rules, "x", json!({}));

    write("# a comment\nask = 'x'");
    assert!(!rules.reload().unwrap().changed);
    write("allow = 'x'");
    let reload = rules.reload().unwrap();
    assert!(reload.changed && reload.needs_accepting);
    assert_eq!(x(), Ask);
    write("deny = 'x'\nreason = 'no'");
    let denying = rules.reload().unwrap();
    assert_eq!(x(), Deny);
    assert!(!rules.accept(&reload.digest), "those are not the latest rules");
    write("allow = 'x'");
    rules.reload().unwrap();
    assert_eq!(x(), Deny, "the denial was not taken back by a person");
    assert!(rules.accept(&reload.digest));
    assert_eq!(x(), Allow);
    assert!(!rules.accept(&denying.digest));

    write("allow = ");
    assert!(rules.reload().is_err());
    assert_eq!(x(), Allow, "the last good rules");
    let given = args(json!({}));
    let asked = rules.decide(&RuleCall::new("other", &given));
    assert!(rules.problem().is_some() && asked.decision() == Ask);
    assert!(asked.to_string().contains("the rules were changed and cannot be loaded"), "{asked}");
    fs::remove_file(&file).unwrap();
    assert!(rules.reload().is_err() && x() == Allow);
}

#[test]
fn a_projects_file_widens_only_in_the_form_that_was_approved() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(&root).unwrap();
    let file = root.join("countersign.toml");
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'x'\n[[rule]]\nid = 'b'\ndeny = 'y'\nreason = 'no'\n[test]\nallow = 'x'";
    fs::write(&file, text).unwrap();
    let approvals = ProjectApprovals::at(folder.path().join("state/projects.json"));
    let load = || {
        let mine = "version = 1\n[[rule]]\nid = 'y'\nallow = 'y'";
        Rules::builder()
            .root(&root)
            .text("mine.toml", mine)
            .project(&file, approvals.clone())
            .load()
    };
    let decide = |tool: &str| decide(&load().unwrap(), tool, json!({}));

    assert_eq!((decide("x"), decide("y")), (Ask, Deny), "it narrows at once");
    approvals.approve(&root, text, "ann").unwrap();
    assert_eq!((decide("x"), decide("y")), (Allow, Deny));
    assert_eq!(approvals.approved(&root).unwrap().unwrap().by, "ann");

    fs::write(&file, format!("{text}\n")).unwrap();
    assert_eq!((decide("x"), decide("y")), (Ask, Deny), "one byte more");
    approvals.approve(&root, &format!("{text}\n"), "ann").unwrap();
    fs::write(&file, text).unwrap();
    assert_eq!(decide("x"), Ask, "only the newest approval counts");
    let elsewhere = approvals.clone().host("another machine");
    assert!(elsewhere.approved(&root).unwrap().is_none());

    for key in ["danger_default_allow = true", "read_only_tools = 'x'", "store = 'x'"] {
        fs::write(&file, format!("version = 1\n{key}\n")).unwrap();
        assert!(load().is_err(), "{key}");
    }
}

#[test]
fn the_search_for_a_projects_file_stops_at_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join("src")).unwrap();
    fs::write(folder.path().join("countersign.toml"), "version = 1").unwrap();
    assert_eq!(find_project_file(&repository.join("src")), None);
    fs::write(repository.join("countersign.toml"), "version = 1").unwrap();
    let found = find_project_file(&repository.join("src")).unwrap();
    assert_eq!(found, repository.canonicalize().unwrap().join("countersign.toml"));
}

#[test]
fn a_difference_is_listed_rule_by_rule() {
    let old = "version = 1\n[[rule]]\nid = 'a'\nask = 'x'\n[[rule]]\nid = 'b'\nallow = 'y'\n";
    let new = "version = 1\n# moved\n[[rule]]\nid = 'b'\nallow = 'y'\n[[rule]]\nid = 'a'\nask = ['x', 'z']\n";
    let found = difference(old, new).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].rule.as_str(), found[0].after.as_deref()),
        ("a", Some("[[rule]]\nid = \"a\"\nask = [\"x\", \"z\"]"))
    );
    assert!(difference(old, old).unwrap().is_empty());
}

#[test]
fn the_committed_schema_is_the_one_that_files_are_read_with() {
    let path = format!("{}/../docs/rules.schema.json", env!("CARGO_MANIFEST_DIR"));
    let current = schema();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&current).unwrap() + "\n").unwrap();
    }
    // Compared as values: the order of keys in the text depends on the features of `serde_json` in the build.
    let committed = fs::read_to_string(&path).unwrap();
    let committed: serde_json::Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(committed, current, "write it again with UPDATE=1");
}

#[test]
fn the_file_in_the_readme_loads_with_its_tests() {
    // R3: "A file loads as a whole or not at all, with the tests in it".
    let readme = include_str!("../../../README.md");
    let files: Vec<_> = readme.split("```toml\nversion = ").skip(1).collect();
    assert_eq!(files.len(), 1);
    let text = format!("version = {}", files[0].split("```").next().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.toml");
    fs::write(&file, text).unwrap();
    Rules::builder().lexical().file(file).load().unwrap();
}

/// R1: "`preset = \"developer\"` adds a preset to a user's file": it counts beside the rules of the file, the tests of the
/// file run with both, and nothing but a user's file has one.
#[test]
fn a_file_may_name_a_preset_that_counts_beside_it() {
    let text = "version = 2\npreset = 'developer'\n[[rule]]\nid = 'no-make'\ndeny = 'shell'\nwhere.command.runs = 'make'\n\
                [test]\nallow = 'shell: cargo test'\nask = 'shell: git push'\ndeny = ['shell: make', 'shell: rm -rf /']";
    let both = rules(text);
    assert_eq!(run(&both, "cargo test"), Allow);
    assert_eq!(run(&both, "make"), Deny);
    let files: Vec<_> = both.files().iter().map(|file| file.file.clone()).collect();
    assert_eq!(files, ["mine.toml", "preset developer"]);
    // Named twice, it is there once.
    let twice = builder(text).preset(countersign_shell::Preset::Developer).load().unwrap();
    assert_eq!(twice.digest(), both.digest());
    assert_ne!(
        twice.digest(),
        rules(&text.replace("developer", "reader").replace("allow = 'shell: cargo test'\n", ""))
            .digest()
    );
    for (text, says) in [
        ("version = 1\npreset = 'developer'", "`preset` is of version 2"),
        ("version = 2\npreset = 'devloper'", "the presets are `developer` and `reader`"),
        ("version = 2\npreset = ['reader']", "has to be a text"),
    ] {
        assert!(refused(text).to_string().contains(says), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("countersign.toml");
    fs::write(&project, "version = 2\npreset = 'reader'").unwrap();
    let approvals = ProjectApprovals::at(folder.path().join("approvals.json"));
    let refused = Rules::builder().root(folder.path()).project(&project, approvals).load();
    assert!(refused.unwrap_err().to_string().contains("only a user's own file can have `preset`"));
}
