//! The table of variables of the environment: what a command may be given, and what changes a program.

use countersign_shell::{ActingVariable, Classifier, Dialect, Preset, SearchPath, Workspace};

fn concerns(name: &str, value: &str, command: &str) -> bool {
    let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    let judged = classifier.judge(command, Dialect::Bash);
    ActingVariable::find(name, value).is_some_and(|found| found.concerns(&judged))
}

/// P5: "a variable that is known to change what a program runs, loads or asks".
#[test]
fn a_variable_concerns_the_programs_that_it_changes_and_those_that_may_run_them() {
    for (name, command) in [
        ("GIT_EXTERNAL_DIFF", "git diff"),
        ("GIT_DIR", "git status"),
        ("GIT_EXEC_PATH", "timeout 9 git log"),
        ("GIT_CONFIG_KEY_0", "ls && git status"),
        ("GIT_SSH", "cd sub && (git log)"),
        ("git_ssh", "git log"),
        ("NODE_OPTIONS", "node --version"),
        ("npm_config_script_shell", "npm ls"),
        ("PYTHONSTARTUP", "python3 x.py"),
        ("PERL5OPT", "perl -v"),
        ("RUBYOPT", "ruby -v"),
        ("JAVA_TOOL_OPTIONS", "java -version"),
        ("RUSTC_WRAPPER", "cargo check"),
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "cargo test"),
        ("LD_PRELOAD", "ls"),
        ("DYLD_INSERT_LIBRARIES", "ls"),
        ("BASH_ENV", "ls"),
        ("ENV", "ls"),
        ("ZDOTDIR", "ls"),
        ("IFS", "ls"),
        ("BASH_FUNC_ls%%", "ls"),
        ("LESSOPEN", "less x"),
        ("MANPAGER", "man ls"),
        ("RIPGREP_CONFIG_PATH", "rg x"),
        // A build, an unknown program, and text that is not read may run every program.
        ("GIT_SSH", "make"),
        ("GIT_SSH", "an-unknown-program"),
        ("GIT_SSH", "for (( ; ; )); do x; done"),
    ] {
        assert!(concerns(name, "./x", command), "{name}: {command}");
    }
    for (name, value, command) in [
        ("GIT_SSH", "./x", "ls -l | head"),
        ("NODE_OPTIONS", "--require ./x", "git status"),
        ("GIT_PAGER", "cat", "git log"),
        ("PAGER", "less -FRX", "git log"),
        ("RUSTFLAGS", "-D warnings", "cargo check"),
        ("GIT_CONFIG_COUNT", "1", "git status"),
        ("GIT_COMMITTER_NAME", "Ann", "git status"),
        ("npm_config_user_agent", "npm", "npm ls"),
        ("CARGO_TERM_COLOR", "never", "cargo check"),
        ("LANG", "C", "ls"),
        ("TERM", "dumb", "ls"),
        ("GIT_SSH", "./x", "x=1"),
    ] {
        assert!(!concerns(name, value, command), "{name}={value}: {command}");
    }
}

/// P5: "Not asked about … values that change nothing": Python imports the module of a warning's category, and a module
/// may run the program that `BROWSER` names.
#[test]
fn a_filter_of_warnings_is_inert_only_where_it_imports_nothing() {
    for value in [
        "all:0:antigravity.x:0:0",
        "ignore::a.B",
        "error,default::x.y:",
        "once: :x . y",
        "ignore:/a:b/:x.y",
    ] {
        for command in ["pip show x", "python3 -m json.tool a.json", "make"] {
            assert!(concerns("PYTHONWARNINGS", value, command), "{value}: {command}");
        }
        assert!(!concerns("PYTHONWARNINGS", value, "ls"), "{value}");
    }
    for value in [
        "",
        "ignore",
        "error,default",
        "error::DeprecationWarning",
        "ignore::UserWarning:pkg.mod",
        "default,ignore:x y:ImportWarning:a.b:3",
    ] {
        assert!(!concerns("PYTHONWARNINGS", value, "pip show x"), "{value}");
    }
    assert!(concerns("BROWSER", "./evil.sh", "pip show x"));
    assert!(concerns("BROWSER", "firefox:./evil.sh", "python3 -m json.tool a.json"));
    assert!(
        !concerns("BROWSER", "./evil.sh", "ls") && !concerns("BROWSER", "firefox", "pip show x")
    );
}

/// P5: "a variable that is known to change what a program runs": a client takes the shell of every command from one.
#[test]
fn a_variable_by_which_a_client_chooses_the_shell_concerns_every_command() {
    for name in [
        "SHELL",
        "COMSPEC",
        "CLAUDE_CODE_SHELL",
        "CLAUDE_CODE_SHELL_PREFIX",
        "CLAUDE_ENV_FILE",
        "CLAUDE_CODE_GIT_BASH_PATH",
        "OPENCODE_GIT_BASH_PATH",
    ] {
        assert!(concerns(name, "./evil/bash", "ls"), "{name}");
    }
    for shell in ["/bin/bash", "/usr/bin/zsh", "/bin/sh", "/opt/homebrew/bin/fish"] {
        assert!(!concerns("SHELL", shell, "ls"), "{shell}");
    }
}

