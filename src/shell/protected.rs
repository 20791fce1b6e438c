//! The one list of names that decide what an agent may do, or what runs unasked (rule R5).
//!
//! Names are compared without regard to case, to dots and blanks at the end and to streams (`.git::$INDEX_ALLOCATION`), as
//! some file systems do. The list is data, with a date for each client, so that a new client is a line.

use std::path::{Path, is_separator};
use std::sync::OnceLock;

use super::sieve::Sieve;

/// The list; the file explains its form.
const LIST: &str = include_str!("protected.txt");

/// Names in lower case, and a filter by which most names of a path are compared with none.
struct SieveNames {
    sieve: Sieve,
    names: Vec<String>,
}

impl SieveNames {
    fn new() -> Self {
        Self { sieve: Sieve::new(), names: Vec::new() }
    }

    fn add(&mut self, name: &str) {
        self.sieve = self.sieve.with(name);
        self.names.push(name.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        self.sieve.may_have(name) && self.names.iter().any(|it| it.eq_ignore_ascii_case(name))
    }
}

struct ProtectedNames {
    /// Names of files and folders.
    whole: SieveNames,
    /// Ends of names.
    ends: Vec<String>,
    /// Whether an end has this last byte.
    last: [bool; 256],
    /// Names one below the other, anywhere.
    below: Vec<Vec<String>>,
    /// The same, from the root of the file system.
    places: Vec<Vec<String>>,
    /// The first names of `below` and `places`, by which these are looked for.
    first: SieveNames,
}

impl ProtectedNames {
    fn new() -> Self {
        let (whole, first) = (SieveNames::new(), SieveNames::new());
        let (ends, below, places) = (Vec::new(), Vec::new(), Vec::new());
        Self { whole, ends, last: [false; 256], below, places, first }
    }

    fn add(&mut self, name: &str) {
        if let Some(end) = name.strip_prefix('*') {
            let last =
                end.bytes().next_back().and_then(|last| self.last.get_mut(usize::from(last)));
            last.into_iter().for_each(|last| *last = true);
            return self.ends.push(end.to_owned());
        }
        let parts: Vec<String> =
            name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        match (parts.as_slice(), name.starts_with('/')) {
            ([whole], false) => self.whole.add(whole),
            ([first, ..], is_place) => {
                self.first.add(first);
                if is_place { self.places.push(parts) } else { self.below.push(parts) }
            }
            ([], _) => {}
        }
    }
}

fn names() -> &'static ProtectedNames {
    static NAMES: OnceLock<ProtectedNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = ProtectedNames::new();
        names.add("*.git");
        let lines = LIST.lines().filter(|line| !line.starts_with(['#', '[']));
        lines.flat_map(str::split_whitespace).for_each(|name| names.add(&name.to_lowercase()));
        names
    })
}

/// Whether a path leads to something protected, by the names in it.
pub(crate) fn is_protected(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    let known = names();
    let mut is_first = path.is_absolute();
    let mut at = 0;
    for name in text.as_bytes().split(|byte| is_separator(char::from(*byte))) {
        let rest = text.get(at..).unwrap_or_default();
        let name = rest.get(..name.len()).unwrap_or_default();
        at += name.len() + 1;
        if matches!(name, "" | "." | "..") {
            continue;
        }
        let name = plain(name);
        let begins = |known: &Vec<String>| begins(rest, known);
        if known.first.has(name)
            && (known.below.iter().any(begins) || is_first && known.places.iter().any(begins))
            || is_protected_name(name)
        {
            return true;
        }
        is_first = false;
    }
    false
}

/// Whether the next names of a path are these.
fn begins(rest: &str, known: &[String]) -> bool {
    let names = rest.split(is_separator).filter(|name| !matches!(*name, "" | "." | ".."));
    let mut names = names.map(plain);
    known.iter().all(|known| names.next().is_some_and(|name| name.eq_ignore_ascii_case(known)))
}

/// The name without what some file systems ignore: dots and blanks at the end, and the name of a stream.
pub(crate) fn plain(name: &str) -> &str {
    if !name.bytes().any(|byte| byte == b':') && !name.ends_with(['.', ' ']) {
        return name;
    }
    let name = match name.split_once(':') {
        Some((before, stream)) if stream.starts_with([':', '$']) || before.starts_with('.') => {
            before
        }
        _ => name,
    };
    name.trim_end_matches(['.', ' '])
}

fn is_protected_name(name: &str) -> bool {
    let ends = |end: &str| {
        let at = name.len().checked_sub(end.len());
        at.and_then(|at| name.get(at..)).is_some_and(|it| it.eq_ignore_ascii_case(end))
    };
    let names = names();
    let last = name.bytes().next_back().map(|last| usize::from(last.to_ascii_lowercase()));
    let may_end = last.and_then(|last| names.last.get(last)).is_some_and(|last| *last);
    may_end && names.ends.iter().any(|end| ends(end))
        || name.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("git~1"))
        || names.whole.has(name)
        || !name.is_ascii() && names.whole.has(&folded(name))
}

/// The name as file systems that ignore case compare it: HFS+ also drops characters that have no width.
fn folded(name: &str) -> String {
    let invisible = |c: &char| !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let kept: String = name.chars().filter(invisible).collect();
    kept.to_lowercase().replace('\u{17f}', "s").replace('\u{212a}', "k")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LIST, is_protected};

    #[test]
    fn every_part_of_the_list_has_a_client_a_version_and_a_date() {
        for line in LIST.lines().filter(|line| line.starts_with('[')) {
            let parts: Vec<&str> =
                line.trim_matches(['[', ']']).split('|').map(str::trim).collect();
            let [client, version, date] = parts.as_slice() else { panic!("{line}") };
            assert!(!client.is_empty() && !version.is_empty(), "{line}");
            assert!(date.len() == 10 && date.starts_with("20"), "{line}");
        }
    }

    #[test]
    fn a_name_is_protected_in_every_spelling_that_leads_to_it() {
        for path in [
            ".git/config",
            "a/.GIT",
            "x.git/y",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "git~1/x",
            "Claude.Local.md",
            "x/agents.override.md",
            "my.code-workspace",
            "/users/ann/.config/countersign/rules.toml",
            "/etc/claude-code/managed-settings.json",
            ".g\u{200c}it/config",
            ".kiro/hooks/a.kiro.hook",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            "src/lib.rs",
            "countersign/src",
            "etc/claude-code",
            "config/git",
            "digit",
            "a.github.io",
            "agents",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
