//! A service around the inbox: an agent whose calls need answers, the inbox in which people give them, and workers that
//! resume its runs.
//!
//! ```text
//! cargo run -p approvals                 inbox, demo and two workers; prints what to open and to try
//! cargo run -p approvals -- --worker     workers alone, in a process of their own, over the same store
//! cargo run -p approvals -- --help       everything else
//! ```
//!
//! The page, its API and its events are [`countersign_inbox`]; this is what is particular to one service:
//!
//! | file | has |
//! |---|---|
//! | `login.rs` | who sends a request. The demo believes every name, and so serves this machine only: **replace it** |
//! | `demo.rs` | the agent, its tools, and what each ask needs |
//! | `runs.rs` | `POST /api/runs`, which starts a run, and the page `/demo` |
//! | `workers.rs` | resumes the runs about which something was decided |
//! | `server.rs` | limits connections, and how long each may take to send a request |
//!
//! **A click only decides.** The decision is in the ledger when the page says so, and a worker, here or in another
//! process, resumes the run. When a worker dies, another one takes its runs up after the lease; a tool whose end was not
//! seen is not started again, unless it is idempotent. Any number of servers and workers share one store: SQLite on one
//! machine, PostgreSQL on several.

mod cli;
mod demo;
mod login;
mod runs;
mod server;
mod store;
mod workers;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use cli::Cli;
use countersign::ledger::{AskState, Ledger};
use countersign::{Agent, BoxError};
use countersign_inbox::Inbox;
use tokio::net::TcpListener;
use tokio::sync::watch;

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
        .ask_policy(move |cx, ask| demo::needs(cx, ask, deadline));
    let agent = demo::agent(cli.ran.clone()).ledger(ledger.clone());
    let (decided, stop) = (watch::channel(()).0, told_to_stop());
    let many = if cli.worker { cli.workers.max(1) } else { cli.workers };
    let workers = (many > 0).then(|| {
        let work =
            workers::work(agent.clone(), ledger.clone(), many, decided.subscribe(), stop.clone());
        tokio::spawn(work)
    });
    if !cli.worker {
        let listener = TcpListener::bind(cli.listen).await?;
        let address = listener.local_addr()?;
        tell(&cli, address, many);
        let hosts = hosts(address, &cli.allow_host);
        let app = app(agent, ledger, hosts, decided, stop.clone());
        server::serve(listener, app, cli.clients, stopped(stop)).await;
    } else {
        println!(
            "{many} workers wait for decisions. What the tools do is in {}.",
            cli.ran.display()
        );
    }
    if let Some(workers) = workers {
        // Runs in progress are completed.
        workers.await?;
    }
    Ok(())
}

/// The inbox at `/`, and the routes of the demo.
fn app(
    agent: Agent,
    ledger: Ledger,
    hosts: Vec<String>,
    decided: watch::Sender<()>,
    stop: watch::Receiver<bool>,
) -> Router {
    let inbox = Inbox::new(ledger.clone(), async |parts| login::authorize(&parts))
        .hosts(hosts)
        .login("/login")
        .logout("/logout")
        .link("Start a demo run", "/demo")
        .check(demo::check)
        // Wakes the workers of this process, which would otherwise find the decision at their next poll.
        .on_decision(move |_| {
            decided.send_replace(());
        })
        .shutdown(stopped(stop));
    let healthz = async move || match ledger.list(Some(AskState::Pending), 1).await {
        Ok(_) => (StatusCode::OK, r#"{"status":"ok"}"#),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"no store"}"#),
    };
    inbox.into_router().merge(runs::router(agent)).route("/healthz", get(healthz))
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
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
    println!(
        "  1. Say that you are ann, and start a demo run (/demo): an agent wants four things."
    );
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

/// Becomes true at the first signal to stop; a second signal stops the process at once.
fn told_to_stop() -> watch::Receiver<bool> {
    let (tell, stop) = watch::channel(false);
    tokio::spawn(async move {
        interrupted().await;
        eprintln!(
            "Stopping when the runs in progress are complete. A second Ctrl-C stops at once."
        );
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
