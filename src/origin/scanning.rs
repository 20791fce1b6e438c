//! One pass over a text that finds the values in it.
//!
//! A text is cut at spaces and quotes into chunks. A chunk is an address, a URL, a path, a number, a day, or words; some
//! values are several chunks (`26 May 2026`, an account number in groups of four). Everything is found in one pass, as
//! a run may read megabytes.

use super::decoding::{base64_decoded, percent_decoded, spelled_out};
use super::spelling::{self, Folders};
use super::value_form::{MIN_WORD, ValueForm, looks};

/// Receives the values of a text; `alike` marks those that are only found by decoding or by their looks.
pub(super) type Sink<'s> = dyn FnMut(ValueForm, &str, At) + 's;

/// The place of a value in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// The byte at which it begins.
    pub(super) start: usize,
    /// `true` if the text has another spelling there, so that the value only explains.
    pub(super) alike: bool,
}

/// Above this length, neighbouring words are not kept: they double the time and the size.
const MAX_PAIRS: usize = 64 * 1024;

/// A part of a text between spaces and quotes.
#[derive(Clone, Copy)]
struct TextChunk<'t> {
    start: usize,
    text: &'t str,
    /// `true` if exactly one space is between this chunk and the one before, and no sign that ends a name.
    follows: bool,
}

/// Finds the values of a text.
pub(super) fn scan(text: &str, folders: &Folders, sink: &mut Sink<'_>) {
    let composed = spelling::composed(text);
    let mut hidden = HiddenText::default();
    scan_as(&composed, folders, false, sink, &mut |chunk, sink| hidden.chunk(chunk, folders, sink));
    hidden.end(&composed, folders, sink);
}

fn scan_as<'t>(
    text: &'t str,
    folders: &Folders,
    alike: bool,
    sink: &mut Sink<'_>,
    also: &mut dyn FnMut(TextChunk<'t>, &mut Sink<'_>),
) {
    let mut scanning = Scanning {
        folders,
        alike,
        pairs: text.len() <= MAX_PAIRS,
        buffer: String::new(),
        word: String::new(),
    };
    let mut recent: [Option<TextChunk<'_>>; 2] = [None, None];
    let mut groups = ValueGroups::default();
    for chunk in chunks(text) {
        scanning.chunk(chunk, recent, sink);
        groups.add(chunk, &mut |form, value, start| sink(form, value, At { start, alike }));
        also(chunk, sink);
        recent = [recent[1], Some(chunk)];
    }
    groups.end(&mut |form, value, start| sink(form, value, At { start, alike }));
}

/// Returns `true` for a character that ends a chunk as a space does.
fn is_cut(c: char) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    matches!(c, '<' | '>' | '"' | '“' | '”' | '„' | '«' | '»' | '`' | '|') || c.is_whitespace()
}

fn chunks(text: &str) -> impl Iterator<Item = TextChunk<'_>> {
    let mut rest = text;
    let mut offset = 0;
    let mut ends_name = true;
    std::iter::from_fn(move || {
        loop {
            let skipped = rest.find(|c| !is_cut(c))?;
            let gap = rest.get(..skipped)?;
            rest = rest.get(skipped..)?;
            offset += skipped;
            let length = rest.find(is_cut).unwrap_or(rest.len());
            let (raw, behind) = rest.split_at(length);
            let start = offset;
            rest = behind;
            offset += length;
            let opened = raw.trim_start_matches(['(', '[', '{', '\'', '*', ':', ',', ';', '=']);
            let text =
                opened.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '’', '*', '}', ']']);
            // A closing bracket belongs to a URL that has opened it.
            let text = match text.contains('(') {
                true => text,
                false => text.trim_end_matches([')', '.', ',', ';', ']', '}']),
            };
            let follows = gap == " " && !ends_name && opened.len() == raw.len();
            ends_name = text.len() < opened.len();
            if !text.is_empty() {
                return Some(TextChunk { start: start + raw.len() - opened.len(), text, follows });
            }
        }
    })
}

struct Scanning<'f> {
    folders: &'f Folders,
    alike: bool,
    pairs: bool,
    buffer: String,
    /// The last word, folded, to which the next one may be a neighbour.
    word: String,
}

