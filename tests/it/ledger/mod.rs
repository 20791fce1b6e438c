//! The ledger: decided once, executed once, over every store, and from the shell.

/// Tests of the shell, over each store that processes can share.
macro_rules! over_each_store {
    ($($test:ident),+ $(,)?) => {
        mod in_sqlite {
            $(#[test] fn $test() { super::$test(&crate::ledger::Shell::sqlite()); })+
        }

        mod in_postgresql {
            $(#[test] fn $test() { super::$test(&crate::ledger::Shell::postgres()); })+
        }
    };
}

/// Tests of a ledger over a store whose tables are changed from outside, for each kind of database.
macro_rules! over_sqlite_and_postgresql {
    ($($test:ident),+ $(,)?) => {
        mod in_sqlite {
            $(#[tokio::test] async fn $test() { super::$test(&super::Place::sqlite()).await; })+
        }

        mod in_postgresql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() { super::$test(&super::Place::postgres().await).await; })+
        }
    };
}

mod aging;
mod audit;
mod checkpoints;
mod closing;
mod contract;
mod deceiving;
mod doctored;
mod grants;
pub(crate) mod keys;
mod kills;
mod lying;
mod missing;
mod people;
mod properties;
mod repeating;
mod resuming;
mod retention;
mod series;
mod session;
mod shell;
mod storm;
mod taking_up;
mod turns;
mod vanished;

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::program;

/// A store, driven by processes of the program.
pub(crate) struct Shell {
    url: String,
    /// Where its file is.
    place: TempDir,
}

/// The output and the status of a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) lines: Vec<Value>,
    pub(crate) err: String,
}

impl Said {
    /// The one line that it printed.
    fn line(&self) -> &Value {
        assert_eq!(self.lines.len(), 1, "{self:?}");
        &self.lines[0]
    }

    /// The exit status and the result.
    pub(crate) fn told(&self) -> (i32, &str) {
        (self.status, self.line()["result"].as_str().unwrap_or_default())
    }
}

/// An ask, as `park` printed it.
#[derive(Debug, Clone)]
pub(crate) struct Parked {
    id: String,
    fingerprint: String,
}

impl Shell {
    /// A new SQLite file.
    fn sqlite() -> Self {
        let place = TempDir::new().unwrap();
        let url = format!("sqlite:{}", place.path().join("asks.db").display());
        Self { url, place }
    }

    /// Tables of its own in PostgreSQL.
    fn postgres() -> Self {
        Self::on(crate::support::postgres::Server::shared())
    }

    /// Tables of its own on this server.
    pub(crate) fn on(server: &crate::support::postgres::Server) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { url: runtime.block_on(server.url()), place: TempDir::new().unwrap() }
    }

    /// A process that runs this command, with this on its stdin.
    fn start(&self, args: &[&str], stdin: &str) -> Child {
        let mut command = Command::new(program("countersign"));
        command.args(["asks", "--store", &self.url]).args(args);
        // The user's own files are no part of a test.
        command
            .env("HOME", self.place.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A process that does not read all of its input has printed the reason.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(self.start(args, ""))
    }

    /// Kills the process after so long. `None` when it had not said anything.
    fn run_and_kill(&self, args: &[&str], after: Duration) -> Option<Said> {
        let mut child = self.start(args, "");
        std::thread::sleep(after);
        child.kill().unwrap();
        let said = said(child);
        (!said.lines.is_empty()).then_some(said)
    }

    fn park(&self, ask: &Value) -> Parked {
        let said = said(self.start(&["park"], &ask.to_string()));
        assert_eq!(said.status, 0, "{said:?}");
        let text = |field: &str| said.line()[field].as_str().unwrap().to_owned();
        Parked { id: text("id"), fingerprint: text("fingerprint") }
    }

    /// Parks a plain ask.
    pub(crate) fn ask(&self) -> Parked {
        self.park(&json!({"tool": "rm", "args": {"path": "a.log"}, "questions": ["sure?"]}))
    }

    /// Parks an ask that Ann approves.
    pub(crate) fn approved(&self, ask: &Value) -> Parked {
        let parked = self.park(ask);
        assert_eq!(self.decide(&parked, "ann", &["--approve"]).told(), (0, "won"));
        parked
    }

    pub(crate) fn decide(&self, ask: &Parked, who: &str, answer: &[&str]) -> Said {
        let args = ["decide", &ask.id, "--fingerprint", &ask.fingerprint, "--as", who];
        self.run(&[&args[..], answer].concat())
    }

    pub(crate) fn claim(&self, ask: &Parked, worker: &str, lease: &str) -> Said {
        self.run(&["claim", &ask.id, "--worker", worker, "--lease-s", lease])
    }

    pub(crate) fn settle(&self, ask: &Parked, token: u64, outcome: &str) -> Said {
        self.run(&["settle", &ask.id, "--token", &token.to_string(), "--outcome", outcome])
    }

    pub(crate) fn show(&self, ask: &Parked) -> Value {
        self.run(&["show", &ask.id]).line().clone()
    }

    #[track_caller]
    pub(crate) fn verify(&self) -> u64 {
        let said = self.run(&["verify"]);
        assert_eq!(said.status, 0, "{said:?}");
        assert_eq!(said.line()["ok"], true);
        said.line()["entries"].as_u64().unwrap()
    }
}

/// Waits for the end of a process.
fn said(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    // A process that was killed may have been in the middle of a line.
    let whole = out.lines().filter_map(|line| serde_json::from_str(line).ok());
    let err = String::from_utf8(output.stderr).unwrap();
    Said { status: output.status.code().unwrap_or(-1), lines: whole.collect(), err }
}
