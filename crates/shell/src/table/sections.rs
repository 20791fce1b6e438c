//! The built-in table, of which only what a command needs is parsed.
//!
//! A hook is a new process for each call, and parsing the whole table would take most of its time. So the files are split
//! at their headers, which is cheap, and an entry is made of the sections that describe its program and of those that
//! these are `like`. A test compares each entry with that of the whole table.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use super::entry::ProgramEntry;
use super::format;

/// The sections of some files, and the entries that were made of them.
pub(super) struct Sections {
    files: &'static [(&'static str, &'static str)],
    all: Vec<Section>,
    programs: HashMap<&'static str, ProgramSections>,
    /// The groups of each file, such as `@pager`.
    groups: HashMap<(usize, &'static str), usize>,
}

/// A header, and the lines up to the next one.
struct Section {
    file: usize,
    text: &'static str,
}

#[derive(Default)]
struct ProgramSections {
    /// Where it is described, in the order of the files.
    sections: Vec<usize>,
    entry: OnceLock<Option<Arc<ProgramEntry>>>,
}

impl Sections {
    pub(super) fn new(files: &'static [(&'static str, &'static str)]) -> Self {
        let mut this =
            Self { files, all: Vec::new(), programs: HashMap::new(), groups: HashMap::new() };
        for (file, (_, text)) in files.iter().enumerate() {
            let mut start = None;
            let mut at = 0;
            for line in text.split_inclusive('\n') {
                if line.starts_with('[') {
                    this.add(file, text, start, at);
                    start = Some(at);
                }
                at += line.len();
            }
            this.add(file, text, start, at);
        }
        this
    }

    /// Adds the section between two places of a file.
    fn add(&mut self, file: usize, text: &'static str, start: Option<usize>, end: usize) {
        let Some(text) = start.and_then(|start| text.get(start..end)) else { return };
        let number = self.all.len();
        self.all.push(Section { file, text });
        let header = text.lines().next().unwrap_or_default().trim();
        let header = header.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let names = header.and_then(|it| it.split_whitespace().next()).unwrap_or_default();
        let adds = names.starts_with('+');
        let names = names.trim_start_matches('+');
        if names.starts_with('@') {
            self.groups.insert((file, names), number);
            return;
        }
        for name in names.split('|') {
            match self.programs.get_mut(name) {
                Some(program) => program.sections.push(number),
                // A section that adds makes no entry.
                None if adds => {}
                None => self.programs.entry(name).or_default().sections.push(number),
            }
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().copied()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<ProgramEntry>> {
        let program = self.programs.get(name)?;
        program.entry.get_or_init(|| self.parsed(name)).as_ref()
    }

    /// The entries of all programs.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, Arc<ProgramEntry>)> {
        self.names().filter_map(|name| Some((name.to_owned(), Arc::clone(self.get(name)?))))
    }

    /// Parses the sections that the entry of a program is made of, in their order.
    fn parsed(&self, name: &str) -> Option<Arc<ProgramEntry>> {
        let needed = self.needed(name);
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
    fn needed(&self, name: &str) -> BTreeSet<usize> {
        let about = |name: &str| {
            self.programs.get(name).map(|it| it.sections.as_slice()).unwrap_or_default()
        };
        let mut found = BTreeSet::new();
        let mut open = about(name).to_vec();
        while let Some(number) = open.pop() {
            let Some(section) = self.all.get(number).filter(|_| found.insert(number)) else {
                continue;
            };
            for like in section.text.lines().filter_map(|line| line.trim().strip_prefix("like:")) {
                match self.groups.get(&(section.file, like.trim())) {
                    Some(group) => open.push(*group),
                    None => open.extend(about(like.split_whitespace().next().unwrap_or_default())),
                }
            }
        }
        found
    }
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
