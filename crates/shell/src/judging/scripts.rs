//! Checks of scripts for programs such as `sed` and `awk`: whether they could run programs, or read or write other
//! files.
//!
//! Each check knows a subset of its language and refuses the rest.
//!
//! | language | can reach beyond its input by | accepted |
//! |---|---|---|
//! | `sed` | `e`, `w`, `r`, the flags `e` and `w` of `s` | commands that print, delete and substitute |
//! | `awk` | `system`, pipes, `getline`, redirections, `ENVIRON` | scripts without any of these words |
//! | `jq` | `env`, `import` | filters without them |
//! | `yq` | `env`, `load`, `system` and their spellings | filters of operators that are listed (`yq`) |
//! | SQL | every statement but one `SELECT`, and functions that open files | one plain `SELECT` |
//! | `test`, `[` | an index of an array, which is evaluated | words without `[` |
//!
//! They are not parsers of those languages. Each looks for what could do harm, in a way that errs on the side of
//! refusing: where it is not certain that a `|` of `awk` is in a string or a pattern, it is refused.

use crate::table::{SENDS_OUT, parts};

pub(crate) fn sed(script: &str) -> Result<(), String> {
    Sed { rest: script }.script()
}

struct Sed<'a> {
    rest: &'a str,
}

impl Sed<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    fn skip(&mut self, what: &[char]) {
        self.rest = self.rest.trim_start_matches(what);
    }

    fn script(&mut self) -> Result<(), String> {
        loop {
            self.skip(&[' ', '\t', '\n', ';']);
            if self.rest.is_empty() {
                return Ok(());
            }
            self.address()?;
            self.skip(&[' ', '\t']);
            if self.peek() == Some(',') {
                self.bump();
                self.skip(&[' ', '\t']);
                self.skip(&['+', '~']);
                self.address()?;
            }
            self.skip(&[' ', '\t', '!']);
            self.command()?;
        }
    }

    fn address(&mut self) -> Result<(), String> {
        match self.peek() {
            Some('0'..='9') => {
                self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~');
            }
            Some('$') => {
                self.bump();
            }
            Some(delimiter @ ('/' | '\\')) => {
                self.bump();
                let delimiter = if delimiter == '\\' { self.bump().unwrap_or('/') } else { '/' };
                self.delimited(delimiter, true)?;
                self.skip(&['I', 'M']);
            }
            _ => {}
        }
        Ok(())
    }

    /// Skips to a delimiter that is not escaped. A delimiter within `[…]` is refused: some versions of `sed` end the
    /// pattern there, others do not. `]` is the first character of `[]x]` and `[^]x]`, and `[:x:]` a class in `[[:x:]y]`.
    fn delimited(&mut self, delimiter: char, has_brackets: bool) -> Result<(), String> {
        let (mut bracket, mut first) = (false, false);
        while let Some(next) = self.bump() {
            let is_first = std::mem::take(&mut first);
            match next {
                '^' if is_first => first = true,
                ']' if is_first => {}
                '[' if bracket && matches!(self.peek(), Some(':' | '.' | '=')) => {
                    let mark = self.bump().unwrap_or(':');
                    let end = format!("{mark}]");
                    let class = self
                        .rest
                        .split_once(&*end)
                        .filter(|(class, _)| class.chars().all(char::is_alphanumeric));
                    self.rest = class.ok_or("a class without its end")?.1;
                }
                '\\' => {
                    self.bump();
                }
                _ if next == delimiter && bracket => return Err("a delimiter within `[…]`".into()),
                _ if next == delimiter => return Ok(()),
                '[' if has_brackets => {
                    first = !bracket;
                    bracket = true;
                }
                ']' => bracket = false,
                '\n' => return Err("a line break in a pattern".into()),
                _ => {}
            }
        }
        Err("a pattern without its end".into())
    }

    fn command(&mut self) -> Result<(), String> {
        match self.bump() {
            Some('{' | '}') => Ok(()),
            Some(command @ (':' | 'b' | 't' | 'T')) => self.label(command == ':'),
            Some('p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z') => {
                self.end()
            }
            Some('q' | 'Q' | 'l') => {
                self.skip(&[' ']);
                self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
                self.end()
            }
            Some('s') => self.substitute(),
            Some('y') => {
                let delimiter = self.bump().ok_or("`y` without its characters")?;
                self.delimited(delimiter, false)?;
                self.delimited(delimiter, false)?;
                self.end()
            }
            Some('a' | 'i' | 'c') => {
                // The text ends with the line. With a backslash it may continue on the next line, which is refused.
                let line = self.rest.split('\n').next().unwrap_or_default();
                if line.trim_start_matches(['\\', ' ']).contains('\\')
                    || line.trim_end().ends_with('\\')
                {
                    return Err("text over several lines".into());
                }
                self.rest = self.rest.get(line.len()..).unwrap_or_default();
                Ok(())
            }
            Some(command @ ('e' | 'w' | 'W')) => {
                Err(format!("`{command}` runs a command or writes a file"))
            }
            Some(command @ ('r' | 'R')) => Err(format!("`{command}` reads another file")),
            Some(command) => Err(format!("`{command}` is not analysed")),
            None => Err("an address without a command".into()),
        }
    }

    /// Reads the name of a place in the script. To some versions it ends with the line, and what follows is no command.
    fn label(&mut self, is_needed: bool) -> Result<(), String> {
        self.skip(&[' ', '\t']);
        let before = self.rest;
        self.rest = before.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        // The next line would begin within a text to the versions that read on.
        let line = self.rest.split('\n').next().unwrap_or_default();
        if is_needed && before.len() == self.rest.len()
            || line.contains('\\') && line.len() < self.rest.len()
        {
            return Err("a label that may end elsewhere".into());
        }
        self.end()
    }

    fn substitute(&mut self) -> Result<(), String> {
        let delimiter = self
            .bump()
            .filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | '\n' | ' '))
            .ok_or("`s` without a pattern")?;
        self.delimited(delimiter, true)?;
        self.delimited(delimiter, false)?;
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => {
                    self.bump();
                }
                Some('e') => return Err("the flag `e` runs the result as a command".into()),
                Some('w') => {
                    self.bump();
                    return self.stream();
                }
                _ => return self.end(),
            }
        }
    }

    /// Reads the name of a file, to which the rest of the line belongs.
    fn stream(&mut self) -> Result<(), String> {
        let line = self.rest.split('\n').next().unwrap_or_default();
        self.rest = self.rest.get(line.len()..).unwrap_or_default();
        match line.trim_start() {
            "/dev/stdout" | "/dev/stderr" => Ok(()),
            _ => Err("`w` writes a file".into()),
        }
    }

    /// Checks that a command ends here.
    fn end(&mut self) -> Result<(), String> {
        self.skip(&[' ', '\t']);
        match self.peek() {
            None | Some(';' | '\n' | '}') => Ok(()),
            Some('#') => Err("a comment".into()),
            Some(other) => Err(format!("`{other}` behind a command")),
        }
    }
}

