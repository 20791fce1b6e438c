//! Finding secrets in a text by their shape.
//!
//! We guess nothing here. A token of a service has a prefix that the service has published for this purpose, a JSON Web
//! Token has three parts of which the first is JSON, and a key file has its first and last line. A secret without such a
//! form is masked by its name ([`keys`](super::keys)) and its look ([`random`](super::random)).

use super::keys::{ShowRule, names_secret, rule};
use super::random::{follows_prefix, is_key_body, is_password, is_token};

/// The prefixes of tokens that services give out, and how many characters have to follow. Only letters, digits, `_` and
/// `-` are taken, so that masking a token hides no space, separator or path.
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

/// The longest value of a setting that is masked, in bytes.
const LONGEST_VALUE: usize = 1024;
/// The longest private key that is masked, in bytes.
const LONGEST: usize = 16 * 1024;

/// A secret at the beginning of a text: how many bytes before it are shown, as of `Bearer `, and the length with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundSecret {
    pub(super) shown: usize,
    pub(super) length: usize,
}

fn word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn span(text: &str, within: impl Fn(char) -> bool) -> usize {
    text.find(|c| !within(c)).unwrap_or(text.len())
}

/// Finds the token of a known service at the beginning of the text.
pub(super) fn service_token(text: &str) -> Option<FoundSecret> {
    if let Some(found) = json_web_token(text) {
        return Some(found);
    }
    PREFIXES.iter().find_map(|(prefix, least)| {
        let rest = text.strip_prefix(prefix)?;
        let length = span(rest, word_char);
        let token = rest.get(..length)?;
        let made = match *prefix {
            "AKIA" | "ASIA" => {
                length == 16 && token.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            }
            _ => length >= *least && follows_prefix(token),
        };
        made.then_some(FoundSecret { shown: prefix.len(), length: prefix.len() + length })
    })
}

/// Finds a JSON Web Token: three parts with dots between them, the first of which is JSON in base64.
fn json_web_token(text: &str) -> Option<FoundSecret> {
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
    (token.matches('.').count() == 2).then_some(FoundSecret { shown: 3, length })
}

/// Finds the credential of `Bearer …`, `Basic …` or `Token …`. In a header (after a colon or a quote, or at the
/// beginning) shorter ones count, too; in a sentence only a text that looks like a token.
pub(super) fn header_token(before: &str, text: &str) -> Option<FoundSecret> {
    let scheme = ["bearer ", "basic ", "token "].into_iter().find(|scheme| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let rest = text.get(scheme.len()..)?;
    let shown = scheme.len() + span(rest, |c| c == ' ');
    let token = text.get(shown..)?;
    let length = span(token, |c| word_char(c) || "./~+=".contains(c));
    let token = token.get(..length)?;
    let header = before.trim_end().is_empty() || before.trim_end().ends_with([':', '"', '\'']);
    let digits = |c: char| c.is_ascii_digit();
    let made = service_token(token).is_some()
        || is_token(token)
        || header && length >= 8 && !token.contains('/') && token.contains(digits);
    made.then_some(FoundSecret { shown, length: shown + length })
}

/// Finds the value of `PASSWORD=…`, as in a settings file, if the value looks random.
pub(super) fn setting(text: &str) -> Option<FoundSecret> {
    let name = span(text, word_char);
    let kind = text.get(..name)?;
    if !names_secret(kind) {
        return None;
    }
    let rest = text.get(name..)?.strip_prefix('=')?;
    let quote = usize::from(rest.starts_with(['"', '\'']));
    let shown = name + 1 + quote;
    let (length, random) = value(text.get(shown..)?, rule(kind, ShowRule::Free));
    random.then_some(FoundSecret { shown, length: shown + length })
}

/// Finds a value that looks random at the beginning of the text, as after the `=` of a cookie.
pub(super) fn plain_value(text: &str) -> Option<FoundSecret> {
    let (length, random) = value(text, ShowRule::Token);
    random.then_some(FoundSecret { shown: 0, length })
}

fn value(text: &str, rule: ShowRule) -> (usize, bool) {
    let within = |c: u8| word_char(char::from(c)) || b"+=./~!@#$%^*&".contains(&c);
    let length = text.bytes().take(LONGEST_VALUE + 1).take_while(|c| within(*c)).count();
    let value = text.get(..length).unwrap_or_default();
    (length, length <= LONGEST_VALUE && is_secret(value, rule))
}

/// Returns `true` if a value under a secret's name looks like that kind of secret.
pub(super) fn is_secret(value: &str, rule: ShowRule) -> bool {
    let whole = |found: FoundSecret| found.length == value.len();
    match rule {
        ShowRule::Password => is_password(value) || service_token(value).is_some_and(whole),
        ShowRule::Token => is_token(value) || service_token(value).is_some_and(whole),
        ShowRule::Place | ShowRule::Url | ShowRule::Command | ShowRule::Script | ShowRule::Free => {
            false
        }
    }
}

/// Finds the body of a private key in PEM. Its first and last line are shown; the lines between are masked only if they
/// are key material.
pub(super) fn private_key(text: &str) -> Option<FoundSecret> {
    let rest = text.strip_prefix("-----BEGIN ")?;
    let kind = span(rest, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ');
    if !rest.get(..kind)?.ends_with("PRIVATE KEY") || !rest.get(kind..)?.starts_with("-----") {
        return None;
    }
    let shown = text.len() - rest.len() + kind + "-----".len();
    let body = text.get(shown..)?;
    let near = if body.len() > LONGEST { body.get(..LONGEST)? } else { body };
    let length = near.find("-----END ")?;
    is_key_body(body.get(..length)?).then_some(FoundSecret { shown, length: shown + length })
}
