//! Patterns over the host of a URL, which is parsed as browsers parse it.

use url::Url;

use super::truth::Truth;

/// A pattern over hosts: `example.com`, `*.example.com` (every name below it), `*`; with a port if one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
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
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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
        let plain = |name: &str| {
            let url = Url::parse(&format!("https://{name}/")).ok()?;
            url.host_str().filter(|host| url.path() == "/" && !host.contains('*')).map(fold)
        };
        let host = match name.strip_prefix("*.") {
            _ if name == "*" => HostNames::Any,
            Some(rest) => HostNames::Below(plain(rest).ok_or_else(|| invalid(text))?),
            None => HostNames::Exactly(plain(name).ok_or_else(|| invalid(text))?),
        };
        Ok(Self { host, port, text: text.to_owned() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches the host of a URL. A rule that allows requires a plain web address on the written
    /// or the default port; other rules also match what only looks like an address.
    pub(super) fn matches(&self, text: &str, allows: bool) -> Truth {
        let odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
        let parsed = match Url::parse(text) {
            Ok(url) if url.has_host() => Ok(url),
            Ok(_) | Err(_) if !allows => Url::parse(&format!("https://{text}")),
            other => other,
        };
        let Ok(url) = parsed else { return Truth::Unknown("is no URL") };
        let Some(host) = url.host_str().map(fold) else { return Truth::Unknown("has no host") };
        let named = match &self.host {
            HostNames::Any => true,
            HostNames::Exactly(name) => host == *name,
            HostNames::Below(name) => host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        let port = match self.port {
            Some(port) => url.port_or_known_default() == Some(port),
            None => !allows || url.port().is_none(),
        };
        if !named || !port {
            return Truth::No;
        }
        if allows && text.contains(odd) {
            return Truth::Unknown("has characters that programs read differently");
        }
        if allows && !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
            return Truth::Unknown("is no web address");
        }
        if allows && (!url.username().is_empty() || url.password().is_some()) {
            return Truth::Unknown("has a user name in it");
        }
        Truth::Yes
    }
}

fn fold(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn invalid(text: &str) -> String {
    format!("`{text}` is no host: write `example.com`, or `*.example.com` for every name below it")
}
