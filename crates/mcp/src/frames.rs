//! The lines of a connection on stdio, and how they are read as messages (rule M6: no line vanishes).
//!
//! The protocol's library leaves out a line that it cannot read, without a word. Then a request is never answered, and
//! a call waits until its time is over. So we read the lines here. If we cannot read one, we say so in the log,
//! without the line, as that may hold anything:
//!
//! | a line | of a client | of a server |
//! |---|---|---|
//! | does not begin with `{` or `[` | left out: a text that a program prints | left out, unless it holds `"jsonrpc"` |
//! | is no JSON and has no `"jsonrpc"`, or is JSON without it | answered as invalid | left out: `[INFO] ready` |
//! | holds halves of characters (`"\ud83d"`, or bytes that are no UTF-8) | read, with U+FFFD in their place | the same |
//! | is a list with tools that are nested too deeply | | read, without what is too deep, so that these tools are not offered |
//! | is a request that cannot be read | answered as invalid, with its id as it came | the same |
//! | is a response that cannot be read | taken for one that says so | the same: its call *may have run* |
//! | is longer than 16 MiB, or no JSON | answered as invalid, with its id where it has one | a long response as above; otherwise the connection ends |
//!
//! If a line of a server is no JSON and has `"jsonrpc"`, it may hold the results of any calls. So all calls that are in
//! flight end with the connection, as *may have run*. Servers also print their logs on the same stream, mostly by mistake:
//! such a line is no reason to end anything.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::SinkExt as _;
use rmcp::service::{RxJsonRpcMessage, ServiceRole};
use rmcp::transport::async_rw::JsonRpcMessageCodec;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Mutex;
use tokio_util::codec::FramedWrite;

use crate::outline::Outline;
use crate::reading::{
    MessageHead, MessageReading, Refusal, UnreadMessage, is_text_of_server, read,
};

/// The longest line.
const MAX_LINE: usize = 16 << 20;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

/// A line as it was received.
pub(crate) enum Received<M> {
    Message(M),
    /// A message that cannot be read: what its sender is to be answered.
    Refused(Refusal),
}

/// Reads lines as messages of this role's peer.
pub(crate) struct Frames<Role, R> {
    lines: StdioLines<R>,
    sender: Sender,
    /// The name of the server in the user's configuration.
    server: String,
    role: PhantomData<fn() -> Role>,
}

impl<Role: ServiceRole, R: AsyncRead + Unpin> Frames<Role, R> {
    pub(crate) fn new(from: R, sender: Sender, server: impl Into<String>) -> Self {
        Self { lines: StdioLines::new(from), sender, server: server.into(), role: PhantomData }
    }

    /// The next message; `None` at the end of the connection. A dropped future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Received<RxJsonRpcMessage<Role>>> {
        loop {
            let read = match self.lines.next().await {
                Ok(Some(StdioLine::Whole(line))) => self.read(&line),
                Ok(Some(StdioLine::Oversized(outline))) => {
                    let head = MessageHead::of_outline(&outline);
                    let problem = "it is longer than 16 MiB".to_owned();
                    self.unreadable(&UnreadMessage { head, problem })
                }
                Ok(None) => return None,
                Err(error) => {
                    let (server, sender) = (&*self.server, self.sender);
                    tracing::warn!(target: "countersign::mcp", server, ?sender, %error, "stdio cannot be read");
                    return None;
                }
            };
            match read {
                LineRead::As(received) => return Some(received),
                LineRead::LeftOut => {}
                LineRead::End => return None,
            }
        }
    }

    /// Says in the log that a line is not passed on as it came.
    fn log(&self, problem: &str, what: &str) {
        let (server, sender) = (&*self.server, self.sender);
        tracing::warn!(target: "countersign::mcp", server, ?sender, problem, "a line on stdio {what}");
    }

    fn read(&self, line: &[u8]) -> LineRead<RxJsonRpcMessage<Role>> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return LineRead::LeftOut;
        }
        if !matches!(line.first(), Some(b'{' | b'[')) && self.is_text(line) {
            return self.left_out();
        }
        match read(line) {
            MessageReading::Message(message) => LineRead::As(Received::Message(message)),
            MessageReading::Repaired { message, problem, what, .. } => {
                self.log(problem, what);
                LineRead::As(Received::Message(message))
            }
            MessageReading::Unread(_) if self.sender == Sender::Server && self.is_text(line) => {
                self.left_out()
            }
            MessageReading::Unread(unread) => self.unreadable(&unread),
        }
    }

    /// Returns `true` if a line that is no message is a text that a program prints. Only a server prints other texts than
    /// those that begin in another way than a message: `[INFO] ready`.
    fn is_text(&self, line: &[u8]) -> bool {
        self.sender == Sender::Client || is_text_of_server(line)
    }

    fn left_out(&self) -> LineRead<RxJsonRpcMessage<Role>> {
        self.log("it is no message", "is left out");
        LineRead::LeftOut
    }

    /// A message that cannot be read.
    fn unreadable(&self, unread: &UnreadMessage) -> LineRead<RxJsonRpcMessage<Role>> {
        self.log(&unread.problem, "cannot be read");
        let head = &unread.head;
        let responds = head.responds || self.sender == Sender::Server;
        match &head.id {
            Some(id) if head.is_json && responds && !head.requests() => {
                match serde_json::from_value(unread.in_place_of_response(id)) {
                    Ok(message) => LineRead::As(Received::Message(message)),
                    Err(_) => LineRead::End,
                }
            }
            _ if head.notifies() => LineRead::LeftOut,
            _ if self.sender == Sender::Client || head.is_json && head.requests() => {
                LineRead::As(Received::Refused(unread.refusal()))
            }
            _ => LineRead::End,
        }
    }
}

