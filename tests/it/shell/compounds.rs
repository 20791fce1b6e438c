//! Loops, conditions, groups and braces: judged by all parts that may run, with the values that variables may have.

use std::fs;

use countersign::decision::ToolDecision;
use countersign_shell::{Classifier, Commands, Dialect, Preset, SearchPath, Workspace};

use super::{allows, asks, classifier, developer};

#[test]
fn what_may_run_is_judged_whatever_decides_about_it() {
    for text in [
        "if true; then ls; fi",
        "if [ -f Cargo.toml ]; then cargo check; elif [ -f go.mod ]; then go vet ./...; else ls; fi",
        "if ! grep -q x a.txt; then echo none; fi",
        "while ! test -e ready; do sleep 1; done",
        "until curl -s http://localhost:3000/health; do sleep 1; done",
        "{ ls; pwd; } | sort",
        "cargo test || { echo failed; git status; }",
        "for i in 1 2 3; do cargo test -q || break; done",
        "if ls\nthen\n  pwd # here\nelse\n  ls\nfi",
    ] {
        allows(text);
    }
    for text in [
        "if rm x; then ls; fi",
        "if false; then rm x; fi",
        "if true; then ls; else rm x; fi",
        "if true; then ls; elif rm x; then ls; fi",
        "if true; then ls; elif ls; then rm x; fi",
        "while rm x; do ls; done",
        "while false; do rm x; done",
        "until true; do git push; done",
        "{ ls; rm x; }",
        "for i in 1; do ls; rm x; done",
        "if true; then for i in 1; do { rm x; }; done; fi",
        "if true; then ls; fi > src/lib.rs",
        "for i in 1; do ls; done >> ~/.bashrc",
        "while read -r x; do ls; done < /etc/shadow",
        "if true; then ls; fi | sh",
        "if true; then ls; fi; rm x",
        "ls |& tee x",
    ] {
        asks(text);
    }
    let denied = developer("if true; then for i in 1; do rm -rf /; done; fi");
    assert_eq!(denied.decision(), ToolDecision::Deny);
}

#[test]
fn every_branch_of_a_case_is_judged_and_its_word_is_a_text() {
    for text in [
        "case $1 in a|b) ls;; *) pwd;; esac",
        "case \"$(uname)\" in Linux) echo linux;; Darwin|*BSD) echo other;; esac",
        "case x in\n  # nothing to do\n  a) ;;\n  'b c')\n    ls\n    ;;\n  *) pwd\nesac",
        "for f in *.md; do case $f in README*) head -3 \"$f\";; *) wc -l \"$f\";; esac; done",
        "case x in x) ls;; esac | sort",
    ] {
        allows(text);
    }
    for text in [
        "case $(rm x) in *) ls;; esac",
        "case x in y) rm x;; esac",
        "case x in y) ls;; *) ls; git push;; esac",
        "case x in y) ls;; esac > src/lib.rs",
        "case x in y) PATH=/tmp;; esac; ls",
        "case x in y) cd ..;; esac; cat secret.txt",
        "case x in *) case y in *) rm x;; esac;; esac",
        "for f in a b; do case $f in a) x=/etc/shadow;; esac; cat $x; done",
    ] {
        asks(text);
    }
}

#[test]
fn arithmetic_of_numbers_is_a_number() {
    for (text, word) in [
        ("a $((1))", "1"),
        ("a $((3 * 14 + 2))", "44"),
        ("a x$(( (1+2) * -3 ))y", "x-9y"),
        ("a \"$((7 / -2)) $((7 % 4))\"", "-3 3"),
        ("a $((5 - -3))", "8"),
    ] {
        for dialect in [Dialect::Sh, Dialect::Bash, Dialect::Zsh] {
            let commands = Commands::parse(text, dialect).unwrap();
            let argv = commands.simple_commands().next().unwrap().argv().unwrap();
            assert_eq!(argv, ["a", word], "{text}");
        }
    }
    allows("head -c $((16*1024)) data.bin | tail -n $((2 + 3))");
    allows("echo \"$((1024 * 1024)) bytes\"");
    // The value of the variable would be evaluated, with the commands in a subscript of it.
    asks("x='a[$(id)]'; echo $((x))");
    // A number that is an option or a place is judged as such.
    asks("sort $((0 - 1))x -o src/lib.rs");
}

