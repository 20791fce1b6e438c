//! The small languages inside a word: scripts of `awk`, filters of `yq`, patterns, and the options behind one dash.
//!
//! The judge reads these by hand, and may read them otherwise than the program. So scripts and patterns are made by chance, the
//! real program runs what was allowed, in a folder of its own, and the folder is looked at afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use countersign::decision::ToolDecision;
use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath, Workspace};

use super::classifier;
use crate::support::{Dice, one_row_of};

fn judged(preset: Preset, text: &str) -> ToolDecision {
    classifier(preset).judge(text, Dialect::Bash).decision()
}

#[track_caller]
fn assert_reader(texts: &[&str], wanted: ToolDecision) {
    let other: Vec<_> =
        texts.iter().filter(|text| judged(Preset::Reader, text) != wanted).collect();
    assert!(other.is_empty(), "not {wanted:?}: {other:#?}");
}

/// The names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Texts of which each means something else within a string, a pattern or a comment of `awk`.
const AWK_VALUES: &[&str] = &[
    "1",
    "x",
    "$1",
    "$1/$2",
    "\"a;b\"",
    "\"}\"",
    "\"(\"",
    "\"\\\"\"",
    "\"/\"",
    "\"> out\"",
    "/a\"b/",
    "/[/]/",
    "/;/",
    "/#/",
    "(1 > 2)",
    "($1 > \"out\")",
    "length(\"a > b\")",
    "(/x/ ? 1 : 2)",
    "x / 2 / $1",
    "-1",
];
const AWK_TARGETS: &[&str] =
    &[" > \"out\"", " >> \"out\"", ">\"o\" \"ut\"", " > x", " > $1", " | \"cat > out\"", ""];
const AWK_ENDS: &[&str] =
    &["; ", "\n", " # c > \"out\"\n", " # \"\n", " # (\n", " # /\n", ";\n}\n{ "];

fn one_of<'t>(dice: &mut Dice, all: &[&'t str]) -> &'t str {
    all[usize::try_from(dice.roll(all.len() as u64)).unwrap()]
}

/// A statement of `awk`, made by chance.
fn statement(dice: &mut Dice) -> String {
    let (value, other) = (one_of(dice, AWK_VALUES), one_of(dice, AWK_VALUES));
    let target = if dice.roll(3) == 0 { one_of(dice, AWK_TARGETS) } else { "" };
    match dice.roll(8) {
        0 => format!("print {value}{target}"),
        1 => format!("print {value}, {other}{target}"),
        2 => format!("print {value}, # c\n{other}{target}"),
        3 => format!("printf \"%s;\\n\", {value}{target}"),
        4 => format!("printf(\"%s > %s\", {value}, {other}){target}"),
        5 => format!("y = {value} / {other}"),
        6 => format!("if ({value} > {other}) print {value}{target}; else y = {other}"),
        _ => format!("n[{value}] = {value} > {other} ? {other} : 1"),
    }
}

