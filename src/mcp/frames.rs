//! The lines of a connection on stdio, before they are read as messages.
//!
//! The protocol's library leaves out a line that it cannot read, without a word. Here it is said in the log, without the
//! line, as that may hold anything:
//!
//! | a line | of a client | of a server |
//! |---|---|---|
//! | does not begin with `{` or `[` | left out: a text that a program prints | the same |
//! | is longer than 16 MiB, or is no JSON | answered as an invalid request | ends the connection |
//!
//! A server's message that cannot be read may be the result of a call, and without it the call would be waited for until
//! its time is over. So the connection ends, and calls in flight end with it as *may have run*.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::de::IgnoredAny;
use tokio::io::{AsyncBufRead as _, AsyncRead, BufReader, ReadBuf};

/// The longest line, which is also the library's.
const MAX_LINE: usize = 16 << 20;
/// The deepest nesting that the library reads; reading without the values does not count it.
const MAX_DEPTH: usize = 127;
/// A message that is no request, which the library answers with an error.
const INVALID: &[u8] = b"{}\n";

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
}

/// Reads whole lines, and lets those through that are JSON.
pub(super) struct Frames<R> {
    from: BufReader<R>,
    sender: Sender,
    /// The name of the server in the user's configuration.
    server: String,
    line: Vec<u8>,
    /// How many bytes of a whole line were given; `None` while the line is read.
    given: Option<usize>,
    /// Whether the rest of a line is left out, up to its end.
    skips: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R, sender: Sender, server: impl Into<String>) -> Self {
        let (from, line) = (BufReader::new(from), Vec::new());
        Self { from, sender, server: server.into(), line, given: None, skips: false }
    }

    fn left_out(&self, problem: &str) {
        let (server, sender) = (&*self.server, self.sender);
        tracing::warn!(target: "countersign::mcp", server, ?sender, problem, "a line on stdio is left out");
    }

    /// Leaves out a message that cannot be read.
    fn unreadable(&mut self, problem: &'static str) -> io::Result<()> {
        self.left_out(problem);
        self.line.clear();
        if self.sender == Sender::Server {
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.line.extend_from_slice(INVALID);
        self.given = Some(0);
        Ok(())
    }

    /// Judges a whole line.
    fn judge(&mut self) -> io::Result<()> {
        let text = self.line.trim_ascii();
        if text.is_empty() {
            self.line.clear();
        } else if !matches!(text.first(), Some(b'{' | b'[')) {
            self.left_out("it is no message");
            self.line.clear();
        } else if is_deep(text) || serde_json::from_slice::<IgnoredAny>(text).is_err() {
            return self.unreadable("it is no JSON, or nested too deeply");
        } else {
            self.given = Some(0);
        }
        Ok(())
    }

    /// Takes the bytes up to the end of the line, or all of them; `false` at the end of the connection.
    fn take(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let bytes = ready!(Pin::new(&mut self.from).poll_fill_buf(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(false));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end.saturating_add(1));
        let fits = self.line.len().saturating_add(taken) <= MAX_LINE;
        if !self.skips && fits {
            self.line.extend(bytes.iter().take(taken));
        }
        Pin::new(&mut self.from).consume(taken);
        let skipped = self.skips;
        self.skips = end.is_none() && (skipped || !fits);
        if !skipped && !fits {
            self.unreadable("it is longer than 16 MiB")?;
        } else if !skipped && end.is_some() {
            self.judge()?;
        }
        Poll::Ready(Ok(true))
    }
}

/// Whether arrays and objects are nested too deeply.
fn is_deep(json: &[u8]) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth = depth.saturating_add(1),
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

impl<R: AsyncRead + Unpin> AsyncRead for Frames<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(given) = self.given {
                let rest = self.line.get(given..).unwrap_or_default();
                let part = rest.get(..rest.len().min(out.remaining())).unwrap_or_default();
                out.put_slice(part);
                let given = given.saturating_add(part.len());
                self.given = Some(given);
                if given >= self.line.len() {
                    self.line.clear();
                    self.given = None;
                }
                return Poll::Ready(Ok(()));
            }
            if !ready!(self.take(cx))? {
                // What is left is the beginning of a line whose end never came.
                return Poll::Ready(Ok(()));
            }
        }
    }
}
