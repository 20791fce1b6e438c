//! The parts of a command.

use countersign_shell::{Commands, Dialect, Join, RedirectionTarget, Stage, WordKind};

fn parsed(text: &str) -> Commands {
    Commands::parse(text, Dialect::Bash).unwrap_or_else(|refused| panic!("{text:?}: {refused}"))
}

fn argv(text: &str) -> Vec<Vec<String>> {
    let commands = parsed(text);
    let words = |command: &countersign_shell::SimpleCommand| {
        command.words().iter().map(|word| word.text().to_owned()).collect()
    };
    commands.simple_commands().map(words).collect()
}

#[test]
fn quotes_are_removed_as_a_shell_removes_them() {
    assert_eq!(
        argv(r#"echo 'a b' "c d" e\ f "" '' a'b'"c""#),
        [["echo", "a b", "c d", "e f", "", "", "abc"]]
    );
    assert_eq!(argv(r#"echo "a\"b\\c\d" '\n' \n"#), [["echo", r#"a"b\c\d"#, r"\n", "n"]]);
    assert_eq!(argv("echo a#b # c"), [["echo", "a#b"]]);
    assert_eq!(argv("echo \\\n  a"), [["echo", "a"]]);
}

#[test]
fn pipelines_and_lists_keep_how_they_are_joined() {
    let commands = parsed("a && b | c || ! d; e\nf");
    let joins: Vec<_> = commands
        .pipelines()
        .iter()
        .map(|pipeline| (pipeline.join(), pipeline.stages().len()))
        .collect();
    assert_eq!(
        joins,
        [(Join::Then, 1), (Join::And, 2), (Join::Or, 1), (Join::Then, 1), (Join::Then, 1)]
    );
    assert!(commands.pipelines()[2].is_negated());
}

#[test]
fn words_have_the_kind_that_a_shell_gives_them() {
    let commands = parsed(r#"ls x '*' *.rs ~/a "$HOME" $(pwd) <(id) [ "[" stash@{0} {}"#);
    let Stage::Simple(command) = &commands.pipelines()[0].stages()[0] else { panic!() };
    let kinds: Vec<_> =
        command.words().iter().skip(1).map(|word| (word.kind(), word.may_split())).collect();
    use WordKind::{Expansion, Glob, Literal, Process, Tilde};
    assert_eq!(
        kinds,
        [
            (Literal, false),
            (Literal, false),
            (Glob, true),
            (Tilde, false),
            (Expansion, false),
            (Expansion, true),
            (Process, false),
            (Literal, false),
            (Literal, false),
            (Literal, false),
            (Literal, false),
        ]
    );
    assert_eq!(commands.simple_commands().count(), 3, "those in substitutions too");
}

#[test]
fn redirections_assignments_and_subshells_are_kept() {
    let commands = parsed("A=1 B='x y' sort < in 2>&1 >> out; (cd x && ls) > y");
    let Stage::Simple(command) = &commands.pipelines()[0].stages()[0] else { panic!() };
    let names: Vec<_> =
        command.assignments().iter().map(|one| (one.name(), one.value().text())).collect();
    assert_eq!(names, [("A", "1"), ("B", "x y")]);
    let targets: Vec<_> =
        command.redirections().iter().map(|one| (one.fd(), one.target())).collect();
    assert!(matches!(targets[0], (None, RedirectionTarget::Read(word)) if word.text() == "in"));
    assert!(matches!(targets[1], (Some(2), RedirectionTarget::Duplicate(1))));
    assert!(matches!(targets[2], (None, RedirectionTarget::Append(word)) if word.text() == "out"));
    let Stage::Subshell { commands: inner, redirections } = &commands.pipelines()[1].stages()[0]
    else {
        panic!()
    };
    assert_eq!((inner.pipelines().len(), redirections.len()), (2, 1));
}

#[test]
fn a_here_document_is_data_and_the_line_after_it_is_not() {
    let commands = parsed("cat <<'E' | wc -l\nrm x\nE\nls");
    assert_eq!(argv("cat <<'E' | wc -l\nrm x\nE\nls"), [vec!["cat"], vec!["wc", "-l"], vec!["ls"]]);
    let Stage::Simple(command) = &commands.pipelines()[0].stages()[0] else { panic!() };
    assert_eq!(
        command.redirections()[0].target(),
        &RedirectionTarget::HereDocument("rm x\n".into())
    );
    for text in [
        "cat <<E 'a\nb'\nE\n",
        "cat <<E $(ls\nE\n)",
        "cat <<A <<B\nA\nB\n",
        "cat <<E\nx",
        "(cat <<E)\nE\n",
    ] {
        assert!(Commands::parse(text, Dialect::Bash).is_err(), "{text:?}");
    }
}

#[test]
fn a_refusal_names_the_place_and_keeps_what_was_read() {
    let refused = Commands::parse("ls a\npwd; select x in y; do z; done", Dialect::Sh).unwrap_err();
    assert_eq!((refused.line(), refused.column(), refused.at()), (2, 6, 10));
    assert_eq!(refused.read().simple_commands().count(), 2);
    assert!(refused.why().contains("`select`"), "{}", refused.why());
}

#[test]
fn sh_does_not_have_what_bash_has() {
    for text in ["cat <(ls)", "cat <<< x", "ls &> x", "ls |& cat", "ls {a,b}", "[[ -f x ]]"] {
        assert!(Commands::parse(text, Dialect::Bash).is_ok(), "{text}");
        assert!(Commands::parse(text, Dialect::Sh).is_err(), "{text}");
    }
}

#[test]
fn comments_are_kept_for_a_person_to_see() {
    let text = "# first\nls # second";
    let commands = parsed(text);
    let comments: Vec<_> = commands.comments().iter().map(|range| &text[range.clone()]).collect();
    assert_eq!(comments, ["# first", "# second"]);
}

#[test]
fn too_much_is_refused() {
    for text in [
        "ls;".repeat(10_000),
        "a ".repeat(5_000),
        "x".repeat(1 << 20),
        "(".repeat(2_000),
        "echo $(".repeat(2_000),
        "a|".repeat(9_999) + "a",
    ] {
        let refused = Commands::parse(&text, Dialect::Bash).unwrap_err();
        assert!(!refused.why().is_empty());
    }
}
