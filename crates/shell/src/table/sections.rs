//! The built-in table, of which only what a command needs is parsed.
//!
//! A hook is a new process for each call, and to parse the whole table would take most of its time. So we split the files
//! at their headers, which is cheap, and make an entry of the sections that describe its program and of those that these
//! are `like`. A test compares each entry with that of the whole table.
//!
//! The names in the headers are a sorted list, and not a map: to make it takes a fifth of the instructions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use super::entry::ProgramEntry;
use super::format;

/// The sections of some files, and the entries that were made of them.
pub(super) struct Sections {
    files: &'static [(&'static str, &'static str)],
    all: Vec<Section>,
    /// The programs of all headers, sorted.
    programs: Vec<Header>,
    /// The entries, each beside the first header of its program.
    entries: Vec<OnceLock<Option<Arc<ProgramEntry>>>>,
    /// The groups of each file, such as `@pager`.
    groups: HashMap<(usize, &'static str), usize>,
}

/// A header, and the lines up to the next one.
struct Section {
    file: usize,
    text: &'static str,
}

/// A program in the header of a section. Headers are compared by their first field that differs, so that all of one
/// program stand together, in the order of the files.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Header {
    /// The first eight letters as a number, by which most names differ.
    start: u64,
    name: &'static str,
    section: usize,
    /// `true` if the section only adds to an entry, and makes none (`[+git]`).
    adds: bool,
}

impl Sections {
    pub(super) fn new(files: &'static [(&'static str, &'static str)]) -> Self {
        let (programs, groups) = (Vec::with_capacity(4_096), HashMap::new());
        let mut this = Self { files, all: Vec::new(), programs, entries: Vec::new(), groups };
        for (file, (_, text)) in files.iter().enumerate() {
            let mut starts = starts(text).peekable();
            while let Some(start) = starts.next() {
                let end = starts.peek().copied().unwrap_or(text.len());
                text.get(start..end).into_iter().for_each(|text| this.add(Section { file, text }));
            }
        }
        this.programs.sort_unstable();
        this.entries.resize_with(this.programs.len(), OnceLock::new);
        this
    }

    /// Adds a section, and the names in its header.
    fn add(&mut self, section: Section) {
        let Section { file, text } = section;
        let number = self.all.len();
        self.all.push(section);
        let header = text.lines().next().unwrap_or_default().trim();
        let header = header.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let names = header.and_then(|it| it.split_ascii_whitespace().next()).unwrap_or_default();
        let adds = names.starts_with('+');
        let names = names.trim_start_matches('+');
        if names.starts_with('@') {
            self.groups.insert((file, names), number);
            return;
        }
        let names = names.split('|');
        self.programs.extend(names.map(|name| Header {
            start: first_letters(name),
            name,
            section: number,
            adds,
        }));
    }

    /// Where the headers of a program begin, and how many it has. A section that adds makes no entry.
    fn headers(&self, name: &str) -> Option<(usize, &[Header])> {
        let key = (first_letters(name), name);
        let at = self.programs.partition_point(|header| (header.start, header.name) < key);
        let from = self.programs.get(at..).unwrap_or_default();
        let all = from.iter().take_while(|header| header.name == name).count();
        let adding = from.iter().take(all).take_while(|header| header.adds).count();
        let headers = from.get(adding..all).filter(|headers| !headers.is_empty())?;
        Some((at + adding, headers))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let mut last = "";
        let makes = self.programs.iter().filter(|header| !header.adds);
        makes
            .map(|header| header.name)
            .filter(move |name| std::mem::replace(&mut last, *name) != *name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<ProgramEntry>> {
        let (at, headers) = self.headers(name)?;
        self.entries.get(at)?.get_or_init(|| self.parsed(name, headers)).as_ref()
    }

    /// The entries of all programs.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, Arc<ProgramEntry>)> {
        self.names().filter_map(|name| Some((name.to_owned(), Arc::clone(self.get(name)?))))
    }

    /// Parses the sections that the entry of a program is made of, in their order.
    fn parsed(&self, name: &str, headers: &[Header]) -> Option<Arc<ProgramEntry>> {
        let needed = self.needed(headers);
        let mut entries = HashMap::new();
        for (file, (title, _)) in self.files.iter().enumerate() {
            let sections = needed.iter().filter_map(|number| self.all.get(*number));
            let texts = sections.filter(|section| section.file == file).map(|it| it.text);
            // A test parses the files. Without its entry, a program would be asked about.
            format::read(title, &texts.collect::<String>(), &mut entries).ok()?;
        }
        entries.remove(name)
    }

    /// The sections about a program, those that they are `like`, and so on.
    fn needed(&self, headers: &[Header]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<_> = headers.iter().map(|header| header.section).collect();
        while let Some(number) = open.pop() {
            let Some(section) = self.all.get(number).filter(|_| found.insert(number)) else {
                continue;
            };
            for like in section.text.lines().filter_map(|line| line.trim().strip_prefix("like:")) {
                if let Some(group) = self.groups.get(&(section.file, like.trim())) {
                    open.push(*group);
                } else if let Some((_, headers)) =
                    like.split_whitespace().next().and_then(|name| self.headers(name))
                {
                    open.extend(headers.iter().map(|header| header.section));
                }
            }
        }
        found
    }
}

/// Where the headers of a file begin: at each bracket that begins a line.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let begins_line =
        move |at: &usize| text.get(..*at).is_none_or(|it| it.is_empty() || it.ends_with('\n'));
    text.match_indices('[').map(|(at, _)| at).filter(begins_line)
}

/// Numbers in the order of the names.
fn first_letters(name: &str) -> u64 {
    let mut start = [0; 8];
    start.iter_mut().zip(name.bytes()).for_each(|(letter, byte)| *letter = byte);
    u64::from_be_bytes(start)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::{BUILT_IN, format};
    use super::Sections;

    /// An approval is bound to the digests of entries (rule R6), so that they may not depend on what else was parsed.
    #[test]
    fn an_entry_that_is_parsed_alone_is_that_of_the_whole_table() {
        let sections = Sections::new(BUILT_IN);
        let mut whole = HashMap::new();
        for (file, text) in BUILT_IN {
            format::read(file, text, &mut whole).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(sections.names().count(), whole.len());
        for (name, entry) in &whole {
            let alone = sections.get(name).unwrap_or_else(|| panic!("no entry of `{name}`"));
            assert!(alone.is_same(entry), "{name}: {alone:?} {entry:?}");
        }
        assert!(sections.get("no-such-program").is_none());
    }
}
