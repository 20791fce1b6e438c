//! The lexer against real shells: what it accepts, `bash`, `dash` and `zsh` read alike (rule C1).
//!
//! The shells are fenced: no slash is left in a text, so that no path leads out of an empty directory; names of builtins are
//! replaced, and in `bash` and `zsh` builtins are switched off; `PATH` is empty, or holds nothing but a program that logs;
//! each runs in a process group of its own with a time limit. `COUNTERSIGN_MUTATIONS=100` runs more texts,
//! `COUNTERSIGN_NESTED=100000` more of those that are nested, and `COUNTERSIGN_SEED=8` other ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign_shell::{
    Classifier, Commands, Compound, CompoundKind, Dialect, Join, Preset, RedirectionTarget,
    SearchPath, SimpleCommand, Stage, Word, WordKind, Workspace,
};
use serde::Deserialize;

use super::texts::{BUILTINS, Numbers, compound, harmless, mutated, nested};
use crate::support::write_program;

#[derive(Deserialize)]
struct Row {
    cmd: String,
}

/// A word that a program has to be given.
#[derive(Debug)]
enum Wanted {
    Is(String),
    /// A substitution that prints nothing, without quotes: no word at all.
    Nothing,
    /// The path of a process substitution.
    Path,
}

/// A text that was accepted, with the commands that were read from it.
struct Case {
    text: String,
    argv: Vec<Vec<Wanted>>,
    /// Every command runs, if all of them succeed.
    all_run: bool,
    /// A command may run several times.
    repeats: bool,
    /// The files that redirections write.
    writes: Vec<String>,
}

/// The parts of a text beside simple commands.
#[derive(Default)]
struct Found {
    branches: bool,
    loops: bool,
    /// A loop that does not end if every command succeeds.
    endless: bool,
    conditions: bool,
    /// `||` and `!`, which decide whether a command runs.
    decides: bool,
    /// The variables that the text sets.
    sets: BTreeSet<String>,
    /// The targets of redirections behind subshells, groups and loops.
    redirections: Vec<RedirectionTarget>,
}

fn look_at(commands: &Commands, found: &mut Found) {
    for pipeline in commands.pipelines() {
        found.decides |= pipeline.join() == Join::Or || pipeline.is_negated();
        for stage in pipeline.stages() {
            match stage {
                Stage::Compound(compound) => look_at_compound(compound, found),
                Stage::Subshell { commands, redirections } => {
                    found.redirections.extend(redirections.iter().map(|one| one.target().clone()));
                    look_at(commands, found);
                }
                Stage::Condition { .. } => found.conditions = true,
                Stage::Simple(command) => {
                    let values = command.assignments().iter().map(|one| one.value());
                    let targets =
                        command.redirections().iter().filter_map(|one| one.target().word());
                    values
                        .chain(targets)
                        .chain(command.words())
                        .for_each(|word| look_at_word(word, found));
                    found
                        .sets
                        .extend(command.assignments().iter().map(|one| one.name().to_owned()));
                }
                _ => {}
            }
        }
    }
}

fn look_at_word(word: &Word, found: &mut Found) {
    word.substitutions().iter().for_each(|commands| look_at(commands, found));
}

fn look_at_compound(compound: &Compound, found: &mut Found) {
    found.redirections.extend(compound.redirections().iter().map(|one| one.target().clone()));
    let ends = |wanted| compound.lists()[0].pipelines().last().unwrap().is_negated() == wanted;
    match compound.kind() {
        CompoundKind::If => found.branches = true,
        CompoundKind::Case { word, .. } => {
            found.branches = true;
            look_at_word(word, found);
        }
        CompoundKind::While => found.endless |= !ends(true),
        CompoundKind::Until => found.endless |= !ends(false),
        CompoundKind::For { words, variable } => {
            found.loops = true;
            found.sets.insert(variable.clone());
            // The files that a pattern stands for are no words of the text.
            found.endless |= words.iter().any(|word| word.literal().is_none());
        }
        _ => {}
    }
    found.branches |= compound.lists().len() > 1;
    compound.lists().iter().for_each(|list| look_at(list, found));
}

