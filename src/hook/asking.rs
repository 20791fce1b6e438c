//! An ASK of a hook: its call is parked, decided by a person, and its approval spent once.
//!
//! A hook is a new process for each call, so all that it knows of earlier calls is in the ledger. The life of one ask:
//!
//! | what happens | the ask | the call |
//! |---|---|---|
//! | the first call | parked, number 1 | waits for as long as the client waits |
//! | no one answers in time | stays pending | denied: call again when it is approved |
//! | an equal call comes | joined | waits for the same answer |
//! | approved | claimed, once | runs |
//! | denied | closed, after the denial was told | denied |
//! | the client did not wait | [closed](super::unapproved), when the report of the call shows it | ran |
//! | an equal call after that | a new ask, number 2 | is asked about anew |
//!
//! A late answer thereby is of use (the model calls again and finds it) and an approval is of use once.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::key::{self, CallKey, HOOK};
use super::stack::{CallStack, ID, StackRuling};
use crate::args::Args;
use crate::decision::Question;
use crate::deferred::Answer;
use crate::error::with_causes;
use crate::ledger::{Ask, AskState, Claimed, Ledger, LedgerError, Record};
use crate::turn::SuspendedTurn;

/// How long a claim lasts without an event that the call has ended. An hour, as nothing renews it; the client's event
/// may come later, and then still counts.
///
/// The hook process is gone when the tool runs, so no one can renew the claim.
const LEASE: Duration = Duration::from_secs(3600);

/// How many open asks a requester may have; more calls are denied without asking (rule D11).
const MAX_PENDING: u32 = 1000;

/// How often a person denies a call before it is denied without asking (rule D11).
///
/// Counted over equal calls only: a changed argument is another question.
const MAX_DENIALS: u64 = 3;

/// How often the layers may ask again about an approved call, for example when an edit raises another question.
const MAX_ROUNDS: usize = 4;

/// Payloads up to this size are stored with the ask; of longer ones only the size.
const MAX_STORED: usize = 64 << 10;

/// One call that is asked about.
pub(super) struct Asking<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) stack: CallStack<'a>,
    pub(super) principal: Option<&'a str>,
    pub(super) until: Instant,
    /// Whether no layer has counted the call, so that it can only use an ask that is open.
    pub(super) uncounted: bool,
}

/// How asking has ended, unless the call is denied.
pub(super) enum AskingEnd {
    /// The call may run, with these arguments in the client's names if they have changed.
    Run(Option<Map<String, Value>>),
    /// No open ask is for this call, or another call has used it: the layers have to decide again. The run is the one
    /// that was counted for the ask that was used.
    Again { used: Option<String> },
}

/// The state of an ask, as far as it matters to the call that waits.
enum AskResult {
    /// The ask is approved, and the approval is not spent yet.
    Approved(Box<Record>),
    /// The call is denied with this text for the model.
    Denied(String),
    /// The ask is over without an answer for this call: the next equal call is asked about.
    Over,
}

