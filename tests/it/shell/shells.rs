//! The lexer against real shells: what it accepts, `bash`, `dash` and `zsh` read alike (rule C1).
//!
//! The shells are fenced: no slash is left in a text, so that no path leads out of an empty directory; names of builtins are
//! replaced, and in `bash` and `zsh` builtins are switched off; `PATH` is empty, or holds nothing but a program that logs;
//! each runs in a process group of its own with a time limit. `COUNTERSIGN_MUTATIONS=100` runs more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign::shell::{
    Classifier, Commands, CompoundKind, Dialect, Join, Preset, RedirectionTarget, SearchPath,
    SimpleCommand, Stage, WordKind, Workspace,
};
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
        "'",
        "\"",
        "\\",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "\t",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "{}",
        "{",
        "}",
        "@{1}",
        "=",
        "~",
        "A=b ",
        "2>&1",
        ">x",
        "<x",
        "<<E\n",
        "\nE\n",
        "$",
        "(",
        ")",
        "&",
        "\\\n",
        "^",
        "%",
        ",",
        "+",
        "<",
        ">",
        "'x'",
        "\"y\"",
        "''",
        "\\\\",
        "1>",
        " - ",
        "\\'",
        "-I{}",
        "&>x",
        "2>x",
        ">>x",
        "=#",
        "x=",
        ":~",
        "1>&2",
        "<<<x",
        ">|",
        "<>",
        "|&",
        "\t\n",
        "$x",
        "``",
        "{a,b}",
        "{1..3}",
        "{,x}",
        "; do ",
        "; done",
        "if a; then ",
        "; fi",
        "for f in a b; do ",
        "{ ",
        "; }",
        "[[ -f x ]] && ",
        "]]",
        "do ",
        "then ",
        "else ",
        "in",
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

/// A text of loops, conditions, groups and braces, whose loops end if every command succeeds.
fn compound(numbers: &mut Numbers, depth: usize) -> String {
    let simple = [
        "a b",
        "c 'd e'",
        "f {g,h}i",
        "j x{1..3}y",
        "k |& l",
        "m && n",
        "o; p",
        "! q",
        "s > t",
        "t $((2 * (3 + 4) - 10 / 3)) u$((7 % 4))v \"$((-1 - -2))\"",
    ];
    if depth == 0 {
        return simple[numbers.below(simple.len())].to_owned();
    }
    let (one, two, three) =
        (compound(numbers, depth - 1), compound(numbers, depth - 1), compound(numbers, depth - 1));
    match numbers.below(11) {
        0 => format!("if {one}; then {two}; else {three}; fi"),
        1 => format!("if {one}\nthen\n{two}\nelif z\nthen {three}\nfi"),
        2 => format!("for f in x 'y z' {{v,w}}; do {one}; {two}; done"),
        3 => format!("for f in x\ndo\n {one} # {two}\ndone | a"),
        4 => format!("{{ {one}; {two}; }} && {three}"),
        5 => format!("while ! z; do {one}; done; {two}"),
        6 => format!("until z; do {one}; done\n{two}"),
        8 => format!("case x in y|z*) {one};; 'x y'|[a-w]?) {two} ;; *) {three}; esac"),
        9 => format!("case a in\n  # c\n  b) ;;\n  a)\n    {one}\n    ;;\nesac | {two}"),
        7 => format!("[[ -f x || y == z* && -n b ]] && {one}; {two}"),
        _ => format!("( {one}; {{ {two}; }} ) | a"),
    }
}

/// A text that was accepted, with the commands that were read from it.
struct Case {
    text: String,
    argv: Vec<Vec<String>>,
    /// Every command runs, if all of them succeed.
    all_run: bool,
    /// A command may run several times.
    repeats: bool,
    /// The files that redirections write.
    writes: Vec<String>,
}

/// What a text has beside simple commands.
#[derive(Default)]
struct Found {
    branches: bool,
    loops: bool,
    /// A loop that does not end if every command succeeds.
    endless: bool,
    conditions: bool,
    /// The targets of redirections behind subshells, groups and loops.
    redirections: Vec<RedirectionTarget>,
}

fn look_at(commands: &Commands, found: &mut Found) {
    for pipeline in commands.pipelines() {
        for stage in pipeline.stages() {
            match stage {
                Stage::Compound(compound) => {
                    let targets = compound.redirections().iter().map(|one| one.target().clone());
                    found.redirections.extend(targets);
                    let ends = |wanted| {
                        compound.lists()[0].pipelines().last().unwrap().is_negated() == wanted
                    };
                    match compound.kind() {
                        CompoundKind::If | CompoundKind::Case { .. } => found.branches = true,
                        CompoundKind::While => found.endless |= !ends(true),
                        CompoundKind::Until => found.endless |= !ends(false),
                        CompoundKind::For { words, .. } => {
                            found.loops = true;
                            // What a pattern stands for is no word of the text.
                            found.endless |= words.iter().any(|word| word.literal().is_none());
                        }
                        _ => {}
                    }
                    found.branches |= compound.lists().len() > 1;
                    compound.lists().iter().for_each(|list| look_at(list, found));
                }
                Stage::Subshell { commands, redirections } => {
                    found.redirections.extend(redirections.iter().map(|one| one.target().clone()));
                    look_at(commands, found);
                }
                Stage::Condition { .. } => found.conditions = true,
                _ => {}
            }
        }
    }
}

