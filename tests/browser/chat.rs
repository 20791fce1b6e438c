//! The page of the example `chat`, as people use it: an unmodified `useChat` in a real browser.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use countersign::ledger::{AskState, Ledger};
use countersign_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::http::{closed, half_open};
use crate::player::play;
use crate::program::program;
use crate::service::halt;

/// The server and its data.
struct Chat {
    data: TempDir,
    process: Child,
    url: String,
}

impl Chat {
    fn start(more: &[&str]) -> Self {
        let data = TempDir::new().unwrap();
        let (process, url) = serve(&data, 0, more);
        Self { data, process, url }
    }

    /// Kills it, as a failure of the machine would, and starts it again over the same data.
    fn restart(&mut self) {
        self.stop();
        let port = self.url.rsplit_once(':').unwrap().1.parse().unwrap();
        (self.process, self.url) = serve(&self.data, port, &[]);
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(data: &TempDir, port: u16, more: &[&str]) -> (Child, String) {
    let mut child = Command::new(program("chat"))
        .args(["--port", &port.to_string(), "--data"])
        .arg(data.path())
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    let url = first.trim().strip_prefix("Open ").expect("it starts: .ci/browser builds its page");
    let url = url.to_owned();
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    (child, url)
}

async fn people(scenarios: &str) {
    let mut chat = Chat::start(&[]);
    let url = chat.url.clone();
    play("chat/run", &[&url, "--restart", "host", "--of", scenarios], |word| match word {
        "restart" => chat.restart(),
        "pause" => halt(&chat.process, true),
        "continue" => halt(&chat.process, false),
        word => panic!("the scenario asks for `{word}`"),
    });
    chat.stop();
    // L1, L2: every ask was decided once and ran at most once, and the log verifies.
    let ledger = Ledger::new(SqliteStore::open(chat.data.path().join("chats.db")).await.unwrap());
    assert!(ledger.verify(&Default::default()).await.is_ok());
    for record in ledger.list(None, u32::MAX).await.unwrap().records {
        let by = record.decision.as_ref().map(|decision| decision.by.clone());
        match record.state {
            AskState::Executed => assert_eq!((record.token, by), (1, Some(vec!["you".to_owned()]))),
            _ => assert_eq!(record.token, 0, "{record:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_one_by_one_together_edited_and_denied() {
    people("answering").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_reloaded_and_opened_twice_and_the_server_is_killed() {
    people("lasting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_nothing_is_approved_unseen_and_drafts_survive() {
    // S3, S4, S5; "a lost server is shown".
    people("careful").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_shown_as_a_change_and_a_cut_preview_is_approved_alone() {
    // S7: "every surface shows it"; "a preview that was cut says how much is missing, and its call is approved only by
    // itself".
    people("previews").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_shown_before_it_is_made_and_answers_equal_later_calls() {
    // G3: "each is shown as a sentence and as the rule before it is made; approving once is the default".
    people("granting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_are_denied_at_once_and_executed_calls_share_a_row() {
    // S8: "denying everything is a key of its own, with a confirmation above 10 calls".
    people("many").await;
}

#[tokio::test]
async fn connections_without_a_request_are_closed_and_keep_no_client_out() {
    let chat = Chat::start(&["--max-connections", "8", "--header-timeout-s", "1"]);
    let open = half_open(&chat.url, 30).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let alive = http.get(format!("{}/api/alive", chat.url)).send().await.unwrap();
    assert_eq!(alive.status(), 204);
    closed(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_stays_text_and_the_keyboard_reaches_every_control() {
    people("showing").await;
}