/// Returns `true` if a script contains a name as a whole word.
fn names(script: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    script.match_indices(name).any(|(at, _)| {
        let before = script.get(..at).and_then(|text| text.chars().next_back());
        let after = script.get(at + name.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Strings, patterns and comments are left out before the rest is searched. Where it is not certain which they are, any `|`
/// and any `>` behind a `print` is refused.
pub(crate) fn awk(script: &str) -> Result<(), String> {
    for name in [
        "system",
        "getline",
        "ENVIRON",
        "ARGV",
        "ARGC",
        "PROCINFO",
        "SYMTAB",
        "FUNCTAB",
        "namespace",
    ] {
        if names(script, name) {
            return Err(format!("`{name}` reaches beyond the input"));
        }
    }
    if script.contains('@') {
        return Err("`@` includes or calls other code".into());
    }
    if script.contains("\\\n") {
        return Err("a continued line".into());
    }
    let (code, is_exact) = match Awk::default().code(script) {
        Some(code) => (code, true),
        None => (script.to_owned(), false),
    };
    if code.replace("||", "").contains('|') {
        return Err("`|` may run a command".into());
    }
    match code.find("print").zip(code.rfind('>')) {
        Some((print, redirection)) if print < redirection && (!is_exact || redirects(&code)) => {
            Err("`>` may write a file".into())
        }
        _ => Ok(()),
    }
}

/// Returns `true` if a `>` may follow a `print` in its statement, outside of parentheses. A script whose parentheses
/// do not fit is taken for one that does.
///
/// It is for code without strings, patterns and comments: within these, `;` and `)` end nothing.
fn redirects(code: &str) -> bool {
    let mut depth = 0_i32;
    let mut printing = false;
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        let before = code.get(..code.len() - rest.len()).unwrap_or_default();
        printing |= rest.starts_with("print");
        match next {
            '(' => depth += 1,
            ')' => depth -= 1,
            // A statement continues after a line that ends in an operator.
            '\n' if before.trim_end().ends_with([',', '&', '|', '?', ':']) => {}
            ';' | '\n' | '{' | '}' if depth == 0 => printing = false,
            '>' if printing && depth == 0 => return true,
            _ => {}
        }
        if depth < 0 {
            return true;
        }
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    depth != 0
}

/// Finds the strings, patterns and comments of `awk`.
///
/// A `/` begins a pattern where a value is expected, and divides after one. Where it may do either (behind `)`, `=` or a
/// keyword), a script with strings or patterns is not taken apart, and neither is one with a quote in a pattern: with the
/// other reading, they would be elsewhere.
#[derive(Default)]
struct Awk {
    code: String,
    literals: bool,
    doubts: bool,
}

/// The meaning of a `/`, by what stands before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slash {
    Begins,
    Divides,
    Either,
}

/// Words of `awk` behind which a value may follow, although they are written like names.
const AWK_WORDS: &[&str] = &[
    "BEGIN", "END", "break", "case", "continue", "default", "delete", "do", "else", "exit", "for",
    "func", "function", "getline", "if", "in", "length", "next", "nextfile", "print", "printf",
    "return", "switch", "while",
];

impl Awk {
    /// The script with `""` for each string, `0` for each pattern and nothing for each comment; `None` where that is not
    /// certain.
    fn code(mut self, script: &str) -> Option<String> {
        let mut rest = script.chars();
        while let Some(next) = rest.next() {
            match next {
                '"' => {
                    self.literals = true;
                    let text = literal(&mut rest, '"')?;
                    self.forget_stream(&text, rest.as_str());
                    self.code.push_str("\"\"");
                }
                '/' => match self.slash() {
                    Slash::Begins => {
                        self.literals = true;
                        if literal(&mut rest, '/')?.contains(['"', '[', '#']) {
                            return None;
                        }
                        self.code.push('0');
                    }
                    meaning => {
                        self.doubts |= meaning == Slash::Either;
                        self.code.push('/');
                    }
                },
                // A comment ends with its line, and the line does not belong to it. It may hold a quote.
                '#' => {
                    self.literals = true;
                    let line = rest.as_str().split('\n').next().unwrap_or_default();
                    rest = rest.as_str().get(line.len()..).unwrap_or_default().chars();
                }
                next => self.code.push(next),
            }
        }
        (!(self.doubts && self.literals)).then_some(self.code)
    }

    /// Forgets the redirection in front of a text, where it names an output of the program and is a whole name: no text follows,
    /// which would become a part of it.
    fn forget_stream(&mut self, text: &str, rest: &str) {
        let ends = rest.trim_start_matches([' ', '\t']).starts_with([';', '}', '\n']);
        if ends && matches!(text, "/dev/stdout" | "/dev/stderr") {
            let before = self.code.trim_end_matches(' ').trim_end_matches('>').len();
            self.code.truncate(before);
        }
    }

    fn slash(&self) -> Slash {
        let before = self.code.trim_end_matches([' ', '\t']);
        match before.chars().next_back() {
            None => Slash::Begins,
            Some(last) if "(,{};!~&|\n".contains(last) => Slash::Begins,
            Some(last) if last == '_' || last.is_ascii_alphanumeric() => {
                let part = |c: char| c == '_' || c.is_ascii_alphanumeric();
                let word = before.rsplit(|c: char| !part(c)).next().unwrap_or_default();
                if AWK_WORDS.contains(&word) { Slash::Either } else { Slash::Divides }
            }
            Some(']') => Slash::Divides,
            Some(_) => Slash::Either,
        }
    }
}

/// Skips to the end of a string or pattern, and returns it.
fn literal(rest: &mut std::str::Chars<'_>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            '\\' => text.extend(['\\', rest.next()?]),
            '\n' => return None,
            next if next == end => return Some(text),
            next => text.push(next),
        }
    }
}

pub(crate) fn jq(script: &str) -> Result<(), String> {
    for name in ["import", "include", "modulemeta", "get_search_list", "ENV", "__prog_args"] {
        if names(script, name) {
            return Err(format!("`{name}` reaches beyond the input"));
        }
    }
    let environment = script.match_indices("env").any(|(at, _)| {
        let before = script.get(..at).and_then(|text| text.chars().next_back());
        let after = script.get(at + 3..).and_then(|text| text.chars().next());
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // Between two texts there is no name: this is a text.
        let is_text = before == Some('"') && after == Some('"');
        !before.is_some_and(|c| part(c) || c == '.') && !after.is_some_and(part) && !is_text
    });
    if environment { Err("`env` is the environment".into()) } else { Ok(()) }
}

/// Returns `true` for an SQL statement that may read rows, and with them views.
pub(crate) fn reads_rows(text: &str) -> bool {
    let lower = text.trim().to_ascii_lowercase();
    ["select ", "with ", "explain select ", "explain query plan "]
        .iter()
        .any(|word| lower.starts_with(word))
}

/// Accepts one SQL statement that only reads.
pub(crate) fn sql(text: &str) -> Result<(), String> {
    let text = text.trim().trim_end_matches(';');
    let lower = text.to_ascii_lowercase();
    let dot = lower.strip_prefix(".schema").or_else(|| lower.strip_prefix(".tables"));
    let dot = dot.or_else(|| lower.strip_prefix(".indexes"));
    if dot.is_some_and(|table| {
        table.is_empty() || table.starts_with(' ') && name(table.trim()).is_ok()
    }) {
        return Ok(());
    }
    // These show the parts of a table of SQLite; other pragmas change how the file is written.
    let about = lower.strip_prefix("pragma ").and_then(|rest| rest.trim().strip_suffix(')'));
    let shown = ["table_info", "table_xinfo", "index_list", "index_info", "foreign_key_list"];
    if about
        .and_then(|rest| rest.split_once('('))
        .is_some_and(|(pragma, table)| shown.contains(&pragma) && name(table).is_ok())
    {
        return Ok(());
    }
    let reads = reads_rows(text);
    let names_more = [
        "load_extension",
        "readfile",
        "writefile",
        "into",
        "attach",
        "pragma",
        "edit",
        "fts3_tokenizer",
        "fsdir",
        "zipfile",
        "sqlar_uncompress",
        "pg_read_file",
        "copy",
        "dblink",
        "lo_import",
        "lo_export",
        "pg_ls_dir",
        "eval",
        "insert",
        "update",
        "delete",
        "drop",
    ];
    if !reads
        || text.contains(';')
        || text.contains("--")
        || text.contains("/*")
        || names_more.iter().any(|name| names(&lower, name))
    {
        return Err("only one plain `SELECT` is known to read".into());
    }
    Ok(())
}

/// Checks an operand of `test` and `[`. Shells evaluate the index of an array element (`a[…]`), and the index may run a
/// command.
pub(crate) fn test(word: &str) -> Result<(), String> {
    if word.contains('[') && word.len() > 1 {
        Err("an index may run a command".into())
    } else {
        Ok(())
    }
}

/// Checks a field of a request to GraphQL: a variable, or the text of queries. A mutation changes something, and `@file`
/// would be read.
pub(crate) fn graphql(field: &str) -> Result<(), String> {
    let (name, value) = field.split_once('=').ok_or("a field is `name=value`")?;
    if value.starts_with('@') {
        return Err("a value that begins with `@` is a file".into());
    }
    if let Some(word) = ["mutation", "subscription"].iter().find(|word| names(value, word)) {
        return Err(format!("`{word}` is no query"));
    }
    // Any other name of a text of operations would be read as one.
    match name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']')) {
        true => Ok(()),
        false => Err("it is not a plain name".into()),
    }
}

