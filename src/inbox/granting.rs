//! Grants that are made with an approval (rule G3).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::approver::Approver;
use super::offers::{OfferScope, grants};
use super::refused::ApiError;
use crate::ledger::{Grant, Record};

/// The longest time for which the page grants: 90 days.
const LONGEST: u64 = 90 * 24 * 3600;

/// The grant that a person wants with an approval: exactly such calls, in a scope, for a number of seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    scope: OfferScope,
    seconds: Option<u64>,
}

/// The grant that is wanted, before anything is decided.
pub(super) fn wanted(record: &Record, wanted: &Wanted) -> Result<Grant, ApiError> {
    let refused = |problem: &str| ApiError::bad("bad_request", problem);
    let found = grants(record).find(|(scope, _)| *scope == wanted.scope);
    let (_, grant) = found.ok_or_else(|| refused("No such grant can be made for this call."))?;
    match wanted.seconds {
        None => Ok(grant),
        Some(seconds @ 1..=LONGEST) => Ok(grant.with_valid_for(Duration::from_secs(seconds))),
        Some(_) => Err(refused("A grant is valid for at most 90 days.")),
    }
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
