//! The files and packages that the command of a server names, which are pinned with its tools (rule M4).
//!
//! | command | pinned |
//! |---|---|
//! | `mcp-server-git`, `./server` | the file of the program, by its content |
//! | `node server.js`, `uv --directory /x run server.py` | the files of the program and of the script, by their content |
//! | `env X=1 node server.js`, `sh -c 'cd x && node server.js'` | the same, and the files of `env` and `sh` |
//! | `npx @x/server@1.2.3`, `uvx server==1.2.3`, `docker run x/server:1.2` | the package, with the version that is named |
//! | `npx @x/server` | the package; the log and `pins show` say that no version is named |
//! | `java -jar s.jar`, `dotnet a.dll` | the files of the program and of what it runs, by their content |
//! | `npm run serve`, `make serve` | the file that says what the task does |
//!
//! The command is a list of words, and we take each as it is. Only the text of `sh -c` is read as a shell's (`shell`).
//! If that cannot be read, or runs what it makes as it runs, we say so. We do not look at what a script loads: modules,
//! packages, the files of an image or of a folder that is mounted into it, a server that is reached by its URL.
//!
//! We make the digests when the server is started. If a file changes while the server runs, the change counts from
//! its next start.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::launch::{Launch, Transport};
use super::packages::{modules, packages};
use countersign_shell::program_files::{
    NamedFiles, digest_of, is_executable, is_interpreter, is_script, program_name, without_version,
};
use countersign_shell::{Classifier, Dialect, Part, Preset, SearchPath, Workspace};

/// The largest file that is pinned by its content, in bytes; interpreters have up to 200 MB.
const MAX_SIZE: u64 = 1 << 30;

/// The files and packages that a command names, each with its state: the digest of a file, and if a package's version is
/// named.
pub(crate) type ServerPrograms = BTreeMap<String, String>;

/// The files and packages of a command that cannot be read.
pub(crate) fn unreadable() -> ServerPrograms {
    ServerPrograms::from([("the command".to_owned(), "cannot be read".to_owned())])
}

/// The sentence about a text of a shell that cannot be read, or that decides as it runs what it runs.
const OPEN_TEXT: (&str, &str) =
    ("the text of the shell", "cannot be read: what it runs can change without a question");

/// The files and packages that the command of a server names now. Reads the files.
pub(crate) fn of_launch(launch: &Launch) -> ServerPrograms {
    let Transport::Command { program, args, env, directory } = &launch.way else {
        return ServerPrograms::new();
    };
    let here = directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let here = std::path::absolute(&here).unwrap_or(here);
    let home = std::env::home_dir();
    let words = [program].into_iter().chain(args);
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let path = env.get(std::ffi::OsStr::new("PATH")).cloned().or_else(|| std::env::var_os("PATH"));
    let path: Vec<PathBuf> =
        path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let reader = CommandReader { here, home, path };
    let mut found = ServerPrograms::new();
    reader.words(&words, &mut found, MAX_DEPTH);
    found
}

/// The number of commands that may stand in front of each other: `env`, `sh -c`, `timeout`.
const MAX_DEPTH: usize = 8;

/// Reads the commands of servers.
struct CommandReader {
    here: PathBuf,
    home: Option<PathBuf>,
    /// The folders in which programs are looked up.
    path: Vec<PathBuf>,
}

impl CommandReader {
    /// Finds what a list of words names. The words of a command are no text of a shell: each is taken as it is, and only the
    /// text that a shell is given is read as one.
    fn words(&self, words: &[String], found: &mut ServerPrograms, depth: usize) {
        let Some((program, args)) = words.split_first() else { return };
        if depth == 0 {
            return found.extend(unreadable());
        }
        let name = program_name(program);
        let own = without_version(name);
        if let Some(packages) = packages(words) {
            found.extend(packages);
            return;
        }
        add(self.program_file(program, std::slice::from_ref(&self.here)), found);
        found.extend(modules(words));
        match own {
            "env" => self.env(args, found, depth),
            "sh" | "bash" | "dash" | "zsh" | "ash" | "ksh" | "fish" => self.shell(args, found),
            _ => {
                self.wrapped(words, found);
                add(self.operands(own, args), found);
            }
        }
    }