impl Asking<'_> {
    /// Asks until the call may run. The error is the reason of a denial.
    ///
    /// What is claimed is what the layers have let through *after* the approval, with the arguments that the person may
    /// have edited. An edit that raises another question ends this approval and begins another ask.
    pub(super) async fn answered(&self, mut pending: SuspendedTurn) -> Result<AskingEnd, String> {
        let mut counted = !self.uncounted;
        for _ in 0..MAX_ROUNDS {
            let (key, ask) = self.key(&pending)?;
            let Some(record) = self.current(&key, &ask, counted).await? else {
                return Ok(AskingEnd::Again { used: None });
            };
            match self.answer(&record).await? {
                AskResult::Denied(message) => return Err(message),
                AskResult::Over => return Ok(AskingEnd::Again { used: counted_run(&record) }),
                AskResult::Approved(approved) => {
                    let decision = approved.decision.as_ref();
                    let edited = match decision.map(|it| &it.answer) {
                        Some(Answer::Approve { args: Some(args) }) => {
                            Some(self.edited(args, approved.ask.args(), &pending))
                        }
                        _ => None,
                    };
                    let by = decision.map(|it| it.by_line()).unwrap_or_default();
                    match self.stack.approved(pending, edited, &by).await? {
                        StackRuling::Allow(args) => {
                            return Ok(match self.spend(&approved, &args).await? {
                                Some(args) => AskingEnd::Run(args),
                                None => AskingEnd::Again { used: counted_run(&approved) },
                            });
                        }
                        // Another question is asked now, for example about edited arguments, so this approval is void.
                        StackRuling::Ask(again) => {
                            self.ledger.close(approved.ask.id()).await.map_err(store)?;
                            (pending, counted) = (*again, true);
                        }
                    }
                }
            }
        }
        Err("this call was asked about too often".to_owned())
    }

    /// The arguments that a person has edited, in the words of the call that runs with them.
    fn edited(&self, edited: &Args, asked: &Args, pending: &SuspendedTurn) -> Args {
        match pending.requests().get(ID) {
            Some(own) => self.stack.normal.in_own_words(edited, asked, own.args()),
            None => edited.clone(),
        }
    }

    /// The key of the call, and the ask without its number.
    fn key(&self, pending: &SuspendedTurn) -> Result<(CallKey, Ask), String> {
        let (call, normal) = (self.stack.call, self.stack.normal);
        let requests = pending.requests();
        let asked = requests.get(ID).ok_or("the question about this call is missing")?;
        if requests.is_blocked(ID) {
            return Err("this call is blocked: no person can approve it here".to_owned());
        }
        let questions = requests.questions(ID).to_vec();
        let key = CallKey::new(call, normal, asked.args(), &questions);
        let ask = Ask::new("", "", normal.shown())
            .with_args(asked.args().clone())
            .with_questions(questions.into_iter().chain(origin(&self.stack, asked.args())));
        Ok((key, ask))
    }

    /// The ask that counts now for equal calls: the last one, or the next, if the last one is over. `None` where the
    /// next one would be asked for a call that was not counted.
    async fn current(
        &self,
        key: &CallKey,
        ask: &Ask,
        counted: bool,
    ) -> Result<Option<Record>, String> {
        let (there, last) = last(self.ledger, key, ask.tool()).await.map_err(store)?;
        // A no to the last equal call is not answered by an earlier yes (rule G2).
        let was_denied = last.as_ref().is_some_and(Record::is_denied);
        if let Some(record) = last.filter(is_open) {
            return Ok(Some(record));
        }
        if !counted {
            return Ok(None);
        }
        self.refuse_repeats(key, ask, there).await?;
        self.refuse_floods().await?;
        let new = key
            .ask(there + 1, ask.tool())
            .with_args(ask.args().clone())
            .with_questions(ask.questions().iter().cloned());
        let new = self.principal.iter().fold(new, |new, name| new.with_principal(*name));
        if !was_denied
            && !self.was_denied_otherwise(key, ask).await?
            && let Some(granted) = self.ledger.answer_by_grant(&new).await.map_err(store)?
        {
            return Ok(Some(granted));
        }
        self.ledger.park(new).await.map(Some).map_err(store)
    }

    /// Whether the last answer of a person to this call in its session was a no, under whichever questions it was asked.
    async fn was_denied_otherwise(&self, key: &CallKey, ask: &Ask) -> Result<bool, String> {
        let asks = self.ledger.list_run(&key.run, MAX_PENDING).await.map_err(store)?;
        let compared = |ask: &Ask| self.stack.normal.compared(ask.args());
        let args = compared(ask);
        let mut answered = asks.records.iter().filter(|record| {
            let by_person = record.decision.as_ref().is_some_and(|it| it.grant.is_none());
            by_person && record.ask.tool() == ask.tool() && compared(&record.ask) == args
        });
        Ok(answered.next().is_some_and(Record::is_denied))
    }

    /// An error when the last few equal calls were each denied by a person.
    async fn refuse_repeats(&self, key: &CallKey, ask: &Ask, last: u64) -> Result<(), String> {
        if last < MAX_DENIALS {
            return Ok(());
        }
        let mut message = String::new();
        for n in (last - MAX_DENIALS + 1)..=last {
            let record = self.ledger.get(key.ask(n, ask.tool()).id()).await.map_err(store)?;
            let by_person = record.filter(Record::is_denied_by_person);
            let decision = by_person.and_then(|record| record.decision);
            let Some(Answer::Deny { message: said }) = decision.map(|it| it.answer) else {
                return Ok(());
            };
            message = said;
        }
        Err(format!(
            "a person has denied this call {MAX_DENIALS} times, so it is not asked about again: {message}"
        ))
    }

    /// An error when this requester has too many open asks.
    async fn refuse_floods(&self) -> Result<(), String> {
        let open = self.ledger.list(Some(AskState::Pending), MAX_PENDING).await.map_err(store)?;
        let own = open.records.iter().filter(|record| record.ask.principal() == self.principal);
        match own.count() < MAX_PENDING as usize {
            true => Ok(()),
            false => {
                Err(format!("{MAX_PENDING} calls are pending already: answer some of them first"))
            }
        }
    }

    /// Waits for an answer until the time is over.
    async fn answer(&self, record: &Record) -> Result<AskResult, String> {
        let (id, run) = (record.ask.id(), record.ask.run());
        let mut place = self.ledger.wait_for_change(run, -1).await.map_err(store)?;
        loop {
            let Some(record) = self.ledger.get(id).await.map_err(store)? else {
                return Err(format!("the ask {id} is no longer in the store"));
            };
            match (record.state, record.decision.as_ref().map(|it| &it.answer)) {
                (AskState::Pending, _) => {}
                (AskState::Decided, Some(Answer::Approve { .. })) => {
                    return Ok(AskResult::Approved(Box::new(record)));
                }
                (AskState::Decided, Some(Answer::Deny { message })) => {
                    let message = message.clone();
                    // The denial is delivered: the next equal call is asked about anew.
                    self.ledger.close(id).await.map_err(store)?;
                    return Ok(AskResult::Denied(message));
                }
                (AskState::Decided, Some(Answer::Result { value })) => {
                    let message = format!(
                        "the call was answered with a result instead of being run: {value}"
                    );
                    self.ledger.close(id).await.map_err(store)?;
                    return Ok(AskResult::Denied(message));
                }
                (AskState::Closed, _) if record.ran_unapproved().is_some() => {
                    let message = "the client ran this call, or an equal one, without its approval; nothing more runs \
                                   by this ask";
                    return Ok(AskResult::Denied(message.to_owned()));
                }
                _ => return Ok(AskResult::Over),
            }
            let left = self.until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.ledger.wait_for_change(run, place)).await {
                Ok(changed) => place = changed.map_err(store)?,
                Err(_) => return self.too_late(&record).await,
            }
        }
    }

    /// The time is over without an answer.
    ///
    /// Without a session the same text of a call may come from another conversation, so nothing is left behind that
    /// could let it run.
    async fn too_late(&self, record: &Record) -> Result<AskResult, String> {
        let (id, call) = (record.ask.id(), self.stack.call);
        let reasons: Vec<_> = record.ask.questions().iter().map(Question::reason).collect();
        let reasons = reasons.join("; ");
        if call.session.is_none() {
            // Later calls have nothing by which to find this ask, so a late answer would have no effect.
            self.ledger.cancel(id, HOOK).await.map_err(store)?;
            return Ok(AskResult::Denied(format!(
                "no person approved this call in time: {reasons}"
            )));
        }
        Ok(AskResult::Denied(format!(
            "this call waits for approval {id}; call again with the same arguments when a person has approved it ({reasons})"
        )))
    }

    /// Spends an approval: the claim is recorded before the client is answered. `None` when another call was first.
    ///
    /// The arguments are restored before the claim: a change that the client cannot take must not use the approval up.
    async fn spend(
        &self,
        approved: &Record,
        args: &Args,
    ) -> Result<Option<Option<Map<String, Value>>>, String> {
        let call = self.stack.call;
        let changed = self.stack.normal.restore(call, args)?;
        let worker = key::worker(call, changed.as_ref().unwrap_or(&call.args));
        match self.ledger.claim(approved.ask.id(), &worker, LEASE).await.map_err(store)? {
            Claimed::Claimed { .. } => Ok(Some(changed)),
            _ => Ok(None),
        }
    }
}

