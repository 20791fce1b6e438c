//! The normal form of each kind of value: two texts have the same one if the program that acts takes both for the same
//! thing (rule O3).
//!
//! Every form errs on the side of being different: if we took a value for another one, it would be allowed in its
//! place, and if we do not find a value, it is only asked about. For example, a host is folded in its ASCII letters
//! alone, a path with `..` equals nothing but itself, and `1.234` is neither a thousand nor one and a bit.

use std::borrow::Cow;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::{UnicodeNormalization as _, is_nfc, is_nfd};

/// The longest text that can be one value, in bytes.
pub(super) const MAX_VALUE: usize = 512;

/// A character that is not seen: a person who reads the text and the program that acts on it see two texts.
pub(super) fn is_invisible(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => matches!(get_general_category(c), GeneralCategory::Control | GeneralCategory::Format),
    }
}

/// The text in NFC, the form in which texts are compared.
pub(super) fn composed(text: &str) -> Cow<'_, str> {
    match is_nfc(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.nfc().collect()),
    }
}

/// A value as it is compared: trimmed, and composed. `None` for a value that occurs nowhere: an empty or a long one, one
/// with a line break or an invisible character, and one with a letter that stands for another one, such as the Kelvin
/// sign.
pub(super) fn comparable(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim_matches(' ');
    let fits = !value.is_empty() && value.len() <= MAX_VALUE && !value.contains(is_invisible);
    let is_plain = fits && (value.is_ascii() || is_nfc(value) || is_nfd(value));
    is_plain.then(|| composed(value))
}

/// A letter, a digit, or what stands within words and ids.
pub(super) fn is_word(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '\'' | '’' => true,
        ..='\u{7f}' => false,
        c => {
            c.is_alphanumeric()
                || matches!(
                    get_general_category(c),
                    GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark
                )
        }
    }
}

/// Words without regard to case, and with one apostrophe.
pub(super) fn fold(words: &str, into: &mut String) {
    into.clear();
    if words.is_ascii() {
        into.push_str(words);
        into.make_ascii_lowercase();
        return;
    }
    for c in words.chars().map(|c| if c == '’' { '\'' } else { c }) {
        into.extend(c.to_lowercase());
    }
}

/// A mail address with its letters small. ASCII only: a letter that merely becomes the same one is another mailbox.
pub(super) fn address(text: &str, into: &mut String) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_local = |c: char| is_word(c) && c != '’' || matches!(c, '.' | '+' | '%');
    if local.is_empty() || !local.chars().all(is_local) || !is_domain(domain) {
        return false;
    }
    into.clear();
    into.push_str(text);
    into.make_ascii_lowercase();
    true
}

/// Names with points between them, the last of letters: `example.com`.
pub(super) fn is_domain(text: &str) -> bool {
    let Some((names, last)) = text.rsplit_once('.') else { return false };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c == '-' || (is_word(c) && !matches!(c, '\'' | '’')))
    };
    (2..=24).contains(&last.chars().count())
        && last.chars().all(char::is_alphabetic)
        && names.split('.').all(is_name)
}

/// A URL: its scheme in small letters, if it has one, and the rest without what makes no difference.
///
/// `None` where programs may read another host or path than the one that a person sees: a user before the host, a
/// backslash, a dot segment.
pub(super) fn url<'t>(text: &'t str, into: &mut String) -> Option<Option<&'t str>> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_some_and(|it| {
        !it.starts_with(|c: char| c.is_ascii_alphabetic()) || !it.chars().all(is_scheme)
    }) {
        return None;
    }
    let odd = |c: char| c.is_whitespace() || c == '\\' || is_invisible(c);
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if rest.contains(odd) || authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
        Some((host, _)) if host.starts_with('[') => (authority, ""),
        Some(_) => return None,
        None => (authority, ""),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let in_brackets = host.starts_with('[') && host.ends_with(']');
    let plain = |name: &str| !name.is_empty() && name.chars().all(is_word);
    if !in_brackets && !host.split('.').all(plain) {
        return None;
    }
    let (path, query) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
    if path.split('/').any(is_dots) {
        return None;
    }
    let is_default = match scheme {
        Some(it) if it.eq_ignore_ascii_case("http") => port == "80",
        Some(it) if it.eq_ignore_ascii_case("https") => port == "443",
        _ => matches!(port, "80" | "443"),
    };
    into.clear();
    into.push_str(host);
    into.make_ascii_lowercase();
    if !port.is_empty() && !is_default {
        into.push(':');
        into.push_str(port);
    }
    into.push_str(path.strip_suffix('/').unwrap_or(path));
    into.push_str(query);
    Some(scheme)
}

