//! The answer of a condition, which may be unknown.
//!
//! A condition about an argument may have no answer: the field is missing, the path cannot be resolved, the command is
//! not analysed. If we took that for "no", a rule that denies would miss what it is there for. If we took it for "yes",
//! a rule that allows would cover what it has not seen. So we keep the third answer until the end, and each kind of
//! rule reads it in its own direction (rule R2):
//!
//! | answer | a rule that allows | a rule that asks or denies |
//! |---|---|---|
//! | yes | covers the call | speaks |
//! | no | is silent | is silent |
//! | unknown | is silent | asks, also where it would deny |
//!
//! A rule that would deny and is not certain *asks*, because a person can see what the rule could not.

/// The truth of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    Yes,
    No,
    /// It cannot be evaluated, for this reason.
    Unknown(&'static str),
}

impl Truth {
    pub(crate) fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// The answer to "all of them".
    ///
    /// `No` wins over `Unknown`: where one part certainly fails, the others need not be known.
    pub(crate) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
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
    ///
    /// `Yes` wins over `Unknown`: where one part certainly holds, the others need not be known.
    pub(crate) fn any(answers: impl IntoIterator<Item = Self>) -> Self {
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

/// The way in which a rule reads: one that allows must be certain about everything that it covers; one that asks or
/// denies applies where anything matches.
///
/// | several values in one place | allowing | strict |
/// |---|---|---|
/// | a list of paths, one of them secret | must all be within | one is enough |
/// | a path and what a link resolves it to | both must be within | one is enough |
/// | the commands of a text | each must be covered | one is enough |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Allowing,
    Strict,
}

impl Reading {
    /// Combines the answers for several values that stand in one place.
    pub(crate) fn over(self, answers: impl IntoIterator<Item = Truth>) -> Truth {
        match self {
            Self::Allowing => Truth::all(answers),
            Self::Strict => Truth::any(answers),
        }
    }

    /// The reading of the opposite effect, for a condition that is the negation of another one.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Allowing => Self::Strict,
            Self::Strict => Self::Allowing,
        }
    }

    pub(crate) fn allows(self) -> bool {
        self == Self::Allowing
    }
}
