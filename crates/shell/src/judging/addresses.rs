//! Addresses in words: hosts, ports, and what a program may fetch.

use crate::names::lists::is_named;
use crate::places::paths::is_secret;

/// Returns `true` if a text that names a file may be a URL, or a name in a protocol of the program: `http:host/x`,
/// `data:x`.
pub(super) fn names_protocol(text: &str) -> bool {
    let before = text.split('/').next().unwrap_or_default();
    let known = |scheme: &str| is_named("protocols", scheme);
    text.contains("://") || before.split_once(':').is_some_and(|(scheme, _)| known(scheme))
}

/// The host, the port and the rest of a URL or an address. `:8080/x`, which some programs know, is a port of this
/// machine.
pub(super) fn address(text: &str) -> (&str, &str, &str) {
    let (scheme, after) = text.split_once("://").unwrap_or(("http", text));
    let after = if matches!(scheme, "http" | "https") { after } else { "" };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at_checked(end).unwrap_or((after, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let here = host.is_empty() && !port.is_empty() && !text.contains("://");
    (if here { "localhost" } else { host }, port, rest)
}

/// Returns `true` if a host or URL names this machine.
pub(super) fn is_this_machine(text: &str) -> bool {
    let (host, port, _) = address(text);
    matches!(host, "localhost" | "127.0.0.1")
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && !text.contains(['{', '[', '\\'])
}

/// Why reading an address of this machine may do more than read: the port of a service that gives control to all who
/// reach it (a daemon of containers, a debugger, a store of secrets), a port of another protocol, or a path that shows
/// secrets or ends a service.
pub(super) fn controls(text: &str) -> Option<&'static str> {
    let (_, port, rest) = address(text);
    let number: u32 = if port.is_empty() { 80 } else { port.parse().unwrap_or(0) };
    if is_named("control ports", &number.to_string())
        || number < 1024 && !matches!(number, 80 | 443)
    {
        return Some("is the port of a service that controls this machine, or holds its secrets");
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    // Some servers drop what is behind `;`, and the ending of a name.
    let mut parts = path.split(['/', ';']).filter(|part| !part.is_empty());
    let stem = |part: &str| part.split('.').next().unwrap_or_default().to_owned();
    let is_control =
        |part| is_named("control paths", part) || is_named("control paths", &stem(part));
    let shows = parts.any(is_control) || is_secret(path);
    (shows || path.contains('%') || path.contains(".."))
        .then_some("may show secrets, or end a service")
}

/// Returns `true` if a text is, or contains, the address of something that a program may fetch: a URL of another
/// machine, `user@host:path`, or `host.example/path`, as the names of images, modules and repositories are written.
pub(super) fn is_elsewhere(text: &str) -> bool {
    let host = |host: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        host.contains('.') && host.chars().all(plain)
    };
    let copied = |text: &str| {
        let copied = text.split_once('@').and_then(|(_, rest)| rest.split_once(':'));
        copied.is_some_and(|(name, _)| host(name))
    };
    let hosted = |text: &str| {
        let name = text.split_once('/').map(|(name, _)| name.split(':').next().unwrap_or_default());
        name.is_some_and(|name| {
            let top = name.rsplit('.').next().unwrap_or_default();
            host(name)
                && !name.starts_with(['.', '-'])
                && top.len() > 1
                && top.chars().all(|c| c.is_ascii_alphabetic())
        })
    };
    text.contains("://") && !is_this_machine(text) || copied(text) || hosted(text)
}