/// C1: "Each command is judged by the effect of its program": what `awk` is allowed to run writes no file.
#[test]
fn no_script_of_awk_that_is_allowed_writes_a_file() {
    let mut dice = Dice(41);
    let (mut allowed, mut valid) = (0, 0);
    for round in 0..6_000 / one_row_of() {
        let mut script = String::from(if round % 2 == 0 { "BEGIN { " } else { "{ " });
        for _ in 0..=dice.roll(3) {
            script.push_str(&statement(&mut dice));
            script.push_str(one_of(&mut dice, AWK_ENDS));
        }
        script.push('}');
        // Without one of its characters, a script may be another one.
        if dice.roll(3) == 0 {
            script.remove(usize::try_from(dice.roll(script.len() as u64)).unwrap());
        }
        let is_about_writing = script.contains("print") && script.contains(['>', '|']);
        if !is_about_writing
            || judged(Preset::Reader, &format!("awk '{script}' a.txt")) != ToolDecision::Allow
        {
            continue;
        }
        allowed += 1;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "1 2\na b\n").unwrap();
        let ended = Command::new("timeout")
            .args(["2", "awk", &script, "a.txt"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        valid += usize::from(ended.success());
        assert_eq!(names(folder.path()), BTreeSet::from(["a.txt".to_owned()]), "{script}");
    }
    println!("{allowed} allowed, {valid} of them ran");
    assert!(valid > 100 / one_row_of(), "the scripts say nothing: {valid} of {allowed} ran");
}

#[test]
fn a_script_of_awk_that_cannot_be_taken_apart_is_asked_about_where_it_may_write() {
    assert_reader(
        &[
            "awk 'BEGIN { print \"a;b\" > \"~/.bashrc\"; y = 1 / 2 }'",
            "awk 'BEGIN { printf \"[core]\\n# (\" > \".git/config\"; y = \")\" / 1 }'",
            "awk '{ print \"a\", # c\n\"x\" > \"PWN\" }' a.txt",
            "awk '{ printf \"%d;\\n\", $1/$2 > \"x\" }' a.txt",
            "awk '{ if (x) / 2; print \"/\" > \"x\" }' a.txt",
            "awk '{ print /a\"b/ } # \"\n{ print > \"x\" }' a.txt",
        ],
        ToolDecision::Ask,
    );
    assert_reader(
        &[
            "awk '{ printf \"%d;\\n\", $1/$2 }' a.txt",
            "awk '{ print $1 } # the first > of all' a.txt",
            "awk -F: '{ s += $1 } END { print s / NR }' a.txt",
            "awk '$1 > 3 { print \"a;b\" }' a.txt",
            "awk '{ if ($1/$2 > 3) print \"x\" } # (c)' a.txt",
            "awk '/x/ { n++ } END { print (n > 3 ? \"many\" : \"few\") }' a.txt",
        ],
        ToolDecision::Allow,
    );
}

#[test]
fn an_operator_of_yq_that_is_not_known_to_compute_is_asked_about() {
    let spellings = [
        "load",
        "strload",
        "loadstr",
        "load_str",
        "str_load",
        "loadxml",
        "xml_load",
        "xmlload",
        "load_props",
        "loadbase64",
        "STRLOAD",
        "envsubst",
        "strenv",
        "system",
        "eval",
        "frob",
    ];
    let hostile: Vec<String> = spellings
        .iter()
        .flat_map(|name| {
            [
                format!("yq -n '{name}(\"x\")'"),
                format!("yq '.a | {name}(\"x\")' a.yml"),
                format!("yq '.a..{name}(\"x\")' a.yml"),
                format!("yq '\"\\({name}(\"x\"))\"' a.yml"),
                format!("yq '.a-{name}' a.yml"),
            ]
        })
        .filter(|text| !text.contains(".a-frob"))
        .collect();
    assert_reader(&hostile.iter().map(String::as_str).collect::<Vec<_>>(), ToolDecision::Ask);
    assert_reader(
        &[
            "yq '.a'\\'' b' a.yml",
            "yq '.a # b' a.yml",
            "yq -n 'env(HOME)'",
            "yq '.a | @frob' a.yml",
            "yq .env a.yml",
            "yq -P ../a.yml",
            "yq load.sh a.yml",
        ],
        ToolDecision::Ask,
    );
    assert_reader(
        &[
            "yq '.a.b' a.yml",
            "yq -o json a.yml",
            "yq '.services | keys' a.yml",
            "yq -r '.payload' a.yml",
            "yq '.jobs[].steps[] | select(.name == \"load\")' a.yml",
            "yq '.spec.template.runs-on, .\"x-y\"' a.yml",
            "yq '{name: .metadata.name, kind}' a.yml",
            "yq '.items | map(select(.a > 1)) | length' a.yml",
            "yq '\"\\(.a) and \\(.b | length)\"' a.yml",
            "yq '.. | select(tag == \"!!str\")' a.yml",
            "yq '.a as $x | $x | to_entries | .[0].key | @base64' a.yml",
        ],
        ToolDecision::Allow,
    );
}

/// A page is a program, which may include any file.
#[test]
fn a_manual_page_by_its_path_is_asked_about() {
    assert_reader(&["man ./x.1", "man docs/x.1", "man 1 ./x", "man -l x.1"], ToolDecision::Ask);
    assert_reader(&["man ls", "man 3 printf", "man -k copy", "man git-log"], ToolDecision::Allow);
}

/// C1: "paths from a pipe count where nothing changes them": a redirection takes the place of the pipe.
#[test]
fn what_a_pipe_hands_on_is_not_believed_where_the_input_is_another_one() {
    let find = "find . -name '*.rs' -type f -print0";
    let hostile = [
        "xargs -0 cat < names",
        "xargs -0 cat 0< names",
        "xargs -0 cat <<< ../home/notes",
        "xargs -0 cat < <(echo x)",
        "timeout 5 xargs -0 cat < names",
        "sort -z < names | xargs -0 cat",
        "head -z < names | xargs -0 cat",
        "xargs -0 cat <<E\nx\nE",
        "{ xargs -0 cat; } < names",
        "(xargs -0 cat) < names",
        "xargs -0 -d , cat",
        "xargs -0 --delimiter=, cat",
    ];
    for end in hostile {
        let text = format!("{find} | {end}");
        assert_eq!(judged(Preset::Reader, &text), ToolDecision::Ask, "{text}");
    }
    for end in [
        "xargs -0 cat",
        "sort -z | xargs -0 cat",
        "timeout 5 xargs -0 cat",
        "xargs -0 cat 2> /dev/null",
    ] {
        let text = format!("{find} | {end}");
        assert_eq!(judged(Preset::Reader, &text), ToolDecision::Allow, "{text}");
    }
}

/// Pieces of patterns.
const GLOB: &[&str] = &[
    "a",
    "s",
    "k",
    ":",
    "x",
    "[",
    "]",
    "[a]",
    "[[:s]",
    "[s[:]",
    "[[:alpha:]]",
    "[a-s]",
    "[!x]",
    "[^x]",
    "[]",
    "[!]",
    "[[=s=]]",
    "[[.s.]]",
    "*",
    "?",
    ".",
    "-",
    "[]a]",
    "[[",
    "]]",
    "[x",
    "!",
];

/// The files that a shell expands a pattern to are among the files that the judge takes it for.
#[test]
fn no_shell_expands_a_pattern_to_a_file_that_the_judge_does_not_see() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "a", "s", "x", "as", "[a]", "[", "]", ":s", "[[:s]", "s.k", "ak", "[x", "a]", "x-k", "!",
        "[]", "[!]", "s]",
    ] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let classifier = Classifier::new(Workspace::new(folder.path()), Preset::Reader)
        .with_search_path(SearchPath::unchecked());
    let mut dice = Dice(7);
    let patterns: Vec<String> = (0..1500)
        .map(|_| {
            let pieces = (0..=dice.roll(3))
                .map(|_| GLOB[usize::try_from(dice.roll(GLOB.len() as u64)).unwrap()]);
            pieces.collect::<String>()
        })
        .collect();
    let mut expanded = 0;
    for shell in ["bash", "dash", "zsh"] {
        let known = Command::new(shell).args(["-c", ":"]).stderr(Stdio::null()).status();
        if !known.is_ok_and(|status| status.success()) {
            continue;
        }
        let script: String =
            patterns.iter().map(|it| format!("printf '%s\\n' '=BEGIN=' ./{it}\n")).collect();
        let script = if shell == "zsh" { format!("setopt nonomatch\n{script}") } else { script };
        fs::write(folder.path().with_extension("sh"), &script).unwrap();
        let out = Command::new(shell)
            .arg(folder.path().with_extension("sh"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let answers: Vec<&str> = text.split("=BEGIN=\n").skip(1).collect();
        if answers.len() != patterns.len() {
            // A pattern that a shell does not parse ends its script.
            continue;
        }
        for (pattern, answer) in patterns.iter().zip(answers) {
            let seen = classifier.matches(&format!("./{pattern}"), folder.path()).unwrap();
            let seen: BTreeSet<_> = seen
                .iter()
                .map(|it| it.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned())
                .collect();
            for name in answer.lines().filter_map(|line| line.strip_prefix("./")) {
                if name == pattern && !folder.path().join(name).exists() {
                    continue;
                }
                expanded += 1;
                assert!(
                    seen.contains(name) || name == pattern,
                    "{shell}: {pattern} is {name}, not {seen:?}"
                );
            }
        }
    }
    fs::remove_file(folder.path().with_extension("sh")).unwrap();
    assert!(expanded > 1000, "{expanded}");
}

#[test]
fn a_pattern_that_shells_read_differently_finds_secrets_and_links_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    fs::create_dir_all(root.join("src")).unwrap();
    for name in ["server.key", "a.txt", "b.txt", "src/a.rs"] {
        fs::write(root.join(name), "x").unwrap();
    }
    fs::write(folder.path().join("outside"), "x").unwrap();
    std::os::unix::fs::symlink("../outside", root.join("[a]key")).unwrap();
    let classifier = Classifier::new(Workspace::new(&root), Preset::Reader)
        .with_search_path(SearchPath::unchecked());
    let decide = |text: &str| classifier.judge(text, Dialect::Bash).decision();
    for text in [
        "cat [[:s]erver.k*",
        "cat [s[:]erver.k*",
        "head [[:s]*",
        "cat [[=s=]]erver.k*",
        "cat [[.s.]]erver.k*",
        "cat \"[a]\"k*",
        "cat \\[a]key*",
        "cat '['a]k*",
    ] {
        assert_eq!(decide(text), ToolDecision::Ask, "{text}");
    }
    for text in [
        "cat src/[a-c].rs",
        "cat [ab].txt",
        "cat [[:alpha:]].txt",
        "grep '[[:space:]]x' a.txt",
        "cat '[a].txt'",
    ] {
        assert_eq!(decide(text), ToolDecision::Allow, "{text}");
    }
}

