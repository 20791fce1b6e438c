//! The forms of values: what is put into the index of a text, and what is looked up for a value.

use super::spelling::{self, Folders};

/// The kind of a value, as one byte in front of its normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// A whole field or text, exactly.
    Whole = b't' as isize,
    /// A whole field of words, without regard to case.
    Words = b'f' as isize,
    Address = b'e' as isize,
    /// A URL with its scheme, and one without.
    Url = b'u' as isize,
    Bare = b'b' as isize,
    /// The host of a URL or address, which only explains.
    Host = b'h' as isize,
    Path = b'p' as isize,
    Account = b'i' as isize,
    Number = b'n' as isize,
    Day = b'd' as isize,
    /// A day without a year.
    Yearless = b'y' as isize,
    Time = b'm' as isize,
    Word = b'w' as isize,
    /// Two neighbouring words.
    Pair = b'2' as isize,
    /// Something without spaces that is none of these, such as an id with points.
    Chunk = b'c' as isize,
    /// The look of an address or a host.
    Looks = b'l' as isize,
}

/// Of what a value consists: all of the forms have to stand in one read. There may be several ways.
#[derive(Debug, Default)]
pub(super) struct LookUp {
    pub(super) ways: Vec<Vec<(ValueForm, String)>>,
}

/// The most words that a name has.
const MAX_NAME: usize = 8;

/// The fewest letters of a word that is found inside of a text.
pub(super) const MIN_WORD: usize = 3;

impl LookUp {
    /// The ways in which a value of a call can occur; none for a value that occurs nowhere.
    pub(super) fn of(value: &str, folders: &Folders) -> Self {
        let mut found = Self::default();
        let Some(value) = spelling::comparable(value) else { return found };
        let value: &str = &value;
        let whole = value.split_whitespace().collect::<Vec<_>>().join(" ");
        found.ways.push(vec![(ValueForm::Whole, whole)]);
        found.kinds(value, folders);
        found
    }

    fn one(&mut self, form: ValueForm, text: &str) {
        self.ways.push(vec![(form, text.to_owned())]);
    }

    fn kinds(&mut self, value: &str, folders: &Folders) {
        let mut into = String::new();
        if spelling::account(value, &mut into) {
            return self.one(ValueForm::Account, &into);
        }
        if value.contains("://") {
            return self.url(value);
        }
        if value.contains('@') && spelling::address(value, &mut into) {
            return self.one(ValueForm::Address, &into);
        }
        if let Some(forms) = moment(value) {
            return self.moment(forms);
        }
        if spelling::number(value, &mut into) {
            return self.one(ValueForm::Number, &into);
        }
        if !value.contains(char::is_whitespace) {
            if spelling::is_path(value) {
                spelling::path(value, folders, &mut into);
                return self.one(ValueForm::Path, &into);
            }
            let host = value.split(['/', ':', '?', '#']).next().unwrap_or_default();
            if spelling::is_domain(host) {
                return self.url(value);
            }
        }
        self.name(value);
    }

    fn url(&mut self, value: &str) {
        let mut into = String::new();
        match spelling::url(value, &mut into) {
            Some(Some(scheme)) => {
                let web =
                    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
                self.one(ValueForm::Url, &format!("{}://{into}", scheme.to_ascii_lowercase()));
                if web {
                    self.one(ValueForm::Bare, &into);
                }
            }
            // A program adds the scheme.
            Some(None) => {
                self.one(ValueForm::Bare, &into);
                self.one(ValueForm::Url, &format!("https://{into}"));
                self.one(ValueForm::Url, &format!("http://{into}"));
            }
            None => {}
        }
    }

    fn moment(&mut self, forms: Vec<(ValueForm, String)>) {
        // A day that was written without a year is one of this year, or of those beside it.
        let yearless = forms.iter().find_map(|(form, day)| {
            let (year, rest) = day.split_once('-').filter(|_| *form == ValueForm::Day)?;
            let near = year.parse::<i64>().is_ok_and(|year| (year - this_year()).abs() <= 1);
            near.then(|| (ValueForm::Yearless, rest.to_owned()))
        });
        let others: Vec<_> =
            forms.iter().filter(|(form, _)| *form != ValueForm::Day).cloned().collect();
        self.ways.push(forms);
        if let Some(yearless) = yearless {
            self.ways.push([yearless].into_iter().chain(others).collect());
        }
    }

