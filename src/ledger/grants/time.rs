//! The time for which a person makes a grant.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::ledger::scope::GrantError;

/// The time for which a grant is valid, as people type it: a number with `s`, `m`, `h` or `d`, of at most 90 days.
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
    pub(super) const HOUR: Self = Self(Duration::from_secs(3600));
    /// The time of a grant for which no other one is chosen.
    pub(super) const DEFAULT: Self = Self(Duration::from_secs(12 * 3600));
    /// The longest time for which a surface makes a grant.
    pub(super) const LONGEST: Self = Self(Duration::from_secs(90 * 24 * 3600));

    /// This time, as a length of seconds; `None` for no time at all, and for more than 90 days.
    ///
    /// ```
    /// use countersign::ledger::GrantTime;
    /// assert!(GrantTime::of_seconds(60).is_some() && GrantTime::of_seconds(0).is_none());
    /// ```
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Option<Self> {
        let time = Duration::from_secs(seconds);
        (!time.is_zero() && time <= Self::LONGEST.0).then_some(Self(time))
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