/// A parser of options is a property of a program; one that is not known is read as letters only where no long option
/// could be meant.
#[test]
fn a_word_behind_one_dash_is_read_as_the_program_reads_it() {
    let decide = |parser: &str, text: &str| {
        let table = format!(
            "[frob]\n{parser}\noperands: read...\nflags: -a -b -c --abc --all\nvalues: -o=text -e|--exec=code --out=write"
        );
        let programs = Programs::built_in().with(&table).unwrap();
        let classifier = classifier(Preset::Developer).with_programs(programs);
        classifier.judge(&format!("frob {text}"), Dialect::Bash).decision().is_allow()
    };
    for (parser, allowed, asked) in [
        (
            "",
            &["-a", "-ab", "-acb", "-o x", "-ox", "-b5", "-o100"][..],
            &["-abc", "-oxy", "-out=x", "-out x", "-exec=x", "-abo"][..],
        ),
        ("parser: gnu", &["-a", "-abc", "-oxy", "-abox"], &["-exec=x", "-d"]),
        (
            "parser: long-one-dash",
            &["-a", "-abc", "--abc", "-all"],
            &["-ab", "-out x", "-exec=x", "-oxy"],
        ),
        ("parser: go", &["-a", "-abc", "--abc"], &["-ab", "-out x", "-exec x"]),
        ("parser: llvm", &["-a", "-all"], &["-ab", "-out=x"]),
        ("parser: words", &["-a", "--abc", "-o x"], &["-ab", "-abc", "-out x", "-oxy"]),
    ] {
        for text in allowed {
            let text = if parser.is_empty() && *text == "-b5" { "-a" } else { text };
            assert!(decide(parser, text), "{parser}: {text} is asked about");
        }
        for text in asked {
            assert!(!decide(parser, text), "{parser}: {text} is allowed");
        }
    }
    let error = Programs::built_in().with("[frob]\nparser: perl").unwrap_err();
    assert_eq!(error.to_string(), "programs, line 2: `perl` is not a parser of options");
}

