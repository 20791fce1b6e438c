//! Grants, offered and made beside an approval (rule G3).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::principal::Principal;
use super::refused::Refused;
use crate::ledger::{Grant, GrantScope, Record};
use crate::show;

/// The longest time for which the page grants: 90 days.
const LONGEST: u64 = 90 * 24 * 3600;

/// The grant that a person wants with an approval: exactly such calls, in a scope, for a number of seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    scope: Scope,
    seconds: Option<u64>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Session,
    Project,
}

impl Scope {
    fn of(scope: &GrantScope) -> Option<Self> {
        match scope {
            GrantScope::Session(_) => Some(Self::Session),
            GrantScope::Project(_) => Some(Self::Project),
            GrantScope::Run(_) => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
        }
    }
}

/// The grants that can be made with the approval of an ask, the narrowest first.
fn grants(record: &Record) -> impl Iterator<Item = (Scope, Grant)> {
    let scopes = record.ask.scopes().into_iter();
    scopes.filter_map(|scope| Some((Scope::of(&scope)?, Grant::of(&record.ask, scope).ok()?)))
}

/// Whether a grant can be made with the approval.
pub(super) fn is_offered(record: &Record) -> bool {
    grants(record).next().is_some()
}

/// What is offered, each as a sentence and as the rule.
pub(super) fn offers(record: &Record) -> Vec<Value> {
    let offer = |(scope, grant): (Scope, Grant)| {
        json!({
            "scope": scope.as_str(),
            "says": show::escape(&grant.sentence()),
            "rule": show::escape(&grant.rule().to_string()),
        })
    };
    grants(record).map(offer).collect()
}

/// The grant that is wanted, before anything is decided.
pub(super) fn wanted(record: &Record, wanted: &Wanted) -> Result<Grant, Refused> {
    let refused = |problem: &str| Refused::bad("bad_request", problem);
    let found = grants(record).find(|(scope, _)| *scope == wanted.scope);
    let (_, grant) = found.ok_or_else(|| refused("No such grant can be made for this call."))?;
    match wanted.seconds {
        None => Ok(grant),
        Some(seconds @ 1..=LONGEST) => Ok(grant.with_valid_for(Duration::from_secs(seconds))),
        Some(_) => Err(refused("A grant is valid for at most 90 days.")),
    }
}

/// Makes the grant after the approval. The approval stands in any case.
pub(super) async fn make(app: &App, who: &Principal, grant: Grant) -> Value {
    match app.ledger.make_grant(grant, &[who.name()]).await {
        Ok(made) => json!({"id": made.id, "until": made.until}),
        Err(error) => {
            tracing::error!(%error, "a grant was not made");
            json!({"problem": "The call is approved, and no grant was made: the store has failed."})
        }
    }
}
