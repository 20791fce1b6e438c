//! The reach of a program: which files it reads below the folders among its words, and of which it prints the names.
//!
//! By default `rg` and `git grep` skip hidden and ignored files, and `grep -r` reads all of them. We take an option that
//! widens the reach generously: by its first letters, or as a letter in a bundle. An option that narrows it has to be
//! certain, so a pattern that we cannot read leaves nothing out.

use super::command_words::CommandWords;
use super::find_words;
use super::find_words::FoundFiles;
use countersign_shell::program_files::program_name;

/// The reach of a program below the folders that it is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    /// `true` if files whose names begin with a dot are read, too.
    pub(crate) hidden: bool,
    /// `true` if files that git ignores are read, too.
    pub(crate) ignored: bool,
    /// `true` if links to files are opened.
    pub(crate) links: bool,
    /// `true` if links to folders are followed.
    pub(crate) follows: bool,
    /// If there are any: only files whose names match one of these patterns are read.
    pub(crate) only: Vec<String>,
    pub(crate) without: ExcludedNames,
    /// The levels of folders that are read, where they are limited.
    pub(crate) depth: Option<usize>,
    /// `true` if the program reads the directory that it starts in where it is given no folder.
    pub(crate) here: bool,
    /// `true` if the first operand is what is searched for, and no folder.
    pub(crate) search: bool,
    /// `true` if the last operand is where it writes.
    pub(crate) to_last: bool,
}

/// The names that a program leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ExcludedNames {
    /// Names of files, anywhere.
    pub(crate) files: Vec<String>,
    /// Names of folders, anywhere.
    pub(crate) folders: Vec<String>,
    /// Names of what is directly in the folder `.`.
    pub(crate) first: Vec<String>,
    /// The words that say so, which name no folder that is read.
    pub(crate) words: Vec<String>,
}

impl ExcludedNames {
    /// Patterns for files and folders: `x`, `x/` for a folder, `x/*` for what is in one, and `./x`.
    fn both(patterns: Vec<String>) -> Self {
        let mut found = Self::default();
        for pattern in &patterns {
            let folder = ["/**", "/*", "/"].iter().find_map(|end| pattern.strip_suffix(end));
            let name = folder.unwrap_or(pattern);
            let name = name.strip_prefix("**/").unwrap_or(name);
            match name.strip_prefix("./") {
                Some(name) if !name.contains('/') => found.first.push(name.to_owned()),
                _ if name.contains('/') || name.is_empty() => {}
                _ => {
                    found.folders.push(name.to_owned());
                    found.files.extend(folder.is_none().then(|| name.to_owned()));
                }
            }
        }
        Self { words: patterns, ..found }
    }
}

impl Reach {
    fn all() -> Self {
        Self { hidden: true, ignored: true, ..Self::default() }
    }

    fn of_found(found: FoundFiles, depth: Option<usize>, follows: bool, here: bool) -> Self {
        let without = ExcludedNames { files: found.without, ..ExcludedNames::default() };
        let only = found.only.map(|it| only(&it)).unwrap_or_default();
        let links = follows || !found.plain;
        Self { links, follows, only, without, depth, here, ..Self::all() }
    }
}

/// The use that the other commands of a text make of what one of them finds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    /// `true` if another command reads the files whose names this one prints.
    pub(super) names_are_taken: bool,
    /// `true` if another command shows what `git add` has added.
    pub(super) index_is_shown: bool,
}

/// Programs that show names and metadata of the files that they are given, or change them, and print no content.
pub(super) const OF_NAMES: &[&str] = &[
    "[", "basename", "chgrp", "chmod", "chown", "dirname", "du", "echo", "false", "gls", "gstat",
    "ln", "ls", "mkdir", "mv", "printf", "readlink", "realpath", "rm", "rmdir", "stat", "test",
    "touch", "true", "unlink",
];

