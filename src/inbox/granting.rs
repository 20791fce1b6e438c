//! Grants that are made with an approval (rule G3).

use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::approver::Approver;
use super::offers::grants;
use super::refused::ApiError;
use crate::ledger::{Grant, GrantPlace, GrantTime, Record};

/// The grant that a person wants with an approval: one of those that are offered in a scope, by its number (exactly
/// such calls without one), for a number of seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    scope: GrantPlace,
    #[serde(default)]
    pattern: usize,
    seconds: Option<u64>,
}

/// The grant that is wanted, before anything is decided.
pub(super) fn wanted(record: &Record, wanted: &Wanted) -> Result<Grant, ApiError> {
    let refused = |problem: &str| ApiError::bad("bad_request", problem);
    let meant = |place, number| place == wanted.scope && number == wanted.pattern;
    let found = grants(record).find(|(place, number, _)| meant(*place, *number));
    let (.., offer) = found.ok_or_else(|| refused("No such grant can be made for this call."))?;
    let grant = offer.into_grant();
    let Some(seconds) = wanted.seconds else { return Ok(grant) };
    let time = GrantTime::of_seconds(seconds);
    let time = time.ok_or_else(|| refused("A grant is valid for at most 90 days."))?;
    Ok(grant.with_valid_for(time.into()))
}

/// Makes the grant after the approval. The approval stands in any case.
pub(super) async fn make(app: &App, who: &Approver, grant: Grant) -> Value {
    match app.ledger.make_grant(grant, &[who.name()]).await {
        Ok(made) => json!({"id": made.id, "until": made.until}),
        Err(error) => {
            tracing::error!(%error, "a grant was not made");
            json!({"problem": "The call is approved, and no grant was made: the store has failed."})
        }
    }
}
