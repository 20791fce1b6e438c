//! The routes of the API, for the page and for other programs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Query, RawPathParams, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use futures::{FutureExt as _, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::app::{App, Visitor};
use super::body::{MOST_BYTES, Sent};
use super::decide::{decide, decide_many, find, find_id};
use super::entry::arranged;
use super::json::set;
use super::log::{export, verify};
use super::query::{ListQuery, offered};
use super::refused::{ApiError, ApiReply};
use super::view::{self, Looker};
use super::{files, guard, history, numbers, run};
use countersign::ledger::{Approver, Millis};

/// The interval of keep-alive comments on an event stream.
///
/// Proxies close a connection that is silent for half a minute or so. The page would then think that the server is
/// gone.
const ALIVE: Duration = Duration::from_secs(15);

/// The largest number of asks in one request for their states.
const MOST_KNOWN: usize = 500;

/// The router of the inbox, with all routes.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(files::index))
        .route("/files/{version}/{name}", get(files::file))
        .route("/api/alive", get(async || StatusCode::NO_CONTENT))
        .route("/api/me", get(me))
        .route("/api/session", post(exchange))
        .route("/api/asks", get(pending))
        .route("/api/states", post(states))
        .route("/api/asks/{id}", get(one))
        .route("/api/asks/{id}/decision", post(decide))
        .route("/api/decisions", post(decide_many))
        .route("/api/history", get(history::history))
        .route("/api/numbers", get(numbers::numbers))
        .route("/api/runs/{run}", get(run::run))
        .route("/api/verify", post(verify))
        .route("/api/export", get(export))
        .route("/api/changes", get(changes))
        .fallback(async || {
            ApiError::new(StatusCode::NOT_FOUND, "not_found", "There is no such page.")
        })
        .method_not_allowed_fallback(async || {
            let problem = "Not with this method.";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", problem)
        })
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

/// The principal that is logged in, and the configuration of the page.
///
/// The only route that answers a person who is not logged in. Such a person gets only the way to the
/// login.
async fn me(
    State(app): State<Arc<App>>,
    who: Result<Visitor, ApiError>,
) -> Result<Json<Value>, ApiError> {
    let settings = &app.settings;
    let who = match who {
        Ok(Visitor(who)) => Some(who),
        Err(refused) if refused.is_unauthenticated() => None,
        Err(refused) => return Err(refused),
    };
    let links: Vec<_> =
        settings.links.iter().map(|(label, url)| json!({"label": label, "url": url})).collect();
    Ok(Json(json!({
        "name": who.as_ref().map(Approver::name),
        "note": who.as_ref().and_then(Approver::note),
        "audits": who.is_some_and(|who| who.audits()),
        "login": settings.login,
        "logout": settings.logout,
        "links": links,
        "secret": settings.secret.is_some(),
        "version": files::version(),
    })))
}

/// The body of an exchange.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    secret: String,
}

/// Exchanges the secret for a session. [The guard](guard) has checked the request like every change: it is JSON, and comes
/// from the page itself.
async fn exchange(
    State(app): State<Arc<App>>,
    Sent(sent): Sent<Exchange>,
) -> Result<Response, ApiError> {
    let missing = || ApiError::new(StatusCode::NOT_FOUND, "not_found", "There is no such page.");
    let login = app.settings.secret.as_ref().ok_or_else(missing)?;
    let (cookie, token) = login.exchange(&sent.secret, app.settings.public_url.as_ref())?;
    let reply = Json(json!({"name": login.name(), "session": token}));
    Ok(([(SET_COOKIE, cookie)], reply).into_response())
}

