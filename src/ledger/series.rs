//! The asks of equal calls, one after another: at most one of them is open.
//!
//! A door that holds no run (a hook is a process for each call, a client of MCP repeats a request) finds the decision
//! about a call by what the call is. The door makes a key of everything that has to be equal and numbers the asks of
//! that key, and an [`AskSeries`] applies the rules that all such doors share:
//!
//! | rule | here |
//! |---|---|
//! | an equal call joins the open ask | [`last`](AskSeries::last) finds it, and [`next`](AskSeries::next) parks none beside it |
//! | a person's no is not answered by an earlier yes (G2) | only a grant for exactly this call, made after the no, answers |
//! | a no is told | the next ask says when an equal call was denied, and why |
//! | three denials end the asking (D11) | within [`denied_within`](AskSeries::denied_within), or for as long as the key lives |
//! | a later yes begins the count anew (D11) | an approval of a person, or such a grant |
//! | a requester has at most 1 000 pending asks (D11) | counted by the store, by canonical name |
//! | a call that may have run is not repeated without end | counted, shown in the question, and bounded |
//! | an ask that no one has answered says nothing | one that has expired or was cancelled is passed over |
//! | what is too long ago to be looked at may have been a no | a person is asked, and told so: no grant answers |

use std::fmt;
use std::time::Duration;

use super::asks::ask::{Ask, Millis, utc};
use super::asks::record::{AskRecord, AskState};
use super::error::LedgerError;
use super::grants::granting::Since;
use super::grants::{grant, granting};
use super::handle::{Ledger, millis};
use super::rows::predecessor::{Predecessor, holds_up, is_open};
use crate::call::DeniedBefore;
use crate::decision::Question;
use crate::deferred::Answer;

/// The number of times people may deny equal calls in a row before the next one is denied without asking, by default
/// (rule D11).
const MAX_DENIALS: u32 = 3;

/// The number of asks of a requester that may be pending at a time, by default (rule D11).
const MAX_PENDING: u32 = 1_000;

/// The number of runs in a row that may have an unknown end before the next call is denied without asking, by default.
const MAX_UNKNOWN: u32 = 3;

/// The number of asks that are looked at, from the last one back, for what happened to equal calls.
const LOOKED_BACK: u32 = 1_000;

/// For how long the question about a call says that an equal one has just run.
const JUST_RAN: Millis = 10 * 60 * 1000;

/// The number of each ask, from 1, in the words of the door.
type Numbered<'a> = dyn Fn(u64) -> Ask + Send + Sync + 'a;

/// The asks of equal calls in a ledger, which their numbers find again in every process.
///
/// A door gives a function from numbers to asks: the ask of number `n` has an id that only this key and this number
/// have. Numbers begin at 1 and have no gaps.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, AskSeries, Ledger, MemoryStore, NextAsk};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let number = |n: u64| Ask::new("session-1", format!("root/push-{n}"), "push").with_principal("ann");
/// let series = AskSeries::new(&ledger, &number);
///
/// // Nothing was asked about this call yet: its first ask is parked.
/// assert_eq!(series.last().await?.number(), 0);
/// for n in 1..=3 {
///     let last = series.last().await?;
///     let NextAsk::Parked(asked) = series.next(&last, number(n), None).await? else { panic!() };
///     let no = Answer::Deny { message: "not on a Friday".into() };
///     ledger.decide(asked.ask.id(), &asked.fingerprint, "bob", no).await?;
/// }
/// // A person has said no three times: the fourth call is denied without a question.
/// let last = series.last().await?;
/// let NextAsk::Denied(text) = series.next(&last, number(4), None).await? else { panic!() };
/// assert!(text.contains("3 times") && text.contains("not on a Friday"));
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
pub struct AskSeries<'a> {
    ledger: &'a Ledger,
    number: &'a Numbered<'a>,
    has_runs: bool,
    sees_ends: bool,
    known: u64,
    max_denials: u32,
    max_pending: u32,
    max_unknown: u32,
    denied_within: Option<Millis>,
    denied_at: Option<Millis>,
}

impl fmt::Debug for AskSeries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskSeries")
            .field("max_denials", &self.max_denials)
            .field("max_pending", &self.max_pending)
            .field("max_unknown", &self.max_unknown)
            .finish_non_exhaustive()
    }
}

/// The last ask of equal calls, with its number.
#[derive(Debug, Clone)]
pub struct LastAsk {
    number: u64,
    record: Option<AskRecord>,
    /// `true` if its answer was used, as its run says.
    is_used: bool,
}

impl LastAsk {
    /// The number of the last ask; 0 where no equal call was asked about.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The last ask; `None` where there is none, or where its run was dropped from the ledger.
    #[must_use]
    pub fn record(&self) -> Option<&AskRecord> {
        self.record.as_ref()
    }

