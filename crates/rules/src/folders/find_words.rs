//! The files that an expression of `find` finds, and what it does with them.
//!
//! ```text
//! find . -type f ( -name '*.ts' -o -name '*.rs' ) -not -path './target/*' -exec cat {} +
//! ```
//!
//! An action gets the files that the tests in front of it let through. Tests behind it, and the words of `-exec`, change
//! nothing about that. `-o` joins the files of both sides, and `!` only narrows. A test that we cannot read finds any file.

use super::command_words::CommandWords;
use countersign_shell::program_files::program_name;

/// The files that were let through by the tests so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFiles {
    /// Patterns of names; `None` for any name.
    pub(crate) only: Option<Vec<String>>,
    /// Names that are left out.
    pub(crate) without: Vec<String>,
    /// `true` if these are plain files, and no links.
    pub(crate) plain: bool,
}

impl FoundFiles {
    fn all() -> Self {
        Self { only: None, without: Vec::new(), plain: false }
    }

    /// The files that either side finds.
    pub(crate) fn or(self, other: Self) -> Self {
        let only = match (self.only, other.only) {
            (Some(mut all), Some(more)) => {
                all.extend(more);
                Some(all)
            }
            _ => None,
        };
        let mut without = self.without;
        without.retain(|it| other.without.contains(it));
        Self { only, without, plain: self.plain && other.plain }
    }

    /// The files that both tests find. Of two patterns the first is enough.
    fn and(self, other: Self) -> Self {
        let mut without = self.without;
        without.extend(other.without);
        Self { only: self.only.or(other.only), without, plain: self.plain || other.plain }
    }
}

/// The effect of a `find`.
#[derive(Debug, Clone)]
pub(crate) struct FindExpression {
    /// The files whose names it prints.
    pub(crate) printed: Option<FoundFiles>,
    /// The files that it hands to other programs, each with the name of its program.
    pub(crate) handed: Vec<(String, FoundFiles)>,
    /// The files that it deletes.
    pub(super) deleted: Option<FoundFiles>,
    pub(crate) depth: Option<usize>,
    pub(crate) follows: bool,
    /// `true` if it is given no folder.
    pub(crate) here: bool,
}

/// Tests and options with one value.
const VALUED: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-inum",
    "-iregex",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-newer",
    "-path",
    "-ipath",
    "-perm",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-iwholename",
    "-xtype",
    "-name",
    "-iname",
    "-files0-from",
    "-printf",
    "-fprint",
    "-fprint0",
    "-fls",
];

struct FindReader<'w> {
    words: &'w [String],
    at: usize,
    found: FindExpression,
    has_action: bool,
}

/// Reads the words behind `find`.
pub(crate) fn read(words: &[String]) -> FindExpression {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-L" | "-H" | "-P" => at += 1,
            "-D" => at += 2,
            word if word.starts_with("-O") => at += 1,
            _ => break,
        }
    }
    let is_expression = |word: &String| {
        word.starts_with('-') && word.len() > 1 || matches!(word.as_str(), "(" | "!" | ")" | ",")
    };
    let here = words.get(at).is_none_or(is_expression);
    while words.get(at).is_some_and(|word| !is_expression(word)) {
        at += 1;
    }
    let options = CommandWords(words);
    let depth = options.values(&["-maxdepth"]).first().and_then(|it| it.parse().ok());
    let found = FindExpression {
        printed: None,
        handed: Vec::new(),
        deleted: None,
        depth,
        follows: options.any(&["-L", "-H", "-follow"]),
        here: here || options.any(&["-files0-from"]),
    };
    let mut reader = FindReader { words, at, found, has_action: false };
    let all = reader.either(&FoundFiles::all(), 0);
    // The rest is not read.
    let is_read = reader.at >= words.len();
    if !reader.has_action {
        reader.found.printed = Some(all);
    }
    if !is_read {
        reader.found.printed = Some(FoundFiles::all());
        reader.found.handed.iter_mut().for_each(|(_, it)| *it = FoundFiles::all());
    }
    reader.found
}

/// The levels of parentheses that are read.
const MAX_DEPTH: usize = 32;