impl Scanning<'_> {
    fn chunk(
        &mut self,
        chunk: TextChunk<'_>,
        recent: [Option<TextChunk<'_>>; 2],
        sink: &mut Sink<'_>,
    ) {
        let (text, at) = (chunk.text, At { start: chunk.start, alike: self.alike });
        if !text.is_ascii() && text.contains(spelling::is_invisible) {
            self.word.clear();
            return;
        }
        // Most chunks are words of letters alone.
        if text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'\'') {
            day_in_words(chunk, recent, at, sink);
            return self.words(text, chunk.follows, at, sink);
        }
        if text.len() > spelling::MAX_VALUE {
            self.word.clear();
            return;
        }
        // `[this](https://…)`: the address is behind the bracket.
        if let Some((before, behind)) = text.split_once("](") {
            let start = chunk.start + before.len() + 2;
            self.chunk(
                TextChunk { start, text: behind.trim_end_matches(')'), follows: false },
                [None; 2],
                sink,
            );
            return self.words(before, false, at, sink);
        }
        if text.contains("://") {
            self.word.clear();
            return self.url(text, at, sink);
        }
        if text.contains('@') {
            self.addresses(text, at, sink);
        }
        self.plain(chunk, recent, at, sink);
    }

    fn url(&mut self, text: &str, at: At, sink: &mut Sink<'_>) {
        let scheme = text.find("://").unwrap_or(0);
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let begins = text
            .get(..scheme)
            .and_then(|it| it.rfind(|c| !is_scheme(c)))
            .map_or(0, |last| last + 1);
        let Some(url) = text.get(begins..) else { return };
        let query = url.find(['?', '#', '&', '=']).and_then(|from| url.get(from..));
        if let Some(query) = query.filter(|it| it.contains('@')) {
            self.addresses(query, at, sink);
        }
        let mut into = std::mem::take(&mut self.buffer);
        if let Some(Some(scheme)) = spelling::url(url, &mut into) {
            let host = into.split(['/', ':', '?', '#']).next().unwrap_or_default();
            sink(ValueForm::Host, host, At { alike: true, ..at });
            sink(ValueForm::Looks, &looks(url), At { alike: true, ..at });
            into.insert_str(0, "://");
            into.insert_str(0, &scheme.to_ascii_lowercase());
            sink(ValueForm::Url, &into, at);
        }
        self.buffer = into;
    }

    fn addresses(&mut self, text: &str, at: At, sink: &mut Sink<'_>) {
        let is_local = |c: char| spelling::is_word(c) || matches!(c, '.' | '+' | '%');
        let is_host = |c: char| c == '.' || (spelling::is_word(c) && !matches!(c, '\'' | '’'));
        for (middle, _) in text.match_indices('@') {
            let (before, behind) = text.split_at(middle);
            let behind = behind.get(1..).unwrap_or_default();
            let begins = before.char_indices().rev().take_while(|(_, c)| is_local(*c)).last();
            let Some((begins, _)) = begins else { continue };
            let ends = behind.find(|c| !is_host(c)).unwrap_or(behind.len());
            let around = before.get(..begins).zip(behind.get(ends..));
            let twice = around.is_none_or(|(it, next)| it.ends_with('@') || next.starts_with('@'));
            let found = text.get(begins..middle + 1 + ends).unwrap_or_default();
            let found = found.trim_matches(['.', '\'', '’']);
            let mut into = std::mem::take(&mut self.buffer);
            if !twice && spelling::address(found, &mut into) {
                sink(ValueForm::Address, &into, at);
                let host = into.rsplit('@').next().unwrap_or_default();
                sink(ValueForm::Host, host, At { alike: true, ..at });
                sink(ValueForm::Looks, &looks(found), At { alike: true, ..at });
            }
            self.buffer = into;
        }
    }

    /// A chunk that is neither a URL nor a word of letters.
    fn plain(
        &mut self,
        chunk: TextChunk<'_>,
        recent: [Option<TextChunk<'_>>; 2],
        at: At,
        sink: &mut Sink<'_>,
    ) {
        let text = chunk.text;
        let mut into = std::mem::take(&mut self.buffer);
        let first = text.split(['/', ':', '?', '#']).next().unwrap_or_default();
        if first.contains('.')
            && spelling::is_domain(first)
            && spelling::url(text, &mut into).is_some()
        {
            sink(ValueForm::Bare, &into, at);
            sink(ValueForm::Host, &first.to_ascii_lowercase(), At { alike: true, ..at });
            sink(ValueForm::Looks, &looks(text), At { alike: true, ..at });
        }
        if spelling::is_path(text) {
            spelling::path(text, self.folders, &mut into);
            sink(ValueForm::Path, &into, at);
        }
        let starts =
            |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '$' | '€' | '£' | '¥' | '#');
        if text.starts_with(starts) {
            number(chunk, recent[1], at, &mut into, sink);
            day_in_words(chunk, recent, at, sink);
        }
        self.buffer = into;
        if !text.chars().all(spelling::is_word) {
            sink(ValueForm::Chunk, text, at);
        }
        self.words(text, chunk.follows, at, sink);
    }

    fn words(&mut self, text: &str, follows: bool, at: At, sink: &mut Sink<'_>) {
        let mut follows = follows;
        for word in text.split(|c| !spelling::is_word(c)) {
            let word = word.trim_matches(['\'', '’', '-']);
            if word.is_empty() {
                follows = false;
                continue;
            }
            let mut folded = std::mem::take(&mut self.buffer);
            spelling::fold(word, &mut folded);
            if folded.len() >= MIN_WORD {
                sink(ValueForm::Word, &folded, at);
            }
            if self.pairs && follows && !self.word.is_empty() {
                self.word.push(' ');
                self.word.push_str(&folded);
                sink(ValueForm::Pair, &self.word, at);
            }
            std::mem::swap(&mut self.word, &mut folded);
            self.buffer = folded;
            follows = false;
        }
    }
}