/// Checks an argument of a task of the workspace: a plain word, none of whose parts sends something out or runs code.
pub(crate) fn argument(word: &str) -> Result<(), String> {
    name(word)?;
    let word = word.to_ascii_lowercase();
    match parts(&word).find(|part| SENDS_OUT.contains(part) || matches!(*part, "exec" | "eval")) {
        Some(part) => Err(format!("`{part}` does more than a build")),
        None => Ok(()),
    }
}

/// Checks the name of a branch or a tag. `x:y` renames what is fetched, and `+x` overwrites.
pub(crate) fn branch(word: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    match word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(plain)
        && !word.contains("..")
    {
        true => Ok(()),
        false => Err("it is not the plain name of a branch".into()),
    }
}

/// Checks a plain name or number. `zsh` evaluates numbers as expressions, in which an index may run a command.
pub(crate) fn name(word: &str) -> Result<(), String> {
    match word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_')) {
        true => Ok(()),
        false => Err("it is not a plain name or number".into()),
    }
}

/// Checks a format of `curl --write-out`, which may be read from a file and may write files.
pub(crate) fn template(format: &str) -> Result<(), String> {
    match format.starts_with('@') || format.contains("%output") {
        true => Err("it reads or writes a file".into()),
        false => Ok(()),
    }
}

