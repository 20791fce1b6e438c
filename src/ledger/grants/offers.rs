//! Grants from the offer to the grant that is made, the same for every surface (rule G3).
//!
//! ```text
//!  ask ─► Offers ─► choose(place, number, time) ─► GrantOffer ─► sentence, rule, examples ─► make ─► GrantOutcome
//! ```
//!
//! A person who chooses another time gets another [`GrantOffer`], and the one that is shown is the one that is made: no
//! surface keeps a time beside it.

use std::fmt;

use serde_json::{Map, Value, json};

use super::offer::{GrantOffer, GrantPlace};
use super::record::GrantRecord;
use super::time::GrantTime;
use crate::ledger::asks::ask::Ask;
use crate::ledger::handle::Ledger;

/// The grants that a person is offered beside the approval of a call, in every place in which it can be granted.
///
/// There are none where no grant may answer such a call (rule G2), and where more than one person has to approve it:
/// the vote of one would answer nothing.
///
/// ```
/// use countersign::Decision;
/// use countersign::deferred::metadata::GRANTABLE;
/// use countersign::ledger::{Ask, GrantPlace, GrantOutcome, Ledger, MemoryStore, Offers};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new()).session("s1");
/// let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
/// let ask = Ask::new("run-1", "root/c1", "send_mail").with_questions(asked.questions().to_vec());
/// let offers = Offers::of(&ledger.park(ask).await?.ask);
///
/// let offer = offers.choose(GrantPlace::Session, 0, Some("2h".parse()?)).expect("it is offered");
/// assert_eq!(offer.sentence(), "`send_mail` with exactly these arguments, in this session, for at most 2h");
/// assert!(offers.choose(GrantPlace::Project, 0, None).is_none(), "the call was made in no project");
/// let GrantOutcome::Made(made) = offer.make(&ledger, "ann").await else { panic!("the store works") };
/// assert_eq!(made.grant.valid_for(), 2 * 3600 * 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offers(Vec<GrantOffer>);

impl Offers {
    /// The times that a page offers for a session: one hour, and 12 hours.
    ///
    /// ```
    /// use countersign::ledger::Offers;
    /// assert_eq!(Offers::TIMES.map(|time| time.to_string()), ["1h", "12h"]);
    /// ```
    pub const TIMES: [GrantTime; 2] = [GrantTime::HOUR, GrantTime::DEFAULT];

    /// The times that a page offers for a project: 12 hours, and 90 days, which is the longest "always".
    ///
    /// ```
    /// use countersign::ledger::Offers;
    /// assert_eq!(Offers::PROJECT_TIMES.map(|time| time.to_string()), ["12h", "90d"]);
    /// ```
    pub const PROJECT_TIMES: [GrantTime; 2] = [GrantTime::DEFAULT, GrantTime::LONGEST];

    /// The grants that can be offered for an ask, for 12 hours each: first those in its session, then those in its
    /// project, each from the narrowest to the widest.
    #[must_use]
    pub fn of(ask: &Ask) -> Self {
        if ask.quorum().approvals > 1 {
            return Self::default();
        }
        let scopes = GrantPlace::ALL.into_iter().filter_map(|place| place.scope(ask));
        Self(scopes.flat_map(|scope| GrantOffer::all(ask, &scope)).collect())
    }

    /// Returns `true` if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those in one place only.
    ///
    /// ```
    /// use countersign::ledger::{GrantPlace, Offers};
    /// assert!(Offers::default().in_place(GrantPlace::Session).is_empty());
    /// ```
    #[must_use]
    pub fn in_place(&self, place: GrantPlace) -> Self {
        Self(self.iter().filter(|offer| offer.place() == Some(place)).cloned().collect())
    }

    /// The grants, each for 12 hours.
    pub fn iter(&self) -> impl Iterator<Item = &GrantOffer> {
        self.0.iter()
    }

    /// The grant that a person chooses: the place, its [number](GrantOffer::number), and the time, 12 hours if there is
    /// none. `None` where it is not offered.
    #[must_use]
    pub fn choose(
        &self,
        place: GrantPlace,
        number: usize,
        time: Option<GrantTime>,
    ) -> Option<GrantOffer> {
        let meant = |it: &&GrantOffer| it.place() == Some(place) && it.number() == number;
        let found = self.iter().find(meant)?.clone();
        Some(found.with_time(time.unwrap_or(GrantTime::DEFAULT)))
    }

    /// The grants for a page, each for each of the times of its place ([`TIMES`](Self::TIMES),
    /// [`PROJECT_TIMES`](Self::PROJECT_TIMES)): see [`GrantOffer::shown`].
    pub fn shown(&self) -> impl Iterator<Item = Map<String, Value>> {
        let timed = |offer: &GrantOffer| {
            let times = match offer.place() {
                Some(GrantPlace::Project) => Self::PROJECT_TIMES,
                _ => Self::TIMES,
            };
            times.map(|time| offer.clone().with_time(time))
        };
        self.iter().flat_map(timed).map(|offer| offer.shown())
    }
}

/// The end of a grant that a person has chosen with an approval. Its text is for that person.
///
/// Exhaustive on purpose: a surface has to tell the person every end.
///
/// ```
/// use countersign::ledger::GrantOutcome;
///
/// let text = "The call is approved, and no grant was made: the store has failed.";
/// assert_eq!(GrantOutcome::Failed.to_string(), text);
/// assert_eq!(GrantOutcome::Failed.shown()["problem"], text);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum GrantOutcome {
    /// The grant was made.
    Made(Box<GrantRecord>),
    /// The approval stands, and the store has not taken the grant: the person is asked about the next such call.
    Failed,
    /// The approval was not the decision on the call, so that nothing was granted with it.
    DecidedBefore,
}

impl GrantOutcome {
    /// The end for a page: an object with the `id` of the grant and the time `until` which it holds, or with the
    /// `problem`.
    #[must_use]
    pub fn shown(&self) -> Value {
        match self {
            Self::Made(made) => json!({"id": made.id, "until": made.until}),
            Self::Failed | Self::DecidedBefore => json!({"problem": self.to_string()}),
        }
    }
}

impl fmt::Display for GrantOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(made) => {
                write!(f, "Granted as {}, which is the id to revoke it by.", made.id)
            }
            Self::Failed => {
                f.write_str("The call is approved, and no grant was made: the store has failed.")
            }
            Self::DecidedBefore => f.write_str(
                "No grant was made with this answer: the call was decided about before.",
            ),
        }
    }
}

impl GrantOffer {
    /// Makes the grant in the name of this person, once the approval that it goes with has counted. The approval stands
    /// in any case; a store that fails is logged.
    pub async fn make(self, ledger: &Ledger, by: &str) -> GrantOutcome {
        match ledger.make_grant(self.into_grant(), &[by]).await {
            Ok(made) => GrantOutcome::Made(Box::new(made)),
            Err(error) => {
                tracing::error!(target: "countersign::ledger", %error, "a grant was not made");
                GrantOutcome::Failed
            }
        }
    }
}