/// One table: what is asked about in front of a command is never harmless in the environment, and the reverse.
#[test]
fn an_assignment_that_may_be_set_changes_nothing_in_the_environment() {
    let table = include_str!("../../../crates/shell/src/variables.txt");
    let settable = table.split("[settable variables]").nth(1).unwrap().split("\n[").next().unwrap();
    let names = settable.lines().filter(|line| !line.starts_with('#'));
    for entry in names.flat_map(str::split_whitespace) {
        let (name, values) = entry.split_once('=').unwrap_or((entry, "1"));
        for value in values.split('|') {
            assert_eq!(ActingVariable::find(name, value), None, "{name}={value}");
        }
    }
    let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    let acting = table.split("\n[changes ").skip(1);
    for name in acting
        .flat_map(|group| group.lines().skip(1).take_while(|line| !line.starts_with('#')))
        .flat_map(str::split_whitespace)
    {
        let name = name.split('=').next().unwrap().trim_end_matches('*');
        let judged = classifier.judge(&format!("{name}=./x ls"), Dialect::Bash);
        assert!(judged.decision() != countersign::decision::ToolDecision::Allow, "{name}");
    }
}

/// A classifier that looks at files, and at the environment.
fn judged_here(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let classifier = Classifier::new(Workspace::new(folder.path()), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    classifier.judge(text, Dialect::Bash).to_string()
}

/// C1: "A variable in capitals that a text sets has that value".
#[test]
fn a_name_in_capitals_that_only_the_text_sets_has_its_value() {
    for text in [
        "SP=src; cat $SP/a.rs",
        "SP=src && cat \"${SP}/a.rs\"",
        "PR_NUMBER=$(git rev-parse HEAD); echo \"PR $PR_NUMBER\"",
        "for FX in a b; do cat $FX.rs; done",
        "A_B2=x; D_C=$A_B2/y; ls \"$D_C\"",
    ] {
        assert_eq!(judged_here(text), "allow", "{text}");
        // Without a look at this machine, its environment is not known.
        super::asks(text);
    }
    for text in [
        "SP=..; cat $SP/a.rs",
        "SP=~/.ssh; cat $SP/id_rsa",
        "SP=.env; cat $SP",
        "SP=rm; $SP x",
        "SP='-delete'; find . $SP",
        "SP=$(cat list); cat $SP",
        "SP=$(rm x); ls",
        "SP=$GITHUB_TOKEN; echo $SP",
        "if true; then SP=src; fi; cat $SP/a.rs",
        "SP=src; for i in 1 2; do cat $SP/a.rs; SP=..; done",
        // What stands in front of a command is exported to it, and so is what the text exports.
        "SP=src ls",
        "SP=src; export SP; ls",
        "export SP=src",
        "set -a; SP=src; ls",
        "declare -x SP=src",
        "export DEBUG=1; DEBUG=./x; cargo test",
    ] {
        assert!(judged_here(text).starts_with("ask"), "{text}");
    }
}

/// C1: "no shell, no program of the table of variables … gives the name a meaning".
#[test]
fn a_variable_with_a_meaning_is_asked_about_wherever_it_is_set() {
    let bash = std::process::Command::new("bash")
        .args(["--norc", "--noprofile", "-c", "compgen -v"])
        .env_clear()
        .output()
        .unwrap();
    let own = String::from_utf8(bash.stdout).unwrap();
    assert!(own.lines().any(|name| name == "BASH_VERSINFO") && own.lines().count() > 20, "{own}");
    let others = [
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "BASH_XTRACEFD",
        "GLOBIGNORE",
        "HISTFILE",
        "LC_ALL",
        "LANG",
        "LANGUAGE",
        "TEXTDOMAINDIR",
        "TMOUT",
        "TMPDIR",
        "TZ",
        "PS4",
        "PROMPT_COMMAND",
        "POSIXLY_CORRECT",
        "FUNCNEST",
        "CDPATH",
        "READNULLCMD",
        "NULLCMD",
        "ZDOTDIR",
        "FPATH",
        "MODULE_PATH",
        "ARGV0",
        "STTY",
        "USERNAME",
        "TIMEFMT",
        "KSH_VERSION",
        "REPLY",
        "OPTIND",
        "GIT_DIR",
        // What activates an environment of Python exports them.
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "GIT_SSH",
        "LD_PRELOAD",
        "HTTP_PROXY",
        "NODE_OPTIONS",
        "NPM_CONFIG_REGISTRY",
        "PYTHONPATH",
        "CARGO_HOME",
        "EDITOR",
        "PAGER",
        "DEBUG",
        "CI",
    ];
    let capitals = |name: &&str| name.starts_with(|c: char| c.is_ascii_uppercase());
    for name in own.lines().filter(capitals).chain(others) {
        for text in [format!("{name}=./x; ls"), format!("for {name} in ./x; do ls; done")] {
            assert!(judged_here(&text).starts_with("ask"), "{text}");
        }
    }
}
