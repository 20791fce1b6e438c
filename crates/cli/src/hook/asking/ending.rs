//! The end of a call or a session, as the client reports it.
//!
//! An event after a call is a report and not a question: the tool has run. So nothing here denies, and every problem is
//! a remark on stderr. We look for the claim of the call, first by its id and its arguments, then by the id alone.
//! Where only the id fits, the client has run something else than a person has approved. We record that, and say it. A
//! call that has no claim, and was not allowed as it ran, [ran unapproved](super::unapproved).

use std::time::Duration;

use serde_json::json;

use super::in_client;
use super::key::{self, HOOK};
use super::unapproved::{EndedCall, Reporting};
use crate::hook::clients::Client;
use crate::hook::judging::vocabulary;
use crate::hook::payload::{Ending, HookCall};
use countersign::error::{BoxError, with_causes};
use countersign::ledger::{AskRecord, AskState, Ledger, Settled};

/// The number of asks of a session that we look through, newest first.
const MAX_LISTED: u32 = 1000;

/// Settles the claim of a call that has ended, or records that it [ran unapproved](super::unapproved). The error is a
/// remark: an event after a call decides nothing.
///
/// A call that was allowed as it ran has neither a claim nor an ask. For it we do not open the store.
pub(crate) async fn after(
    hook: &Reporting<'_>,
    call: &HookCall,
    how: Ending,
    store: impl Future<Output = Result<Ledger, BoxError>>,
) -> Result<(), String> {
    if hook.allowed.is_some_and(|allowed| allowed.take(call)) {
        return Ok(());
    }
    let ledger = store.await.map_err(|error| with_causes(&*error))?;
    if let Some(asked) = hook.allowed.and_then(|notes| in_client::asked(notes, call)) {
        let ledger = match &call.session {
            Some(session) => ledger.session(key::run(call.client, session)),
            None => ledger,
        };
        let normal = vocabulary::normal(call, hook.names);
        // The person has approved it in the client, and it has run.
        hook.allowed.iter().for_each(|notes| notes.note_written(call, normal.command(), true));
        return in_client::approved(&ledger, call, &normal, hook.principal, asked, how).await;
    }
    let (ledger, asks) = match &call.session {
        Some(session) => {
            let asks = asks(&ledger, call.client, session).await?;
            (ledger.session(key::run(call.client, session)), asks)
        }
        None => (ledger, Vec::new()),
    };
    let worker = key::worker(call, &call.args);
    // The claim with the same id, or else with the same arguments. The oldest first: calls end in their order.
    let same_id = |record: &&AskRecord| {
        call.id.is_some()
            && record.claim.as_ref().is_some_and(|it| is_same_call(&it.worker, &worker))
    };
    let same = |record: &&AskRecord| record.claim.as_ref().is_some_and(|it| it.worker == worker);
    let claimed = || asks.iter().rev().filter(|it| is_claimed(it));
    let found = claimed().find(same).or_else(|| claimed().find(same_id));
    let Some(record) = found else {
        // A call that has an id may be reported twice.
        let is_known = asks.iter().any(|it| same_id(&it) && it.state == AskState::Executed);
        let call = EndedCall { hook, ledger: &ledger, call, how, asks: &asks };
        return if is_known { Ok(()) } else { call.look().await };
    };
    let as_approved = same(&record);
    let outcome = json!({"ended": how.as_str(), "as_approved": as_approved});
    let settled = ledger.settle(record.ask.id(), record.token, outcome).await;
    match settled.map_err(|error| with_causes(&error))? {
        Settled::Settled { .. } if as_approved => Ok(()),
        Settled::Settled { .. } => Err(format!(
            "{} ran {} with other arguments than were approved as {}",
            call.client,
            record.ask.tool(),
            record.ask.id()
        )),
        other => Err(format!("the end of {} was not recorded: {other:?}", record.ask.id())),
    }
}

/// Returns `true` if two workers are the same call: the client and the id of the call are equal.
fn is_same_call(one: &str, other: &str) -> bool {
    let call = |worker: &str| worker.rsplit_once(' ').map(|(call, _)| call.to_owned());
    call(one) == call(other)
}

/// Ends the leases of all calls of a session whose end the client has not reported: their outcome is
/// unknown.
///
/// We end the lease and claim the call again, so the ledger records that the outcome is unknown. Without that it
/// does so an hour later, when a person looks.
pub(crate) async fn session(
    client: Client,
    session: &str,
    store: impl Future<Output = Result<Ledger, BoxError>>,
) -> Result<(), String> {
    let ledger = store.await.map_err(|error| with_causes(&*error))?;
    for record in asks(&ledger, client, session).await? {
        if record.state == AskState::Claimed {
            let (id, token) = (record.ask.id(), record.token);
            ledger.renew(id, token, Duration::ZERO).await.map_err(|error| with_causes(&error))?;
            // A claim that comes after the lease records that the outcome is unknown, and starts nothing.
            ledger.claim(id, HOOK, Duration::ZERO).await.map_err(|error| with_causes(&error))?;
        }
    }
    Ok(())
}

/// The asks of a session, newest first.
async fn asks(ledger: &Ledger, client: Client, session: &str) -> Result<Vec<AskRecord>, String> {
    let run = key::run(client, session);
    let listed = ledger.list_run(&run, MAX_LISTED).await.map_err(|error| with_causes(&error))?;
    Ok(listed.records)
}

/// Returns `true` if an ask was claimed, and has no outcome.
fn is_claimed(record: &AskRecord) -> bool {
    matches!(record.state, AskState::Claimed | AskState::Unknown)
}
