//! The files of the page, which are compiled into the program.
//!
//! So an inbox has no folder that you have to configure or move, or that others could write to. Every file has the
//! version in its address, and browsers may keep it for a year. They may not keep the page itself, which names the
//! version.

use std::sync::{Arc, LazyLock};

use axum::extract::{OriginalUri, RawPathParams, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use super::app::App;
use super::refused::ApiError;
use countersign::args::hex;

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($name:literal: $kind:expr),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("page/", $name)))),*]
    };
}

/// The name, the content type and the text of each file.
const FILES: &[(&str, &str, &str)] = files! {
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "page.js": SCRIPT,
    "card.js": SCRIPT,
    "list.js": SCRIPT,
    "element.js": SCRIPT,
    "drafts.js": SCRIPT,
    "place.js": SCRIPT,
    "pulse.js": SCRIPT,
    "arming.js": SCRIPT,
    "server.js": SCRIPT,
    "errors.js": SCRIPT,
    "bulk.js": SCRIPT,
    "keys.js": SCRIPT,
    "past.js": SCRIPT,
    "previews.js": SCRIPT,
    "run.js": SCRIPT,
    "seen.js": SCRIPT,
};

const INDEX: &str = include_str!("page/index.html");

/// A digest of all files, by which a page of another version is refused and told to reload.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for text in FILES.iter().map(|(_, _, text)| *text).chain([INDEX, env!("CARGO_PKG_VERSION")]) {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    hex(&digest.finalize()).chars().take(16).collect()
});

/// The version of the page's files.
pub(super) fn version() -> &'static str {
    &VERSION
}

/// The page itself. All its addresses begin with the path of the request.
pub(super) async fn index(State(app): State<Arc<App>>, OriginalUri(uri): OriginalUri) -> Response {
    let base = app.settings.path.as_deref().unwrap_or_else(|| uri.path());
    let text = INDEX
        .replace("{version}", version())
        .replace("{base}", &attribute(base.trim_end_matches('/')))
        .replace("{title}", &attribute(&app.settings.title));
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// One of the files. Its address contains the version, so no page consists of files of two versions.
pub(super) async fn file(params: RawPathParams) -> Result<Response, ApiError> {
    let of = |key: &str| params.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
    let found = FILES.iter().find(|(name, ..)| of("name") == Some(name));
    let found = found.filter(|_| of("version") == Some(version()));
    let missing = || ApiError::new(StatusCode::NOT_FOUND, "not_found", "There is no such file.");
    let (_, kind, text) = found.ok_or_else(missing)?;
    let headers = [(CONTENT_TYPE, *kind), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
    Ok((headers, *text).into_response())
}

/// A text between the quotes of an attribute, or between tags.
///
/// The title and the path come from the configuration, and the path possibly from the request.
fn attribute(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}
