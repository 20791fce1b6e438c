//! The one list of names that decide what an agent may do, or what runs unasked (rule R5).
//!
//! Names are compared without regard to case, to dots and blanks at the end and to streams (`.git::$INDEX_ALLOCATION`), as
//! some file systems do. The list is data, with a date for each client, so that a new client is a line.

use std::path::{Component, Path};
use std::sync::OnceLock;

/// The list; the file explains its form.
const LIST: &str = include_str!("protected.txt");

#[derive(Default)]
struct ProtectedNames {
    /// Names of files and folders, by their length: most names of a path are compared with none.
    whole: Vec<Vec<String>>,
    /// Ends of names.
    ends: Vec<String>,
    /// Names one below the other, anywhere.
    below: Vec<Vec<String>>,
    /// The same, from the root of the file system.
    places: Vec<Vec<String>>,
}

impl ProtectedNames {
    fn add(&mut self, name: &str) {
        let parts = || name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if let Some(end) = name.strip_prefix('*') {
            self.ends.push(end.to_owned());
        } else if name.starts_with('/') {
            self.places.push(parts());
        } else if name.contains('/') {
            self.below.push(parts());
        } else {
            if self.whole.len() <= name.len() {
                self.whole.resize(name.len() + 1, Vec::new());
            }
            self.whole.get_mut(name.len()).into_iter().for_each(|same| same.push(name.to_owned()));
        }
    }

    fn has(&self, name: &str) -> bool {
        let same = self.whole.get(name.len());
        same.is_some_and(|same| same.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }
}

fn names() -> &'static ProtectedNames {
    static NAMES: OnceLock<ProtectedNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = ProtectedNames::default();
        let lines = LIST.lines().filter(|line| !line.starts_with(['#', '[']));
        lines.flat_map(str::split_whitespace).for_each(|name| names.add(&name.to_lowercase()));
        names
    })
}

/// Whether a path leads to something protected, by the names in it.
pub(crate) fn is_protected(path: &Path) -> bool {
    let normal = |component: Component<'_>| matches!(component, Component::Normal(_));
    let mut rest = path.components().filter(|it| normal(*it));
    let names = names();
    if path.is_absolute() && names.places.iter().any(|known| begins(rest.clone(), known)) {
        return true;
    }
    loop {
        if names.below.iter().any(|known| begins(rest.clone(), known)) {
            return true;
        }
        let Some(component) = rest.next() else { return false };
        if is_protected_name(plain(&component.as_os_str().to_string_lossy())) {
            return true;
        }
    }
}

/// Whether the next components of a path have these names.
fn begins<'p>(mut rest: impl Iterator<Item = Component<'p>>, known: &[String]) -> bool {
    known.iter().all(|known| {
        let next = rest.next();
        next.is_some_and(|it| plain(&it.as_os_str().to_string_lossy()).eq_ignore_ascii_case(known))
    })
}

/// The name without what some file systems ignore: dots and blanks at the end, and the name of a stream.
pub(crate) fn plain(name: &str) -> &str {
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
    ends(".git")
        || name.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("git~1"))
        || names.ends.iter().any(|end| ends(end))
        || names.has(name)
        || !name.is_ascii() && names.has(&folded(name))
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
