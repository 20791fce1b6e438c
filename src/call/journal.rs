//! The record of executions that outlives the process: what a gate claims before a body runs, and settles when it has
//! ended (rule L2). The pass is the record for one process; this is the one for all of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};

use super::RunContext;
use crate::args::Args;
use crate::decision::Question;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Claims and settles executions.
pub(crate) trait Journal: Send + Sync {
    /// Claims the execution of a call, which is approved, or allowed and to be journaled.
    fn claim<'a>(&'a self, call: Journaled<'a>) -> BoxFuture<'a, Result<JournalClaim, BoxError>>;

    /// Keeps a claim for longer.
    fn renew<'a>(&'a self, claimed: &'a JournalToken) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Records how a body has ended. Gives what is recorded, which is another outcome where one was recorded before.
    fn settle<'a>(
        &'a self,
        claimed: &'a JournalToken,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Outcome, BoxError>>;

    /// How long a claim lasts when it is not renewed.
    fn lease(&self) -> Duration;
}

/// A call that is about to be executed.
pub(crate) struct Journaled<'a> {
    pub(crate) cx: &'a RunContext,
    /// The tool at its gate.
    pub(crate) identity: &'a str,
    pub(crate) args: &'a Args,
    pub(crate) idempotent: bool,
}

/// Whether a call may be executed.
pub(crate) enum JournalClaim {
    /// It may.
    Go(JournalToken),
    /// It was executed, and this came of it.
    Recorded(Outcome),
    /// It may not: nobody approved it, or not any more.
    Denied(String),
    /// Its approval does not cover running it now: it is asked about again, for this reason.
    AskAgain(Question, &'static str),
    /// Another worker executes it now, or it was started and its end was not seen.
    Unknown(String),
}

/// The right to execute a call, in the journal.
#[derive(Debug, Clone)]
pub(crate) struct JournalToken {
    pub(crate) id: String,
    pub(crate) token: u64,
}

/// Who asks whether to run a call again, and the key of that question.
const REPEATING: (&str, &str) = ("ledger", "may-have-run");

/// The pin of that question: the ask under which the call was started.
const STARTED: &str = "ask";

/// The question whether to run a call again that was started under this ask, and whose end was not seen. Each ask is
/// started once, so that the question is the same each time it comes up, and another one after another start.
pub(crate) fn ask_to_repeat(ask: &str, reason: String) -> Question {
    let pins = BTreeMap::from([(STARTED.to_owned(), ask.to_owned())]);
    Question { reason, pins, ..Question::of(REPEATING.0, REPEATING.1) }
}

/// The question whether to run a call whose approval, of this ask, is too old.
pub(crate) fn ask_anew(ask: &str, reason: String) -> Question {
    let pins = BTreeMap::from([(STARTED.to_owned(), ask.to_owned())]);
    Question { reason, pins, ..Question::of(REPEATING.0, "approval-too-old") }
}

/// Whether this is a question whether to run a call again.
pub(crate) fn is_about_repeating(question: &Question) -> bool {
    (question.layer(), question.key()) == REPEATING
}

/// The asks under which the call was started, as far as these questions are about them.
pub(crate) fn repeated(questions: &[Question]) -> impl Iterator<Item = &str> {
    let about = questions.iter().filter(|question| is_about_repeating(question));
    about.filter_map(|question| question.pins().get(STARTED)).map(String::as_str)
}

/// Keeps a lease while something goes on: renews it three times in its length, by tokio's clock. What goes on goes on
/// meanwhile: it may hold what renewing waits for, as a store that writes one transaction after the other.
pub(crate) async fn keeping<T, R: Future<Output = ()>>(
    lease: Duration,
    going: impl Future<Output = T>,
    renew: impl Fn() -> R,
) -> T {
    let mut going = pin!(going);
    loop {
        if let Ok(ended) = tokio::time::timeout(lease / 3, going.as_mut()).await {
            return ended;
        }
        if let Either::Left((ended, _)) = select(going.as_mut(), pin!(renew())).await {
            return ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// L2: "While a body runs, its claim is renewed", and not the other way round.
    #[tokio::test(start_paused = true)]
    async fn what_goes_on_does_not_wait_for_the_renewal_of_its_lease() {
        let store = Notify::new();
        let going = async {
            sleep(Duration::from_secs(15)).await;
            store.notify_one();
            sleep(Duration::from_secs(15)).await;
            "ended"
        };
        // Asked for after 10 seconds, it waits for the one above.
        let ended = keeping(Duration::from_secs(30), going, || store.notified());
        assert_eq!(timeout(Duration::from_secs(60), ended).await, Ok("ended"));
    }
}