/// The arguments that a program is given for a word, where variables are not set and substitutions print nothing.
/// `None` if that is not known.
fn wanted(word: &Word, sets: &BTreeSet<String>) -> Option<Wanted> {
    match word.kind() {
        WordKind::Literal | WordKind::Glob => return Some(Wanted::Is(word.text().to_owned())),
        WordKind::Process => return Some(Wanted::Path),
        WordKind::Expansion => {}
        _ => return None,
    }
    let letter = |name: &str| name.len() == 1 && name.starts_with(|c: char| c.is_ascii_lowercase());
    let unset = word.parameters().iter().all(|name| letter(name) && !sets.contains(name));
    let expansions = word.parameters().len() + word.substitutions().len();
    if !unset || word.text().matches('$').count() != expansions {
        return None;
    }
    let mut text = word.text().replace("$(…)", "");
    for name in word.parameters() {
        for written in [format!("${{{name}}}"), format!("${name}")] {
            text = text.replace(&written, "");
        }
    }
    let vanishes = text.is_empty() && word.may_split() && !word.is_quoted();
    Some(if vanishes { Wanted::Nothing } else { Wanted::Is(text) })
}

fn case(text: String, dialect: Dialect) -> Option<Case> {
    let commands = Commands::parse(&text, dialect).ok()?;
    let mut found = Found::default();
    look_at(&commands, &mut found);
    let simple: Vec<&SimpleCommand> = commands.simple_commands().collect();
    let of_commands = simple.iter().flat_map(|command| command.redirections());
    let targets: Vec<&RedirectionTarget> =
        of_commands.map(|one| one.target()).chain(&found.redirections).collect();
    let is_input = |target: &RedirectionTarget| matches!(target, RedirectionTarget::Read(word) if word.kind() == WordKind::Process);
    let known = |target: &&RedirectionTarget| {
        is_input(target) || target.word().is_none_or(|word| word.kind() == WordKind::Literal)
    };
    if !targets.iter().all(known) {
        return None;
    }
    let words_of = |command: &&SimpleCommand| -> Option<Vec<Wanted>> {
        command.words().iter().map(|word| wanted(word, &found.sets)).collect()
    };
    // A command without a name is `cat` in zsh.
    let named = simple.iter().filter(|command| !command.words().is_empty());
    let argv: Vec<Vec<Wanted>> = named.map(words_of).collect::<Option<_>>()?;
    let values = simple.iter().flat_map(|command| command.assignments());
    if values.map(|one| wanted(one.value(), &found.sets)).any(|one| one.is_none()) {
        return None;
    }
    let fails = targets.iter().any(|target| {
        !is_input(target)
            && matches!(
                target,
                RedirectionTarget::Read(_)
                    | RedirectionTarget::Write(_)
                    | RedirectionTarget::Append(_)
                    | RedirectionTarget::WriteAll(_)
            )
    });
    let nothing = |argv: &Vec<Wanted>| argv.iter().all(|word| matches!(word, Wanted::Nothing));
    let nameless =
        simple.iter().any(|command| command.words().is_empty()) || argv.iter().any(nothing);
    // Where a command may fail, a loop that waits for it may not end.
    let waits = found.branches && text.contains(['w', 'u']);
    if found.endless || waits && (fails || nameless || found.conditions || text.contains('!')) {
        return None;
    }
    let all_run = !fails && !nameless && !found.branches && !found.conditions && !found.decides;
    let left_out = argv.is_empty()
        || argv.iter().any(|argv| calls_builtin(argv))
        || nameless && dialect == Dialect::Zsh;
    let written = targets.iter().filter_map(|target| match target {
        RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::WriteAll(word) => Some(word.text().to_owned()),
        _ => None,
    });
    let writes = written.collect();
    (!left_out).then_some(Case { text, argv, all_run, repeats: found.loops, writes })
}

/// The words of which one is the program.
fn programs(argv: &[Wanted]) -> impl Iterator<Item = Option<&str>> {
    let mut found = false;
    argv.iter()
        .take_while(move |word| !std::mem::replace(&mut found, !matches!(word, Wanted::Nothing)))
        .map(|word| match word {
            Wanted::Is(name) => Some(name.as_str()),
            _ => None,
        })
}

fn calls_builtin(argv: &[Wanted]) -> bool {
    programs(argv)
        .flatten()
        .any(|name| name.is_empty() || BUILTINS.split_whitespace().any(|one| one == name))
        || argv
            .iter()
            .find(|word| !matches!(word, Wanted::Nothing))
            .is_some_and(|word| matches!(word, Wanted::Path))
}