/// The result of reading a line.
enum LineRead<M> {
    As(Received<M>),
    LeftOut,
    /// The connection ends.
    End,
}

/// The content of a line.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum WrittenFrame<M> {
    Message(M),
    Refusal(Refusal),
}

/// Writes lines, each as a whole, in the order in which they are sent.
pub(crate) struct FrameWriter<M, W> {
    lines: Arc<Mutex<Option<FrameLines<M, W>>>>,
}

type FrameLines<M, W> = FramedWrite<W, JsonRpcMessageCodec<WrittenFrame<M>>>;

impl<M, W> FrameWriter<M, W>
where
    M: Serialize + Send + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(to: W) -> Self {
        let lines = FramedWrite::new(to, JsonRpcMessageCodec::default());
        Self { lines: Arc::new(Mutex::new(Some(lines))) }
    }

    /// Writes a line. The rest of one whose future is dropped is written with the next line.
    pub(crate) fn send(
        &self,
        frame: WrittenFrame<M>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = Arc::clone(&self.lines);
        async move {
            match &mut *lines.lock().await {
                Some(lines) => lines.send(frame).await.map_err(Into::into),
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    /// Closes the connection: nothing more is written.
    pub(crate) async fn close(&self) {
        drop(self.lines.lock().await.take());
    }
}

/// A line, or the outline of one that is too long.
enum StdioLine {
    Whole(Vec<u8>),
    Oversized(String),
}

/// Reads whole lines.
struct StdioLines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// The outline of the line, once that is too long.
    outline: Option<Outline>,
}

impl<R: AsyncRead + Unpin> StdioLines<R> {
    fn new(from: R) -> Self {
        Self { from: BufReader::new(from), line: Vec::new(), outline: None }
    }

    /// The next line; `None` at the end of the connection, also where the end of a line never came. The bytes of a line
    /// are kept when the future is dropped.
    async fn next(&mut self) -> io::Result<Option<StdioLine>> {
        loop {
            let bytes = self.from.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end.saturating_add(1));
            let part = bytes.get(..taken).unwrap_or_default();
            match &mut self.outline {
                Some(outline) => outline.extend(part),
                None if self.line.len().saturating_add(taken) <= MAX_LINE => {
                    self.line.extend_from_slice(part);
                }
                None => {
                    let mut outline = Outline::of(&std::mem::take(&mut self.line));
                    outline.extend(part);
                    self.outline = Some(outline);
                }
            }
            self.from.consume(taken);
            if end.is_some() {
                return Ok(Some(match self.outline.take() {
                    Some(outline) => StdioLine::Oversized(outline.into_text()),
                    None => StdioLine::Whole(std::mem::take(&mut self.line)),
                }));
            }
        }
    }
}
