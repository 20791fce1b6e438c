//! Patterns over texts and paths. Matching takes time in proportion to pattern times text in the worst case.
//!
//! A pattern comes from a user's file and a text from a model, so neither may make matching slow. A backtracking
//! matcher takes exponential time for `*a*a*a*b`. The matchers here go back to the last `*` only:
//!
//! | pattern | over | time |
//! |---|---|---|
//! | `Glob` | a text, `*` matches anything | pattern × text |
//! | `PathGlob` | the components of a path, `**` matches any number of them | parts × components |
//! | `may_match` (of the shell's patterns) | two patterns | the product of both |
//!
//! Texts are at most 64 KiB and patterns 1 KiB; longer texts are unknown, and longer patterns are refused.

use std::borrow::Cow;
use std::path::{Component, Path};

use countersign_shell::protected::may_match;
use countersign_shell::{inside, secrets};

/// The longest text that a pattern is matched with. Longer ones cannot be evaluated.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// The longest pattern.
pub(crate) const MAX_PATTERN: usize = 1024;

/// A pattern over a whole text: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    folded: String,
    literal: bool,
}

impl Glob {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), folded: text.to_lowercase(), literal: !is_pattern(text) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text, if the pattern has no `*` or `?`.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.literal.then_some(self.text.as_str())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.literal { self.text == text } else { fits(self.text.as_bytes(), text.as_bytes()) }
    }

    /// Like [`matches`](Self::matches), without regard to case.
    pub(crate) fn matches_folded(&self, text: &str) -> bool {
        if self.literal {
            // The lengths are compared first, so that most texts are not looked at.
            return self.folded.eq_ignore_ascii_case(text)
                || !text.is_ascii() && (self.text == text || self.folded == folded(text));
        }
        self.matches(text) || fits(self.folded.as_bytes(), folded(text).as_bytes())
    }
}

/// The text in lower case, without an allocation if it is that already.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| !byte.is_ascii() || byte.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_lowercase()),
        false => Cow::Borrowed(text),
    }
}

pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Matches bytes; a `?` stands for one character, which may have several bytes.
fn fits(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    // The last `*`, and where in the text the rest of the pattern was tried.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(b'?') => {
                g += 1;
                t = next_character(text, t);
            }
            Some(byte) if text.get(t) == Some(byte) => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((at, tried)) => {
                    let again = next_character(text, tried);
                    star = Some((at, again));
                    (g, t) = (at + 1, again);
                }
                None => return false,
            },
        }
    }
    glob.get(g..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

fn next_character(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(|byte| **byte & 0xC0 == 0x80).count()
}

/// A pattern over paths, component by component; `**` stands for any number of components.
///
/// | pattern | matches |
/// |---|---|
/// | `src/**` | everything below `src` in the workspace |
/// | `**/.env` | a file or folder `.env` anywhere |
/// | `~/.ssh/**` | everything below `.ssh` in the home directory |
/// | `/etc/*` | the entries of `/etc`, and nothing below them |
///
/// The class [`SECRET`](PathGlob::SECRET) matches each file that may hold secrets by the names in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGlob {
    base: Base,
    parts: Vec<Glob>,
    text: String,
}

/// The place where a pattern over paths begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// At the root of the file system, or anywhere (`**/…`).
    Root,
    /// In the root of the workspace.
    Workspace,
    /// In the user's home directory.
    Home,
    /// Nowhere: the pattern is the class of the files that may hold secrets.
    Secret,
}

impl PathGlob {
    /// The name of the class of the files that may hold secrets, in `where.any_path.is = "secret"`.
    pub(crate) const SECRET: &str = "secret";

    /// The class of the files that may hold secrets.
    pub(crate) fn secret() -> Self {
        Self { base: Base::Secret, parts: Vec::new(), text: Self::SECRET.to_owned() }
    }

