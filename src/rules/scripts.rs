//! The scripts that commands run, to whose content the questions about them are bound (rule R6).
//!
//! `python3 x.py` says nothing about what happens: the file does. So an approval, also one in advance, is for the file
//! as it was: after a change a person is asked again.
//!
//! | command | bound to |
//! |---|---|
//! | `python3 x.py data.csv`, `./x.sh`, `sh < x.sh`, `cat x.sh \| bash` | the scripts that it names, and no data |
//! | `python3 -m pkg.tool` | `pkg/tool.py` or `pkg/tool/__main__.py` |
//! | `npm run deploy`, `make x`, `make -C sub x` | the definitions of builds, such as `package.json` and `Makefile`, in the folders that it works in and names, and in those above them in the workspace |
//! | `cargo test && git push` | the same, for the first command |
//! | `git commit`, `rm x.py` | nothing |
//!
//! Nothing that a script reads, imports or starts is looked at. `eval` and `trap` have no answer in advance. A program
//! that is not known may run every script that it names. In a workspace whose files are not looked at nothing is bound.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::command::CommandView;
use super::seen::Seen;
use crate::reader::word::{self, without_version};
use crate::shell::files::bounded;
use crate::shell::{Effect, Part, lexically_normal};

/// The largest script that a question is bound to, in bytes. It is read with each question.
const MAX_SIZE: u64 = 8 << 20;

/// To how many files questions are bound.
const MAX_FILES: usize = 32;

/// How many words of the commands are looked at.
const MAX_WORDS: usize = 1000;

/// Endings of files that a program runs, and that do not begin with `#!`.
const SCRIPTS: &[&str] = &[
    "awk", "bash", "bat", "cjs", "clj", "cmd", "cts", "el", "exs", "fish", "go", "gradle",
    "groovy", "hs", "java", "jl", "jq", "js", "jsx", "ksh", "kts", "lua", "mjs", "mk", "mts",
    "nix", "php", "pl", "pm", "ps1", "py", "pyw", "r", "rb", "rs", "scm", "sed", "sh", "sql",
    "swift", "tcl", "ts", "tsx", "vim", "zsh",
];

/// Programs that run the files that they are given, whatever these are called.
const INTERPRETERS: &[&str] = &[
    ".", "ash", "awk", "bash", "bun", "dash", "deno", "exec", "fish", "gawk", "ksh", "lua", "node",
    "perl", "php", "pwsh", "pypy", "python", "Rscript", "ruby", "sh", "source", "tclsh", "tsx",
    "zsh",
];

/// Whether a program of this name, without a version, runs any code that it is given. `awk` and the like are not meant:
/// their scripts are checked.
pub(super) fn interprets(name: &str) -> bool {
    INTERPRETERS.contains(&name) && !matches!(name, "awk" | "gawk")
}

/// What interpreters add to a name that they are given.
const MODULES: &[&str] = &[
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".tsx",
    ".mts",
    ".jsx",
    ".lua",
    ".rb",
    ".php",
    "/index.js",
    "/index.mjs",
    "/index.cjs",
    "/index.ts",
    "/index.tsx",
    "/__main__.py",
];

/// Commands of a shell that run a text which is not looked at here, and with it scripts that the text names.
const EVALUATORS: &[&str] = &["eval", "trap"];

/// The scripts that the commands run, each with the digest of its content. `None` where one cannot be read or told, or
/// is too large, so that nothing can be bound to it.
pub(super) fn contents(
    seen: &Seen<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
) -> Option<Vec<(String, String)>> {
    if !seen.places().looks() {
        return Some(Vec::new());
    }
    let mut files = BTreeSet::new();
    let parts = || views.iter().flat_map(|(_, view)| view.parts());
    let is_open =
        |part: &Part| EVALUATORS.contains(&program(part)) || part.argv().len() > MAX_WORDS;
    if parts().any(is_open) {
        return None;
    }
    if parts().any(may_run) {
        for part in parts() {
            named(part, seen, &mut files);
        }
        for part in parts().filter(|part| may_run(part)) {
            definitions(part, seen, &mut files)?;
        }
    }
    if files.len() > MAX_FILES {
        return None;
    }
    let root = seen.places().root();
    let name = |file: &Path| file.strip_prefix(root).unwrap_or(file).display().to_string();
    let pin = |file: &PathBuf| Some((format!("content of {}", name(file)), digest(file)?));
    let pins: Option<BTreeMap<_, _>> = files.iter().map(pin).collect();
    Some(pins?.into_iter().collect())
}

/// Whether a command runs code that it names or that the workspace holds, or is not known.
fn may_run(part: &Part) -> bool {
    let runs = |effect: &Effect| matches!(effect, Effect::Runs(_) | Effect::RunsWorkspace);
    let is_unknown = part.effects().is_empty() && !part.reasons().is_empty();
    is_unknown || is_interpreter(part) || part.effects().iter().any(runs)
}