/// Parts of a container's description that have its environment, or may have a part of it.
const WITH_ENVIRONMENT: &[&str] = &[
    "",
    "config",
    "containerconfig",
    "containerspec",
    "createcommand",
    "previousspec",
    "settings",
    "spec",
    "tasktemplate",
];

/// Checks a format of a container's description. The environment of a container may hold secrets, so that neither it
/// nor a part that contains it may be named.
pub(crate) fn fields(format: &str) -> Result<(), String> {
    // `$` alone is what the format is about, and a variable is what it was set to.
    let is_root = |part: &str| {
        let mut behind = part.split('$').skip(1);
        behind.any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let named = |part: &str| {
        part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).any(|name| {
            let last = name.rsplit('.').next().unwrap_or_default();
            let whole = name.len() > 1 && name.starts_with('.') || name == ".";
            name.split('.').any(|field| field.eq_ignore_ascii_case("env"))
                || whole && WITH_ENVIRONMENT.contains(&&*last.to_ascii_lowercase())
        })
    };
    let mut inside = format.split("{{").skip(1).map(|part| part.split("}}").next().unwrap_or(part));
    let may_show = inside.any(|part| is_root(part) || named(part));
    match may_show || format.to_ascii_lowercase().contains("env") {
        true => Err("it may show the environment, which may hold secrets".into()),
        // An empty format, and `json`. That of another program has a field: `custom-columns=NAME:.metadata.name`.
        false if !format.contains("{{") && !format.contains('=') => {
            Err("it shows everything".into())
        }
        false => Ok(()),
    }
}
