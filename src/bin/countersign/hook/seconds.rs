//! A time limit on the command line.

use std::time::Duration;

/// Reads a number of seconds, possibly with a fraction.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    let limit = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    match limit < Duration::from_millis(100) || limit > Duration::from_secs(30 * 24 * 3600) {
        true => Err("from 0.1 seconds to 30 days".to_owned()),
        false => Ok(limit),
    }
}
