//! The options among the words behind a program, as programs that read folders take them.
//!
//! We look for options that widen generously: a long option by its first letters, a letter in a bundle. What narrows
//! has to be written in full.

/// The words behind a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandWords<'w>(pub(crate) &'w [String]);

impl<'w> CommandWords<'w> {
    fn options(&self) -> impl Iterator<Item = (usize, &'w str)> {
        let words = self.0.iter().map(String::as_str).enumerate();
        words.take_while(|(_, word)| *word != "--").filter(|(_, word)| word.starts_with('-'))
    }

    /// The options of one letter, several in one word, each with the rest of the word behind it. Behind a letter with a
    /// value the rest of the word is that value.
    fn letters(&self, valued: &'w str) -> impl Iterator<Item = (usize, char, &'w str)> {
        let bundles = self.options().filter_map(|(at, word)| Some((at, word.strip_prefix('-')?)));
        let bundles = bundles.filter(|(_, letters)| !letters.starts_with('-'));
        bundles.flat_map(move |(at, letters)| {
            let end = letters.find(|it| valued.contains(it));
            let all =
                letters.char_indices().take_while(move |(at, _)| end.is_none_or(|end| *at <= end));
            all.map(move |(place, letter)| {
                (at, letter, letters.get(place + letter.len_utf8()..).unwrap_or_default())
            })
        })
    }

    /// The number of times the options of one letter have this one.
    pub(crate) fn count(&self, letter: char, valued: &'w str) -> usize {
        self.letters(valued).filter(|(_, it, _)| *it == letter).count()
    }

    pub(crate) fn letter(&self, letters: &str, valued: &'w str) -> bool {
        letters.chars().any(|letter| self.count(letter, valued) > 0)
    }

    pub(super) fn count_long(&self, begins: &str) -> usize {
        self.options().filter(|(_, word)| word.starts_with(begins)).count()
    }

    /// Returns `true` if a long option begins so: programs take the first letters of an option for it.
    pub(crate) fn long(&self, begins: &[&str]) -> bool {
        begins.iter().any(|begins| self.count_long(begins) > 0)
    }

    pub(crate) fn any(&self, wanted: &[&str]) -> bool {
        self.0.iter().any(|word| wanted.contains(&word.as_str()))
    }

    /// Returns `true` if only the shell knows an option, so that it may be any.
    pub(super) fn has_unknown_option(&self, valued: &str) -> bool {
        self.options().any(|(_, word)| {
            let name = word.split('=').next().unwrap_or_default();
            let before = name.find(['$', '`']).and_then(|at| name.get(1..at));
            before.is_some_and(|before| {
                before.starts_with('-') || !before.contains(|c| valued.contains(c))
            })
        })
    }

    /// The values of options: `--include=*.rs`, `--include *.rs`, `-g*.rs`.
    pub(crate) fn values(&self, names: &[&str]) -> Vec<String> {
        let value = |(at, word): (usize, &'w String)| {
            names.iter().find_map(|name| match word.strip_prefix(name)? {
                "" => self.0.get(at + 1).cloned(),
                rest if rest.starts_with('=') => rest.get(1..).map(str::to_owned),
                rest => (name.len() == 2).then(|| rest.to_owned()),
            })
        };
        self.0.iter().enumerate().filter_map(value).collect()
    }

    /// The values of an option of one letter, also at the end of a bundle (`-nd x`), and of the long option that begins so,
    /// in as many letters as it has to have.
    pub(super) fn values_of(
        &self,
        letter: Option<char>,
        valued: &'w str,
        long: (&str, usize),
    ) -> Vec<String> {
        let next = |at: usize| self.0.get(at + 1).cloned();
        let short = self.letters(valued).filter(|(_, it, _)| Some(*it) == letter);
        let short = short.filter_map(|(at, _, rest)| match rest {
            "" => next(at),
            rest => Some(rest.to_owned()),
        });
        let (name, least) = long;
        let long = self.options().filter_map(|(at, word)| {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (word, None),
            };
            (option.len() >= least && name.starts_with(option))
                .then(|| value.or_else(|| next(at)))?
        });
        short.chain(long).collect()
    }
}
