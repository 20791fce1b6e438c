//! Texts for which some shell changes to another scanner, or puts words in where none are written: refused in every
//! dialect, and with them nothing of daily work (rule C1).

use std::time::{Duration, Instant};

use countersign_shell::{Commands, Dialect, Preset};

use super::{allows, asks, classifier, developer};

const DIALECTS: [Dialect; 3] = [Dialect::Sh, Dialect::Bash, Dialect::Zsh];

#[track_caller]
fn refused(texts: &[&str]) {
    for text in texts {
        for dialect in DIALECTS {
            assert!(Commands::parse(text, dialect).is_err(), "{text:?} as {dialect:?}");
        }
        for preset in [Preset::Developer, Preset::Reader] {
            let judgement = classifier(preset).judge(text, Dialect::Bash);
            assert!(!judgement.decision().is_allow(), "{text:?}");
        }
    }
}

#[track_caller]
fn read(texts: &[&str]) {
    for text in texts {
        for dialect in [Dialect::Bash, Dialect::Zsh] {
            let parsed = Commands::parse(text, dialect);
            assert!(parsed.is_ok(), "{text:?} as {dialect:?}: {}", parsed.unwrap_err());
        }
    }
}

/// Bash takes `<((` for arithmetic, which knows no comments, no here-documents and no branches: it ends at another `)`.
#[test]
fn a_second_parenthesis_behind_a_substitution_is_refused() {
    refused(&[
        "cat <(( echo a ) # ) '\necho b 'x\nrm -rf src\n: 'y ) #'",
        "cat <(( cat <<'E'\n) '\nE\n) )\necho b 'x\nrm -rf src\n: 'y ) #'",
        "cat <(( case a in a) ls;; esac ) ) '\nrm -rf src #'",
        "cat <((ls))",
        "cat < <((ls) )",
        "cat >((ls) )",
        "cat =((ls) )",
        "echo $((ls) )",
        "echo \"$((ls) | cat)\"",
        "((ls) )",
        "(\\\n(ls) )",
        "echo $(\\\n(ls) )",
        "cat <(\\\n(ls) )",
        "ls &&\\\n(ls)",
    ]);
    read(&[
        "cat <( (ls) )",
        "echo $( (ls); pwd)",
        "( (ls) )",
        "ls &&\\\n  pwd",
        "ls |\\\nwc -l",
        "(\\\n  ls)",
    ]);
}

/// Older shells count parentheses and quotes in a substitution, also in comments and here-documents.
#[test]
fn a_substitution_that_older_shells_end_elsewhere_is_refused() {
    refused(&[
        "echo \"$(ls # don't\n)\" '; rm x #'",
        "echo $(ls # )\n)",
        "echo $(ls; #'\n)",
        "cat <(ls # \"\n)",
        "echo $(cat <<'E'\nit's\nE\n) 'a)'; ls",
        "echo $(cat <<'E'\nit's\nE\n) '; rm x #'",
        "echo \"$(cat <<'E'\nit's\nE\n)\" && echo 'b)'",
        "echo \"$(cat <<'E'\n:)\nE\n)\"",
        "echo \"$(cat <<'E'\na #1)\nE\n)\"",
        "echo $(case x in x) ls;; esac)",
        "echo $(cat < case)",
        "echo $(echo \\ #)\n)",
    ]);
    read(&[
        "echo $(ls # a comment, of words\n)",
        "echo \"$(cat <<'E'\nfeat: `a` and \"b\" (#12)\n\n- see $(c)\nE\n)\"",
        "echo \"$(cd \"$(dirname \"$f\")\" && pwd)\"",
        "case x in x) echo \"$(ls)\";; esac",
        "ls # don't )\npwd",
        "cat <<'E'\ndon't )\nE\n",
        // An older shell finds no end, and so runs nothing.
        "echo $(cat <<'E'\nit's\nE\n)",
        "git commit -m \"$(cat <<'E'\nfix: don't ask\nE\n)\"",
    ]);
}

/// C1: `$'\t'` is a tab in every shell that has these quotes, and a text in one that has not.
#[test]
fn escapes_that_every_shell_reads_alike_are_read() {
    let text = r"sort -t$'\t' -k2 $'a\n[x]\\' -u";
    for dialect in [Dialect::Bash, Dialect::Zsh] {
        let parsed = Commands::parse(text, dialect).unwrap();
        let argv: Vec<_> = parsed.simple_commands().map(|it| it.argv().unwrap()).collect();
        assert_eq!(argv, [vec!["sort", "-t\t", "-k2", "a\n[x]\\", "-u"]]);
    }
    assert!(Commands::parse(text, Dialect::Sh).is_err());
    allows(r"git log --format=%s | sort -t$'\t' -k1,1nr");
    refused(&[
        r"ls $'\x41'",
        r"ls $'\101'",
        r"ls $'\u0041'",
        r"ls $'\cA'",
        r"ls $'\e'",
        // `dash` ends the quotes at the first apostrophe.
        r"ls $'\'; rm -rf src #'",
        r"ls $'a",
        r#"ls "$'a'""#,
    ]);
    for text in [r"$'rm' x", r"cat $'/etc/shadow'", r"cat a > $'.git/config'"] {
        asks(text);
    }
}

