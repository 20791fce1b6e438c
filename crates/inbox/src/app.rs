//! The state that the handlers of the inbox share.
//!
//! [`Visitor`] is an extractor, so you cannot write a handler that uses a person without naming it. A route that
//! anyone may use is visible by its signature.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures::future::BoxFuture;

use super::authorize_error::AuthorizeError;
use super::past::Past;
use super::public_url::PublicUrl;
use super::refused::ApiError;
use super::session::SecretLogin;
use super::watch::Hub;
use countersign::ledger::{Approver, AskRecord, Ledger, Surface};

pub(super) type Authorize =
    dyn Fn(Parts) -> BoxFuture<'static, Result<Approver, AuthorizeError>> + Send + Sync;
pub(super) type OnDecision = dyn Fn(&AskRecord) + Send + Sync;

/// The state of the router.
pub(super) struct App {
    pub(super) ledger: Ledger,
    /// The same ledger, with the checks around a decision.
    pub(super) surface: Surface,
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
    pub(super) told: Arc<OnDecision>,
    /// The login by a secret, where the inbox has no other one.
    pub(super) secret: Option<Arc<SecretLogin>>,
    pub(super) public_url: Option<PublicUrl>,
}

/// The person who sends a request.
pub(super) struct Visitor(pub(super) Approver);

impl FromRequestParts<Arc<App>> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        (app.settings.authorize)(parts.clone()).await.map(Self).map_err(ApiError::from)
    }
}