/// A segment that leads elsewhere: `.` and `..`, also encoded.
fn is_dots(segment: &str) -> bool {
    let decoded = segment.replace("%2e", ".").replace("%2E", ".");
    matches!(decoded.as_str(), "." | "..")
}

/// A path as you would write it from the folder of the run: without `./` and doubled slashes. With `..`, or with
/// characters that a tool may read otherwise, it stays as it is.
pub(super) fn path(text: &str, folders: &Folders, into: &mut String) {
    into.clear();
    if text.contains(['\\', '%']) || text.split('/').any(|it| it == "..") {
        return into.push_str(text);
    }
    let below = |folder: &Option<String>| {
        let rest = text.strip_prefix(folder.as_deref()?)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    let (start, rest) = match (below(&folders.base), below(&folders.home), text.strip_prefix("~/"))
    {
        (Some(rest), ..) => ("", rest.trim_start_matches('/')),
        (None, Some(rest), _) => ("~", rest),
        (None, None, Some(rest)) => ("~/", rest),
        (None, None, None) => (if text.starts_with('/') { "/" } else { "" }, text),
    };
    into.push_str(start);
    for segment in rest.split('/').filter(|it| !it.is_empty() && *it != ".") {
        if !into.is_empty() && !into.ends_with('/') {
            into.push('/');
        }
        into.push_str(segment);
    }
}

/// The folders that paths are relative to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Folders {
    pub(super) base: Option<String>,
    pub(super) home: Option<String>,
}

/// The endings of names of files that are also names of domains, or look like them.
const FILE_ENDINGS: &[&str] = &[
    "txt", "md", "rs", "py", "pdf", "csv", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "json",
    "toml", "yaml", "yml", "png", "jpg", "jpeg", "gif", "svg", "html", "htm", "css", "js", "ts",
    "tsx", "jsx", "sh", "c", "h", "cpp", "hpp", "go", "java", "rb", "php", "sql", "db", "log",
    "zip", "gz", "tar", "xml", "lock", "ini", "cfg", "conf", "eml",
];

/// Returns `true` if a text without spaces is written as a path: with a slash, or with the ending of a file.
pub(super) fn is_path(text: &str) -> bool {
    if text.contains("://") || text.contains('@') {
        return false;
    }
    let first = text.split('/').next().unwrap_or_default();
    let is_file = |name: &str| {
        name.rsplit_once('.').is_some_and(|(name, ending)| {
            !name.is_empty() && FILE_ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
        })
    };
    match text.contains('/') {
        true => !is_domain(first) || is_file(first),
        false => is_file(text),
    }
}

/// The number that a text stands for, in one spelling: `1,250.00` and `1250`.
///
/// A single sign before three digits could be either (`1.234`), so such a number equals only itself. Digits that
/// begin with a zero are an id, and stay.
pub(super) fn number(text: &str, into: &mut String) -> bool {
    let text = text.trim_matches(is_currency_or_space);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let text = text.trim_start_matches(is_currency_or_space);
    let (text, percent) = match text.strip_suffix('%') {
        Some(rest) => (rest, "%"),
        None => (text, ""),
    };
    let is_digit = |c: char| c.is_ascii_digit();
    let is_gap = |c: char| matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '’' | '_');
    let is_part = |c: char| is_digit(c) || is_gap(c) || matches!(c, '.' | ',');
    if !text.starts_with(is_digit) || !text.ends_with(is_digit) || !text.chars().all(is_part) {
        return false;
    }
    let digits: Cow<'_, str> = match text.contains(is_gap) {
        true => text.chars().filter(|c| !is_gap(*c)).collect::<String>().into(),
        false => text.into(),
    };
    let Some((whole, fraction)) = parts(&digits) else { return false };
    into.clear();
    into.extend([sign, &whole]);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        into.extend([".", fraction]);
    }
    into.push_str(percent);
    true
}