const GREPS: &[&str] = &[
    "bzgrep",
    "egrep",
    "fgrep",
    "ggrep",
    "grep",
    "pcre2grep",
    "pcregrep",
    "rgrep",
    "ug",
    "ugrep",
    "xzgrep",
    "zgrep",
    "zstdgrep",
];

const LISTERS: &[&str] = &["dir", "eza", "exa", "gls", "ls", "lsd", "vdir"];

/// The reach of a command below the folders among its words; `None` where it reads nothing below them.
pub(crate) fn read(argv: &[String], flow: Flow) -> Option<Reach> {
    let (program, words) = argv.split_first()?;
    let name = program_name(program);
    let words = CommandWords(words);
    match name {
        _ if GREPS.contains(&name) => grep(name, &words),
        "rg" | "ripgrep" | "rga" => ripgrep(&words)
            .filter(|reach| reach.hidden || reach.ignored)
            .filter(|_| !words.any(&["--files"]) || flow.names_are_taken),
        "ack" => Some(Reach { here: true, search: true, ..Reach::all() }),
        "ag" | "pt" | "sift" => silver_searcher(&words).filter(|reach| reach.hidden),
        "find" | "gfind" | "bfs" => {
            let found = find_words::read(words.0);
            let runs = found.handed.iter().filter(|(name, _)| !OF_NAMES.contains(&&**name));
            let printed = found.printed.iter().filter(|_| flow.names_are_taken);
            let all = runs.map(|(_, it)| it.clone()).chain(printed.cloned()).reduce(FoundFiles::or);
            all.map(|it| Reach::of_found(it, found.depth, found.follows, found.here))
        }
        "fd" | "fdfind" => {
            let runs = words.letter("xX", FD_VALUES) || words.long(&["--exec"]);
            (runs || flow.names_are_taken).then(|| fd(&words)).filter(|it| it.hidden || it.ignored)
        }
        "git" => git(&words, flow),
        _ if flow.names_are_taken && (LISTERS.contains(&name) || matches!(name, "du" | "tree")) => {
            list(name, &words)
        }
        _ => copied(name, &words),
    }
}

/// The files of which a command prints the names, or which it deletes; `None` where it finds none.
pub(crate) fn named(argv: &[String]) -> Option<Reach> {
    let (program, words) = argv.split_first()?;
    let name = program_name(program);
    let words = CommandWords(words);
    match name {
        _ if GREPS.contains(&name) => grep(name, &words),
        "rg" | "ripgrep" | "rga" => ripgrep(&words).filter(|_| !is_of_code(&words)),
        "ack" => Some(Reach { here: true, search: true, ..Reach::all() }),
        "ag" | "pt" | "sift" => silver_searcher(&words),
        "find" | "gfind" | "bfs" => {
            let found = find_words::read(words.0);
            let handed = found.handed.iter().map(|(_, it)| it);
            let all = handed.chain(&found.printed).chain(&found.deleted).cloned();
            let all = all.reduce(FoundFiles::or)?;
            Some(Reach::of_found(all, found.depth, found.follows, found.here))
        }
        "fd" | "fdfind" => Some(fd(&words)),
        "git" if words.any(&["ls-files", "grep", "ls-tree"]) => {
            let ignored = git(&words, Flow { names_are_taken: true, ..Flow::default() });
            let patterns: Vec<String> =
                words.0.iter().filter(|it| it.contains('*')).cloned().collect();
            Some(Reach {
                hidden: true,
                ignored: ignored.is_some_and(|it| it.ignored),
                only: only(&patterns),
                here: true,
                search: patterns.is_empty(),
                ..Reach::default()
            })
        }
        _ => list(name, &words),
    }
}

/// Returns `true` if a command runs on files whose names are in a list that another one makes: `tar -T -`, `zip -@`.
pub(super) fn takes_list(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let words = CommandWords(words);
    let begins = words.0.first().map(String::as_str).unwrap_or_default();
    match program_name(program) {
        "tar" | "gtar" | "bsdtar" => {
            words.letter("T", "fCXb")
                || words.long(&["--files-f"])
                || !begins.starts_with('-') && begins.contains('T')
        }
        "zip" => words.letter("@", "") || words.any(&["@"]),
        "cpio" | "pax" | "afio" => true,
        "7z" | "7za" | "7zr" | "7zz" | "rar" => words.0.iter().any(|word| word.starts_with('@')),
        _ => words.long(&["--files-from", "--files0-f"]),
    }
}

