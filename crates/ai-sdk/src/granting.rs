//! Grants in a chat: what is offered beside an approval, and what is made with it (rules G1 to G3).
//!
//! | step | where | what has to hold |
//! |---|---|---|
//! | offered | `offers` in the data part of the ask | the layers agree, one approval by this principal is enough, and the whole call was shown |
//! | chosen | `approvalGrants` of the request that approves the call | the fingerprint is that of the ask, the grant is one that was offered, and the arguments are not edited |
//! | made | between two steps of the run | the approval is the decision on the call, and there was none before |
//!
//! We do not make a grant when the approval arrives: we check the answers of a response as a whole before any takes
//! effect (rule T2), and until then the person can take an approval back. We make it from the ledger's record of the
//! ask, and only if it still reads as it was shown.
//!
//! We offer only the session. A chat is a session of its own ([`session`](super::grant::session)), and the user of one
//! chat should not decide for a whole project.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::answer::PartAnswer;
use super::approval;
use super::chat::{Chat, ShownAsk};
use super::grant::ChosenGrant;
use super::message_stream::{MessageStream, lock};
use super::principal::Principal;
use super::rejection::Rejection;
use countersign::agent::Agent;
use countersign::call::ToolCall;
use countersign::deferred::metadata::GRANTABLE;
use countersign::deferred::{Answer, DeferredToolRequests, DeferredToolResults};
use countersign::ledger::{
    AskRecord, AskState, GrantOffer, GrantOutcome, GrantPlace, GrantTime, Ledger, Offers,
};
use countersign::turn::SuspendedRun;

/// The grants that this principal can make with the approvals of the pending calls, as they are shown, by call.
pub(super) async fn offers(
    agent: &Agent,
    run: &SuspendedRun,
    principal: &Principal,
) -> HashMap<String, Vec<Value>> {
    let requests = run.requests();
    let agrees = |call: &ToolCall| {
        let mut questions = requests.questions(call.id()).iter();
        questions.any(|question| question.metadata().get(GRANTABLE) == Some(&Value::Bool(true)))
    };
    let Some(ledger) = agent.configured_ledger() else { return HashMap::new() };
    if !requests.iter().any(agrees) {
        return HashMap::new();
    }
    let offers = |(call, record): (String, AskRecord)| {
        let grants = grants(ledger, &requests, &call, &record, principal);
        let shown = grants.shown().map(|offer| shown(&record, offer)).collect();
        (call, shown)
    };
    match agent.asks(run).await {
        Ok(asks) => asks.into_iter().map(offers).collect(),
        Err(error) => {
            tracing::error!(%error, "no grants are offered");
            HashMap::new()
        }
    }
}

/// The grants that can be made with the approval of an ask. Empty where this principal may not approve it, and where the
/// call has changed since it was parked.
fn grants(
    ledger: &Ledger,
    requests: &DeferredToolRequests,
    call: &str,
    record: &AskRecord,
    principal: &Principal,
) -> Offers {
    let decides = ledger.may_approve(record, principal.as_str())
        && requests.fingerprint(call) == Some(&*record.fingerprint);
    let offers = decides.then(|| Offers::of(&record.ask).in_place(GrantPlace::Session));
    offers.unwrap_or_default()
}

/// An offer, as a page shows it.
fn shown(record: &AskRecord, mut offer: Map<String, Value>) -> Value {
    offer.insert("fingerprint".to_owned(), record.fingerprint.as_str().into());
    Value::Object(offer)
}

/// Checks that a grant is one that this chat has offered with an ask.
///
/// # Errors
/// [`Rejection`] for any other grant. Nothing of the request counts then.
pub(super) fn check(chat: &Chat, asked: &ShownAsk, chosen: &ChosenGrant) -> Result<(), Rejection> {
    if asked.fingerprint.as_ref() != Some(&chosen.fingerprint) {
        return Err(Rejection::conflict(
            "a grant is for another call than the one that is approved: nothing of the request counts",
        ));
    }
    if offered(chat, asked, chosen).is_none() {
        return Err(Rejection::conflict(
            "a grant is none of those that were offered for the call: nothing of the request counts",
        ));
    }
    Ok(())
}

