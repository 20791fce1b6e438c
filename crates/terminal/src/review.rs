//! One ask of a ledger, decided at the terminal by a person who is not at the run (rule S16).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use countersign::deferred::{Answer, ToolApproval};
use countersign::error::BoxError;
use countersign::ledger::{AskRecord, GrantOffer, Millis, Offers};
use countersign::show::{Limits, counted};
use futures::future::{Either, select};
use tokio::runtime::Handle;

use super::dialogue::askable;
use super::granting::CallOffers;
use super::head::{ReviewHead, ReviewPlace};
use super::screen::Gone;
use super::{NoLongerNeeded, TERMINAL, TerminalHandler, no_terminal};

/// The end of a question about one ask ([`TerminalHandler::review`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Review {
    /// The person has answered. Nothing is decided yet.
    Answered {
        /// The answer, for [`Surface::decide`](countersign::ledger::Surface::decide). All of the call was shown.
        answer: Answer,
        /// The grant to make once the approval counts.
        grant: Option<Box<GrantOffer>>,
    },
    /// The person leaves the ask for later.
    Skipped,
    /// The ask needs no answer any more, and the question was closed.
    Withdrawn,
    /// No one can approve the ask: its call is blocked, or executed elsewhere. No person was asked.
    Unapprovable,
    /// The person has stopped, or the terminal is gone.
    Stopped,
}

impl TerminalHandler {
    /// Asks a person about one pending ask of a ledger, of any run. This decides nothing by itself: hand the answer to a
    /// [`Surface`](countersign::ledger::Surface), and then make the grant. When `needless` completes, for example
    /// because the ask was decided elsewhere, the question is closed. The keys are those of every question, and `l`
    /// leaves the ask for later. An ask whose caller no longer waits says so.
    ///
    /// # Errors
    /// When stdin or stderr is no terminal, or it cannot be used.
    ///
    /// ```no_run
    /// use countersign::ledger::{Approver, AskState, Ledger, MemoryStore, Presented, Surface};
    /// use countersign_terminal::{Review, ReviewPlace, TerminalHandler};
    ///
    /// # async fn review(ledger: Ledger) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let (terminal, surface) = (TerminalHandler::new(), Surface::new(ledger.clone()));
    /// let pending = ledger.list(Some(AskState::Pending), 10).await?.records;
    /// for (at, record) in pending.iter().enumerate() {
    ///     let place = ReviewPlace::new(at + 1, pending.len());
    ///     // This program closes no question by itself.
    ///     let reviewed = terminal.review(record, place, std::future::pending()).await?;
    ///     if let Review::Answered { answer, .. } = reviewed {
    ///         let shown = Presented::whole(record.ask.id(), &record.fingerprint);
    ///         println!("{:?}", surface.decide(&Approver::new("ann"), &shown, answer).await?);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn review(
        &self,
        record: &AskRecord,
        place: ReviewPlace,
        needless: impl Future<Output = ()>,
    ) -> Result<Review, BoxError> {
        let requests = record.ask.requests();
        let Some(call) = askable(&requests).next().map(|call| call.id().to_owned()) else {
            return Ok(Review::Unapprovable);
        };
        if let Some(why) = no_terminal() {
            return Err(why.into());
        }
        let runtime = Handle::try_current()?;
        let turn = TERMINAL.lock().await;
        let waiting = NoLongerNeeded(Arc::default());
        let abandoned = Arc::clone(&waiting.0);
        let offers = Offers::of(&record.ask);
        let offers = if offers.is_empty() { None } else { Some((call, offers)) };
        let now = SystemTime::now();
        let who = asking(record.ask.principal(), record.parked_at, now);
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX);
        let note = record.view(now, Limits::default()).no_caller;
        let head = ReviewHead { place, note };
        let this = self.clone();
        let asked = runtime.spawn_blocking(move || {
            let _turn = turn;
            let offers = CallOffers::from_iter(offers);
            this.dialogue(&who, &requests, (offers, Some(head)), abandoned).map(|decided| {
                decided.map(|(answers, granted)| {
                    let answer = answers.into_iter().next().map(|(_, answer)| answer);
                    (answer, granted.into_values().next())
                })
            })
        });
        let decided = match select(asked, pin!(needless)).await {
            Either::Left((decided, _)) => decided,
            Either::Right(((), asked)) => {
                waiting.0.store(true, Ordering::Relaxed);
                // The thread gives the terminal back before it ends.
                asked.await
            }
        };
        Ok(reviewed(decided??))
    }
}

/// The line that says who asks: an agent, for whom, and how long ago if that is more than a minute. Without the time,
/// an ask of a session that is long gone looks like one that a caller waits for.
fn asking(who: Option<&str>, parked_at: Millis, now: SystemTime) -> String {
    let who = who.filter(|who| !who.is_empty()).map(|who| format!("An agent of {who}"));
    let parked = Duration::from_millis(u64::try_from(parked_at).unwrap_or_default());
    let age = now.duration_since(SystemTime::UNIX_EPOCH + parked).unwrap_or_default();
    let minutes = usize::try_from(age.as_secs() / 60).unwrap_or(usize::MAX);
    let ago = match minutes {
        0 => return who.unwrap_or_default(),
        1..120 => counted(minutes, "minute"),
        120..2880 => counted(minutes / 60, "hour"),
        _ => counted(minutes / 1440, "day"),
    };
    format!("{} ({ago} ago)", who.as_deref().unwrap_or("The agent"))
}

/// The answer of a dialogue about one call, and the grant that was chosen with it.
type DialogueAnswer = (Option<ToolApproval>, Option<GrantOffer>);

fn reviewed(decided: Result<DialogueAnswer, Gone>) -> Review {
    match decided {
        Ok((Some(approval), grant)) => {
            Review::Answered { answer: Answer::from(&approval), grant: grant.map(Box::new) }
        }
        Ok(_) => Review::Stopped,
        Err(Gone::Skipped) => Review::Skipped,
        Err(Gone::Abandoned) => Review::Withdrawn,
        Err(_) => Review::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S16: "An ask that waits for longer than a minute says for how long."
    #[test]
    fn an_ask_that_waits_long_says_since_when() {
        let after = |seconds: u64| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + seconds);
            asking(Some("ann"), 1_000_000, now)
        };
        for (seconds, says) in [
            (0, "An agent of ann"),
            (59, "An agent of ann"),
            (60, "An agent of ann (1 minute ago)"),
            (7_199, "An agent of ann (119 minutes ago)"),
            (7_200, "An agent of ann (2 hours ago)"),
            (172_800, "An agent of ann (2 days ago)"),
        ] {
            assert_eq!(after(seconds), says, "{seconds}");
        }
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(180);
        assert_eq!(asking(None, 0, late), "The agent (3 minutes ago)");
        // A clock that was set back.
        assert_eq!(asking(None, 1_000_000, SystemTime::UNIX_EPOCH), "");
    }
}