/// Returns `true` if a command of git shows what is in its index or in the last commit.
pub(super) fn shows_index(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let words = CommandWords(words);
    let any = |wanted: &[&str]| words.any(wanted);
    program_name(program) == "git"
        && (any(&["diff"]) && (words.long(&["--cach", "--stag"]) || any(&["HEAD"]))
            || any(&[
                "show",
                "archive",
                "cat-file",
                "checkout-index",
                "format-patch",
                "stash",
                "fast-export",
            ])
            || any(&["log"]) && words.letter("p", "nSGL")
            || any(&["log", "commit"]) && words.long(&["--patch"])
            || any(&["commit"]) && words.letter("v", "mFCct"))
}

/// The options of `fd` with a value.
const FD_VALUES: &str = "edtEcjS";

fn fd(words: &CommandWords<'_>) -> Reach {
    let hidden = words.letter("Hu", FD_VALUES) || words.long(&["--hid", "--unres"]);
    let ignored = words.letter("Iu", FD_VALUES) || words.long(&["--no-ig", "--unres"]);
    let endings = words.values_of(Some('e'), FD_VALUES, ("--extension", 5));
    let endings: Vec<String> = endings.iter().map(|it| format!("*.{it}")).collect();
    Reach {
        hidden,
        ignored,
        links: true,
        only: only(&endings),
        here: true,
        search: true,
        ..Reach::default()
    }
}

fn silver_searcher(words: &CommandWords<'_>) -> Option<Reach> {
    let ignored = words.letter("uUa", "") || words.long(&["--unres", "--all", "--skip-vcs"]);
    let hidden = ignored || words.long(&["--hidden"]);
    Some(Reach { hidden, ignored, here: true, search: true, ..Reach::default() })
}

/// The reach of a program that lists folders.
fn list(name: &str, words: &CommandWords<'_>) -> Option<Reach> {
    let here = words.0.iter().all(|word| word.starts_with('-'));
    let reach = Reach { ignored: true, links: true, here, ..Reach::default() };
    if LISTERS.contains(&name) {
        const VALUES: &str = "IwT";
        let is_deep = words.letter("R", VALUES) || words.long(&["--rec"]);
        let hidden = words.letter("aAf", VALUES)
            || words.long(&["--al"])
            || words.0.iter().any(|word| word.starts_with(".*") || word.contains("/.*"));
        return Some(Reach { hidden, depth: (!is_deep).then_some(1), ..reach });
    }
    match name {
        "du" => Some(Reach { hidden: true, ..reach }),
        "tree" => Some(Reach { hidden: words.letter("a", "LPIo"), ..reach }),
        _ => None,
    }
}

