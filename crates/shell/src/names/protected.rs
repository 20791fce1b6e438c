//! The one list of names that decide what an agent may do, or what runs unasked (rule R5).
//!
//! We compare names without regard to case, to dots and blanks at the end and to streams (`.git::$INDEX_ALLOCATION`), as
//! some file systems do. The list is data, with a date for each client, so a new client is a line.
//!
//! ```
//! use std::path::Path;
//! use countersign_shell::protected::is_protected;
//!
//! assert!(is_protected(Path::new("sub/.GIT/hooks/pre-commit")));
//! assert!(!is_protected(Path::new("src/git.rs")));
//! ```

use std::path::{Path, is_separator};
use std::sync::OnceLock;

use super::globs;
use super::sieve::SieveNames;

/// The list; the file explains its form.
const LIST: &str = include_str!("../protected.txt");

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
        let split = name.split('/').filter(|part| !part.is_empty());
        let parts: Vec<String> = split.map(|part| part.replace("%20", " ")).collect();
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

/// Whether a path leads to something protected, by the names in it. Nothing is looked up.
#[must_use]
pub fn is_protected(path: &Path) -> bool {
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

/// Whether a path of which only the shell knows some parts may lead to something protected. A `*` stands for each such
/// part.
///
/// A name that is hardly known (`$x`, `"$name.json"`) must not count as every protected name. So much of the protected
/// name has to be written: its dot and a letter more, or half of it.
///
/// ```
/// use countersign_shell::protected::may_be_protected;
///
/// assert!(may_be_protected(".cl*aude") && may_be_protected("~/.config/counter*sign/rules.toml"));
/// assert!(!may_be_protected("*") && !may_be_protected("*.json") && !may_be_protected("src/a*.rs"));
/// ```
#[must_use]
pub fn may_be_protected(path: &str) -> bool {
    let split = path.split(is_separator);
    let parts: Vec<&str> = split.filter(|name| !matches!(*name, "" | "." | "..")).collect();
    let known = names();
    let is_set = |part: &str| part.contains(['[', '?']);
    let stars: Vec<String> = match is_set(path) {
        true => parts.iter().map(|part| globs::with_stars(part)).collect(),
        false => Vec::new(),
    };
    let fits_all = |known: &Vec<String>, from: usize| {
        let rest = parts.get(from..).unwrap_or_default();
        let is_written = |part: &&str| part.chars().any(|c| c != '*');
        rest.len() >= known.len()
            && rest.first().is_some_and(is_written)
            && stars.get(from).is_none_or(|it| it.chars().any(|c| c != '*'))
            && rest.iter().zip(known).all(|(part, name)| fits(part, name))
    };
    (0..parts.len()).any(|at| known.below.iter().any(|it| fits_all(it, at)))
        || path.starts_with(is_separator) && known.places.iter().any(|it| fits_all(it, 0))
        || parts.iter().enumerate().any(|(at, part)| {
            let written = stars.get(at).map_or(*part, String::as_str);
            known.whole.iter().any(|name| is_mostly_written(written, name) && fits(part, name))
                || known.ends.iter().any(|end| {
                    let last = part.rsplit('*').next().unwrap_or_default();
                    part.contains('*') && last.len() > end.len() && last.ends_with(end.as_str())
                })
        })
}

/// Whether a pattern for a part of a path says much of a name: its dot and a letter more, or half of it, and more than an
/// ending.
fn is_mostly_written(pattern: &str, name: &str) -> bool {
    let written = pattern.chars().filter(|c| *c != '*').count();
    let is_ending = pattern.strip_prefix('*').is_some_and(|rest| rest.starts_with('.'));
    !is_ending && (pattern.starts_with('.') && written > 2 || written * 2 >= name.chars().count())
}

/// Returns `true` if a pattern of a rule, in which `*` and `?` mean something, and a pattern as some shell reads it have a name in
/// common, in any case.
///
/// ```
/// use countersign_shell::protected::may_match;
///
/// assert!(may_match("payroll.csv", "[o-q]ayroll.*") && !may_match("payroll.csv", "[a-c]*.rs"));
/// ```
#[must_use]
pub fn may_match(of_rule: &str, glob: &str) -> bool {
    globs::may_match(of_rule, glob)
}

/// Returns `true` if a pattern in which `*` stands for anything fits a name, in any case. A `?` or a set stands for one character.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    if pattern.contains(['[', '?']) {
        return globs::fits(plain(pattern), name);
    }
    let (pattern, name) = (plain(pattern).to_lowercase(), name.to_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.split_once(piece) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Whether the next names of a path are these.
fn begins(rest: &str, known: &[String]) -> bool {
    let names = rest.split(is_separator).filter(|name| !matches!(*name, "" | "." | ".."));
    let mut names = names.map(plain);
    known.iter().all(|known| names.next().is_some_and(|name| name.eq_ignore_ascii_case(known)))
}

/// The name without what some file systems ignore: dots and blanks at the end, and the name of a stream.
#[must_use]
pub fn plain(name: &str) -> &str {
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
            "/Users/ann/Library/Application Support/Code/User/settings.json",
            "/users/ann/.local/bin/countersign",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            "src/lib.rs",
            "countersign/src",
            "target/countersign",
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
