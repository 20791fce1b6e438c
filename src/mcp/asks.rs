//! The asks of served calls, keyed by principal and call, so that an equal call finds the decision about the one before
//! it (rules M2, M3).
//!
//! A client of MCP has no memory of a call: after a time-out it sends an equal request, which is another call to the
//! protocol, and the same wish to a person. So an ask is found by what it is about. Equal requests of one person share
//! a *key*; each ask of a key is a *generation* in a run of its own, `mcp-<key>-<generation>`:
//!
//! ```text
//! generation 0: asked, approved, claimed, executed, delivered   (used)
//! generation 1: asked, denied, told once                        (used)
//! generation 2: pending                                         <- an equal call joins this one
//! ```
//!
//! A generation is used when its run is ended, which happens once for any number of requests ([`Asks::deliver`]): so an
//! approval runs one call, an outcome that could not be delivered is told to one equal call, and a denial is told once
//! before a person may be asked again.
//!
//! What the key covers is who (principal, or the connection where there is none), where (server, project), the tool
//! with the digest of its definition, and the arguments in canonical form. A tool whose definition has changed has
//! other keys, so an approval of before does not run what it means now.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::launch::digest;
use super::responses::Responses;
use super::site::lock;
use crate::args::Args;
use crate::call::RunContext;
use crate::decision::Question;
use crate::deferred::Answer;
use crate::error::BoxError;
use crate::ledger::{
    Acquired, Ask, AskState, Cancelled, Claimed, Ledger, LedgerError, Millis, Record,
};

/// How long an approval that nothing has used stays valid.
///
/// Long enough for a person who approves while the client is away, and short enough that an approval is not a key left
/// in a door.
const UNUSED: Duration = Duration::from_secs(15 * 60);
/// How long an outcome that could not be delivered answers an equal call.
const UNDELIVERED: Millis = 10 * 60 * 1000;
/// How long the process that has the outcome of a call may take to deliver it.
const WRITING: Millis = 2_000;
/// The lease of a claim; it is renewed while the call runs.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// The number of denials in a row, within a day, after which an equal call is denied without asking.
///
/// A model that repeats a denied call wears a person down until the answer is yes (rule D11).
const MAX_DENIALS: u32 = 3;
const DAY: Millis = 24 * 60 * 60 * 1000;
/// What the model is told when the ask that a call waits for, or was to join, has ended without a decision.
pub(super) const OVER: &str =
    "Not run: the ask for this call has ended, or an equal call has used its approval. Call again.";
/// The layer of questions that come from the history of a call.
pub(super) const HISTORY: &str = "countersign mcp";
/// The path of the call in its run.
const PATH: &str = "root/call";
/// How often one request may lose a decision to another request.
///
/// Each attempt means that another request has used a decision meanwhile, so progress was made somewhere; the bound is
/// for a bug.
const ATTEMPTS: usize = 32;

/// The key of a call that may need none.
pub(super) type LazyKey = Arc<LazyLock<AskKey, Box<dyn FnOnce() -> AskKey + Send>>>;

/// The key of a call: principal, server, project, tool and arguments.
#[derive(Clone, Debug)]
pub(super) struct AskKey {
    pub(super) id: String,
    pub(super) principal: String,
    server: String,
    pub(super) tool: String,
    /// Tells apart the tools of servers and, without a principal, of connections, for grants.
    pub(super) identity: String,
}

impl AskKey {
    /// `scope` tells apart the servers, projects and, without a principal, the connections.
    pub(super) fn new(
        principal: &str,
        scope: &Value,
        (server, tool): (&str, &str),
        identity: &str,
        args: &Args,
    ) -> Self {
        let scope = digest(&json!([principal, scope, identity]));
        // The fingerprint of an ask has the canonical form of the arguments (rule L0).
        let fingerprint =
            Ask::new("mcp", scope.as_str(), tool).with_args(args.clone()).fingerprint();
        let id = fingerprint.chars().take(32).collect();
        let [principal, server, tool] = [principal, server, tool].map(str::to_owned);
        Self { id, principal, server, tool, identity: scope }
    }

    /// A key that is made when it is needed first: most calls are not asked about.
    pub(super) fn lazy(make: impl FnOnce() -> Self + Send + 'static) -> LazyKey {
        Arc::new(LazyLock::new(Box::new(make)))
    }

    fn run(&self, generation: u32) -> String {
        format!("mcp-{}-{generation}", self.id)
    }

    /// The ask shows the tool as rules name it, so that a person sees which server a call goes to.
    fn ask(&self, generation: u32) -> Ask {
        let tool = format!("mcp:{}/{}", self.server, self.tool);
        Ask::new(self.run(generation), PATH, tool).with_identity(&*self.identity)
    }
}