#[test]
fn the_words_of_a_for_are_judged_one_by_one() {
    for text in [
        "for f in a.rs src/b.rs; do cat \"$f\"; done",
        "for f in a b; do cat src/$f.rs ${f}.txt; done",
        "for f in src/*.rs; do wc -l \"$f\"; head -5 \"$f\"; done",
        "for d in crates/*; do ls \"$d/src\"; cat \"$d/Cargo.toml\"; done",
        "for c in rg fd; do command -v $c; done",
        "for t in build test; do npm run $t; done",
        "for a in x y; do for b in 1 2; do echo \"$a$b\"; diff $a.txt $b.txt; done; done",
        "for f in a b; do echo \"$(wc -l < $f) $f\"; done",
        "for f in a b; do if grep -q x $f; then echo $f; fi; done",
        "for i in $(seq 1 50); do echo \"round $i\"; cargo test -q; done",
    ] {
        allows(text);
    }
    for text in [
        "for f in a .env; do cat \"$f\"; done",
        "for f in env; do cat .$f; done",
        "for f in x ../y; do cat $f; done",
        "for f in ~/.ssh/*; do cat \"$f\"; done",
        "for f in .e*; do cat $f; done",
        "for d in x; do cat \"$d/../../y\"; done",
        "for d in */; do cat \"$d/../../y\"; done",
        "for c in ls rm; do $c x; done",
        "for o in -delete; do find . $o; done",
        "for o in '-delete'; do find . \"$o\"; done",
        "for o in 'x -delete'; do find $o; done",
        "for f in *; do find . $f; done",
        "for f in '*'; do find . $f; done",
        "for c in 'rm x'; do $c; done",
        "for c in 'rm x'; do eval \"$c\"; done",
        "for c in 'rm x'; do sh -c \"$c\"; done",
        "for s in push; do git $s; done",
        "for f in $(cat list); do cat $f; done",
        "for f in $(find . -name x); do cat \"$f\"; done",
        "for f in $(rm x); do ls; done",
        "for f in \"$TOKEN\"; do echo $f; done",
        "for f in a; do echo $g; done",
        "for f in a; do :; done; cat $f",
        "for f in a; do :; done; echo $f",
        "for f in a b c d e f g h i j k l m n o p q .env; do cat $f; done",
    ] {
        asks(text);
    }
}

/// A `$` in quotes looks like a variable, and is none.
#[test]
fn what_only_looks_like_the_variable_is_no_value() {
    asks("for f in a; do cat '$f'\"$f\"; done");
    asks("for f in a; do cat \\$f$f; done");
    allows("for f in a; do cat \"$f\"oo; done");
    asks("for f in .en; do cat \"$f\"v; done");
    asks("for f in .env; do sh -c 'cat $f'; done");
    let judgement = developer("for f in a; do wc \"$f\"b ${f}c \"x${f}$f\"; done");
    assert_eq!(judgement.parts()[1].argv(), ["wc", "ab", "ac", "xaa"]);
}

#[test]
fn a_variable_is_set_once_and_by_a_name_without_a_meaning() {
    for text in [
        "for PATH in /tmp; do ls; done",
        "for LD_PRELOAD in ./x.so; do ls; done",
        "for HOME in .; do git status; done",
        "for path in /tmp; do ls; done",
        "for http_proxy in evil; do curl http://localhost:3000; done",
        "for npm_config_registry in http://evil; do npm test; done",
        "for f in a; do for f in /etc/shadow; do :; done; cat $f; done",
        "for f in a; do read f; cat $f; done",
        "for f in a; do f=/etc/shadow; cat $f; done",
        "f=a; for f in /etc/shadow; do :; done; cat $f",
        "f=a; if true; then f=/etc/shadow; fi; cat $f",
        "f=a; { f=/etc/shadow; }; cat $f",
        "false && f=a; cat $f",
        "while read PATH; do ls; done < x",
        "while read f f; do echo $f; done < x",
        "while read 'a[$(rm x)]'; do ls; done",
        "PATH=/tmp; ls",
        "IFS=x; ls",
    ] {
        asks(text);
    }
    for text in [
        "v=$(git describe --tags); echo \"$v\"",
        "f=src/lib.rs; wc -l $f; head -3 \"$f\"",
        "f=a; f=b; cat $f",
        "VERSION=1.2; git log v$VERSION..HEAD",
    ] {
        allows(text);
    }
    for text in ["x=$TOKEN; echo $x", "f=.env; cat $f", "f='a -delete'; find $f", "v=$(cat .env)"] {
        asks(text);
    }
}

