//! The answers to forms in clients of earlier revisions (rules M2, M3).
//!
//! A client shows a form for as long as its person needs, and many show one at a time. The answer to the fourth may
//! come minutes after its request has ended. So we listen for a form in a task of its own, and not in the request that
//! has opened it:
//!
//! | what happens | the form |
//! |---|---|
//! | the person answers, however late | is recorded as the decision about its ask, which an equal call finds |
//! | the person closes it | is gone, and the requests that wait for it end |
//! | its ask is decided elsewhere, expires or is cancelled | is withdrawn (`notifications/cancelled`) |
//! | the connection or the program ends | is gone |
//!
//! There is one form for each ask of a connection: requests that wait for one ask share it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleServer, ServiceError};
use serde_json::json;
use tokio::sync::watch;

use super::in_flight::CallingClient;
use super::open_forms::FormState;
use super::shared::Shared;
use crate::cancelling::CancelOnDrop;
use crate::form::FormAnswer;
use countersign::error::BoxError;
use countersign::ledger::{AskRecord, AskState};

/// The time for which a store is left alone that could not be read.
const PAUSE: Duration = Duration::from_secs(5);

/// Opens the form of this ask, if it is not open already.
///
/// The caller's own task sends it, as the library sends it on the response stream of the request that this task
/// serves.
pub(crate) async fn opened(
    shared: &Arc<Shared>,
    client: &CallingClient,
    record: &AskRecord,
    (peer, question): (&Peer<RoleServer>, ElicitRequestParams),
) -> watch::Receiver<FormState> {
    let (state, new) = client.open_forms.open(record.ask.id());
    let Some(mut form) = new else { return state };
    if let Ok(sent) = send(peer, question, PeerRequestOptions::no_options()).await {
        let (shared, client, record) = (Arc::clone(shared), client.clone(), record.clone());
        tokio::spawn(async move {
            let end = listen(&shared, &client, &record, sent).await;
            form.end = end;
            drop(form);
        });
    }
    state
}

/// Listens for the answer to a form, and records it as the decision.
async fn listen(
    shared: &Shared,
    client: &CallingClient,
    record: &AskRecord,
    sent: RequestHandle<RoleServer>,
) -> FormState {
    let mut open = CancelOnDrop::new(&sent, "the call was decided elsewhere");
    let answer = tokio::select! {
        answer = sent.await_response() => answer,
        () = over(shared, record) => return FormState::Over,
        () = shared.stopping.cancelled() => return FormState::Over,
    };
    open.answered();
    // An error is a client that cannot show the form, or is gone.
    let Ok(ClientResult::ElicitResult(answer)) = answer else { return FormState::Over };
    let said = json!(answer);
    match shared.answered(record, Some(&said), client).await {
        Ok(FormAnswer::Approve | FormAnswer::Deny) => FormState::Over,
        Ok(FormAnswer::Nothing) if shared.is_at_inbox(client, record, Some(&said)) => {
            FormState::Over
        }
        Ok(FormAnswer::Nothing) => FormState::Closed,
        Err(error) => {
            let ask = record.ask.id();
            tracing::error!(target: "countersign::mcp", ask, %error, "an answer to a form could not be recorded");
            FormState::Lost(error.to_string())
        }
    }
}

/// Waits until an ask has a decision, or can have none any more.
async fn over(shared: &Shared, record: &AskRecord) {
    let mut place = -1;
    loop {
        match look(shared, record, place).await {
            Ok(Some(seen)) => place = seen,
            Ok(None) => return,
            Err(error) => {
                let ask = record.ask.id();
                tracing::warn!(target: "countersign::mcp", ask, %error, "it is not known whether a form is still needed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Waits for a change behind this place; `None` when the ask is pending no more.
async fn look(shared: &Shared, record: &AskRecord, place: i64) -> Result<Option<i64>, BoxError> {
    let ledger = &shared.asks.ledger;
    let change = ledger.wait_for_change(record.ask.run(), place);
    let seen = match record.expires_at {
        None => change.await?,
        Some(at) => {
            let left = u64::try_from(at.saturating_sub(ledger.now().await?)).unwrap_or_default();
            match tokio::time::timeout(Duration::from_millis(left), change).await {
                Ok(seen) => seen?,
                Err(_) => return Ok(None),
            }
        }
    };
    let now = ledger.get(record.ask.id()).await?;
    Ok(now.is_some_and(|now| now.state == AskState::Pending).then_some(seen))
}

/// Asks a client of an older revision a question of its server.
///
/// If there is no answer (an error, a time that is over, a result of another kind), we take the form for closed. If you
/// drop the future, the question is withdrawn.
pub(crate) async fn elicit(
    peer: Peer<RoleServer>,
    question: ElicitRequestParams,
    wait: Duration,
) -> ElicitResult {
    let closed = || ElicitResult::new(ElicitationAction::Cancel);
    let Ok(sent) = send(&peer, question, PeerRequestOptions::with_timeout(wait)).await else {
        return closed();
    };
    let mut open = CancelOnDrop::new(&sent, "the call has ended");
    let answer = sent.await_response().await;
    open.answered();
    match answer {
        Ok(ClientResult::ElicitResult(answer)) => answer,
        _ => closed(),
    }
}

async fn send(
    peer: &Peer<RoleServer>,
    question: ElicitRequestParams,
    options: PeerRequestOptions,
) -> Result<RequestHandle<RoleServer>, ServiceError> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
    peer.send_request_with_option(request, options).await
}
