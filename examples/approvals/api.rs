//! What the page and other programs ask of the server. `main.rs` has the table.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use countersign::Args;
use countersign::agent::RunOutput;
use countersign::deferred::Answer;
use countersign::ledger::{AskState, Decided, Listed, Record};
use countersign::outcome::DeferralKind;
use futures::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::authorize::{Principal, login, logout};
use crate::queue::{Place, queue};
use crate::refused::Refused;
use crate::sent::{MOST_BYTES, Sent};
use crate::view::{self, Looker};
use crate::{App, demo, guard, page};

/// How many entries a page has, when the request does not say.
const PAGE: usize = 50;
/// How many entries a page has at most.
const MOST: usize = 500;
/// How many of the newest asks are looked through for the latest decisions.
const LOOK_THROUGH: u32 = 500;

type Reply = Result<Json<Value>, Refused>;

/// The whole service. Put it into your own router, below what your own `authorize` needs.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(page::router())
        .route("/healthz", get(healthz))
        // What a page asks again and again, to see whether the server is there.
        .route("/api/alive", get(async || StatusCode::NO_CONTENT))
        .route("/api/me", get(me))
        .route("/api/login", post(login))
        .route("/api/logout", post(logout))
        .route("/api/asks", get(waiting))
        .route("/api/asks/{id}", get(one))
        .route("/api/asks/{id}/decision", post(decide))
        .route("/api/history", get(history))
        .route("/api/runs", post(start))
        .route("/api/changes", get(changes))
        .fallback(async || {
            Refused::new(StatusCode::NOT_FOUND, "not_found", "There is no such page.")
        })
        .method_not_allowed_fallback(async || {
            let problem = "Not with this method.";
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", problem)
        })
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

/// Whether the store answers.
async fn healthz(State(app): State<Arc<App>>) -> Reply {
    let _: Listed<Record> = app.ledger.list(Some(AskState::Pending), 1).await?;
    Ok(Json(json!({"status": "ok"})))
}

/// Who is logged in, if anybody is.
async fn me(who: Result<Principal, Refused>) -> Json<Value> {
    let name = who.map(|Principal(name)| name).ok();
    Json(json!({"name": name, "prompt": demo::PROMPT}))
}

/// Which part of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// So many entries.
    limit: Option<usize>,
    /// Behind this place, the `next` of an earlier answer.
    after: Option<String>,
    /// The `latest` of an earlier answer: how many asks are newer?
    since: Option<i64>,
}

/// The open asks in the order of [`queue`], a page of them, and how many there are; and those that nobody can decide, as
/// their rows were changed outside of the ledger.
async fn waiting(
    State(app): State<Arc<App>>,
    who: Principal,
    part: Result<Query<Part>, QueryRejection>,
) -> Reply {
    let wrong = |problem: &str| Refused::bad("bad_request", format!("{problem}."));
    let Query(part) = part.map_err(|_| wrong("This list takes `limit`, `after` and `since`"))?;
    let after: Option<Place> = part.after.map(|it| it.parse().map_err(wrong)).transpose()?;
    let Listed { records, refused } = app.ledger.list(Some(AskState::Pending), u32::MAX).await?;
    let total = records.len();
    let latest = records.iter().map(|record| record.parked_at).max();
    let newer = |since| records.iter().filter(|record| record.parked_at > since).count();
    let newer = part.since.map_or(0, newer);
    let mut entries = queue(&app.ledger, records);
    if let Some(after) = after {
        entries.retain(|entry| entry.place > after);
    }
    let limit = part.limit.unwrap_or(PAGE).clamp(1, MOST);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| more).map(|last| last.place.to_string());
    let looker = Looker::new(&app.ledger, &who).await?;
    let asks: Vec<_> = entries.iter().map(|entry| looker.entry(entry)).collect();
    let refused: Vec<_> = refused.iter().map(view::refused).collect();
    Ok(Json(json!({
        "me": who.0, "asks": asks, "refused": refused, "next": next, "total": total,
        "newer": newer, "latest": latest, "now": looker.now(),
    })))
}

/// What was decided, the latest first.
async fn history(State(app): State<Arc<App>>, who: Principal) -> Reply {
    let mut asks = app.ledger.list(None, LOOK_THROUGH).await?.records;
    asks.retain(|record| record.state != AskState::Pending);
    asks.sort_by_key(|record| std::cmp::Reverse(record.changed_at));
    let looker = Looker::new(&app.ledger, &who).await?;
    let asks: Vec<_> = asks.iter().take(50).map(|record| looker.ask(record)).collect();
    Ok(Json(json!({"asks": asks, "now": looker.now()})))
}

async fn one(State(app): State<Arc<App>>, who: Principal, Path(id): Path<String>) -> Reply {
    let record = find(&app, &id).await?;
    Ok(Json(Looker::new(&app.ledger, &who).await?.whole(&record)))
}

async fn find(app: &App, id: &str) -> Result<Record, Refused> {
    // What is no id is not even looked up.
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Refused::unknown_ask());
    }
    app.ledger.get(id).await?.ok_or_else(Refused::unknown_ask)
}