/// Bash 5.2 writes the commands of a substitution down anew, and loses the separator behind a here-document.
#[test]
fn a_here_document_in_a_substitution_with_other_commands_is_refused() {
    refused(&[
        "echo $(cat <<'E'\nE\nif ls; then a; b; fi)",
        "echo $(ls; cat <<E\nE\n)",
        "echo $( (cat <<E\nE\n) )",
        "cat <(cat <<E | { wc; }\nE\n)",
    ]);
    read(&["echo $(cat <<E\na\nE\n)", "echo $(cat <<E | wc -l\na\nE\n)", "cat <<E\na\nE\nls; pwd"]);
}

/// `zsh` replaces `~NAME` and `=NAME` behind everything that may be empty, and Bash behind `NAME=` of an argument.
#[test]
fn a_tilde_and_an_equals_sign_behind_nothing_are_refused() {
    refused(&[
        "cat ''~root/x",
        "ls \"\"~",
        "ls $x~root",
        "ls \"$x\"~",
        "ls $(pwd)~root",
        "ls ''=ls",
        "ls $x=ls",
        "echo x=~/y",
        "echo --a=~/y",
        "echo x=y:~",
        "echo x={a,b:}~",
        "echo x=$y~",
        "a=''~ ls",
        "a=b:~ ls",
        "a=b:=ls ls",
        "ls ~+",
        "ls ~-",
        "ls ~1",
        "ls ~[a]",
        "ls {,a}~root",
    ]);
    read(&[
        "git show HEAD~1 HEAD@{1}~2",
        "ls a~ \"$x~1\" '~' '~root'",
        "echo a=b a==b x=y=z \"x=~\"",
        "curl http://localhost/~a",
        "[ a = b ]",
        "a=b=c ls",
    ]);
}

#[test]
fn words_and_operators_that_touch_are_refused() {
    refused(&[
        "cat a<(ls)",
        "cat \"a\"<(ls)",
        "cat \\ <(ls)",
        "a=<(ls) cat",
        "cat 1&>x",
        "cat &>!x",
        "cat >!x",
        "ls 2>&1&>x",
        "case x in x)#y\nls;; esac",
        "'%1'",
        "+=a ls",
        "[a]=b ls",
        "[a]+=b ls",
        "x= '%1'",
        "$(ls) %1",
        "$(ls) %{1,2}",
        "$x%1",
    ]);
    read(&[
        "cat <(ls) <(pwd)",
        "(ls)",
        "ls &>x",
        "case x in x) # y\nls;; esac",
        "date +%s",
        "a '%s'",
    ]);
}

/// The number of words that braces stand for is a product, which once was zero for 2⁶⁴.
#[test]
fn braces_that_stand_for_too_many_words_are_refused() {
    for braces in ["{a,b}", "{1..64}", "{a,b,c,d}", "{1..1}"] {
        for times in [17, 63, 64, 65, 128, 10_000] {
            refused(&[&format!("echo {}", braces.repeat(times))]);
        }
    }
    allows("echo {a,b}{c,d}{1..16}");
}

/// A short text must not stand for a long one: each variable may hold the one before sixteen times.
#[test]
fn values_that_grow_are_not_followed() {
    let start = Instant::now();
    let mut text = "a=0123456789abcdef;".to_owned();
    for (one, next) in ('a'..'p').zip('b'..='p') {
        text += &format!("{next}={};", format!("${one}").repeat(16));
    }
    assert!(!developer(&format!("{text} cat $p")).decision().is_allow());
    let text = format!("x={}; cat {}", "a".repeat(20_000), "$x".repeat(20_000));
    assert!(!developer(&text).decision().is_allow());
    // A secret of the environment is still seen behind a value that is too long.
    let text = format!("x={}; echo $x$x$AWS_SECRET_ACCESS_KEY", "a".repeat(4_000));
    assert!(!developer(&text).decision().is_allow());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// Pieces that are repeated up to the limit of a text take no time that a person would notice.
#[test]
fn long_texts_are_judged_in_a_bounded_time() {
    let pieces = [
        "[[ -f x && ",
        "$(echo ",
        "\"$(",
        "<(cat ",
        "{a,b}",
        "{1..64} ",
        "$x",
        "*?[a]",
        "[",
        "a;",
        "cd a; ",
        "for f in a b c; do ",
        "cat <<E\nE\n",
        "# x\n",
        "$((1+1)) ",
        "\\\n",
        "(",
        "'",
        "\"",
        "`",
        "~",
        "=",
        "-a ",
    ];
    let mut slowest = (Duration::ZERO, String::new());
    for piece in pieces {
        let long = piece.repeat(65_000 / piece.len());
        for text in [
            long.clone(),
            format!("git log '{long}'"),
            format!("cat {long}"),
            format!("echo \"$({long})\""),
        ] {
            let start = Instant::now();
            developer(&text);
            let short: String = text.chars().take(20).collect();
            slowest = slowest.max((start.elapsed(), short));
        }
    }
    // Of a build without optimisation, on a machine that does something else as well.
    assert!(slowest.0 < Duration::from_millis(1500), "{slowest:?}");
}