    /// The last ask if an equal call can join it: it is pending, or its answer was not used.
    #[must_use]
    pub fn open(&self) -> Option<&AskRecord> {
        self.record.as_ref().filter(|it| is_open(it, self.is_used))
    }

    /// The last ask if no other one may be parked beside it.
    fn holds_up(&self) -> Option<&AskRecord> {
        self.record.as_ref().filter(|it| holds_up(it, self.is_used))
    }
}

/// The ask of the next equal call.
///
/// Exhaustive on purpose: a door has to answer the call in each of these cases.
#[derive(Debug)]
pub enum NextAsk {
    /// A person is asked: the ask is pending.
    Parked(Box<AskRecord>),
    /// A grant has answered the ask.
    Granted(Box<AskRecord>),
    /// The last ask is open, and this call joins it: nothing was parked.
    Open(Box<AskRecord>),
    /// No person is asked, and the call is denied with this text for the model.
    Denied(String),
}

/// The fate of equal calls before, as the next question says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Before {
    denials: u32,
    words: String,
    denied_at: Option<Millis>,
    unknown: u32,
}

impl Before {
    /// The denials as a person is told of them; `otherwise` is the time of one that is not in the series.
    fn told(&self, otherwise: Option<Millis>) -> Option<DeniedBefore> {
        let at = self.denied_at.or(otherwise)?;
        Some(DeniedBefore::found(self.denials.max(1), &self.words, utc(at)))
    }
}

impl<'a> AskSeries<'a> {
    /// The asks of a key, where `number` makes the ask of each number.
    #[must_use]
    pub fn new(ledger: &'a Ledger, number: &'a Numbered<'a>) -> Self {
        Self {
            ledger,
            number,
            has_runs: false,
            sees_ends: true,
            known: 0,
            max_denials: MAX_DENIALS,
            max_pending: MAX_PENDING,
            max_unknown: MAX_UNKNOWN,
            denied_within: None,
            denied_at: None,
        }
    }

    /// Says that each ask is in a run of its own, which is saved when the ask was used. A number whose run is there is
    /// used, also after its ask was dropped.
    #[must_use]
    pub fn with_runs(mut self) -> Self {
        self.has_runs = true;
        self
    }

    /// Says that the door does not see the end of every call, as a hook whose client reports only some of them. An unknown
    /// end is told to people then, and neither bounds the asking nor keeps grants from answering.
    #[must_use]
    pub fn without_ends(mut self) -> Self {
        self.sees_ends = false;
        self
    }

    /// Says that there are at least so many asks, so that finding the last one begins there.
    #[must_use]
    pub fn known(mut self, number: u64) -> Self {
        self.known = number;
        self
    }

    /// Sets how often people may deny equal calls in a row (3).
    #[must_use]
    pub fn max_denials(mut self, times: u32) -> Self {
        self.max_denials = times;
        self
    }

    /// Sets how many asks of a requester may be pending at a time (1 000).
    #[must_use]
    pub fn max_pending(mut self, asks: u32) -> Self {
        self.max_pending = asks;
        self
    }

    /// Sets how many runs in a row may have an unknown end (3).
    #[must_use]
    pub fn max_unknown(mut self, runs: u32) -> Self {
        self.max_unknown = runs;
        self
    }

    /// Lets only denials of this time count. Without it they count for as long as the key lives, as that of a session.
    #[must_use]
    pub fn denied_within(mut self, time: Duration) -> Self {
        self.denied_within = Some(millis(time));
        self
    }

    /// Names the time of a person's no to this call that is not in the series, as one under other questions.
    #[must_use]
    pub fn denied_at(mut self, time: Option<Millis>) -> Self {
        self.denied_at = time;
        self
    }

    /// Finds the last ask, with about twice the logarithm of their number of reads.
    ///
    /// # Errors
    /// [`LedgerError`] where an ask cannot be read.
    pub async fn last(&self) -> Result<LastAsk, LedgerError> {
        let mut low = self.known;
        let mut step = 1;
        while self.exists(low.saturating_add(step)).await? {
            low = low.saturating_add(step);
            step = step.saturating_mul(2);
        }
        while step > 1 {
            step /= 2;
            if self.exists(low.saturating_add(step)).await? {
                low = low.saturating_add(step);
            }
        }
        let record = if low == 0 { None } else { self.get(low).await? };
        let is_decided = record.as_ref().filter(|it| it.state == AskState::Decided);
        let is_used = match is_decided.filter(|_| self.has_runs) {
            Some(record) => {
                let run = self.ledger.load_run(record.ask.run()).await?;
                run.is_some_and(|run| run.over)
            }
            None => false,
        };
        Ok(LastAsk { number: low, record, is_used })
    }

