//! The durable record of executions: a gate claims an execution before the tool body runs, and settles the claim when
//! the body has ended (rule L2). The call record covers one pass in one process; the journal covers all processes.
//!
//! # Order
//!
//! ```text
//!  the execution cell grants an attempt     (one process, one pass)
//!    └─ claim in the journal                (all processes): Go(token) │ Recorded │ Denied │ AskAgain │ Unknown
//!         └─ the body runs; the lease is renewed every third of its length
//!              └─ settle with the outcome, under the token
//! ```
//!
//! The cell comes first, as it is cheap and keeps concurrent attempts of one pass from claiming twice. If a claim is
//! not settled, as the process died, it expires with its lease. From then on the end of its execution is unknown.
//!
//! # Why a token
//!
//! A worker may be stopped for longer than its lease (a laptop that sleeps) and come back after another worker has
//! claimed the call. Each claim gets a number higher than the one before, and settling needs the number, so that a late
//! worker of a superseded claim cannot overwrite the outcome of a newer one (rule L2).

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};

use super::Approval;
use crate::args::Args;
use crate::decision::Question;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Claims, renews and settles executions. The ledger implements it.
pub(crate) trait ExecutionJournal: Send + Sync {
    /// Claims the execution of a call that was approved, or of an allowed call of a journaled tool.
    fn claim<'a>(
        &'a self,
        call: JournaledCall<'a>,
    ) -> BoxFuture<'a, Result<JournalClaim, BoxError>>;

    /// Renews the lease of a claim.
    fn renew<'a>(&'a self, claimed: &'a JournalToken) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Records the outcome of a tool body. Returns the recorded outcome, which is an earlier one if there is one.
    fn settle<'a>(
        &'a self,
        claimed: &'a JournalToken,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Outcome, BoxError>>;

    /// The length of a claim's lease, if it is not renewed.
    fn lease(&self) -> Duration;
}

/// A call that is about to be executed, as the journal needs it.
pub(crate) struct JournaledCall<'a> {
    pub(crate) run_id: &'a str,
    /// The number of the response in its run, from 0.
    pub(crate) response: u32,
    /// The agent and its parents, outermost first.
    pub(crate) path: &'a [String],
    pub(crate) call_id: &'a str,
    /// The name of the tool, as the model called it.
    pub(crate) tool: &'a str,
    pub(crate) approval: Option<&'a Approval>,
    /// The identity of the tool at its gate.
    pub(crate) identity: &'a str,
    pub(crate) args: &'a Args,
    pub(crate) idempotent: bool,
}

/// The answer to whether a call may be executed.
pub(crate) enum JournalClaim {
    /// The call may be executed, under this token.
    Go(JournalToken),
    /// The call was executed before, with this outcome.
    Recorded(Outcome),
    /// There is no valid approval for the call; the text is the reason.
    Denied(String),
    /// The approval does not cover an execution now, for this reason: the gate defers the call with this question.
    AskAgain(Question, &'static str),
    /// Another worker is executing the call, or it was started and its end was not seen; the text is for the model.
    Unknown(String),
}

/// A granted claim: the id of the ask, and the fencing token of the claim (rule L2).
#[derive(Debug, Clone)]
pub(crate) struct JournalToken {
    pub(crate) id: String,
    pub(crate) token: u64,
}

/// The layer and the key of the question whether to run a call again.
const REPEATING: (&str, &str) = ("ledger", "may-have-run");

/// The name of the pin that holds the id of the ask which an earlier approval was for.
const STARTED: &str = "ask";

/// The question whether to run a call again that was started under this ask and whose end was not seen. An ask is
/// started once, so that the question has the same id until it is answered, and another id after another start.
pub(crate) fn ask_to_repeat(ask: &str, reason: String) -> Question {
    Question::of(REPEATING.0, REPEATING.1).with_reason(reason).with_pin(STARTED, ask)
}

/// The question whether to run a call although the approval of this ask is too old.
pub(crate) fn ask_anew(ask: &str, reason: String) -> Question {
    Question::of(REPEATING.0, "approval-too-old").with_reason(reason).with_pin(STARTED, ask)
}

/// Returns `true` if this question was made by [`ask_to_repeat`].
pub(crate) fn is_about_repeating(question: &Question) -> bool {
    (question.layer(), question.key()) == REPEATING
}

/// The asks under which the call was started before, taken from the questions whether to run it again.
pub(crate) fn repeated(questions: &[Question]) -> impl Iterator<Item = &str> {
    let about = questions.iter().filter(|question| is_about_repeating(question));
    about.filter_map(|question| question.pins().get(STARTED)).map(String::as_str)
}

/// Renews a lease while a future runs, every third of the lease's length by tokio's clock.
///
/// Two chances to renew are left before the lease ends, so one lost connection is no lost claim.
///
/// We poll the renewal together with the future and not before it. In SQLite one connection runs one transaction at a
/// time: a body that is in the middle of one of its own transactions holds what the renewal waits for. If we awaited
/// the renewal alone, both would stop for ever.
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
    async fn a_body_does_not_wait_for_the_renewal_of_its_lease() {
        let store = Notify::new();
        let going = async {
            sleep(Duration::from_secs(15)).await;
            store.notify_one();
            sleep(Duration::from_secs(15)).await;
            "ended"
        };
        // The renewal begins after 10 seconds, and waits for the notification that the future sends after 15.
        let ended = keeping(Duration::from_secs(30), going, || store.notified());
        assert_eq!(timeout(Duration::from_secs(60), ended).await, Ok("ended"));
    }
}
