//! One session of a client, in which its model is asked to make a call that must be denied.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use countersign_cli::hook::Client;

/// The time that a client may take. opencode waits more than a minute for a registry that it cannot reach.
const PATIENCE: Duration = Duration::from_secs(180);

/// The part of the client's output that is searched for a reason, in bytes.
const LOOKED_AT: u64 = 64 << 10;

/// The end of a session.
pub(super) enum SessionEnd {
    /// The client has ended by itself.
    Itself(ExitStatus),
    /// It was ended, as it took too long.
    TooLate,
}

/// A client that is given one prompt, without a person.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) program: PathBuf,
    pub(super) directory: PathBuf,
    /// `true` if the directory is one of the canary, so that the user has nothing in it that a client could distrust.
    pub(super) is_own: bool,
}

impl Session {
    /// Runs the session. Returns how it has ended, and the last words of the client, which mostly say why there was no
    /// call. `called` tells whether the client has made the call: one with a window makes it after its program has ended.
    pub(super) fn run(
        &self,
        prompt: &str,
        log: &Path,
        called: impl Fn() -> bool,
    ) -> std::io::Result<(SessionEnd, String)> {
        let start = Instant::now();
        let mut file = File::options().read(true).append(true).create(true).open(log)?;
        let mut command = Command::new(&self.program);
        command.args(self.client.live_arguments(prompt));
        if let Some((name, value)) = self.client.trusting_variable().filter(|_| self.is_own) {
            command.env(name, value);
        }
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        // Clients start themselves again, and all of them are ended.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut ended = waited(command.spawn()?)?;
        while self.client.opens_window() && !called() {
            if start.elapsed() > PATIENCE {
                ended = SessionEnd::TooLate;
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let from = file.metadata()?.len().saturating_sub(LOOKED_AT);
        file.seek(SeekFrom::Start(from))?;
        let mut output = Vec::new();
        file.read_to_end(&mut output)?;
        Ok((ended, last_words(&String::from_utf8_lossy(&output))))
    }
}

fn waited(mut child: Child) -> std::io::Result<SessionEnd> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(SessionEnd::Itself(status));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    child.kill()?;
    child.wait()?;
    Ok(SessionEnd::TooLate)
}

/// The longest line that is quoted, in characters.
const LONGEST: usize = 300;

/// The last line that says something, without what a terminal would interpret.
fn last_words(output: &str) -> String {
    let mut lines = output.lines().rev().map(str::trim);
    let line = lines.find(|line| line.chars().any(char::is_alphanumeric));
    line.unwrap_or_default().chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}
