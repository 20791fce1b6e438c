//! `countersign asks review`: the pending asks of a store on the terminal, one after the other as they come.
//!
//! A person answers with the library's own handler ([`TerminalHandler`]), and every answer goes through a [`Surface`], with
//! the fingerprint of what was shown. While a question is open we read the store again and again. When the ask needs no
//! answer any more, we close the question and tell the person how it ended.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::{Pin, pin};
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{
    Approver, AskRecord, AskState, Decided, GrantOffer, Ledger, LedgerError, Millis, Presented,
    Surface,
};
use countersign::show::{self, Limits, counted};
use countersign_terminal::{Review, ReviewPlace, TerminalHandler};
use serde_json::json;

use super::{text, unproven};
use crate::output::{CommandError, CommandOutput, WIDTH};
use crate::used_store::UsedStore;

/// The pause between two reads of the store, for new asks and for the end of the one that is shown.
const LOOK: Duration = Duration::from_millis(500);

/// A review is by a person at a terminal. Programs have other commands.
pub(super) fn needs_terminal(store: &UsedStore) -> Result<(), CommandError> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(());
    }
    let (list, decide) = (store.command("asks list --state pending"), "countersign asks decide");
    Err(CommandError::Usage(format!(
        "a person reviews asks on a terminal, and this is none: `{list}` lists those that wait, and `{decide}` decides one"
    )))
}

/// Asks about each pending ask, until the person ends it.
pub(super) async fn run(
    ledger: &Ledger,
    store: &UsedStore,
    who: String,
) -> Result<CommandOutput, CommandError> {
    let ledger = unproven(ledger, store);
    let mut reviewer = Reviewer {
        surface: Surface::new(ledger.clone()),
        terminal: TerminalHandler::new().answered_by(who.as_str()),
        who: Approver::new(who),
        ledger,
        store,
        passed: HashSet::new(),
        shown: HashSet::new(),
        told: None,
        counts: ReviewCounts::default(),
    };
    // One listener for the whole review, from its first moment on: a Ctrl-C while the store is read counts, too.
    let mut stop = pin!(tokio::signal::ctrl_c());
    tokio::select! {
        biased;
        _ = &mut stop => {}
        () = std::future::ready(()) => while reviewer.step(stop.as_mut()).await? {},
    }
    Ok(reviewer.ended())
}

struct Reviewer<'a> {
    ledger: Ledger,
    store: &'a UsedStore,
    surface: Surface,
    terminal: TerminalHandler,
    who: Approver,
    /// The ids of those that are not asked about again.
    passed: HashSet<String>,
    /// The ids of those that were on the screen.
    shown: HashSet<String>,
    /// The number of asks that were left when the person was last told that none waits.
    told: Option<usize>,
    counts: ReviewCounts,
}

/// The answers of a person in a review.
#[derive(Default)]
struct ReviewCounts {
    approved: usize,
    denied: usize,
    left: usize,
}

