//! The grants that are offered beside an approval (rule G3).

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ledger::{Grant, GrantScope, Record};
use crate::show;

/// Where an offered grant holds.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum OfferScope {
    Session,
    Project,
}

impl OfferScope {
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
pub(super) fn grants(record: &Record) -> impl Iterator<Item = (OfferScope, Grant)> {
    let scopes = record.ask.scopes().into_iter();
    scopes.filter_map(|scope| Some((OfferScope::of(&scope)?, Grant::of(&record.ask, scope).ok()?)))
}

/// Whether a grant can be made with the approval.
pub(super) fn is_offered(record: &Record) -> bool {
    grants(record).next().is_some()
}

/// What is offered, each as a sentence and as the rule.
pub(super) fn offers(record: &Record) -> Vec<Value> {
    let offer = |(scope, grant): (OfferScope, Grant)| {
        json!({
            "scope": scope.as_str(),
            "says": show::escape(&grant.sentence()),
            "rule": show::escape(&grant.rule().to_string()),
        })
    };
    grants(record).map(offer).collect()
}