/// A decision about what was shown: the fingerprint says what that was. A page says whom it shows as deciding, as
/// somebody else may have logged in beside it.
#[derive(Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Decision {
    /// Other arguments are a text, so that no digit of a number is lost on the way.
    Approve {
        fingerprint: String,
        args: Option<String>,
        by: Option<String>,
    },
    Deny {
        fingerprint: String,
        message: String,
        by: Option<String>,
    },
}

/// Takes one decision. Of several the first counts; everybody else is told which one it was.
pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    Principal(name): Principal,
    Path(id): Path<String>,
    Sent(decision): Sent<Decision>,
) -> Reply {
    let (Decision::Approve { by, .. } | Decision::Deny { by, .. }) = &decision;
    let is_else = |by: &String| app.ledger.canonical_name(by) != app.ledger.canonical_name(&name);
    if by.as_ref().is_some_and(is_else) {
        let problem = format!("You are {name} by now: somebody has logged in beside this page.");
        return Err(Refused::forbidden("somebody_else", problem));
    }
    let record = find(&app, &id).await?;
    let (fingerprint, answer) = match decision {
        Decision::Approve { fingerprint, args, .. } => {
            let args = may_approve(&record, args.as_deref())?;
            (fingerprint, Answer::Approve { args })
        }
        Decision::Deny { fingerprint, message, .. } => (fingerprint, Answer::Deny { message }),
    };
    let decided = app.ledger.decide(&id, &fingerprint, &name, answer).await?;
    let result = match &decided {
        Decided::Won { .. } | Decided::Recorded { .. } => json!(decided),
        Decided::Lost(winner) => return Err(Refused::lost(winner)),
        Decided::Expired => {
            return Err(Refused::gone("expired", "Too late: its time is over. It does not run."));
        }
        Decided::Cancelled => {
            return Err(Refused::gone("cancelled", "It was withdrawn. It does not run."));
        }
        Decided::Mismatch { .. } => {
            let problem = "What waits is not what you were shown. Look again.";
            return Err(Refused::bad("mismatch", problem));
        }
        Decided::NotAllowed => {
            let problem = "Whoever wants it may not approve it: others have to.";
            return Err(Refused::forbidden("not_allowed", problem));
        }
        Decided::BlankName => return Err(Refused::forbidden("not_allowed", "A name is needed.")),
        _ => return Err(Refused::unknown_ask()),
    };
    tracing::info!(ask = id, by = name, "decided");
    app.bell.ring();
    Ok(Json(result))
}

/// What can be known to be wrong before it is decided: afterwards it is too late. Gives the changed arguments.
fn may_approve(record: &Record, args: Option<&str>) -> Result<Option<Args>, Refused> {
    let requests = record.ask.requests();
    let Some(call) = requests.iter().next() else { return Err(Refused::unknown_ask()) };
    if requests.kind(call.id()) != Some(DeferralKind::Approval) {
        let problem = "It is executed elsewhere, and waits for a result, not for an approval.";
        return Err(Refused::bad("not_an_approval", problem));
    }
    if requests.is_blocked(call.id()) {
        return Err(Refused::forbidden("blocked", "It must not be approved, by nobody."));
    }
    let Some(args) = args else { return Ok(None) };
    let args = Args::parse(args).map_err(|error| Refused::bad("bad_args", format!("{error}.")))?;
    demo::check(record.ask.tool(), &args).map_err(|problem| {
        Refused::bad("bad_args", format!("The tool does not take this: {problem}."))
    })?;
    Ok(Some(args))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRun {
    prompt: Option<String>,
}

/// Starts a run of the demo's agent, for whoever is logged in. What it asks is in the inbox when this returns.
async fn start(
    State(app): State<Arc<App>>,
    who: Principal,
    Sent(NewRun { prompt }): Sent<NewRun>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let prompt = prompt.unwrap_or_else(|| demo::PROMPT.to_owned());
    demo::calls(&prompt).map_err(|problem| Refused::bad("bad_prompt", problem))?;
    // A caller that hangs up drops its request. The run is not dropped with it.
    let running = tokio::spawn(async move {
        let ended = app.agent.run(prompt).deps(who).await;
        app.bell.ring();
        ended
    });
    let failed = || {
        let problem = "The run has stopped with an error; the server's log says which.";
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", problem)
    };
    let run = running.await.map_err(|_| failed())?.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "a run has stopped at once");
        failed()
    })?;
    let waits = matches!(run.output(), RunOutput::Deferred(_));
    Ok((StatusCode::CREATED, Json(json!({"run": run.run_id(), "waits": waits}))))
}

/// Says that something has changed, as server-sent events, as long as somebody listens.
async fn changes(
    State(app): State<Arc<App>>,
    _: Principal,
) -> Sse<impl Stream<Item = Result<Event, std::convert::Infallible>>> {
    let listeners = (app.bell.listen(), app.stop.clone());
    let events = stream::unfold(listeners, async |(mut bell, mut stop)| {
        if *stop.borrow() {
            return None;
        }
        tokio::select! {
            rung = bell.changed() => rung.ok()?,
            // Open connections would keep the server from stopping.
            _ = stop.changed() => return None,
        }
        Some((Ok(Event::default().data("changed")), (bell, stop)))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
