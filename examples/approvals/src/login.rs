//! The login of the demo: it asks for a name, and believes it. **This is the file to replace**: behind a proxy that logs
//! people in, or with sessions, there is none of this.

use axum::http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use countersign_inbox::{Approver, AuthorizeError};
use serde::Deserialize;
use serde_json::json;

const COOKIE_NAME: &str = "approvals_demo_name";

/// The principal of a request: the hook of the inbox. Look up a session here, check a token, or take the name that a
/// proxy in front has verified.
///
/// # Errors
/// Those who may not use the inbox at all are rejected here.
pub(crate) fn authorize(request: &Parts) -> Result<Approver, AuthorizeError> {
    // The demo: a name in a cookie, which any client can set.
    let cookies = request.headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|it| it.split_once('='));
    let name = cookies.find(|(key, _)| key.trim() == COOKIE_NAME).map(|(_, name)| name.trim());
    let name = name.filter(|name| is_name(name));
    name.map(Approver::new).ok_or_else(|| AuthorizeError::unauthorized("Say who you are first."))
}

/// The routes of the login.
pub(crate) fn router() -> Router {
    let page = || html(include_str!("pages/login.html"));
    Router::new()
        .route("/login", get(async move || page()))
        .route("/login.js", get(async || script(include_str!("pages/login.js"))))
        .route("/api/login", post(login))
        .route("/logout", get(logout))
        // Browsers ask for it on pages without an icon.
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT))
}

pub(crate) fn html(text: &'static str) -> Response {
    file("text/html; charset=utf-8", text)
}

pub(crate) fn script(text: &'static str) -> Response {
    file("text/javascript; charset=utf-8", text)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let policy = (HeaderName::from_static("content-security-policy"), policy);
    ([(CONTENT_TYPE, kind), policy], text).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    name: String,
}

async fn login(Json(login): Json<Login>) -> Response {
    if !is_name(&login.name) {
        let rule = "A name here has 1 to 32 letters, digits, dots, dashes or underscores.";
        let refused = Json(json!({"error": "bad_name", "message": rule}));
        return (StatusCode::UNPROCESSABLE_ENTITY, refused).into_response();
    }
    // No other site gets it sent, and no script reads it. Behind HTTPS add `Secure`.
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", login.name);
    (AppendHeaders([(SET_COOKIE, cookie)]), Json(json!({"name": login.name}))).into_response()
}

async fn logout() -> impl IntoResponse {
    let cookie = format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    (AppendHeaders([(SET_COOKIE, cookie)]), html(include_str!("pages/login.html")))
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=32).contains(&name.len()) && name.chars().all(fits)
}
