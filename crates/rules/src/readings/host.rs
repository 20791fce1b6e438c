//! The host of a URL, read as browsers read it, with the reasons why other clients may connect elsewhere.
//!
//! Hosts are compared after the parser that browsers use, as each of these is not what it looks like:
//!
//! | text | host |
//! |---|---|
//! | `https://example.com@evil.org/` | `evil.org` |
//! | `https://example.com.evil.org/` | `evil.org`'s |
//! | `https:\\example.com` | `example.com`, for some programs |
//! | `http://ok.com\@evil.org` | `ok.com` for browsers, `evil.org` for curl and Python |
//! | `http://[::ffff:169.254.169.254]/` | `169.254.169.254` |
//! | `HTTPS://EXAMPLE.COM.` | `example.com` |

use std::net::Ipv6Addr;

use url::{Host, Url};

/// The host that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostReading {
    /// In lower case, without the dot at its end. An IPv6 address that stands for one of IPv4 is that one.
    pub(crate) host: String,
    /// The port that is written, if it is not the usual one.
    pub(crate) port: Option<u16>,
    /// The port that is connected to, if it is known.
    pub(crate) known_port: Option<u16>,
    /// The reason why some clients may connect to another host.
    pub(crate) doubt: Option<&'static str>,
}

/// Reads the host of a URL. With `adds_scheme`, a text without a scheme is an address too, since a tool may add one. The
/// error says why there is none.
pub(crate) fn read(text: &str, adds_scheme: bool) -> Result<HostReading, &'static str> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    let parsed = match Url::parse(text) {
        Ok(url) if url.has_host() => Ok(url),
        _ if adds_scheme && !text.contains("://") => Url::parse(&format!("https://{text}")),
        other => other,
    };
    let url = parsed.map_err(|_| "is no URL")?;
    let host = match url.host() {
        Some(Host::Ipv6(address)) => embedded(address).unwrap_or_else(|| format!("[{address}]")),
        Some(host) => fold(&host.to_string()),
        None => return Err("has no host"),
    };
    let doubt = if text.contains(odd) {
        Some("has characters that programs read differently")
    } else if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
        Some("is no web address")
    } else if authority(text).contains(['\u{df}', '\u{1e9e}', '\u{3c2}', '\u{200c}', '\u{200d}']) {
        Some("has letters that two versions of the standard read as different hosts")
    } else if !url.username().is_empty() || url.password().is_some() {
        Some("has a user name in it")
    } else {
        None
    };
    Ok(HostReading { host, port: url.port(), known_port: url.port_or_known_default(), doubt })
}

/// The part of a URL that names the host.
fn authority(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The name of a host as it is compared: `None` if the text is more than a host.
pub(crate) fn plain(name: &str) -> Option<String> {
    let url = Url::parse(&format!("https://{name}/")).ok()?;
    let is_host = url.path() == "/" && url.port().is_none() && url.username().is_empty();
    match url.host()? {
        Host::Ipv6(address) => embedded(address).or_else(|| Some(format!("[{address}]"))),
        host => Some(fold(&host.to_string())),
    }
    .filter(|host| is_host && !host.contains('*'))
}

/// The address of IPv4 in one of IPv6: mapped (`::ffff:a.b.c.d`), compatible (`::a.b.c.d`), by translation
/// (`::ffff:0:a.b.c.d`, RFC 2765; `64:ff9b::a.b.c.d`, RFC 6052 and RFC 8215), or by a tunnel (`2002:ab:cd::`, RFC 3056; `2001:0::`, RFC 4380).
fn embedded(address: Ipv6Addr) -> Option<String> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let (high, low) = match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff]
        | [0, 0, 0, 0, 0xffff, 0]
        | [0x64, 0xff9b, 0, 0, 0, 0]
        | [0x64, 0xff9b, 1, ..] => (high, low),
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0] if high != 0 => (high, low),
        [0x2002, high, low, ..] => (high, low),
        // The address of the client stands there with each bit turned.
        [0x2001, 0, ..] => (!high, !low),
        _ => return None,
    };
    let [one, two] = high.to_be_bytes();
    let [three, four] = low.to_be_bytes();
    Some(format!("{one}.{two}.{three}.{four}"))
}

fn fold(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}
