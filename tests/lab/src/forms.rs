//! The forms: the examples of the table, each program alone, with `--version` and `--help`, with code on its input, and each
//! option alone and in pairs, in proportion to the table.

use std::collections::{BTreeMap, BTreeSet};

use countersign_shell::{ProgramArguments, Programs};

use crate::verdict::Table;

/// A generator of numbers (SplitMix64), so that a seed says which forms there are.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Puts a list into another order.
    pub fn shuffled<T>(&mut self, mut list: Vec<T>) -> Vec<T> {
        for at in (1..list.len()).rev() {
            let other = (self.next() % (at as u64 + 1)) as usize;
            list.swap(at, other);
        }
        list
    }
}

/// The forms of one program that the table allows a developer.
#[derive(Debug, Default)]
pub struct Forms {
    /// Alone, `--version`, `--help`, with code on the input, and the examples.
    pub base: BTreeSet<String>,
    /// Sub-commands alone and with operands.
    pub more: BTreeSet<String>,
    /// Each option alone: the form with it, by program or sub-command and option.
    pub options: Vec<(String, String, String)>,
}

/// The forms of the programs of `installed` that are in the table.
pub fn forms(
    programs: &Programs,
    table: &Table,
    installed: &BTreeSet<String>,
) -> BTreeMap<String, Forms> {
    let mut all: BTreeMap<String, Forms> = BTreeMap::new();
    let examples = programs.examples();
    for described in &programs.arguments() {
        let name = &described.program;
        let program = name.split(' ').next().unwrap_or_default();
        if !installed.contains(program) {
            continue;
        }
        let forms = all.entry(program.to_owned()).or_default();
        let mut base = Vec::new();
        let mut more = with_operands(described);
        if name == program {
            base.extend([name.clone(), format!("{name} --version"), format!("{name} --help")]);
            base.push(format!("{} | {name}", input(program)));
        } else {
            more.push(name.clone());
        }
        let own = examples.iter().filter(|it| it.safe && it.program == *name);
        base.extend(own.map(|it| it.command.clone()));
        base.retain(|form| table.claim(form).is_some());
        more.retain(|form| table.claim(form).is_some());
        // The form that options are tried in: the longest with operands that is one command.
        let plain =
            base.iter().chain(&more).filter(|form| !form.contains(['|', '<', '&', ';', '-']));
        if let Some(plain) = plain
            .filter(|form| form.starts_with(&**name))
            .max_by_key(|form| form.split(' ').count())
        {
            for option in &described.options {
                if let Some(form) = with_option(name, plain, option) {
                    forms.options.push((name.clone(), option.clone(), form));
                }
            }
        }
        forms.base.extend(base);
        forms.more.extend(more);
    }
    all
}

/// A text that is code to a program that takes code.
fn input(program: &str) -> &'static str {
    let node = [
        "node", "tsx", "ts-", "bun", "deno", "js", "es", "babel", "swc", "prettier", "mocha",
        "jest", "ava",
    ];
    if program.starts_with("py") || program.starts_with("ipy") || program.contains("python") {
        "echo 'open(\"/tmp/TRAP-stdin\",\"w\").close()'"
    } else if node.iter().any(|start| program.starts_with(start)) {
        "echo 'require(\"fs\").writeFileSync(\"/tmp/TRAP-stdin\",\"\")'"
    } else {
        "echo 'touch /tmp/TRAP-stdin'"
    }
}

/// Forms with each of some operands that suit the kinds, for an entry without examples.
fn with_operands(described: &ProgramArguments) -> Vec<String> {
    let kinds: Vec<&str> =
        described.operands.iter().map(|kind| kind.trim_end_matches(['!', '.'])).collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for at in 0..FILES.len() {
        let words: Vec<&str> = kinds.iter().map(|kind| value(kind, at)).collect();
        let form = format!("{} {}", described.program, words.join(" "));
        if !forms.contains(&form) {
            forms.push(form);
        }
        if !kinds.iter().any(|kind| matches!(*kind, "read" | "list" | "local" | "revision")) {
            break;
        }
    }
    forms
}

const FILES: &[&str] = &["a.txt", "src", "x.py"];

fn value(kind: &str, at: usize) -> &str {
    match kind {
        "read" | "list" | "local" | "from-to" | "revision" => FILES[at % FILES.len()],
        "number" | "name" => "1",
        "write" | "output" | "make" | "report" => "build/made",
        "directory" => "dir",
        "here" => "./a.txt",
        "sed" => "s/a/b/",
        "awk" => "1",
        "jq" | "yq" => ".",
        "test" => "-e",
        "template" | "fields" => "x",
        "sql" => "'select 1'",
        "host" => "localhost",
        "slug" => "owner/name",
        "package" => "x",
        "database" => "a.db",
        _ => match kind.strip_prefix('{') {
            Some(words) => words.split(['|', '}']).next().unwrap_or("x").trim_end_matches('*'),
            None => "x",
        },
    }
}

/// A form with an option, as the table writes it, behind the program and its sub-command.
pub fn with_option(name: &str, form: &str, option: &str) -> Option<String> {
    let rest = form.strip_prefix(name)?;
    let (written, value) = written(option)?;
    let word = match value {
        None => written.to_owned(),
        Some((value, true)) => format!("{written} {value}"),
        Some((value, false)) if written.starts_with("--") => format!("{written}={value}"),
        Some((value, false)) => format!("{written}{value}"),
    };
    Some(format!("{name} {word}{rest}"))
}

/// The name of an option, a value for it, and whether that is a word of its own.
fn written(option: &str) -> Option<(&str, Option<(&str, bool)>)> {
    if option.contains('*') && !option.contains('{') {
        return None;
    }
    let at = option.find('=');
    let Some(at) = at.filter(|at| *at > 1) else { return Some((option, None)) };
    let (name, kind) = (&option[..at], option[at + 1..].trim_end_matches('^'));
    Some(match name.strip_suffix(['?', '$']) {
        Some(name) => (name, Some((value(kind, 0), false))),
        None => (name, Some((value(kind, 0), true))),
    })
}
