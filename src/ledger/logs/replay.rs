//! Replaying the transitions that a log tells about: an ask is decided once and executed once, and tokens rise.
//!
//! All entries of a log may be genuine, and still no ledger would have made them in this order. For example, if a row is put
//! back to an earlier state, the next honest operation writes a second decision, or a second claim with the token of the
//! first. So we check each entry against the transitions of [`transitions`](crate::ledger::asks::transitions):
//!
//! | event | from |
//! |---|---|
//! | `voted` | pending |
//! | `decided` | pending; decided, where several have to agree, as a veto |
//! | `claimed`, with a higher token | decided, unknown |
//! | `lost` | claimed |
//! | `renewed` | unknown |
//! | `settled`, `released` | claimed, unknown |
//! | `superseded`, with a higher token | unknown |
//! | `expired` | pending |
//! | `aged`, `outvoted`, `grant_void` | decided |
//! | `cancelled`, `closed`, `ran_unapproved` | pending, decided |

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::events::{DROPPED, KEY, event};
use crate::ledger::asks::record::{AskState, RAN_UNAPPROVED};

/// The rows of a log, as far as it has told about them.
#[derive(Default)]
pub(in crate::ledger) struct Transitions {
    rows: BTreeMap<String, LoggedRow>,
    /// The asks that were decided twice, as only a veto is.
    vetoed: BTreeSet<String>,
}

/// One row, as the log has told about it.
#[derive(Clone, Copy)]
struct LoggedRow {
    token: u64,
    /// The state of an ask.
    state: Option<AskState>,
    /// `true` if nothing may follow.
    over: bool,
    /// The number of times a grant was used.
    used: u64,
}

impl Transitions {
    /// Takes the next entry about a row.
    pub(in crate::ledger) fn next(&mut self, row: &str, body: &Value) -> Result<(), &'static str> {
        let Some(event) = event(body) else { return Err("it names no event") };
        let before = self.rows.get(row).copied();
        let told = if row.starts_with("run:") {
            run(before, event, body)?
        } else if row.starts_with("grant:") {
            grant(before, event, body)?
        } else if row.starts_with("counter:") || row == KEY {
            return Ok(());
        } else if body.get("ask").and_then(Value::as_str) == Some(row) {
            self.ask(row, before, event, body)?
        } else {
            return Err("it does not name the ask that it is about");
        };
        self.rows.insert(row.to_owned(), told);
        Ok(())
    }

    /// The state of an ask after the last entry about it.
    pub(in crate::ledger) fn state(&self, ask: &str) -> Option<AskState> {
        self.rows.get(ask)?.state
    }

    /// Returns `true` if the ask was decided a second time.
    pub(in crate::ledger) fn is_vetoed(&self, ask: &str) -> bool {
        self.vetoed.contains(ask)
    }

    fn ask(
        &mut self,
        row: &str,
        before: Option<LoggedRow>,
        event: &str,
        body: &Value,
    ) -> Result<LoggedRow, &'static str> {
        use AskState::{
            Cancelled, Claimed, Closed, Decided, Executed, Expired, Pending, Released, Unknown,
        };
        let token = body.get("token").and_then(Value::as_u64).unwrap_or_default();
        let told = |state| LoggedRow { token, state: Some(state), over: false, used: 0 };
        let Some(before) = before else {
            return match event {
                "parked" => Ok(told(Pending)),
                _ => Err("its ask was not parked before"),
            };
        };
        if event == "parked" {
            return Err("its ask was removed, and parked again");
        }
        let rises = matches!(event, "claimed" | "superseded");
        if token < before.token || (rises && token == before.token) {
            return Err("its token is not higher than the one before");
        }
        if !rises && token > before.token {
            return Err("its token is higher than that of the last claim");
        }
        let from = before.state.unwrap_or(Pending);
        let to = match (event, from) {
            ("voted", Pending) => Pending,
            ("decided", Pending) => Decided,
            ("decided", Decided) if self.vetoed.insert(row.to_owned()) => Decided,
            ("claimed", Decided | Unknown) | ("renewed", Unknown) => Claimed,
            ("lost", Claimed) | ("superseded", Unknown) => Unknown,
            ("settled", Claimed | Unknown) => Executed,
            ("released", Claimed | Unknown) => Released,
            ("expired", Pending) | ("aged" | "outvoted" | "grant_void", Decided) => Expired,
            ("cancelled", Pending | Decided) => Cancelled,
            ("closed" | RAN_UNAPPROVED, Pending | Decided) => Closed,
            ("decided", _) => return Err("its ask had its decision"),
            (_, Executed) => return Err("its ask was executed"),
            _ => return Err("its ask was in a state that this does not follow"),
        };
        if body.get("state").and_then(Value::as_str).is_some_and(|said| said != to.as_str()) {
            return Err("its ask is in another state than this leads to");
        }
        Ok(told(to))
    }
}

fn run(before: Option<LoggedRow>, event: &str, body: &Value) -> Result<LoggedRow, &'static str> {
    let said = body.get("token").and_then(Value::as_u64);
    let last = before.map_or(0, |before| before.token);
    let token = said.unwrap_or(last);
    if before.is_some_and(|before| before.over) && event != DROPPED {
        return Err("its run had ended");
    }
    if token < last || (event == "run_taken" && before.is_some() && said == Some(last)) {
        return Err("its token is not higher than the one before");
    }
    Ok(LoggedRow { token, state: None, over: matches!(event, "run_ended" | DROPPED), used: 0 })
}

fn grant(before: Option<LoggedRow>, event: &str, body: &Value) -> Result<LoggedRow, &'static str> {
    let used = body.get("used").and_then(Value::as_u64).unwrap_or_default();
    match (before, event) {
        (None, "grant_made") => {}
        (None, _) => return Err("its grant was not made before"),
        (Some(_), "grant_made") => return Err("its grant was removed, and made again"),
        (Some(before), _) if before.over => return Err("its grant was over"),
        (Some(before), "grant_used") if used != before.used + 1 => {
            return Err("it does not count the uses of its grant");
        }
        (Some(before), event) if event != "grant_used" && used != before.used => {
            return Err("it does not count the uses of its grant");
        }
        _ => {}
    }
    let over = matches!(event, "grant_revoked" | "grant_expired");
    Ok(LoggedRow { token: 0, state: None, over, used })
}