/// Returns `true` if a call has these words.
fn fits(wanted: &[Wanted], called: &[String]) -> bool {
    let words: Vec<&Wanted> =
        wanted.iter().filter(|word| !matches!(word, Wanted::Nothing)).collect();
    words.len() == called.len()
        && words.iter().zip(called).all(|(wanted, called)| match wanted {
            Wanted::Is(text) => text == called,
            _ => called.starts_with("/dev/fd/") || called.starts_with("/proc/"),
        })
}

/// The number of the text is in front of the words of each call, as commands in a process substitution may run late. Bash
/// writes line by line, so that calls at the same time would be mixed: it gives line breaks as another character.
const BASH: &str = r#"
exec 9>&1 >/dev/null
command_not_found_handle() { builtin printf '%s\037' "$NUMBER" "${@//$'\n'/$'\034'}" $'\036' >&9; }
set -f
for name in $(compgen -b); do case $name in builtin|printf|eval|enable) ;; *) enable -n "$name";; esac; done
NUMBER=0
for text in "$@"; do
builtin printf '%s\037' "$NUMBER" $'\036' >&9; builtin printf '\035\n' >>"$LOG"
( builtin eval -- "$text" ) 2>>"$LOG" </dev/null
NUMBER=$((NUMBER + 1)); done
"#;

const ZSH: &str = r#"
exec 9>&1 >/dev/null
command_not_found_handler() { builtin printf '%s\037' "$NUMBER" "$@" $'\036' >&9; }
setopt no_glob
disable . : \[ alias bg cd command echo exit export fc fg hash jobs kill let popd print pushd pushln pwd r read set shift source test times trap true false type umask unset wait which where whence
NUMBER=0
for text in "$@"; do
builtin printf '%s\037' "$NUMBER" $'\036' >&9; builtin printf '\035\n' >>"$LOG"
( builtin eval "$text" ) 2>>"$LOG" </dev/null
NUMBER=$((NUMBER + 1)); done
"#;

const DASH: &str = r#"
exec 9>&1 >/dev/null
set -f
export NUMBER=0
for text in "$@"; do
printf '%s\037\036\037' "$NUMBER" >&9; printf '\035\n' >>"$LOG"
( eval "$text" ) 2>>"$LOG" </dev/null
NUMBER=$((NUMBER + 1)); done
"#;

/// The words of a shell about a text that it cannot read.
const COMPLAINTS: &[&str] = &[
    "yntax error",
    "parse error",
    "unexpected EOF",
    "nterminated",
    "unmatched",
    "bad substitution",
    "delimited by end",
];

/// What a shell called for each text, in no order, and the texts that it could not read.
fn called(
    shell: &Path,
    dialect: Dialect,
    cases: &[Case],
    folder: &Path,
) -> (Vec<Vec<Vec<String>>>, Vec<String>) {
    let log = folder.join("log");
    let work = folder.join("work");
    let programs = folder.join("programs");
    for made in [&work, &programs] {
        std::fs::remove_dir_all(made).ok();
        std::fs::create_dir_all(made).unwrap();
    }
    std::fs::remove_file(&log).ok();
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["-s", "KILL", "60"]).arg(shell);
    match dialect {
        Dialect::Bash => command.args(["--norc", "--noprofile", "-c", BASH]),
        Dialect::Zsh => command.args(["-f", "-c", ZSH]),
        _ => {
            make_programs(cases, folder, &programs);
            command.args(["-c", DASH])
        }
    };
    let path = if dialect == Dialect::Sh { programs.as_path() } else { Path::new("/nonexistent") };
    // The output ends when the last process that has it ends, also one in a process substitution.
    let output = command
        .arg("shell")
        .args(cases.iter().map(|case| &case.text))
        .env_clear()
        .env("PATH", path)
        .env("LOG", &log)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let unread = cases
        .iter()
        .zip(errors.split("\u{1d}\n").skip(1))
        // A condition that is wrong is asked about, and ends the text in a shell.
        .filter(|(case, _)| !case.text.contains("[["))
        .filter(|(_, errors)| COMPLAINTS.iter().any(|complaint| errors.contains(complaint)))
        .map(|(case, errors)| format!("{:?}: {errors}", case.text))
        .collect();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all = vec![Vec::new(); cases.len()];
    let mut last = 0;
    for record in text.split("\u{1e}\u{1f}").filter(|record| !record.is_empty()) {
        let mut words = argv_of(record);
        let number: usize = words.remove(0).parse().unwrap();
        last = last.max(number);
        if !words.is_empty() {
            all[number].push(words);
        }
    }
    assert_eq!(last + 1, cases.len(), "{:?} after {:?}", output.status, cases[last].text);
    (all, unread)
}

