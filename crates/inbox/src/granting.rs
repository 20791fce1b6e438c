//! Grants that are made with an approval (rule G3).

use serde::Deserialize;

use super::refused::ApiError;
use countersign::ledger::{AskRecord, GrantOffer, GrantPlace, GrantTime, Offers};

/// The grant that a person wants with an approval: one of those that are offered in a scope, by its number, for a
/// number of seconds. Without a number it is the grant for exactly such calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    scope: GrantPlace,
    #[serde(default)]
    pattern: usize,
    seconds: Option<u64>,
}

/// The grant that is wanted, before anything is decided.
pub(super) fn wanted(record: &AskRecord, wanted: &Wanted) -> Result<GrantOffer, ApiError> {
    let refused = |problem: &str| ApiError::bad("bad_request", problem);
    let time = |seconds| {
        GrantTime::of_seconds(seconds)
            .ok_or_else(|| refused("A grant is valid for at most 90 days."))
    };
    let time = wanted.seconds.map(time).transpose()?;
    let found = Offers::of(&record.ask).choose(wanted.scope, wanted.pattern, time);
    found.ok_or_else(|| refused("No such grant can be made for this call."))
}
