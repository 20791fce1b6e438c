//! The page: static files, compiled in.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::routing::get;

use crate::App;

type File = ([(HeaderName, &'static str); 1], &'static str);

fn file(kind: &'static str, text: &'static str) -> File {
    ([(CONTENT_TYPE, kind)], text)
}

fn script(text: &'static str) -> File {
    file("text/javascript; charset=utf-8", text)
}

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(async || file("text/html; charset=utf-8", include_str!("page/index.html"))))
        .route(
            "/page.css",
            get(async || file("text/css; charset=utf-8", include_str!("page/page.css"))),
        )
        .route("/page.js", get(async || script(include_str!("page/page.js"))))
        .route("/card.js", get(async || script(include_str!("page/card.js"))))
        .route("/list.js", get(async || script(include_str!("page/list.js"))))
        .route("/element.js", get(async || script(include_str!("page/element.js"))))
        .route("/drafts.js", get(async || script(include_str!("page/drafts.js"))))
        .route("/pulse.js", get(async || script(include_str!("page/pulse.js"))))
        .route("/arming.js", get(async || script(include_str!("page/arming.js"))))
        .route("/icon.svg", get(async || file("image/svg+xml", include_str!("page/icon.svg"))))
}
