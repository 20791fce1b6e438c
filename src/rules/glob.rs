//! Patterns over texts and paths. Matching takes time in proportion to pattern times text in the worst case.
//!
//! A pattern comes from a user's file and a text from a model, so neither may make matching slow. A backtracking
//! matcher takes exponential time for `*a*a*a*b`; the ones here keep the last `*` only, or a set of reached places:
//!
//! | pattern | over | time |
//! |---|---|---|
//! | `Glob` | a text, `*` matches anything | pattern × text |
//! | `PathGlob` | the components of a path, `**` matches any number of them | parts × components |
//! | `overlap` | two patterns | the product of both |
//!
//! Texts are at most 64 KiB and patterns 1 KiB; longer texts are unknown, and longer patterns are refused.

use std::path::{Component, Path};

/// The longest text that a pattern is matched with. Longer ones cannot be evaluated.
pub(super) const MAX_TEXT: usize = 64 * 1024;
/// The longest pattern.
pub(super) const MAX_PATTERN: usize = 1024;

/// A pattern over a whole text: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    text: String,
    folded: String,
    literal: bool,
}

impl Glob {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), folded: text.to_lowercase(), literal: !is_pattern(text) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text, if the pattern has no `*` or `?`.
    pub(super) fn literal(&self) -> Option<&str> {
        self.literal.then_some(self.text.as_str())
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        if self.literal { self.text == text } else { fits(self.text.as_bytes(), text.as_bytes()) }
    }

    /// Like [`matches`](Self::matches), without regard to case.
    pub(super) fn matches_folded(&self, text: &str) -> bool {
        self.matches(text) || fits(self.folded.as_bytes(), text.to_lowercase().as_bytes())
    }
}

pub(super) fn is_pattern(text: &str) -> bool {
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

/// Whether some text matches both patterns.
///
/// Used for words that a shell expands: whether `rm .e*` may become `rm .env` is whether the two patterns have a text
/// in common. The answer "maybe" makes the condition unknown.
fn overlap(one: &[u8], other: &[u8]) -> bool {
    // Reachable positions in `other`, for each position in `one`: a product of two small automata.
    let width = other.len() + 1;
    let mut seen = vec![false; (one.len() + 1) * width];
    let mut open = vec![(0, 0)];
    while let Some((i, j)) = open.pop() {
        match seen.get_mut(i * width + j) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        match (one.get(i), other.get(j)) {
            (None, None) => return true,
            (Some(b'*'), _) | (_, Some(b'*')) => {
                if one.get(i) == Some(&b'*') {
                    open.push((i + 1, j));
                    if j < other.len() {
                        open.push((i, j + 1));
                    }
                }
                if other.get(j) == Some(&b'*') {
                    open.push((i, j + 1));
                    if i < one.len() {
                        open.push((i + 1, j));
                    }
                }
            }
            (Some(a), Some(b)) if a == b || *a == b'?' || *b == b'?' => open.push((i + 1, j + 1)),
            _ => {}
        }
    }
    false
}

/// A pattern over paths, component by component; `**` stands for any number of components.
///
/// | pattern | matches |
/// |---|---|
/// | `src/**` | everything below `src` in the workspace |
/// | `**/.env` | a file or folder `.env` anywhere |
/// | `~/.ssh/**` | everything below `.ssh` in the home directory |
/// | `/etc/*` | the entries of `/etc`, and nothing below them |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathGlob {
    base: Base,
    parts: Vec<Glob>,
    text: String,
}

/// Where a pattern over paths begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// At the root of the file system, or anywhere (`**/…`).
    Root,
    /// In the root of the workspace.
    Workspace,
    /// In the user's home directory.
    Home,
}

impl PathGlob {
    pub(super) fn new(text: &str) -> Self {
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

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a path matches. `None` if that cannot be said: the home directory is not known, or the path is itself a
    /// pattern (`is_glob`), which may become a path that matches.
    pub(super) fn matches(
        &self,
        path: &Path,
        places: &super::paths::Places,
        folded: bool,
        is_glob: bool,
    ) -> Option<bool> {
        let inner = match self.base {
            Base::Root => Some(path),
            Base::Workspace => path.strip_prefix(places.root()).ok(),
            Base::Home => path.strip_prefix(places.home()?).ok(),
        };
        let Some(inner) = inner else { return Some(false) };
        let components: Vec<_> = inner
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy()),
                _ => None,
            })
            .collect();
        if self.walk(&components, folded, false) {
            return Some(true);
        }
        if is_glob && self.walk(&components, true, true) { None } else { Some(false) }
    }

    /// Marks which parts of the pattern each component can reach.
    fn walk(&self, components: &[std::borrow::Cow<'_, str>], folded: bool, may: bool) -> bool {
        let any = |at: usize| self.parts.get(at).is_some_and(|part| part.text == "**");
        let close = |reached: &mut [bool]| {
            for at in 0..self.parts.len() {
                if reached.get(at) == Some(&true)
                    && any(at)
                    && let Some(next) = reached.get_mut(at + 1)
                {
                    *next = true;
                }
            }
        };
        let mut reached = vec![false; self.parts.len() + 1];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        close(&mut reached);
        for component in components {
            let mut next = vec![false; self.parts.len() + 1];
            for (at, part) in self.parts.iter().enumerate() {
                if reached.get(at) != Some(&true) {
                    continue;
                }
                if any(at) {
                    next.get_mut(at).into_iter().for_each(|it| *it = true);
                } else if fits_component(part, component, folded, may) {
                    next.get_mut(at + 1).into_iter().for_each(|it| *it = true);
                }
            }
            close(&mut next);
            reached = next;
        }
        reached.last() == Some(&true)
    }
}

fn fits_component(part: &Glob, component: &str, folded: bool, may: bool) -> bool {
    if may && (is_pattern(component) || component.contains('[')) {
        // A shell's `*` at the beginning does not stand for a dot, and a `[…]` may be any character.
        let dotless = component.starts_with(['*', '?', '[']) && part.text.starts_with('.');
        let component = component.to_lowercase().replace(['[', ']'], "*");
        return !dotless && overlap(part.folded.as_bytes(), component.as_bytes());
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

    #[test]
    fn two_patterns_overlap_if_one_text_matches_both() {
        assert!(overlap(b"*.pem", b"server*") && overlap(b"a*", b"*a") && !overlap(b"a*", b"b*"));
        assert!(overlap(b"", b"*") && !overlap(b"x", b""));
    }
}