/// The reach of a program that compares, packs, copies or sends folders.
fn copied(name: &str, words: &CommandWords<'_>) -> Option<Reach> {
    let linked = || Reach { links: true, follows: true, ..Reach::all() };
    match name {
        "diff" | "gdiff" | "colordiff" => {
            let is_deep = words.letter("r", "IUWxXDLFS")
                || words.long(&["--rec"])
                || words.has_unknown_option("IUWxXDLFS");
            let without = ExcludedNames::both(words.values(&["-x", "--exclude"]));
            is_deep.then(|| Reach { without, ..linked() })
        }
        "tar" | "gtar" | "bsdtar" => {
            let first = words.0.first().map(String::as_str).unwrap_or_default();
            let writes = !first.starts_with('-') && first.contains(['c', 'r', 'u'])
                || words.letter("cru", "fCTXb")
                || words.long(&["--cr", "--ap", "--up", "--cat", "--conc"])
                || words.has_unknown_option("fCTXb");
            let follows = words.letter("h", "fCTXb")
                || words.long(&["--der"])
                || !first.starts_with('-') && first.contains('h');
            let without = ExcludedNames::both(words.values(&["--exclude"]));
            writes.then(|| Reach { links: follows, follows, without, ..Reach::all() })
        }
        "gzip" | "gunzip" | "pigz" | "bzip2" | "xz" | "zstd" | "zcat" | "gzcat" => {
            words.letter("r", "SoDTM").then(Reach::all)
        }
        "zip" => (words.letter("rR", "") || words.long(&["--recurse"])).then(linked),
        "7z" | "7za" | "7zr" | "7zz" | "rar" => words.any(&["a", "u"]).then(linked),
        "pax" => words.letter("w", "f").then(Reach::all),
        "ditto" => Some(Reach { to_last: true, ..Reach::all() }),
        "mksquashfs" => Some(Reach::all()),
        "cp" | "gcp" | "scp" | "rsync" => {
            let is_deep = words.letter("rRa", "")
                || words.long(&["--rec", "--ar"])
                || words.has_unknown_option("");
            let follows = words.letter("L", "") || words.long(&["--der", "--copy-l"]);
            let without = ExcludedNames::both(words.values(&["--exclude"]));
            let to_last = !words.letter("t", "") && !words.long(&["--target"]);
            is_deep.then(|| Reach { links: follows, follows, without, to_last, ..Reach::all() })
        }
        "rclone" | "gsutil" | "s3cmd" | "gcloud" | "aws" => words
            .any(&["cp", "copy", "sync", "mv", "move", "put", "rsync"])
            .then(|| Reach { to_last: true, ..linked() }),
        "docker" | "podman" | "nerdctl" | "buildah" | "kubectl" | "oc" => {
            words.any(&["build", "bud", "cp"]).then(Reach::all)
        }
        _ => None,
    }
}

/// The options of `grep` with a value.
const GREP_VALUES: &str = "efmABCDd";

fn grep(name: &str, words: &CommandWords<'_>) -> Option<Reach> {
    let follows = words.letter("RS", GREP_VALUES) || words.long(&["--de"]);
    let directories = words.values_of(Some('d'), GREP_VALUES, ("--directories", 4));
    let recurses = |value: &String| "recurse".starts_with(&**value) || value.contains('$');
    let is_deep = name == "rgrep"
        || follows
        || words.letter("r", GREP_VALUES)
        || words.long(&["--rec"])
        || words.has_unknown_option(GREP_VALUES)
        || directories.iter().any(recurses);
    let included = words.values_of(None, "", ("--include", 5));
    let excluded = words.values(&["--exclude"]);
    let folders = words.values(&["--exclude-dir"]);
    // Of both, the first says what becomes of other files.
    let choice = |word: &&String| {
        word.starts_with("--inc")
            || word.starts_with("--exclude") && !word.starts_with("--exclude-d")
    };
    let includes = words.0.iter().find(choice).is_some_and(|first| first.starts_with("--inc"));
    let bare = |all: &[String], ends: &str| -> Vec<String> {
        let names = all.iter().map(|it| it.trim_end_matches(|c| ends.contains(c)));
        names.filter(|it| !it.contains('/')).map(str::to_owned).collect()
    };
    let without = ExcludedNames {
        files: if included.is_empty() { bare(&excluded, "") } else { Vec::new() },
        folders: bare(&folders, "/"),
        first: Vec::new(),
        words: [folders, excluded, included.clone()].concat(),
    };
    let only = if includes { only(&included) } else { Vec::new() };
    let reach =
        Reach { links: follows, follows, only, without, here: true, search: true, ..Reach::all() };
    is_deep.then_some(reach)
}

/// The options of `rg` with a value.
const RG_VALUES: &str = "efgtTmABCEjMrd";

