//! What a person can grant at the question about a call (rule G3): exactly this call, for the session, for the project,
//! or until a time. Nothing is generalised here; a wider pattern is made with the library.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::show;

/// The scopes that can be offered for a call, each as a sentence and as the rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) session: Option<Shown>,
    pub(super) project: Option<Shown>,
}

/// A grant as it is shown before it is made.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) sentence: String,
    pub(super) rule: String,
}

/// The offers for the calls of a batch, by call id. A call without an entry cannot be granted.
pub(super) type Offers = BTreeMap<String, Offer>;

/// The grants that a person has chosen, by call id.
pub(super) type Chosen = BTreeMap<String, Term>;

/// Which grant a person has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    Session,
    Project,
    /// For this time, in the project if there is one, else in the session.
    Until(Duration),
}

impl Term {
    /// Reads what is typed after the key `u`: `30m`, `2h` or `1d`, at most 90 days.
    pub(super) fn until(text: &str) -> Option<Self> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds: u64 = match unit {
            "m" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            _ => return None,
        };
        let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
        let time = Duration::from_secs(number.checked_mul(seconds)?);
        (time <= Duration::from_secs(90 * 24 * 3600)).then_some(Self::Until(time))
    }
}

impl Shown {
    /// What is shown of the grant before it is confirmed, as lines that are safe to print.
    pub(super) fn lines(&self, term: Term, width: usize) -> Vec<String> {
        let time = match term {
            Term::Session | Term::Project => "12h".to_owned(),
            Term::Until(time) => format!("{}m", time.as_secs() / 60),
        };
        let text = format!("{}, for at most {time}.", self.sentence);
        let mut lines = vec!["Later calls are approved without a question:".to_owned()];
        lines.extend(show::wrap("  ", &text, width));
        lines.extend(show::wrap("  rule: ", &self.rule, width));
        lines
    }
}

impl Offer {
    /// The grant for a term, if it can be given.
    pub(super) fn of(&self, term: Term) -> Option<&Shown> {
        match term {
            Term::Session => self.session.as_ref(),
            Term::Project => self.project.as_ref(),
            Term::Until(_) => self.project.as_ref().or(self.session.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        let hours = |n: u64| Some(Term::Until(Duration::from_secs(n * 3600)));
        assert_eq!((Term::until("1h"), Term::until("1d")), (hours(1), hours(24)));
        assert_eq!(Term::until("90m"), Some(Term::Until(Duration::from_secs(5400))));
        for text in ["", "h", "0h", "-1h", "1", "1 h", "91d", "1w", "18446744073709551615d", "1é"]
        {
            assert_eq!(Term::until(text), None, "{text}");
        }
    }
}
