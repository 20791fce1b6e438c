//! An ASK of a hook: its call is parked, decided by a person, and its approval spent once (rule P3).
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
//! | approved with an edit, about which the rules ask | closed; the edited call has its own ask | [waits](super::edited) for that one |
//! | an equal call after that | a new ask, number 2 | is asked about anew |
//!
//! So a late answer is of use: the model calls again and finds it. And an approval is of use once.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::allowed::AllowedCalls;
use super::edited::{EditedFrom, comes_from, is_edited, note_of};
use super::in_client;
use super::key::{self, CallKey, HOOK};
use super::reasons::{is_of_previews, reasons};
use crate::config::{account, answering};
use crate::hook::judging::edits::EditedFiles;
use crate::hook::judging::stack::{CallStack, ID, StackRuling};
use crate::hook::judging::vocabulary::Normal;
use crate::hook::reply::HookReply;
use countersign::args::Args;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANT_PATTERNS;
use countersign::error::with_causes;
use countersign::handler::is_policy;
use countersign::ledger::{
    Ask, AskRecord, AskSeries, AskState, Claimed, Ledger, LedgerError, Millis, NextAsk,
};
use countersign::show;
use countersign::turn::SuspendedTurn;
use countersign_rules::JournaledAnswer;

/// The time for which a claim lasts without an event that the call has ended: an hour. The client's event may
/// come later, and then still counts.
///
/// The hook process is gone when the tool runs, so no one can renew the claim.
const LEASE: Duration = Duration::from_secs(3600);

/// The number of times the layers may ask again about an approved call, for example when an edit raises another
/// question.
const MAX_ROUNDS: usize = 4;

/// The denial of an approved command that would run where it was not judged. Its approval is void.
const MOVED: &str = "Not run: while it was asked about, another command may have left the shell in another directory. Call it \
                     again: it is asked about for that directory, too.";

/// Payloads up to this size are stored with the ask; of longer ones only the size.
const MAX_STORED: usize = 64 << 10;

/// One call that is asked about.
pub(crate) struct Asking<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) stack: CallStack<'a>,
    pub(crate) principal: Option<&'a str>,
    /// The address of the inbox, which the model may pass on.
    pub(crate) inbox: Option<&'a str>,
    pub(crate) until: Instant,
    /// `true` if no layer has counted the call, so that it can only use an ask that is open.
    pub(crate) uncounted: bool,
    /// The place for notes about the client's own questions, if the client is to ask.
    pub(crate) in_client: Option<&'a AllowedCalls>,
    /// The files whose edits are all that the client may ask about, if that is so.
    pub(crate) edits: Option<&'a EditedFiles>,
    /// Returns `true` while the call would run in the directories in which it was judged.
    pub(crate) is_where_judged: &'a (dyn Fn() -> bool + Send + Sync),
}

/// The end of asking, unless the call is denied.
pub(crate) enum AskingEnd {
    /// The call may run, with these arguments in the client's names if they have changed.
    Run(Option<Map<String, Value>>),
    /// The client asks.
    InClient(HookReply),
    /// No open ask is for this call, or another call has used it: the layers have to decide again. The run is the one
    /// that was counted for the ask that was used.
    Again { used: Option<String> },
}

/// The ask that counts now for a call.
enum CurrentAsk {
    There(Box<AskRecord>),
    /// The call as a person has edited it: its own ask is the one that counts.
    Edited(Box<SuspendedTurn>),
    /// The next one would be asked for a call that was not counted.
    Uncounted,
    /// The client asks in its place.
    InClient(HookReply),
}

/// The state of an ask, as far as it matters to the call that waits.
enum AskResult {
    /// The ask is approved, and the approval is not spent yet.
    Approved(Box<AskRecord>),
    /// The call is denied with this text for the model.
    Denied(String),
    /// The ask is over without an answer for this call: the next equal call is asked about.
    Over,
}

