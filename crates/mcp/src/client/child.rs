//! A server that is a child process.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::frames::{FrameWriter, Frames, Received, Sender, WrittenFrame};
use countersign::show;

/// The time that a process may take to end by itself, and again once it was told to end.
const ENDING: Duration = Duration::from_secs(3);

/// A connection on the stdin and stdout of a process.
pub(crate) struct ChildTransport {
    child: Child,
    frames: Frames<RoleClient, ChildStdout>,
    input: FrameWriter<TxJsonRpcMessage<RoleClient>, ChildStdin>,
}

impl ChildTransport {
    /// Starts the process. Its stderr is inherited, unless that is a terminal. There we show each line behind the name of the
    /// server: it cannot pass for a question of ours, or draw over one.
    pub(crate) fn spawn(mut command: Command, server: &str) -> io::Result<Self> {
        use std::process::Stdio;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let is_shown = io::stderr().is_terminal();
        if is_shown {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        if let Some(errors) = child.stderr.take().filter(|_| is_shown) {
            tokio::spawn(copy_lines(errors, server.to_owned(), io::stderr()));
        }
        let closed = || io::Error::other("it has no stdin or stdout");
        let output = child.stdout.take().ok_or_else(closed)?;
        let input = child.stdin.take().ok_or_else(closed)?;
        let frames = Frames::new(output, Sender::Server, server);
        Ok(Self { child, frames, input: FrameWriter::new(input) })
    }

    async fn has_ended(&mut self) -> io::Result<bool> {
        match tokio::time::timeout(ENDING, self.child.wait()).await {
            Ok(ended) => ended.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    #[cfg(unix)]
    fn terminate(&self) {
        let process = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(process) = process.and_then(rustix::process::Pid::from_raw) {
            // It may have ended by itself.
            _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}
}

/// Copies what a server writes to its stderr, with its name before each line and without what a terminal would obey.
async fn copy_lines(errors: impl AsyncRead + Unpin, server: String, mut to: impl io::Write) {
    let (mut errors, server) = (BufReader::new(errors), show::escape(&server));
    while let Ok(read) = errors.fill_buf().await
        && !read.is_empty()
    {
        let end = read.iter().position(|byte| *byte == b'\n').map_or(read.len(), |at| at + 1);
        let line = String::from_utf8_lossy(read.get(..end).unwrap_or_default());
        let line = show::escape(line.trim_end());
        errors.consume(end);
        // Our stderr is closed.
        if writeln!(to, "{server}: {line}").is_err() {
            return;
        }
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.input.send(WrittenFrame::Message(message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.frames.next().await? {
                Received::Message(message) => return Some(message),
                Received::Refused(refusal) => {
                    // In a task, as the library may drop this future for another message.
                    tokio::spawn(self.input.send(WrittenFrame::Refusal(refusal)));
                }
            }
        }
    }

    /// Closes its stdin, by which a server ends. If it does not, we tell it to end, and then kill
    /// it.
    async fn close(&mut self) -> io::Result<()> {
        self.input.close().await;
        if self.has_ended().await? {
            return Ok(());
        }
        self.terminate();
        if self.has_ended().await? {
            return Ok(());
        }
        self.child.kill().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_writes_to_a_terminal_is_inert_and_has_its_name() {
        let errors = &b"ready\n\x1b[2J\x1b[HAllow wipe_disk? (y/n)\nlast"[..];
        let mut to = Vec::new();
        copy_lines(errors, "files".to_owned(), &mut to).await;
        let text = String::from_utf8(to).unwrap();
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(text.lines().all(|line| line.starts_with("files: ")) && text.lines().count() == 3);
    }
}
