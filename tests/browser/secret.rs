//! The program `countersign inbox` in a browser: a secret that is exchanged for a session, and addresses without it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use countersign::Args;
use countersign::ledger::{Ask, AskState, Ledger};
use countersign_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::player::play;
use crate::program::program;

/// A user of the program, with a home directory.
struct Home(TempDir);

impl Home {
    fn state(&self, name: &str) -> PathBuf {
        self.0.path().join(".local/state/countersign").join(name)
    }

    fn serve(&self, more: &[&str]) -> Served {
        let mut command = Command::new(program("countersign"));
        command.args(["inbox", "--principal", "ann"]).args(more);
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command.env("HOME", self.0.path()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Served { child, url: line.trim().to_owned() }
    }
}

struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn park(ledger: &Ledger, path: &str, tool: &str, args: Args) -> String {
    let ask = Ask::new("run-1", path, tool).with_args(args);
    ledger.park(ask).await.unwrap().ask.id().to_owned()
}

#[tokio::test]
async fn the_secret_is_exchanged_once_and_an_ask_has_an_address_without_it() {
    let home = Home(TempDir::new().unwrap());
    let mut served = home.serve(&[]);
    let ledger = Ledger::new(SqliteStore::open(&home.state("asks.db")).await.unwrap());
    for n in 0..30 {
        park(&ledger, &format!("root/c{n}"), "send_report", Args::new().with("week", n)).await;
    }
    for n in 0..12 {
        park(&ledger, &format!("root/b{n}"), "backup", Args::new()).await;
    }
    let args = Args::new().with("environment", "staging");
    let deploy = park(&ledger, "root/deployer/db/c1", "deploy", args).await;
    let secret: &Path = &home.state("inbox.secret");
    let url = served.url.clone();
    let words = [&*url, secret.to_str().unwrap(), &deploy];
    play("inbox/secret", &words, |word| match word {
        "restart" => {
            let _ = served.child.kill();
            let _ = served.child.wait();
            served = home.serve(&[]);
            assert_eq!(served.url, url, "the address stays");
        }
        "new-secret" => drop(home.serve(&["--new-secret"])),
        // As the next start of the inbox would take the port of the last one.
        "note" => std::fs::write(home.state("inbox.url"), format!("{url}\n")).unwrap(),
        word => panic!("the scenario asks for `{word}`"),
    });
    let record = ledger.get(&deploy).await.unwrap().unwrap();
    assert_eq!(record.state, AskState::Decided);
    let decision = record.decision.unwrap();
    assert_eq!((&decision.by[..], decision.answer.word()), (&["ann".to_owned()][..], "approve"));
}
