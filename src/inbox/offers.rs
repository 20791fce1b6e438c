//! The grants that are offered beside an approval (rule G3).

use serde_json::{Value, json};

use crate::ledger::{GrantOffer, GrantPlace, Record};

/// The grants that can be made with the approval of an ask: of each place, with a number, the narrowest first.
pub(super) fn grants(record: &Record) -> impl Iterator<Item = (GrantPlace, usize, GrantOffer)> {
    GrantPlace::ALL.into_iter().flat_map(|place| {
        let scope = place.scope(&record.ask);
        let offers = scope.map(|scope| GrantOffer::all(&record.ask, &scope)).unwrap_or_default();
        offers.into_iter().enumerate().map(move |(number, offer)| (place, number, offer))
    })
}

/// Whether a grant can be made with the approval.
pub(super) fn is_offered(record: &Record) -> bool {
    grants(record).next().is_some()
}

/// What is offered, each as a sentence, as the rule, and with examples of what else it would allow.
pub(super) fn offers(record: &Record) -> Vec<Value> {
    let offer = |(place, number, offer): (GrantPlace, usize, GrantOffer)| {
        let mut shown = offer.shown();
        shown.insert("scope".to_owned(), json!(place));
        shown.insert("pattern".to_owned(), number.into());
        Value::Object(shown)
    };
    grants(record).map(offer).collect()
}
