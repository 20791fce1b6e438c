//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::server::Clients;

/// An inbox for the questions of agents, an API, and workers that resume the decided runs.
#[derive(Parser)]
#[command(name = "approvals")]
pub(crate) struct Cli {
    /// Where asks and runs are stored: `sqlite:PATH`, by default a file in the working directory, or `postgres://…` in
    /// a build with the feature. Any number of servers and workers share one store.
    #[arg(long, value_name = "URL", default_value = "sqlite:approvals.db")]
    pub(crate) store: String,
    /// Where to serve. Port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8710")]
    pub(crate) listen: SocketAddr,
    /// Another name that the page is reached by, as in its address: `approvals.example`, or `inbox.local:8710`. May be
    /// given several times. Requests to other names are refused.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// How many decided runs this process resumes at once; 0 for a server without workers.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) workers: usize,
    /// Serves nothing: a process that only resumes runs.
    #[arg(long)]
    pub(crate) worker: bool,
    /// How long a run waits for a worker that has died.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) lease_s: Duration,
    /// How long `restart_server` may be pending.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) deadline_s: Duration,
    /// Where the demo's tools record their runs, one line for each.
    #[arg(long, value_name = "PATH", default_value = "approvals-ran.jsonl")]
    pub(crate) ran: PathBuf,
    /// Serves also where other machines reach it. The demo's login asks for a name and believes it.
    #[arg(long)]
    pub(crate) danger_anyone_may_log_in: bool,
}

/// Reads the command line. The error is an exit status, after a help text or an error was printed.
pub(crate) fn read() -> Result<Cli, ExitCode> {
    let cli = Cli::try_parse().map_err(|error| {
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })?;
    if !cli.worker && !cli.listen.ip().is_loopback() && !cli.danger_anyone_may_log_in {
        eprintln!(
            "error: `{}` can be reached from other machines, and the demo's login believes every name. Put a real \
             `authorize` into examples/approvals/src/login.rs, or say --danger-anyone-may-log-in.",
            cli.listen
        );
        return Err(ExitCode::from(2));
    }
    Ok(cli)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "it is not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