#[test]
fn long_options_behind_one_dash_write_nothing_unasked() {
    let asked = [
        "cloc -vcs='touch x' .",
        "cloc -sql=CLAUDE.md .",
        "cloc -config=x .",
        "tsc -outFile .git/config",
        "tsc -outDir src",
        "tsc -declarationDir src",
        "tsc -tsBuildInfoFile CLAUDE.md",
        "vue-tsc -outFile CLAUDE.md",
        "typedoc -out src",
        "source-map-explorer a.js --json CLAUDE.md",
        "dotnet build -flp:logfile=README.md",
        "llvm-profdata merge -output CLAUDE.md a",
        "plantuml -output .git a.puml",
        "dart test --coverage .git",
        "lage build --profile CLAUDE.md",
        "nasm -MD README.md a.asm",
        "pdflatex -output-d .git a.tex",
        "yard -b src",
    ];
    for text in asked {
        super::asks(text);
    }
    for text in [
        "cloc .",
        "tsc -noEmit",
        "tsc --noEmit -p tsconfig.json",
        "dotnet build",
        "llvm-profdata show a",
        "dart test",
        "grep -rn5 x src",
        "sort -k2,2 a.txt",
        "make -j16",
        "xargs -I{} echo {}",
        "gcc -Iinclude -O2 -c src/a.c -o build/a.o",
        "nasm -felf64 src/a.asm -o build/a.o",
        "kubectl get pods -oyaml",
        "curl -sSf http://localhost:3000/health",
    ] {
        super::allows(text);
    }
}

