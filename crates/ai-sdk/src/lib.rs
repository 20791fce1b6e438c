//! AI SDK front ends: an unmodified `useChat` talks to an agent, with approvals that cannot be forged.
//!
//! ```text
//!  useChat ── POST {id, messages} ─► authorize ─► Chats ─► intent ─► Agent
//!     ▲                         the chat, as stored │                │
//!     └── text/event-stream ◄── chunks ◄────────────┴─── events ◄────┘
//! ```
//!
//! ```no_run
//! use axum::Router;
//! use countersign_ai_sdk::{Chats, Principal, Rejection, router};
//!
//! # fn example(agent: countersign::Agent) -> Router {
//! // The closure says who makes a request, by a session, a token or a header of your proxy.
//! Router::new().nest("/chat", router(Chats::new(agent), async |parts| {
//!     let user = parts.headers.get("x-user").and_then(|user| user.to_str().ok());
//!     user.map(Principal::new).ok_or_else(|| Rejection::unauthorized("not logged in"))
//! }))
//! # }
//! ```
//!
//! [`Chats`] does everything but HTTP, and [`router`] adds that for axum. You can use the pieces alone: [`Chunk`] and
//! [`encode`] are the wire, [`ChunkWriter`] writes the events of a run as chunks, and [`ChatRequest`] and [`UiMessage`]
//! read what a client posts.
//!
//! # An approval
//!
//! 1. A pending call is sent as `tool-input-available` with the arguments that will run, `tool-approval-request` with
//!    an id of 128 random bits, and a `data-approval` part with the questions, safe to show (rule S1). The stream ends:
//!    an unmodified client answers with its next request.
//! 2. The answer counts when it names an approval that this chat was asked for and that is still open, and the tool and
//!    arguments are the ones that were shown. `approved` is a JSON boolean. What runs is what the server has stored.
//!    `overrideArgs: {[approvalId]: {…}}` beside the messages approves a call with other arguments (rule A2).
//! 3. The answer is a decision in the ledger. A repeated request gets the outcome again. An answer that is too late, or
//!    contradicts an earlier one, gets the outcome of the answer that counted, and runs nothing.
//!
//! 4. `approvalGrants: {[approvalId]: {fingerprint, pattern, seconds}}` beside the messages makes a grant with an approval
//!    (rule G3): one of the `offers` of the ask, with its fingerprint, number and time. Any other one refuses the whole request.
//!    Later calls of the chat that it covers run without an ask, and their data part says by whose grant. An approval that
//!    is not the decision makes none.
//!
//! A call that is asked about again gets a second part. A message of the user in place of an answer closes the pending
//! calls: they do not run (rule T3). A call that the client executes is sent as `tool-input-available` alone, and
//! `addToolOutput` answers it.
//!
//! # The data part of an ask
//!
//! `{"type": "data-approval", "id": approvalId, "data": {…}}`, with a new `status` when it is answered:
//!
//! | field | content |
//! |---|---|
//! | `approvalId`, `toolCallId`, `toolName` | the ids of the ask and of the part, and the name of the tool |
//! | `path` | the tool; for a sub-agent's tool, the agents that lead to it come first: `root/cleaner/delete_file` |
//! | `input`, `canonical` | the arguments that will run, as a value and as text |
//! | `title`, `headline` | who wants what, with values between backticks; the call on one line |
//! | `questions` | the layers that ask and their reasons: `[{askedBy, reason}]` |
//! | `previews` | what the call would change or is about, safe to show (rule S7): `[{author, title, change, pinned, lines, numbers, cells, cut}]`, see below |
//! | `repeated` | the names of the arguments that a preview shows, which a page need not show again |
//! | `offers` | the grants that can be made with the approval, at most four, the narrowest first, each for one hour and for 12 hours; absent without any: `[{fingerprint, scope, pattern, seconds, says, rule, also}]`, a sentence with the time, the rule as TOML, and examples of what else it would allow |
//! | `group` | the same for equal calls of one response, which a page shows as one with their number (rule D11); each keeps its own `approvalId` |
//! | `changed` | why a call is asked about again |
//! | `origins` | where each argument comes from, if it is recorded: `{field, text, warning}`, warnings first; text of a stranger may be in it |
//! | `deniedBefore` | how often a person has denied the same call before in its run: `denied twice before: keep it` |
//! | `status` | `pending`, `approved`, `denied`, `edited` or `superseded` |
//! | `by`, `reason`, `ranInput` | who answered, why it was denied, and what ran instead |
//! | `grant` | the grant that was made with the approval: `{id, until}`, or `{problem}` where none was |
//!
//! A preview is the difference of two texts (`change` is `created`, `deleted`, `changed` or `unchanged`), a text (`change`
//! is null), or a table (`cells` are its rows, of which the first names the columns). Each of the `lines` begins with `+`,
//! `-`, a space, or `@` for a remark. The call is asked about again if the content changes, unless `pinned` is false: that
//! content changes by itself. `cut` lines are not stored: a page does not approve such a call together with others.
//!
//! The part is not transient: an offer has to be there when the page is loaded again, like the ask.
//!
//! A call that a grant has approved runs without an ask. Its data part has no `approvalId`, the call's id, and the status
//! `approved`; `by` is `by grant G of ann, 2026-11-20`.
//!
//! A call that a layer denies without an ask ends with `tool-output-error`, which every client accepts. Beside it we
//! send a data part for the call without an `approvalId`: its id is the call's, and its status is `denied`.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod active;
mod answer;
mod approval;
mod chat;
mod chats;
mod chunk;
mod config;
mod diff;
mod grant;
mod granting;
mod intent;
mod message;
mod message_stream;
mod principal;
mod reduce;
mod rejection;
mod request;
mod response;
mod router;
mod sse;
mod storage;
mod version;
mod writer;

pub use active::Events;
pub use chats::Chats;
pub use chunk::{Chunk, DataChunk, FinishReason};
pub use grant::ChosenGrant;
pub use message::{PartApproval, Role, ToolPart, UiMessage, UiPart};
pub use principal::Principal;
pub use rejection::Rejection;
pub use request::{ChatRequest, Trigger};
pub use router::router;
pub use sse::{DONE, HEADERS, KEEP_ALIVE, encode};
pub use version::{ClientVersion, NoVersion};
pub use writer::ChunkWriter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
