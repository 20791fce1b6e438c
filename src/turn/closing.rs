//! Closing the asks of calls that have got their results, with the run that has them (rule L5).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::Turn;
use super::journal::failed;
use super::report::{TurnError, TurnReport};
use super::resolve::Resolving;
use super::slot::State;
use super::suspended::SuspendedTurn;

/// Asks whose calls have got their results, until the run that has them is saved.
#[derive(Clone, Default)]
pub(crate) struct Closing(Arc<Mutex<BTreeSet<String>>>);

impl Closing {
    pub(crate) fn add(&self, asks: impl IntoIterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(asks);
    }

    /// All of them, each once.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut asks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *asks).into_iter().collect()
    }
}

/// What a response closes.
#[derive(Debug, Clone)]
pub(super) struct Closes {
    asks: BTreeSet<String>,
    /// The response as it stands.
    state: SuspendedTurn,
}

impl Resolving<'_> {
    /// The asks of calls that have got their results without running, and those that others have followed.
    pub(super) fn closes(&self) -> Option<Box<Closes>> {
        self.turn.ledger.as_ref()?;
        let mut asks = BTreeSet::new();
        for slot in &self.slots {
            asks.extend(slot.followed.iter().cloned());
            // What has run is settled; for an agent its calls are. Of what was asked about again, an earlier ask may be.
            let ran = slot.execution.started() && !slot.may_have_run();
            let ran = ran && !self.together.is_agent(slot);
            if matches!(slot.state, State::Settled(_)) && !ran {
                asks.extend(slot.ask.clone());
            }
        }
        let state = || SuspendedTurn::new(&self.turn.info, &self.slots);
        (!asks.is_empty()).then(|| Box::new(Closes { asks, state: state() }))
    }
}

impl Turn {
    /// Leaves the asks to be closed to whoever saves the run.
    pub(crate) fn closing_later(mut self, closing: Closing) -> Self {
        self.closing = Some(closing);
        self
    }

    /// Closes the asks of calls that have got their results, or leaves them to whoever saves the run.
    pub(super) async fn closed(
        &self,
        mut ended: Result<TurnReport, TurnError>,
    ) -> Result<TurnReport, TurnError> {
        let closes = match &mut ended {
            Ok(report) => report.take_closes(),
            Err(error) => error.take_closes(),
        };
        let (Some(ledger), Some(closes)) = (&self.ledger, closes) else { return ended };
        let Closes { asks, state } = *closes;
        if let Some(closing) = &self.closing {
            closing.add(asks);
            return ended;
        }
        let asks: Vec<_> = asks.into_iter().collect();
        match (ledger.close_all(&asks).await, ended) {
            (Err(error), Ok(report)) => Err(TurnError::after(failed(error), state, report)),
            (Err(error), Err(first)) => {
                tracing::warn!(%error, "asks of calls that have their results could not be closed");
                Err(first)
            }
            (Ok(()), ended) => ended,
        }
    }
}
