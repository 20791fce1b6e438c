//! The example `approvals`: its processes over a store of their own, and the records of its ledger.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use countersign::ledger::{Acquired, AskRecord, AskState, Ledger};
use countersign_postgres::PostgresStore;
use countersign_sqlite::SqliteStore;
use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::Server;
use crate::program::program;

/// A store, and the file in which the tools record their runs.
pub(crate) struct Place {
    url: String,
    folder: TempDir,
    ledger: Ledger,
}

impl Place {
    /// A new SQLite file.
    pub(crate) async fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("approvals.db");
        let ledger = Ledger::new(SqliteStore::open(&path).await.unwrap());
        Self { url: format!("sqlite:{}", path.display()), folder, ledger }
    }

    /// An empty schema on the tests' server.
    pub(crate) async fn postgres() -> Self {
        let url = Server::shared().url().await;
        let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
        Self { url, folder: TempDir::new().unwrap(), ledger }
    }

    /// Runs SQL on the SQLite file, behind the ledger's back.
    pub(crate) fn sql(&self, sql: &str) {
        let path = self.url.strip_prefix("sqlite:").expect("it is an SQLite file");
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn start(&self, args: &[&str]) -> (Child, String) {
        let mut child = Command::new(program("approvals"))
            .args(["--store", &self.url, "--ran"])
            .arg(self.folder.path().join("ran.jsonl"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        // Output and log are read all the time, so that a full pipe does not block the process, and stored.
        let log = self.folder.path().join("log.txt");
        let err = child.stderr.take().unwrap();
        for from in [Box::new(out) as Box<dyn std::io::Read + Send>, Box::new(err)] {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
            std::thread::spawn(move || std::io::copy(&mut { from }, &mut { log }));
        }
        (child, first)
    }

    /// The output of a process that does not start.
    pub(crate) fn refuses(args: &[&str]) -> (Option<i32>, String) {
        let ended = Command::new(program("approvals")).args(args).stdin(Stdio::null()).output();
        let ended = ended.unwrap();
        assert!(ended.stdout.is_empty());
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    }

    /// The output and the logs of all processes.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log.txt")).unwrap_or_default()
    }

    /// A server at this port.
    pub(crate) fn server_at(&self, port: u16, more: &[&str]) -> Process {
        let address = format!("127.0.0.1:{port}");
        let (child, first) = self.start(&[&["--listen", &address], more].concat());
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("it did not start: {first}\n{}", self.log()));
        Process { child, url: url.trim_end_matches('/').to_owned() }
    }

    pub(crate) fn server(&self, more: &[&str]) -> Process {
        self.server_at(0, more)
    }

    /// A process that only resumes runs.
    pub(crate) fn worker(&self, more: &[&str]) -> Process {
        let (child, first) = self.start(&[&["--worker"], more].concat());
        assert!(first.contains("workers wait"), "{first}\n{}", self.log());
        Process { child, url: String::new() }
    }

    /// The runs of the tools, in order.
    pub(crate) fn ran(&self) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.folder.path().join("ran.jsonl")).unwrap_or_default();
        // A line that is being written has no end yet.
        let ended = text.rfind('\n').map_or("", |end| &text[..end]);
        ended.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often a tool has run with this argument.
    pub(crate) fn times(&self, name: &str, value: &str) -> usize {
        self.ran().iter().filter(|ran| ran["args"][name] == value).count()
    }

    /// All asks, newest first. Also verifies the log.
    pub(crate) async fn asks(&self) -> Vec<AskRecord> {
        assert!(self.ledger.verify(&Default::default()).await.is_ok());
        self.ledger.list(None, u32::MAX).await.unwrap().records
    }

    /// The one ask about a call with this argument.
    pub(crate) async fn ask(&self, name: &str, value: &str) -> AskRecord {
        let mut asks = self.asks().await;
        asks.retain(|ask| ask.ask.args()[name] == value);
        assert_eq!(asks.len(), 1, "{name}: {value}");
        asks.remove(0)
    }

    /// Waits until an ask is in this state.
    pub(crate) async fn until(&self, id: &str, state: AskState) -> AskRecord {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let record = self.ledger.get(id).await.unwrap().unwrap();
            if record.state == state {
                return record;
            }
            assert!(
                Instant::now() < end,
                "it is {:?}, not {state:?}\n{}",
                record.state,
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The final texts of the runs. Waits until no run is suspended.
    pub(crate) async fn over(&self, runs: &[String]) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.ledger.waiting_runs(1).await.unwrap().records.is_empty() {
            assert!(Instant::now() < end, "a run still waits\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut said = Vec::new();
        for run in runs {
            let acquired = self.ledger.acquire_run_as(run, "test", Duration::ZERO).await.unwrap();
            let Acquired::Over { result } = acquired else { panic!("{acquired:?}") };
            said.push(result.as_str().unwrap().to_owned());
        }
        said
    }
}

/// A process of the example.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Stops the process by a signal, so that its connections hang, or continues it.
    pub(crate) fn pause(&self, pause: bool) {
        halt(&self.child, pause);
    }

    /// Kills it, as a failure of the machine would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Stops a process by a signal, or continues it.
pub(crate) fn halt(child: &Child, pause: bool) {
    let signal = if pause { "-STOP" } else { "-CONT" };
    let told = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(told.success());
}
