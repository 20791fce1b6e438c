//! The files that a command runs: the scripts that its words name, and the names of the programs that run them.
//!
//! `python3 x.py` says nothing about what happens: the file does. So we bind a question about such a command to the
//! content of the file, and the acceptance of a server that such a command starts.
//!
//! | command | scripts |
//! |---|---|
//! | `python3 x.py data.csv`, `./x.sh`, `sh < x.sh` | `x.py`, `x.sh`: the operand of an interpreter, and no data |
//! | `python3 -m pkg.tool` | `pkg/tool.py` or `pkg/tool/__main__.py` |
//! | `node server` | `server.js`, `server/index.js` and so on, whichever is there |
//! | `runner x.py y.csv` | `x.py`: a program that is not known may run every script that it names |
//!
//! ```
//! use std::path::Path;
//! use countersign_shell::program_files::NamedFiles;
//! use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("x.py"), "print(1)")?;
//! let classifier = Classifier::new(Workspace::lexical(folder.path()), Preset::Developer)
//!     .with_search_path(SearchPath::unchecked());
//! let judgement = classifier.judge("python3 x.py data.csv", Dialect::Bash);
//! let files = NamedFiles { directories: &[folder.path().to_owned()], home: None };
//! assert!(files.scripts(&judgement.parts()[0]).contains(Path::new(&folder.path().join("x.py"))));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::places::files::opened;
pub use crate::places::script_files::{is_executable, is_script, program_name, without_version};
use crate::{Part, lexically_normal};

/// Programs that run the files that they are given, whatever these are called.
const INTERPRETERS: &[&str] = &[
    ".", "ash", "awk", "bash", "bun", "dash", "deno", "exec", "fish", "gawk", "ksh", "lua", "node",
    "perl", "php", "pwsh", "pypy", "python", "Rscript", "ruby", "sh", "source", "tclsh", "ts-node",
    "tsx", "zsh",
];

/// The endings that interpreters add to the name of a script that they are given: `node server` runs `server.js`.
const SCRIPTS: &[&str] = &[
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

/// The endings that they add besides to a name that code loads: `import x` loads `x.py`.
const MODULES: &[&str] = &[".py", "/__init__.py", ".pm"];

impl Part {
    /// The name of the program as it is written, without its folder.
    #[must_use]
    pub fn program_name(&self) -> &str {
        program_name(self.written_program())
    }
}

/// Whether a program runs every file that it is given, as `python3.12` and `/bin/sh` do.
#[must_use]
pub fn is_interpreter(program: &str) -> bool {
    let base = without_version(program_name(program));
    INTERPRETERS.contains(&base) || INTERPRETERS.contains(&program)
}

/// The texts of a command that may name a file: its words, the values behind `=`, the file in `x.py:object`, and what it
/// reads its input from.
#[must_use]
pub fn words(part: &Part) -> Vec<&str> {
    let input = part.redirections().iter().filter_map(|it| it.target().word());
    let words = part.argv().iter().map(String::as_str);
    let words = words.chain(input.map(|word| word.text()));
    let value = |word| str::split_once(word, '=').map(|(_, value)| value);
    let file = |word: &'_ str| word.find(".py:").map(|at| at + 3);
    let of = |word| [Some(word), value(word), file(word).and_then(|end| str::get(word, ..end))];
    words.flat_map(of).flatten().collect()
}

/// Where the words of a command name files.
#[derive(Debug, Clone, Copy)]
pub struct NamedFiles<'p> {
    /// The directories that the command may start in.
    pub directories: &'p [PathBuf],
    /// The folder that `~` is, if it is known.
    pub home: Option<&'p Path>,
}

impl NamedFiles<'_> {
    /// The places that a word of a command may name.
    pub fn places<'w>(&'w self, word: &'w str) -> impl Iterator<Item = PathBuf> + 'w {
        let home = word.strip_prefix("~/").and_then(|rest| Some(self.home?.join(rest)));
        let is_path = !word.is_empty() && word.len() <= 4096 && !word.contains(['\0', '\n']);
        let directories = self.directories.iter().filter(move |_| is_path);
        directories.map(move |directory| {
            lexically_normal(&home.clone().unwrap_or_else(|| directory.join(word)))
        })
    }

    /// The files that code loads by a name without an ending, as far as they are there: `import x`, `require('./x')`.
    #[must_use]
    pub fn modules(&self, name: &str) -> Vec<PathBuf> {
        self.with_endings(name, SCRIPTS.iter().chain(MODULES))
    }

    fn with_endings<'e>(
        &self,
        name: &str,
        endings: impl Iterator<Item = &'e &'e str>,
    ) -> Vec<PathBuf> {
        let names = endings.map(|ending| format!("{name}{ending}"));
        let files = names.flat_map(|name| self.places(&name).collect::<Vec<_>>());
        files.filter(|file| file.is_file()).collect()
    }

    /// The scripts that a command names, as far as they are there.
    #[must_use]
    pub fn scripts(&self, part: &Part) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let runs_any = is_interpreter(part.written_program());
        let mut operand_is_script = runs_any;
        let mut before = "";
        for (at, word) in words(part).into_iter().enumerate() {
            // A name without a folder is looked up in `PATH`, unless it is an operand.
            if at == 0 && !word.contains('/') {
                continue;
            }
            let endings = if operand_is_script && at > 0 { SCRIPTS } else { &[] };
            for file in self.with_endings(word, [""].iter().chain(endings)) {
                if operand_is_script || is_script(&file) {
                    // The value of an option (`--rcfile x`) may be a script, and the operand is another one.
                    operand_is_script &= before.starts_with('-') && !is_script(&file);
                    files.insert(file);
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
            // Python runs the packages around a module first.
            let around = module.match_indices('/').filter_map(|(at, _)| module.get(..at));
            let packages = around.chain([module.as_str()]).map(|it| format!("{it}/__init__.py"));
            let own = [format!("{module}.py"), format!("{module}/__main__.py")];
            for name in packages.chain(own) {
                files.extend(self.places(&name).filter(|file| file.is_file()));
            }
        }
        files
    }
}

/// The SHA-256 of the content of a regular file, in hexadecimal; `None` if there is none. The content is not kept.
///
/// # Errors
/// The file has more than `most` bytes, is no regular file, or cannot be read.
pub fn digest_of(path: &Path, most: u64) -> io::Result<Option<String>> {
    let Some(file) = opened(path)? else { return Ok(None) };
    let (mut content, mut hash) = (file.take(most.saturating_add(1)), Sha256::new());
    let (mut read, mut block) = (0, vec![0; 64 * 1024]);
    loop {
        let length = content.read(&mut block)?;
        let Some(part) = block.get(..length).filter(|part| !part.is_empty()) else { break };
        read += part.len() as u64;
        hash.update(part);
    }
    match read <= most {
        true => Ok(Some(countersign::args::hex(&hash.finalize()))),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}