#[test]
fn what_is_read_is_text_or_a_part_of_a_path() {
    for text in [
        "while read -r line; do echo \"$line\"; done < names.txt",
        "git ls-files | while read f; do wc -l \"$f\"; done",
        "find . -name '*.rs' | while IFS= read -r f; do ls -l \"$f\"; done",
        "for f in $(git ls-files); do wc -l \"$f\"; done",
        "while IFS=: read -r a b; do echo \"$b\"; done < names.txt",
    ] {
        allows(text);
    }
    for text in [
        "git ls-files | while read f; do cat \"$f\"; done",
        "cat list | while read f; do wc -l \"$f\"; done",
        "git ls-files | while read f; do wc -l \"$f\"; done < list",
        "while read -r c; do $c; done < list",
        "while read -r c; do eval \"$c\"; done < list",
        "while read -r u; do curl \"$u\"; done < list",
        "git ls-files | while read f; do python3 \"$f\"; done",
        "git ls-files | while read f; do sort \"$f\"; done",
        "git ls-files | while read f; do wc -l \"../$f\"; done",
        "git ls-files | while read f; do rm \"$f\"; done",
    ] {
        asks(text);
    }
}

/// A `cd` of this shell happens in a branch or not; in a loop, each round would begin where the last one ended.
#[test]
fn a_cd_inside_is_followed_behind_the_end() {
    for text in [
        "if cd src; then ls; fi; cat lib.rs",
        "for d in a b; do (cd $d && cargo check); done",
        "{ cd src; ls; }; ls",
    ] {
        allows(text);
    }
    for text in [
        "if true; then cd ..; fi; cat x",
        "if cd src; then ls; fi; cat ../x",
        "{ cd src; }; cat ../x",
        "while true; do cd ..; cat x; done",
        "for i in 1 2; do cd src; ls; done",
        "for d in ../x; do (cd $d && cargo check); done",
        "for d in */; do (cd \"$d\" && cargo check); done",
    ] {
        asks(text);
    }
}

#[test]
fn a_condition_looks_at_files_and_compares_texts() {
    for text in [
        "[[ -f Cargo.toml ]] && cargo check",
        "[[ -f a && ! -d b || -e c ]]",
        "[[ -n \"$TOKEN\" ]] && echo set",
        "[[ -z $TOKEN ]]",
        "[[ \"$(uname -s)\" == Linux* ]] && echo linux",
        "cargo test; [[ $? -eq 0 ]] && echo ok",
        "[ -n \"$CI\" ] && echo ci",
        "test -z \"$TOKEN\" && echo none",
        "[ \"$(git branch --show-current)\" = main ] && echo main",
        "for f in a b; do [ -e \"$f\" ] || echo \"$f is missing\"; done",
        "for f in *.c; do [ -f \"$f\" ] && wc -l \"$f\"; done",
    ] {
        allows(text);
    }
    for text in [
        "[[ -n $(rm x) ]]",
        "[[ $(cat .env) ]]",
        "[[ $TOKEN == a* ]]",
        "[[ -f ~/.ssh/id_rsa ]]",
        "[[ \"$x\" -gt 3 ]]",
        "[[ $(cat n) -gt 3 ]]",
        "[[ -v 'a[$(rm x)]' ]]",
        "[[ 3 -eq 'a[$(rm x)]' ]]",
        "[[ -R x ]]",
        "[[ -o x ]]",
        "[ \"$x\" -eq 1 ]",
        "[ \"$x\" 'a[$(rm x)]' ]",
        "[ $x = y ]",
        "test \"$a\" \"$b\"",
        "[ -n \"$(rm x)\" ]",
    ] {
        asks(text);
    }
}

