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

fn session(ledger: &Ledger) -> Option<GrantScope> {
    ledger.session().map(|id| GrantScope::Session(id.to_owned()))
}

fn project(ledger: &Ledger) -> Option<GrantScope> {
    ledger.project().cloned().map(GrantScope::Project)
}

/// What can be granted for these asks.
pub(super) fn offers(ledger: &Ledger, asks: &BTreeMap<String, Record>) -> Offers {
    let shown = |record: &Record, scope: Option<GrantScope>| {
        let grant = Grant::of(&record.ask, scope?).ok()?;
        let rule = show::escape(&grant.rule().to_string());
        Some(Shown { sentence: grant.sentence(), rule })
    };
    let offer = |record: &Record| Offer {
        session: shown(record, session(ledger)),
        project: shown(record, project(ledger)),
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
        let scope = match term {
            Term::Session => session(ledger),
            Term::Project => project(ledger),
            Term::Until(_) => project(ledger).or_else(|| session(ledger)),
        };
        let (Some(record), Some(scope)) = (asks.get(id), scope) else { continue };
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
