//! The asks of served calls, keyed by principal and call, so that an equal call finds the decision about the one before
//! it (rules M2, M3).
//!
//! A client of MCP has no memory of a call. After a time-out it sends an equal request, which is another call to the
//! protocol, and the same wish to a person. So we find an ask by what it is about. Equal requests of one person share
//! a *key*. Each ask of a key is a *generation* in a run of its own, `mcp-<key>-<generation>`:
//!
//! ```text
//! generation 0: asked, approved, claimed, executed, delivered   (used)
//! generation 1: asked, denied, told once                        (used)
//! generation 2: pending                                         <- an equal call joins this one
//! ```
//!
//! A generation is used when its run is ended, which happens once for any number of requests ([`Asks::deliver`]). So an
//! approval runs one call, an outcome that could not be delivered is told to one equal call, and a denial is told once
//! before a person may be asked again.
//!
//! The key covers who (principal, or the connection where there is none), where (server, project), the tool with
//! the digest of its definition, and the arguments in canonical form. If the definition of a tool changes, its
//! calls have other keys: an earlier approval does not run the changed tool.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::responses::Responses;
use crate::client::launch::digest;
use crate::downstream::lock;
use crate::form::HISTORY;
use countersign::args::Args;
use countersign::call::RunContext;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::error::BoxError;
use countersign::ledger::{
    Acquired, Ask, AskRecord, AskSeries, AskState, Cancelled, Claimed, LastAsk, Ledger,
    LedgerError, Millis, NextAsk,
};

/// The time for which an approval that nothing has used stays valid.
///
/// It is long enough for a person who approves while the client is away, and short enough that an approval is not a
/// key left in a door.
const UNUSED: Duration = Duration::from_secs(15 * 60);
/// The time for which an outcome that could not be delivered answers an equal call.
const UNDELIVERED: Millis = 10 * 60 * 1000;
/// The time that the process that has the outcome of a call may take to deliver it.
const WRITING: Millis = 2_000;
/// The lease of a claim; it is renewed while the call runs.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// For how long denials of equal calls count (rule D11): a client of MCP names no session.
const DENIED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
/// The text for the model when the ask that a call waits for, or was to join, has ended without a decision.
pub(crate) const OVER: &str =
    "Not run: the ask for this call has ended, or an equal call has used its approval. Call again.";
/// The path of the call in its run.
const PATH: &str = "root/call";
/// The number of times that one request may lose a decision to another request.
///
/// Each attempt means that another request has used a decision meanwhile, so some request has made progress. The bound
/// is for a bug.
const ATTEMPTS: usize = 32;

/// The key of a call that may need none.
pub(crate) type LazyKey = Arc<LazyLock<AskKey, Box<dyn FnOnce() -> AskKey + Send>>>;

/// The key of a call: principal, server, project, tool and arguments.
#[derive(Clone, Debug)]
pub(crate) struct AskKey {
    pub(crate) id: String,
    pub(crate) principal: String,
    server: String,
    pub(crate) tool: String,
    /// Tells apart the tools of servers and, without a principal, of connections, for grants.
    pub(crate) identity: String,
}

impl AskKey {
    /// `scope` tells apart the servers, projects and, without a principal, the connections.
    pub(crate) fn new(
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
    pub(crate) fn lazy(make: impl FnOnce() -> Self + Send + 'static) -> LazyKey {
        Arc::new(LazyLock::new(Box::new(make)))
    }

    /// The ask with this number, counted from 1; generations are counted from 0. It shows the tool as rules name it, so
    /// that a person sees which server a call goes to.
    fn ask(&self, number: u64) -> Ask {
        let tool = format!("mcp:{}/{}", self.server, self.tool);
        let run = format!("mcp-{}-{}", self.id, number.saturating_sub(1));
        Ask::new(run, PATH, tool).with_identity(&*self.identity)
    }
}

/// The state of a call that needs an approval, by the ledger.
pub(crate) enum AskStanding {
    /// No decision yet.
    Pending(Box<AskRecord>),
    /// Approved, and claimed by this request: it runs now, once.
    Claimed { ask: String, token: u64, args: Args },
    /// Denied with this text.
    Denied(String),
    /// An equal call has run, and its client did not get the outcome.
    Delivered(Value),
    /// The ask that the call was held for was cancelled.
    Cancelled,
    /// Nothing was parked, as no later call of the client would find the decision.
    NoWayBack,
}

/// The conditions under which a request may park an ask.
pub(crate) struct MayPark<'a> {
    /// No layer has counted the request, as it repeats one whose ask was open: it parks no ask of its own.
    pub(crate) joins: bool,
    /// The ask that the call is held for. Where that was cancelled, the call ends, and parks no other one.
    pub(crate) held: Option<&'a str>,
    /// Until when the call is held for an answer to this ask; `None` where the client has the form and comes back by itself.
    pub(crate) held_until: &'a (dyn Fn(&Ask) -> Option<Instant> + Sync),
    /// Returns `true` if the client can come back for the decision about this ask.
    pub(crate) is_found: &'a (dyn Fn(&Ask) -> bool + Sync),
}

