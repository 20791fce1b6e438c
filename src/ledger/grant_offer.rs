//! The grants that a person is offered beside an approval (rule G3).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ask::Ask;
use super::grant::{Grant, classes};
use super::grant_error::GrantError;
use super::grant_scope::GrantScope;
use crate::show;

/// The longest time for which a surface makes a grant: 90 days.
const LONGEST: Duration = Duration::from_secs(90 * 24 * 3600);

/// The largest number of grants that are offered for a call in one place.
const MOST: usize = 3;

/// Where a person wants a grant to hold: in the session or in the project of the call.
///
/// ```
/// use countersign::ledger::GrantPlace;
///
/// assert_eq!("project".parse::<GrantPlace>()?, GrantPlace::Project);
/// assert!("machine".parse::<GrantPlace>().is_err());
/// # Ok::<(), countersign::ledger::GrantError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantPlace {
    /// In the session in which the call is made.
    Session,
    /// In the project in which the call is made.
    Project,
}

impl GrantPlace {
    /// Both places, the narrower one first.
    pub const ALL: [Self; 2] = [Self::Session, Self::Project];

    /// The word for the place: `session` or `project`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
        }
    }

    /// The scope that the place is for a call; `None` where the call was made in no such session or project.
    ///
    /// ```
    /// use countersign::ledger::{Ask, GrantPlace};
    ///
    /// assert_eq!(GrantPlace::Session.scope(&Ask::new("run-1", "root/c1", "pay")), None, "it was not parked in a session");
    /// ```
    #[must_use]
    pub fn scope(self, ask: &Ask) -> Option<GrantScope> {
        ask.scopes().into_iter().find(|scope| match scope {
            GrantScope::Session(_) => self == Self::Session,
            GrantScope::Project(_) => self == Self::Project,
            GrantScope::Run(_) => false,
        })
    }
}

impl fmt::Display for GrantPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for GrantPlace {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let found = Self::ALL.into_iter().find(|place| place.as_str() == text);
        found.ok_or_else(|| {
            let problem = format!("`{}` is neither `session` nor `project`", text.escape_debug());
            GrantError::new(problem)
        })
    }
}

/// How long a grant is valid, as people type it: a number with `s`, `m`, `h` or `d`, of at most 90 days.
///
/// ```
/// use std::time::Duration;
/// use countersign::ledger::GrantTime;
///
/// let time = |text: &str| text.parse::<GrantTime>().map(Duration::from);
/// assert_eq!(time("2h")?, Duration::from_secs(7200));
/// assert!(time("2").is_err() && time("0m").is_err() && time("91d").is_err());
/// # Ok::<(), countersign::ledger::GrantError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantTime(Duration);

impl GrantTime {
    /// This time, as a length of seconds; `None` for no time at all, and for more than 90 days.
    ///
    /// ```
    /// use countersign::ledger::GrantTime;
    /// assert!(GrantTime::of_seconds(60).is_some() && GrantTime::of_seconds(0).is_none());
    /// ```
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Option<Self> {
        let time = Duration::from_secs(seconds);
        (!time.is_zero() && time <= LONGEST).then_some(Self(time))
    }
}

impl From<GrantTime> for Duration {
    fn from(time: GrantTime) -> Self {
        time.0
    }
}

impl fmt::Display for GrantTime {
    /// With the largest unit that gives a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let units = [(24 * 3600, "d"), (3600, "h"), (60, "m")];
        match units.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{}{name}", seconds / unit),
            None => write!(f, "{seconds}s"),
        }
    }
}

impl FromStr for GrantTime {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let at = text.len().saturating_sub(1);
        let (number, unit) = text.split_at_checked(at).unwrap_or_default();
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            _ => 0,
        };
        let number = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let all = number.and_then(|number| number.parse::<u64>().ok()?.checked_mul(seconds));
        all.and_then(Self::of_seconds).ok_or_else(|| {
            GrantError::new(
                "a time is a number with s, m, h or d, such as 30m, 2h or 1d, at most 90d",
            )
        })
    }
}

/// A grant that a person is offered beside the approval of a call: as a sentence, as the rule, and with examples of
/// what else it would allow.
///
/// ```
/// use countersign::Decision;
/// use countersign::decision::GrantPattern;
/// use countersign::deferred::metadata::GRANTABLE;
/// use countersign::ledger::{Ask, GrantOffer, GrantScope};
///
/// let small = GrantPattern::new("small", "at most 50 euros").with_field("euros").with_example("pay(euros: 20)");
/// let asked = Decision::ask("pays").with_metadata(GRANTABLE, true).with_grant_patterns([small]);
/// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
/// let offers = GrantOffer::all(&ask, &GrantScope::Session("s1".into()));
/// assert_eq!(offers[0].sentence(), "`pay` with exactly these arguments, in this session");
/// assert_eq!((offers.len(), offers[1].examples()), (2, &["pay(euros: 20)".to_owned()][..]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GrantOffer {
    grant: Grant,
    also: Vec<String>,
}

impl GrantOffer {
    /// The grants that can be offered for a call in a scope, at most three, from the narrowest to the widest. The first
    /// is for exactly the same call; the others are for classes that the layers which ask have proposed. Empty where no
    /// grant may answer such a call (rule G2).
    #[must_use]
    pub fn all(ask: &Ask, scope: &GrantScope) -> Vec<Self> {
        let Ok(exact) = Grant::of(ask, scope.clone()) else { return Vec::new() };
        let wider = classes(ask).into_iter().map(|class| {
            let also = class.examples().to_vec();
            Self { grant: exact.clone().for_class(ask, class), also }
        });
        let exact = Self { grant: exact.clone(), also: Vec::new() };
        std::iter::once(exact).chain(wider).take(MOST).collect()
    }

    /// The grant that is offered.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The grant, to be made.
    #[must_use]
    pub fn into_grant(self) -> Grant {
        self.grant
    }

    /// The grant as one sentence; see [`Grant::sentence`].
    #[must_use]
    pub fn sentence(&self) -> String {
        self.grant.sentence()
    }

    /// The grant as the rule that is compared with each call; see [`Grant::rule`].
    #[must_use]
    pub fn rule(&self) -> Value {
        self.grant.rule()
    }

    /// Examples of other calls that the grant would answer; empty where there are none.
    #[must_use]
    pub fn examples(&self) -> &[String] {
        &self.also
    }

    /// The offer for a page: an object with the sentence (`says`), the rule (`rule`) and the examples (`also`), as texts in
    /// which nothing is invisible or looks like something else (rule S2).
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, GrantOffer, GrantScope};
    ///
    /// let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
    /// let shown = GrantOffer::all(&ask, &GrantScope::Session("s1\u{202e}".into()))[0].shown();
    /// assert_eq!(shown["says"], "`pay` with exactly these arguments, in this session");
    /// assert!(shown["rule"].as_str().is_some_and(|rule| !rule.contains('\u{202e}')));
    /// ```
    #[must_use]
    pub fn shown(&self) -> Map<String, Value> {
        let also: Value = self.also.iter().map(|example| show::escape(example)).collect();
        let says = show::escape(&self.sentence());
        let rule = show::escape(&self.rule().to_string());
        let fields = [("says", says.into()), ("rule", rule.into()), ("also", also)];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
