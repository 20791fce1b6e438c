//! The answer of a condition, which may be unknown.

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    Yes,
    No,
    /// It cannot be evaluated, for this reason.
    Unknown(&'static str),
}

impl Truth {
    pub(super) fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// The answer to "all of them".
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::Yes;
        for answer in answers {
            match answer {
                Self::No => return Self::No,
                Self::Unknown(_) => sum = answer,
                Self::Yes => {}
            }
        }
        sum
    }

    /// The answer to "any of them".
    pub(super) fn any(answers: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::No;
        for answer in answers {
            match answer {
                Self::Yes => return Self::Yes,
                Self::Unknown(_) => sum = answer,
                Self::No => {}
            }
        }
        sum
    }
}

/// How a rule reads: one that allows must be certain about everything that it covers; one that asks or denies applies
/// where anything matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Allowing,
    Strict,
}

impl Reading {
    /// Combines the answers for several values that stand in one place.
    pub(super) fn over(self, answers: impl IntoIterator<Item = Truth>) -> Truth {
        match self {
            Self::Allowing => Truth::all(answers),
            Self::Strict => Truth::any(answers),
        }
    }

    pub(super) fn allows(self) -> bool {
        self == Self::Allowing
    }
}
