//! Starts runs of the demo's agent: a page, and `POST /api/runs`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use countersign::Agent;
use countersign::agent::RunOutput;
use countersign_inbox::Approver;
use serde::Deserialize;
use serde_json::json;

use crate::login::{authorize, html, script};
use crate::{demo, login};

/// The person who starts a run, and is the requester of its asks.
pub(crate) struct Requester(pub(crate) String);

/// The routes of the demo.
pub(crate) fn router(agent: Agent) -> Router {
    Router::new()
        .route("/demo", get(async || html(include_str!("pages/demo.html"))))
        .route("/demo.js", get(async || script(include_str!("pages/demo.js"))))
        .route("/demo.txt", get(async || demo::PROMPT))
        .route("/api/runs", post(start))
        .with_state(Arc::new(agent))
        .merge(login::router())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRun {
    prompt: Option<String>,
}

/// Starts a run of the demo's agent, for the person who is logged in. Its asks are in the inbox when this returns.
async fn start(
    State(agent): State<Arc<Agent>>,
    parts: Parts,
    Json(NewRun { prompt }): Json<NewRun>,
) -> Response {
    let refused = |status: StatusCode, error: &str, message: &str| {
        (status, Json(json!({"error": error, "message": message}))).into_response()
    };
    let who = match authorize(&parts) {
        Ok(who) => who,
        Err(it) => return refused(StatusCode::UNAUTHORIZED, "unauthenticated", it.message()),
    };
    let prompt = prompt.unwrap_or_else(|| demo::PROMPT.to_owned());
    if let Err(problem) = demo::calls(&prompt) {
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "bad_prompt", &problem);
    }
    // A caller that hangs up drops its request. The run is not dropped with it.
    let running = tokio::spawn(async move { run(&agent, prompt, &who).await });
    match running.await {
        Ok(Some((run, waits))) => {
            (StatusCode::CREATED, Json(json!({"run": run, "waits": waits}))).into_response()
        }
        _ => {
            let problem = "The run has stopped with an error; the server's log says which.";
            refused(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", problem)
        }
    }
}

async fn run(agent: &Agent, prompt: String, who: &Approver) -> Option<(String, bool)> {
    match agent.run(prompt).deps(Requester(who.name().to_owned())).await {
        Ok(run) => {
            let waits = matches!(run.output(), RunOutput::Deferred(_));
            Some((run.run_id().to_owned(), waits))
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a run has stopped at once");
            None
        }
    }
}
