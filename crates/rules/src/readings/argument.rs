//! The readings of a string in the arguments of a tool.
//!
//! We do not know who reads the string: a program in Python or JavaScript, a server that takes URIs, one that parses
//! what looks like JSON. So we return each of these readings, with how likely it is:
//!
//! | text | reading | likelihood |
//! |---|---|---|
//! | `src/lib.rs` | itself | certain |
//! | `FILE:///etc/x`, `file:etc/x`, `file:\\\etc\x` | `/etc/x`, and `etc/x` | certain |
//! | `%2eenv`, `%252eenv` | `.env` | certain: decoded once or twice |
//! | `x\.env` | `x/.env` | certain |
//! | `" .env"`, `.env.` | `.env` | possible |
//! | `$HOME/.env` | `~/.env` | possible; `$X/.env` cannot be read |
//! | `["a", ".env"]` | `a`, `.env` | possible: some servers parse a text where they expect a list |
//! | `path=.env`, `@.env`, `-f.env` | `.env` | possible |
//! | `README.md .env`, `HEAD:.env` | `.env` | loose: for rules that deny only |
//! | `https://host/x` | none | an address: no path |
//! | `a://x` | itself | cannot be read: the scheme is not known |
//!
//! If a string of several lines is no patch, it is a text. As a path it has one reading, itself. Its lines are no paths
//! of their own: two of three files of source code have a line that would lead out of the workspace.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::is_nfc;

use super::patch;
use super::patch::HeaderName;
use super::prose::TextRole;
use super::scheme::{Scheme, scheme, trimmed};
use countersign_shell::lexically_normal;

/// The longest path that a file system takes, after a program has shortened it.
pub(crate) const MAX_PATH: usize = 4096;

/// The longest text that is read as a path which a program shortens.
const MAX_SHORTENED: usize = 64 * 1024;

/// The longest text that is parsed as JSON.
const MAX_JSON: usize = 1024 * 1024;

/// The number of readings that a text has at most. With more, it cannot be read.
const MAX_READINGS: usize = 1024;

/// The number of words of a text that are looked at by themselves.
const MAX_WORDS: usize = 256;

/// The number of texts that a pattern with braces stands for at most.
const MAX_ALTERNATIVES: usize = 64;

/// The likelihood that a consumer makes a reading.
///
/// Exhaustive on purpose: a door has to say what each of them counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likelihood {
    /// A consumer of this kind makes it.
    Certain,
    /// Some consumers make it. A rule that denies asks.
    Possible,
    /// It is a guess at a part of the text. A rule that denies asks, and a rule that allows need not match it.
    Loose,
}

/// One reading of a text, as a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextReading<'t> {
    /// The text as a consumer reads it.
    pub text: Cow<'t, str>,
    /// The likelihood that a consumer makes it.
    pub likelihood: Likelihood,
    /// `true` if a program may expand it as a pattern.
    pub is_pattern: bool,
}

/// The readings of a text, and why others may be missing.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Readings<'t> {
    /// The readings that were found.
    pub all: Vec<TextReading<'t>>,
    /// The reason why the text cannot be read whole: rules that allow are silent then.
    pub unreadable: Option<&'static str>,
    /// `true` if readings were left out, as there are too many: any file may be named by one of them.
    pub is_cut: bool,
    /// `true` if the text is an address and no path: rules that allow a path are silent.
    pub is_address: bool,
}

/// Returns `true` if a text has one reading, itself, if its words are left aside.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let odd = |byte: u8| {
        !byte.is_ascii()
            || byte.is_ascii_control()
            || matches!(byte, b'%' | b'\\' | b':' | b'=' | b'@' | b'~' | b'$' | b'{' | b'<')
    };
    is_name(text)
        || !text.bytes().any(odd)
            && !text.starts_with(['[', '-', ' ', '"', '('])
            && !text.ends_with([' ', '.'])
}

/// Returns `true` if a text is the path of a file for everyone, and has no words: `src/lib.rs`. Most are, and it is
/// found out quickly.
pub(crate) fn is_name(text: &str) -> bool {
    let is_of_name =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.');
    text.bytes().all(is_of_name)
        && !text.starts_with('-')
        && !text.ends_with('.')
        && text.len() <= MAX_PATH
}

/// Returns `true` if some programs expand a text to another path, drop what is at its ends, or end it at a control
/// character.
#[must_use]
pub fn is_expanded(text: &str) -> bool {
    text.starts_with(['~', '@', '$', '%'])
        || trimmed(text) != text
        || text.contains(char::is_control)
}

