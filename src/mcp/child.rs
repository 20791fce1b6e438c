//! A server that is a child process.

use std::io;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::frames::{Frames, Sender};

/// How long a process may take to end by itself, and again once it was told to end.
const ENDING: Duration = Duration::from_secs(3);

/// A connection on the stdin and stdout of a process.
pub(super) struct ChildTransport {
    child: Child,
    frames: AsyncRwTransport<RoleClient, Frames<ChildStdout>, ChildStdin>,
}

impl ChildTransport {
    /// Starts the process. Its stderr is inherited.
    pub(super) fn spawn(mut command: Command, server: &str) -> io::Result<Self> {
        use std::process::Stdio;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let closed = || io::Error::other("it has no stdin or stdout");
        let output = child.stdout.take().ok_or_else(closed)?;
        let input = child.stdin.take().ok_or_else(closed)?;
        let output = Frames::new(output, Sender::Server, server);
        Ok(Self { child, frames: AsyncRwTransport::new_client(output, input) })
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
        self.frames.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.frames.receive()
    }

    /// Closes its stdin, by which a server ends; one that does not is told to end, and then killed.
    async fn close(&mut self) -> io::Result<()> {
        self.frames.close().await?;
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