    pub(crate) fn new(text: &str) -> Self {
        let (base, rest) = match text {
            "~" => (Base::Home, ""),
            _ if text.starts_with("~/") => (Base::Home, text.get(2..).unwrap_or_default()),
            _ if text.starts_with('/') || text == "**" || text.starts_with("**/") => {
                (Base::Root, text)
            }
            _ => (Base::Workspace, text),
        };
        let parts = rest.split('/').filter(|part| !part.is_empty() && *part != ".").map(Glob::new);
        Self { base, parts: parts.collect(), text: text.to_owned() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the pattern begins in the root of the workspace.
    pub(crate) fn is_of_root(&self) -> bool {
        self.base == Base::Workspace
    }

    /// Returns `true` if a path matches. `None` if that cannot be said: the home directory is not known, or the path is
    /// itself a pattern (`is_glob`), which may become a path that matches.
    pub(crate) fn matches(
        &self,
        path: &Path,
        places: &super::paths::Places,
        folded: bool,
        is_glob: bool,
    ) -> Option<bool> {
        let inner = match self.base {
            Base::Root => Some(path),
            Base::Workspace => inside(path, places.root()),
            Base::Home => inside(path, places.home()?),
            Base::Secret => {
                let inner = inside(path, places.root()).unwrap_or(path);
                if secrets::is_secret(inner) {
                    return Some(true);
                }
                let may = is_glob && secrets::may_match(&inner.to_string_lossy());
                return if may { None } else { Some(false) };
            }
        };
        let Some(inner) = inner else { return Some(false) };
        if self.fits(inner, folded, false) {
            return Some(true);
        }
        if is_glob && self.fits(inner, true, true) { None } else { Some(false) }
    }

    /// Returns `true` if the name of a file may be the last part of the pattern. Quick, as a walk tries many files.
    pub(crate) fn may_end_in(&self, file: &Path, folded: bool) -> bool {
        match (self.parts.last(), file.file_name()) {
            (Some(last), Some(name)) => {
                last.text == "**" || fits_component(last, &name.to_string_lossy(), folded, false)
            }
            _ => true,
        }
    }

    /// Returns `true` if a file whose name matches a pattern may have the last part of this one for its name.
    pub(crate) fn may_end_as(&self, name: &str) -> bool {
        if self.base == Base::Secret {
            return secrets::may_match(name);
        }
        let overlaps = |last: &Glob| last.text == "**" || may_match(&last.text, name);
        self.parts.last().is_none_or(overlaps)
    }

    /// Matches the components of a path, as [`fits`] matches the bytes of a text. What a `**` stands for is made longer
    /// only at the last one: whether a part fits a component depends on these two alone.
    fn fits(&self, path: &Path, folded: bool, may: bool) -> bool {
        let mut names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        let is_any = |part: &Glob| part.text == "**";
        let mut parts = self.parts.iter();
        // The parts behind the last `**`, and the components that were not tried with the first of them.
        let mut retry = None;
        loop {
            let before = names.clone();
            let Some(name) = names.next() else { return parts.all(is_any) };
            match parts.next() {
                Some(part) if is_any(part) => {
                    names = before.clone();
                    retry = Some((parts.clone(), before));
                }
                Some(part) if fits_component(part, &name, folded, may) => {}
                _ => {
                    let Some((behind, untried)) = &mut retry else { return false };
                    untried.next();
                    (parts, names) = (behind.clone(), untried.clone());
                }
            }
        }
    }
}

fn fits_component(part: &Glob, component: &str, folded: bool, may: bool) -> bool {
    if may && (is_pattern(component) || component.contains('[')) {
        // A `*` at the beginning does not stand for a dot, to most programs.
        let dotless = component.starts_with('*') && part.text.starts_with('.');
        return !dotless && may_match(&part.text, component);
    }
    if folded { part.matches_folded(component) } else { part.matches(component) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        assert!(
            Glob::new("get_*").matches("get_page") && !Glob::new("get_*").matches("forget_page")
        );
        assert!(Glob::new("a?c").matches("aüc") && !Glob::new("a?c").matches("ac"));
        assert!(Glob::new("*").matches("") && Glob::new("*a*b").matches("xaayab"));
    }

    #[test]
    fn a_pathological_pattern_is_matched_in_bounded_time() {
        let glob = Glob::new(&"*a".repeat(200));
        assert!(!glob.matches(&format!("{}b", "a".repeat(20_000))));
    }

    /// Every text of up to so many of these words, joined by slashes.
    fn paths(words: &[&str], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        for _ in 0..most {
            let longer =
                all.iter().flat_map(|path| words.iter().map(move |it| format!("{path}/{it}")));
            all = std::iter::once(String::new()).chain(longer).collect();
        }
        all
    }

    /// The meaning of a pattern over paths: `**` stands for no component, or for one and what it stands for behind that.
    fn means(parts: &[&str], components: &[&str]) -> bool {
        match (parts, components) {
            ([], []) => true,
            (["**", rest @ ..], _) if means(rest, components) => true,
            (["**", ..], [_, behind @ ..]) => means(parts, behind),
            ([part, rest @ ..], [name, behind @ ..]) => {
                Glob::new(part).matches(name) && means(rest, behind)
            }
            _ => false,
        }
    }

    #[test]
    fn a_pattern_matches_the_paths_that_its_meaning_by_recursion_has() {
        let places = super::super::paths::Places::lexical(Path::new("/w"));
        let texts = paths(&["a", "b"], 5);
        for pattern in paths(&["a", "*", "**"], 5).iter().filter(|it| !it.is_empty()) {
            let glob = PathGlob::new(pattern);
            let parts: Vec<&str> = pattern.split('/').skip(1).collect();
            for text in &texts {
                let components: Vec<&str> = text.split('/').skip(1).collect();
                let found = glob.matches(Path::new(text), &places, false, false);
                assert_eq!(found, Some(means(&parts, &components)), "{pattern} {text}");
            }
        }
    }
}