/// The state of a call that needs an approval, by the ledger.
pub(super) enum AskStanding {
    /// No decision yet.
    Pending(Box<Record>),
    /// Approved, and claimed by this request: it runs now, once.
    Claimed { ask: String, token: u64, args: Args },
    /// Denied with this text.
    Denied(String),
    /// An equal call has run, and its client did not get the outcome.
    Delivered(Value),
    /// Nothing was parked, as no later call of the client would find the decision.
    NoWayBack,
}

/// When a request may park an ask.
pub(super) struct MayPark<'a> {
    /// No layer has counted the request, as it repeats one whose ask was open: it parks no ask of its own.
    pub(super) joins: bool,
    /// Whether the client can come back for the decision about this ask.
    pub(super) is_found: &'a (dyn Fn(&Ask) -> bool + Sync),
}

/// Changes an ask before it is parked.
pub(super) type AskPolicy = dyn Fn(&RunContext, Ask) -> Ask + Send + Sync;

/// The asks of one server.
pub(super) struct Asks {
    pub(super) ledger: Ledger,
    worker: String,
    policy: Arc<AskPolicy>,
    /// The latest known generation of each key, to find it with one read.
    hints: Mutex<HashMap<String, u32>>,
    pub(super) responses: Responses,
}

impl Asks {
    pub(super) fn new(ledger: Ledger, policy: Arc<AskPolicy>) -> Self {
        let worker = format!("mcp-{}", uuid::Uuid::now_v7());
        // The session of grants is this server, until it ends.
        let ledger = match ledger.configured_session() {
            Some(_) => ledger,
            None => ledger.session(worker.as_str()),
        };
        let (hints, responses) = (Mutex::default(), Responses::default());
        Self { ledger, worker, policy, hints, responses }
    }

    /// Finds the state of a call, and parks an ask if there is none that the call can join. A claim is taken here,
    /// before anything runs, so that one of any number of equal calls gets it.
    ///
    /// Reads the latest generation, takes what it offers, and goes to the next one where it offers nothing. Parking is
    /// idempotent, so two requests that park one generation at the same time both find the same ask. The claim is the
    /// one step of which only one request can be the winner.
    pub(super) async fn standing(
        &self,
        cx: &RunContext,
        key: &AskKey,
        (args, questions): (&Args, &[Question]),
        parking: &MayPark<'_>,
    ) -> Result<AskStanding, BoxError> {
        let mut before = None;
        let mut generation = self.latest(key).await?;
        for _ in 0..ATTEMPTS {
            let id = key.ask(generation).id().to_owned();
            let Some(record) = self.ledger.get(&id).await? else {
                if self.is_used(key, generation).await? {
                    generation += 1;
                    continue;
                }
                if parking.joins {
                    return Ok(AskStanding::Denied(OVER.to_owned()));
                }
                if let Some(denied) = self.denied_often(key, generation).await? {
                    return Ok(AskStanding::Denied(denied));
                }
                let ask = self.ask(cx, key, generation, (args, questions), before.take())?;
                match self.park(key, generation, ask, parking).await? {
                    true => continue,
                    false => return Ok(AskStanding::NoWayBack),
                }
            };
            match self.take(record, questions).await? {
                Ok(standing) => return Ok(standing),
                Err(why) => before = why,
            }
            generation += 1;
        }
        Err("too many equal calls are made at once".into())
    }

    /// Uses the ask of this generation, or says why there has to be another one.
    ///
    /// An open ask that does not show all questions of now is cancelled: a layer was added, or a rule changed, and an
    /// approval of the old questions would not answer the new ones (rule A2).
    async fn take(
        &self,
        record: Record,
        questions: &[Question],
    ) -> Result<Result<AskStanding, Option<String>>, BoxError> {
        let id = record.ask.id().to_owned();
        let open = matches!(record.state, AskState::Pending | AskState::Decided);
        let shown = record.ask.questions();
        let covers = questions.iter().all(|it| shown.iter().any(|shown| shown.id() == it.id()));
        if open && !covers {
            let cancelled =
                self.ledger.cancel(&id, "countersign: other questions are asked now").await?;
            if !matches!(cancelled, Cancelled::Cancelled { .. }) {
                tracing::debug!(target: "countersign::mcp", ask = id, "an ask with other questions has a decision");
            }
            return Ok(Err(None));
        }
        Ok(match self.ledger.claim(&id, &self.worker, LEASE).await? {
            Claimed::NotDecided => Ok(AskStanding::Pending(Box::new(record))),
            Claimed::Claimed { token } => {
                let claimed = self.ledger.get(&id).await?.unwrap_or(record);
                Ok(AskStanding::Claimed { ask: id, token, args: claimed.args_to_run().clone() })
            }
            Claimed::Denied { state: AskState::Decided }
                if self.deliver(record.ask.run()).await? =>
            {
                Ok(AskStanding::Denied(denial(&record)))
            }
            Claimed::Settled { outcome } => match self.redeliver(&record).await? {
                true => Ok(AskStanding::Delivered(outcome)),
                false => Err(None),
            },
            Claimed::Unknown => Err(Some(format!(
                "An equal call was started before (ask {id}), and its end was not seen: it may have run."
            ))),
            // It runs, or its process was killed and the lease of the claim has not ended yet.
            Claimed::Held { .. } => Err(Some(format!(
                "An equal call was started (ask {id}) and has not ended: it runs, or may have run."
            ))),
            _ => Err(None),
        })
    }