/// Returns `true` if a text has codes such as `%2e`, which some programs decode.
pub(crate) fn has_codes(text: &str) -> bool {
    percent_decoded(text).is_some()
}

/// Returns `true` if a program that shortens a text, also after it has decoded it, may come to a path.
fn is_shortened(text: &str) -> bool {
    let decoded = |text: &str| percent_decoded(text).and_then(Result::ok);
    let once = decoded(text).unwrap_or_else(|| text.to_owned());
    let turned = decoded(&once).unwrap_or(once).replace('\\', "/");
    lexically_normal(std::path::Path::new(&turned)).as_os_str().len() <= MAX_PATH
}

/// Returns `true` if the name of an argument may be one of a file: most are plain words.
pub(crate) fn is_path_like(name: &str) -> bool {
    name.contains(['.', '/', '\\', '%', '~'])
}

/// Returns `true` if a plain text has words: parts that a rule that denies looks at by themselves.
fn has_words(text: &str) -> bool {
    text.contains([' ', ',', ';', '#', '?', '{', '|', '\'', '"'])
}

/// Returns `true` if a program may expand a text as a pattern. `[id]` is the name of a folder in many projects; `[e]`
/// and `[a-z]` are patterns.
fn is_pattern(text: &str, role: TextRole) -> bool {
    let is_set = |rest: &str| {
        let inside = rest.split(']').next().unwrap_or_default();
        inside.len() < rest.len()
            && (inside.chars().count() == 1
                || inside.contains('-')
                || inside.starts_with(['!', '^', '[', ':', '=']))
    };
    let wild = |part: &str| part.contains(['*', '?']) || part.split('[').skip(1).any(is_set);
    // A pattern for names that begins with a star is about their ends: `*.json` looks for no file in particular.
    let named = |part: &str| {
        let begins = part.chars().take_while(|c| !matches!(c, '*' | '?' | '[')).count() > 1;
        let letters = part.chars().filter(|c| c.is_alphanumeric()).count() > 2;
        begins || !part.starts_with('*') && !part.contains('*') && letters
    };
    match role {
        TextRole::Named => wild(text),
        // A folder may be a pattern, too: `s*s/credentials.json`.
        TextRole::Pattern => match text.rsplit_once('/') {
            _ if text.split('/').next_back().is_some_and(|part| wild(part) && named(part)) => true,
            Some((folders, last)) => {
                !wild(last) && folders.split('/').any(|part| wild(part) && part != "**")
            }
            None => false,
        },
        TextRole::Prose | TextRole::Content => false,
    }
}

/// The readings of a text.
#[must_use]
pub fn readings(text: &str, role: TextRole) -> Readings<'_> {
    let mut found = ArgumentReader { role, readings: Readings::default() };
    if text.contains('\0') {
        found.readings.unreadable = Some("contains a NUL");
        found.add(Cow::Owned(text.replace('\0', "")), Likelihood::Possible);
        let cut = text.split('\0').next().unwrap_or_default();
        found.add(Cow::Borrowed(cut), Likelihood::Possible);
        return found.readings;
    }
    if trimmed(text).contains(['\n', '\r']) {
        found.lines(text);
    } else if role == TextRole::Content {
        found.add(Cow::Borrowed(text), Likelihood::Certain);
    } else {
        found.line(text);
    }
    if found.readings.all.len() > MAX_READINGS {
        found.readings.all.truncate(MAX_READINGS);
        found.cut("may be read in too many ways");
    }
    found.readings
}

struct ArgumentReader<'t> {
    role: TextRole,
    readings: Readings<'t>,
}

impl<'t> ArgumentReader<'t> {
    fn cut(&mut self, why: &'static str) {
        self.readings.unreadable = Some(why);
        self.readings.is_cut = true;
    }

    fn add(&mut self, text: Cow<'t, str>, likelihood: Likelihood) {
        if text.is_empty() || self.readings.all.len() > MAX_READINGS {
            return;
        }
        let is_pattern = is_pattern(&text, self.role);
        let known = self.readings.all.iter_mut().find(|known| known.text == text);
        match known {
            Some(known) => known.likelihood = known.likelihood.min(likelihood),
            None => self.readings.all.push(TextReading { text, likelihood, is_pattern }),
        }
    }

