//! Asks and grants by the first characters of their ids, as a person types them (rule S16).

use countersign::ledger::{Ledger, LedgerError};
use serde_json::{Value, json};

use crate::output::CommandOutput;
use crate::used_store::UsedStore;

/// The fewest characters that name an ask or a grant.
const FEWEST: usize = 4;
/// The most candidates that are told.
const MOST: usize = 20;

/// The things in a store that have ids.
#[derive(Clone, Copy)]
pub(crate) enum Identified {
    Ask,
    Grant,
}

/// The output of a command for an id that names nothing, or several things. Nothing may be changed then.
pub(crate) type Unnamed = CommandOutput;

impl Identified {
    fn noun(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Grant => "grant",
        }
    }

    /// The number of characters of an id.
    fn whole(self) -> usize {
        match self {
            Self::Ask => 32,
            Self::Grant => 12,
        }
    }

    /// The command that lists all.
    fn lists(self, store: &UsedStore) -> String {
        store.command(match self {
            Self::Ask => "asks list",
            Self::Grant => "grants list --all",
        })
    }

    /// The id that is meant by an id or its first characters. Otherwise the output that says why none is.
    pub(crate) async fn named(
        self,
        ledger: &Ledger,
        given: &str,
        store: &UsedStore,
    ) -> Result<Result<String, Unnamed>, LedgerError> {
        if given.len() >= self.whole() || !given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Ok(given.to_owned()));
        }
        if given.len() < FEWEST {
            return Ok(Err(self.unknown(given, store)));
        }
        let prefix = given.to_ascii_lowercase();
        let mut found = self.all(ledger).await?;
        found.retain(|(id, _)| id.starts_with(&prefix));
        Ok(match found.as_slice() {
            [] => Err(self.unknown(given, store)),
            [(id, _)] => Ok(id.clone()),
            several => {
                let (all, noun) = (several.len(), self.noun());
                found.truncate(MOST);
                let ids: Vec<_> = found.iter().map(|(id, _)| id.as_str()).collect();
                let note = format!(
                    "{all} {noun}s begin with `{given}`, and nothing was done: {}. Give more characters of the one that you \
                     mean.",
                    ids.join(", ")
                );
                let candidates: Vec<_> = found.into_iter().map(|(_, about)| about).collect();
                let line = json!({"result": "ambiguous", "candidates": candidates});
                Err(CommandOutput::new(7, line).for_terminals(&note).noting(note))
            }
        })
    }

    /// All ids, each with what a program is told about a candidate. The ids of refused rows are among them. If two ids begin
    /// alike and one row is refused, the person may mean that one.
    async fn all(self, ledger: &Ledger) -> Result<Vec<(String, Value)>, LedgerError> {
        let (readable, refused): (Vec<_>, Vec<_>) = match self {
            Self::Ask => {
                let listed = ledger.list(None, u32::MAX).await?;
                let about = listed.records.iter().map(|it| {
                    let id = it.ask.id();
                    (id.to_owned(), json!({"id": id, "tool": it.ask.tool(), "state": it.state}))
                });
                (about.collect(), listed.refused)
            }
            Self::Grant => {
                let listed = ledger.grants(u32::MAX).await?;
                let about = listed.records.iter().map(|it| {
                    let (id, says) = (&it.id, it.grant.sentence());
                    (id.clone(), json!({"id": id, "says": says, "state": it.state}))
                });
                (about.collect(), listed.refused)
            }
        };
        let refused = refused.into_iter().map(|row| {
            let id = row.id.strip_prefix("grant:").unwrap_or(&row.id).to_owned();
            (id.clone(), json!({"id": id}))
        });
        Ok(readable.into_iter().chain(refused).collect())
    }

    /// Nothing has this id, and where to look.
    pub(crate) fn unknown(self, given: &str, store: &UsedStore) -> Unnamed {
        let few = match given.len() < FEWEST {
            true => format!("; an ID is given by at least {FEWEST} characters"),
            false => String::new(),
        };
        let note = format!(
            "There is no {} `{}`{few}. `{}` lists all.",
            self.noun(),
            given.escape_debug(),
            self.lists(store)
        );
        let result = match self {
            Self::Ask => "unknown",
            Self::Grant => "unknown_grant",
        };
        CommandOutput::new(7, json!({"result": result})).for_terminals(&note).noting(note)
    }
}