#[test]
fn braces_are_the_words_that_they_stand_for() {
    let judgement = developer("ls src/{a,b}/x{1..3}.rs 'a b'{c,}");
    let expected = "ls src/a/x1.rs src/a/x2.rs src/a/x3.rs src/b/x1.rs src/b/x2.rs src/b/x3.rs";
    let argv = judgement.parts()[0].argv();
    assert_eq!(argv.get(..7).unwrap().join(" "), expected);
    assert_eq!(argv.get(7..).unwrap(), ["a bc", "a b"]);
    for text in ["cat src/{main,lib}.rs", "wc -l {src,tests}/*.rs", "mkdir -p src/{a,b}"] {
        allows(text);
    }
    for text in [
        "cat {a,.env}",
        "cat {a,../../x}",
        "cat .e{n,m}v",
        "head ~/.ssh/{a,b}",
        "find . -{delete,print}",
        "cp {a,b}",
        "cat {src,.ssh}/*",
        "ls {1..500}",
    ] {
        asks(text);
    }
}

/// Text from a pipe may be printed, and is no path.
#[test]
fn what_is_only_printed_may_come_from_a_pipe() {
    allows("seq 3 | xargs -n1 echo item");
    allows("cut -d, -f1 a.csv | sort -u | xargs echo");
    for text in [
        "seq 3 | xargs cat",
        "seq 3 | xargs printf",
        "seq 3 | xargs -n1 grep x",
        "cat a | xargs rm",
    ] {
        asks(text);
    }
}

/// In a workspace that is looked at, a pattern in a loop stands for what it matches now.
#[test]
fn a_pattern_in_a_loop_is_judged_by_what_it_matches_now() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(root.join("crates/a")).unwrap();
    fs::write(root.join("x.rs"), "").unwrap();
    let judge = |text: &str| {
        Classifier::new(Workspace::new(&root), Preset::Developer)
            .with_search_path(SearchPath::unchecked())
            .judge(text, Dialect::Bash)
            .decision()
    };
    assert_eq!(judge("for f in *.rs; do cat $f; done"), ToolDecision::Allow);
    assert_eq!(
        judge("for d in crates/*; do (cd \"$d\" && cargo check); done"),
        ToolDecision::Allow
    );
    // Not quoted, a name with a blank becomes two words.
    fs::write(root.join("a .env.rs"), "").unwrap();
    assert_eq!(judge("for f in *.rs; do cat $f; done"), ToolDecision::Ask);
    assert_eq!(judge("for f in *.rs; do cat \"$f\"; done"), ToolDecision::Allow);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", root.join("crates/b")).unwrap();
        assert_eq!(judge("for d in crates/*; do cat \"$d/x\"; done"), ToolDecision::Ask);
        assert_eq!(judge("for d in crates/*; do (cd \"$d\" && ls); done"), ToolDecision::Ask);
    }
}

/// Rules that deny see every word with its value.
#[test]
fn parts_have_the_values_of_variables() {
    let judgement = classifier(Preset::Developer)
        .judge("for c in status push; do git $c origin; done", Dialect::Bash);
    let argv: Vec<_> = judgement.parts().iter().map(|part| part.argv().join(" ")).collect();
    assert_eq!(argv, ["for c in status push", "git status origin", "git push origin"]);
}

/// `cd -` goes to the directory before, which is known once the text has changed it, and in zsh `cd +1` and `cd -2` go to
/// earlier ones.
#[test]
fn a_directory_of_the_stack_is_known_only_when_the_text_runs() {
    for text in [
        "cd -",
        "cd docs; cd -",
        "cd docs && cd +1 && cat a",
        "cd docs && cd -- +1 && cat a",
        "cd ... && cat a",
    ] {
        let judged = classifier(Preset::Developer).judge(text, Dialect::Bash).to_string();
        assert!(judged.contains("known only when it runs"), "{text}: {judged}");
    }
    for text in ["cd docs && cd -2 && cat a", "grep -rn x ...", "ls ...."] {
        let judged = classifier(Preset::Developer).judge(text, Dialect::Bash);
        assert_eq!(judged.decision(), ToolDecision::Ask, "{text}");
    }
}