/// Where the call comes from, as a question of the hook itself, which carries the client's payload.
///
/// A question and not a part of the arguments, so that it is shown to the person and covered by the fingerprint,
/// and is not sent to the tool.
pub(super) fn origin(stack: &CallStack<'_>, args: &Args) -> Option<Question> {
    let call = stack.call;
    let for_people = stack.normal.for_people;
    let words = for_people.iter().find(|name| args.str(name).is_some());
    let words = words.map(|name| format!("; `{name}` is in the model's words, and not compared"));
    let words = words.unwrap_or_default();
    let directory = call.directory.display();
    let agent = call.agent.as_ref().map(|agent| format!(" (agent {agent})")).unwrap_or_default();
    let payload = match call.payload.len() {
        short if short <= MAX_STORED => json!(call.payload),
        long => json!(format!("{long} bytes")),
    };
    let about = json!({
        "client": call.client.name(), "session": call.session, "agent": call.agent, "call": call.id,
        "directory": call.directory, "payload": payload, "run": stack.run,
    });
    serde_json::from_value(json!({
        "layer": "hook",
        // A grant holds for calls of the same directory.
        "key": format!("origin {directory}"),
        "reason": format!("{}{agent} calls `{}` in {directory}{words}", call.client, call.tool.escape_debug()),
        "metadata": {"hook": about, "grantable": true, "for_people": for_people},
    }))
    .ok()
}

