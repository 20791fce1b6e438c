//! The head of an ask in a review: all that a person is told beside its call (rule S16).

use std::fmt;

/// The place of an ask among those that wait for a person. The review shows it with the ask.
///
/// ```
/// use countersign_terminal::ReviewPlace;
/// assert_eq!(ReviewPlace::new(2, 5).to_string(), "2 of 5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewPlace {
    number: usize,
    all: usize,
}

impl ReviewPlace {
    /// The ask of this number, from 1 on, of so many.
    #[must_use]
    pub fn new(number: usize, all: usize) -> Self {
        Self { number, all }
    }
}

impl fmt::Display for ReviewPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.all)
    }
}

/// All that a person is told about an ask beside its call.
#[derive(Clone, Copy)]
pub(super) struct ReviewHead {
    pub(super) place: ReviewPlace,
    /// The sentence about an ask whose caller no longer waits.
    pub(super) note: Option<&'static str>,
}
