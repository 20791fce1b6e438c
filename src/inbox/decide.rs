//! Decisions: one, or many that are each bound to their own fingerprint.
//!
//! What stands between a click and a decision, in order:
//!
//! | check | refused with | because |
//! |---|---|---|
//! | the page's person is still logged in | `wrong_person` | a second login in another tab would sign the first person's click |
//! | the ask is known and may be seen | `unknown_ask` | both look the same, so that ids tell nothing |
//! | it is an approval, and not blocked | `not_an_approval`, `blocked` | rule A5 |
//! | edited arguments are JSON, and the tool takes them | `bad_args` | a decision is final |
//! | the person may decide it | `not_allowed` | |
//! | the ledger: fingerprint, deadline, requester, first | `mismatch`, `expired`, `not_allowed`, `already_decided` | rules A2, L1, L4 |
//!
//! Only the last line counts for safety, as other surfaces do not come here; the others answer before something final
//! is done.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawPathParams, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::approver::Approver;
use super::board::is_cut;
use super::body::Sent;
use super::granting::{self, Wanted};
use super::json::set;
use super::refused::{ApiError, ApiReply};
use crate::args::Args;
use crate::deferred::Answer;
use crate::ledger::{AskState, Decided, Record};
use crate::outcome::DeferralKind;

/// The largest number of decisions in a request.
const MOST: usize = 500;

/// A decision, with the fingerprint of the call that was shown. A page sends the name that it shows as the decider,
/// because another person may have logged in from another tab since.
///
/// With arguments as JSON, a browser would read `9007199254740993` as a number and send back `9007199254740992`.
#[derive(Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PostedDecision {
    /// Edited arguments are a text, so that no number loses digits in a parser of JavaScript.
    Approve {
        fingerprint: String,
        args: Option<String>,
        by: Option<String>,
        grant: Option<Wanted>,
    },
    Deny {
        fingerprint: String,
        message: String,
        by: Option<String>,
    },
}

/// Several decisions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decisions {
    decisions: Vec<About>,
    by: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
enum About {
    Approve { id: String, fingerprint: String },
    Deny { id: String, fingerprint: String, message: String },
}

/// The ask that a request names, if its principal may see it.
pub(super) async fn find(
    app: &App,
    who: &Approver,
    params: &RawPathParams,
) -> Result<Record, ApiError> {
    let id = params.iter().find(|(name, _)| *name == "id").map_or("", |(_, id)| id);
    find_id(app, who, id).await
}

pub(super) async fn find_id(app: &App, who: &Approver, id: &str) -> Result<Record, ApiError> {
    // A text that cannot be an id is not looked up.
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ApiError::unknown_ask());
    }
    let record = app.ledger.get(id).await?.filter(|record| who.sees(record));
    record.ok_or_else(ApiError::unknown_ask)
}

/// Takes one decision. Of several decisions the first counts, and the response to the others names it.
pub(super) async fn decide(
    State(app): State<Arc<App>>,
    who: Approver,
    params: RawPathParams,
    Sent(decision): Sent<PostedDecision>,
) -> ApiReply {
    let (PostedDecision::Approve { by, .. } | PostedDecision::Deny { by, .. }) = &decision;
    is_still(&app, &who, by.as_deref())?;
    let record = find(&app, &who, &params).await?;
    let (fingerprint, answer, granted) = match decision {
        PostedDecision::Approve { args: Some(_), grant: Some(_), .. } => {
            let problem = "A grant is for the arguments as they were asked about.";
            return Err(ApiError::bad("bad_request", problem));
        }
        PostedDecision::Approve { fingerprint, args, grant, .. } => {
            let granted = grant.map(|grant| granting::wanted(&record, &grant)).transpose()?;
            let args = may_approve(&app, &record, args.as_deref())?;
            (fingerprint, Answer::Approve { args }, granted)
        }
        PostedDecision::Deny { fingerprint, message, .. } => {
            (fingerprint, Answer::Deny { message }, None)
        }
    };
    let mut result = take(&app, &who, &record, &fingerprint, answer).await;
    if let (Ok(result), Some(grant)) = (&mut result, granted) {
        set(result, "grant", granting::make(&app, &who, grant).await);
    }
    tell(&app, &[record.ask.id().to_owned()]).await;
    result.map(Json)
}

