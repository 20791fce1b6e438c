//! Making the grants that a person has chosen in the dialogue.

use std::collections::BTreeMap;

use super::offers::{Chosen, Offer, Offers, Shown, Term};
use crate::deferred::DeferredToolRequests;
use crate::error::BoxError;
use crate::ledger::{AskState, Grant, GrantScope, Ledger, Record};
use crate::show;

/// The asks of the calls of a batch, by call id, as the ledger has parked them.
pub(super) async fn asks(
    ledger: &Ledger,
    run: &str,
    requests: &DeferredToolRequests,
) -> Result<BTreeMap<String, Record>, BoxError> {
    let listed = ledger.list_run(run, u32::MAX).await?;
    let pending = listed.records.into_iter().filter(|record| record.state == AskState::Pending);
    let by_fingerprint: BTreeMap<_, _> =
        pending.map(|record| (record.fingerprint.clone(), record)).collect();
    let of = |id: &str| by_fingerprint.get(requests.fingerprint(id)?).cloned();
    let found = requests.approvals.iter();
    Ok(found.filter_map(|call| Some((call.id().to_owned(), of(call.id())?))).collect())
}

/// The scope of the ask that a term is about.
fn scope(record: &Record, term: Term) -> Option<GrantScope> {
    let scopes = record.ask.scopes();
    let session = || scopes.iter().find(|it| matches!(it, GrantScope::Session(_))).cloned();
    let project = || scopes.iter().find(|it| matches!(it, GrantScope::Project(_))).cloned();
    match term {
        Term::Session => session(),
        Term::Project => project(),
        Term::Until(_) => project().or_else(session),
    }
}

/// What can be granted for these asks.
pub(super) fn offers(asks: &BTreeMap<String, Record>) -> Offers {
    let shown = |record: &Record, term: Term| {
        let grant = Grant::of(&record.ask, scope(record, term)?).ok()?;
        let rule = show::escape(&grant.rule().to_string());
        Some(Shown { sentence: show::escape(&grant.sentence()), rule })
    };
    let offer = |record: &Record| Offer {
        session: shown(record, Term::Session),
        project: shown(record, Term::Project),
    };
    let offers = asks.iter().map(|(id, record)| (id.clone(), offer(record)));
    offers.filter(|(_, offer)| offer.session.is_some() || offer.project.is_some()).collect()
}

/// Makes the chosen grants, and returns a line about each for the person.
pub(super) async fn make(
    ledger: &Ledger,
    asks: &BTreeMap<String, Record>,
    chosen: &Chosen,
    by: &str,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, term) in chosen {
        let Some(record) = asks.get(id) else { continue };
        let Some(scope) = scope(record, *term) else { continue };
        let made = match Grant::of(&record.ask, scope) {
            Ok(grant) => {
                let grant = match term {
                    Term::Until(time) => grant.with_valid_for(*time),
                    Term::Session | Term::Project => grant,
                };
                ledger.make_grant(grant, &[by]).await.map_err(BoxError::from)
            }
            Err(error) => Err(error.into()),
        };
        lines.push(match made {
            Ok(made) => {
                format!("Granted as {}: `countersign grants revoke {}` ends it.", made.id, made.id)
            }
            Err(error) => format!("No grant was made, and you will be asked again: {error}"),
        });
    }
    lines
}