fn number(
    chunk: TextChunk<'_>,
    before: Option<TextChunk<'_>>,
    at: At,
    into: &mut String,
    sink: &mut Sink<'_>,
) {
    if let Some(forms) = super::value_form::moment(chunk.text) {
        return forms.iter().for_each(|(form, value)| sink(*form, value, at));
    }
    let marked = chunk.text.strip_prefix('#');
    let text = marked.unwrap_or(chunk.text);
    if !spelling::number(text, into) {
        return;
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let currency = |c: char| matches!(c, '$' | '€' | '£' | '¥' | '%');
    let named = || before.is_some_and(|it| announces_number(it.text));
    if digits >= 4 || marked.is_some() || text.contains(currency) || named() {
        sink(ValueForm::Number, into, at);
    }
}

/// `May 26th, 2026`, `26 May 2026` and `26th of May`, seen from their last chunk; and a number before its currency.
fn day_in_words(
    chunk: TextChunk<'_>,
    recent: [Option<TextChunk<'_>>; 2],
    at: At,
    sink: &mut Sink<'_>,
) {
    let Some(before) = recent[1] else { return };
    if is_currency(chunk.text) {
        let mut into = String::new();
        if spelling::number(before.text, &mut into) {
            sink(ValueForm::Number, &into, at);
        }
    }
    let month = |chunk: TextChunk<'_>| spelling::month(chunk.text);
    if [Some(chunk), recent[1], recent[0]].into_iter().flatten().all(|it| month(it).is_none()) {
        return;
    }
    let day = |chunk: TextChunk<'_>| {
        let text = chunk.text;
        let digits =
            ["st", "nd", "rd", "th"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
        let day = digits.parse::<u32>().ok().filter(|_| digits.len() <= 2);
        day.filter(|day| (1..=31).contains(day))
    };
    let year = |chunk: TextChunk<'_>| {
        chunk.text.len() == 4 && chunk.text.bytes().all(|b| b.is_ascii_digit())
    };
    let mut found = |month: u32, day: u32, year: Option<&str>| match year {
        Some(year) => sink(ValueForm::Day, &format!("{year}-{month:02}-{day:02}"), at),
        None => sink(ValueForm::Yearless, &format!("{month:02}-{day:02}"), at),
    };
    match recent[0] {
        Some(first) if year(chunk) => {
            let both = month(first).zip(day(before)).or(month(before).zip(day(first)));
            both.into_iter().for_each(|(month, day)| found(month, day, Some(chunk.text)));
        }
        Some(first) if before.text == "of" => {
            month(chunk)
                .zip(day(first))
                .into_iter()
                .for_each(|(month, day)| found(month, day, None));
        }
        _ => {}
    }
    let both = month(before).zip(day(chunk)).or(month(chunk).zip(day(before)));
    both.into_iter().for_each(|(month, day)| found(month, day, None));
}

fn announces_number(word: &str) -> bool {
    const WORDS: &[&str] =
        &["id", "no", "nr", "number", "issue", "pr", "ticket", "order", "invoice"];
    let word = word.trim_end_matches(['.', ':', '#']);
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn is_currency(word: &str) -> bool {
    const WORDS: &[&str] =
        &["usd", "eur", "gbp", "chf", "dollar", "dollars", "euro", "euros", "percent"];
    matches!(word, "$" | "€" | "£" | "¥" | "%")
        || WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Values in groups with single spaces between them: account numbers, telephone numbers, thousands.
#[derive(Default)]
struct ValueGroups<'t> {
    groups: Vec<TextChunk<'t>>,
    is_account: bool,
}

/// The most groups of one value.
const MAX_GROUPS: usize = 12;

impl<'t> ValueGroups<'t> {
    fn add(&mut self, chunk: TextChunk<'t>, found: &mut dyn FnMut(ValueForm, &str, usize)) {
        let bytes = chunk.text.as_bytes();
        let begins_account = matches!(bytes, [a, b, c, d, ..] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && c.is_ascii_digit() && d.is_ascii_digit())
            && bytes.iter().all(u8::is_ascii_alphanumeric);
        let is_digits =
            bytes.first().is_some_and(|b| b.is_ascii_digit() || matches!(b, b'+' | b'('))
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'(' | b')' | b',' | b'.'));
        let fits = match self.is_account {
            true => bytes.len() <= 4 && bytes.iter().all(u8::is_ascii_alphanumeric),
            false => is_digits,
        };
        if !self.groups.is_empty() && chunk.follows && fits && self.groups.len() < MAX_GROUPS {
            return self.groups.push(chunk);
        }
        self.end(found);
        if begins_account || is_digits {
            self.is_account = begins_account;
            self.groups.push(chunk);
        }
    }

    fn end(&mut self, found: &mut dyn FnMut(ValueForm, &str, usize)) {
        let Some(start) = self.groups.first().map(|first| first.start) else { return };
        let mut into = String::new();
        let joined = |groups: &[TextChunk<'_>]| groups.iter().map(|it| it.text).collect::<String>();
        if self.is_account {
            // Words may follow the number, so that its end is where the check digits are right.
            for count in (1..=self.groups.len()).rev() {
                let Some(groups) = self.groups.get(..count) else { break };
                if spelling::account(&joined(groups), &mut into) {
                    found(ValueForm::Account, &into, start);
                    break;
                }
            }
        } else if self.groups.len() > 1 {
            let digits = joined(&self.groups).replace(['(', ')'], "");
            let plain = digits.trim_start_matches('+').bytes().all(|b| b.is_ascii_digit());
            let thousands = self.groups.get(1..).is_some_and(|rest| {
                rest.iter()
                    .all(|it| it.text.split(['.', ',']).next().is_some_and(|it| it.len() == 3))
            });
            let is_one = thousands || (plain && (7..=15).contains(&digits.len()));
            if is_one && spelling::number(&digits, &mut into) {
                found(ValueForm::Number, &into, start);
            }
        }
        self.groups.clear();
    }
}

/// Values in another spelling: with characters that are not seen, encoded, spelled out. They only explain.
#[derive(Default)]
struct HiddenText {
    /// Letters with spaces between them, and where they began.
    letters: String,
    began: usize,
    /// `true` if the text has the word `dot`.
    has_dot: bool,
}

/// The fewest letters with spaces between them that are put together.
const MIN_LETTERS: usize = 6;

impl HiddenText {
    fn chunk(&mut self, chunk: TextChunk<'_>, folders: &Folders, sink: &mut Sink<'_>) {
        let text = chunk.text;
        let first = text.chars().next().map_or(0, char::len_utf8);
        if first == text.len() {
            if self.letters.is_empty() {
                self.began = chunk.start;
            }
            return self.letters.push_str(text);
        }
        self.end_letters(folders, sink);
        self.has_dot |= text.eq_ignore_ascii_case("dot");
        if text.len() < 6 || text.bytes().all(|b| b.is_ascii_lowercase()) {
            return;
        }
        let plain = match () {
            () if !text.is_ascii() && text.contains(spelling::is_invisible) => {
                Some(text.chars().filter(|c| !spelling::is_invisible(*c)).collect())
            }
            () if text.contains('%') => percent_decoded(text),
            () => base64_decoded(text),
        };
        if let Some(plain) = plain {
            decoded(&plain, chunk.start, folders, sink);
        }
    }

    fn end_letters(&mut self, folders: &Folders, sink: &mut Sink<'_>) {
        if self.letters.len() >= MIN_LETTERS {
            decoded(&self.letters, self.began, folders, sink);
        }
        self.letters.clear();
    }

    fn end(&mut self, text: &str, folders: &Folders, sink: &mut Sink<'_>) {
        self.end_letters(folders, sink);
        if self.has_dot {
            spelled_out(text, &mut |plain| decoded(plain, 0, folders, sink));
        }
    }
}

/// Finds the values of a text that stands at this place in another spelling.
fn decoded(plain: &str, start: usize, folders: &Folders, sink: &mut Sink<'_>) {
    let mut alike = |form, value: &str, _| sink(form, value, At { start, alike: true });
    scan_as(plain, folders, true, &mut alike, &mut |_, _| {});
}
