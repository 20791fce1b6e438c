//! Running a call again whose end was not seen, once somebody has said so (rule L2).

use super::ask::{Ask, Millis};
use super::record::{AskState, Record};
use super::results::Claimed;
use super::store::{Draft, Row, Writes};
use super::stored::{draft, keepable, read, row_of};
use super::{Ledger, LedgerError, rules};
use crate::call::repeated;

impl Ledger {
    /// Has a call whose end was not seen asked about anew, as a question of its own that no earlier approval covers
    /// (rule A1): that it may have run, when it was claimed and by which worker. Approved, it runs once more; denied, the
    /// model is told that it may have run and was not run again. Without this the model is told so at once.
    ///
    /// Idempotent tools run again without being asked about.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).ask_before_repeating();
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn ask_before_repeating(mut self) -> Self {
        self.asks_before_repeating = true;
        self
    }

    pub(crate) fn asks_before_repeating(&self) -> bool {
        self.asks_before_repeating
    }

    /// Claims an ask that others were executed before. Their claims end with it, so that none of them is settled late;
    /// when one was settled since, that is what came of the call.
    pub(super) async fn claim_again(
        &self,
        id: &str,
        earlier: Vec<String>,
        worker: &str,
        lease: Millis,
    ) -> Result<Claimed, LedgerError> {
        let ids: Vec<_> = std::iter::once(id.to_owned()).chain(earlier).collect();
        let mut result = Ok(Claimed::UnknownAsk);
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let (made, writes) = match again(rows, worker, lease, now) {
                Ok((claimed, writes)) => (Ok(claimed), writes),
                Err(error) => (Err(error), Writes::default()),
            };
            result = made;
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result
    }
}

impl Ask {
    /// The asks of the same call whose ends were not seen.
    pub(super) fn repeats(&self) -> Vec<String> {
        let mut asks: Vec<_> = repeated(&self.questions).map(str::to_owned).collect();
        asks.retain(|ask| ask != self.id());
        asks.sort_unstable();
        asks.dedup();
        asks
    }

    fn is_same_call(&self, other: &Self) -> bool {
        (&self.run, self.response, &self.path) == (&other.run, other.response, &other.path)
    }
}

/// Claims the first of these asks, which repeats the others.
fn again(
    rows: Vec<Option<Row>>,
    worker: &str,
    lease: Millis,
    now: Millis,
) -> Result<(Claimed, Writes), LedgerError> {
    let mut writes = Writes::default();
    let mut records = Vec::new();
    if rows.first().is_none_or(Option::is_none) {
        return Ok((Claimed::UnknownAsk, writes));
    }
    for row in rows.into_iter().flatten() {
        let mut record = read(&row)?;
        let time = rules::pass_time(&mut record, now);
        writes.log.extend(time.map(|event| draft(&record, event, None, now)));
        records.push((record, time.is_some()));
    }
    let mut records = records.into_iter();
    let Some((mut ask, mut changed)) = records.next() else {
        return Ok((Claimed::UnknownAsk, writes));
    };
    let mut earlier: Vec<_> = records.filter(|(it, _)| it.ask.is_same_call(&ask.ask)).collect();
    let mut claimed = rules::claim(&mut ask.clone(), worker, lease, now);
    if let Claimed::Claimed { .. } = claimed {
        let came_of = earlier.iter().find_map(|(record, _)| came_of(record));
        let by = Some(worker);
        let event = if let Some(known) = came_of {
            claimed = known;
            let settled = matches!(claimed, Claimed::Settled { .. });
            (settled && rules::close(&mut ask, now)).then_some("closed")
        } else {
            for (record, changed) in &mut earlier {
                let superseded = rules::supersede(record, now);
                writes.log.extend(superseded.then(|| draft(record, "superseded", by, now)));
                *changed |= superseded;
            }
            claimed = rules::claim(&mut ask, worker, lease, now);
            Some("claimed")
        };
        changed |= event.is_some();
        writes.log.extend(event.map(|event| -> Draft { draft(&ask, event, by, now) }));
    }
    for (record, _) in earlier.iter().filter(|(_, changed)| *changed) {
        writes.rows.push(keepable(row_of(record))?);
    }
    if changed {
        writes.rows.push(keepable(row_of(&ask))?);
    }
    Ok((claimed, writes))
}

/// What came of an earlier execution after all.
fn came_of(record: &Record) -> Option<Claimed> {
    match (record.state, &record.claim) {
        (AskState::Executed, _) => {
            let outcome = record.outcome.clone().unwrap_or_default();
            Some(Claimed::Settled { outcome })
        }
        // It was slow, and not dead.
        (AskState::Claimed, Some(claim)) => {
            Some(Claimed::Held { by: claim.worker.clone(), until: claim.until })
        }
        _ => None,
    }
}