/// Changes an ask before it is parked.
pub(crate) type AskPolicy = dyn Fn(&RunContext, Ask) -> Ask + Send + Sync;

/// The asks of one server.
pub(crate) struct Asks {
    pub(crate) ledger: Ledger,
    worker: String,
    policy: Arc<AskPolicy>,
    /// The number of the last known ask of each key, to find it with one read.
    hints: Mutex<HashMap<String, u64>>,
    pub(crate) responses: Responses,
}

impl Asks {
    pub(crate) fn new(ledger: Ledger, policy: Arc<AskPolicy>) -> Self {
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
    /// We read the latest generation, take what it offers, and go to the next one if it offers nothing. Parking is
    /// idempotent: two requests that park one generation at the same time both find the same ask. Only one request can
    /// win the claim.
    pub(crate) async fn standing(
        &self,
        cx: &RunContext,
        key: &AskKey,
        (args, questions): (&Args, &[Question]),
        parking: &MayPark<'_>,
    ) -> Result<AskStanding, BoxError> {
        let number = |n| key.ask(n);
        for _ in 0..ATTEMPTS {
            let series = self.series(key, &number);
            let last = series.last().await?;
            self.remember(key, last.number());
            if let Some(record) = last.record()
                && let Some(standing) = self.take(record.clone(), questions).await?
            {
                return Ok(standing);
            }
            if parking.joins {
                return Ok(AskStanding::Denied(OVER.to_owned()));
            }
            // The attempt to use an ask finds what was cancelled a moment before.
            if self.is_cancelled(parking.held).await? {
                return Ok(AskStanding::Cancelled);
            }
            // What the attempt to use it has changed, such as a claim that has ended, is a part of the history.
            let last = series.last().await?;
            let next = last.number().saturating_add(1);
            let ask = self.ask(cx, key, next, (args, questions), parking);
            // Nothing to return: the ask was parked, another request has parked it, or a grant has answered it. The next
            // look finds it.
            if let Some(standing) = self.park(&series, &last, ask, parking).await? {
                return Ok(standing);
            }
        }
        Err("too many equal calls are made at once".into())
    }

    /// The asks of a key, by the rules that all doors share.
    fn series<'a>(
        &'a self,
        key: &AskKey,
        number: &'a (dyn Fn(u64) -> Ask + Send + Sync + 'a),
    ) -> AskSeries<'a> {
        let known = lock(&self.hints).get(&key.id).copied().unwrap_or(0);
        AskSeries::new(&self.ledger, number).with_runs().known(known).denied_within(DENIED_WITHIN)
    }

    /// Remembers the number of the last ask of a key, to find it with one read.
    fn remember(&self, key: &AskKey, number: u64) {
        lock(&self.hints).insert(key.id.clone(), number);
    }

    /// Uses the ask of this generation; `None` where there has to be another one.
    ///
    /// If an open ask does not show all present questions, we cancel it: for example, a layer was added, or a rule
    /// has changed, and an approval of the old questions would not answer the new ones (rule A2).
    async fn take(
        &self,
        record: AskRecord,
        questions: &[Question],
    ) -> Result<Option<AskStanding>, BoxError> {
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
            return Ok(None);
        }
        Ok(match self.ledger.claim(&id, &self.worker, LEASE).await? {
            Claimed::NotDecided => Some(AskStanding::Pending(Box::new(record))),
            Claimed::Claimed { token } => {
                let claimed = self.ledger.get(&id).await?.unwrap_or(record);
                let args = claimed.args_to_run().clone();
                Some(AskStanding::Claimed { ask: id, token, args })
            }
            Claimed::Denied { state: AskState::Decided }
                if self.deliver(record.ask.run()).await? =>
            {
                // The decision may be younger than the record.
                let denied = self.ledger.get(&id).await?.unwrap_or(record);
                Some(AskStanding::Denied(denial(&denied)))
            }
            Claimed::Settled { outcome } if self.redeliver(&record).await? => {
                Some(AskStanding::Delivered(outcome))
            }
            // The call runs, or its process was killed and the lease of the claim has not ended yet.
            _ => None,
        })
    }

    fn ask(
        &self,
        cx: &RunContext,
        key: &AskKey,
        number: u64,
        (args, questions): (&Args, &[Question]),
        parking: &MayPark<'_>,
    ) -> Ask {
        let ask = key
            .ask(number)
            .with_args(args.clone())
            .with_questions(questions.to_vec())
            .with_origins(match cx.origin() {
                origin if origin.is_recorded() => origin.of_args(args),
                _ => Vec::new(),
            })
            .with_principal(key.principal.as_str())
            .with_valid_for(UNUSED);
        let until = (parking.held_until)(&ask);
        let waits = until.map(|until| until.saturating_duration_since(Instant::now()));
        (self.policy)(cx, waits.into_iter().fold(ask, Ask::with_waits_for))
    }

    /// Parks an ask, unless a grant answers it. Nothing is parked where a limit is reached, or where the client could not
    /// come back for the decision: a person would decide in vain.
    async fn park(
        &self,
        series: &AskSeries<'_>,
        last: &LastAsk,
        ask: Ask,
        parking: &MayPark<'_>,
    ) -> Result<Option<AskStanding>, BoxError> {
        if !(parking.is_found)(&ask) {
            return Ok(match series.granted(last, &ask).await? {
                Some(_) => None,
                // Another request has parked it meanwhile.
                None if last.open().is_some_and(|it| it.state == AskState::Pending) => None,
                None => Some(AskStanding::NoWayBack),
            });
        }
        let told = series.note(last).await?;
        let note = told.map(|told| {
            // Only the library makes questions; their stored form is public.
            let key = format!("before {}", last.number());
            serde_json::from_value(json!({"layer": HISTORY, "key": key, "reason": told}))
        });
        match series.next(last, ask, note.transpose()?).await {
            Ok(NextAsk::Denied(text)) => Ok(Some(AskStanding::Denied(text))),
            // The run was dropped from the ledger: the next generation is free.
            Ok(_) | Err(LedgerError::Unkeepable { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if an equal call can join an ask: one that is pending, or whose answer was not used.
    pub(crate) async fn is_open(&self, key: &AskKey) -> Result<bool, BoxError> {
        let number = |n| key.ask(n);
        let last = self.series(key, &number).last().await?;
        self.remember(key, last.number());
        Ok(last.open().is_some())
    }

    /// Returns `true` if this request gets the outcome of an earlier one, whose client did not get it, and no other
    /// request does.
    pub(crate) async fn redeliver(&self, record: &AskRecord) -> Result<bool, BoxError> {
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
    pub(crate) async fn delivered(&self, ask: &str) -> Result<(), BoxError> {
        if let Some(record) = self.ledger.get(ask).await? {
            self.deliver(record.ask.run()).await?;
        }
        Ok(())
    }

    /// Returns `true` if an ask was cancelled: its call may not be asked about any more, or otherwise.
    pub(crate) async fn is_cancelled(&self, ask: Option<&str>) -> Result<bool, BoxError> {
        let Some(ask) = ask else { return Ok(false) };
        let record = self.ledger.get(ask).await?;
        Ok(record.is_some_and(|record| record.state == AskState::Cancelled))
    }

    /// Waits until the ask may have changed, or the time is over.
    pub(crate) async fn wait_for_change(&self, run: &str, place: i64) -> Result<i64, BoxError> {
        Ok(self.ledger.wait_for_change(run, place).await?)
    }

    /// Settles a claim with the outcome of the call; `None` means that its end was not seen.
    ///
    /// If we did not see the end of a call, the call keeps its claim and gives up the lease. The next look at the
    /// ask finds it unknown, and no process runs it again (rule L2).
    pub(crate) async fn settle(&self, ask: &str, token: u64, end: End) -> Result<(), BoxError> {
        match end {
            End::Outcome(outcome) => _ = self.ledger.settle(ask, token, outcome).await?,
            End::NotRun => _ = self.ledger.release(ask, token).await?,
            // The lease ends now, so that the next claim finds the outcome unknown.
            End::Unknown => {
                self.ledger.renew(ask, token, Duration::ZERO).await?;
                // It records what a look finds now, so that lists say it, too.
                self.ledger.claim(ask, &self.worker, Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}

/// The outcome of a claimed call.
pub(crate) enum End {
    Outcome(Value),
    NotRun,
    Unknown,
}

fn denial(record: &AskRecord) -> String {
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
/// We renew at a third of the lease: two renewals may fail before the claim is taken for abandoned.
pub(crate) struct Renewing(tokio::task::JoinHandle<()>);

impl Renewing {
    pub(crate) fn start(ledger: Ledger, ask: String, token: u64) -> Self {
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