/// A pattern of files (`-g`) also finds hidden and ignored ones that match it.
fn ripgrep(words: &CommandWords<'_>) -> Option<Reach> {
    let unrestricted = words.count('u', RG_VALUES) + words.count_long("--unres");
    let mut patterns = words.values_of(Some('g'), RG_VALUES, ("--glob", 6));
    patterns.extend(words.values(&["--iglob"]));
    let (without, with): (Vec<_>, Vec<_>) =
        patterns.into_iter().partition(|it| it.starts_with('!'));
    let chosen = !with.is_empty();
    let is_open = words.has_unknown_option(RG_VALUES);
    let hidden = unrestricted > 1
        || chosen
        || is_open
        || words.letter(".", RG_VALUES)
        || words.long(&["--hidden"]);
    let ignored = unrestricted > 0 || chosen || is_open || words.long(&["--no-ignore"]);
    let follows = words.letter("L", RG_VALUES) || words.long(&["--follow"]);
    // Of several patterns that fit, the last one decides.
    let without = match chosen {
        true => ExcludedNames { words: with.clone(), ..ExcludedNames::default() },
        false => ExcludedNames::both(
            without.iter().filter_map(|it| it.strip_prefix('!')).map(str::to_owned).collect(),
        ),
    };
    Some(Reach {
        hidden,
        ignored,
        links: follows,
        follows,
        only: only(&with),
        without,
        here: true,
        search: true,
        ..Reach::default()
    })
}

/// Returns `true` if `rg` looks at files of languages of code only, which decide nothing.
fn is_of_code(words: &CommandWords<'_>) -> bool {
    const CODE: &[&str] = &[
        "c",
        "cpp",
        "cs",
        "css",
        "go",
        "html",
        "java",
        "js",
        "kotlin",
        "php",
        "py",
        "python",
        "ruby",
        "rust",
        "scala",
        "swift",
        "ts",
        "typescript",
    ];
    let types = words.values_of(Some('t'), RG_VALUES, ("--type", 6));
    !types.is_empty() && types.iter().all(|it| CODE.contains(&&**it))
}

/// `git grep` and `git diff` read what git tracks, unless they are told to leave the repository aside; `git add` takes in
/// what is not ignored.
fn git(words: &CommandWords<'_>, flow: Flow) -> Option<Reach> {
    if words.any(&["add", "stage"]) && flow.index_is_shown {
        let ignored = words.letter("f", "") || words.long(&["--force"]);
        return Some(Reach { hidden: true, ignored, here: true, search: true, ..Reach::default() });
    }
    let standard = words.long(&["--exclude-standard"]);
    let outside = words.any(&["grep", "diff"]) && words.long(&["--no-i"]);
    let others = words.long(&["--o"]) || words.letter("o", "xX");
    let listed = words.any(&["ls-files"]) && others && flow.names_are_taken;
    let untracked = words.any(&["grep"]) && words.long(&["--un"]);
    let ignored = (outside || listed) && !standard || words.long(&["--no-exclude-standard"]);
    (outside || listed || untracked).then(|| Reach {
        ignored,
        here: true,
        search: true,
        ..Reach::all()
    })
}

/// The patterns of names by which only some files are read. Of a pattern with folders the last part counts; beside one that
/// is not read here, any file may be read.
pub(crate) fn only(patterns: &[String]) -> Vec<String> {
    let last = |pattern: String| {
        let last = pattern.rsplit('/').next().filter(|it| !it.is_empty() && *it != "**")?;
        let is_plain = |c: char| c.is_alphanumeric() || "*?._-".contains(c);
        last.chars().all(is_plain).then(|| last.to_owned())
    };
    patterns
        .iter()
        .flat_map(|it| alternatives(it))
        .map(last)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// The patterns that one with braces stands for: `*.ts` and `*.js` for `*.{ts,js}`.
fn alternatives(pattern: &str) -> Vec<String> {
    let split =
        pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match split {
        Some((before, (inside, after))) if !inside.contains('{') && !after.contains('{') => {
            inside.split(',').map(|it| format!("{before}{it}{after}")).collect()
        }
        _ => vec![pattern.to_owned()],
    }
}
