//! An inbox for what agents ask: a small server over a [`Ledger`], to copy from.
//!
//! ```text
//! cargo run --example approvals                       page, API and two workers; prints what to open and to try
//! cargo run --example approvals -- --worker           workers alone, in a process of their own, over the same store
//! cargo run --example approvals -- --help             everything else
//! ```
//!
//! | request | does |
//! |---|---|
//! | `GET /` | the page: what waits, exactly what will run, who asks, who has agreed; below it what was decided |
//! | `GET /api/asks?limit=&after=&since=` | the open asks, a page of `limit` entries behind the place `after`: the soonest due first, each requester's first ten before any other's eleventh, equal calls of a run as one entry (`same`); with the `total`, the `next` place, and how many are `newer` than `since`, the `latest` of an earlier answer; and those that are `refused`, as what the store has of them was changed outside of the ledger |
//! | `GET /api/asks/{id}` | one of them, with its arguments as JSON; nothing of them is masked or left out |
//! | `POST /api/asks/{id}/decision` | `{"verdict": "approve", "fingerprint", "args"?, "by"?}` or `{"verdict": "deny", "fingerprint", "message", "by"?}`; `args` is the text of an object. `200` with `won`, or with `recorded` while others have to agree |
//! | `GET /api/history` | what was decided, by whom and when, and what came of it |
//! | `POST /api/runs` | `{"prompt"?}`: starts a run of the demo's agent, `201` when its asks are in the inbox |
//! | `GET /api/changes` | server-sent events: something has changed, look again |
//! | `GET /api/me`, `POST /api/login`, `POST /api/logout` | the demo's login |
//! | `GET /api/alive` | nothing: `204`, as long as the server answers |
//! | `GET /healthz` | whether the store answers: `200`, or `503` |
//!
//! An error is `{"error": word, "message": sentence}`:
//!
//! | status | words |
//! |---|---|
//! | `400` | `bad_json`, `unreadable` |
//! | `401` | `unauthenticated` |
//! | `403` | `wrong_host`, `wrong_origin`, `somebody_else` (is logged in than the page shows), `not_allowed` (whoever wants a call may not approve it), `blocked` |
//! | `404` | `unknown_ask`, `not_found` |
//! | `405` | `wrong_method` |
//! | `409` | `already_decided`, with the `winner`: who, what and when |
//! | `410` | `expired`, `cancelled` |
//! | `413`, `415` | `too_large`, `not_json` |
//! | `422` | `mismatch` (decided about something else than what waits), `bad_args`, `bad_request`, `bad_prompt`, `bad_name`, `not_an_approval`, `cannot_be_kept` |
//! | `500`, `503` | `run_failed`, `store` |
//!
//! **A click only decides.** The decision is in the ledger when the page says so, and a worker, here or in another
//! process, resumes the run. Of several clicks the first counts, and everybody else is told which it was. When a worker
//! dies, another one takes its runs up after the lease; a tool whose end was not seen is not started again, unless it
//! is idempotent. Any number of servers and workers share one store: SQLite on one machine, PostgreSQL on several.
//!
//! **To make it yours**: [`authorize`](authorize::authorize) says who sends a request (the demo believes every name, and
//! so serves this machine only), [`demo`] is the agent, its tools and what each ask needs. [`guard`] refuses requests to
//! other names (DNS rebinding), from other sites, and without a JSON type; nothing is changed by a `GET`. Put TLS in
//! front. [`server`] limits connections and how long each may take to send a request. Nothing of any call's arguments is
//! logged.

