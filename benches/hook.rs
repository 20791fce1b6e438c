//! From the start of the process `countersign hook` to its answer, over an SQLite store with 100 000 asks.
//!
//! ```text
//! cargo build --release -p countersign-cli
//! cargo bench -p benches --bench hook
//! ```
//!
//! `COUNTERSIGN_BENCH_PROGRAM` names another program to measure, as the installed one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use countersign::BoxError;
use countersign::ledger::{Ask, Ledger};
use countersign_sqlite::SqliteStore;
use serde_json::json;
use tokio::task::JoinSet;

/// Asks in the store.
const ASKS: usize = 100_000;

/// Processes of each kind.
const ROUNDS: usize = 300;

/// An allowed command, one that is allowed a limited number of times, which are counted in the store, and a denied one.
const RULES: &str = "
version = 1

[[rule]]
id = 'everyday'
allow = 'shell'
where.command.is = ['read-only', 'project-build']

[[rule]]
id = 'counted'
allow = 'write_file'
at_most = { calls = 10000, within = '1h' }

[[rule]]
id = 'secrets'
deny = '*'
where.any_path = ['**/.env']
";

fn main() -> Result<(), BoxError> {
    // `cargo test --benches` only builds it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let program = program()?;
    let home = tempfile::tempdir()?;
    let store = home.path().join("asks.db");
    let rules = home.path().join("rules.toml");
    std::fs::write(&rules, RULES)?;
    tokio::runtime::Runtime::new()?.block_on(fill(&store))?;
    println!("process start to answer, {ASKS} asks in the store       p50        p99");
    let shell = |command: &str| ("Bash", json!({"command": command}));
    let cases = [
        ("allowed", shell("cargo test --all-features 2>&1 | tail -20"), 0),
        (
            "allowed, and counted in the store",
            ("Write", json!({"file_path": "a", "content": "b"})),
            0,
        ),
        ("denied", shell("cat .env"), 2),
    ];
    for (name, (tool, input), status) in cases {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home.path(), "tool_use_id": "c",
            "tool_name": tool, "tool_input": input,
        });
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(answered(&program, home.path(), &payload.to_string(), status)?);
        }
        times.sort();
        let ms = |percent: usize| times[ROUNDS * percent / 100].as_secs_f64() * 1_000.0;
        println!("{name:<48} {:>7.1} ms {:>7.1} ms", ms(50), ms(99));
    }
    Ok(())
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

async fn fill(store: &Path) -> Result<(), BoxError> {
    let ledger = Ledger::new(SqliteStore::open(store).await?);
    let mut tasks = JoinSet::new();
    for worker in 0..64 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            for n in (worker..ASKS).step_by(64) {
                let ask = Ask::new(format!("run {}", n / 10), format!("c{n}"), "shell");
                ledger.park(ask.with_principal(format!("person {}", n % 1_000))).await?;
            }
            Ok::<_, countersign::ledger::LedgerError>(())
        });
    }
    tasks.join_all().await.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

/// The time that a hook takes for this payload, which it has to answer with this status.
fn answered(program: &Path, home: &Path, payload: &str, status: i32) -> Result<Duration, BoxError> {
    let mut command = Command::new(program);
    command.args([
        "hook",
        "claude",
        "--limit",
        "60",
        "--rules",
        "rules.toml",
        "--store",
        "asks.db",
        "--home",
    ]);
    command.arg(home).current_dir(home);
    // A variable that changes what programs do is a reason to ask, and `cargo` sets some.
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(payload.as_bytes())?;
    let ended = child.wait_with_output()?;
    let took = start.elapsed();
    match ended.status.code() == Some(status) {
        true => Ok(took),
        false => Err(format!("{ended:?}").into()),
    }
}
