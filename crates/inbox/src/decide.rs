//! Decisions: one, or many that are each bound to their own fingerprint.
//!
//! We take a decision only if the page's person is still logged in (`wrong_person`): otherwise a second login in another
//! tab would sign the first person's click. [`Surface::decide`](countersign::ledger::Surface::decide) does every other
//! check. Here each of its results gets a status and a word.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawPathParams, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Visitor};
use super::body::Sent;
use super::granting::{self, Wanted};
use super::json::set;
use super::refused::{ApiError, ApiReply};
use countersign::args::Args;
use countersign::deferred::{Answer, Unapprovable};
use countersign::ledger::{Approver, AskRecord, AskState, Decided, GrantOutcome, Presented};

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
) -> Result<AskRecord, ApiError> {
    find_id(app, who, id(params)).await
}

fn id(params: &RawPathParams) -> &str {
    params.iter().find(|(name, _)| *name == "id").map_or("", |(_, id)| id)
}

pub(super) async fn find_id(app: &App, who: &Approver, id: &str) -> Result<AskRecord, ApiError> {
    app.surface.find(who, id).await?.ok_or_else(ApiError::unknown_ask)
}

/// Takes one decision. Of several decisions the first counts, and the response to the others names it.
pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    params: RawPathParams,
    Sent(decision): Sent<PostedDecision>,
) -> ApiReply {
    let (PostedDecision::Approve { by, .. } | PostedDecision::Deny { by, .. }) = &decision;
    is_still(&app, &who, by.as_deref())?;
    let id = id(&params);
    let (shown, answer, wanted) = match decision {
        PostedDecision::Approve { args: Some(_), grant: Some(_), .. } => {
            let problem = "A grant is for the arguments as they were asked about.";
            return Err(ApiError::bad("bad_request", problem));
        }
        PostedDecision::Approve { fingerprint, args, grant, .. } => {
            let args = args.map(|args| edited(&args)).transpose()?;
            (Presented::whole(id, fingerprint), Answer::Approve { args }, grant)
        }
        PostedDecision::Deny { fingerprint, message, .. } => {
            (Presented::whole(id, fingerprint), Answer::Deny { message }, None)
        }
    };
    let granted = match wanted {
        Some(wanted) => Some(granting::wanted(&find_id(&app, &who, id).await?, &wanted)?),
        None => None,
    };
    let mut result = take(&app, &who, &shown, answer).await;
    if let (Ok(result), Some(grant)) = (&mut result, granted) {
        // A request that is sent again makes no second grant.
        let outcome = match result["again"] == true {
            true => GrantOutcome::DecidedBefore,
            false => grant.make(&app.ledger, who.name()).await,
        };
        set(result, "grant", outcome.shown());
    }
    // An ask that this person may not see is told to no one.
    if !result.as_ref().is_err_and(ApiError::is_unknown) {
        tell(&app, &[shown.ask]).await;
    }
    result.map(Json)
}

/// Takes many decisions, one after the other. Each has a result of its own: a refused decision does not affect the
/// others.
///
/// We do not take them together: this way the order in the log is the order on the page, and if the store fails in the
/// middle, there are results for what was decided.
pub(super) async fn decide_many(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
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
        let (shown, answer) = match about {
            About::Approve { id, fingerprint } => {
                (Presented::whole(id, fingerprint), Answer::Approve { args: None })
            }
            About::Deny { id, fingerprint, message } => {
                (Presented::whole(id, fingerprint), Answer::Deny { message })
            }
        };
        let shown = if alone { shown } else { shown.together() };
        let result = take(&app, &who, &shown, answer).await;
        let is_seen = !result.as_ref().is_err_and(ApiError::is_unknown);
        let mut result = result.unwrap_or_else(|refused| refused.body());
        set(&mut result, "id", shown.ask.as_str().into());
        results.push(result);
        if is_seen {
            ids.push(shown.ask);
        }
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
    shown: &Presented,
    answer: Answer,
) -> Result<Value, ApiError> {
    let decided = app.surface.decide(who, shown, answer).await?;
    let forbidden = |problem: &str| ApiError::forbidden("not_allowed", problem);
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
            return Err(forbidden(
                "You may not approve it: others have to. The requester may be excluded, or it may be for certain people.",
            ));
        }
        Decided::BlankName => {
            return Err(forbidden("A name is needed, and not one that begins with `by grant `."));
        }
        Decided::OthersDecide => {
            return Err(forbidden("You may see this call, and not decide it."));
        }
        Decided::Unapprovable(why) => return Err(unapprovable(why)),
        _ => return Err(ApiError::unknown_ask()),
    };
    tracing::info!(ask = shown.ask, by = who.name(), "decided");
    Ok(result)
}

fn unapprovable(why: &Unapprovable) -> ApiError {
    match why {
        Unapprovable::NotAnApproval => {
            let problem = "The call is executed elsewhere: it needs a result, not an approval.";
            ApiError::bad("not_an_approval", problem)
        }
        Unapprovable::Blocked => ApiError::forbidden("blocked", "It must not be approved."),
        Unapprovable::Cut => ApiError::cut(),
        Unapprovable::BadArgs { problem } => {
            ApiError::bad("bad_args", format!("The tool does not take this: {problem}."))
        }
        _ => ApiError::unknown_ask(),
    }
}

/// The edited arguments, which a browser sends as text.
fn edited(args: &str) -> Result<Args, ApiError> {
    Args::parse(args).map_err(|error| ApiError::bad("bad_args", format!("{error}.")))
}

/// Reads these asks again, and notifies the pages and the function of the application
/// ([`Inbox::on_decision`](super::Inbox::on_decision)).
///
/// We read the decision again and do not tell the one that was sent, as another person may have been
/// first.
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