    /// A name: words with single spaces between them. Anything else without spaces is an id.
    fn name(&mut self, value: &str) {
        let plain = value.strip_prefix(['#', '@']).unwrap_or(value);
        let words: Vec<&str> = plain.split(' ').collect();
        let is_name = |word: &&str| !word.is_empty() && word.chars().all(spelling::is_word);
        if !words.iter().all(is_name) {
            if words.len() == 1 {
                self.one(ValueForm::Chunk, value);
            }
            return;
        }
        let mut folded = String::new();
        spelling::fold(plain, &mut folded);
        self.one(ValueForm::Words, &folded);
        match words.len() {
            1 if folded.chars().count() >= MIN_WORD => self.one(ValueForm::Word, &folded),
            2..=MAX_NAME => {
                let folded: Vec<&str> = folded.split(' ').collect();
                let pairs = folded.windows(2).map(|pair| (ValueForm::Pair, pair.join(" ")));
                self.ways.push(pairs.collect());
            }
            _ => {}
        }
    }

    /// The ways in which something that looks like the value may stand somewhere.
    pub(super) fn alike(value: &str) -> Self {
        let seen: String = value.chars().filter(|c| !spelling::is_invisible(*c)).collect();
        let mut found = Self::default();
        let seen = seen.trim();
        if seen.is_empty() || seen.len() > spelling::MAX_VALUE {
            return found;
        }
        found.one(ValueForm::Looks, &looks(seen));
        let host = match (seen.split_once("://"), seen.rsplit_once('@')) {
            (Some((_, rest)), _) => rest.split(['/', '?', '#', ':']).next(),
            (None, Some((_, host))) => Some(host),
            (None, None) => Some(seen.split(['/', '?', '#', ':']).next().unwrap_or_default()),
        };
        if let Some(host) = host.filter(|host| spelling::is_domain(host)) {
            found.one(ValueForm::Host, &host.to_ascii_lowercase());
        }
        found
    }
}

/// A form of the text that is the same for letters that look the same.
///
/// Most addresses have letters, digits and few signs, whose looks are known without the tables.
pub(super) fn looks(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"@./:?=&#+-".contains(&b);
    if text.bytes().all(is_plain) {
        let mut seen = String::with_capacity(text.len() + 8);
        for b in text.bytes().map(|b| b.to_ascii_lowercase()) {
            match b {
                b'm' => seen.push_str("rn"),
                b'0' => seen.push('O'),
                b'1' => seen.push('l'),
                b => seen.push(char::from(b)),
            }
        }
        return seen;
    }
    unicode_security::skeleton(&text.to_lowercase()).collect()
}

/// A day, a time of day, or both.
pub(super) fn moment(value: &str) -> Option<Vec<(ValueForm, String)>> {
    let day = |text: &str| spelling::day(text).map(|it| (ValueForm::Day, it));
    let time = |text: &str| spelling::time(text).map(|it| (ValueForm::Time, it));
    match value.split_once([' ', 'T']) {
        Some((first, second)) => Some(vec![day(first)?, time(second)?]),
        None => day(value).or_else(|| time(value)).map(|it| vec![it]),
    }
}

fn this_year() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = now.map_or(0, |it| it.as_secs() / 86_400);
    // The mean length of a year is close enough, as the years beside this one count, too.
    1970 + i64::try_from(days * 10_000 / 3_652_425).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_characters_look_as_the_tables_say() {
        for b in (b' '..=b'~').map(char::from) {
            let tables: String =
                unicode_security::skeleton(&b.to_lowercase().to_string()).collect();
            assert_eq!(looks(&b.to_string()), tables, "{b}");
        }
    }
}