fn program(part: &Part) -> &str {
    part.argv().first().map(String::as_str).unwrap_or_default()
}

/// The name of the program of a command, without its folder.
pub(super) fn program_name(part: &Part) -> &str {
    word::program_name(program(part))
}

/// Whether the program of a command runs every file that it is given.
pub(super) fn is_interpreter(part: &Part) -> bool {
    let base = without_version(program_name(part));
    INTERPRETERS.contains(&base) || INTERPRETERS.contains(&program(part))
}

/// The texts of a command that may name a file: its words, the values behind `=`, and what it reads its input from.
fn words(part: &Part) -> Vec<&str> {
    let input = part.redirections().iter().filter_map(|it| it.target().word());
    let words = part.argv().iter().map(String::as_str);
    let words = words.chain(input.map(|word| word.text()));
    let value = |word| str::split_once(word, '=').map(|(_, value)| value);
    words.flat_map(|word| [Some(word), value(word)]).flatten().collect()
}

/// Adds the scripts that a command names.
fn named(part: &Part, seen: &Seen<'_>, files: &mut BTreeSet<PathBuf>) {
    let runs_any = is_interpreter(part);
    let mut operand_is_script = runs_any;
    let mut before = "";
    for (at, word) in words(part).into_iter().enumerate() {
        // A name without a folder is looked up in `PATH`, unless it is an operand.
        if at == 0 && !word.contains('/') {
            continue;
        }
        // `node server` runs `server.js`, and `python3 pkg` runs `pkg/__main__.py`.
        let endings = if operand_is_script && at > 0 { MODULES } else { &[] };
        for ending in [""].iter().chain(endings) {
            let name = format!("{word}{ending}");
            for file in places(part, seen, &name).filter(|file| file.is_file()) {
                if operand_is_script || is_script(&file) {
                    // The value of an option (`--rcfile x`) may be a script, and the operand is another one.
                    operand_is_script &= before.starts_with('-') && !is_script(&file);
                    files.insert(file);
                }
            }
        }
        before = word;
    }
    let mut pairs = part.argv().windows(2);
    let module = pairs.find_map(|pair| match pair {
        [option, module] if option == "-m" => Some(module.replace('.', "/")),
        _ => None,
    });
    if let Some(module) = module.filter(|_| runs_any) {
        for name in [format!("{module}.py"), format!("{module}/__main__.py")] {
            files.extend(places(part, seen, &name).filter(|file| file.is_file()));
        }
    }
}

/// Adds the definitions of builds in the folders that a command works in and names, and above them in the workspace.
/// `None` for too many folders.
fn definitions(part: &Part, seen: &Seen<'_>, files: &mut BTreeSet<PathBuf>) -> Option<()> {
    let root = seen.places().root();
    let names = words(part).into_iter().skip(1);
    let folders = names.flat_map(|word| places(part, seen, word)).filter(|it| it.is_dir());
    let folders: BTreeSet<PathBuf> = folders.chain(part.directories().iter().cloned()).collect();
    let inside = |folder: &&Path| folder.starts_with(root);
    let all: BTreeSet<&Path> =
        folders.iter().flat_map(|it| it.ancestors().take_while(inside).chain([&**it])).collect();
    if all.len() > MAX_FILES {
        return None;
    }
    for folder in all {
        files.extend(seen.engine.classifier.build_definitions(folder));
    }
    Some(())
}

/// The places that a word of a command may name, in each directory that it may start in.
fn places<'p>(
    part: &'p Part,
    seen: &'p Seen<'_>,
    word: &'p str,
) -> impl Iterator<Item = PathBuf> + 'p {
    let home = word.strip_prefix("~/").and_then(|rest| Some(seen.places().home()?.join(rest)));
    let is_path = !word.is_empty() && word.len() <= 4096 && !word.contains(['\0', '\n']);
    let directories = part.directories().iter().filter(move |_| is_path);
    directories.map(move |directory| {
        lexically_normal(&home.clone().unwrap_or_else(|| directory.join(word)))
    })
}

/// Whether a file is one that a program runs, by its ending, by its mode, or by the way in which it begins.
fn is_script(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    SCRIPTS.iter().any(|known| known.eq_ignore_ascii_case(ending))
        || is_executable(file)
        || begins_as_script(file).unwrap_or_default()
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|it| it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

fn begins_as_script(file: &Path) -> Option<bool> {
    let mut first = [0; 2];
    std::fs::File::open(file).ok()?.read_exact(&mut first).ok()?;
    Some(first == *b"#!")
}

/// The digest of a file's content; `None` if it cannot be read, or is too large.
fn digest(file: &Path) -> Option<String> {
    Some(super::rule::hex_digest(&bounded(file, MAX_SIZE).ok()??))
}
