//! Patterns over the host of a URL, which the reader parses as browsers do.
//!
//! A rule that allows takes only a plain web address on its default port, or on the one that the pattern has. User names,
//! other schemes and characters that programs read differently are unknown. For a strict rule they are unknown, too,
//! unless the host is the one that it names. For example, `http://ok.com\@evil.org` is `ok.com` for a browser, and
//! `evil.org` for curl. A strict rule also takes a text without a scheme for an address, since a tool may add one.

use crate::calls::truth::Truth;
use crate::readings::host;

/// A pattern over hosts: `example.com`, `*.example.com` (every name below it), `*`; with a port if one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPattern {
    host: HostNames,
    port: Option<u16>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostNames {
    Any,
    Exactly(String),
    Below(String),
}

impl HostPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.ends_with(':') && !text.ends_with(']') => {
                match port.parse() {
                    Ok(port) => (name, Some(port)),
                    Err(_) => {
                        return Err(format!(
                            "`{text}` is no host: write `example.com` or `example.com:8080`"
                        ));
                    }
                }
            }
            _ => (text, None),
        };
        let host = match name.strip_prefix("*.") {
            _ if name == "*" => HostNames::Any,
            Some(rest) => HostNames::Below(host::plain(rest).ok_or_else(|| invalid(text))?),
            None => HostNames::Exactly(host::plain(name).ok_or_else(|| invalid(text))?),
        };
        Ok(Self { host, port, text: text.to_owned() })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches the host of a URL. A rule that allows requires a plain web address on the
    /// written or the default port; other rules also match a text that only looks like an address.
    pub(crate) fn matches(&self, text: &str, allows: bool) -> Truth {
        let read = match host::read(text, !allows) {
            Ok(read) => read,
            Err(why) => return Truth::Unknown(why),
        };
        let named = match &self.host {
            HostNames::Any => true,
            HostNames::Exactly(name) => read.host == *name,
            HostNames::Below(name) => read
                .host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        let port = match self.port {
            Some(port) => read.known_port == Some(port),
            None => !allows || read.port.is_none(),
        };
        match read.doubt {
            None => Truth::of(named && port),
            Some(_) if !allows && named && port => Truth::Yes,
            Some(_) if allows && !(named && port) => Truth::No,
            Some(why) => Truth::Unknown(why),
        }
    }
}

fn invalid(text: &str) -> String {
    format!("`{text}` is no host: write `example.com`, or `*.example.com` for every name below it")
}