/// The offer that is chosen among those of an ask, as the server's copy of the message has it: with the time that was
/// shown.
fn offered<'a>(chat: &'a Chat, asked: &ShownAsk, chosen: &ChosenGrant) -> Option<&'a Value> {
    let parts = chat.message(&asked.message).map(|message| message.parts.as_slice());
    let mut asks = parts.unwrap_or_default().iter().filter_map(approval::data);
    let data = asks.find(|(id, _)| Some(*id) == asked.approval.as_deref());
    let (_, data) = data?;
    let (pattern, seconds) = (json!(chosen.pattern), json!(chosen.seconds()));
    let meant = |it: &&Value| it["pattern"] == pattern && it["seconds"] == seconds;
    data.get("offers")?.as_array()?.iter().find(meant)
}

/// The grants that were chosen with the approvals of a response, until these are decisions.
#[derive(Default)]
pub(super) struct ChosenGrants(Vec<(String, State)>);

enum State {
    /// The approval of the ask with this id is not the decision yet.
    Open { ask: String, grant: Box<GrantOffer> },
    /// Another decision was there before, or the grant is not the one that was shown any more.
    Lost,
}

impl ChosenGrants {
    /// The grants that go with the answers of a request, and with those that are stored with the chat. `recorded` are the
    /// decisions that were there before.
    pub(super) async fn of(
        agent: &Agent,
        run: &SuspendedRun,
        (chat, answers): (&Chat, &HashMap<String, PartAnswer>),
        recorded: &DeferredToolResults,
        principal: &Principal,
    ) -> Self {
        let chosen = |asked: &ShownAsk| match answers.get(&asked.call) {
            Some(posted) => posted.grant.clone().filter(|_| posted.part == asked.part),
            None => asked.grant.clone().filter(|_| asked.answer.is_some()),
        };
        let chosen = chat.asks.iter().filter_map(|asked| Some((asked, chosen(asked)?)));
        let chosen: Vec<_> = chosen.collect();
        let Some(ledger) = agent.configured_ledger().filter(|_| !chosen.is_empty()) else {
            return Self::default();
        };
        let asks: HashMap<_, _> = match agent.asks(run).await {
            Ok(asks) => asks.into_iter().collect(),
            Err(error) => {
                tracing::error!(%error, "no grants are made");
                return Self::default();
            }
        };
        let requests = run.requests();
        let state = |(asked, chosen): (&ShownAsk, ChosenGrant)| {
            let record = asks.get(&asked.call)?;
            let offers = grants(ledger, &requests, &asked.call, record, principal);
            let time = GrantTime::of_seconds(chosen.seconds())?;
            let offer = offers.choose(GrantPlace::Session, chosen.pattern, Some(time));
            let is_as_shown = |offer: &GrantOffer| {
                offered(chat, asked, &chosen) == Some(&shown(record, offer.shown()))
            };
            let before = recorded.answer_to(&asked.call).is_some();
            let offer = offer.filter(is_as_shown).filter(|_| !before);
            let state = offer.map_or(State::Lost, |grant| State::Open {
                ask: record.ask.id().to_owned(),
                grant: Box::new(grant),
            });
            Some((asked.call.clone(), state))
        };
        Self(chosen.into_iter().filter_map(state).collect())
    }

    /// Makes the grants whose approvals are decisions, and writes the result of each.
    pub(super) async fn make(
        &mut self,
        agent: &Agent,
        principal: &Principal,
        stream: &Mutex<MessageStream>,
    ) {
        let Some(ledger) = agent.configured_ledger() else { return };
        for (call, state) in std::mem::take(&mut self.0) {
            let made = match state {
                State::Lost => GrantOutcome::DecidedBefore,
                State::Open { ask, grant } => match ledger.get(&ask).await {
                    Ok(Some(record)) if record.state == AskState::Pending => {
                        self.0.push((call, State::Open { ask, grant }));
                        continue;
                    }
                    Ok(Some(record)) if is_by(&record, principal) => {
                        grant.make(ledger, principal.as_str()).await
                    }
                    Ok(_) => GrantOutcome::DecidedBefore,
                    Err(error) => {
                        tracing::error!(%error, "a grant was not made");
                        GrantOutcome::Failed
                    }
                },
            };
            lock(stream).granted(&call, made.shown());
        }
    }
}

/// Returns `true` if the decision is an approval by this principal, of the arguments that were shown.
fn is_by(record: &AskRecord, principal: &Principal) -> bool {
    record.decision.as_ref().is_some_and(|decision| {
        matches!(decision.answer, Answer::Approve { args: None })
            && decision.grant.is_none()
            && decision.by == [principal.as_str()]
    })
}