/// Takes many decisions, one after the other. Each has a result of its own: a refused decision does not affect the
/// others.
///
/// One after the other and not together, so that the order in the log is the order on the page, and a store that fails
/// in the middle leaves results for what was decided.
pub(super) async fn decide_many(
    State(app): State<Arc<App>>,
    who: Approver,
    Sent(Decisions { decisions, by }): Sent<Decisions>,
) -> ApiReply {
    is_still(&app, &who, by.as_deref())?;
    if decisions.len() > MOST {
        let problem = format!("A request has at most {MOST} decisions.");
        return Err(ApiError::bad("bad_request", problem));
    }
    let alone = decisions.len() == 1;
    let (mut results, mut ids) = (Vec::new(), Vec::new());
    for about in decisions {
        let (id, fingerprint, message) = match about {
            About::Approve { id, fingerprint } => (id, fingerprint, None),
            About::Deny { id, fingerprint, message } => (id, fingerprint, Some(message)),
        };
        let result = match find_id(&app, &who, &id).await {
            Ok(record) => match message {
                Some(message) => {
                    take(&app, &who, &record, &fingerprint, Answer::Deny { message }).await
                }
                None if is_cut(&record.ask) && !alone => Err(ApiError::cut()),
                None => match may_approve(&app, &record, None) {
                    Ok(args) => {
                        take(&app, &who, &record, &fingerprint, Answer::Approve { args }).await
                    }
                    Err(refused) => Err(refused),
                },
            },
            Err(refused) => Err(refused),
        };
        let mut result = result.unwrap_or_else(|refused| refused.body());
        set(&mut result, "id", id.as_str().into());
        results.push(result);
        ids.push(id);
    }
    tell(&app, &ids).await;
    Ok(Json(json!({"results": results})))
}

/// Refuses a decision of a page that shows another person as the decider.
fn is_still(app: &App, who: &Approver, by: Option<&str>) -> Result<(), ApiError> {
    let name = |name: &str| app.ledger.canonical_name(name);
    if by.is_some_and(|by| name(by) != name(who.name())) {
        let problem =
            format!("You are now logged in as {}, and the page shows another name.", who.name());
        return Err(ApiError::forbidden("wrong_person", problem));
    }
    Ok(())
}

async fn take(
    app: &App,
    who: &Approver,
    record: &Record,
    fingerprint: &str,
    answer: Answer,
) -> Result<Value, ApiError> {
    if !who.decides(record) {
        return Err(ApiError::forbidden(
            "not_allowed",
            "You may see this call, and not decide it.",
        ));
    }
    let id = record.ask.id();
    let decided = app.ledger.decide(id, fingerprint, who.name(), answer).await?;
    let result = match &decided {
        Decided::Won { .. } | Decided::Recorded { .. } => json!(decided),
        Decided::Lost(winner) => return Err(ApiError::lost(winner)),
        Decided::Expired => {
            return Err(ApiError::gone("expired", "Too late: its time is over. It does not run."));
        }
        Decided::Cancelled => {
            return Err(ApiError::gone("cancelled", "It was withdrawn. It does not run."));
        }
        Decided::Mismatch { .. } => {
            let problem = "The pending call is not what you were shown. Look again.";
            return Err(ApiError::bad("mismatch", problem));
        }
        Decided::NotAllowed => {
            let problem = "The requester may not approve it: others have to.";
            return Err(ApiError::forbidden("not_allowed", problem));
        }
        Decided::BlankName => {
            let problem = "A name is needed, and not one that begins with `by grant `.";
            return Err(ApiError::forbidden("not_allowed", problem));
        }
        _ => return Err(ApiError::unknown_ask()),
    };
    tracing::info!(ask = id, by = who.name(), "decided");
    Ok(result)
}

/// Refuses a decision that is certain to fail later, as a recorded decision is final. Returns the edited arguments.
fn may_approve(app: &App, record: &Record, args: Option<&str>) -> Result<Option<Args>, ApiError> {
    let requests = record.ask.requests();
    let Some(call) = requests.iter().next() else { return Err(ApiError::unknown_ask()) };
    if requests.kind(call.id()) != Some(DeferralKind::Approval) {
        let problem = "The call is executed elsewhere: it needs a result, not an approval.";
        return Err(ApiError::bad("not_an_approval", problem));
    }
    if requests.is_blocked(call.id()) {
        return Err(ApiError::forbidden("blocked", "It must not be approved."));
    }
    let Some(args) = args else { return Ok(None) };
    let args = Args::parse(args).map_err(|error| ApiError::bad("bad_args", format!("{error}.")))?;
    (app.settings.check)(&call.clone().with_args(args.clone())).map_err(|problem| {
        ApiError::bad("bad_args", format!("The tool does not take this: {problem}."))
    })?;
    Ok(Some(args))
}

/// Reads these asks again, and notifies the pages and the function of the application
/// ([`Inbox::on_decision`](super::Inbox::on_decision)).
///
/// What is told is read again and not what was sent: another person may have been first.
async fn tell(app: &App, ids: &[String]) {
    let mut now = Vec::new();
    for id in ids {
        // An ask that cannot be read now is read by the next poll.
        let Ok(Some(record)) = app.ledger.get(id).await else { continue };
        if record.decision.is_some() {
            (app.settings.told)(&record);
        }
        let pending = record.state == AskState::Pending;
        now.push((id.clone(), pending.then_some(record)));
    }
    app.past.forget();
    app.hub.changed(now);
}