impl FindReader<'_> {
    fn next(&mut self) -> Option<&str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    /// Tests that are joined by `-o`, or by `,`.
    fn either(&mut self, before: &FoundFiles, depth: usize) -> FoundFiles {
        let mut found = self.each(before, depth);
        while matches!(self.peek(), Some("-o" | "-or" | ",")) {
            self.at += 1;
            found = found.or(self.each(before, depth));
        }
        found
    }

    /// Tests that all have to hold.
    fn each(&mut self, before: &FoundFiles, depth: usize) -> FoundFiles {
        let mut found = before.clone();
        while let Some(word) = self.peek() {
            match word {
                "-o" | "-or" | "," | ")" => break,
                "-a" | "-and" => self.at += 1,
                _ => found = self.test(found, depth),
            }
        }
        found
    }

    fn test(&mut self, before: FoundFiles, depth: usize) -> FoundFiles {
        let Some(word) = self.next().map(str::to_owned) else { return before };
        match &*word {
            "!" | "-not" => self.taken_back(before, depth),
            "(" if depth >= MAX_DEPTH => {
                self.at = self.words.len() + 1;
                FoundFiles::all()
            }
            "(" => {
                let inner = self.either(&before, depth + 1);
                if self.peek() == Some(")") {
                    self.at += 1;
                }
                inner
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => self.exec(before),
            "-print" | "-print0" | "-ls" | "-printf" | "-fprint" | "-fprint0" | "-fls"
            | "-fprintf" => {
                self.at += match &*word {
                    "-fprintf" => 2,
                    "-print" | "-print0" | "-ls" => 0,
                    _ => 1,
                };
                self.has_action = true;
                add(&mut self.found.printed, &before);
                before
            }
            "-delete" => {
                self.has_action = true;
                add(&mut self.found.deleted, &before);
                before
            }
            word if VALUED.contains(&word) || word.starts_with("-newer") => {
                let value = self.next().map(str::to_owned).unwrap_or_default();
                before.and(tested(word, &value))
            }
            _ => before,
        }
    }

    /// A test that must not hold. What it has in it may still act.
    fn taken_back(&mut self, before: FoundFiles, depth: usize) -> FoundFiles {
        let is_name = matches!(self.peek(), Some("-name"));
        let value = self.words.get(self.at + 1).filter(|it| is_name && is_plain(it));
        let without: Vec<String> = value.cloned().into_iter().collect();
        let _ = self.test(before.clone(), depth);
        before.and(FoundFiles { without, ..FoundFiles::all() })
    }

    fn exec(&mut self, before: FoundFiles) -> FoundFiles {
        let program = self.peek().map(|it| program_name(it).to_owned()).unwrap_or_default();
        let mut last = String::new();
        while let Some(word) = self.next() {
            if word == ";" || word == "+" && last == "{}" {
                break;
            }
            last = word.to_owned();
        }
        self.has_action = true;
        self.found.handed.push((program, before.clone()));
        before
    }
}

fn add(known: &mut Option<FoundFiles>, more: &FoundFiles) {
    *known = Some(match known.take() {
        Some(known) => known.or(more.clone()),
        None => more.clone(),
    });
}

/// The files that a test with a value lets through.
fn tested(test: &str, value: &str) -> FoundFiles {
    let named = |name: &str| {
        let only = (is_plain(name) && !name.is_empty()).then(|| vec![name.to_owned()]);
        FoundFiles { only, ..FoundFiles::all() }
    };
    match test {
        "-name" | "-iname" => named(value),
        "-type" => FoundFiles { plain: value == "f", ..FoundFiles::all() },
        // A `*` stands for slashes, too: only what is behind the last one is certain.
        "-path" | "-ipath" | "-wholename" | "-iwholename" => {
            let tail = value.rsplit(['*', '?', ']']).next().unwrap_or_default();
            match tail.rsplit_once('/') {
                Some((_, name)) => named(name),
                None if tail.is_empty() || tail.len() == value.len() => FoundFiles::all(),
                None => named(&format!("*{tail}")),
            }
        }
        _ => FoundFiles::all(),
    }
}

fn is_plain(pattern: &str) -> bool {
    pattern.chars().all(|c| c.is_alphanumeric() || "*?._-".contains(c))
}