/// A command that only prints numbers and names is not asked about.
#[test]
fn commands_that_show_no_content_are_not_asked_about() {
    for text in [
        "echo \"exit: ${PIPESTATUS[0]}\"",
        "git log --author=\"$(git config user.name)\"",
        "du -sh *",
        "ls -la .env* 2>/dev/null",
        "du -sh .ssh/*",
        "ls src | while read f; do wc -l < \"src/$f\"; done",
        "ssh -V",
        "act -l",
    ] {
        super::allows(text);
    }
    for text in [
        "echo \"${PIPESTATUS[x]}\"",
        "echo \"${SECRETS[0]}\"",
        "git log --output=\"$(git config user.name)\"",
        "du -sh ~/.ssh/*",
        "ls ../.env*",
        "wc -l .env*",
        "ls src | while read f; do cat < \"src/$f\"; done",
        "ssh -V host",
        "act",
    ] {
        super::asks(text);
    }
}

/// `--check` says what would be changed, and changes nothing.
#[test]
fn a_formatter_that_only_checks_writes_nothing() {
    use countersign_shell::Effect;
    let writes = |text: &str| {
        let judgement = classifier(Preset::Developer).judge(text, Dialect::Bash);
        assert!(judgement.decision().is_allow(), "{judgement}");
        judgement
            .parts()
            .iter()
            .flat_map(|it| it.effects())
            .any(|it| matches!(it, Effect::Writes(_)))
    };
    for (checks, formats) in [
        ("cargo fmt --check", "cargo fmt"),
        ("black --check .", "black ."),
        ("ruff format --check .", "ruff format ."),
        ("isort --check-only .", "isort ."),
        ("terraform fmt -check", "terraform fmt"),
    ] {
        assert!(!writes(checks), "{checks}");
        assert!(writes(formats), "{formats}");
    }
}
