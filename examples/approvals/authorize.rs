//! Who sends a request. **This is the file to replace**: the demo asks for a name and believes it.

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::response::{AppendHeaders, IntoResponse};
use serde::Deserialize;
use serde_json::json;

use crate::App;
use crate::refused::Refused;
use crate::sent::Sent;

/// Whoever is logged in: who starts runs, and who decides.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Principal(pub(crate) String);

/// Who sends this request: every handler that takes a [`Principal`] comes through here. Put your own in its place: look
/// up a session, check a token, or take the name that a proxy in front has proved. Whoever may not decide at all is
/// refused here; who may not decide about one ask, in [`decide`](crate::api::decide).
pub(crate) async fn authorize(request: &Parts) -> Result<Principal, Refused> {
    // The demo: a name in a cookie, which anybody can write.
    let cookies = request.headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|it| it.split_once('='));
    let name = cookies.find(|(key, _)| key.trim() == COOKIE_NAME).map(|(_, name)| name.trim());
    name.and_then(principal).ok_or_else(Refused::unauthenticated)
}

impl FromRequestParts<Arc<App>> for Principal {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Refused> {
        authorize(parts).await
    }
}

const COOKIE_NAME: &str = "approvals_demo_name";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    name: String,
}

/// The demo's login. Behind a real `authorize` there is none, or a real one.
pub(crate) async fn login(Sent(login): Sent<Login>) -> Result<impl IntoResponse, Refused> {
    let Some(Principal(name)) = principal(&login.name) else {
        let rule = "A name here has 1 to 32 letters, digits, dots, dashes or underscores.";
        return Err(Refused::bad("bad_name", rule));
    };
    // No other site gets it sent, and no script reads it. Behind HTTPS add `Secure`.
    let cookie = format!("{COOKIE_NAME}={name}; Path=/; HttpOnly; SameSite=Strict");
    Ok((AppendHeaders([(SET_COOKIE, cookie)]), Json(json!({"name": name}))))
}

pub(crate) async fn logout() -> impl IntoResponse {
    let cookie = format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    (AppendHeaders([(SET_COOKIE, cookie)]), Json(json!({})))
}

fn principal(name: &str) -> Option<Principal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    ((1..=32).contains(&name.len()) && name.chars().all(fits)).then(|| Principal(name.to_owned()))
}