impl Reviewer<'_> {
    /// Asks about the next ask that waits, or waits for one. Returns whether the review continues.
    async fn step(&mut self, stop: Pin<&mut impl Future>) -> Result<bool, CommandError> {
        let Some((record, waiting)) = self.next().await? else { return Ok(self.wait(stop).await) };
        self.told = None;
        self.shown.insert(record.ask.id().to_owned());
        let number = self.shown.len();
        let place = ReviewPlace::new(number, number + waiting - 1);
        let needless = closed(&self.ledger, &record);
        let reviewed = self.terminal.review(&record, place, needless).await;
        match reviewed.map_err(|error| CommandError::Store(error.to_string()))? {
            Review::Answered { answer, grant } => self.decide(&record, answer, grant).await?,
            Review::Skipped => {
                self.counts.left += 1;
                self.pass(&record);
                Self::say("Left for later", &record, "");
            }
            Review::Withdrawn => self.say_ended(&record).await?,
            Review::Stopped => return Ok(false),
            // Blocked, or executed elsewhere.
            _ => {
                self.pass(&record);
                let show = self.store.command(&format!("asks show {}", record.ask.id()));
                Self::say("Cannot be approved", &record, &format!("`{show}` shows it."));
            }
        }
        Ok(true)
    }

    /// The next ask for this person, and the number of those that wait, with it: first the oldest whose caller waits, and then
    /// the newest of the others, as its session is the likeliest to call again.
    async fn next(&mut self) -> Result<Option<(AskRecord, usize)>, LedgerError> {
        let listed = self.ledger.list(Some(AskState::Pending), u32::MAX).await?;
        for row in listed.refused {
            if self.passed.insert(row.id.clone()) {
                tell(&format!("The row of {} is refused: {}", row.id, row.error));
            }
        }
        let now = self.ledger.now().await?;
        let name = self.ledger.canonical_name(self.who.name());
        let waits = |record: &AskRecord| {
            let voted = |by: &str| self.ledger.canonical_name(by) == name;
            !self.passed.contains(record.ask.id())
                && is_open(record, now)
                && !record.counting_votes(now).any(|vote| voted(&vote.by))
        };
        let mut waiting: Vec<_> = listed.records.into_iter().filter(waits).collect();
        let all = waiting.len();
        let at = waiting.iter().rposition(|record| !record.has_no_caller(now)).unwrap_or(0);
        Ok((at < all).then(|| (waiting.swap_remove(at), all)))
    }

    /// Waits a moment for the next ask. Returns whether the review continues.
    async fn wait(&mut self, stop: Pin<&mut impl Future>) -> bool {
        if self.told != Some(self.counts.left) {
            self.told = Some(self.counts.left);
            let left = match self.counts.left {
                0 => "No ask waits for you".to_owned(),
                left => format!("No other ask waits for you ({left} left for later)"),
            };
            let name = self.store.name();
            tell(&format!(
                "{left} in the store `{name}`. New ones are shown as they come; Ctrl-C ends the review."
            ));
        }
        tokio::select! {
            _ = stop => false,
            () = tokio::time::sleep(LOOK) => true,
        }
    }

    async fn decide(
        &mut self,
        record: &AskRecord,
        answer: Answer,
        grant: Option<Box<GrantOffer>>,
    ) -> Result<(), LedgerError> {
        let id = record.ask.id();
        // The handler takes an approval only once all of the call was on the screen.
        let shown = Presented::whole(id, &record.fingerprint);
        let word = match &answer {
            Answer::Deny { .. } => "Denied",
            _ => "Approved",
        };
        let is_edited = matches!(answer, Answer::Approve { args: Some(_) });
        let decided = self.surface.decide(&self.who, &shown, answer).await?;
        let count =
            if word == "Denied" { &mut self.counts.denied } else { &mut self.counts.approved };
        let text = text::decided(&decided, id, self.store);
        match &decided {
            Decided::Won { .. } => {
                *count += 1;
                // The line shows the call as it was asked about, so it must not read as what was approved.
                match is_edited {
                    true => Self::say("Edited", record, text::EDITED),
                    false => Self::say(word, record, ""),
                }
            }
            Decided::Recorded { .. } => {
                *count += 1;
                Self::say(word, record, &text);
            }
            // It is shown again as it is now.
            Decided::Mismatch { .. } => {
                Self::say("Not decided", record, "It has changed meanwhile.")
            }
            _ => {
                self.pass(record);
                Self::say("Not decided", record, &text);
            }
        }
        if let (Decided::Won { again: false }, Some(grant)) = (&decided, grant) {
            tell(&grant.make(&self.ledger, self.who.name()).await.to_string());
        }
        Ok(())
    }

    fn pass(&mut self, record: &AskRecord) {
        self.passed.insert(record.ask.id().to_owned());
    }

    /// Says how an ask has ended that was on the screen.
    async fn say_ended(&self, record: &AskRecord) -> Result<(), LedgerError> {
        let now = self.ledger.get(record.ask.id()).await?;
        let view = now.map(|now| now.view_without_call());
        let ended = view.as_ref().and_then(|view| view.ended()).unwrap_or("closed");
        let by =
            view.and_then(|view| view.decision).map(|it| format!(" by {}", it.by.join(" and ")));
        let by = by.unwrap_or_default();
        Self::say("Needs no answer any more", record, &format!("It was {ended}{by} meanwhile."));
        Ok(())
    }

    /// A line about an ask that stays below what the terminal showed before.
    fn say(what: &str, record: &AskRecord, more: &str) {
        let view = record.view(record.changed_at, Limits::default());
        let asked = view.call.as_ref().map_or(view.title.as_str(), |call| call.line());
        for line in show::wrap("", &format!("{what}: {asked}"), WIDTH) {
            tell(&line);
        }
        if !more.is_empty() {
            tell(&format!("  {more}"));
        }
    }

    fn ended(self) -> CommandOutput {
        let ReviewCounts { approved, denied, left } = self.counts;
        let line = json!({"approved": approved, "denied": denied, "left": left});
        let text = format!(
            "Approved {approved}, denied {denied}, left {} for later. `{}` lists those that wait.",
            counted(left, "ask"),
            self.store.command("asks list --state pending")
        );
        CommandOutput::new(0, line).for_people(text)
    }
}

/// Tells whether an ask can still be answered at this time: it may have expired without having been noted.
fn is_open(record: &AskRecord, now: Millis) -> bool {
    record.state == AskState::Pending && record.due_at().is_none_or(|due| now < due)
}

/// Completes once an ask needs no answer any more, or is not what was shown. An error of the store does not complete it: the
/// next read may succeed, and if none does, the decision has the error.
async fn closed(ledger: &Ledger, shown: &AskRecord) {
    loop {
        tokio::time::sleep(LOOK).await;
        let (Ok(now), Ok(at)) = (ledger.get(shown.ask.id()).await, ledger.now().await) else {
            continue;
        };
        let waits =
            now.is_some_and(|now| is_open(&now, at) && now.fingerprint == shown.fingerprint);
        if !waits {
            return;
        }
    }
}

/// Writes a line for the person.
fn tell(line: &str) {
    // An error is ignored: the terminal may be gone, and what was decided is in the store.
    let _ = writeln!(io::stderr(), "{line}");
}
