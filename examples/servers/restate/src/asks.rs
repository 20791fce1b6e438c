//! An ask as a virtual object: of all its deciders one wins, and the others are told who did.
//!
//! The decision itself is made in the ledger, so that people can decide with everything that decides there: an inbox, a
//! terminal, `countersign asks decide`. The object makes it durable for a caller over HTTP (a request with the same
//! `idempotency-key` gets the same answer), and tells the run.

use std::collections::HashSet;
use std::time::Duration;

use countersign::BoxError;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Ledger, LedgerError, Millis};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::run::RunWorkflowClient;
use crate::steps::{Step, Steps};

/// The prefix of the ids of Restate's runs in the ledger, where other runs may be, too.
pub(crate) const PREFIX: &str = "restate-";
/// The pause between two reads of the ledger for decisions that were made elsewhere.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The number of decisions that one read returns, newest first.
const LOOK_THROUGH: u32 = 1_000;

/// The object of an ask; its key is the id of the ask.
pub(crate) struct AskObject {
    pub(crate) ledger: Ledger,
    pub(crate) steps: std::sync::Arc<Steps>,
}

/// A decision, as it is posted. In a service, the name comes from the session of the request and not from its body.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    by: String,
    fingerprint: String,
    answer: Answer,
}

/// The state of an ask, as a handler has found it in the ledger.
#[derive(Serialize, Deserialize)]
struct AskStatus {
    /// The words for the decider.
    told: Value,
    /// The key of the workflow to tell that the ask is over, if it is.
    over: Option<String>,
    /// The time until the deadline of a pending ask, to look again then.
    look_in: Option<Duration>,
}

#[restate_sdk::object(
    name = "Ask",
    client_visibility = "pub(crate)",
    invocation_retry_policy(initial_interval = "100ms", factor = 2.0, max_interval = "2s")
)]
impl AskObject {
    /// Decides. The answer says who has won: `{"result": "won"}`, or `{"result": "lost", "by": […], …}`.
    #[handler]
    async fn decide(
        &self,
        ctx: ObjectContext<'_>,
        given: Json<Given>,
    ) -> HandlerResult<Json<Value>> {
        let (id, given) = (ctx.key().to_owned(), given.into_inner());
        let status = ctx.run(|| self.decided(id, given)).name("decide").await?.into_inner();
        tell(&ctx, &status);
        Ok(Json(status.told))
    }

    /// Looks whether the ask is over: because its deadline has passed, or because it was decided elsewhere.
    #[handler]
    async fn look(&self, ctx: ObjectContext<'_>) -> HandlerResult<()> {
        let id = ctx.key().to_owned();
        let status = ctx.run(|| self.status(id)).name("look").await?.into_inner();
        tell(&ctx, &status);
        if let Some(time) = status.look_in {
            let this = ctx.object_client::<AskObjectClient<'_>>(ctx.key());
            this.look().send_after(time);
        }
        Ok(())
    }
}

impl AskObject {
    async fn decided(&self, id: String, given: Given) -> HandlerResult<Json<AskStatus>> {
        let Given { by, fingerprint, answer } = given;
        let told = self.ledger.decide(&id, &fingerprint, &by, answer).await?;
        self.steps.reached(Step::Decided, &id).await?;
        let Json(status) = self.status(id).await?;
        Ok(Json(AskStatus { told: serde_json::to_value(told)?, ..status }))
    }

    async fn status(&self, id: String) -> HandlerResult<Json<AskStatus>> {
        let record = self.ledger.get(&id).await?;
        let now = self.ledger.now().await?;
        // A deadline that has passed is recorded by the run, when it reads the decisions.
        let is_open = |record: &AskRecord| {
            record.state == AskState::Pending && record.due_at().is_none_or(|due| due > now)
        };
        let open = record.as_ref().filter(|record| is_open(record));
        let due = open.and_then(AskRecord::due_at);
        Ok(Json(AskStatus {
            told: Value::Null,
            look_in: due.map(|due| until(due, now)),
            over: if open.is_some() { None } else { record.as_ref().and_then(key) },
        }))
    }
}

/// The time until a point of the store's clock has passed.
pub(crate) fn until(due: Millis, now: Millis) -> Duration {
    let left = u64::try_from(due.saturating_sub(now)).unwrap_or_default();
    Duration::from_millis(left.saturating_add(1))
}

/// The key of the workflow that has asked; `None` where the run is none of Restate's.
fn key(record: &AskRecord) -> Option<String> {
    record.ask.run().strip_prefix(PREFIX).map(str::to_owned)
}

fn tell(ctx: &ObjectContext<'_>, status: &AskStatus) {
    if let Some(run) = &status.over {
        ctx.workflow_client::<RunWorkflowClient<'_>>(run).over(ctx.key().to_owned()).send();
    }
}

/// The pending calls of a run, as a decider is shown them. One without a question is not for people: it is allowed, and
/// its journaled tool is about to claim it.
pub(crate) async fn pending(ledger: &Ledger, run: &str) -> Result<Vec<Value>, LedgerError> {
    let records = ledger.list_run(run, u32::MAX).await?.records;
    let open = |record: &&AskRecord| {
        record.state == AskState::Pending && !record.ask.questions().is_empty()
    };
    let shown = records.iter().rev().filter(open).map(|record| {
        let (ask, fingerprint) = (&record.ask, &record.fingerprint);
        let reasons: Vec<_> = ask.questions().iter().map(Question::reason).collect();
        json!({
            "ask": ask.id(), "tool": ask.tool(), "args": ask.args(), "reasons": reasons,
            "fingerprint": fingerprint,
        })
    });
    Ok(shown.collect())
}

/// Tells the server of decisions that were made elsewhere, in an inbox or a terminal over the same ledger, for as long
/// as the service lives. What is told twice, after a restart or by two services, changes nothing.
pub(crate) async fn watch(ledger: Ledger, ingress: String) {
    let (client, mut told) = (reqwest::Client::new(), HashSet::new());
    loop {
        if let Err(error) = pass_on(&ledger, &client, &ingress, &mut told).await {
            eprintln!("decisions that were made elsewhere wait: {error}");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn pass_on(
    ledger: &Ledger,
    client: &reqwest::Client,
    ingress: &str,
    told: &mut HashSet<String>,
) -> Result<(), BoxError> {
    let mut over = HashSet::new();
    for state in [AskState::Decided, AskState::Cancelled] {
        let records = ledger.list(Some(state), LOOK_THROUGH).await?.records;
        let ours = records.iter().filter(|record| key(record).is_some());
        over.extend(ours.map(|record| record.ask.id().to_owned()));
    }
    told.retain(|ask| over.contains(ask));
    for ask in over {
        if told.contains(&ask) {
            continue;
        }
        let sent = client.post(format!("{ingress}/Ask/{ask}/look/send")).send().await?;
        sent.error_for_status()?;
        told.insert(ask);
    }
    Ok(())
}