    fn ask(
        &self,
        cx: &RunContext,
        key: &AskKey,
        generation: u32,
        (args, questions): (&Args, &[Question]),
        before: Option<String>,
    ) -> Result<Ask, BoxError> {
        let mut questions = questions.to_vec();
        if let Some(reason) = before {
            // Only the library makes questions; its stored form is public.
            questions.push(serde_json::from_value(json!({
                "layer": HISTORY, "key": format!("before {generation}"), "reason": reason,
            }))?);
        }
        let ask = key
            .ask(generation)
            .with_args(args.clone())
            .with_questions(questions)
            .with_principal(key.principal.as_str())
            .with_valid_for(UNUSED);
        Ok((self.policy)(cx, ask))
    }

    /// Parks an ask, unless a grant answers it. `false` where its client could not come back for the decision: then
    /// nothing is parked, as a person would decide in vain.
    async fn park(
        &self,
        key: &AskKey,
        generation: u32,
        ask: Ask,
        parking: &MayPark<'_>,
    ) -> Result<bool, BoxError> {
        // A no to the last equal call is not answered by an earlier yes (rule G2).
        let last = match generation.checked_sub(1) {
            Some(last) => self.ledger.get(key.ask(last).id()).await?,
            None => None,
        };
        let granted = match last.is_some_and(|last| last.is_denied()) {
            true => Ok(None),
            false => self.ledger.answer_by_grant(&ask).await,
        };
        let parked = match granted {
            Ok(Some(_)) => Ok(()),
            Ok(None) if !(parking.is_found)(&ask) => return Ok(false),
            Ok(None) => self.ledger.park(ask).await.map(drop),
            Err(error) => Err(error),
        };
        match parked {
            // The run was dropped from the ledger: the next generation is free.
            Ok(()) | Err(LedgerError::Unkeepable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        lock(&self.hints).insert(key.id.clone(), generation);
        Ok(true)
    }

    /// The latest generation with an ask, or 0. Generations have no gaps, so that it is found in few reads.
    ///
    /// The steps double and are then halved, so a key with a thousand generations costs about twenty reads when a
    /// process starts, and one read afterwards, from the number that is remembered. The memory is only a hint: a number
    /// that is too low is corrected by the same steps, and it is never too high.
    async fn latest(&self, key: &AskKey) -> Result<u32, BoxError> {
        let hint = lock(&self.hints).get(&key.id).copied();
        let mut low = hint.unwrap_or(0);
        let mut step = 1;
        while self.exists(key, low.saturating_add(step)).await? {
            low = low.saturating_add(step);
            step = step.saturating_mul(2);
        }
        while step > 1 {
            step /= 2;
            if self.exists(key, low.saturating_add(step)).await? {
                low = low.saturating_add(step);
            }
        }
        lock(&self.hints).insert(key.id.clone(), low);
        Ok(low)
    }

    /// Whether an equal call can join an ask: one that is pending, or whose answer was not used.
    pub(super) async fn is_open(&self, key: &AskKey) -> Result<bool, BoxError> {
        let latest = self.ledger.get(key.ask(self.latest(key).await?).id()).await?;
        Ok(latest.is_some_and(|it| matches!(it.state, AskState::Pending | AskState::Decided)))
    }

    async fn exists(&self, key: &AskKey, generation: u32) -> Result<bool, BoxError> {
        let ask = key.ask(generation);
        Ok(self.ledger.get(ask.id()).await?.is_some() || self.is_used(key, generation).await?)
    }

    /// Whether the run of a generation is over, also when its asks were dropped.
    async fn is_used(&self, key: &AskKey, generation: u32) -> Result<bool, BoxError> {
        Ok(self.ledger.load_run(&key.run(generation)).await?.is_some())
    }

    /// Whether this request gets the outcome of an earlier one, whose client did not get it, and no other request does.
    pub(super) async fn redeliver(&self, record: &Record) -> Result<bool, BoxError> {
        let age = self.ledger.now().await?.saturating_sub(record.changed_at);
        let is_delivered = self.ledger.load_run(record.ask.run()).await?.is_some();
        if is_delivered || age >= UNDELIVERED || self.responses.writes(record.ask.id()) {
            return Ok(false);
        }
        // Another process may be writing it at this moment, and records so.
        let rest = u64::try_from(WRITING.saturating_sub(age)).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(rest)).await;
        self.deliver(record.ask.run()).await
    }

    /// Records that the outcome of the ask of this run is delivered. Of any number of requests, one gets `true`.
    async fn deliver(&self, run: &str) -> Result<bool, BoxError> {
        self.ledger.save_run(run, Value::Null, None).await?;
        match self.ledger.acquire_run_as(run, &self.worker, LEASE).await? {
            Acquired::Lease(lease) => {
                lease.end(json!("delivered"), &[]).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Records the delivery of the outcome of this ask.
    pub(super) async fn delivered(&self, ask: &str) -> Result<(), BoxError> {
        if let Some(record) = self.ledger.get(ask).await? {
            self.deliver(record.ask.run()).await?;
        }
        Ok(())
    }

    /// The denial of a call that a person has denied several times in a row (rule D11).
    ///
    /// Counts backwards from the next generation, and ends at the first that is not a person's denial within a day, so
    /// one approval between them starts the count anew.
    async fn denied_often(&self, key: &AskKey, next: u32) -> Result<Option<String>, BoxError> {
        let (mut count, mut words, mut now) = (0, String::new(), None);
        for generation in (0..next).rev().take(MAX_DENIALS as usize) {
            let Some(record) = self.ledger.get(key.ask(generation).id()).await? else { break };
            let Some(decision) = &record.decision else { break };
            let Answer::Deny { message } = &decision.answer else { break };
            if !record.is_denied_by_person() {
                break;
            }
            let time = match now {
                Some(time) => time,
                None => *now.insert(self.ledger.now().await?),
            };
            if time.saturating_sub(decision.at) > DAY {
                break;
            }
            if count == 0 {
                words.clone_from(message);
            }
            count += 1;
        }
        let text = format!(
            "Denied without asking again: this call was denied {count} times. The last time: {words}"
        );
        Ok((count >= MAX_DENIALS).then_some(text))
    }

    /// Whether an ask was cancelled: its call may not be asked about any more, or otherwise.
    pub(super) async fn is_cancelled(&self, ask: Option<&str>) -> Result<bool, BoxError> {
        let Some(ask) = ask else { return Ok(false) };
        let record = self.ledger.get(ask).await?;
        Ok(record.is_some_and(|record| record.state == AskState::Cancelled))
    }

    /// Waits until the ask may have changed, or the time is over.
    pub(super) async fn wait_for_change(&self, run: &str, place: i64) -> Result<i64, BoxError> {
        Ok(self.ledger.wait_for_change(run, place).await?)
    }

    /// Settles a claim with the outcome of the call; `None` means that its end was not seen.
    ///
    /// A call whose end was not seen keeps its claim and gives up the lease. The next look at the ask then finds it
    /// unknown, and no process runs it again (rule L2).
    pub(super) async fn settle(&self, ask: &str, token: u64, end: End) -> Result<(), BoxError> {
        match end {
            End::Outcome(outcome) => _ = self.ledger.settle(ask, token, outcome).await?,
            End::NotRun => _ = self.ledger.release(ask, token).await?,
            // The lease ends now, so that the next claim finds the outcome unknown.
            End::Unknown => _ = self.ledger.renew(ask, token, Duration::ZERO).await?,
        }
        Ok(())
    }
}

/// The outcome of a claimed call.
pub(super) enum End {
    Outcome(Value),
    NotRun,
    Unknown,
}

fn denial(record: &Record) -> String {
    let decision = record.decision.as_ref();
    match decision.map(|decision| (&decision.answer, decision.by_line())) {
        Some((Answer::Deny { message }, by)) if !message.is_empty() => {
            format!("Denied by {by}: {message}")
        }
        Some((_, by)) => format!("Denied by {by}."),
        None => "Denied.".to_owned(),
    }
}

/// Holds a claim: renews its lease until it is dropped.
///
/// Renewed at a third of the lease, so that two renewals may fail before the claim is taken for abandoned.
pub(super) struct Renewing(tokio::task::JoinHandle<()>);

impl Renewing {
    pub(super) fn start(ledger: Ledger, ask: String, token: u64) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(LEASE / 3).await;
                if let Err(error) = ledger.renew(&ask, token, LEASE).await {
                    tracing::warn!(target: "countersign::mcp", ask, %error, "a claim could not be renewed");
                }
            }
        }))
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
