//! The checks of every request: the host it was sent to, the site it comes from, its content type, and the version of
//! the page that sent it (rule S14).
//!
//! | attack | what stops it |
//! |---|---|
//! | a page of another site posts a form | forms cannot send `application/json` without asking first, and nothing answers that question |
//! | it posts with `fetch` and no CORS | `Origin` and `Sec-Fetch-Site` are of another site |
//! | its name points to this machine (DNS rebinding) | `Host` is not among the configured names |
//! | it shows the inbox in a frame, under its own buttons | `frame-ancestors 'none'` |
//! | a text of a call is markup | no inline script, no HTML from text (`require-trusted-types-for`) |
//! | a page of before an update means something else | its version is compared before it changes anything |
//!
//! A header that is there twice counts as absent: we do not know which one a proxy in front has looked
//! at.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::files::version as version_of_page;
use super::refused::ApiError;

/// Allows only resources of this server; no plug-ins, no frames, no forms, no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The header with the version of the page.
const PAGE: &str = "countersign-page";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Checks a request before any handler, and sets the headers of its response.
///
/// Refusals have the headers, too: a page of an error is a page.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match check(&app.settings.hosts, request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    for (name, value) in HEADERS {
        // A file of the page never changes under its address, so browsers may cache it.
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn check(hosts: &[String], method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    // A page of another site whose name points to this machine (DNS rebinding) sends that name.
    let host = one(headers, &HOST).unwrap_or_default().to_ascii_lowercase();
    if !hosts.is_empty() && !hosts.contains(&host) {
        let problem = "This server is not configured for that name in `Host`.";
        return Err(ApiError::forbidden("wrong_host", problem));
    }
    // These methods change nothing.
    if [Method::GET, Method::HEAD].contains(method) {
        return Ok(());
    }
    // Browsers say which page sends a request; programs say nothing.
    let from_here = |origin: &str| {
        let (_, named) = origin.split_once("://").unwrap_or_default();
        let named = named.to_ascii_lowercase();
        // A proxy may forward another host than the one by which browsers reach the page.
        ["http://", "https://"].iter().any(|scheme| origin.starts_with(scheme))
            && (named == host || hosts.contains(&named))
    };
    let foreign = |origin: &HeaderValue| !origin.to_str().is_ok_and(from_here);
    let elsewhere = |site: &HeaderValue| site != "same-origin";
    if headers.get_all(ORIGIN).iter().any(foreign)
        || headers.get_all("sec-fetch-site").iter().any(elsewhere)
    {
        let problem = "Only this server's own pages may change anything.";
        return Err(ApiError::forbidden("wrong_origin", problem));
    }
    // In a page of another version the same fields may have another meaning.
    if headers.get(PAGE).is_some_and(|version| version != version_of_page()) {
        let problem = "The server has another version than this page. Nothing was decided: load the page again.";
        return Err(ApiError::new(StatusCode::PRECONDITION_FAILED, "other_version", problem));
    }
    // A form of another site can be sent without a preflight request, but never as JSON.
    let kind = one(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let problem = "Send JSON, with `Content-Type: application/json`.";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", problem));
    }
    Ok(())
}

/// The value of a header that occurs once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}