/// A page of the pending asks with their number, and the rows that no one can decide because they were changed outside
/// of the ledger.
///
/// We count only what the principal may see: neither the total nor the values of the filters tell that there is more.
/// Rows that were changed outside of the ledger have no readable owner. So we tell everyone that there are some, and
/// nothing of what they say (rule L8).
async fn pending(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> ApiReply {
    let wrong = |_| ApiError::bad("bad_request", "The query has another field or value.");
    let Query(query) = query.map_err(wrong)?;
    let after = query.after()?;
    app.hub.begin();
    let board = app.hub.board().await?;
    let seen: Vec<_> = board.items.iter().filter(|it| who.sees(&it.record)).cloned().collect();
    let latest = seen.iter().map(|it| it.record.parked_at).max();
    let matching = query.matching(&app.ledger, &seen)?;
    let newer = |since| matching.iter().filter(|it| it.record.parked_at > since).count();
    let (newer, matches) = (query.since.map_or(0, newer), matching.len());
    let mut entries = arranged(matching, query.sort, query.by_run());
    let groups = entries.len();
    if let Some(after) = &after {
        entries.retain(|entry| entry.place > *after);
    }
    let more = entries.len() > query.limit();
    entries.truncate(query.limit());
    let next = entries.last().filter(|_| more).map(|last| last.place.to_string());
    let looker = Looker::new(&app.ledger, &who).await?;
    let asks: Vec<_> = entries.iter().map(|entry| looker.entry(entry)).collect();
    let refused: Vec<_> = board.refused.iter().map(|row| view::refused(row)).collect();
    Ok(Json(json!({
        "me": who.name(), "asks": asks, "refused": refused, "next": next, "total": seen.len(),
        "matches": matches, "entries": groups, "newer": newer, "latest": latest,
        "now": looker.now(),
        "filters": after.is_none().then(|| offered(&seen)),
    })))
}

/// The asks that a client knows, each with the time of its last change, if the client has one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    asks: HashMap<String, Option<Millis>>,
}

/// The asks among these that have changed since the client read them.
///
/// The page sends what it shows, and gets what has changed. If it fetched the list anew, the list would move under the
/// hand of a person who is about to press a button.
async fn states(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    Sent(known): Sent<Known>,
) -> ApiReply {
    if known.asks.len() > MOST_KNOWN {
        let problem = format!("A request has at most {MOST_KNOWN} asks.");
        return Err(ApiError::bad("bad_request", problem));
    }
    let board = app.hub.board().await?;
    let pending: HashMap<_, _> =
        board.items.iter().map(|it| (it.record.ask.id(), it.record.changed_at)).collect();
    let looker = Looker::new(&app.ledger, &who).await?;
    let mut changed = Vec::new();
    for (id, at) in &known.asks {
        let now = pending.get(id.as_str());
        if now.is_some_and(|now| at.is_none_or(|at| at == *now)) {
            continue;
        }
        match find_id(&app, &who, id).await {
            Ok(record) => changed.push(looker.ask(&record)),
            Err(refused) => {
                let mut body = refused.body();
                set(&mut body, "id", id.as_str().into());
                changed.push(body);
            }
        }
    }
    Ok(Json(json!({"changed": changed})))
}

async fn one(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    params: RawPathParams,
) -> ApiReply {
    let record = find(&app, &who, &params).await?;
    Ok(Json(Looker::new(&app.ledger, &who).await?.whole(&record)))
}

/// Sends a server-sent event for each change, as long as the client listens.
///
/// An event carries nothing: the page looks again, with the rights of its person. So a person who may not see an ask
/// learns only that something happened.
///
/// At each event we authorize the listener again, so a new secret ends open streams, too.
async fn changes(State(app): State<Arc<App>>, _: Visitor, parts: Parts) -> Response {
    app.hub.begin();
    let authorize = Arc::clone(&app.settings.authorize);
    let listener = (app.hub.listen(), app.hub.stopping(), authorize, parts);
    let events = stream::unfold(listener, async |(mut bell, mut stop, authorize, parts)| {
        // Open connections would keep the server from stopping.
        if *stop.borrow_and_update() {
            return None;
        }
        let line = futures::select_biased! {
            stopped = stop.changed().fuse() => { stopped.ok()?; return None; }
            rung = bell.changed().fuse() => { rung.ok()?; "data: changed\n\n" }
            () = sleep(ALIVE).fuse() => ":\n\n",
        };
        authorize(parts.clone()).await.ok()?;
        let line = Ok::<_, Infallible>(Bytes::from_static(line.as_bytes()));
        Some((line, (bell, stop, authorize, parts)))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (axum::http::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}
