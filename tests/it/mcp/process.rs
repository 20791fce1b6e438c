//! The program `countersign guard` in front of a server that does what it is told (`tests/mcp/server.py`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Decided, Ledger};
use countersign_mcp::ACCEPT_TOOLS;
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::program::User;

/// A user, a store, and the log of a server.
pub(super) struct Desk {
    pub(super) user: User,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self { user: User::new() }
    }

    fn log(&self) -> PathBuf {
        self.user.home().join("server.log")
    }

    /// The file that lets the runs of a server that holds them end.
    pub(super) fn gate(&self) -> PathBuf {
        self.user.home().join("gate")
    }

    /// What a server is told that logs its runs.
    pub(super) fn told(&self) -> Value {
        json!({"log": self.log()})
    }

    /// The same, for a server whose runs end when the gate is there.
    pub(super) fn held(&self) -> Value {
        json!({"log": self.log(), "hold": self.gate()})
    }

    /// The command of a guard with these options, of this person, in front of the server that is told this.
    pub(super) fn guard_of(&self, who: &str, options: &[&str], told: &Value) -> Command {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py").display().to_string();
        let told = told.to_string();
        self.guard_before(who, options, &["python3", &script, &told])
    }

    pub(super) fn guard_before(&self, who: &str, options: &[&str], server: &[&str]) -> Command {
        let guard = ["guard", "--principal", who];
        let mut command = self.user.command(&[&guard[..], options, &["--"], server].concat());
        let log = std::fs::File::options().create(true).append(true).open(self.stderr()).unwrap();
        command.stderr(Stdio::from(log));
        command
    }

    /// Ann's guard, which holds a call for a second.
    pub(super) fn guard(&self, told: &Value) -> Command {
        self.guard_of("ann", &["--wait", "1"], told)
    }

    /// Starts a guard that listens, and waits until it does.
    pub(super) async fn listening(&self, guard: Command) -> WebGuard {
        let started = |log: &str| log.matches(" the secret in ").count();
        let before = started(&self.logged());
        let mut guard = tokio::process::Command::from(guard);
        let process = guard.kill_on_drop(true).spawn().unwrap();
        wait("it listens", || started(&self.logged()) > before).await;
        let log = self.logged();
        let last = |before: &str| log.rsplit(before).next().unwrap().lines().next().unwrap();
        let (url, file) = (last("listens on ").to_owned(), last(" the secret in "));
        let secret = std::fs::read_to_string(file).unwrap().trim().to_owned();
        WebGuard { url, secret, process }
    }

    fn stderr(&self) -> PathBuf {
        self.user.home().join("stderr")
    }

    /// The log of the guards and of what they have started.
    pub(super) fn logged(&self) -> String {
        std::fs::read_to_string(self.stderr()).unwrap_or_default()
    }

    fn lines(&self, key: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        // A line that is being written has no end yet.
        let ended = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = ended.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| line.get(key).cloned()).collect()
    }

    /// The runs of the tool that have begun: what the server was called with.
    pub(super) fn runs(&self) -> Vec<Value> {
        self.lines("begun")
    }

    /// The processes of the servers that were told this lane, in the order in which they were started.
    pub(super) fn servers(&self, lane: &Value) -> Vec<u64> {
        let all = self.lines("started");
        let mine = all.iter().filter(|server| server["lane"] == *lane);
        mine.filter_map(|server| server["process"].as_u64()).collect()
    }

    /// What the server was answered.
    pub(super) fn heard(&self) -> Vec<Value> {
        self.lines("heard")
    }

    /// Waits until so many runs have begun.
    pub(super) async fn begun(&self, runs: usize) {
        wait("the run begins", || self.runs().len() >= runs).await;
    }

    pub(super) async fn ledger(&self) -> Ledger {
        Ledger::new(SqliteStore::open(self.user.state("asks.db")).await.unwrap())
    }

    pub(super) async fn pending(&self) -> Vec<AskRecord> {
        self.ledger().await.list(Some(AskState::Pending), 100).await.unwrap().records
    }

    /// Waits until a call is pending, and gives it.
    pub(super) async fn asked(&self) -> AskRecord {
        for _ in 0..4_000 {
            if let Some(record) = self.pending().await.pop() {
                return record;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("no call is pending: {}", self.logged())
    }

    pub(super) async fn approve(&self, record: &AskRecord, who: &str) {
        let yes = Answer::Approve { args: None };
        let ledger = self.ledger().await;
        let decided = ledger.decide(record.ask.id(), &record.fingerprint, who, yes).await.unwrap();
        assert!(matches!(decided, Decided::Won { again: false }), "{decided:?}");
    }

    /// Accepts the tools that are proposed.
    pub(super) async fn accept_tools(&self) {
        for record in self.pending().await {
            assert_eq!(record.ask.tool(), ACCEPT_TOOLS);
            self.approve(&record, "ann").await;
        }
    }
}

/// A guard over HTTP, which is killed when this is dropped.
pub(super) struct WebGuard {
    pub(super) url: String,
    /// The secret that its clients have to send.
    pub(super) secret: String,
    pub(super) process: tokio::process::Child,
}

impl WebGuard {
    /// The value of the header by which a client is known.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.secret)
    }
}

/// Waits until something is so.
pub(super) async fn wait(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..4_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("in vain: {what}")
}