    /// Asks about the next call, unless a limit or a grant answers it. `ask` has the number after the last one, and
    /// `note` is what a person is told of the calls before ([`note`](Self::note)), as a question of the door.
    ///
    /// No grant answers a call while the end of an equal one is unknown: a person has to know that it may have run.
    ///
    /// Parking is idempotent: two processes that ask about equal calls at the same moment get the same ask. While the last
    /// ask is open, the result is that ask, whatever the caller does: no other one is parked, and no grant answers.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was parked.
    pub async fn next(
        &self,
        last: &LastAsk,
        ask: Ask,
        note: Option<Question>,
    ) -> Result<NextAsk, LedgerError> {
        if let Some(open) = last.holds_up() {
            return Ok(NextAsk::Open(Box::new(open.clone())));
        }
        if let Some(granted) = self.granted(last, &ask).await? {
            return Ok(NextAsk::Granted(Box::new(granted)));
        }
        let questions: Vec<_> = ask.questions().iter().cloned().chain(note).collect();
        let before = self.before(last).await?;
        if let Some(text) = self.refusal(&before) {
            return Ok(NextAsk::Denied(text));
        }
        let told = before.told(self.denied_at);
        let ask = told.into_iter().fold(ask.with_questions(questions), Ask::with_denied_before);
        let (id, behind) = (ask.id().to_owned(), self.predecessor(last));
        Ok(match self.ledger.park_within_behind(ask, self.max_pending, behind).await? {
            Some(record) if record.ask.id() != id => NextAsk::Open(Box::new(record)),
            Some(record) => NextAsk::Parked(Box::new(record)),
            None => NextAsk::Denied(format!(
                "Denied without asking: {} calls of this requester are pending already. Nothing has run. Call again when \
                 some of them are answered.",
                self.max_pending
            )),
        })
    }

    /// The answer of a grant. Where the last answer was a no, only a grant that was made after it for exactly such calls
    /// gives one (rule G2): the person who makes it has changed the answer, and nothing else has.
    ///
    /// # Errors
    /// [`LedgerError`]; no use of a grant was taken.
    pub async fn granted(
        &self,
        last: &LastAsk,
        ask: &Ask,
    ) -> Result<Option<AskRecord>, LedgerError> {
        if last.holds_up().is_some() {
            return Ok(None);
        }
        let mut earlier = self.earlier(last);
        let answered = earlier.next_answered().await?;
        let may_be_denied = answered.is_none() && earlier.is_cut();
        if may_be_denied || self.sees_ends && answered.as_ref().is_some_and(may_run) {
            return Ok(None);
        }
        let denied = answered.as_ref().filter(|it| it.is_denied());
        let denied_at = denied.and_then(|it| it.decision.as_ref()).map(|it| it.at);
        let denied_at = denied_at.max(self.denied_at);
        let since = Since { denied_at, behind: self.predecessor(last) };
        granting::answer_since(self.ledger, ask, grant::agent_of(ask), &since).await
    }

    /// The last ask, for the transaction that parks the next one.
    fn predecessor(&self, last: &LastAsk) -> Option<Predecessor> {
        let ask = (last.number > 0).then(|| (self.number)(last.number))?;
        Some(Predecessor::new(&ask, self.has_runs))
    }

    /// The reason why no person is asked about the next call, as a text for the model, by what happened to the ones
    /// before.
    ///
    /// # Errors
    /// [`LedgerError`] where an ask cannot be read.
    pub async fn refused(&self, last: &LastAsk) -> Result<Option<String>, LedgerError> {
        Ok(self.refusal(&self.before(last).await?))
    }

    fn refusal(&self, before: &Before) -> Option<String> {
        if before.denials >= self.max_denials {
            return Some(format!(
                "Denied without asking again: a person has denied this call {} times. The last time: {}",
                before.denials, before.words
            ));
        }
        (self.sees_ends && before.unknown >= self.max_unknown).then(|| {
            format!(
                "Denied without asking again: an equal call was started {} times, and no end was seen, so it may have run \
                 as often. Find out what it has done before you go on.",
                before.unknown
            )
        })
    }

