//! Counting the pending asks of one requester (rule D11).

use super::{Ledger, LedgerError};

/// The longest requester in a row, in bytes. The column is in an index, and PostgreSQL has the strictest limit on the
/// size of index entries.
const LONGEST: usize = 512;

/// The requester as it is in the column of a row: at most the first 512 bytes of the name. Longer names with the same
/// beginning are counted together.
pub(super) fn counted(requester: Option<&str>) -> &str {
    let name = requester.unwrap_or_default();
    let fits =
        name.char_indices().map(|(at, it)| at + it.len_utf8()).take_while(|end| *end <= LONGEST);
    fits.last().and_then(|end| name.get(..end)).unwrap_or_default()
}

/// The requester in the document of an ask, for migrations that add the column. Empty for an ask without a requester,
/// and for a document that cannot be read, as its row is refused when it is read.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn requester_of(doc: &str) -> String {
    use serde::Deserialize;

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

    if crate::args::depth::of_text(doc) > super::codec::MAX_DEPTH {
        return String::new();
    }
    let mut reader = serde_json::Deserializer::from_str(doc);
    reader.disable_recursion_limit();
    let principal = Stored::deserialize(&mut reader).ok().and_then(|it| it.ask.ask.principal);
    counted(principal.as_deref()).to_owned()
}

impl Ledger {
    /// How many asks of this requester are pending and not expired.
    pub(crate) async fn pending_of(&self, requester: &str) -> Result<usize, LedgerError> {
        let requester = counted(Some(requester));
        let counts = self.store.requesters().await?;
        let own = counts.iter().filter(|(who, _)| self.names.are_one(who, requester));
        let count: u64 = own.map(|(_, count)| *count).sum();
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}