/// Makes a program for each name that is called. It prints its words.
fn make_programs(cases: &[Case], folder: &Path, programs: &Path) {
    let logger = folder.join("logger");
    let script = "#!/bin/dash\nexec 2>/dev/null\nprintf '%s\\037' \"$NUMBER\" \"${0##*/}\" \"$@\" \"$(printf '\\036')\" >&9\n";
    write_program(&logger, script);
    let names: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| &case.argv)
        .flat_map(|argv| self::programs(argv).flatten())
        .collect();
    for name in names {
        if !name.is_empty() && name.len() < 200 && !matches!(name, "." | "..") {
            std::fs::hard_link(&logger, programs.join(name)).unwrap();
        }
    }
}

/// The words of one call, empty ones at the end too.
fn argv_of(one: &str) -> Vec<String> {
    let mut words: Vec<String> =
        one.split('\u{1f}').map(|word| word.replace('\u{1c}', "\n")).collect();
    words.pop();
    words
}

/// A number that a variable of the environment may set.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn path_of(shell: &str) -> PathBuf {
    ["/bin", "/usr/bin", "/usr/local/bin"]
        .map(|folder| PathBuf::from(folder).join(shell))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("`{shell}` is not installed: run .ci/shells"))
}

/// Texts of all kinds that are accepted.
fn cases(dialect: Dialect) -> Vec<Case> {
    let mutations = setting("COUNTERSIGN_MUTATIONS", 2);
    let mut numbers = Numbers(setting("COUNTERSIGN_SEED", 7) as u64);
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
    let before = cases.len();
    let all = setting("COUNTERSIGN_NESTED", 6_000);
    for number in 0..all {
        let text = nested(&mut numbers);
        let text = if number % 4 == 0 { mutated(&text, &mut numbers) } else { text };
        cases.extend(case(text, dialect));
    }
    println!("{dialect:?}: {before} texts, and {} of {all} nested ones", cases.len() - before);
    assert!(before > 1_500 && cases.len() - before > all / 20, "{before}, {}", cases.len());
    assert!(cases.iter().filter(|case| case.repeats).count() > 10);
    cases
}

fn compare(shell: &str, dialect: Dialect) {
    let shell = path_of(shell);
    let folder = tempfile::tempdir().unwrap();
    let cases = cases(dialect);
    let mut differences = Vec::new();
    let mut written_by_none = Vec::new();
    for batch in cases.chunks(200) {
        let (all, unread) = called(&shell, dialect, batch, folder.path());
        differences.extend(unread);
        for (case, called) in batch.iter().zip(all) {
            if !is_alike(case, &called) {
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
    assert!(
        differences.is_empty(),
        "{} of {}\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
    assert!(written_by_none.is_empty(), "written, and read as no target: {written_by_none:?}");
}

/// Returns `true` if a shell called what was read, and nothing else.
fn is_alike(case: &Case, called: &[Vec<String>]) -> bool {
    let mut left: Vec<&Vec<Wanted>> = case.argv.iter().collect();
    let known = called.iter().all(|argv| match left.iter().position(|wanted| fits(wanted, argv)) {
        Some(at) => {
            left.remove(at);
            true
        }
        None => case.repeats && case.argv.iter().any(|wanted| fits(wanted, argv)),
    });
    known && (!case.all_run || left.iter().all(|wanted| fits(wanted, &[])))
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
    let shell = path_of(shell);
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
            let words = |words: &[String]| words.iter().cloned().map(Wanted::Is).collect();
            let argv = parts.map(|part| words(part.argv())).collect();
            let text = (*text).to_owned();
            Case { text, argv, all_run: true, repeats: false, writes: Vec::new() }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let (all, unread) = called(&shell, dialect, &cases, folder.path());
    assert!(unread.is_empty(), "{unread:?}");
    for (case, called) in cases.iter().zip(all) {
        assert!(is_alike(case, &called), "{}: {:?} {called:?}", case.text, case.argv);
        assert_eq!(case.argv.len(), called.len(), "{}", case.text);
    }
}

#[test]
fn variables_have_the_values_that_shells_give_them() {
    for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Sh), ("zsh", Dialect::Zsh)]
    {
        compare_values(shell, dialect);
    }
}