    /// The ends of equal calls that a person should know of before the next one is approved: how often one may have
    /// run, or that one has just run. `None` where there is nothing to say. A no in between takes nothing of it away.
    ///
    /// # Errors
    /// [`LedgerError`] where an ask cannot be read.
    pub async fn note(&self, last: &LastAsk) -> Result<Option<String>, LedgerError> {
        let (mut earlier, mut started, mut times) = (self.earlier(last), None, 0_u32);
        while let Some(record) = earlier.next().await? {
            if may_run(&record) {
                times = times.saturating_add(1);
                started.get_or_insert(record);
            } else if record.state == AskState::Executed || has_run_unapproved(&record) {
                started.get_or_insert(record);
                break;
            }
        }
        let Some(record) = started else {
            let cut = format!(
                "Of the last {LOOKED_BACK} equal calls that were asked about none has run. An earlier one may have."
            );
            return Ok(earlier.is_cut().then_some(cut));
        };
        let id = record.ask.id();
        Ok(match record.state {
            AskState::Claimed => Some(format!(
                "An equal call was started (ask {id}) and has not ended: it runs, or may have run."
            )),
            AskState::Unknown => {
                let ends = match times {
                    0 | 1 => "and its end was not seen: it may have run".to_owned(),
                    times => {
                        format!("{times} times, and no end was seen: it may have run as often")
                    }
                };
                Some(format!("An equal call was started before (ask {id}), {ends}."))
            }
            _ => {
                let age = self.ledger.now().await?.saturating_sub(record.changed_at);
                let ago = match age / 60_000 {
                    0 => "less than a minute ago".to_owned(),
                    1 => "a minute ago".to_owned(),
                    minutes => format!("{minutes} minutes ago"),
                };
                let how = match has_run_unapproved(&record) {
                    true => ", although no one had approved it",
                    false => "",
                };
                (age < JUST_RAN).then(|| format!("An equal call ran {ago} (ask {id}){how}."))
            }
        })
    }

    /// The denials and the unknown ends at the end of the series, each up to its limit.
    async fn before(&self, last: &LastAsk) -> Result<Before, LedgerError> {
        let (mut before, mut now, mut earlier) = (Before::default(), None, self.earlier(last));
        let most = self.max_denials.max(self.max_unknown);
        while before.denials.max(before.unknown) < most
            && let Some(record) = earlier.next().await?
        {
            if may_run(&record) && before.denials == 0 {
                before.unknown = before.unknown.saturating_add(1);
                continue;
            }
            // A policy's no is none of a person's, and no yes either; nor is a run that no one had approved.
            let is_answered = record.decision.is_some();
            if !is_answered || record.is_denied() && !record.is_denied_by_person() {
                continue;
            }
            let by_person = record.is_denied_by_person() && before.unknown == 0;
            let Some(decision) = record.decision.as_ref().filter(|_| by_person) else { break };
            let Answer::Deny { message } = &decision.answer else { break };
            if let Some(window) = self.denied_within {
                let now = match now {
                    Some(now) => now,
                    None => *now.insert(self.ledger.now().await?),
                };
                if now.saturating_sub(decision.at) > window {
                    break;
                }
            }
            if before.denials == 0 {
                before.words.clone_from(message);
                before.denied_at = Some(decision.at);
            }
            before.denials = before.denials.saturating_add(1);
        }
        Ok(before)
    }

    /// The asks that someone has answered, or whose call has run, newest first.
    fn earlier<'s>(&'s self, last: &'s LastAsk) -> EarlierAsks<'s> {
        EarlierAsks { series: self, last, number: last.number, left: LOOKED_BACK }
    }

    async fn exists(&self, n: u64) -> Result<bool, LedgerError> {
        Ok(self.get(n).await?.is_some()
            || (self.has_runs && self.ledger.load_run((self.number)(n).run()).await?.is_some()))
    }

    async fn get(&self, n: u64) -> Result<Option<AskRecord>, LedgerError> {
        self.ledger.get((self.number)(n).id()).await
    }
}

/// The asks of a series that say something, from the last one back.
struct EarlierAsks<'s> {
    series: &'s AskSeries<'s>,
    last: &'s LastAsk,
    number: u64,
    left: u32,
}

impl EarlierAsks<'_> {
    /// The next one. Asks that have expired or were cancelled without an answer are passed over: no one has said anything
    /// by them, and what was said before still counts.
    async fn next(&mut self) -> Result<Option<AskRecord>, LedgerError> {
        while self.number > 0 && self.left > 0 {
            let record = match (self.number == self.last.number, &self.last.record) {
                (true, Some(record)) => Some(record.clone()),
                _ => self.series.get(self.number).await?,
            };
            // Its run was dropped, and those before it with it.
            let Some(record) = record else { return Ok(None) };
            (self.number, self.left) = (self.number.saturating_sub(1), self.left.saturating_sub(1));
            if record.decision.is_some() || has_run_unapproved(&record) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The next one that was answered.
    async fn next_answered(&mut self) -> Result<Option<AskRecord>, LedgerError> {
        while let Some(record) = self.next().await? {
            if record.decision.is_some() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns `true` if there are earlier ones that are not looked at.
    fn is_cut(&self) -> bool {
        self.left == 0 && self.number > 0
    }
}

/// A claimed call runs now, or its worker has died.
fn may_run(record: &AskRecord) -> bool {
    matches!(record.state, AskState::Unknown | AskState::Claimed)
}

fn has_run_unapproved(record: &AskRecord) -> bool {
    record.ran_unapproved().is_some()
}
