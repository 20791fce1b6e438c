//! The lexer against real shells: what it accepts, `bash`, `dash` and `zsh` read alike (rule C1).
//!
//! The shells are fenced: no slash is left in a text, so that no path leads out of an empty directory; names of builtins are
//! replaced, and in `bash` and `zsh` builtins are switched off; `PATH` is empty, or holds nothing but a program that logs;
//! each runs in a process group of its own with a time limit. `COUNTERSIGN_MUTATIONS=100` runs more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign::shell::{Commands, Dialect, Join, RedirectionTarget, SimpleCommand, WordKind};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    cmd: String,
}

/// Names that a shell would run itself. None of the names that replace them holds another.
const BUILTINS: &str = ". : [ alias autoload bg bind break builtin bye caller cd chdir command compctl compgen complete \
    compopt continue coproc declare dirs disable disown echo echotc emulate enable end esac eval exec exit export false fc \
    fg float functions getln getopts hash history integer jobs kill let limit local log logout mapfile nocorrect noglob \
    popd print printf private pushd pushln pwd r read readarray readonly rehash repeat return sched set setopt shift shopt \
    source suspend test time times trap true ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset \
    unsetopt vared wait whence where which zcompile zformat zle zmodload zparseopts zregexparse zstat zstyle - exit";

/// The text with nothing in it that could do anything but call a program that does not exist.
fn harmless(text: &str) -> String {
    let names: Vec<&str> = BUILTINS.split_whitespace().collect();
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\u{3}']) {
        if c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '[' | '-') {
            word.push(c);
            continue;
        }
        match names.iter().position(|name| *name == word) {
            Some(number) => out.push_str(&format!("q{number}")),
            None => out.push_str(&word),
        }
        word.clear();
        out.push(if c == '/' { '_' } else { c });
    }
    out.trim_end_matches('\u{3}').to_owned()
}

/// A generator of numbers that gives the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

/// The text with one to three pieces put in or characters left out.
fn mutated(text: &str, numbers: &mut Numbers) -> String {
    let pieces = [
        "'", "\"", "\\", " ", "\n", ";", "&&", "||", "|", "\t", "#", "!", "*", "?", "[", "]", "{}",
        "{", "}", "@{1}", "=", "~", "A=b ", "2>&1", ">x", "<x", "<<E\n", "\nE\n", "$", "(", ")",
        "&", "\\\n", "^", "%", ",", "+", "<", ">", "'x'", "\"y\"", "''", "\\\\", "1>", " - ",
        "\\'", "-I{}", "&>x", "2>x", ">>x", "=#", "x=", ":~", "1>&2", "<<<x", ">|", "<>", "|&",
        "\t\n", "$x", "``",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(chars.len() + 1);
        if numbers.below(4) == 0 && at < chars.len() {
            chars.remove(at);
        } else {
            let piece = pieces[numbers.below(pieces.len())];
            chars.splice(at..at, piece.chars());
        }
    }
    chars.into_iter().collect()
}

/// A text that was accepted, with the commands that were read from it.
struct Case {
    text: String,
    argv: Vec<Vec<String>>,
    /// Every command runs, if all of them succeed.
    all_run: bool,
    /// The files that redirections write.
    writes: Vec<String>,
}

fn case(text: String, dialect: Dialect) -> Option<Case> {
    let commands = Commands::parse(&text, dialect).ok()?;
    let simple: Vec<&SimpleCommand> = commands.simple_commands().collect();
    let known = |kind| matches!(kind, WordKind::Literal | WordKind::Glob);
    let words = || simple.iter().flat_map(|command| command.words());
    if words().any(|word| !known(word.kind()))
        || simple
            .iter()
            .flat_map(|command| command.assignments())
            .any(|one| !known(one.value().kind()))
    {
        return None;
    }
    let redirections = || simple.iter().flat_map(|command| command.redirections());
    if redirections()
        .filter_map(|one| one.target().word())
        .any(|word| word.kind() != WordKind::Literal)
    {
        return None;
    }
    // A command without a name is `cat` in zsh.
    let argv: Vec<Vec<String>> = simple
        .iter()
        .filter(|command| !command.words().is_empty())
        .map(|command| command.words().iter().map(|word| word.text().to_owned()).collect())
        .collect();
    let fails = redirections().any(|one| {
        matches!(
            one.target(),
            RedirectionTarget::Read(_)
                | RedirectionTarget::Write(_)
                | RedirectionTarget::Append(_)
                | RedirectionTarget::WriteAll(_)
        )
    });
    let nameless = simple.iter().any(|command| command.words().is_empty());
    let all_run = !fails
        && !nameless
        && commands
            .pipelines()
            .iter()
            .all(|pipeline| pipeline.join() != Join::Or && !pipeline.is_negated());
    let builtin = |argv: &Vec<String>| {
        argv[0].is_empty() || BUILTINS.split_whitespace().any(|name| name == argv[0])
    };
    if argv.iter().any(builtin) {
        return None;
    }
    let left_out = argv.is_empty() || nameless && dialect == Dialect::Zsh;
    let written = redirections().filter_map(|one| match one.target() {
        RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::WriteAll(word) => Some(word.text().to_owned()),
        _ => None,
    });
    let writes = written.collect();
    (!left_out).then_some(Case { text, argv, all_run, writes })
}

const BASH: &str = r#"
exec 9>>"$LOG"
command_not_found_handle() { builtin printf '%s\037' "$@" $'\036' >&9; }
set -f
for name in $(compgen -b); do case $name in builtin|printf|eval|enable) ;; *) enable -n "$name";; esac; done
for text in "$@"; do builtin printf '\035' >&9; ( builtin eval -- "$text" ) 2>/dev/null </dev/null; done
"#;

