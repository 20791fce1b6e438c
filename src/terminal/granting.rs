//! Making the grants that a person has chosen in the dialogue.

use std::collections::BTreeMap;

use super::offers::{Chosen, Offer, Offers, Shown, Term};
use crate::deferred::DeferredToolRequests;
use crate::error::BoxError;
use crate::ledger::{AskState, Grant, GrantOffer, GrantPlace, Ledger, Record};

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

/// The grants that can be offered for an ask in a place, the narrowest first.
fn offered(record: &Record, place: GrantPlace) -> Vec<GrantOffer> {
    let scope = place.scope(&record.ask);
    scope.map(|scope| GrantOffer::all(&record.ask, &scope)).unwrap_or_default()
}

/// What can be granted for these asks.
pub(super) fn offers(asks: &BTreeMap<String, Record>) -> Offers {
    let shown = |record: &Record, place| offered(record, place).iter().map(Shown::of).collect();
    let offer = |record: &Record| Offer {
        session: shown(record, GrantPlace::Session),
        project: shown(record, GrantPlace::Project),
    };
    let offers = asks.iter().map(|(id, record)| (id.clone(), offer(record)));
    offers.filter(|(_, offer)| !offer.session.is_empty() || !offer.project.is_empty()).collect()
}

/// The grant that a person has chosen for an ask.
fn chosen_grant(record: &Record, term: Term, number: usize) -> Option<Grant> {
    let offers = term.places().iter().map(|place| offered(record, *place));
    let offers = offers.into_iter().find(|offers| !offers.is_empty())?;
    let grant = offers.into_iter().nth(number)?.into_grant();
    Some(match term {
        Term::Until(time) => grant.with_valid_for(time.into()),
        Term::In(_) => grant,
    })
}

/// Makes the chosen grants, and returns a line about each for the person.
pub(super) async fn make(
    ledger: &Ledger,
    asks: &BTreeMap<String, Record>,
    chosen: &Chosen,
    by: &str,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, (term, number)) in chosen {
        let Some(record) = asks.get(id) else { continue };
        let Some(grant) = chosen_grant(record, *term, *number) else { continue };
        let made = ledger.make_grant(grant, &[by]).await;
        lines.push(match made {
            Ok(made) => format!("Granted as {}, which is the id to revoke it by.", made.id),
            Err(error) => format!("No grant was made, and you will be asked again: {error}"),
        });
    }
    lines
}
