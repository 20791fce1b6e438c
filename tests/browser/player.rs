//! Plays a scenario: node drives the browser, and asks the test for actions that only the test can do.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The time limit of a scenario.
const PATIENCE: Duration = Duration::from_secs(300);

/// The largest number of open browsers.
const BROWSERS: usize = 2;

static OPEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// A permit to open a browser.
struct Turn;

impl Turn {
    fn take() -> Self {
        let (open, closed) = &OPEN;
        let mut open = closed.wait_while(open.lock().unwrap(), |open| *open >= BROWSERS).unwrap();
        *open += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *OPEN.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) -= 1;
        OPEN.1.notify_one();
    }
}

/// Plays the scenario of this name (`inbox/approve`) at these addresses. `asked` carries out its requests.
///
/// When a check fails, the error has the checks before it and the content of every page.
pub(crate) fn play(scenario: &str, urls: &[&str], mut asked: impl FnMut(&str)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    assert!(
        folder.join("node_modules/playwright-core").exists(),
        "the browser tests need what is in tests/browser/package.json: .ci/browser installs it"
    );
    let _turn = Turn::take();
    let mut node = Command::new("node")
        .arg(folder.join(format!("{scenario}.mjs")))
        .args(urls)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the browser tests need node: .ci/browser installs it");
    let mut answers = node.stdin.take().unwrap();
    let (lines, heard) = channel();
    read(node.stdout.take().unwrap(), lines.clone());
    read(node.stderr.take().unwrap(), lines);

    let (mut said, end) = (VecDeque::new(), Instant::now() + PATIENCE);
    loop {
        match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => match line.strip_prefix('@') {
                Some(word) => {
                    asked(word);
                    // The scenario has printed why it gave up.
                    let _ = writeln!(answers, "done");
                }
                None => said.push_back(line),
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                stop(&mut node);
                panic!("{scenario} did not come to its end:\n{}", text(&said));
            }
        }
    }
    let status = node.wait().unwrap();
    assert!(status.success(), "{scenario}:\n{}", text(&said));
    assert!(said.iter().any(|line| line.contains("checked:")), "{scenario} has checked nothing");
}

fn read(from: impl std::io::Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
}

fn text(said: &VecDeque<String>) -> String {
    said.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn stop(node: &mut Child) {
    let _ = node.kill();
    let _ = node.wait();
}
