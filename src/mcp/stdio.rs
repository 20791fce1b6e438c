//! A client on stdio: its lines, and which responses it was written.
//!
//! The protocol's library writes a response after the request was served, and a client may have died meanwhile. Whether
//! the outcome of an approved call was delivered is known only here, when the write has succeeded (rule M3).

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::frames::{Frames, Sender};
use super::shared::Shared;

/// The connection with a client on stdio.
pub(super) struct ClientTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    frames: AsyncRwTransport<RoleServer, Frames<R>, W>,
    shared: Arc<Shared>,
}

impl<R, W> ClientTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, shared: Arc<Shared>) -> Self {
        let input = Frames::new(input, Sender::Client, shared.name.as_str());
        Self { frames: AsyncRwTransport::new_server(input, output), shared }
    }
}

impl<R, W> Transport<RoleServer> for ClientTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let request = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sent, shared) = (self.frames.send(message), Arc::clone(&self.shared));
        async move {
            let sent = sent.await;
            let Some(request) = request else { return sent };
            if sent.is_ok() {
                shared.delivered(&shared.asks.responses.asks(&request)).await;
            }
            // Only now: until it is recorded, an equal call must not take the outcome for one that was not delivered.
            shared.asks.responses.end(&request);
            sent
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.frames.receive()
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.frames.close()
    }
}
