//! What a person can grant at the question about a call (rule G3): exactly this call or a class of calls, for the session,
//! for the project, or until a time.

use std::collections::BTreeMap;

use crate::ledger::{GrantOffer, GrantPlace, GrantTime};
use crate::show;

/// The grants that can be offered for a call in each place, the narrowest first, each as a sentence and as the rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) session: Vec<Shown>,
    pub(super) project: Vec<Shown>,
}

/// A grant as it is shown before it is made.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) sentence: String,
    pub(super) rule: String,
    pub(super) also: Vec<String>,
}

/// The offers for the calls of a batch, by call id. A call without an entry cannot be granted.
pub(super) type Offers = BTreeMap<String, Offer>;

/// The grants that a person has chosen, by call id: the term, and the place of the offer among those of its term.
pub(super) type Chosen = BTreeMap<String, (Term, usize)>;

/// Where, or how long, a person wants a grant to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    In(GrantPlace),
    /// For this time, in the project if there is one, else in the session.
    Until(GrantTime),
}

impl Term {
    /// Reads what is typed after the key `u`: `30m`, `2h` or `1d`.
    pub(super) fn until(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::Until)
    }

    /// The places in which the grant may hold, the first choice first.
    pub(super) fn places(self) -> &'static [GrantPlace] {
        match self {
            Self::In(GrantPlace::Session) => &[GrantPlace::Session],
            Self::In(GrantPlace::Project) => &[GrantPlace::Project],
            Self::Until(_) => &[GrantPlace::Project, GrantPlace::Session],
        }
    }
}

impl Shown {
    pub(super) fn of(offer: &GrantOffer) -> Self {
        Self {
            sentence: show::escape(&offer.sentence()),
            rule: show::escape(&offer.rule().to_string()),
            also: offer.examples().iter().map(|example| show::escape(example)).collect(),
        }
    }

    /// What is shown of the grant before it is confirmed, as lines that are safe to print.
    pub(super) fn lines(&self, term: Term, width: usize) -> Vec<String> {
        let time = match term {
            Term::In(_) => "12h".to_owned(),
            Term::Until(time) => time.to_string(),
        };
        let text = format!("{}, for at most {time}.", self.sentence);
        let mut lines = vec!["Later calls are approved without a question:".to_owned()];
        lines.extend(show::wrap("  ", &text, width));
        lines.extend(self.example(width));
        lines.extend(show::wrap("  rule: ", &self.rule, width));
        lines
    }

    /// What else the grant would allow.
    fn example(&self, width: usize) -> Vec<String> {
        if self.also.is_empty() {
            return Vec::new();
        }
        show::wrap("  would also allow: ", &self.also.join("; "), width)
    }
}

impl Offer {
    /// The grants for a term, the narrowest first; empty if none can be given.
    pub(super) fn of(&self, term: Term) -> &[Shown] {
        let offered = term.places().iter().map(|place| match place {
            GrantPlace::Session => self.session.as_slice(),
            GrantPlace::Project => self.project.as_slice(),
        });
        offered.into_iter().find(|offered| !offered.is_empty()).unwrap_or_default()
    }

    /// The grants for a term, with a number each, as lines that are safe to print.
    pub(super) fn list(&self, term: Term, width: usize) -> Vec<String> {
        let offered = self.of(term).iter().enumerate();
        let lines = offered.flat_map(|(number, shown)| {
            let mut lines = show::wrap(&format!("{}. ", number + 1), &shown.sentence, width);
            lines.extend(shown.example(width));
            lines
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        let hours = |n: u64| GrantTime::of_seconds(n * 3600).map(Term::Until);
        assert_eq!((Term::until("1h"), Term::until("1d")), (hours(1), hours(24)));
        assert_eq!(Term::until("90m"), GrantTime::of_seconds(5400).map(Term::Until));
        for text in
            ["", "h", "0h", "-1h", "+1h", "1", "1 h", "91d", "1w", "18446744073709551615d", "1é"]
        {
            assert_eq!(Term::until(text), None, "{text}");
        }
    }
}