/// The last ask of equal calls, with its number; 0 where there is none.
///
/// As the asks of a key have no gaps, the last one is found with about twice the logarithm of their number of reads.
pub(super) async fn last(
    ledger: &Ledger,
    key: &CallKey,
    tool: &str,
) -> Result<(u64, Option<Record>), LedgerError> {
    let get = async |n: u64| ledger.get(key.ask(n, tool).id()).await;
    let mut last = None;
    // The asks of equal calls have the numbers 1 to n: find n by doubling, and then by halving.
    let (mut there, mut missing) = (0, 1);
    while let Some(record) = get(missing).await? {
        (there, last) = (missing, Some(record));
        missing *= 2;
    }
    while missing - there > 1 {
        let middle = there + (missing - there) / 2;
        match get(middle).await? {
            Some(record) => (there, last) = (middle, Some(record)),
            None => missing = middle,
        }
    }
    Ok((there, last))
}

/// Where the call of an ask comes from, as [`origin`] has recorded it.
pub(super) fn about(record: &Record) -> Option<&Value> {
    record.ask.questions().iter().find_map(|it| it.metadata().get("hook"))
}

/// The run whose call was counted for an ask.
fn counted_run(record: &Record) -> Option<String> {
    Some(about(record)?.get("run")?.as_str()?.to_owned())
}

/// Whether an ask is pending, or has an answer that was not delivered to any call.
pub(super) fn is_open(record: &Record) -> bool {
    matches!(record.state, AskState::Pending | AskState::Decided)
}

/// The reason of a denial when the store fails.
///
/// Fails closed: no store, no approval (rule D1).
#[expect(clippy::needless_pass_by_value, reason = "it is the function of `map_err`")]
fn store(error: LedgerError) -> String {
    format!(
        "this call needs an approval, and the store of approvals cannot be used: {}",
        with_causes(&error)
    )
}
