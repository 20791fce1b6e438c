//! A filter in front of a list of names: most names that are looked up are in no list, and are compared with none.

/// A filter in front of a list of names, by their first letters and lengths, whatever their case.
///
/// ```
/// use countersign_shell::Sieve;
///
/// const KNOWN: Sieve = Sieve::new().with("content").with("contents");
/// assert!(KNOWN.may_have("Content"));
/// assert!(!KNOWN.may_have("path"), "so the list need not be searched");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Sieve([u64; 32]);

impl Sieve {
    /// The filter of an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; 32])
    }

    /// Adds a name of the list.
    #[must_use]
    pub const fn with(mut self, name: &str) -> Self {
        let (row, length) = place(name);
        // In range, as `place` says.
        #[expect(clippy::indexing_slicing, reason = "a row is below 32")]
        {
            self.0[row] |= length;
        }
        self
    }

    /// Whether a name may be in the list. `false` is certain.
    #[must_use]
    pub fn may_have(&self, name: &str) -> bool {
        let (row, length) = place(name);
        self.0.get(row).is_some_and(|lengths| lengths & length != 0)
    }
}

impl Default for Sieve {
    fn default() -> Self {
        Self::new()
    }
}

/// The row of a name, below 32, and its length as a bit. Lengths from 63 on share one.
///
/// A letter and its capital have the same five low bits.
const fn place(name: &str) -> (usize, u64) {
    let first = match name.as_bytes() {
        [first, ..] => *first & 31,
        [] => 0,
    };
    let length = if name.len() < 63 { name.len() } else { 63 };
    (first as usize, 1 << length)
}

/// Names that are compared whatever their case, and a filter by which most names are compared with none.
pub(crate) struct SieveNames {
    sieve: Sieve,
    names: Vec<String>,
}

impl SieveNames {
    pub(crate) fn new() -> Self {
        Self { sieve: Sieve::new(), names: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str) {
        self.sieve = self.sieve.with(name);
        self.names.push(name.to_owned());
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.sieve.may_have(name) && self.names.iter().any(|it| it.eq_ignore_ascii_case(name))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.names.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Sieve;

    #[test]
    fn no_name_of_the_list_is_held_back_in_any_case() {
        const NAMES: &[&str] = &[
            "",
            "a",
            "Content",
            "_x",
            "\u{df}",
            "a name that is longer than sixty-three bytes, as nearly no name is",
        ];
        let sieve = NAMES.iter().fold(Sieve::new(), |sieve, name| sieve.with(name));
        for name in NAMES {
            for name in [(*name).to_owned(), name.to_ascii_uppercase(), name.to_ascii_lowercase()] {
                assert!(sieve.may_have(&name), "{name}");
            }
        }
        assert!(!sieve.may_have("path") && !sieve.may_have("contents"));
    }
}
