//! How many asks of one requester are pending (rule D11).

use serde::Deserialize;

use super::store::{Filter, RowKind};
use super::{AskState, Ledger, LedgerError};

/// The part of an ask's row that names its requester.
#[derive(Deserialize)]
struct Stored {
    ask: Record,
}

#[derive(Deserialize)]
struct Record {
    ask: Requester,
}

#[derive(Deserialize)]
struct Requester {
    #[serde(default)]
    principal: Option<String>,
}

impl Ledger {
    /// How many asks of this requester are pending.
    pub(crate) async fn pending_of(&self, requester: &str) -> Result<usize, LedgerError> {
        let filter = Filter {
            kind: Some(RowKind::Ask),
            states: vec![AskState::Pending.as_str().to_owned()],
            ..Filter::default()
        };
        let is_of = |doc: &str| {
            let who = serde_json::from_str::<Stored>(doc).ok().and_then(|it| it.ask.ask.principal);
            who.is_some_and(|who| self.names.are_one(&who, requester))
        };
        Ok(self.store.list(&filter).await?.iter().filter(|row| is_of(&row.row.doc)).count())
    }
}
