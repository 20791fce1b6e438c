//! A process that runs one command after the other, until it is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::storm::Hands;
use super::{Said, Shell};
use crate::support::program;

/// The command `asks each` of the program, started again whenever it is gone.
pub(super) struct Session<'s> {
    shell: &'s Shell,
    process: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    pub(super) kills: usize,
}

impl<'s> Session<'s> {
    pub(super) fn new(shell: &'s Shell) -> Self {
        Self { shell, process: None, kills: 0 }
    }

    fn start(&self) -> (Child, ChildStdin, BufReader<ChildStdout>) {
        let mut child = Command::new(program("countersign"))
            .args(["asks", "--store", &self.shell.url, "each"])
            .env("HOME", self.shell.place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        (child, stdin, BufReader::new(stdout))
    }

    /// Returns `true` if the reader of the output still exists.
    fn send(&mut self, args: &[&str]) -> bool {
        let mut process = self.process.take().unwrap_or_else(|| self.start());
        let sent = writeln!(process.1, "{}", json!(args)).is_ok();
        self.process = Some(process);
        sent
    }

    /// Its next output. `None` when the process is gone, or does not know the result of the command.
    fn said(&mut self) -> Option<Said> {
        let mut line = String::new();
        let read = self.process.as_mut()?.2.read_line(&mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            self.end();
            // The server may be away.
            thread::sleep(Duration::from_millis(100));
            return None;
        }
        let said: Value = serde_json::from_str(&line).ok()?;
        let status = i32::try_from(said["status"].as_i64()?).unwrap();
        let lines = said["lines"].as_array()?.clone();
        let err = said["error"].as_str().unwrap_or_default().to_owned();
        assert_ne!(status, 2, "{err}");
        (status != 1).then_some(Said { status, lines, err })
    }

    fn end(&mut self) {
        if let Some((mut child, ..)) = self.process.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}

impl Hands for Session<'_> {
    fn run(&mut self, args: &[&str]) -> Option<Said> {
        if self.send(args) { self.said() } else { self.said().and(None) }
    }

    fn run_and_kill(&mut self, args: &[&str], after: Duration) -> Option<Said> {
        self.send(args);
        thread::sleep(after);
        if let Some((child, ..)) = &mut self.process {
            child.kill().unwrap();
            self.kills += 1;
        }
        let said = self.said();
        self.end();
        said
    }

    fn odds(&self) -> u64 {
        40
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