fn is_currency_or_space(c: char) -> bool {
    matches!(c, '$' | '€' | '£' | '¥' | ' ')
}

/// The digits before and behind the decimal sign, which is the last of two, or one that stands alone.
fn parts(digits: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(last) = digits.rfind(['.', ',']) else { return Some((digits.into(), "")) };
    let (head, tail) = (digits.get(..last)?, digits.get(last + 1..)?);
    let sign = if digits.get(last..)?.starts_with('.') { '.' } else { ',' };
    let other = if sign == '.' { ',' } else { '.' };
    let is_grouped = |by: char| head.split(by).skip(1).all(|group| group.len() == 3);
    match (head.contains(sign), head.contains(other)) {
        (true, true) => None,
        (false, true) => is_grouped(other).then(|| (head.replace(other, "").into(), tail)),
        (true, false) => {
            let is_whole = is_grouped(sign) && tail.len() == 3;
            is_whole.then(|| (digits.replace(sign, "").into(), ""))
        }
        (false, false) if tail.len() == 3 && head.len() <= 3 && head != "0" => {
            Some((format!("?{digits}").into(), ""))
        }
        (false, false) => Some((head.into(), tail)),
    }
}

/// A day as `2026-03-04`, from `2026-03-04` or `4.3.2026`. Other orders of numbers are not certain.
pub(super) fn day(text: &str) -> Option<String> {
    let mut numbers = text.splitn(3, ['-', '.']);
    let (first, second, third) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let digits = |it: &str, most: usize| {
        (1..=most).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit())
    };
    let (year, month, day) = match text.contains('-') {
        true if first.len() == 4 && second.len() == 2 && third.len() == 2 => (first, second, third),
        false if third.len() == 4 => (third, second, first),
        _ => return None,
    };
    let fits = digits(year, 4) && digits(month, 2) && digits(day, 2);
    let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
    (fits && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| format!("{year}-{month:02}-{day:02}"))
}

/// The number of a month by its English name, in full or by three letters.
pub(super) fn month(word: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if !word.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let is = |name: &str| {
        word.eq_ignore_ascii_case(name)
            || name.get(..3).is_some_and(|it| word.eq_ignore_ascii_case(it))
    };
    let at = NAMES.iter().position(|name| is(name))?;
    u32::try_from(at + 1).ok()
}

/// A time of day as `09:05`.
pub(super) fn time(text: &str) -> Option<String> {
    let (hour, rest) = text.split_once(':')?;
    let minute = rest.strip_suffix(":00").unwrap_or(rest);
    let is_short = hour.len() <= 2 && minute.len() == 2;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    (is_short && hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}

/// An international bank account number in capitals and without spaces, if its check digits are right.
pub(super) fn account(text: &str, into: &mut String) -> bool {
    into.clear();
    into.extend(text.chars().filter(|c| !matches!(c, ' ' | '-')));
    into.make_ascii_uppercase();
    let bytes = into.as_bytes();
    let shape = |at: usize, is: fn(&u8) -> bool| bytes.get(at).is_some_and(is);
    let fits = (15..=34).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && shape(0, u8::is_ascii_uppercase)
        && shape(1, u8::is_ascii_uppercase)
        && shape(2, u8::is_ascii_digit)
        && shape(3, u8::is_ascii_digit);
    fits && {
        let (head, tail) = bytes.split_at(4);
        let rest = tail.iter().chain(head).fold(0_u32, |rest, byte| match byte {
            b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
            _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        });
        rest == 1
    }
}
