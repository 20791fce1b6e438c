//! The state that the handlers of the inbox share.
//!
//! [`Approver`] is an extractor, so a handler that needs a person cannot be written without one: a route without it is
//! visible in its signature.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures::future::BoxFuture;

use super::approver::{Approver, AuthorizeError};
use super::past::Past;
use super::refused::ApiError;
use super::watch::Hub;
use crate::call::ToolCall;
use crate::ledger::{Ledger, Record};

pub(super) type Authorize =
    dyn Fn(Parts) -> BoxFuture<'static, Result<Approver, AuthorizeError>> + Send + Sync;
pub(super) type CheckEdit = dyn Fn(&ToolCall) -> Result<(), String> + Send + Sync;
pub(super) type OnDecision = dyn Fn(&Record) + Send + Sync;

/// The state of the router.
pub(super) struct App {
    pub(super) ledger: Ledger,
    pub(super) hub: Hub,
    pub(super) past: Past,
    pub(super) settings: InboxSettings,
}

/// The configuration that the handlers read.
pub(super) struct InboxSettings {
    pub(super) authorize: Arc<Authorize>,
    pub(super) hosts: Vec<String>,
    pub(super) title: String,
    pub(super) path: Option<String>,
    pub(super) login: Option<String>,
    pub(super) logout: Option<String>,
    pub(super) links: Vec<(String, String)>,
    pub(super) check: Arc<CheckEdit>,
    pub(super) told: Arc<OnDecision>,
}

impl FromRequestParts<Arc<App>> for Approver {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        (app.settings.authorize)(parts.clone()).await.map_err(ApiError::from)
    }
}
