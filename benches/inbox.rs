//! The inbox with many pending asks: how soon its list is there and can be used, the memory of its server, how soon a
//! parked ask is seen by another client, and what idle and half-open connections cost a decision.
//!
//! `cargo bench -p benches --bench inbox --features inbox`, with `ulimit -n 4096` or more. Where `.ci/browser` has
//! installed its packages, Chromium measures the page, too.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use countersign::ledger::{Ask, Ledger};
use countersign::{Args, BoxError};
use countersign_inbox::{Approver, AuthorizeError, Inbox};
use countersign_sqlite::SqliteStore;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// In the environment of a process that serves: the number of pending asks.
const SERVES: &str = "COUNTERSIGN_BENCH_SERVES";

/// Measurements of the list; of what follows, a quarter of them.
const ROUNDS: usize = 100;

/// Decisions in each measurement.
const DECISIONS: usize = 20;

/// Connections that are open beside the decisions.
const CONNECTIONS: usize = 1_000;

fn main() -> Result<(), BoxError> {
    let runtime = tokio::runtime::Runtime::new()?;
    if let Ok(pending) = std::env::var(SERVES) {
        return runtime.block_on(serve(pending.parse()?));
    }
    // `cargo test --benches` only builds it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    for pending in [100, 1_000, 10_000] {
        runtime.block_on(measure(pending))?;
    }
    Ok(())
}

fn ask(n: usize) -> Ask {
    let args = Args::new().with("path", format!("logs/{n}.log")).with("reason", "it is old");
    Ask::new(format!("run {}", n / 10), format!("root/c{}", n % 10), "delete_file")
        .with_principal(format!("person {}", n % 7))
        .with_args(args)
}

/// Serves an inbox over a store in a file. Each line of the input parks one more ask.
async fn serve(pending: usize) -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::new(SqliteStore::open(folder.path().join("asks.db")).await?);
    for n in 0..pending {
        ledger.park(ask(n)).await?;
    }
    let inbox = Inbox::new(ledger.clone(), async |_| Ok::<_, AuthorizeError>(Approver::new("ann")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, inbox.into_router()).await });
    let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    let mut n = pending;
    while lines.next_line().await?.is_some() {
        println!("{}", ledger.park(ask(n)).await?.ask.id());
        n += 1;
    }
    Ok(())
}

/// A process that serves.
struct Server {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Server {
    fn start(pending: usize) -> Result<Self, BoxError> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(SERVES, pending.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the server has no input")?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut output = BufReader::new(output).lines();
        let url = output.next().ok_or("the server did not start")??;
        Ok(Self { child, input, output, url })
    }

    /// Parks one more ask, and gives its id.
    fn park(&mut self) -> Result<String, BoxError> {
        self.input.write_all(b"\n")?;
        Ok(self.output.next().ok_or("the server has ended")??)
    }

    /// The resident memory of the process in MiB, where there is `/proc`.
    fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The median and the 99th percentile.
fn percentiles(mut all: Vec<Duration>) -> String {
    all.sort();
    let at = |percent: usize| all.get((all.len() * percent / 100).min(all.len().saturating_sub(1)));
    let ms = |time: Option<&Duration>| time.map_or(f64::NAN, |it| it.as_secs_f64() * 1_000.0);
    format!("{:.1} / {:.1} ms", ms(at(50)), ms(at(99)))
}

/// The page in Chromium, if its packages are installed.
fn page(url: &str) -> Result<String, BoxError> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !here.join("../tests/browser/node_modules").exists() {
        return Ok("not measured: run `.ci/browser` first".to_owned());
    }
    let ended = Command::new("node").arg(here.join("support/inbox.mjs")).arg(url).output()?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&ended.stderr).into()),
    }
}

/// The first page of the list: alone, and in later requests.
async fn list(http: &Client, url: &str) -> Result<(Duration, Vec<Duration>), BoxError> {
    let get = async || -> Result<Duration, BoxError> {
        let start = Instant::now();
        let reply = http.get(format!("{url}/api/asks?limit=50")).send().await?;
        reply.error_for_status()?.bytes().await?;
        Ok(start.elapsed())
    };
    let first = get().await?;
    let mut later = Vec::new();
    for _ in 0..ROUNDS {
        later.push(get().await?);
    }
    Ok((first, later))
}

/// From the moment at which an ask is parked to the one at which a client that listens for changes has it in its list.
async fn seen(http: &Client, server: &mut Server) -> Result<Vec<Duration>, BoxError> {
    let url = server.url.clone();
    let mut changes = http.get(format!("{url}/api/changes")).send().await?;
    changes.chunk().await?;
    let mut all = Vec::new();
    for _ in 0..ROUNDS / 4 {
        // The changes of the round before have arrived.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let start = Instant::now();
        let id = server.park()?;
        loop {
            let list = http.get(format!("{url}/api/asks?limit=50&sort=newest")).send().await?;
            if list.text().await?.contains(&id) {
                break;
            }
            // A change of which the client was told before it looked is not told again.
            let _ = tokio::time::timeout(Duration::from_millis(500), changes.chunk()).await;
        }
        all.push(start.elapsed());
    }
    Ok(all)
}

/// Approves the first asks of the list, one after the other.
async fn decide(http: &Client, url: &str) -> Result<Vec<Duration>, BoxError> {
    let list = http.get(format!("{url}/api/asks?limit={DECISIONS}")).send().await?;
    let list: Value = list.json().await?;
    let mut all = Vec::new();
    for ask in list["asks"].as_array().into_iter().flatten() {
        let id = ask["id"].as_str().ok_or("an ask without an id")?;
        let body = json!({"verdict": "approve", "fingerprint": ask["fingerprint"]});
        let start = Instant::now();
        let reply = http.post(format!("{url}/api/asks/{id}/decision")).json(&body).send().await?;
        reply.error_for_status()?;
        all.push(start.elapsed());
    }
    Ok(all)
}

async fn measure(pending: usize) -> Result<(), BoxError> {
    let mut server = Server::start(pending)?;
    let url = server.url.clone();
    let http = Client::builder().no_proxy().build()?;
    println!("{pending} pending asks");
    let (first, later) = list(&http, &url).await?;
    println!("  the first 50, of a new server  {:.0} ms", first.as_secs_f64() * 1_000.0);
    println!("  the first 50, later            {}", percentiles(later));
    println!("  the page in Chromium           {}", page(&url)?);
    println!("  parked to seen by another      {}", percentiles(seen(&http, &mut server).await?));
    if let Some(memory) = server.memory() {
        println!("  memory of the server           {memory} MiB");
    }
    println!("  a decision                     {}", percentiles(decide(&http, &url).await?));
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(http.get(format!("{url}/api/changes")).send().await?);
    }
    println!(
        "  with {CONNECTIONS} idle connections     {}",
        percentiles(decide(&http, &url).await?)
    );
    drop(idle);
    let mut half_open = Vec::new();
    let address = url.trim_start_matches("http://");
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n").as_bytes()).await?;
        half_open.push(stream);
    }
    println!(
        "  with {CONNECTIONS} half-open ones       {}",
        percentiles(decide(&http, &url).await?)
    );
    Ok(())
}
