//! Finding secrets in a text by their shape.

use super::keys::names_secret;

/// The beginnings of tokens that services give out, and how many letters have to follow. Only letters, digits, `_`
/// and `-` follow, so that no token hides a space, a separator or a path.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 12),
    ("sk_test_", 12),
    ("rk_live_", 12),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 24),
    ("npm_", 24),
    ("pypi-", 24),
];

/// No key is longer, in bytes.
const LONGEST: usize = 16 * 1024;

/// A secret in a text: where it begins, how much of that is shown, and how long all of it is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) shown: usize,
    pub(super) length: usize,
}

fn word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn span(text: &str, within: impl Fn(char) -> bool) -> usize {
    text.find(|c| !within(c)).unwrap_or(text.len())
}

/// The token of a known service that the text begins with.
pub(super) fn service_token(text: &str) -> Option<Found> {
    if let Some(found) = json_web_token(text) {
        return Some(found);
    }
    PREFIXES.iter().find_map(|(prefix, least)| {
        let rest = text.strip_prefix(prefix)?;
        let length = span(rest, word_char);
        (length >= *least).then_some(Found { shown: prefix.len(), length: prefix.len() + length })
    })
}

/// Three parts with dots between them.
fn json_web_token(text: &str) -> Option<Found> {
    text.strip_prefix("eyJ")?;
    let mut length = 0;
    for least in [8, 8, 0] {
        let part = span(text.get(length..)?, word_char);
        length += part;
        if part < least {
            return None;
        }
        length += usize::from(least > 0 && text.get(length..)?.starts_with('.'));
    }
    let token = text.get(..length)?;
    (token.matches('.').count() == 2).then_some(Found { shown: 3, length })
}

/// `Bearer …` and `Basic …`, as in a header.
pub(super) fn header_token(text: &str) -> Option<Found> {
    let scheme = ["bearer ", "basic "].into_iter().find(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let rest = text.get(scheme.len()..)?;
    let shown = scheme.len() + span(rest, |c| c == ' ');
    let token = text.get(shown..)?;
    let length = span(token, |c| word_char(c) || matches!(c, '.' | '~' | '+' | '='));
    let random = token.get(..length).is_some_and(|token| length >= 8 && looks_random(token));
    random.then_some(Found { shown, length: shown + length })
}

/// `PASSWORD=…`, as in a settings file, when the value looks like no word.
pub(super) fn setting(text: &str) -> Option<Found> {
    let name = span(text, word_char);
    if !names_secret(text.get(..name)?) {
        return None;
    }
    let rest = text.get(name..)?.strip_prefix('=')?;
    let quote = usize::from(rest.starts_with(['"', '\'']));
    let shown = name + 1 + quote;
    let value = text.get(shown..)?;
    let length = span(value, |c| word_char(c) || "+=.~!@%^*".contains(c));
    let random = value.get(..length).is_some_and(|value| length >= 6 && looks_random(value));
    random.then_some(Found { shown, length: shown + length })
}

/// Words have no digits, and upper case only at their beginning.
fn looks_random(token: &str) -> bool {
    token.len() >= 32
        || token.contains(|c: char| c.is_ascii_digit() || c == '=')
        || token.chars().skip(1).any(char::is_uppercase) && token.contains(char::is_lowercase)
}

/// A private key: its first and last line are shown, and of what is between only what is key material is not.
pub(super) fn private_key(text: &str) -> Option<Found> {
    let rest = text.strip_prefix("-----BEGIN ")?;
    let kind = span(rest, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ');
    if !rest.get(..kind)?.ends_with("PRIVATE KEY") || !rest.get(kind..)?.starts_with("-----") {
        return None;
    }
    let shown = text.len() - rest.len() + kind + "-----".len();
    let body = text.get(shown..)?;
    let near = if body.len() > LONGEST { body.get(..LONGEST)? } else { body };
    let length = near.find("-----END ")?;
    let material = |line: &str| {
        let line = line.trim_end_matches('\r');
        line.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='))
            && !line.starts_with('/')
    };
    // Written on one line, as in JSON that was escaped twice, it has `\n` in it.
    let fits = body.get(..length)?.replace("\\n", "\n").lines().all(material);
    fits.then_some(Found { shown, length: shown + length })
}