    /// The words behind the options and the assignments of `env`. The text of `-S` is split as words are.
    fn env(&self, args: &[String], found: &mut ServerPrograms, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return found.extend(unreadable()) };
        let mut rest = args;
        while let Some((word, more)) = rest.split_first() {
            let text = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S"));
            match word.as_str() {
                "-u" | "--unset" | "-C" | "--chdir" | "-a" | "--argv0" => {
                    rest = more.get(1..).unwrap_or_default();
                }
                "-S" | "--split-string" => {
                    let text = more.first().map(String::as_str).unwrap_or_default();
                    return self.env(&split(text, more.get(1..).unwrap_or_default()), found, depth);
                }
                "--" => return self.words(more, found, depth),
                _ if text.is_some() => {
                    return self.env(&split(text.unwrap_or_default(), more), found, depth);
                }
                _ if word.starts_with('-') || word.contains('=') => rest = more,
                _ => return self.words(rest, found, depth),
            }
        }
    }

    /// Finds what the text of `sh -c` runs, or else the script that a shell is given.
    fn shell(&self, args: &[String], found: &mut ServerPrograms) {
        let is_text = |word: &&String| {
            let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|letters| letters.contains('c'))
        };
        let Some(at) = args.iter().position(|word| is_text(&word)) else {
            return add(self.operands("sh", args), found);
        };
        let mut behind = args.iter().enumerate().skip(at + 1);
        let Some((at, text)) = behind.find(|(_, word)| !word.starts_with('-')) else {
            return;
        };
        add(self.operands("sh", args.get(at + 1..).unwrap_or_default()), found);
        self.text(text, found);
    }

    /// Finds what a text of a shell runs. From a function, `eval` and words that are known only as it runs we cannot tell
    /// that, and name them.
    fn text(&self, text: &str, found: &mut ServerPrograms) {
        let judgement = self.classifier().judge(text, Dialect::Sh);
        let is_open = |part: &Part| {
            matches!(part.program_name(), "eval" | "trap")
                || part.program().is_none() && !part.argv().is_empty()
        };
        let has_function = text.contains("()") || text.contains("function ");
        if judgement.refused().is_some() || judgement.parts().iter().any(is_open) || has_function {
            found.extend([(OPEN_TEXT.0.to_owned(), OPEN_TEXT.1.to_owned())]);
            let words: Vec<_> = text
                .split(|c: char| c.is_whitespace() || "'\"`;&|<>(){}=".contains(c))
                .map(str::to_owned)
                .collect();
            add(self.operands("sh", &words), found);
        }
        for part in judgement.parts() {
            self.part(part, found);
        }
    }

    /// The commands behind a wrapper such as `timeout 9`, as the classifier reads them. What it refuses to read is no
    /// loss: the words themselves were looked at.
    fn wrapped(&self, words: &[String], found: &mut ServerPrograms) {
        let text: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        for part in self.classifier().judge(&text.join(" "), Dialect::Sh).parts() {
            self.part(part, found);
        }
    }

    fn part(&self, part: &Part, found: &mut ServerPrograms) {
        match packages(part.argv()) {
            Some(packages) => found.extend(packages),
            None => {
                let here = part.directories();
                let mut files: Vec<_> = self.scripts(part).into_iter().collect();
                files.extend(self.program_file(part.written_program(), here));
                let args = part.argv().get(1..).unwrap_or_default();
                files.extend(self.operands_in(without_version(part.program_name()), args, here));
                add(files, found);
                found.extend(modules(part.argv()));
            }
        }
    }

    fn classifier(&self) -> Classifier {
        let mut workspace = Workspace::lexical(&self.here);
        if let Some(home) = &self.home {
            workspace = workspace.with_home(home);
        }
        Classifier::new(workspace, Preset::Reader).with_search_path(SearchPath::unchecked())
    }

    /// The scripts that a command names, also below the folders that it names.
    fn scripts(&self, part: &Part) -> BTreeSet<PathBuf> {
        let (here, home) = (part.directories(), self.home.as_deref());
        let named = NamedFiles { directories: here, home };
        let operands = part.argv().iter().skip(1);
        let folders = operands.flat_map(|word| named.places(word)).filter(|it| it.is_dir());
        let directories: Vec<PathBuf> = here.iter().cloned().chain(folders).collect();
        NamedFiles { directories: &directories, home }.scripts(part)
    }

    fn operands(&self, program: &str, args: &[String]) -> Vec<PathBuf> {
        self.operands_in(program, args, std::slice::from_ref(&self.here))
    }

    /// The files that a program runs, whatever their names end with: the operand of an interpreter, the archive behind
    /// `-jar`, the file of tasks; and each operand that is a script.
    fn operands_in(&self, program: &str, args: &[String], here: &[PathBuf]) -> Vec<PathBuf> {
        let named = NamedFiles { directories: here, home: self.home.as_deref() };
        let files =
            |word: &str| named.places(word).filter(|file| file.is_file()).collect::<Vec<_>>();
        let mut found: Vec<_> =
            args.iter().flat_map(|word| files(word)).filter(|it| is_script(it)).collect();
        if is_interpreter(program) || RUNTIMES.contains(&program) {
            let mut operands = args.iter().flat_map(|word| files(word)).peekable();
            // The first one is what runs; a later one may be data, which changes with each run.
            found.extend(operands.peek().cloned());
            found.extend(operands.filter(|file| is_text(file)));
        }
        for pair in args.windows(2) {
            let [option, value] = pair else { continue };
            match option.as_str() {
                "-jar" | "-cp" | "-classpath" | "--class-path" | "-f" | "--file" | "--makefile" => {
                    found.extend(value.split(':').flat_map(files));
                }
                "-m" => {
                    let module = value.replace('.', "/");
                    let names = [format!("{module}.py"), format!("{module}/__main__.py")];
                    found.extend(names.iter().flat_map(|name| files(name)));
                }
                _ => {}
            }
        }
        let task_files = TASK_FILES.iter().find(|(known, _)| *known == program);
        let task_files = task_files.map_or(&[][..], |(_, names)| *names);
        found.extend(task_files.iter().flat_map(|name| files(name)));
        found
    }

    /// The file of a program.
    fn program_file(&self, program: &str, here: &[PathBuf]) -> Option<PathBuf> {
        if program.contains('/') {
            let named = NamedFiles { directories: here, home: self.home.as_deref() };
            return named.places(program).find(|file| file.is_file());
        }
        let mut places =
            self.path.iter().flat_map(|folder| here.iter().map(move |it| it.join(folder)));
        places.find_map(|folder| {
            let file = folder.join(program);
            is_executable(&file).then_some(file)
        })
    }
}