mod api;
mod authorize;
mod bell;
mod cli;
mod demo;
mod guard;
mod page;
mod queue;
mod refused;
mod sent;
mod server;
mod store;
mod view;
mod workers;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use bell::Bell;
use cli::Cli;
use countersign::ledger::Ledger;
use countersign::{Agent, BoxError};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What every handler needs.
struct App {
    agent: Agent,
    ledger: Ledger,
    bell: Bell,
    /// The names that this server goes by, as in `Host`.
    hosts: Vec<String>,
    stop: watch::Receiver<bool>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match cli::read() {
        Ok(cli) => cli,
        Err(asked) => return asked,
    };
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .init();
    match run(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes =
                std::iter::successors(Some(&*error as &dyn std::error::Error), |it| it.source());
            eprintln!("error: {}", causes.map(ToString::to_string).collect::<Vec<_>>().join(": "));
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), BoxError> {
    let role = if cli.worker { "worker" } else { "server" };
    let deadline = cli.deadline_s;
    let ledger = store::open(&cli.store).await?;
    let ledger = ledger
        .worker(format!("{role}-{}", std::process::id()))
        .lease(cli.lease_s)
        .asks(move |cx, ask| demo::needs(cx, ask, deadline));
    let agent = demo::agent(cli.ran.clone()).ledger(ledger.clone());
    let (bell, stop) = (Bell::new(), told_to_stop());
    let watching = tokio::spawn(bell.clone().watch(ledger.clone()));
    let many = if cli.worker { cli.workers.max(1) } else { cli.workers };
    let workers = (many > 0).then(|| {
        let work = workers::work(agent.clone(), ledger.clone(), many, bell.listen(), stop.clone());
        tokio::spawn(work)
    });
    if !cli.worker {
        let listener = TcpListener::bind(cli.listen).await?;
        let address = listener.local_addr()?;
        let hosts = hosts(address, &cli.allow_host);
        tell(&cli, address, many);
        let app = App { agent, ledger, bell, hosts, stop: stop.clone() };
        let mut stop = stop.clone();
        let stopped = async move {
            let _ = stop.wait_for(|stop| *stop).await;
        };
        server::serve(listener, api::router(Arc::new(app)), cli.clients, stopped).await;
    } else {
        println!(
            "{many} workers wait for decisions. What the tools do is in {}.",
            cli.ran.display()
        );
    }
    if let Some(workers) = workers {
        // What has begun is brought to its end.
        workers.await?;
    }
    watching.abort();
    Ok(())
}

/// The names of this machine at this port, and those that were added.
fn hosts(address: SocketAddr, more: &[String]) -> Vec<String> {
    let port = address.port();
    let own = [address.ip().to_string(), "127.0.0.1".into(), "localhost".into(), "[::1]".into()];
    let own = own.into_iter().map(|name| format!("{name}:{port}"));
    own.chain(more.iter().map(|name| name.to_ascii_lowercase())).collect()
}

fn tell(cli: &Cli, address: SocketAddr, workers: usize) {
    println!("Open http://{address}/ in a browser.\n");
    println!("What to try:");
    println!("  1. Say that you are ann, and start a demo run: an agent wants four things.");
    println!("  2. Approve one, deny one with a message, change what another one will do.");
    println!(
        "  3. The transfer needs two people who are not ann. Open a private window, and be bob; then be carol."
    );
    println!("  4. Stop this server (Ctrl-C) and start it again: everything still waits.\n");
    println!(
        "What the tools do is written to {}. Asks are kept in {}.",
        cli.ran.display(),
        shown(&cli.store)
    );
    match workers {
        0 => println!("This process resumes nothing: start one with --worker."),
        n => println!("{n} workers in this process resume what was decided."),
    }
}

/// A store without its password.
fn shown(url: &str) -> &str {
    if url.starts_with("sqlite:") { url } else { "PostgreSQL" }
}

/// Becomes true when the process is told to stop; told twice, it stops at once.
fn told_to_stop() -> watch::Receiver<bool> {
    let (tell, stop) = watch::channel(false);
    tokio::spawn(async move {
        interrupted().await;
        eprintln!("Stopping, when what has begun has come to its end. Once more stops at once.");
        tell.send_replace(true);
        interrupted().await;
        std::process::exit(130);
    });
    stop
}

#[cfg(unix)]
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}

#[cfg(not(unix))]
async fn interrupted() {
    let _ = tokio::signal::ctrl_c().await;
}
