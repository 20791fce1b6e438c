//! The service: the workflow and the asks, served to Restate's server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use countersign::ledger::{Ask, Ledger};
use countersign::{BoxError, Turn};
use countersign_sqlite::SqliteStore;
use restate_sdk::prelude::{Endpoint, HttpServer};
use tokio::net::TcpListener;

use crate::agent::tools;
use crate::asks::{AskObject, watch};
use crate::run::RunWorkflow;
use crate::steps::{Step, Steps};

/// The settings of the service.
#[derive(Args)]
pub(crate) struct Options {
    /// Where the ledger is: `sqlite:PATH`, or `postgres://…` in a build with the feature.
    #[arg(long, value_name = "URL", default_value = "sqlite:restate.db")]
    store: String,
    /// Where the server of Restate reaches this service.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// Where the server of Restate takes requests.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    ingress: String,
    /// The file that the steps of the runs are written to, and the effects of the tools.
    #[arg(long, value_name = "PATH", default_value = "restate-steps.jsonl")]
    steps: PathBuf,
    /// How long a call may be pending.
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    deadline_s: Duration,
    /// How long the claim of a process that has died keeps its call.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    lease_s: Duration,
    /// The version of the stack. A run that was begun by another one is refused.
    #[arg(long, value_name = "NAME", default_value = "1")]
    stack_version: String,
    /// Stays in this step for ever, so that the process can be killed in it.
    #[arg(long, value_name = "STEP")]
    stop_at: Option<Step>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "it is not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Serves until the process ends.
pub(crate) async fn serve(options: Options) -> Result<(), BoxError> {
    let deadline = options.deadline_s;
    let ledger = open(&options.store).await?.lease(options.lease_s);
    let ledger = ledger.ask_policy(move |_, ask: Ask| ask.with_expires_in(deadline));
    let steps = Arc::new(Steps { file: options.steps, stop_at: options.stop_at });
    let turn = Turn::new(tools()).ledger(ledger.clone()).deps(Arc::clone(&steps));
    let asks = AskObject { ledger: ledger.clone(), steps: Arc::clone(&steps) };
    let (version, watched) = (options.stack_version, ledger.clone());
    let endpoint =
        Endpoint::builder().bind(RunWorkflow { turn, ledger, steps, version }).bind(asks).build();
    let listener = TcpListener::bind(options.listen).await?;
    println!("listening on {}", listener.local_addr()?);
    tokio::spawn(watch(watched, options.ingress));
    HttpServer::new(endpoint).serve(listener).await;
    Ok(())
}

/// Opens the store.
async fn open(url: &str) -> Result<Ledger, BoxError> {
    match url.strip_prefix("sqlite:") {
        Some(path) => Ok(Ledger::new(SqliteStore::open(path).await?)),
        None => on_a_server(url).await,
    }
}

#[cfg(feature = "postgres")]
async fn on_a_server(url: &str) -> Result<Ledger, BoxError> {
    Ok(Ledger::new(countersign_postgres::PostgresStore::connect(url).await?))
}

#[cfg(not(feature = "postgres"))]
async fn on_a_server(_: &str) -> Result<Ledger, BoxError> {
    Err("the store is `sqlite:PATH`; for PostgreSQL build with `--features postgres`".into())
}
