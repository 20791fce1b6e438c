//! A guard in front of an MCP server, beside a bare proxy that is made of the same library: a call without a question,
//! a long list of tools, the memory of the guard, and how soon an approved call is with the server.
//!
//! ```text
//! cargo build --release -p countersign-cli
//! cargo bench -p benches --bench mcp --features mcp
//! ```
//!
//! Each program is a process of its own, on stdio. `COUNTERSIGN_BENCH_PROGRAM` names another program to measure, as the
//! installed one.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use countersign::BoxError;
use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger};
use countersign_mcp::Proposal;
use countersign_sqlite::SqliteStore;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ContentBlock,
    ListToolsRequest, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
    ServerConfig, ServerResult, Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext, RunningService};
use rmcp::{ErrorData, Peer, RoleClient, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::json;
use tokio::process::{Child, Command};

/// In the environment of a process: what it is, `server` or `proxy`.
const IS: &str = "COUNTERSIGN_BENCH_IS";
/// In the environment of a server: the number of its tools.
const TOOLS: &str = "COUNTERSIGN_BENCH_TOOLS";

/// Calls of each kind, in turns.
const CALLS: usize = 2_000;
/// Lists of each kind, in turns.
const LISTS: usize = 50;
/// Calls before the memory is read a second time.
const MANY: usize = 10_000;
/// Approved calls.
const APPROVED: usize = 200;

const RULES: &str = "
version = 1

[[rule]]
id = 'work'
allow = 'mcp:bench/work*'

[[rule]]
id = 'asked'
ask = 'mcp:bench/asked'
";

type Client = RunningService<RoleClient, ()>;

fn main() -> Result<(), BoxError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match std::env::var(IS).as_deref() {
        Ok("server") => return runtime.block_on(serve()),
        Ok("proxy") => return runtime.block_on(proxy()),
        _ => {}
    }
    // `cargo test --benches` only builds it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    runtime.block_on(measure())
}

// --- The server and the proxy

struct Server {
    tools: Vec<Tool>,
}

fn tools(count: usize) -> Vec<Tool> {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let schema = schema.as_object().cloned().unwrap_or_default();
    let names = (1..count).map(|n| format!("work{n}")).chain(["asked".to_owned()]);
    let tool = |name| Tool::new(name, "Does the work that its number stands for", schema.clone());
    names.map(tool).collect()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    /// The result is the time at which the call has come.
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = ContentBlock::text(now().as_nanos().to_string());
        Ok(CallToolResponse::Complete(CallToolResult::success(vec![text])))
    }
}

async fn serve() -> Result<(), BoxError> {
    let count = std::env::var(TOOLS)?.parse()?;
    let server = Server { tools: tools(count) };
    server.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
    Ok(())
}

/// Passes on what a guard passes on, and nothing else.
struct Proxy(Peer<RoleClient>);

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let failed = |error: BoxError| ErrorData::internal_error(error.to_string(), None);
        Ok(ListToolsResult::with_all_items(listed(&self.0).await.map_err(failed)?))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
        self.0.call_tool_once(params).await.map_err(failed)
    }
}

async fn proxy() -> Result<(), BoxError> {
    let mut command = Command::new(std::env::current_exe()?);
    let (upstream, _child) = connected(command.env(IS, "server")).await?;
    let proxy = Proxy(upstream.peer().clone());
    proxy.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
    Ok(())
}

// --- The client

/// A client of a process on stdio.
async fn connected(command: &mut Command) -> Result<(Client, Child), BoxError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let closed = "the process has no stdin or stdout";
    let (read, write) = (child.stdout.take().ok_or(closed)?, child.stdin.take().ok_or(closed)?);
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    Ok((().serve_with_lifecycle((read, write), lifecycle).await?, child))
}

/// The tools of a server, which the library is not to remember.
async fn listed(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, BoxError> {
    let request = ListToolsRequest { params: None, ..Default::default() };
    match peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
        ServerResult::ListToolsResult(list) => Ok(list.tools),
        other => Err(format!("no list: {other:?}").into()),
    }
}