    /// The names in the headers of a patch, or in the marks of `<file path="x">`. Returns `true` if the text is certain to be a
    /// patch that has some.
    fn headers(&mut self, text: &str) -> bool {
        let names = patch::headers(text);
        let is_patch = names.iter().any(|it| it.is_certain);
        for HeaderName { name, is_certain } in names {
            let likelihood = match (is_certain, self.role) {
                (true, TextRole::Prose) => Likelihood::Possible,
                (true, _) => Likelihood::Certain,
                // A line of a text for people.
                (false, TextRole::Prose) => continue,
                (false, _) => Likelihood::Possible,
            };
            self.add(Cow::Owned(name), likelihood);
        }
        is_patch
    }

    /// A text of several lines: the names in its headers if it is a patch, the whole as one path, and each line as one, as a
    /// server may read it.
    fn lines(&mut self, text: &'t str) {
        let is_patch = self.role != TextRole::Content && self.headers(text);
        if self.role != TextRole::Content {
            self.json(text);
            // A text may be one value in each line.
            for line in text.lines().filter(|it| it.starts_with(['[', '{'])).take(MAX_WORDS) {
                self.json(line);
            }
        }
        // Those of a patch are no paths.
        if self.role == TextRole::Named && !is_patch {
            if text.lines().nth(MAX_WORDS).is_some() {
                self.readings.unreadable.get_or_insert("has too many lines");
            }
            for line in text.lines().take(MAX_WORDS) {
                self.add(Cow::Borrowed(trimmed(line)), Likelihood::Possible);
            }
        }
        // A program that shortens `x⏎/../y` to `y` does it by the text, and refuses what stays longer than any path.
        let normal = lexically_normal(std::path::Path::new(text));
        if normal.as_os_str().len() <= MAX_PATH {
            self.add(Cow::Borrowed(text), Likelihood::Certain);
        }
        // A browser, and Node, drop a line break anywhere in an address, also within the scheme.
        let is_broken = || {
            text.split_once(':').is_some_and(|(before, _)| trimmed(before).contains(['\n', '\r']))
        };
        let is_named =
            self.role == TextRole::Named || self.role != TextRole::Content && is_broken();
        if let Some(known) = scheme(text).filter(|it| is_named && it.is_file()) {
            let first = self.readings.all.len();
            self.url(&known);
            self.decoded_from(first);
        }
        // A program that trims, turns or decodes the text does it to one of several lines, too.
        if text.len() <= MAX_PATH {
            if trimmed(text) != text {
                self.add(Cow::Borrowed(trimmed(text)), Likelihood::Possible);
            }
            self.turned();
            self.decoded();
        }
    }

