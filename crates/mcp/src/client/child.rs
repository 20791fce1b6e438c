//! A server that is a child process.

use std::io;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::frames::{FrameWriter, Frames, Received, Sender, WrittenFrame};

/// The time that a process may take to end by itself, and again once it was told to end.
const ENDING: Duration = Duration::from_secs(3);

/// A connection on the stdin and stdout of a process.
pub(crate) struct ChildTransport {
    child: Child,
    frames: Frames<RoleClient, ChildStdout>,
    input: FrameWriter<TxJsonRpcMessage<RoleClient>, ChildStdin>,
}

impl ChildTransport {
    /// Starts the process. Its stderr is inherited.
    pub(crate) fn spawn(mut command: Command, server: &str) -> io::Result<Self> {
        use std::process::Stdio;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
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

    /// Closes its stdin, by which a server ends; one that does not is told to end, and then killed.
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
