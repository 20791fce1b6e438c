//! Chunks as server-sent events.
//!
//! We write JSON without line breaks outside of strings, and within strings they are escaped. So an event is always
//! one line, and no text of a model can begin another event.

use std::io::Write as _;

use super::chunk::Chunk;

/// The headers of a UI message stream: the five that the AI SDK's own server sends.
///
/// ```
/// use countersign_ai_sdk::HEADERS;
/// assert!(HEADERS.contains(&("x-vercel-ai-ui-message-stream", "v1")));
/// ```
pub const HEADERS: [(&str, &str); 5] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("connection", "keep-alive"),
    ("x-vercel-ai-ui-message-stream", "v1"),
    // Tells proxies such as nginx not to buffer the chunks.
    ("x-accel-buffering", "no"),
];

/// The last event of a stream. A client treats a stream that ends without this event as cut off.
///
/// ```
/// use countersign_ai_sdk::{DONE, KEEP_ALIVE};
/// assert!(DONE.ends_with("\n\n") && KEEP_ALIVE.starts_with(':'));
/// ```
pub const DONE: &str = "data: [DONE]\n\n";

/// The comment that an idle stream sends, so that no proxy closes the connection. Clients ignore comments.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Appends a chunk to a buffer as one server-sent event.
///
/// ```
/// use countersign_ai_sdk::{Chunk, encode};
///
/// let mut events = Vec::new();
/// encode(&Chunk::StartStep {}, &mut events);
/// assert_eq!(events, b"data: {\"type\":\"start-step\"}\n\n");
/// ```
pub fn encode(chunk: &Chunk, into: &mut Vec<u8>) {
    let before = into.len();
    let written = into.write_all(b"data: ").is_ok()
        && serde_json::to_writer(&mut *into, chunk).is_ok()
        && into.write_all(b"\n\n").is_ok();
    if !written {
        // Not reached: all keys of a chunk are strings, and writing to a vector does not fail.
        into.truncate(before);
    }
}