/// Adds files with the digests of their content.
fn add(files: impl IntoIterator<Item = PathBuf>, found: &mut ServerPrograms) {
    for file in files {
        let file = countersign_shell::lexically_normal(&file);
        found.entry(file.display().to_string()).or_insert_with(|| content(&file));
    }
}

/// Programs that run the file that they are given, and are no interpreters of scripts.
const RUNTIMES: &[&str] = &[
    "dotnet", "java", "mono", "wasmtime", "wasmer", "node", "electron", "erl", "escript", "guile",
    "racket", "julia",
];

/// Programs that run tasks, and the files that say what these do.
const TASK_FILES: &[(&str, &[&str])] = &[
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
];

/// Returns `true` if a file has text, which may be code or settings, and no data.
fn is_text(file: &Path) -> bool {
    let mut first = Vec::new();
    let read =
        std::fs::File::open(file).and_then(|file| file.take(8 << 10).read_to_end(&mut first));
    read.is_ok() && !first.contains(&0)
}

/// The words of a text, without quotes, and the ones behind it.
fn split(text: &str, more: &[String]) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
    words.chain(more.iter().cloned()).collect()
}

/// A word that a shell reads as exactly this text.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn content(file: &Path) -> String {
    match digest_of(file, MAX_SIZE) {
        Ok(Some(digest)) => format!("sha256 {digest}"),
        Ok(None) => "is not there".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
    }
}
