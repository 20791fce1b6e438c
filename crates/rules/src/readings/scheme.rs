//! The scheme of a text that may be a URL.
//!
//! A browser strips blanks at the ends, drops tabs and line breaks anywhere, and takes a scheme in any case. Python does
//! most of that. A text with a colon need not be a URL: `TODO: fix`, `12:30` and `HEAD:src/lib.rs` are none.

use std::borrow::Cow;

/// Schemes that are registered, or that every client of the web knows.
const REGISTERED: &[&str] = &[
    "about",
    "acct",
    "cid",
    "coap",
    "coaps",
    "data",
    "dict",
    "dns",
    "file",
    "ftp",
    "ftps",
    "geo",
    "git",
    "gopher",
    "http",
    "https",
    "imap",
    "irc",
    "ircs",
    "javascript",
    "ldap",
    "ldaps",
    "magnet",
    "mailto",
    "nfs",
    "nntp",
    "news",
    "pop",
    "rsync",
    "rtsp",
    "sftp",
    "sip",
    "sips",
    "sms",
    "smb",
    "ssh",
    "svn",
    "tel",
    "telnet",
    "tftp",
    "urn",
    "ws",
    "wss",
    "xmpp",
];

/// Schemes whose rest is another URL, or a place of this machine that each program finds in its own way.
const WITHIN: &[&str] = &[
    "blob",
    "cap",
    "chrome",
    "content",
    "filesystem",
    "intent",
    "jar",
    "resource",
    "view-source",
    "vscode",
    "vscode-insiders",
    "zip",
];

/// A text split at its scheme.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scheme<'t> {
    /// The scheme, in lower case.
    pub(crate) name: String,
    /// The text behind the colon, without tabs and line breaks.
    pub(crate) rest: Cow<'t, str>,
    /// `true` if the scheme is a registered one, and leads to no place of this machine but `file`.
    pub(crate) is_registered: bool,
}

impl Scheme<'_> {
    /// Returns `true` if the text is the URL of a file.
    pub(crate) fn is_file(&self) -> bool {
        self.name == "file"
    }
}

/// The scheme of a text, as the most generous reader finds it: a registered one, or any that `/`, `\` or `..` follows.
///
/// `data: 5 rows` is prose and has none, as a blank follows the colon; `file: x` and `file:` are paths for some readers.
pub(crate) fn scheme(text: &str) -> Option<Scheme<'_>> {
    let text = unwrapped(text);
    let drops = |c: char| matches!(c, '\t' | '\n' | '\r');
    let (before, rest) = text.split_once(':')?;
    let name: String =
        before.chars().filter(|c| !drops(*c)).collect::<String>().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(plain) {
        return None;
    }
    let rest = match rest.contains(drops) {
        true => Cow::Owned(rest.chars().filter(|c| !drops(*c)).collect()),
        false => Cow::Borrowed(rest),
    };
    let is_registered = REGISTERED.contains(&name.as_str());
    let leads = rest.starts_with(['/', '\\']) || rest.starts_with("..");
    let is_known = is_registered || WITHIN.contains(&name.as_str());
    let is_prose = name != "file" && (rest.is_empty() || rest.starts_with(char::is_whitespace));
    (leads || is_known && !is_prose).then_some(Scheme { name, rest, is_registered })
}

/// The text without what readers drop at its ends: blanks, control characters and the mark of the byte order.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

/// A URL without what Python also takes for a part of its quotation: `<file:///x>`, `URL:file:///x`.
fn unwrapped(text: &str) -> &str {
    let text = trimmed(text);
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let text = inner.map_or(text, trimmed);
    match text.get(..4) {
        Some(start) if start.eq_ignore_ascii_case("url:") => text.get(4..).map_or(text, trimmed),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::scheme;

    #[test]
    fn a_text_has_a_scheme_where_some_reader_takes_it_for_a_url() {
        for text in [
            "https://a",
            "FILE:///etc",
            " file:x",
            "fi\tle:x",
            "a://b",
            "a:/b",
            "c:\\x",
            "x:../y",
            "mailto:a@b",
            "jar:file:a!/b",
            "file:",
            "\u{feff}file:x",
            "<URL:file:///x>",
        ] {
            assert!(scheme(text).is_some(), "{text}");
        }
        for text in [
            "TODO: fix",
            "12:30",
            "HEAD:src/lib.rs",
            "data: 5 rows",
            "src/a.rs:3",
            "é:/x",
            "",
            ":",
            "git: fatal",
        ] {
            assert!(scheme(text).is_none(), "{text}");
        }
    }
}