const ZSH: &str = r#"
exec 9>>"$LOG"
command_not_found_handler() { builtin printf '%s\037' "$@" $'\036' >&9; }
setopt no_glob
disable . : \[ alias bg cd command echo exit export fc fg hash jobs kill let popd print pushd pwd read set shift source test times trap true false type umask unset wait which where whence
for text in "$@"; do builtin printf '\035' >&9; ( builtin eval "$text" ) 2>/dev/null </dev/null; done
"#;

const DASH: &str = r#"
exec 9>>"$LOG"
set -f
for text in "$@"; do printf '\035' >&9; printf '\035\n' >>"$LOG.err"; ( eval "$text" ) 2>>"$LOG.err" </dev/null; done
"#;

/// What a shell called for each text, in no order.
fn called(shell: &Path, dialect: Dialect, cases: &[Case], folder: &Path) -> Vec<Vec<Vec<String>>> {
    let log = folder.join("log");
    let work = folder.join("work");
    let programs = folder.join("programs");
    for made in [&work, &programs] {
        std::fs::remove_dir_all(made).ok();
        std::fs::create_dir_all(made).unwrap();
    }
    std::fs::remove_file(&log).ok();
    std::fs::remove_file(folder.join("log.err")).ok();
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["-s", "KILL", "60"]).arg(shell);
    match dialect {
        Dialect::Bash => command.args(["--norc", "--noprofile", "-c", BASH]),
        Dialect::Zsh => command.args(["-f", "-c", ZSH]),
        _ => {
            let logger = folder.join("logger");
            let script = "#!/bin/dash\nexec 2>/dev/null\nprintf '%s\\037' \"${0##*/}\" \"$@\" \"$(printf '\\036')\" >&9\n";
            std::fs::write(&logger, script).unwrap();
            std::fs::set_permissions(&logger, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let names: BTreeSet<&String> =
                cases.iter().flat_map(|case| case.argv.iter().map(|argv| &argv[0])).collect();
            for name in names.into_iter().filter(|name| {
                !name.is_empty() && name.len() < 200 && !matches!(name.as_str(), "." | "..")
            }) {
                std::fs::hard_link(&logger, programs.join(name)).unwrap();
            }
            command.args(["-c", DASH])
        }
    };
    let path = if dialect == Dialect::Sh { programs.as_path() } else { Path::new("/nonexistent") };
    let status = command
        .arg("shell")
        .args(cases.iter().map(|case| &case.text))
        .env_clear()
        .env("PATH", path)
        .env("LOG", &log)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let errors =
        String::from_utf8_lossy(&std::fs::read(folder.join("log.err")).unwrap_or_default())
            .into_owned();
    for (case, errors) in cases.iter().zip(errors.split("\u{1d}\n").skip(1)) {
        assert!(!errors.contains("Syntax error"), "{:?}: {errors}", case.text);
    }
    let text = String::from_utf8(std::fs::read(&log).unwrap()).unwrap();
    let logs: Vec<&str> = text.split('\u{1d}').skip(1).collect();
    assert_eq!(
        logs.len(),
        cases.len(),
        "{status:?} after {:?}",
        cases.get(logs.len().saturating_sub(1)).map(|case| &case.text)
    );
    logs.into_iter()
        .map(|log| log.split("\u{1e}\u{1f}").filter(|one| !one.is_empty()).map(argv_of).collect())
        .collect()
}

/// The words of one call, empty ones at the end too.
fn argv_of(one: &str) -> Vec<String> {
    let mut words: Vec<String> = one.split('\u{1f}').map(str::to_owned).collect();
    words.pop();
    words
}

fn compare(shell: &str, dialect: Dialect) {
    let found =
        ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| PathBuf::from(folder).join(shell));
    let shell = found
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("`{shell}` is not installed: run .ci/shells"));
    let mutations: usize =
        std::env::var("COUNTERSIGN_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(7);
    let mut cases = Vec::new();
    for name in ["dangerous", "everyday"] {
        let path = format!("{}/shell/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let row: Row = serde_json::from_str(line).unwrap();
            let text = harmless(&row.cmd);
            cases
                .extend((0..mutations).filter_map(|_| case(mutated(&text, &mut numbers), dialect)));
            cases.extend(case(text, dialect));
        }
    }
    assert!(cases.len() > 1_000, "{}", cases.len());
    let mut differences = Vec::new();
    let mut written_by_none = Vec::new();
    for batch in cases.chunks(200) {
        for (case, called) in batch.iter().zip(called(&shell, dialect, batch, folder.path())) {
            let mut left = case.argv.clone();
            let unknown: Vec<_> = called
                .iter()
                .filter(|argv| match left.iter().position(|known| known == *argv) {
                    Some(at) => {
                        left.remove(at);
                        false
                    }
                    None => true,
                })
                .collect();
            if !unknown.is_empty() || (case.all_run && !left.is_empty()) {
                differences
                    .push(format!("{:?}: read {:?}, called {called:?}", case.text, case.argv));
            }
        }
        // No shell writes a file that was not read as a target.
        let targets: BTreeSet<&String> = batch.iter().flat_map(|case| &case.writes).collect();
        let files = std::fs::read_dir(folder.path().join("work")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
        written_by_none.extend(names.filter(|name| !targets.contains(name)));
    }
    assert!(written_by_none.is_empty(), "written, and read as no target: {written_by_none:?}");
    assert!(
        differences.is_empty(),
        "{} of {}\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}

#[test]
fn bash_reads_accepted_texts_alike() {
    compare("bash", Dialect::Bash);
}

#[test]
fn dash_reads_accepted_texts_alike() {
    compare("dash", Dialect::Sh);
}

#[test]
fn zsh_reads_accepted_texts_alike() {
    compare("zsh", Dialect::Zsh);
}
