//! Points of time on the command line: a date, or a time before now.

use std::str::FromStr;
use std::time::Duration;

use countersign::ledger::{GrantTime, Millis, millis_of};

/// A day in milliseconds.
const DAY: Millis = 24 * 3600 * 1000;

/// A point of time, as a person types it.
#[derive(Clone, Copy)]
pub(crate) enum Moment {
    /// So long before now.
    Ago(GrantTime),
    /// A whole day in UTC, which begins then.
    Day(Millis),
    At(Millis),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::Ago(time));
        }
        let is_day = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let at = millis_of(text).ok_or(
            "a date in UTC, such as 2026-11-22 or 2026-11-22T18:02:04, or a time before now, such as 30m, 2h or 7d, at most \
             90d",
        )?;
        Ok(if is_day { Self::Day(at) } else { Self::At(at) })
    }
}

impl Moment {
    /// The point of time itself: the beginning of a day.
    pub(crate) fn begins(self, now: Millis) -> Millis {
        match self {
            Self::Ago(time) => {
                let time = Duration::from(time).as_millis();
                now.saturating_sub(Millis::try_from(time).unwrap_or(Millis::MAX))
            }
            Self::Day(at) | Self::At(at) => at,
        }
    }

    /// The point of time that a range ends with: a day is in it.
    pub(crate) fn ends(self, now: Millis) -> Millis {
        match self {
            Self::Day(at) => at.saturating_add(DAY),
            other => other.begins(now),
        }
    }
}
