//! What every handler of the inbox needs.
//!
//! [`Principal`] is an extractor, so a handler that needs a person cannot be written without one: a route without it is
//! visible in its signature.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures::future::BoxFuture;

use super::past::Past;
use super::principal::{Principal, Rejection};
use super::refused::Refused;
use super::watch::Hub;
use crate::args::Args;
use crate::ledger::{Ledger, Record};

pub(super) type Authorize =
    dyn Fn(Parts) -> BoxFuture<'static, Result<Principal, Rejection>> + Send + Sync;
pub(super) type Check = dyn Fn(&str, &Args) -> Result<(), String> + Send + Sync;
pub(super) type Told = dyn Fn(&Record) + Send + Sync;

/// The state of the router.
pub(super) struct App {
    pub(super) ledger: Ledger,
    pub(super) hub: Hub,
    pub(super) past: Past,
    pub(super) settings: Settings,
}

/// What the handlers need of the configuration.
pub(super) struct Settings {
    pub(super) authorize: Arc<Authorize>,
    pub(super) hosts: Vec<String>,
    pub(super) title: String,
    pub(super) path: Option<String>,
    pub(super) login: Option<String>,
    pub(super) logout: Option<String>,
    pub(super) links: Vec<(String, String)>,
    pub(super) check: Arc<Check>,
    pub(super) told: Arc<Told>,
}

impl FromRequestParts<Arc<App>> for Principal {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refused> {
        (app.settings.authorize)(parts.clone()).await.map_err(Refused::from)
    }
}