impl Asking<'_> {
    /// Asks until the call may run. The error is the reason of a denial.
    ///
    /// After the approval we let the layers decide again, with the arguments that the person may have edited. We claim
    /// what they let through *then*. An edit that raises another question ends this approval and begins another ask.
    pub(crate) async fn answered(&self, mut pending: SuspendedTurn) -> Result<AskingEnd, String> {
        let (mut counted, mut edited_from) = (!self.uncounted, None);
        for _ in 0..MAX_ROUNDS {
            let current = self.current(&pending, counted, edited_from.as_ref()).await;
            // Only now: a hook that is killed in between leaves the approval, by which the next call finds the edit.
            if let Some(EditedFrom { ask, .. }) = edited_from.take() {
                self.ledger.close(&ask).await.map_err(store)?;
            }
            let record = match current? {
                CurrentAsk::There(record) => record,
                CurrentAsk::Edited(edited) => {
                    pending = *edited;
                    continue;
                }
                CurrentAsk::Uncounted => return Ok(AskingEnd::Again { used: None }),
                CurrentAsk::InClient(reply) => return Ok(AskingEnd::InClient(reply)),
            };
            match self.answer(&record).await? {
                AskResult::Denied(message) => return Err(message),
                AskResult::Over => return Ok(AskingEnd::Again { used: counted_run(&record) }),
                AskResult::Approved(approved) => {
                    match self.ruled_as_approved(pending, &approved).await? {
                        StackRuling::Allow(_) if !(self.is_where_judged)() => {
                            self.ledger.close(approved.ask.id()).await.map_err(store)?;
                            return Err(MOVED.to_owned());
                        }
                        StackRuling::Allow(args) => {
                            return Ok(match self.spend(&approved, &args).await? {
                                Some(args) => AskingEnd::Run(args),
                                None => AskingEnd::Again { used: counted_run(&approved) },
                            });
                        }
                        // The layers have another question, for example about edited arguments, so this approval is
                        // void.
                        StackRuling::Ask(again) => {
                            edited_from = Some(EditedFrom::of(&approved));
                            (pending, counted) = (*again, true);
                        }
                    }
                }
            }
        }
        Err("this call was asked about too often".to_owned())
    }

    /// The decision of the layers about an approved call, with the arguments that a person may have edited.
    async fn ruled_as_approved(
        &self,
        pending: SuspendedTurn,
        approved: &AskRecord,
    ) -> Result<StackRuling, String> {
        let journaled = match approved.decision.as_ref() {
            // An edit was decided about when its approval was found, and is followed now.
            _ if approved.state == AskState::Closed => Some(JournaledAnswer::Recorded),
            Some(decision) if decision.grant.is_some() => Some(JournaledAnswer::ByGrant),
            _ => None,
        };
        let decision = approved.decision.as_ref();
        let edited = match decision.map(|it| &it.answer) {
            Some(Answer::Approve { args: Some(args) }) => {
                Some(self.edited(args, approved.ask.args(), &pending))
            }
            _ => None,
        };
        let by = decision.map(|it| it.by_line()).unwrap_or_default();
        self.stack.approved(pending, edited, (&by, journaled)).await
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
        let key = CallKey::new(call, normal, asked.args(), &questions, self.principal);
        let ask = Ask::new("", "", normal.shown())
            .with_args(asked.args().clone())
            .with_questions(with_origin(questions, &self.stack, asked.args()));
        Ok((key, ask))
    }

    /// The ask that counts now for equal calls: the last one, or the next, if the last one is over.
    async fn current(
        &self,
        pending: &SuspendedTurn,
        counted: bool,
        edited_from: Option<&EditedFrom>,
    ) -> Result<CurrentAsk, String> {
        let (key, ask) = &self.key(pending)?;
        let number = |n| key.ask(n, ask.tool());
        let series = AskSeries::new(self.ledger, &number).without_ends();
        let last = series.last().await.map_err(store)?;
        if let Some(open) = last.open() {
            return Ok(CurrentAsk::There(Box::new(open.clone())));
        }
        if let Some(last) = last.record()
            && let Some(edited) = self.edited_since(pending, last).await?
        {
            return Ok(CurrentAsk::Edited(Box::new(edited)));
        }
        if !counted {
            return Ok(CurrentAsk::Uncounted);
        }
        let told = series.note(&last).await.map_err(store)?;
        let history = note_of(last.number(), told, edited_from);
        let new = number(last.number().saturating_add(1))
            .with_args(ask.args().clone())
            .with_questions(ask.questions().iter().cloned());
        let new = self.principal.iter().fold(new, |new, name| new.with_principal(*name));
        let new = new.with_waits_for(self.until.saturating_duration_since(Instant::now()));
        let series = series.denied_at(self.denied_otherwise(key, ask).await?);
        if let Some(granted) = series.granted(&last, &new).await.map_err(store)? {
            return Ok(CurrentAsk::There(Box::new(granted)));
        }
        if let Some(text) = series.refused(&last).await.map_err(store)? {
            return Err(text);
        }
        if let Some(notes) = self.in_client
            // The client cannot be told to ask about other arguments than its own.
            && matches!(self.stack.normal.restore(self.stack.call, ask.args()), Ok(None))
            && in_client::may_ask(self.stack.call.client, ask.questions())
            && self.is_for_the_client(ask)
            && let Some(reply) =
                in_client::ask(notes, self.stack.call, ask.args(), ask.questions())
        {
            return Ok(CurrentAsk::InClient(reply));
        }
        match series.next(&last, new, history).await.map_err(store)? {
            NextAsk::Parked(record) | NextAsk::Granted(record) | NextAsk::Open(record) => {
                Ok(CurrentAsk::There(record))
            }
            NextAsk::Denied(text) => Err(text),
        }
    }

    /// The call in the form in which it is asked about since a person has edited it, if an ask of that form is open.
    async fn edited_since(
        &self,
        pending: &SuspendedTurn,
        last: &AskRecord,
    ) -> Result<Option<SuspendedTurn>, String> {
        let (mut pending, mut before) = (pending.clone(), last.clone());
        for _ in 0..MAX_ROUNDS {
            if before.state != AskState::Closed || !is_edited(&before) {
                return Ok(None);
            }
            // If the layers deny the edited call now, or have no question, the edit is void with its ask.
            let ruled = self.ruled_as_approved(pending, &before).await;
            let Ok(StackRuling::Ask(edited)) = ruled else { return Ok(None) };
            let (key, ask) = self.key(&edited)?;
            let number = |n| key.ask(n, ask.tool());
            let found = AskSeries::new(self.ledger, &number).last().await.map_err(store)?;
            let Some(found) = found.record().filter(|it| comes_from(it, &before)) else {
                return Ok(None);
            };
            if is_open(found) {
                return Ok(Some(*edited));
            }
            (pending, before) = (*edited, found.clone());
        }
        Ok(None)
    }

    /// Returns `true` if the client may ask about such a call at all. With `--ask edits` it may ask about edits
    /// alone: a rule of the user that asks, and the hook's own doubts, are for the inbox.
    fn is_for_the_client(&self, ask: &Ask) -> bool {
        let Normal { tool, server, .. } = self.stack.normal;
        let is_default = |question: &Question| {
            let is_rule = question.layer() == "rules" && question.key() == "default";
            let is_origin = question.layer() == "hook" && question.metadata().contains_key("hook");
            is_rule || is_origin || is_of_previews(question)
        };
        self.edits.is_none_or(|edits| {
            server.is_none()
                && ask.questions().iter().all(is_default)
                && edits.has(tool, ask.args())
        })
    }

    /// The time when a person denied this call in its session, if that was the last answer to it, under these
    /// questions or others. All asks of the session are looked at, as one that is left out may be the no.
    async fn denied_otherwise(&self, key: &CallKey, ask: &Ask) -> Result<Option<Millis>, String> {
        let asks = self.ledger.list_run(&key.run, u32::MAX).await.map_err(store)?;
        // One that cannot be read may be a no: a person is asked, and no grant answers.
        if !asks.refused.is_empty() {
            return Ok(Some(self.ledger.now().await.map_err(store)?));
        }
        let compared = |ask: &Ask| self.stack.normal.compared(ask.args());
        let args = compared(ask);
        let equal = asks
            .records
            .iter()
            .filter(|record| record.ask.tool() == ask.tool() && compared(&record.ask) == args);
        let answers = equal.filter_map(|record| {
            let by_person = record.decision.as_ref().filter(|it| it.grant.is_none())?;
            Some((by_person.at, record.is_denied()))
        });
        // Of two answers at the same moment the no counts.
        Ok(answers.max().filter(|(_, is_denied)| *is_denied).map(|(at, _)| at))
    }

    /// Waits for an answer until the time is over.
    async fn answer(&self, record: &AskRecord) -> Result<AskResult, String> {
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
                    self.record_denial(&record).await;
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

    /// Has the journal of the layers say that a person has denied the call, where it was asked about as the agent makes it.
    async fn record_denial(&self, record: &AskRecord) {
        let by = record.decision.iter().flat_map(|it| &it.by);
        let normal = self.stack.normal;
        if by.into_iter().any(|by| !is_policy(by))
            && normal.compared(record.ask.args()) == normal.compared(&normal.args)
        {
            self.stack.record_denial().await;
        }
    }

    /// The time is over without an answer.
    ///
    /// Without a session, the same text of a call may come from another conversation. So we leave nothing behind
    /// that could let it run.
    async fn too_late(&self, record: &AskRecord) -> Result<AskResult, String> {
        let (id, call) = (record.ask.id(), self.stack.call);
        let reasons = reasons(record.ask.questions());
        if call.session.is_none() {
            // Later calls have nothing by which to find this ask, so a late answer would have no effect.
            self.ledger.cancel(id, HOOK).await.map_err(store)?;
            return Ok(AskResult::Denied(format!(
                "no person approved this call in time: {reasons}"
            )));
        }
        let place = self.inbox.map(|url| format!(" at {url}#ask={id}")).unwrap_or_default();
        Ok(AskResult::Denied(format!(
            "this call waits for approval {id} ({reasons}). {} Go on with work that does not need it, and call again with the same \
             arguments when they have approved it",
            answering(&place)
        )))
    }

    /// Spends an approval: we record the claim before we answer the client. `None` when another call was first.
    ///
    /// We restore the arguments before the claim: a change that the client cannot take must not use the approval up.
    async fn spend(
        &self,
        approved: &AskRecord,
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

/// These questions, and where the call comes from.
pub(crate) fn with_origin(
    questions: Vec<Question>,
    stack: &CallStack<'_>,
    args: &Args,
) -> impl Iterator<Item = Question> {
    let origin = origin(stack, args, &questions);
    questions.into_iter().chain(origin)
}

/// The origin of the call, as a question of the hook itself, which carries the client's payload.
///
/// The origin is a question and not a part of the arguments. So the person sees it, the fingerprint covers it, and the tool
/// does not get it. A grant for a class of calls that the layers propose answers it as well: the class is about what is
/// called, and this question about where.
fn origin(stack: &CallStack<'_>, args: &Args, questions: &[Question]) -> Option<Question> {
    let call = stack.call;
    let for_people = stack.normal.for_people;
    let words = for_people.iter().find(|name| args.str(name).is_some());
    let words = words.map(|name| format!("; `{name}` is in the model's words, and not compared"));
    let words = words.unwrap_or_default();
    let directory = show::escape(&call.directory.display().to_string());
    let agent = call.agent.as_ref().map(|agent| format!(" (agent {})", show::escape(agent)));
    let agent = agent.unwrap_or_default();
    let payload = match call.payload.len() {
        short if short <= MAX_STORED => json!(call.payload),
        long => json!(format!("{long} bytes")),
    };
    let normal = stack.normal;
    let is_own = normal.is_known && normal.server.is_none();
    let home = stack.home.map(Path::to_path_buf).or_else(account::home);
    let caller = json!({
        "name": call.client.spec().title, "kind": is_own.then_some(&normal.tool),
        "directory": call.directory, "home": home.map(|home| home.to_string_lossy().into_owned()), "agent": call.agent,
    });
    let about = json!({
        "client": call.client.name(), "session": call.session, "agent": call.agent, "call": call.id,
        "directory": call.directory, "payload": payload, "run": stack.run,
    });
    let mut metadata = json!({
        "caller": caller, "hook": about, "grantable": true, "for_people": for_people,
        "on_record": ["hook.payload"],
    });
    let mut classes = questions.first().map(Question::grant_patterns).unwrap_or_default();
    for other in questions {
        let named = other.grant_patterns();
        classes.retain(|class| named.contains(class));
    }
    if let Some(metadata) = metadata.as_object_mut().filter(|_| !classes.is_empty()) {
        metadata.insert(GRANT_PATTERNS.to_owned(), json!(classes));
    }
    serde_json::from_value(json!({
        "layer": "hook",
        // A grant holds for calls of the same directory.
        "key": format!("origin {}", call.directory.display()),
        "reason": format!("{}{agent} calls `{}` in {directory}{words}", call.client, call.tool.escape_debug()),
        "metadata": metadata,
    }))
    .ok()
}

/// The number of the last ask of equal calls, 0 where there is none.
pub(crate) async fn last(ledger: &Ledger, key: &CallKey, tool: &str) -> Result<u64, LedgerError> {
    let number = |n| key.ask(n, tool);
    Ok(AskSeries::new(ledger, &number).last().await?.number())
}

/// The origin of the call of an ask, as [`origin`] has recorded it.
pub(crate) fn about(record: &AskRecord) -> Option<&Value> {
    record.ask.questions().iter().find_map(|it| it.metadata().get("hook"))
}

/// The run whose call was counted for an ask.
fn counted_run(record: &AskRecord) -> Option<String> {
    Some(about(record)?.get("run")?.as_str()?.to_owned())
}

/// Returns `true` if an ask is pending, or has an answer that was not delivered to any call.
pub(crate) fn is_open(record: &AskRecord) -> bool {
    matches!(record.state, AskState::Pending | AskState::Decided)
}

/// The reason of a denial when the store fails.
///
/// Fails closed: no store, no approval (rule D4).
#[expect(clippy::needless_pass_by_value, reason = "it is the function of `map_err`")]
fn store(error: LedgerError) -> String {
    format!(
        "this call needs an approval, and the store of approvals cannot be used: {}",
        with_causes(&error)
    )
}
