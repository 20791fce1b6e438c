//! The grants that a person is offered beside an approval (rule G3).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grant::{Grant, classes};
use super::text::time;
use super::time::GrantTime;
use crate::decision::{Change, PreviewContent, Question};
use crate::ledger::asks::ask::Ask;
use crate::ledger::scope::GrantError;
use crate::ledger::scope::GrantScope;
use crate::show;

/// The largest number of grants that are offered for a call in one place.
const MOST: usize = 4;

/// The place in which a person wants a grant to hold: the session or the project of the call.
///
/// Exhaustive on purpose: a surface has to name every place.
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
/// assert_eq!(offers[0].sentence(), "`pay` with exactly these arguments, in this session, for at most 12h");
/// assert_eq!((offers.len(), offers[1].examples()), (2, &["pay(euros: 20)".to_owned()][..]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GrantOffer {
    grant: Grant,
    number: usize,
    also: Vec<String>,
    never: Vec<String>,
}

impl GrantOffer {
    /// The grants that can be offered for a call in a scope, at most four, from the narrowest to the widest. The first
    /// is for exactly the same call; the others are for classes that the layers which ask have proposed. Empty where no
    /// grant may answer such a call (rule G2).
    ///
    /// A call that changes a file finds another file the next time. A grant for exactly this change would never answer,
    /// so it is not offered. The others keep their numbers. Of a change that is too long to be seen whole, none is offered.
    #[must_use]
    pub fn all(ask: &Ask, scope: &GrantScope) -> Vec<Self> {
        if ask.questions().iter().any(Question::is_cut) {
            return Vec::new();
        }
        let Ok(exact) = Grant::of(ask, scope.clone()) else { return Vec::new() };
        let wider = classes(ask).into_iter().enumerate().map(|(at, class)| {
            let (also, never) = (class.examples().to_vec(), class.never().to_vec());
            Self { grant: exact.clone().for_class(ask, class), number: at + 1, also, never }
        });
        let same = Self { grant: exact.clone(), number: 0, also: Vec::new(), never: Vec::new() };
        let same = Some(same).filter(|_| !changes_a_file(ask));
        same.into_iter().chain(wider).take(MOST).collect()
    }

    /// The number by which the grant is chosen, among those of its place: 0 is for exactly such calls, also where that
    /// is not offered.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The place in which it holds; `None` for a grant in a run.
    #[must_use]
    pub fn place(&self) -> Option<GrantPlace> {
        match self.grant.scope() {
            GrantScope::Session(_) => Some(GrantPlace::Session),
            GrantScope::Project(_) => Some(GrantPlace::Project),
            GrantScope::Run(_) => None,
        }
    }

    /// The same offer for another time. Sentence and rule are then of that time.
    #[must_use]
    pub fn with_time(self, time: GrantTime) -> Self {
        Self { grant: self.grant.with_valid_for(time.into()), ..self }
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

    /// The grant as one sentence, with its time; see [`Grant::sentence`].
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}, for at most {}", self.grant.sentence(), time(self.grant.valid_for()))
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

    /// Examples of calls that look alike, and that the grant would never answer; empty where there are none.
    #[must_use]
    pub fn never(&self) -> &[String] {
        &self.never
    }

    /// The offer for a page: an object with the sentence (`says`), the rule as TOML (`rule`) and the examples (`also`, and
    /// `never`), as texts in which nothing is invisible (rule S1), and with the place (`scope`), the number (`pattern`) and the time in
    /// `seconds` by which it is chosen.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, GrantOffer, GrantScope};
    ///
    /// let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
    /// let shown = GrantOffer::all(&ask, &GrantScope::Session("s1\u{202e}".into()))[0].shown();
    /// assert_eq!(shown["says"], "`pay` with exactly these arguments, in this session, for at most 12h");
    /// assert!(shown["rule"].as_str().is_some_and(|rule| rule.contains(r#"in = "session s1\u202E""#)));
    /// assert_eq!((&shown["scope"], &shown["pattern"], &shown["seconds"]), (&"session".into(), &0.into(), &43_200.into()));
    /// ```
    #[must_use]
    pub fn shown(&self) -> Map<String, Value> {
        let escaped = |examples: &[String]| -> Value {
            examples.iter().map(|example| show::escape(example)).collect()
        };
        let fields = [
            ("says", show::escape(&self.sentence()).into()),
            ("rule", self.grant.to_toml().into()),
            ("also", escaped(&self.also)),
            ("never", escaped(&self.never)),
            ("scope", self.place().map(GrantPlace::as_str).into()),
            ("pattern", self.number.into()),
            ("seconds", (self.grant.valid_for() / 1000).into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns `true` if the call is bound to what it changes: once it has run, the same call is another change.
fn changes_a_file(ask: &Ask) -> bool {
    let previews = ask.questions().iter().flat_map(Question::previews);
    let mut pinned = previews.filter(|preview| preview.digest().is_some());
    pinned.any(|preview| match preview.content() {
        PreviewContent::Diff { change, .. } => *change != Change::Unchanged,
        _ => false,
    })
}
