//! Asks by the first characters of their ids, as a person types them.

use countersign::ledger::{Ledger, LedgerError};
use serde_json::json;

use super::results;
use crate::output::CommandOutput;
use crate::used_store::UsedStore;

/// The number of characters of an id.
const WHOLE: usize = 32;
/// The fewest characters that name an ask.
const FEWEST: usize = 4;
/// The most candidates that are told.
const MOST: usize = 20;

/// The id of the ask that is meant by an id or its first characters. Otherwise the output that says why none is; nothing may
/// be decided then.
pub(super) async fn named(
    ledger: &Ledger,
    given: &str,
    store: &UsedStore,
) -> Result<Result<String, CommandOutput>, LedgerError> {
    if given.len() >= WHOLE || !given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Ok(given.to_owned()));
    }
    if given.len() < FEWEST {
        return Ok(Err(unknown(given, store)));
    }
    let prefix = given.to_ascii_lowercase();
    let listed = ledger.list(None, u32::MAX).await?;
    let readable = listed.records.iter().map(|record| {
        (
            record.ask.id(),
            json!({"id": record.ask.id(), "tool": record.ask.tool(), "state": record.state}),
        )
    });
    // A row that is refused has an id as well: the other one is not what is meant just because it can be read.
    let refused = listed.refused.iter().map(|row| (row.id.as_str(), json!({"id": row.id})));
    let mut found: Vec<_> =
        readable.chain(refused).filter(|(id, _)| id.starts_with(&prefix)).collect();
    Ok(match found.as_slice() {
        [] => Err(unknown(given, store)),
        [(id, _)] => Ok((*id).to_owned()),
        several => {
            let all = several.len();
            found.truncate(MOST);
            let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
            let note = format!(
                "{all} asks begin with `{given}`, and nothing was done: {}. Give more characters of the one that you mean.",
                ids.join(", ")
            );
            let asks: Vec<_> = found.into_iter().map(|(_, ask)| ask).collect();
            let line = json!({"result": "ambiguous", "candidates": asks});
            Err(CommandOutput::new(7, line).for_terminals(&note).noting(note))
        }
    })
}

/// There is no such ask, and where to look.
pub(super) fn unknown(given: &str, store: &UsedStore) -> CommandOutput {
    let few = match given.len() < FEWEST {
        true => format!("; an ID is given by at least {FEWEST} characters"),
        false => String::new(),
    };
    let note = format!(
        "There is no ask `{}`{few}. `{}` lists all.",
        given.escape_debug(),
        store.command("asks list")
    );
    results::unknown().for_terminals(&note).noting(note)
}
