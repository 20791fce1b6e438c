//! Durations on the command line.

use std::time::Duration;

/// Reads a number of seconds, possibly with a fraction.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Reads a time limit in seconds, from 0.1 seconds to 30 days.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    let limit = seconds(text)?;
    match limit < Duration::from_millis(100) || limit > Duration::from_secs(30 * 24 * 3600) {
        true => Err("from 0.1 seconds to 30 days".to_owned()),
        false => Ok(limit),
    }
}
