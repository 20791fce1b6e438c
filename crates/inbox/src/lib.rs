//! The inbox: a page, an API and an event stream for [axum], on which people decide the asks of a ledger.
//!
//! ```no_run
//! use axum::Router;
//! use countersign_inbox::{Approver, AuthorizeError, Inbox};
//! use countersign::ledger::Ledger;
//!
//! # async fn example(ledger: Ledger) -> std::io::Result<()> {
//! let inbox = Inbox::new(ledger, async |parts| {
//!     // Identify the person by a session, a token, or a header that a proxy sets.
//!     let name = parts.headers.get("x-user").and_then(|name| name.to_str().ok());
//!     name.map(Approver::new).ok_or_else(|| AuthorizeError::unauthorized("log in first"))
//! });
//! let app = Router::new().nest_service("/inbox", inbox.into_router());
//! axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8080").await?, app).await
//! # }
//! ```
//!
//! # Routes
//!
//! A call is the `view` of an ask: a [`CallView`](countersign::show::CallView) as JSON, with its arguments, questions and
//! previews, all of it safe to show as text. Where `left_out` is true, the whole of it is at `GET /api/asks/{id}`, and has to
//! be shown before the call is approved; where `brief` is false, its `headline` is not all of it.
//!
//! | request | does |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /api/asks?limit=&after=&since=&q=&agent=&tool=&run=&requester=&sort=&group=` | the pending asks that the principal may see, a page of `limit` entries behind the place `after`. `sort` is `due` (the default: the soonest deadline first, ten entries of each requester before the eleventh of any other), `oldest` or `newest`; `group=run` keeps the entries of a run together. Equal calls of a run are one entry (`same`). With the `total`, the number that `match`, the `next` place, and how many are `newer` than `since`, the `latest` of an earlier answer; and the rows that are `refused`, as they were changed outside of the ledger |
//! | `GET /api/asks/{id}` | one of them, with its arguments as JSON; nothing of them is masked or left out; with the grants that can be made with its approval (`offers`), each for one hour and for 12 hours |
//! | `POST /api/asks/{id}/decision` | `{"verdict": "approve", "fingerprint", "args"?, "by"?, "grant"?: {"scope": "session" or "project", "pattern"?, "seconds"?}}` or `{"verdict": "deny", "fingerprint", "message", "by"?}`; `args` is the text of an object. `200` with `won`, or with `recorded` while others have to agree |
//! | `POST /api/states` | `{"asks": {id: changed_at}}`: those of at most 500 asks that have changed since |
//! | `POST /api/decisions` | `{"decisions": [{"id", "verdict", …}], "by"?}`: at most 500 decisions, each bound to its own fingerprint; the answer has a `result` for each |
//! | `GET /api/history?limit=&after=&q=&from=&to=&who=&answer=` | settled asks, the latest first: the decision, the deciders, the reasons and the outcome |
//! | `GET /api/runs/{run}` | the conversation of a run, if the ledger stores it, and its asks |
//! | `GET /api/numbers?days=` | how many are pending, how long decisions took (p50, p95), how many were denials |
//! | `POST /api/verify`, `GET /api/export` | verifies the log; the log as lines of JSON. For approvers who may [audit](Approver::with_audit) |
//! | `GET /api/changes` | server-sent events: something has changed, look again |
//! | `GET /api/me` | the principal's name, and what the page is configured with |
//! | `POST /api/session` | `{"secret"}`: exchanges the secret of [`Inbox::with_secret`] for a cookie and `{"name", "session"}`. Later requests send both, the second in the header `countersign-session` |
//! | `GET /api/alive` | nothing: `204`, as long as the server answers |
//!
//! An error is `{"error": word, "message": sentence}`:
//!
//! | status | words |
//! |---|---|
//! | `400` | `bad_json`, `unreadable` |
//! | `401`, `403`, … | `unauthenticated`, `forbidden`: as [`AuthorizeError`] says |
//! | `403` | `wrong_host`, `wrong_origin`, `wrong_person` (another one is logged in than the page shows), `not_allowed` (the requester may not approve the call, others have to, or the principal may not decide it), `blocked` |
//! | `404` | `unknown_ask`, `unknown_run`, `not_found` |
//! | `405` | `wrong_method` |
//! | `409` | `already_decided`, with the `winner`: who, what and when |
//! | `410` | `expired`, `cancelled` |
//! | `412` | `other_version`: the page is of another version than the server |
//! | `413`, `415` | `too_large`, `not_json` |
//! | `422` | `mismatch` (the fingerprint is of something else), `cut` (a preview of it is too long to be stored in full: it is approved only by itself), `bad_args`, `bad_request`, `not_an_approval`, `cannot_be_kept` |
//! | `500`, `503` | `changed`, `store` |
//!
//! **A click only decides.** When the page says that you have decided, the ledger has the decision. A worker, here
//! or in another process, resumes the run. Of several clicks the first counts, and the response to the others
//! names it.
//!
//! **Other sites cannot decide.** Changes need a JSON content type, and the origin of the page; [`Inbox::hosts`]
//! refuses requests to other names. The page loads nothing from elsewhere and has no inline script
//! (`Content-Security-Policy`), and every text of a call is put into text nodes.
//!
//! **An ask has an address**, `ADDRESS/#ask=ID` ([`PublicUrl::ask`]). It decides nothing, and has no secret.
//!
//! `docs/inbox.md` says how you deploy it: behind a proxy that logs people in, with sessions, with
//! TLS, and with several instances over PostgreSQL.
//!
//! [axum]: https://docs.rs/axum

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod app;
mod authorize_error;
mod board;
mod body;
mod config;
mod decide;
mod entry;
mod files;
mod granting;
mod guard;
mod history;
mod json;
mod log;
mod notice;
mod numbers;
mod past;
mod public_url;
mod query;
mod refused;
mod run;
mod session;
mod view;
mod watch;
mod webhook;
mod webhook_form;

pub use authorize_error::AuthorizeError;
pub use config::Inbox;
pub use countersign::ledger::Approver;
pub use public_url::{PublicUrl, PublicUrlError};
pub use webhook::{Webhook, WebhookError};
pub use webhook_form::WebhookForm;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
