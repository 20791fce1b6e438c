//! A client on stdio: its lines, and the responses that were written to it.
//!
//! The protocol's library writes a response after the request was served, and the client may have died meanwhile. Only
//! here do we see that a write has succeeded, and so that the outcome of an approved call was delivered (rule M3).

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetExtensions as _, JsonRpcMessage, JsonRpcRequest};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::shared::Shared;
use crate::frames::{FrameWriter, Frames, Received, Sender, WrittenFrame};
use crate::reading::{Refusal, unread_params};

/// The connection with a client on stdio.
pub(crate) struct ClientTransport<R: AsyncRead + Unpin, W> {
    frames: Frames<RoleServer, R>,
    output: FrameWriter<TxJsonRpcMessage<RoleServer>, W>,
    shared: Arc<Shared>,
}

impl<R, W> ClientTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(input: R, output: W, shared: Arc<Shared>) -> Self {
        let frames = Frames::new(input, Sender::Client, shared.name.as_str());
        Self { frames, output: FrameWriter::new(output), shared }
    }

    /// The request with its id in use, or the error that answers it.
    fn taken(
        &self,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<JsonRpcRequest<ClientRequest>, Refusal> {
        if let ClientRequest::CustomRequest(custom) = &request.request
            && let Some(error) = unread_params(custom)
        {
            return Err(Refusal::of(&request.id, error));
        }
        let id = self.shared.request_ids.take(None, &request.id)?;
        request.request.extensions_mut().insert(Arc::new(id));
        Ok(request)
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
        let sent = self.output.send(WrittenFrame::Message(message));
        let shared = Arc::clone(&self.shared);
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

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let answer = match self.frames.next().await {
                Some(Received::Message(JsonRpcMessage::Request(request))) => {
                    match self.taken(request) {
                        Ok(request) => return Some(JsonRpcMessage::Request(request)),
                        Err(refusal) => WrittenFrame::Refusal(refusal),
                    }
                }
                Some(Received::Message(message)) => return Some(message),
                // The library waits for the calls in flight before it says that the connection has ended.
                None => {
                    self.shared.disconnected.cancel();
                    return None;
                }
                Some(Received::Refused(refusal)) => WrittenFrame::Refusal(refusal),
            };
            // In a task, as the library may drop this future for another message.
            tokio::spawn(self.output.send(answer));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await;
        Ok(())
    }
}
