//! The classes of what fetches an address: by its scheme and host.
//!
//! Such a class is about *reading* from a host. What is asked for may carry text out, in the path and the query of the
//! address, and the class says so.

use super::commands::{CommandClass, CommandClasses, is_bare, with};
use crate::matching::examined_call::ExaminedCall;
use crate::readings::tools;
use countersign::decision::GrantPattern;
use countersign_shell::{Effect, Part, Word};

/// What every such class says.
const CARRIES: &str = "addresses can carry text out";

/// The arguments of a tool that fetches beside the address: what it does with the answer.
const BESIDE: &[&str] = &["prompt", "format", "timeout", "max_length", "start_index", "raw"];

/// Whether the tool is one of a coding agent's own.
pub(super) fn is_of_client(examined: &ExaminedCall<'_>) -> bool {
    examined.call.toolset_as_set().is_some_and(tools::is_of_client)
}

/// The class of a coding agent's own tool that fetches an address.
pub(super) fn of_fetch(examined: &ExaminedCall<'_>) -> Option<GrantPattern> {
    let args = examined.call.args;
    let is_own = examined.call.source.is_none() || is_of_client(examined);
    let is_known = args.keys().all(|name| name == "url" || BESIDE.contains(&name.as_str()));
    if examined.call.tool != "fetch" || !is_own || !is_known {
        return None;
    }
    let place = scheme_and_host(args.get("url")?.as_str()?)?;
    let says = format!("any address of `{place}`: {CARRIES}");
    let class = BESIDE
        .iter()
        .chain(["url"].iter())
        .fold(GrantPattern::new(format!("addresses of {place}"), says), |class, field| {
            class.with_field(*field).with_pin(format!("path of {field}"))
        });
    let class = class.with_example(format!("fetch(url: {place}/…)"));
    Some(class.with_never("fetch(url: …) of another host"))
}

/// Options of `curl` that send nothing and write nothing.
const FLAGS: &[&str] = &[
    "-s",
    "-S",
    "-L",
    "-f",
    "-i",
    "-I",
    "-v",
    "-4",
    "-6",
    "--silent",
    "--show-error",
    "--location",
    "--fail",
    "--fail-with-body",
    "--include",
    "--head",
    "--verbose",
    "--compressed",
    "--no-progress-meter",
    "--ipv4",
    "--ipv6",
];

/// The class of `curl` with addresses of one host.
pub(super) fn of_curl(examined: &ExaminedCall<'_>, part: &Part) -> Option<CommandClasses> {
    let is_known = part.program() == Some("curl") && part.written_program() == "curl";
    let only_sends = part.effects().iter().all(|it| match it {
        Effect::Sends(_) => true,
        Effect::Writes(path) => path.as_os_str() == "/dev/null",
        _ => false,
    });
    let is_installed = examined.engine.classifier.is_installed("curl");
    if !is_known || !only_sends || !is_installed || !is_bare(examined, part) {
        return None;
    }
    let mut words = part.words().iter().skip(1).map(Word::literal);
    let (mut options, mut places) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        let word = word?;
        if !word.starts_with('-') {
            places.push(scheme_and_host(word)?);
            continue;
        }
        let (flags, valued) = flags_of(word)?;
        options.extend(flags);
        if let Some(option) = valued {
            let value = words.next()??;
            is_harmless(&option, value).then_some(())?;
            options.push(format!("{option} '{value}'"));
        }
    }
    places.dedup();
    let [place] = places.as_slice() else { return None };
    options.sort();
    options.dedup();
    let with = with(&options);
    let narrow = CommandClass {
        name: format!("addresses of {place} by curl{with}"),
        says: format!("any `curl`{with} of addresses of `{place}`: {CARRIES}"),
        example: Some(match options.as_slice() {
            [] => format!("curl {place}/…"),
            options => format!("curl {} {place}/…", options.join(" ")),
        }),
        never: vec![format!("curl -d DATA {place}"), "curl of another host".to_owned()],
    };
    Some(CommandClasses { narrow, wide: None })
}

/// The flags that a word is, and the option whose value follows, if there is one.
fn flags_of(word: &str) -> Option<(Vec<String>, Option<String>)> {
    if FLAGS.contains(&word) && (word.starts_with("--") || word.len() == 2) {
        return Some((vec![word.to_owned()], None));
    }
    if VALUED.contains(&word) {
        return Some((Vec::new(), Some(word.to_owned())));
    }
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let (mut flags, mut valued) = (Vec::new(), None);
    for letter in letters.chars() {
        let option = format!("-{letter}");
        if valued.is_some() {
            return None;
        } else if FLAGS.contains(&option.as_str()) {
            flags.push(option);
        } else if VALUED.contains(&option.as_str()) {
            valued = Some(option);
        } else {
            return None;
        }
    }
    Some((flags, valued))
}

/// Options of `curl` with a value.
const VALUED: &[&str] = &[
    "-H",
    "--header",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "-o",
    "--output",
    "-w",
    "--write-out",
    "-X",
    "--request",
];

/// Headers that say in which form an answer is wanted.
const HEADERS: &[&str] = &["accept", "accept-language", "cache-control"];

/// Whether the value of an option sends nothing and writes nothing.
fn is_harmless(option: &str, value: &str) -> bool {
    match option {
        "-H" | "--header" => value.split_once(':').is_some_and(|(name, text)| {
            let is_known = HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name));
            is_known && !text.contains(|c: char| c.is_control() || c == '\'')
        }),
        "-o" | "--output" => value == "/dev/null",
        "-w" | "--write-out" => {
            !value.starts_with(['@', '-']) && !value.contains("output{") && !value.contains('\'')
        }
        "-X" | "--request" => matches!(value, "GET" | "HEAD"),
        _ => !value.is_empty() && value.chars().all(|c| c.is_ascii_digit()),
    }
}

/// The ends of names that only the own network knows.
const NEAR: &[&str] = &[
    ".corp",
    ".home",
    ".internal",
    ".intranet",
    ".lan",
    ".local",
    ".localdomain",
    ".localhost",
    ".private",
];

/// The scheme and host of an address, with the port, in lower case: `https://docs.rs`. `None` for another scheme, for an
/// address with credentials, for one that programs read in several ways, and for this machine and its services.
fn scheme_and_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split('/').next()?.to_ascii_lowercase();
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority.as_str(), None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let is_host = host.starts_with(|c: char| c.is_ascii_alphanumeric()) && host.chars().all(plain);
    let is_port = port.is_none_or(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()));
    let is_text = !url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\');
    let is_known = matches!(scheme.as_str(), "http" | "https") && is_host && is_port && is_text;
    // A host may be written as a number. What is asked about on this machine, and the service that hands out its credentials,
    // are no places to read from in advance.
    let is_number = host.chars().all(|c| c.is_ascii_digit() || c == '.') || host.starts_with("0x");
    let own = host.strip_suffix('.').unwrap_or(host);
    // So is a name of the network that the machine is in.
    let is_near = !own.contains('.') || NEAR.iter().any(|end| own.ends_with(end));
    let is_own = is_near || own.starts_with("metadata");
    (is_known && !is_number && !is_own).then(|| format!("{scheme}://{authority}"))
}
