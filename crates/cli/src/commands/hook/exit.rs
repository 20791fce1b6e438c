//! The one way out of a hook (rule P2).
//!
//! Clients run the tool when a hook dies, is too late, or writes anything but its answer. So we build the answer in
//! memory, and write it at once. The first of these writes it: the decision, a panic, a signal, or a thread that
//! watches the time.
//!
//! Three times matter, the last one first. At the client's limit, the client runs the tool. Half a margin before the
//! limit, the watch of this module denies the call. A whole margin before it, we stop waiting for a person. The margin
//! is a tenth of the limit, from two to ten seconds, and at most a third of the limit. We count all of them from the
//! start of the process, and not from that of `main`.
//!
//! We answer an event after a call by a remark and not by a denial: the call has run, and the model would be told that
//! it was denied.
//!
//! `std::process::exit` ends the process without unwinding and without waiting for other threads. We need that: a store
//! that hangs must not delay the answer.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use countersign_cli::hook::{Client, HookReply};

/// The pause after which the watch looks again whether the client still waits.
const GLANCE: Duration = Duration::from_millis(100);

/// The process that waits for this one: the shell around the hook, or the client.
///
/// A client that gives up at its own limit may end only that shell (Gemini CLI does), and runs the call. A hook that still
/// waited would spend an approval that comes later, and would record the call as an approved one.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    0
}

/// Writes one answer and ends the process.
#[derive(Clone)]
pub(super) struct Exit {
    client: Client,
    event: Option<String>,
    /// `true` once a thread writes the answer.
    answered: Arc<AtomicBool>,
    /// `true` if the payload reports that a call has ended, which no answer can deny.
    is_report: Arc<AtomicBool>,
}

impl Exit {
    /// Makes every failure from here on end in a denial that the client obeys. So does reaching
    /// `last`.
    pub(super) fn guarded(client: Client, event: Option<String>, last: Instant) -> Self {
        let this = Self { client, event, answered: Arc::default(), is_report: Arc::default() };
        let exit = this.clone();
        std::panic::set_hook(Box::new(move |_| exit.deny("countersign has failed (a panic)")));
        signals(&this);
        let exit = this.clone();
        let watch = thread::Builder::new().name("countersign-watch".to_owned());
        let watching = watch.spawn(move || {
            let client = parent();
            while let Some(left) = last.checked_duration_since(Instant::now()) {
                thread::sleep(left.clamp(Duration::from_millis(1), GLANCE));
                if parent() != client && !exit.is_report.load(Ordering::SeqCst) {
                    exit.deny("the client has given up before countersign had decided");
                }
            }
            exit.deny(&format!(
                "countersign could not decide about this call in time: call again, and tell a person if it happens again, whom \
                 `countersign hook doctor {}` helps",
                exit.client
            ))
        });
        if watching.is_err() {
            this.deny("countersign cannot watch the time: no thread can be started");
        }
        this
    }

    /// Writes the answer and ends the process. The first caller wins; every other one waits for the end of the process.
    pub(super) fn end(&self, reply: &HookReply) -> ! {
        if self.answered.swap(true, Ordering::SeqCst) {
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        }
        tell(reply.stderr());
        let mut stdout = std::io::stdout();
        let written = stdout.write_all(reply.stdout()).and_then(|()| stdout.flush());
        std::process::exit(if written.is_ok() { reply.status().into() } else { 2 })
    }

    /// Makes every failure from here on a remark and not a denial: the call that the payload is about has
    /// ended.
    pub(super) fn only_reports(&self) {
        self.is_report.store(true, Ordering::SeqCst);
    }

    /// Denies the call, unless it has ended.
    pub(super) fn deny(&self, reason: &str) -> ! {
        if self.is_report.load(Ordering::SeqCst) {
            self.end(&HookReply::remark(reason));
        }
        self.end(&HookReply::denial(self.client, self.event.as_deref(), reason))
    }
}

/// The time for which we wait until a client has read stderr. The answer is on stdout, and must not wait for a client
/// that reads only stdout.
const STDERR: Duration = Duration::from_millis(250);

/// Writes to stderr in a thread of its own. Otherwise a full pipe that no one reads would hold the answer back until
/// the client runs the tool.
fn tell(text: &str) {
    if text.is_empty() {
        return;
    }
    let (done, told) = mpsc::channel();
    let owned = text.to_owned();
    let teller = thread::Builder::new().name("countersign-stderr".to_owned()).spawn(move || {
        let _ = std::io::stderr().write_all(owned.as_bytes());
        let _ = done.send(());
    });
    match teller {
        Ok(_) => {
            let _ = told.recv_timeout(STDERR);
        }
        Err(_) => {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
}

/// Answers before a signal ends the process. SIGXFSZ is the signal of a file that has reached its size limit.
#[cfg(unix)]
fn signals(exit: &Exit) {
    use signal_hook::consts::signal;
    let caught = [
        signal::SIGTERM,
        signal::SIGINT,
        signal::SIGHUP,
        signal::SIGQUIT,
        signal::SIGALRM,
        signal::SIGUSR1,
        signal::SIGUSR2,
        signal::SIGXCPU,
        signal::SIGXFSZ,
        signal::SIGVTALRM,
        signal::SIGPROF,
    ];
    let Ok(mut signals) = signal_hook::iterator::Signals::new(caught) else {
        exit.deny("countersign cannot catch signals");
    };
    let exit_on = exit.clone();
    let thread = thread::Builder::new().name("countersign-signals".to_owned());
    let waiting = thread.spawn(move || {
        if signals.forever().next().is_some() {
            exit_on.deny("countersign was told to end before it had decided");
        }
    });
    if waiting.is_err() {
        exit.deny("countersign cannot wait for signals: no thread can be started");
    }
}

#[cfg(not(unix))]
fn signals(_: &Exit) {}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use countersign_cli::hook::{Client, HookReply};

    use super::Exit;

    const CHILD: &str = "COUNTERSIGN_TEST_OF_EXIT";

    /// Rule P2: a panic is a denial. The process that panics is this test, run again by itself.
    #[test]
    fn a_panic_in_any_thread_is_a_denial() {
        if let Ok(thread) = std::env::var(CHILD) {
            let _exit =
                Exit::guarded(Client::Codex, None, Instant::now() + Duration::from_secs(60));
            if thread == "main" {
                panic!("on purpose");
            }
            let _ = std::thread::spawn(|| panic!("on purpose")).join();
            unreachable!("the process has ended");
        }
        let denial = HookReply::denial(Client::Codex, None, "countersign has failed (a panic)");
        for thread in ["main", "another"] {
            let name = "hook::exit::tests::a_panic_in_any_thread_is_a_denial";
            let mut command = Command::new(std::env::current_exe().unwrap());
            let ended =
                command.args([name, "--exact", "--nocapture"]).env(CHILD, thread).output().unwrap();
            assert_eq!(ended.status.code(), Some(2), "{ended:?}");
            // Before the answer is what the test runner has written.
            assert!(ended.stdout.ends_with(denial.stdout()), "{ended:?}");
            assert!(ended.stderr.ends_with(denial.stderr().as_bytes()), "{ended:?}");
        }
    }
}