    fn line(&mut self, text: &'t str) {
        self.add(Cow::Borrowed(text), Likelihood::Certain);
        if text.contains('<') && text.contains('=') && self.role == TextRole::Named {
            self.headers(text);
        }
        if is_plain(text) && text.len() <= MAX_PATH {
            return self.parts(text);
        }
        if text.len() > MAX_PATH && !is_shortened(text) {
            self.json(text);
            if self.role != TextRole::Prose {
                self.readings.unreadable.get_or_insert("is too long for a path");
            }
            return;
        }
        if text.len() > MAX_SHORTENED {
            return self.cut("is too long to be read");
        }
        match scheme(text) {
            Some(known) if known.is_file() => self.url(&known),
            Some(known) if known.is_registered => self.readings.is_address = true,
            Some(_) if self.role == TextRole::Prose => {}
            Some(_) => self.readings.unreadable = Some("has a scheme that is not known"),
            None => {}
        }
        let trimmed = trimmed(text)
            .trim_end_matches(['.', ' '])
            .trim_start_matches('<')
            .trim_end_matches('>');
        if trimmed != text {
            self.add(Cow::Borrowed(trimmed), Likelihood::Possible);
        }
        if let Some(inner) = trimmed.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            self.add(Cow::Borrowed(inner), Likelihood::Possible);
        }
        self.variable(trimmed);
        if text.contains(['\t', '\n', '\r']) {
            let whole = text.replace(['\t', '\n', '\r'], "");
            self.add(Cow::Owned(whole), Likelihood::Possible);
        }
        self.json(text);
        self.alternatives(text);
        self.turned();
        if !self.readings.is_address {
            self.parts(text);
        }
        self.decoded();
        self.composed();
    }

    /// A text that begins with a variable: some tools expand it. The home is known, and others are not.
    fn variable(&mut self, text: &str) {
        let Some(name) = text.strip_prefix('$') else { return };
        if self.role != TextRole::Named
            || !name.starts_with(|c: char| c == '{' || c.is_ascii_uppercase())
        {
            return;
        }
        match name.strip_prefix("HOME").or_else(|| name.strip_prefix("{HOME}")) {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                self.add(Cow::Owned(format!("~{rest}")), Likelihood::Possible);
            }
            _ => self.readings.unreadable = Some("begins with a variable"),
        }
    }

    /// Each reading with letters and their accents as one character, as some file systems take both forms for one name.
    fn composed(&mut self) {
        for at in 0..self.readings.all.len() {
            let Some(known) = self.readings.all.get(at).filter(|it| !is_nfc(&it.text)) else {
                continue;
            };
            let likelihood = known.likelihood.max(Likelihood::Possible);
            self.add(Cow::Owned(known.text.nfc().collect()), likelihood);
        }
    }

    /// The paths of a `file:` URL: as browsers read it, from the root, and as Python does, which also knows relative ones.
    fn url(&mut self, known: &Scheme<'_>) {
        let rest = known.rest.replace('\\', "/");
        let below = rest.trim_start_matches('/');
        let mut paths = vec![format!("/{below}")];
        match rest.len() - below.len() {
            0 => paths.push(rest),
            2 => {
                // A host comes first, unless the reader takes it for a folder.
                let path = below.find('/').and_then(|at| below.get(at..));
                paths.extend([path.unwrap_or("/").to_owned(), below.to_owned()]);
            }
            _ => {}
        }
        for path in paths {
            let end = path.find(['?', '#']).unwrap_or(path.len());
            if let Some(cut) = path.get(..end).filter(|cut| cut.len() < path.len()) {
                self.add(Cow::Owned(cut.trim_end().to_owned()), Likelihood::Certain);
            }
            self.add(Cow::Owned(path.trim().to_owned()), Likelihood::Certain);
        }
    }

    /// Each reading with backslashes as slashes.
    fn turned(&mut self) {
        for at in 0..self.readings.all.len() {
            let Some(known) = self.readings.all.get(at).filter(|it| it.text.contains('\\')) else {
                continue;
            };
            let (turned, likelihood) = (known.text.replace('\\', "/"), known.likelihood);
            self.add(Cow::Owned(turned), likelihood);
        }
    }

    /// Each reading percent-decoded, once and twice, as a client may decode a value, and a server again. We do not decode
    /// a third time: each round makes a rule slower, and three are asked about by the default.
    fn decoded(&mut self) {
        self.decoded_from(0);
    }

    fn decoded_from(&mut self, first: usize) {
        for at in first..self.readings.all.len() {
            let Some(known) = self.readings.all.get(at).filter(|it| it.text.contains('%')) else {
                continue;
            };
            let (mut current, likelihood) = (known.text.to_string(), known.likelihood);
            for _ in 0..2 {
                match percent_decoded(&current) {
                    None => break,
                    Some(Ok(decoded)) => current = decoded,
                    Some(Err(())) => {
                        self.readings.unreadable = Some("has a code that is no character");
                        // Some put another character in its place.
                        current = percent_decoded_lossily(&current);
                    }
                }
                if current.contains('\0') {
                    self.readings.unreadable = Some("contains a NUL");
                    current = current.split('\0').next().unwrap_or_default().to_owned();
                }
                self.add(Cow::Owned(current.replace('\\', "/")), likelihood);
                self.add(Cow::Owned(current.clone()), likelihood);
                if let Some(known) = scheme(&current) {
                    match known.is_file() {
                        true => self.url(&known),
                        false => self.readings.is_address |= known.is_registered,
                    }
                }
            }
        }
    }

    /// The texts in a value that is JSON in a string: some servers parse what looks like a list or an object.
    fn json(&mut self, text: &str) {
        let trimmed = trimmed(text);
        if !trimmed.starts_with(['[', '{', '"']) || self.role == TextRole::Content {
            return;
        }
        if trimmed.len() > MAX_JSON {
            return self.cut("is too long to be read as JSON");
        }
        let Ok(value) = serde_json::from_str::<serde_json::Value>(trimmed) else { return };
        self.values(&value, 0);
    }

    fn values(&mut self, value: &serde_json::Value, depth: usize) {
        use serde_json::Value;
        match value {
            _ if depth > 16 => self.cut("is nested too deeply"),
            Value::String(text) => {
                let inner = readings(text, self.role);
                self.readings.unreadable = self.readings.unreadable.or(inner.unreadable);
                self.readings.is_address |= inner.is_address;
                self.readings.is_cut |= inner.is_cut;
                for reading in inner.all {
                    let likelihood = reading.likelihood.max(Likelihood::Possible);
                    self.add(Cow::Owned(reading.text.into_owned()), likelihood);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.values(item, depth + 1)),
            Value::Object(map) => map.iter().for_each(|(name, item)| {
                let likelihood = match is_path_like(name) {
                    true => Likelihood::Possible,
                    false => Likelihood::Loose,
                };
                self.add(Cow::Owned(name.clone()), likelihood);
                self.values(item, depth + 1);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The texts that a pattern in braces stands for: `src/{.env,x}`, `{a,b}/{c,d}`.
    fn alternatives(&mut self, text: &str) {
        if self.role == TextRole::Prose || !text.contains('{') {
            return;
        }
        let mut open = vec![text.to_owned()];
        let mut found = 0;
        while let Some(text) = open.pop() {
            let Some((before, inside, after)) = first_group(&text) else {
                self.add(Cow::Owned(text), Likelihood::Possible);
                continue;
            };
            for part in inside {
                found += 1;
                open.push(format!("{before}{part}{after}"));
            }
            if found > MAX_ALTERNATIVES {
                return self.cut("stands for too many texts");
            }
        }
    }

    /// The parts of a text that may be a path by themselves: values behind `=` and `@`, and, loosely, the words.
    fn parts(&mut self, text: &'t str) {
        if self.role == TextRole::Prose || self.role == TextRole::Content {
            return;
        }
        let behind = |at: usize| Cow::Borrowed(text.get(at..).unwrap_or_default());
        for (at, separator) in text.match_indices(['=', '@']).take(16) {
            // `src/@types/x` and `src/a=b` are names of files.
            let is_first =
                at == 0 || separator == "=" && !text.get(..at).is_some_and(|it| it.contains('/'));
            let likelihood = if is_first { Likelihood::Possible } else { Likelihood::Loose };
            self.add(behind(at + 1), likelihood);
        }
        if text.starts_with('-') && !text.starts_with("--") {
            let at = text.char_indices().nth(2).map_or(text.len(), |(at, _)| at);
            self.add(behind(at), Likelihood::Possible);
        }
        if !has_words(text) && !text.contains(':') {
            return;
        }
        let end = text.find(['?', '#']).unwrap_or(text.len());
        self.add(Cow::Borrowed(text.get(..end).unwrap_or_default()), Likelihood::Loose);
        for (at, _) in text.match_indices(':').take(8) {
            self.add(Cow::Borrowed(text.get(at + 1..).unwrap_or_default()), Likelihood::Loose);
            self.add(Cow::Borrowed(text.get(..at).unwrap_or_default()), Likelihood::Loose);
        }
        let separators = [' ', ',', ';', '\t', '|', '\'', '"'];
        if self.role == TextRole::Named && text.split(separators).nth(MAX_WORDS).is_some() {
            self.readings.unreadable.get_or_insert("has too many words");
        }
        for part in text.split(separators).take(MAX_WORDS) {
            self.add(Cow::Borrowed(part), Likelihood::Loose);
            if let Some((_, value)) = part.split_once(['=', '@', ':']) {
                self.add(Cow::Borrowed(value), Likelihood::Loose);
            }
        }
    }
}

/// The first group in braces that has alternatives: what is before it, these, and what is behind it.
fn first_group(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (start, _) in text.match_indices('{') {
        let (mut depth, mut from, mut parts) = (0_usize, start + 1, Vec::new());
        for (at, c) in text.get(start..)?.char_indices() {
            let at = start + at;
            match c {
                '{' => depth += 1,
                ',' if depth == 1 => {
                    parts.push(text.get(from..at)?);
                    from = at + 1;
                }
                '}' if depth == 1 => {
                    parts.push(text.get(from..at)?);
                    if parts.len() > 1 {
                        return Some((text.get(..start)?, parts, text.get(at + 1..)?));
                    }
                    break;
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    None
}

/// The text with `%2e` and the like decoded, if that makes a difference. The error is a code that is no character.
fn percent_decoded(text: &str) -> Option<Result<String, ()>> {
    if !text.contains('%') {
        return None;
    }
    match String::from_utf8(decoded_bytes(text)) {
        Ok(out) => (out != text).then_some(Ok(out)),
        Err(_) => Some(Err(())),
    }
}

/// The text decoded, with U+FFFD for each code that is no character, as Python does it.
fn percent_decoded_lossily(text: &str) -> String {
    String::from_utf8_lossy(&decoded_bytes(text)).into_owned()
}

fn decoded_bytes(text: &str) -> Vec<u8> {
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}
