//! What `zsh` reads in a word although other shells do not (rule C1). Rules and hooks do not know which shell runs a text,
//! so that these are asked about in every dialect.

use countersign_shell::{Commands, Dialect};

use super::{allows, asks};

/// `f=x; cat $f:s,x,/etc/hostname,` prints `/etc/hostname` in `zsh`.
#[test]
fn a_modifier_behind_a_parameter_without_braces_is_refused_in_every_dialect() {
    for text in [
        "f=x; cat $f:s,x,/etc/hostname,",
        "f=x; cat \"$f:s,x,/etc/hostname,\"",
        "f=x; sort a.txt $f:s,x,-oCLAUDE.md,",
        "f=x; cat $f:gs,x,/etc/hostname,",
        "cat $?:s,0,/etc/hostname,",
        "cat \"$#:s,0,/etc/hostname,\"",
        "f=src/a; cat $f:h",
        "c=HEAD; git show $c:src/lib.rs",
    ] {
        asks(text);
        for dialect in [Dialect::Sh, Dialect::Bash, Dialect::Zsh] {
            let refused = Commands::parse(text, dialect).unwrap_err().to_string();
            assert!(refused.contains("modifier"), "{text:?}: {refused}");
        }
    }
    for letter in "aAcefFghlPqQrstuwW&".chars() {
        let text = format!("echo $x:{letter}");
        assert!(Commands::parse(&text, Dialect::Bash).is_err(), "{text:?}");
    }
}

#[test]
fn a_colon_that_begins_no_modifier_stays() {
    allows("c=HEAD; git show $c:README.md");
    allows("c=HEAD; git show ${c}:src/lib.rs");
    allows("c=HEAD; git show \"$c\":src/lib.rs");
    allows("for f in a b; do echo \"$f: $?\"; done");
    allows("host=a; port=1; echo \"$host:$port\" $host:8080 $host:/x \"$host:\"");
}

/// `echo $?[x]` and `echo $#y[x]` evaluate `x` as a number in `zsh`, and with it the code in its value.
#[test]
fn an_index_behind_any_parameter_is_refused() {
    for word in ["$x[y]", "$?[y]", "\"$?[y]\"", "$1[y]", "$@[y]", "$$[y]", "$#x[y]", "\"$##[y]\""] {
        asks(&format!("y='path[$(id)1]'; x=abc; echo {word}"));
    }
    allows("echo \"$#\" $#, $? \"$?\"");
}

/// `***/` is each folder below, also behind links, to `zsh`, and one folder to `bash`.
#[test]
fn stars_beside_two_stars_are_refused() {
    for text in [
        "cat ***/hostname",
        "cat src/***/hostname",
        "f=src; cat $f/***/hostname",
        "cat {a,**}*/hostname",
        "for f in ****/hostname; do cat \"$f\"; done",
        "cd ***/x && ls",
    ] {
        asks(text);
    }
    allows("wc -l src/**/*.rs");
    allows("echo '***/x' \"**bold** $?\"");
    allows("rg -e foo --glob '!***/target/**'");
}

/// `zsh` gives these a meaning, or takes them for arrays.
#[test]
fn a_variable_that_zsh_gives_a_meaning_to_is_asked_about() {
    for name in [
        "dis_aliases",
        "dis_functions_source",
        "epochtime",
        "funcstack",
        "functrace",
        "funcfiletrace",
        "funcsourcetrace",
        "functions",
        "functions_source",
        "zcurses_colors",
        "zsh_eval_context",
        "zsh_scheduled_events",
    ] {
        asks(&format!("{name}=x; ls"));
        asks(&format!("for {name} in a b; do ls; done"));
    }
    allows("func=x; echo \"$func\"");
    allows("for display in a b; do echo \"$display\"; done");
}