/// Calls a tool. Gives the time that it took, and the time at which the server got it.
async fn call(client: &Client, tool: &str, n: usize) -> Result<(Duration, Duration), BoxError> {
    let arguments = json!({"n": n}).as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let start = Instant::now();
    let result = json!(client.call_tool(params).await?);
    let took = start.elapsed();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    match text.parse() {
        Ok(nanos) => Ok((took, Duration::from_nanos(nanos))),
        Err(_) => Err(format!("the call has failed: {result}").into()),
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

// --- The measurements

/// Where a guard and its ledger are.
struct Place {
    home: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn new() -> Result<Self, BoxError> {
        let place = Self { home: tempfile::tempdir()?, program: program()? };
        std::fs::write(place.home.path().join("rules.toml"), RULES)?;
        Ok(place)
    }

    async fn ledger(&self) -> Result<Ledger, BoxError> {
        Ok(Ledger::new(SqliteStore::open(self.home.path().join("asks.db")).await?))
    }

    /// A client of a guard before a server with this many tools, which are accepted.
    async fn guard(&self, tools: usize) -> Result<(Client, Child), BoxError> {
        let this = std::env::current_exe()?;
        let mut command = Command::new(&self.program);
        command.args(["guard", "--name", "bench", "--rules", "rules.toml", "--wait", "60"]);
        command.args(["--store", "sqlite:asks.db", "--"]).arg(this);
        command.current_dir(self.home.path()).env("HOME", self.home.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.env(IS, "server").env(TOOLS, tools.to_string()).stderr(Stdio::null());
        let (client, child) = connected(&mut command).await?;
        listed(client.peer()).await?;
        let ledger = self.ledger().await?;
        for proposal in Proposal::list(&ledger).await? {
            proposal.accept(&ledger, "ann").await?;
        }
        Ok((client, child))
    }
}

/// The program that is measured: the one beside this one, `target/release/countersign`, or another one that is named.
fn program() -> Result<PathBuf, BoxError> {
    if let Some(named) = std::env::var_os("COUNTERSIGN_BENCH_PROGRAM") {
        return Ok(named.into());
    }
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(Path::parent).ok_or("no target directory")?;
    let program = folder.join(format!("countersign{}", std::env::consts::EXE_SUFFIX));
    match program.exists() {
        true => Ok(program),
        false => Err(format!("build `{}` first", program.display()).into()),
    }
}

/// The median and the 99th percentile, in microseconds.
fn percentiles(mut all: Vec<Duration>) -> (f64, f64) {
    all.sort();
    let last = all.len().saturating_sub(1);
    let at = |percent: usize| all.get((all.len() * percent / 100).min(last));
    let us = |time: Option<&Duration>| time.map_or(f64::NAN, |it| it.as_secs_f64() * 1e6);
    (us(at(50)), us(at(99)))
}

fn row(name: &str, all: Vec<Duration>) -> f64 {
    let (p50, p99) = percentiles(all);
    println!("{name:<56} {p50:>9.0} µs {p99:>9.0} µs");
    p50
}

/// The resident memory of a process in MiB, where there is `/proc`.
fn memory(child: &Child) -> Result<f64, BoxError> {
    let process = child.id().ok_or("the process has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.map(|line| line.trim().trim_end_matches(" kB").parse::<f64>());
    Ok(kib.ok_or("no memory is told")?? / 1024.0)
}

/// A client of the bare proxy, and one of the server itself.
async fn bare(tools: usize) -> Result<[(Client, Child); 2], BoxError> {
    let this = std::env::current_exe()?;
    let start = async |what: &str| {
        let mut command = Command::new(&this);
        connected(command.env(IS, what).env(TOOLS, tools.to_string())).await
    };
    Ok([start("proxy").await?, start("server").await?])
}

async fn measure() -> Result<(), BoxError> {
    let place = Place::new()?;
    println!("{:<56} {:>12} {:>12}", "", "p50", "p99");
    without_a_question(&place).await?;
    approved(&place).await?;
    let place = Place::new()?;
    many_tools(&place).await
}

/// The same call through the guard, through the bare proxy, and to the server, in turns.
async fn without_a_question(place: &Place) -> Result<(), BoxError> {
    let (guard, _guard) = place.guard(2).await?;
    let [(proxy, _proxy), (server, _server)] = bare(2).await?;
    let mut all = [const { Vec::new() }; 3];
    for n in 0..CALLS + CALLS / 10 {
        for (client, times) in [&guard, &proxy, &server].into_iter().zip(&mut all) {
            let (took, _) = call(client, "work1", n).await?;
            // The first ones warm everything up.
            if n >= CALLS / 10 {
                times.push(took);
            }
        }
    }
    let [guard, proxy, server] = all;
    row("a call to the server", server);
    let proxy = row("a call through a bare proxy", proxy);
    let guard = row("a call through the guard, without a question", guard);
    println!("{:<56} {:>9.0} µs   target: 100 µs", "  more than through the proxy", guard - proxy);
    Ok(())
}

/// From a decision in the store, made by another process than the guard, to the call of the server.
async fn approved(place: &Place) -> Result<(), BoxError> {
    let (guard, _guard) = place.guard(2).await?;
    let ledger = place.ledger().await?;
    let (mut begun, mut stored) = (Vec::new(), Vec::new());
    for n in 0..APPROVED {
        let calling = call(&guard, "asked", n);
        let deciding = async {
            let record = loop {
                let mut pending = ledger.list(Some(AskState::Pending), 1).await?.records;
                match pending.pop() {
                    Some(record) => break record,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            // At another moment of the guard's waiting each time.
            tokio::time::sleep(Duration::from_micros((n * 1_370 % 40_000) as u64)).await;
            let (begin, yes) = (now(), Answer::Approve { args: None });
            ledger.decide(record.ask.id(), &record.fingerprint, "bob", yes).await?;
            Ok::<_, BoxError>((begin, now()))
        };
        let ((_, came), (begin, end)) = tokio::try_join!(calling, deciding)?;
        begun.push(came.saturating_sub(begin));
        stored.push(came.saturating_sub(end));
    }
    row("from the decision, not yet stored, to the server's call", begun);
    row("from the stored decision to the server's call", stored);
    println!("{:<56} {:>12}   target: 10 ms", "", "");
    Ok(())
}

/// A thousand tools, and the memory of a guard.
async fn many_tools(place: &Place) -> Result<(), BoxError> {
    let (guard, process) = place.guard(1_000).await?;
    let [(proxy, _proxy), (server, _server)] = bare(1_000).await?;
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..LISTS {
        for (client, times) in [&guard, &proxy, &server].into_iter().zip(&mut all) {
            let start = Instant::now();
            let tools = listed(client.peer()).await?;
            times.push(start.elapsed());
            assert_eq!(tools.len(), 1_000);
        }
    }
    let [guarded, proxied, direct] = all;
    row("1 000 tools listed by the server", direct);
    row("1 000 tools listed through a bare proxy", proxied);
    row("1 000 tools listed through the guard", guarded);
    let one = |name: &str, mib: f64| println!("{name:<56} {mib:>8.1} MiB");
    one("memory of the guard, after the lists", memory(&process)?);
    for n in 0..MANY {
        call(&guard, "work1", n).await?;
    }
    one("memory of the guard, after 10 000 more calls", memory(&process)?);
    let idle = place.guard(2).await?;
    one("memory of a guard with two tools, before a call", memory(&idle.1)?);
    Ok(())
}
