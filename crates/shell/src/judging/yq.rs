//! The check of filters for `yq`: of each name in them it is known that it only computes.
//!
//! Two programs are called `yq`, with two languages. Both have operators that read files, the environment or a command's
//! output, and one of them takes these in many spellings (`load_str`, `strload`, `str_load`). So names that are harmless are
//! listed, and not the others. A name that may be a key is let through: `.load`, `{name: .x}`.

use super::scripts::jq;

/// The endings of documents that both programs read. Behind a dot, each is the name of a key.
const DOCUMENTS: &[&str] = &[".yaml", ".yml", ".json", ".toml", ".xml", ".csv", ".tsv"];

/// Returns `true` if a word may be the name of a file. A filter with other characters is none that is called like a secret.
pub(super) fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "/_-.~".contains(c))
}

/// Returns `true` for the name of a document.
pub(super) fn is_document(word: &str) -> bool {
    is_name(word) && DOCUMENTS.iter().any(|ending| word.ends_with(ending))
}

/// Operators and functions of both programs that compute from what they are given.
const OPERATORS: &[&str] = &[
    "abs",
    "add",
    "alias",
    "all",
    "anchor",
    "and",
    "any",
    "array_to_map",
    "arrays",
    "as",
    "ascii",
    "ascii_downcase",
    "ascii_upcase",
    "booleans",
    "capture",
    "catch",
    "ceil",
    "collect",
    "column",
    "combinations",
    "contains",
    "create_map",
    "date",
    "dateadd",
    "debug",
    "del",
    "delpaths",
    "di",
    "document_index",
    "documentindex",
    "downcase",
    "each",
    "elif",
    "else",
    "empty",
    "end",
    "endswith",
    "error",
    "explode",
    "false",
    "fi",
    "file_index",
    "fileindex",
    "filename",
    "filter",
    "first",
    "flatten",
    "floor",
    "foot_comment",
    "footcomment",
    "foreach",
    "format_datetime",
    "from_entries",
    "from_json",
    "from_unix",
    "from_yaml",
    "fromdate",
    "fromjson",
    "fromyaml",
    "getpath",
    "group_by",
    "groupby",
    "gsub",
    "has",
    "head_comment",
    "headcomment",
    "if",
    "implode",
    "in",
    "index",
    "indices",
    "infinite",
    "input",
    "inputs",
    "inside",
    "ireduce",
    "is_key",
    "isinfinite",
    "isnan",
    "isnormal",
    "isvalid",
    "iterables",
    "join",
    "key",
    "keys",
    "kind",
    "last",
    "leaf_paths",
    "length",
    "limit",
    "line",
    "line_comment",
    "linecomment",
    "ltrimstr",
    "map",
    "map_values",
    "mapvalues",
    "match",
    "max",
    "max_by",
    "merge",
    "min",
    "min_by",
    "nan",
    "not",
    "now",
    "nth",
    "null",
    "nulls",
    "numbers",
    "objects",
    "omit",
    "or",
    "parent",
    "parents",
    "path",
    "paths",
    "pick",
    "pivot",
    "pow",
    "range",
    "recurse",
    "recurse_down",
    "reduce",
    "repeat",
    "reverse",
    "rindex",
    "round",
    "rtrimstr",
    "scalars",
    "scan",
    "select",
    "setpath",
    "shuffle",
    "skip",
    "sort",
    "sort_by",
    "sort_keys",
    "sortkeys",
    "split",
    "split_doc",
    "splitdoc",
    "splits",
    "sqrt",
    "startswith",
    "strftime",
    "strings",
    "strptime",
    "style",
    "sub",
    "tag",
    "test",
    "then",
    "to_array",
    "to_entries",
    "to_json",
    "to_number",
    "to_props",
    "to_string",
    "to_unix",
    "to_yaml",
    "toarray",
    "todate",
    "tojson",
    "tonumber",
    "tostring",
    "toyaml",
    "transpose",
    "trim",
    "true",
    "try",
    "type",
    "tz",
    "unique",
    "unique_by",
    "uniqueby",
    "until",
    "upcase",
    "values",
    "walk",
    "while",
    "with",
    "with_dtf",
    "with_entries",
    "withentries",
];

/// Formats behind `@`.
const FORMATS: &[&str] = &[
    "base64", "base64d", "csv", "csvd", "html", "json", "jsond", "props", "propsd", "sh", "text",
    "tsv", "tsvd", "uri", "urid", "xml", "xmld", "yaml", "yamld",
];

/// Accepts a filter whose names are all known to compute.
pub(crate) fn yq(script: &str) -> Result<(), String> {
    if script.ends_with(".yq") {
        return Err("it may be the name of a file of code".into());
    }
    jq(script)?;
    let mut filter = YqFilter { script, at: 0 };
    filter.code(false)?;
    if filter.at == script.len() { Ok(()) } else { Err("a `)` without its beginning".into()) }
}

struct YqFilter<'a> {
    script: &'a str,
    at: usize,
}

impl<'a> YqFilter<'a> {
    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads code to its end; within a text, behind the `)` that ends it.
    fn code(&mut self, in_text: bool) -> Result<(), String> {
        let mut depth = 0_usize;
        loop {
            if self.rest().starts_with(is_part) {
                self.name()?;
                continue;
            }
            if depth == 0 && !in_text && self.rest().starts_with(')') {
                return Ok(());
            }
            match self.bump() {
                None if in_text || depth > 0 => return Err("a `(` without its end".into()),
                None => return Ok(()),
                Some('"') => self.text()?,
                Some('(') => depth += 1,
                Some(')') if depth == 0 => return Ok(()),
                Some(')') => depth -= 1,
                Some(odd) if !odd.is_ascii() || "#'`\\".contains(odd) => {
                    return Err(format!("`{odd}` is not analysed"));
                }
                Some(_) => {}
            }
        }
    }

    /// Reads a text to its end, with the code that is put into it.
    fn text(&mut self) -> Result<(), String> {
        while let Some(next) = self.bump() {
            match next {
                '"' => return Ok(()),
                '\\' if self.bump() == Some('(') => self.code(true)?,
                _ => {}
            }
        }
        Err("a text without its end".into())
    }

    /// Reads a name, and refuses it unless it is a number, a key, a variable or known.
    fn name(&mut self) -> Result<(), String> {
        let before = self.script.get(..self.at).unwrap_or_default();
        let is_key = before.ends_with('.') && !before.ends_with("..");
        // A dash belongs to a key for one of the programs: `.runs-on`. To the other, a name follows it.
        let part = |c: char| is_part(c) || is_key && c == '-';
        let rest = self.rest();
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
        self.at += end;
        let next = self.rest().trim_start().chars().next();
        let is_known = match before.trim_end().chars().next_back() {
            _ if is_key => !name.split('-').skip(1).any(reaches),
            Some('@') => FORMATS.contains(&&*name),
            Some('$') => !reaches(&name),
            // `{name: .x, version}`
            Some('{' | ',') if matches!(next, Some(':' | ',' | '}')) => !reaches(&name),
            _ => name.bytes().all(|byte| byte.is_ascii_digit()) || OPERATORS.contains(&&*name),
        };
        if is_known { Ok(()) } else { Err(format!("`{name}` is not known to compute only")) }
    }
}

/// Returns `true` if a name may be that of an operator that reads files or the environment, or runs something.
fn reaches(name: &str) -> bool {
    const WORDS: &[&str] = &["load", "env", "eval", "system", "exec", "include", "import"];
    WORDS.iter().any(|word| name.contains(word))
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