fn case(text: String, dialect: Dialect) -> Option<Case> {
    let commands = Commands::parse(&text, dialect).ok()?;
    let mut found = Found::default();
    look_at(&commands, &mut found);
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
    let of_commands = simple.iter().flat_map(|command| command.redirections());
    let targets: Vec<&RedirectionTarget> =
        of_commands.map(|one| one.target()).chain(&found.redirections).collect();
    if targets
        .iter()
        .filter_map(|target| target.word())
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
    let fails = targets.iter().any(|target| {
        matches!(
            target,
            RedirectionTarget::Read(_)
                | RedirectionTarget::Write(_)
                | RedirectionTarget::Append(_)
                | RedirectionTarget::WriteAll(_)
        )
    });
    let nameless = simple.iter().any(|command| command.words().is_empty());
    // Where a command may fail, a loop that waits for it may not end.
    let waits = found.branches && text.contains(['w', 'u']);
    if found.endless || waits && (fails || nameless || found.conditions || text.contains('!')) {
        return None;
    }
    let all_run = !fails
        && !nameless
        && !found.branches
        && !found.conditions
        && commands
            .pipelines()
            .iter()
            .all(|pipeline| pipeline.join() != Join::Or && !pipeline.is_negated());
    let inside = text.contains("||") || text.contains('!');
    let all_run = all_run && !(found.loops && inside);
    let builtin = |argv: &Vec<String>| {
        argv[0].is_empty() || BUILTINS.split_whitespace().any(|name| name == argv[0])
    };
    if argv.iter().any(builtin) {
        return None;
    }
    let left_out = argv.is_empty() || nameless && dialect == Dialect::Zsh;
    let written = targets.iter().filter_map(|target| match target {
        RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::WriteAll(word) => Some(word.text().to_owned()),
        _ => None,
    });
    let writes = written.collect();
    (!left_out).then_some(Case { text, argv, all_run, repeats: found.loops, writes })
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
    for number in 0..1_500 {
        let text = compound(&mut numbers, 2);
        let text = if number % 3 == 0 { text } else { mutated(&text, &mut numbers) };
        cases.extend(case(text, dialect));
    }
    assert!(cases.len() > 1_500, "{}", cases.len());
    assert!(cases.iter().filter(|case| case.repeats).count() > 10);
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
                    None => !(case.repeats && case.argv.contains(argv)),
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

/// The values of variables are those of the shells: each call that a shell makes is a part with the same words.
fn compare_values(shell: &str, dialect: Dialect) {
    let found =
        ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| PathBuf::from(folder).join(shell));
    let shell = found.into_iter().find(|path| path.exists()).unwrap();
    let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    let texts = [
        "for f in a b 'c d'; do x \"$f\" \"${f}y\" z\"$f\"; done",
        "for f in a b; do x $f ${f}y $f.rs \"$f\"oo '$f'; done",
        "for f in a b; do for g in 1 2; do x $f$g \"$g/$f\"; done; done",
        "for f in a b; do $f x; done",
        "for f in -n --; do x $f; done",
        "v=1; x $v \"$v\"; v=2; x a$v",
        "v='a b'; x \"$v\" \"$v\"c",
        "for f in a; do v=b$f; x \"$v\" $v; done",
        "for f in a b; do if x $f; then y \"$f\"; fi; done",
        "for f in a b; do (x $f; { y $f; }) | z $f; done",
        "v=a; for f in b c; do x $v$f; done; x $v",
    ];
    let cases: Vec<Case> = texts
        .iter()
        .map(|text| {
            let judgement = classifier.judge(text, dialect);
            assert_eq!(judgement.refused(), None, "{text}");
            let parts = judgement.parts().iter().filter(|part| part.argv()[0] != "for");
            let argv = parts.map(|part| part.argv().to_vec()).collect();
            let text = (*text).to_owned();
            Case { text, argv, all_run: true, repeats: true, writes: Vec::new() }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    for (case, called) in cases.iter().zip(called(&shell, dialect, &cases, folder.path())) {
        let (mut read, mut called) = (case.argv.clone(), called);
        read.sort();
        called.sort();
        assert_eq!(read, called, "{}", case.text);
    }
}

#[test]
fn variables_have_the_values_that_shells_give_them() {
    for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Sh), ("zsh", Dialect::Zsh)]
    {
        compare_values(shell, dialect);
    }
}
