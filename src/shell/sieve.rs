//! A filter in front of a list of names: most names that are looked up are in no list, and are compared with none.

/// The lengths of names by their first letters, whatever their case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve([u64; 32]);

impl Sieve {
    pub(crate) const fn new() -> Self {
        Self([0; 32])
    }

    pub(crate) const fn with(mut self, name: &str) -> Self {
        let (row, length) = place(name);
        // In range, as `place` says.
        #[expect(clippy::indexing_slicing, reason = "a row is below 32")]
        {
            self.0[row] |= length;
        }
        self
    }

    /// Whether a name may be in the list. `false` is certain.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        let (row, length) = place(name);
        self.0.get(row).is_some_and(|lengths| lengths & length != 0)
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
